//! The part of a program that a trace with gaps shows.

use std::sync::Arc;

use memlode_attribute::{Covered, Estimate, Profile, covered};
use memlode_trace::Trace;

use crate::model::{Burst, Estimated, Sample, SampledLevel};

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
