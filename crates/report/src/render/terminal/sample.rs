//! The part of a program that a trace with gaps shows, in words.

use crate::model::Sample;
use crate::render::text::{percent, percent_of};

/// The sample in two lines: its extent, and the errors of its figures.
pub fn lines(sample: &Sample) -> [String; 2] {
    let runs = |one: &str, many: &str| match sample.runs {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let time = format!("{} of the time", percent_of(sample.time_share));
    let of = match (&sample.burst, &sample.access_share) {
        (Some(burst), Some(share)) => format!(
            "{} of {} every {}: {time}, {} of the accesses; counts are those of the sample",
            runs("burst", "bursts"),
            seconds(burst.on_seconds),
            seconds(burst.period_seconds),
            with_error(&percent_of(share.value), share.standard_error),
        ),
        _ => format!("recorded in {}: {time}; counts are those of this part", runs("stretch", "stretches")),
    };
    let levels: Vec<String> = sample
        .levels
        .iter()
        .map(|level| {
            let ratio = with_error(&percent_of(level.miss_ratio.value), level.miss_ratio.standard_error);
            let bounds = match (level.least, level.most) {
                (Some(least), Some(most)) => {
                    format!(" ({}–{})", percent_of(least), percent_of(most))
                }
                _ => String::new(),
            };
            format!("{} {ratio}{bounds}", level.name)
        })
        .collect();
    let kind = if sample.burst.is_some() { " ± standard error" } else { "" };
    let bounded = sample.levels.iter().any(|level| level.least.is_some());
    let bounds =
        if bounded { "; the ranges depend on what the caches held when recording resumed" } else { "" };
    [of, format!("misses ÷ all accesses{kind}: {}{bounds}", levels.join(", "))]
}

/// A share of the wait, or with its error: `31%`, `31% ± 4.1%`.
pub fn stall_share(share: f64, standard_error: Option<f64>) -> String {
    with_error(&percent((share * 1000.0).round() as u64, 1000), standard_error)
}

/// A share and how far it may be off, if it is estimated and bursts differ in it: `31% ± 4.1%`.
pub fn with_error(share: &str, standard_error: Option<f64>) -> String {
    match standard_error {
        Some(error) if error > 0.0 => format!("{share} ± {}", percent_of(error)),
        _ => share.to_string(),
    }
}

/// Returns a warning if the costliest finding may as well be the second one: it leads by less than
/// twice the standard error of the lead.
pub fn not_told_apart(lead: f64, standard_error: Option<f64>) -> Option<String> {
    let error = standard_error.filter(|error| lead < 2.0 * error)?;
    let difference = with_error(&percent_of(lead), Some(error));
    Some(format!("1 and 2 cannot be told apart in this sample: they differ by {difference}"))
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s} s"),
        s if s >= 1e-3 => format!("{} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_within_two_standard_errors_is_none() {
        assert_eq!(
            not_told_apart(0.021, Some(0.03)).as_deref(),
            Some("1 and 2 cannot be told apart in this sample: they differ by 2.1% ± 3.0%")
        );
        assert_eq!(not_told_apart(0.061, Some(0.03)), None);
        assert_eq!(not_told_apart(0.0, None), None);
    }

    #[test]
    fn what_is_the_same_in_all_bursts_has_no_error() {
        assert_eq!(with_error("31%", Some(0.041)), "31% ± 4.1%");
        assert_eq!(with_error("100%", Some(0.0)), "100%");
        assert_eq!(with_error("31%", None), "31%");
    }
}
