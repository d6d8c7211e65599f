//! Links of the same code: how far they differ.

use memlode_measure::bias::links::{Aliasing, Floor};
use serde_json::{Value, json};

use super::bench::variation;
use super::environment::pairs;
use super::percent;
use super::picture::{Drawing, Labels};

/// Returns the line of progress before links are run.
pub fn progress(links: u32, rounds: usize, seconds: f64) -> String {
    format!("{rounds} rounds of {links} links, about {:.0} s", rounds as f64 * seconds)
}

/// Returns the spread of links as JSON, with what was varied.
///
/// # Errors
/// Never: every number becomes one of JSON's.
pub fn document(found: &Floor) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(found)?;
    document["varied"] = json!(variation(&found.varied));
    Ok(document)
}

/// Returns all of it in one sentence.
pub fn sentence(found: &Floor) -> String {
    let (links, varied) = (found.links.len(), variation(&found.varied));
    // The spread of so few links is itself known to some 15%; less than the errors is no spread to
    // speak of.
    if found.spread < found.hidden() {
        return format!(
            "{links} links of the same code cannot be told apart ({}): a spread of {} between links would have been \
             seen.",
            varied,
            percent(1.5 * found.hidden())
        );
    }
    let aliasing = found.aliasing.as_ref().map_or(String::new(), aliasing_sentence);
    format!(
        "Links of the same code move this program by {} (standard deviation of {links} links; {}; the slowest takes {} \
         more time than the fastest): a change of less than {} is no change until it is seen over several \
         links.{aliasing}",
        percent(found.spread),
        varied,
        percent(found.range - 1.0),
        percent(found.floor)
    )
}

/// Begins with a blank, to follow the floor's sentence.
fn aliasing_sentence(found: &Aliasing) -> String {
    let function = &found.function;
    let Some(correlation) = found.correlation else {
        let count = found.aliases.first().copied().unwrap_or(0);
        return format!(
            " In all links as many loads of {function} ({count} a call) agree with stores to other data shortly before: \
             this is code layout, or the data of other functions."
        );
    };
    if found.explained == 0.0 {
        return format!(
            " The times do not follow the aliases of {function} (r = {correlation:.2}): this is code layout, or the data \
             of other functions."
        );
    }
    let alike = pairs(&found.pairs, 3).unwrap_or_else(|| "of its data".into());
    format!(
        " Data aliasing in {function} explains {:.0}% of the links' variance (r = {correlation:.2}): loads agree in their \
         low 12 bits with stores shortly before, {alike}. The rest, {}, is code \
         layout, or data of other functions.",
        100.0 * found.explained,
        percent(found.rest)
    )
}

/// Draws links from the fastest to the slowest; those with more aliases than the middle of the
/// range are marked.
pub fn picture(found: &Floor, program: &str) -> Drawing {
    let aliases = found.aliasing.as_ref().map(|aliasing| &aliasing.aliases);
    let number = |link: usize| aliases.map_or(0, |aliases| aliases[link]);
    let mut links: Vec<(f64, usize)> =
        found.links.iter().enumerate().map(|(link, ratio)| (*ratio, number(link))).collect();
    links.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = |of: fn(usize, usize) -> usize| links.iter().map(|link| link.1).reduce(of).unwrap_or(0);
    let middle = usize::midpoint(ends(usize::min), ends(usize::max));
    let points: Vec<(f64, f64)> =
        links.iter().enumerate().map(|(at, (ratio, _))| ((at + 1) as f64, *ratio)).collect();
    let marked = points.iter().zip(&links).filter(|(_, (_, aliases))| *aliases > middle);
    let marked: Vec<(f64, f64)> = marked.map(|(point, _)| *point).collect();
    let across = match aliases {
        Some(_) => "links, the fastest first (red: data alias)",
        None => "links, the fastest first",
    };
    let labels =
        Labels { title: program.to_string(), across: across.into(), up: "time over the median link's" };
    Drawing { labels, points, marked, names: Vec::new() }
}

#[cfg(test)]
mod tests {
    use memlode_measure::link::LinkVariation;

    use super::*;

    fn floor(spread: f64, aliasing: Option<Aliasing>) -> Floor {
        Floor {
            links: vec![1.0; 25],
            errors: vec![0.004; 25],
            rounds: 30,
            varied: LinkVariation { objects: 3, functions: 0, has_seed: true },
            spread,
            range: 1.05,
            floor: 0.06,
            seconds: 1.0,
            aliasing,
        }
    }

    #[test]
    fn a_spread_below_its_noise_is_none() {
        assert!(sentence(&floor(0.001, None)).contains("cannot be told apart (the order of 3 objects, "));
        assert!(sentence(&floor(0.02, None)).contains("a change of less than 6.0% is no change until"));
    }

    #[test]
    fn aliases_explain_links_or_do_not() {
        let of = |correlation, explained| {
            let aliasing = Aliasing {
                function: "work".into(),
                aliases: vec![7; 25],
                correlation,
                p: 0.001,
                explained,
                rest: 0.005,
                pairs: Vec::new(),
            };
            sentence(&floor(0.02, Some(aliasing)))
        };
        assert!(of(Some(0.9), 0.8).contains("explains 80% of the links' variance"));
        assert!(of(Some(0.1), 0.0).contains("do not follow the aliases of work"));
        assert!(of(None, 0.0).contains("as many loads of work (7 a call)"));
    }
}
