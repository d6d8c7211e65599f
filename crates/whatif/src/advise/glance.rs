//! The change that is most worth a try, as far as a moment tells.

use std::time::{Duration, Instant};

use memlode_layout::{Edit, Link};

use super::trial::{GLANCE, GLANCE_LEAST, Trial, try_each};
use super::{AdviseError, Baseline, rivals};
use crate::hot_cold::charts;
use crate::remedies::split::by_rules;

/// A glance looks at one such part of a trace, and at no fewer accesses than this.
const PARTS: u64 = 32;
const SHORTEST: u64 = 50_000;

/// The number of layouts of a type that are tried, besides the one of the published rules.
const MOST: usize = 3;

/// The findings of a glance.
#[derive(Clone, Debug, PartialEq)]
pub enum Glance {
    /// Threads lose this part of the cycles to each other, which edits may save. Nothing was
    /// replayed.
    Threads {
        /// The part of the run's cycles.
        lost_share: f64,
        /// The edits.
        edits: Vec<Edit>,
    },
    /// No type is waited for, and several threads take locks often.
    Locks,
    /// No type is waited for.
    NothingWaits,
    /// A gain in the first accesses.
    Gain {
        /// The edits that gain.
        edits: Vec<Edit>,
        /// The part of the cycles that they gain.
        gain: f64,
        /// The number of accesses looked at.
        accesses: u64,
    },
    /// No gain in the first accesses.
    NoGain {
        /// The number of accesses looked at.
        accesses: u64,
    },
}

/// Looks at what a trace waits for most, in its first accesses, for no longer than `budget` as far
/// as a first try tells.
///
/// # Errors
/// Those of a replay.
pub fn glance(baseline: &Baseline, budget: Duration) -> Result<Glance, AdviseError> {
    let started = Instant::now();
    if let Some(mut contended) = baseline.contended().into_iter().next() {
        let cycles = baseline.cycles();
        let edits = contended.proposals.swap_remove(0).edits;
        return Ok(Glance::Threads { lost_share: cycles.lost / cycles.run.max(1.0), edits });
    }
    let Some((name, record)) = rivals::waited_for(baseline).into_iter().next() else {
        let takes_locks = baseline.sharing().is_some_and(|sharing| !sharing.locks.is_empty());
        return Ok(if takes_locks { Glance::Locks } else { Glance::NothingWaits });
    };
    let charts = charts(baseline.trace.sites(), &baseline.profile);
    let chart = charts.iter().find(|chart| chart.name == name);
    let by_rules = chart.and_then(by_rules);
    let proposals = baseline.of_record(record, None).into_iter();
    let mut edits: Vec<Edit> = proposals.flat_map(|proposal| proposal.edits).collect();
    edits.retain(|edit| {
        matches!(edit, Edit::Split { by: Link::Parallel | Link::Index, .. } | Edit::Soa { .. })
    });
    edits.truncate(MOST);
    edits.extend(by_rules);
    let whole: u64 = baseline.trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
    let predictor = baseline.predictor();
    let part = predictor.part((whole / PARTS).clamp(SHORTEST, GLANCE), &baseline.profile)?;
    // As it is and placed anew.
    let each = started.elapsed() / 2;
    let mut tried: Vec<Trial> = Vec::new();
    for some in edits.chunks(predictor.threads) {
        if !tried.is_empty() && started.elapsed() + each > budget {
            break;
        }
        tried.extend(try_each(baseline, &part, some.iter().map(|edit| vec![edit.clone()]).collect())?);
    }
    let accesses = part.accesses;
    let best = tried.into_iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    Ok(match best.filter(|best| best.gain >= GLANCE_LEAST) {
        Some(Trial { edits, gain, .. }) => Glance::Gain { edits, gain, accesses },
        None => Glance::NoGain { accesses },
    })
}
