//! Members that need fewer bytes than they have, by the values that were recorded: more objects share a line then.

use super::{Proposal, Uses};
use crate::plan::PlanInputs;
use crate::values::RecordedValues;

pub(super) fn proposals(known: &PlanInputs<'_>, values: &RecordedValues, uses: &[Uses]) -> Vec<Proposal> {
    let mut found: Vec<Proposal> = Vec::new();
    for record in uses.iter().filter_map(|used| used.record.as_ref()) {
        let edits = values.narrower(known.names, record);
        if !edits.is_empty() && found.iter().all(|known| known.subject != *record) {
            found.push(Proposal { subject: record.clone(), edits });
        }
    }
    found
}
