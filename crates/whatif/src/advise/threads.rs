//! Lines that threads take from each other, or would if their objects began elsewhere.

use memlode_attribute::sharing::OwnMember;
use memlode_layout::Edit;
use memlode_trace::sites::SiteId;
use serde::{Deserialize, Serialize};

use super::{
    ABOUT, AdviseError, Baseline, EditOutcome, Rejected, Winner, effort, one_as_text, one_from_text,
};
use crate::apart::Apart;
use crate::contended::Contended;
use crate::noise::Verdict;
use crate::remedy::Proposal;

/// Bytes by which objects of threads are shifted to see what they would lose elsewhere: what
/// allocators align to, and more.
const SHIFTS: [u64; 3] = [16, 32, 48];

/// The part of the run's cycles from which on losses elsewhere are reported.
const LATENT_LEAST: f64 = 0.05;

/// The access that threads lose most at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostliestAccess {
    /// Its site.
    pub site: SiteId,
    /// The member of a type of the program's that it touches, where the site names one of a
    /// library's type.
    pub member: Option<OwnMember>,
}

/// An object whose beginning alone keeps threads from sharing its lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatentSharing {
    /// The object, as edits name it.
    pub object: String,
    /// Bytes by which it would begin later.
    pub shifted_by: u64,
    /// The part of the run's cycles that threads would then lose.
    pub lost_share: f64,
    /// The edit that keeps threads apart wherever it begins.
    #[serde(serialize_with = "one_as_text", deserialize_with = "one_from_text")]
    pub edit: Edit,
}

/// An object of which threads write neighbouring lines: where a processor fetches lines in pairs,
/// they may take them from each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedLines {
    /// The object, as edits name it.
    pub object: String,
    /// The edit that gives each thread pairs of lines of its own.
    #[serde(serialize_with = "one_as_text", deserialize_with = "one_from_text")]
    pub edit: Edit,
}

impl PairedLines {
    /// Bytes of a pair of lines, to which the edit aligns.
    pub fn bytes(&self) -> Option<u64> {
        match self.edit {
            Edit::Align { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// Tries edits of what threads take from each other on the whole trace, which has few of them.
pub fn try_edits(
    baseline: &Baseline,
    worth_it: &mut Vec<Winner>,
    rejected: &mut Vec<Rejected>,
) -> Result<(), AdviseError> {
    for Contended { site, member, proposals, .. } in baseline.contended() {
        let mut tried: Vec<EditOutcome> = Vec::new();
        for Proposal { edits, .. } in proposals {
            // What saves misses besides was tried for these, and is replayed with what threads lose.
            if worth_it.iter().any(|found| found.outcome.edits == edits) || baseline.plan(&edits).is_err() {
                continue;
            }
            rejected.retain(|rejected| rejected.edits != edits);
            tried.push(baseline.outcome(&edits)?);
        }
        let most = tried.iter().map(EditOutcome::gain).fold(f64::NEG_INFINITY, f64::max);
        tried.sort_by(|a, b| {
            let is_less = |outcome: &EditOutcome| outcome.gain() < most - ABOUT;
            let by_effort = || effort(&a.edits).cmp(&effort(&b.edits));
            is_less(a).cmp(&is_less(b)).then_with(by_effort).then(b.gain().total_cmp(&a.gain()))
        });
        let mut is_found = false;
        for outcome in tried {
            if outcome.verdict == Verdict::WorthIt && !is_found {
                baseline.tell(&outcome);
                worth_it.push(Winner { outcome, about: Some(CostliestAccess { site, member }) });
                is_found = true;
            } else {
                rejected.push(outcome.rejected());
            }
        }
    }
    Ok(())
}

/// Finds objects that threads would take from each other if they began elsewhere: an allocator or a
/// linker may put them there any day.
pub fn latent(baseline: &Baseline, apart: &[Apart]) -> Result<Vec<LatentSharing>, AdviseError> {
    let cycles = baseline.cycles();
    let mut found = Vec::new();
    for apart in apart {
        let mut most = (0, 0.0);
        for by in SHIFTS {
            let lost = baseline.lost_under(&[moved(apart, by)])? - cycles.lost;
            if lost > most.1 {
                most = (by, lost);
            }
        }
        let share = most.1 / (cycles.run + most.1).max(1.0);
        if share >= LATENT_LEAST {
            found.push(LatentSharing {
                object: apart.object.clone(),
                shifted_by: most.0,
                lost_share: share,
                edit: apart.at_lines(),
            });
        }
    }
    Ok(found)
}

/// Finds objects of which threads write neighbouring lines, which some processors fetch in pairs.
pub fn in_pairs(baseline: &Baseline, apart: &[Apart]) -> Result<Vec<PairedLines>, AdviseError> {
    let cycles = baseline.cycles();
    let mut found = Vec::new();
    for apart in apart {
        let edit = apart.at_pairs();
        if baseline.plan(std::slice::from_ref(&edit)).is_err() {
            continue;
        }
        let [now, then] = [moved(apart, 0), edit.clone()].map(|edit| baseline.lost_in_pairs(&[edit]));
        let lost = now? - then?;
        let share = lost / (cycles.run + lost).max(1.0);
        if share >= LATENT_LEAST {
            found.push(PairedLines { object: apart.object.clone(), edit });
        }
    }
    Ok(found)
}

fn moved(apart: &Apart, by: u64) -> Edit {
    Edit::Shift { object: apart.object.clone(), by }
}
