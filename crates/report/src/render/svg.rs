//! Pictures that a browser shows.

use std::fmt::Write;

use super::text::{count, printable};
use crate::model::StructureChart;

const WIDTH: u64 = 720;
const NAMES: u64 = 200;
const NUMBERS: u64 = 110;
const ROW: u64 = 22;

/// A structure's members as bars: hot ones black, cold ones grey.
pub fn chart(chart: &StructureChart) -> String {
    let height = 40 + ROW * chart.members.len() as u64 + 10;
    let most = chart.members.iter().map(|member| member.accesses).max().unwrap_or(0).max(1);
    let room = WIDTH - NAMES - NUMBERS;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Accesses to the members of {name}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"22\" font-weight=\"bold\">{name}, {} bytes</text>\n",
        chart.bytes,
        name = escaped(&chart.ty),
    );
    for (at, member) in (0..).zip(&chart.members) {
        let y = 36 + ROW * at;
        let bar = (u128::from(member.accesses) * u128::from(room) / u128::from(most)) as u64;
        let (colour, mark) = if member.is_cold { ("#b0b0b0", "cold") } else { ("black", "hot") };
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{NAMES}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"><title>{mark}</title></rect>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            NAMES - 8,
            y + 14,
            escaped(&member.member),
            y + 2,
            bar.max(1),
            ROW - 6,
            NAMES + bar + 6,
            y + 14,
            count(member.accesses),
        );
    }
    out + "</svg>\n"
}

fn escaped(text: &str) -> String {
    let text = printable(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MarkedMember, RecordLayout};

    #[test]
    fn names_cannot_leave_their_place() {
        let member = MarkedMember { member: "a</text>".into(), bytes: 8, accesses: 0, is_cold: true };
        let ty = "pair<int, \"x\">".into();
        let layout = RecordLayout {
            name: String::new(),
            form: "struct".into(),
            bytes: 8,
            incomplete: false,
            watched: false,
            cast: false,
            members: Vec::new(),
        };
        let members = vec![member];
        let picture =
            chart(&StructureChart { ty, bytes: 8, differential: 0.0, is_split: false, members, layout });
        assert!(picture.contains("pair&lt;int, &quot;x&quot;&gt;") && picture.contains("a&lt;/text&gt;"));
        assert_eq!(picture.matches("#b0b0b0").count(), 1);
    }
}
