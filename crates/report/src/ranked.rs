//! Findings of all kinds in one list: what a thread waits for, and what threads take from each other.

use crate::model::{Finding, Report, SharedObject};

/// A run whose threads lose this part of its cycles for an object has a finding.
const LEAST: f64 = 0.02;

/// A finding of any kind.
#[derive(Clone, Copy)]
pub(crate) enum Ranked<'r> {
    /// Data that a thread waits for.
    Waits(&'r Finding),
    /// An object that threads take lines of from each other.
    Shared(&'r SharedObject),
}

impl<'r> Ranked<'r> {
    /// Its short name.
    pub fn handle(self) -> &'r str {
        match self {
            Ranked::Waits(finding) => &finding.handle,
            Ranked::Shared(object) => &object.handle,
        }
    }

    fn cycles(self) -> f64 {
        match self {
            Ranked::Waits(finding) => finding.cost.wait_cycles,
            Ranked::Shared(object) => object.cycles as f64,
        }
    }
}

/// All findings in one list, those first that cost most cycles: the third is F3.
pub(crate) fn ranked(report: &Report) -> Vec<Ranked<'_>> {
    let waits = report.findings.iter().map(Ranked::Waits);
    let mut all: Vec<Ranked<'_>> = waits.chain(costly(report).into_iter().map(Ranked::Shared)).collect();
    all.sort_by(|a, b| b.cycles().total_cmp(&a.cycles()));
    all
}

/// The objects that cost so much that each is a finding, the costliest first.
pub(crate) fn costly(report: &Report) -> Vec<&SharedObject> {
    let Some(found) = &report.sharing else { return Vec::new() };
    let least = LEAST * report.run_cycles;
    let costly = |object: &&SharedObject| object.cycles as f64 >= least && object.transfers > found.one_in;
    found.objects.iter().filter(costly).collect()
}
