//! Edits that `memlode advise` found to be worth it, beside the findings of a report.
//!
//! There is one adviser. What it found is kept beside the trace, and a report that is asked for
//! afterwards shows it; before, it names no edit.

use memlode_machine::Machine;
use memlode_report::{CommandAnswer, CommandFindings};
use memlode_trace::Trace;

use crate::commands::advise;
use crate::kept::{find, question};

/// Adds the edits that `memlode advise` found for a trace on a machine, if they are kept.
pub fn add(answer: &mut CommandAnswer, trace: &Trace, machine: &Machine) {
    let CommandFindings::Report(report) = &mut answer.found else { return };
    let asked = question::<advise::Args>("advise", None, &[machine]);
    if let Some(CommandAnswer { found: CommandFindings::Advice(found), .. }) = find(asked, trace) {
        report.advised = found.advised();
    }
}
