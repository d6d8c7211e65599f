//! One sentence, and never more than the data allow.

use memlode_measure::bench::Comparison;
use memlode_measure::stats::Effect;

/// Returns the verdict on the program `second` compared with the program `first`.
pub fn sentence(comparison: &Comparison, second: &str, first: &str, code_was_varied: bool) -> String {
    let Comparison { given, random, layout, .. } = comparison;
    let than = format!("{second} is {{}} than {first}");
    let claim = |effect: &Effect| than.replace("{}", &percent(effect.ratio));
    let code = if code_was_varied { "" } else { " (code layout was not varied)" };
    let said = match (random.is_claimed(), given.is_claimed(), layout.is_claimed()) {
        (true, _, false) => {
            format!(
                "{}{}; that layout adds to it or takes from it cannot be claimed{code}, {}",
                claim(random),
                interval(random),
                seen(layout)
            )
        }
        (true, true, true) if same_side(given, random) && further(given, random) => format!(
            "{}, of which {} is layout{code}: over random layouts it is {}{}",
            claim(given),
            share(layout),
            percent(random.ratio),
            interval(random)
        ),
        (true, _, true) => format!(
            "over random layouts {}{}, but at the layouts given {}: they move the comparison by {}{code}",
            claim(random),
            interval(random),
            if given.is_claimed() {
                format!("it is {}", percent(given.ratio))
            } else {
                "no difference can be claimed".into()
            },
            share(layout)
        ),
        (false, true, true) => format!(
            "{}, {}{code}: over random layouts no difference can be claimed, {}",
            claim(given),
            // More than all of it: the rest is what random layouts do the other way, and nothing to claim. All of it only if the
            // interval of what layout does reaches as far as what was seen.
            if further(given, layout) && !(layout.low..=layout.high).contains(&given.ratio) {
                format!("of which {} is layout{}", share(layout), interval(layout))
            } else {
                format!("all of which is layout, as far as these rounds can tell{}", interval(layout))
            },
            seen(random)
        ),
        (false, true, false) => format!(
            "{} at the layouts given, but over random layouts{code} no difference can be claimed, {}: more rounds would \
             tell which it is",
            claim(given),
            seen(random)
        ),
        (false, false, true) => format!(
            "no difference can be claimed, neither at the layouts given nor over random ones, but layout moves the \
             comparison by {}{code}",
            share(layout)
        ),
        (false, false, false) => {
            format!("no difference between {second} and {first} can be claimed{code}, {}", seen(random))
        }
    };
    let mut letters = said.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    // A command keeps its own spelling.
    if said.starts_with(second) { said + "." } else { first + letters.as_str() + "." }
}

/// "3.1% faster", "twice"…: how the time of the second lies to that of the first.
pub fn percent(ratio: f64) -> String {
    match ratio {
        ..0.5 => format!("{:.2} times faster", 1.0 / ratio),
        0.5..1.0 => format!("{} faster", points(1.0 - ratio)),
        1.0..2.0 => format!("{} slower", points(ratio - 1.0)),
        _ => format!("{ratio:.2} times slower"),
    }
}

fn points(part: f64) -> String {
    let percent = 100.0 * part;
    if percent < 0.1 { format!("{percent:.2}%") } else { format!("{percent:.1}%") }
}

fn share(layout: &Effect) -> String {
    points((layout.ratio - 1.0).abs())
}

fn interval(effect: &Effect) -> String {
    let (a, b) = if effect.ratio < 1.0 {
        (1.0 - effect.high, 1.0 - effect.low)
    } else {
        (effect.low - 1.0, effect.high - 1.0)
    };
    format!(" ({} to {})", points(a), points(b))
}

/// The size that would have been claimed.
pub fn seen(effect: &Effect) -> String {
    match effect.detectable {
        size if size.is_finite() => format!("{} would have been seen", points(size - 1.0)),
        _ => "nor could it have been in so few rounds".into(),
    }
}

fn same_side(a: &Effect, b: &Effect) -> bool {
    (a.ratio < 1.0) == (b.ratio < 1.0)
}

fn further(a: &Effect, b: &Effect) -> bool {
    a.ratio.ln().abs() > b.ratio.ln().abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(ratio: f64, claimed: bool) -> Effect {
        let p = if claimed { 1e-6 } else { 0.5 };
        Effect { ratio, low: ratio * 0.99, high: ratio * 1.01, p, detectable: 1.02, units: 30 }
    }

    fn said(given: Effect, random: Effect, layout: Effect) -> String {
        let found = Comparison { program: 1, given, random, layout, is_code_varied: true };
        sentence(&found, "second", "first", true)
    }

    #[test]
    fn what_random_layouts_show_is_claimed() {
        let said = said(effect(1.02, true), effect(1.02, true), effect(1.0, false));
        assert!(said.contains("2.0% slower than first (") && said.contains("cannot be claimed"), "{said}");
    }

    #[test]
    fn what_layout_alone_makes_is_called_layout() {
        let said = said(effect(1.04, true), effect(1.0, false), effect(1.04, true));
        assert!(said.starts_with("second is ") && said.contains("is layout"), "{said}");
        assert!(said.contains("over random layouts no difference can be claimed"), "{said}");
    }
}
