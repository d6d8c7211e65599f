//! The best layout of one type.

use memlode_layout::Edit;

use super::trial::{PART, try_each};
use super::{ABOUT, AdviseError, Baseline, EditOutcome, LeftOff, Trial, effort};
use crate::named::records_named;
use crate::noise::Verdict;
use crate::part::TracePart;
use crate::predict::Unpredictable;

/// The number of layouts that are replayed on the whole trace.
const CONFIRMED: usize = 3;

/// The best layout of a type.
pub struct Searched {
    /// Its outcome on the whole trace.
    pub best: EditOutcome,
    /// Layouts tried on a part of it, the best first.
    pub tried: Vec<Trial>,
    /// The reason why fewer of them were replayed on the whole trace; none if all were that should be.
    pub left_off: Option<LeftOff>,
}

/// Tries layouts of a type on a part of a trace, and the best of them on all of it. If the host
/// stops it, the best is of those that were replayed until then.
///
/// # Errors
/// That the trace has no such type, or the type no other layout; those of a replay; and that the
/// host stops it before any layout was replayed on the whole trace.
pub fn search(baseline: &Baseline, ty: &str) -> Result<Searched, AdviseError> {
    let Some(&record) = records_named(baseline.trace.sites(), ty).first() else {
        // Says which types there are.
        baseline.plan(&[Edit::Soa { structure: ty.to_string(), members: Vec::new() }])?;
        return Err(AdviseError::NoType(ty.to_string()));
    };
    let part = TracePart::of(&baseline.predictor(), PART, &baseline.profile)?;
    let edits = baseline.of_record(record, None).into_iter().map(|proposal| proposal.edits).collect();
    let tried = try_each(baseline, &part, edits)?;
    let mut found: Vec<EditOutcome> = Vec::new();
    let mut left_off = None;
    let finalists = tried.len().min(CONFIRMED);
    for (number, trial) in (1..).zip(tried.iter().take(CONFIRMED)) {
        baseline.host_tries(number, finalists);
        match baseline.outcome(&trial.edits) {
            Err(AdviseError::Predict(Unpredictable::Stopped)) if !found.is_empty() => {
                left_off = Some(LeftOff::Stopped);
                break;
            }
            outcome => found.push(outcome?),
        }
        if let Some(outcome) = found.last().filter(|outcome| outcome.verdict == Verdict::WorthIt) {
            baseline.tell(outcome);
        }
    }
    let most = found.iter().map(EditOutcome::gain).fold(f64::NEG_INFINITY, f64::max);
    let about = found.into_iter().filter(|found| found.gain() >= most - ABOUT);
    // The simplest change of those that gain about as much.
    let best =
        about.min_by(|a, b| effort(&a.edits).cmp(&effort(&b.edits)).then(b.gain().total_cmp(&a.gain())));
    match best {
        Some(best) => Ok(Searched { best, tried, left_off }),
        None => Err(AdviseError::NoLayout(ty.to_string())),
    }
}
