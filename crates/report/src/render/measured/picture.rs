//! A sweep as a picture: SVG, which every browser shows and every report can hold.

use plotters::prelude::*;
use thiserror::Error;

/// A picture that cannot be drawn.
#[derive(Debug, Error)]
pub enum PictureError {
    /// No point is finite.
    #[error("there is nothing to draw")]
    Empty,
    /// The library of pictures refuses.
    #[error("the picture cannot be drawn: {0}")]
    Refused(String),
}

/// The picture to draw.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The words around it.
    pub labels: Labels,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Points among them that are claimed to differ.
    pub marked: Vec<(f64, f64)>,
    /// Names of the points, written beside them; none, or one for each.
    pub names: Vec<String>,
}

/// The words around a picture.
#[derive(Clone, Debug)]
pub struct Labels {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub across: String,
    /// Beside the vertical axis.
    pub up: &'static str,
}

impl Drawing {
    /// Draws it as SVG. Values that are not finite are left out.
    ///
    /// # Errors
    /// If there is nothing to draw.
    pub fn svg(&self) -> Result<String, PictureError> {
        let finite: Vec<(f64, f64)> =
            self.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let span = |of: fn(&(f64, f64)) -> f64| {
            let ends = finite
                .iter()
                .map(of)
                .fold((f64::MAX, f64::MIN), |ends, value| (ends.0.min(value), ends.1.max(value)));
            let margin = 0.05 * (ends.1 - ends.0).max(0.01);
            ends.0 - margin..ends.1 + margin
        };
        if finite.is_empty() {
            return Err(PictureError::Empty);
        }
        let mut svg = String::new();
        let drawn = draw(self, &finite, span(|point| point.0), span(|point| point.1), &mut svg);
        drawn.map_err(|why| PictureError::Refused(why.to_string()))?;
        Ok(svg)
    }
}

fn draw(
    picture: &Drawing,
    points: &[(f64, f64)],
    across: std::ops::Range<f64>,
    up: std::ops::Range<f64>,
    svg: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (900, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&picture.labels.title, ("sans-serif", 16))
        .margin(8)
        .x_label_area_size(38)
        .y_label_area_size(52)
        .build_cartesian_2d(across, up.clone())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&picture.labels.across)
        .y_desc(picture.labels.up)
        .draw()?;
    // A comb, as contexts have nothing between them.
    let comb = points.iter().map(|(x, y)| PathElement::new([(*x, up.start), (*x, *y)], BLUE.mix(0.6)));
    chart.draw_series(comb)?;
    // Written from the foot of the comb upwards.
    let font = ("sans-serif", 11).into_font().transform(FontTransform::Rotate270);
    let foot = up.start + 0.02 * (up.end - up.start);
    let name = |(point, name): (&(f64, f64), &String)| Text::new(name.clone(), (point.0, foot), font.clone());
    chart.draw_series(points.iter().zip(&picture.names).map(name))?;
    chart.draw_series(picture.marked.iter().map(|point| Circle::new(*point, 4, RED.filled())))?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_what_is_finite() {
        let points = vec![(0.0, 1.0), (16.0, f64::NAN), (32.0, 1.1)];
        let labels = Labels { title: "a < b".into(), across: "bytes".into(), up: "ratio" };
        let marked = points[2..].to_vec();
        let picture = Drawing { labels, points: points.clone(), marked, names: Vec::new() };
        let svg = picture.svg().expect("a picture");
        assert!(
            svg.starts_with("<svg") && svg.contains("a &lt; b") && svg.matches("<circle").count() == 1,
            "{svg}"
        );
        let names = ["first", "lost", "third"].map(str::to_owned).to_vec();
        let finite = vec![points[0], points[2], points[2]];
        let named = Drawing { points: finite, names, ..picture.clone() }.svg().expect("a picture");
        assert!(named.contains("first") && named.contains("rotate(270"), "{named}");
        assert!(Drawing { points: Vec::new(), ..picture.clone() }.svg().is_err());
        assert!(Drawing { points: points[..1].to_vec(), ..picture }.svg().is_ok(), "one point");
    }
}
