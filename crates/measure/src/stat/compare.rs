//! Two results of `memlode stat` side by side.

use memlode_counters::refusal::CountRefusal;
use memlode_counters::stat::{Change, Improvement, Stat, StatComparison, ValueSource};

use crate::stats::{Random, improvement, location, random};

/// Returns the differences between two results: by how many per cent each value became smaller. All
/// random choices follow from the seed.
pub fn compare(before: &Stat, after: &Stat, seed: u64) -> StatComparison {
    let mut random = random(seed);
    let seconds = improved(&before.seconds, &after.seconds, &mut random);
    let software = before.software.iter().filter_map(|count| {
        let other = after.software.iter().find(|other| other.event == count.event)?;
        Some((count.event, change(&count.found, &other.found, &mut random)))
    });
    let software = software.collect();
    let ratios = before.ratios.iter().filter_map(|ratio| {
        let other = after.ratios.iter().find(|other| other.ratio == ratio.ratio)?;
        Some((ratio.ratio, change(&ratio.found, &other.found, &mut random)))
    });
    StatComparison {
        before: before.command.clone(),
        after: after.command.clone(),
        seconds: (!before.seconds.is_empty() && !after.seconds.is_empty()).then_some(seconds),
        software,
        ratios: ratios.collect(),
    }
}

fn improved(before: &[f64], after: &[f64], random: &mut Random) -> Improvement {
    Improvement {
        before: location(before, random),
        after: location(after, random),
        percent: improvement(before, after, random),
    }
}

fn change(before: &ValueSource, after: &ValueSource, random: &mut Random) -> Change {
    let missing = |refusal: &CountRefusal| Change::Missing { refusal: refusal.clone() };
    match (before, after) {
        (ValueSource::Missing { refusal }, _) | (_, ValueSource::Missing { refusal }) => missing(refusal),
        (ValueSource::Measured { values: a, .. }, ValueSource::Measured { values: b, .. }) => {
            Change::Compared { simulated: false, improvement: improved(a, b, random) }
        }
        (ValueSource::Simulated { value: a }, ValueSource::Simulated { value: b }) => {
            Change::Compared { simulated: true, improvement: improved(&[*a], &[*b], random) }
        }
        _ => Change::Unlike,
    }
}
