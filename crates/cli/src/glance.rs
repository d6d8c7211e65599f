//! The edit that is most worth a try, beside what a report found.

use memlode_attribute::has_gaps;
use memlode_report::{CommandAnswer, CommandFindings};
use memlode_trace::Trace;
use memlode_whatif::advise::glance;

use crate::analyse::{Analysed, Found};
use crate::{baseline, term};

/// Names everything that was found, and of a whole trace the edits that gain.
pub fn answer(analysed: Analysed) -> CommandAnswer {
    let mut answer = analysed.answer();
    let Analysed { trace, machine, found, replayed } = analysed;
    let (Found::Report(profile, None, sharing), CommandFindings::Report(report)) = (found, &mut answer.found)
    else {
        return answer;
    };
    if !is_possible(&trace) {
        return answer;
    }
    let baseline = baseline::of(trace, machine, (*profile, replayed), sharing.map(|found| *found));
    match glance(&baseline) {
        Ok(found) => report.glance = Some(found),
        Err(error) => term::note(&format!("no change of layout was tried: {error}")),
    }
    answer
}

/// Returns whether an answer is a report that nobody tried edits for, although they can be tried.
pub fn is_left_out(answer: &CommandAnswer, trace: &Trace) -> bool {
    matches!(&answer.found, CommandFindings::Report(report) if report.glance.is_none()) && is_possible(trace)
}

/// Returns whether edits can be tried: nothing is replayed of a sample, and nothing can be of what is not stored.
fn is_possible(trace: &Trace) -> bool {
    !has_gaps(trace) && !trace.chunks().is_empty() && trace.directory().exists()
}
