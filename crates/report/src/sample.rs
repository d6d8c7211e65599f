//! What part of a program a trace with gaps shows.

use std::sync::Arc;

use memlode_attribute::{Covered, Estimate, Profile, covered};
use memlode_trace::Trace;

use crate::model::{Burst, Estimated, Sample, SampledLevel};
use crate::text::percent_of;

/// The sample that a trace is, if it is one.
pub fn sample(trace: &Trace, profile: &Profile, levels: &[Arc<str>]) -> Option<Sample> {
    let gaps = profile.gaps.as_ref()?;
    let Covered { time, accesses } = covered(trace)?;
    let burst = trace.manifest().burst().map(|burst| Burst {
        on_seconds: burst.on_us as f64 / 1e6,
        period_seconds: burst.period_us as f64 / 1e6,
    });
    // What was switched by hand is no random sample: its error is unknown.
    let estimated = |estimate: Estimate| Estimated {
        value: estimate.value,
        standard_error: estimate.standard_error.filter(|_| burst.is_some()),
    };
    let all = gaps.runs.iter().map(|run| run.accesses).sum::<u64>().max(1) as f64;
    let bounds = |level: usize| gaps.bounds.as_ref().and_then(|bounds| bounds.get(level));
    let levels = levels.iter().enumerate().map(|(i, name)| SampledLevel {
        name: name.to_string(),
        miss_ratio: estimated(gaps.miss_ratio(i, accesses.value)),
        least: bounds(i).map(|(least, _)| *least as f64 / all),
        most: bounds(i).map(|(_, most)| *most as f64 / all),
    });
    Some(Sample {
        runs: gaps.runs.iter().filter(|run| run.accesses > 0).count(),
        time_share: time,
        access_share: burst.is_some().then(|| estimated(accesses)),
        levels: levels.collect(),
        burst,
    })
}

/// The sample in two lines: what it is of, and how far its figures may be off.
pub fn lines(sample: &Sample) -> [String; 2] {
    let runs = |one: &str, many: &str| match sample.runs {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let time = format!("{} of the time", percent_of(sample.time_share));
    let of = match (&sample.burst, &sample.access_share) {
        (Some(burst), Some(share)) => format!(
            "{} of {} every {}: {time}, {} of the accesses{}; counts are those of the sample",
            runs("burst", "bursts"),
            seconds(burst.on_seconds),
            seconds(burst.period_seconds),
            percent_of(share.value),
            share.standard_error.map_or(String::new(), |error| format!(" ± {}", percent_of(error))),
        ),
        _ => format!("recorded in {}: {time}; counts are those of this part", runs("stretch", "stretches")),
    };
    let levels: Vec<String> = sample
        .levels
        .iter()
        .map(|level| {
            let error = level
                .miss_ratio
                .standard_error
                .map_or(String::new(), |error| format!(" ± {}", percent_of(error)));
            let bounds = match (level.least, level.most) {
                (Some(least), Some(most)) => {
                    format!(" (from {} to {})", percent_of(least), percent_of(most))
                }
                _ => String::new(),
            };
            format!("{} {}{error}{bounds}", level.name, percent_of(level.miss_ratio.value))
        })
        .collect();
    let kind = if sample.burst.is_some() { " ± standard error" } else { "" };
    let bounded = sample.levels.iter().any(|level| level.least.is_some());
    let bounds = if bounded { " (least to most, whatever caches held behind gaps)" } else { "" };
    [of, format!("misses of all{kind}{bounds}: {}", levels.join(", "))]
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s} s"),
        s if s >= 1e-3 => format!("{} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}
