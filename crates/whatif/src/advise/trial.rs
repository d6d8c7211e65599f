//! Edits tried on a part of a trace.

use memlode_layout::Edit;

use super::{ABOUT, AdviseError, Baseline, EditOutcome, Rejected, effort};
use crate::noise::{LEAST, Verdict};
use crate::part::TracePart;
use crate::plan::Plan;
use crate::predict::{Unpredictable, side_by_side};

/// Accesses of the part of a trace on which candidates are tried.
pub const PART: u64 = 8_000_000;

/// Accesses of the part that is tried first.
pub const GLANCE: u64 = 1_000_000;

/// The number of edits that did best on the first part and are tried on more of the trace.
const SEMIFINAL: usize = 4;

/// Edits, and what they gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The edits.
    pub edits: Vec<Edit>,
    /// The part of the cycles that they gain on a part of the trace; less than 0 if they lose.
    pub gain: f64,
    /// True if that part is all of the trace.
    pub is_whole: bool,
}

/// Two parts of a trace, both spread over all of it, one of which is quickly replayed; short traces
/// have only one.
pub struct Part<'a> {
    glance: &'a TracePart,
    more: Option<TracePart>,
}

impl Part<'_> {
    /// Counts the parts of a trace as it is.
    pub fn two(baseline: &Baseline) -> Result<Part<'_>, AdviseError> {
        let glance = baseline.glance()?;
        let more = match baseline.accesses() > glance.accesses {
            true => Some(TracePart::of(&baseline.predictor(), PART, &baseline.profile)?),
            false => None,
        };
        Ok(Part { glance, more })
    }

    /// The larger of the two.
    pub fn larger(&self) -> &TracePart {
        self.more.as_ref().unwrap_or(self.glance)
    }

    /// Tries edits on the first part, and those that do best there on the second; those that gain
    /// most come first.
    pub fn try_in_turn(&self, baseline: &Baseline, edits: Vec<Vec<Edit>>) -> Result<Vec<Trial>, AdviseError> {
        let mut tried = try_each(baseline, self.glance, edits)?;
        let Some(more) = self.more.as_ref().filter(|more| more.accesses > self.glance.accesses) else {
            return Ok(tried);
        };
        let rest = tried.split_off(SEMIFINAL.min(tried.len()));
        let mut again = try_each(baseline, more, tried.into_iter().map(|trial| trial.edits).collect())?;
        again.extend(rest);
        Ok(again)
    }
}

/// Tries each of some changes by itself; those that gain most come first. What cannot be made is
/// left out.
pub fn try_each(
    baseline: &Baseline,
    part: &TracePart,
    changes: Vec<Vec<Edit>>,
) -> Result<Vec<Trial>, AdviseError> {
    let planned = changes.into_iter().filter_map(|edits| Some((baseline.plan(&edits).ok()?, edits)));
    let planned: Vec<(Plan, Vec<Edit>)> = planned.collect();
    baseline.spend(part.accesses * planned.len() as u64);
    let cycles = side_by_side(&baseline.predictor(), &planned, |predictor, (plan, _)| {
        part.under(predictor, plan, None)
    });
    let mut tried: Vec<Trial> = Vec::new();
    let placed = part.placed(&baseline.predictor())?.run;
    for ((_, edits), cycles) in planned.into_iter().zip(cycles) {
        match cycles {
            Ok(cycles) => {
                let gain = 1.0 - cycles.run / placed.max(1.0);
                tried.push(Trial { edits, gain, is_whole: part.is_whole });
            }
            Err(Unpredictable::Placement(_)) => {}
            Err(why) => return Err(why.into()),
        }
    }
    tried.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(tried)
}

/// Edits of one group that do well on a part and disappoint on all of the trace: the next one is tried, and no third.
const CONFIRMED: usize = 2;

/// Replays the first of some rivals on the whole trace, and if it is not worth while, the next one.
/// Rejected ones are added to `rejected`.
pub fn confirm(
    baseline: &Baseline,
    tried: Vec<Trial>,
    rejected: &mut Vec<Rejected>,
) -> Result<Option<EditOutcome>, AdviseError> {
    let noise = baseline.noise()?;
    let mut found = None;
    for (number, Trial { edits, gain, is_whole }) in tried.into_iter().enumerate() {
        let verdict = noise.verdict(1.0, 1.0 - gain);
        // What placement alone could gain is looked at closely, once.
        let may_gain = verdict == Verdict::WorthIt || (number == 0 && gain >= LEAST);
        if found.is_some() || number >= CONFIRMED || !may_gain {
            rejected.push(Rejected { edits, gain, verdict, is_whole });
            continue;
        }
        let outcome = baseline.outcome(&edits)?;
        match outcome.verdict {
            Verdict::WorthIt => found = Some(outcome),
            Verdict::Neutral | Verdict::Worse => rejected.push(outcome.rejected()),
        }
    }
    Ok(found)
}

/// Replays the edits that gain most on a part, and are not worth it there, on the whole trace: that
/// nothing is to be gained is said of the whole.
pub fn confirm_best(
    baseline: &Baseline,
    rejected: &mut Vec<Rejected>,
) -> Result<Option<EditOutcome>, AdviseError> {
    let gain = |rejected: &Rejected| rejected.gain;
    let best = (0..rejected.len()).max_by(|&a, &b| gain(&rejected[a]).total_cmp(&gain(&rejected[b])));
    let Some(best) = best.filter(|&best| !rejected[best].is_whole && rejected[best].gain > 0.0) else {
        return Ok(None);
    };
    let outcome = baseline.outcome(&rejected[best].edits)?;
    rejected.swap_remove(best);
    if outcome.verdict == Verdict::WorthIt {
        return Ok(Some(outcome));
    }
    rejected.push(outcome.rejected());
    Ok(None)
}

/// Puts the simplest change first of those that gain about as much as the best: `range` is what
/// placement alone gains.
pub fn simplest_first(mut tried: Vec<Trial>, range: f64) -> Vec<Trial> {
    let best = tried.first().map_or(0.0, |trial| trial.gain);
    let enough = best - range.max(ABOUT);
    let about = tried.iter().take_while(|trial| trial.gain >= enough).count();
    tried[..about].sort_by(|a, b| effort(&a.edits).cmp(&effort(&b.edits)).then(b.gain.total_cmp(&a.gain)));
    tried
}

#[cfg(test)]
mod tests {
    use memlode_layout::edits_from_text;

    use super::*;

    #[test]
    fn of_gains_that_are_about_the_same_the_simplest_change_comes_first() {
        let trial = |text: &str, gain| {
            let edits = edits_from_text(text).expect("an edit");
            Trial { edits, gain, is_whole: false }
        };
        let tried =
            || vec![trial("soa node", 0.31), trial("reorder node: key", 0.30), trial("pad node to 64", 0.1)];
        let first = |range| simplest_first(tried(), range)[0].gain;
        assert_eq!(first(0.0), 0.30);
        assert_eq!(first(0.5), 0.30);
        let mut tried = tried();
        tried[1].gain = 0.2;
        assert_eq!(simplest_first(tried.clone(), 0.0)[0].gain, 0.31);
        assert_eq!(simplest_first(tried, 0.15)[0].gain, 0.2);
    }
}
