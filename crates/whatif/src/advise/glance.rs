//! The change that is most worth a try, as far as a moment tells.
//!
//! The same edits are tried as by `advise`, and the same one of a group is chosen, only on fewer accesses: no more than half of the
//! trace has, or some millions. Of a short trace, the best edit of each group is replayed in full, as `advise` does.

use memlode_layout::Edit;
use serde::{Deserialize, Serialize};

use super::trial::{GLANCE, Part, confirm, simplest_first};
use super::{AdviseError, Baseline, as_text, from_text, rivals};
use crate::hot_cold::charts;
use crate::noise::{LEAST, Verdict};

/// Types that layouts are tried of.
const TYPES: usize = 3;

/// Accesses that may be replayed of any trace.
const LEAST_WORK: u64 = 8_000_000;

/// A part has no fewer accesses.
const SHORTEST: u64 = 50_000;

/// A trace of no more accesses is short.
const SHORT: u64 = 2 * GLANCE;

/// The findings of a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Glance {
    /// Threads lose this part of the cycles to each other, which edits may save. Nothing was
    /// replayed.
    Threads {
        /// The part of the run's cycles.
        lost_share: f64,
        /// The edits.
        #[serde(rename = "edit", serialize_with = "as_text", deserialize_with = "from_text")]
        edits: Vec<Edit>,
    },
    /// Nothing is waited for that an edit may spare, and several threads take locks often.
    Locks,
    /// Nothing is waited for that an edit may spare.
    NothingWaits,
    /// Some edits gain.
    Gain {
        /// The best of each type or group of objects, the one that gains most first.
        found: Vec<GlancedEdits>,
        /// The number of accesses looked at.
        accesses: u64,
        /// True if these are all of the trace.
        is_whole: bool,
    },
    /// No edit gains.
    NoGain {
        /// The number of accesses looked at.
        accesses: u64,
        /// True if these are all of the trace.
        is_whole: bool,
    },
}

/// Edits that gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GlancedEdits {
    /// The edits, which are made together.
    #[serde(rename = "edit", serialize_with = "as_text", deserialize_with = "from_text")]
    pub edits: Vec<Edit>,
    /// The part of the cycles that they gain.
    pub gain: f64,
}

/// Looks at what a trace waits for most.
///
/// # Errors
/// Those of a replay.
pub fn glance(baseline: &Baseline) -> Result<Glance, AdviseError> {
    if let Some(mut contended) = baseline.contended().into_iter().next() {
        let cycles = baseline.cycles();
        let edits = contended.proposals.swap_remove(0).edits;
        return Ok(Glance::Threads { lost_share: cycles.lost / cycles.run.max(1.0), edits });
    }
    let charts = charts(baseline.trace.sites(), &baseline.profile);
    let groups = rivals::rivals(baseline, TYPES, &charts);
    let number = groups.iter().map(Vec::len).sum::<usize>() as u64;
    if number == 0 {
        let takes_locks = baseline.sharing().is_some_and(|sharing| !sharing.locks.is_empty());
        return Ok(if takes_locks { Glance::Locks } else { Glance::NothingWaits });
    }
    let whole = baseline.accesses();
    let work = (whole / 2).max(LEAST_WORK);
    let first = (work / number).clamp(SHORTEST, GLANCE);
    let second = if whole <= SHORT { whole } else { (work / 8).clamp(first, GLANCE) };
    let parts = Part::two(baseline, [first, second])?;
    let mut found = Vec::new();
    for rivals in groups {
        let tried = parts.try_in_turn(baseline, rivals)?;
        if tried.iter().all(|trial| trial.gain < LEAST) {
            continue;
        }
        let noise = baseline.noise()?;
        let mut tried = simplest_first(tried, noise.range());
        if whole <= SHORT {
            let outcome = confirm(baseline, tried, &mut Vec::new())?;
            found.extend(outcome.map(|outcome| GlancedEdits { gain: outcome.gain(), edits: outcome.edits }));
        } else if noise.verdict(1.0, 1.0 - tried[0].gain) == Verdict::WorthIt {
            let best = tried.swap_remove(0);
            found.push(GlancedEdits { edits: best.edits, gain: best.gain });
        }
    }
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    let is_whole = whole <= SHORT;
    let accesses = if is_whole { whole } else { parts.larger().accesses };
    Ok(match found.is_empty() {
        true => Glance::NoGain { accesses, is_whole: parts.larger().is_whole },
        false => Glance::Gain { found, accesses, is_whole },
    })
}
