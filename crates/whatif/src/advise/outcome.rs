//! The outcome of edits on a whole run.

use memlode_attribute::CostModel;
use memlode_attribute::sharing::SharingProfile;
use memlode_layout::Edit;

use super::Rejected;
use crate::cost::Cycles;
use crate::noise::Verdict;
use crate::plan::Plan;
use crate::predict::Prediction;

/// The outcome of edits on a whole run.
pub struct EditOutcome {
    /// The edits.
    pub edits: Vec<Edit>,
    /// The same, understood.
    pub plan: Plan,
    /// The counts under them.
    pub predicted: Prediction,
    /// The costs of these.
    pub costs: CostModel,
    /// Losses of the threads to each other, if they were looked at.
    pub sharing: Option<SharingProfile>,
    /// The run's cycles as it is.
    pub before: Cycles,
    /// The run's cycles under the edits.
    pub after: Cycles,
    /// The verdict.
    pub verdict: Verdict,
    /// The part of the run that the change has to exceed: what placement alone changes, or how far
    /// pairs of the same placement with the edits and without them differ, where that decides. `None`
    /// if the change is less than counts as one, whatever placement does.
    pub range: Option<f64>,
}

impl EditOutcome {
    /// The part of the run's cycles that is gained; less than 0 if it is lost.
    pub fn gain(&self) -> f64 {
        (self.before.run - self.after.run) / self.before.run.max(1.0)
    }

    /// Keeps the part that is shown for rejected edits.
    pub(super) fn rejected(self) -> Rejected {
        Rejected { gain: self.gain(), edits: self.edits, verdict: self.verdict, is_whole: true }
    }
}
