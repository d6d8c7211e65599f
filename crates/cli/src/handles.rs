//! Edits that are named by a handle: those of advice that was given, or what a finding says to change.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use memlode_layout::{Edit, edits_from_text};
use memlode_machine::Machine;
use memlode_report::{CommandAnswer, CommandFindings, NamedEdit, Report, edits_called};
use memlode_results::list;
use memlode_trace::Trace;

use crate::analyse::{Job, Wanted};
use crate::commands::report;
use crate::kept::{self, KeepArgs, question};

/// Digits of a handle.
const DIGITS: usize = 8;

/// Returns whether a word can only be a handle, and no edit.
pub fn is_handle(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The edits that a handle stands for: of kept answers of `advise` and `whatif`, or of the report's findings.
pub fn edits(handle: &str, trace: &Arc<Trace>, machine: &Machine, keep: KeepArgs) -> Result<Vec<Edit>> {
    let texts = match advised(handle, trace) {
        Some(texts) => texts,
        None => of_findings(handle, trace, machine, keep)?,
    };
    let understood = texts.iter().map(|text| edits_from_text(text));
    let edits: Vec<Vec<Edit>> = understood.collect::<Result<_, _>>().context("the edit of a handle")?;
    Ok(edits.concat())
}

fn advised(handle: &str, trace: &Trace) -> Option<Vec<String>> {
    let questions = list(trace.folder()?).ok()?.into_iter().filter_map(|listed| listed.head.ok());
    questions
        .filter(|(question, _)| ["advise", "whatif"].contains(&&question.command[..]))
        .filter_map(|(question, _)| kept::find(question, trace))
        .find_map(|answer| match answer.found {
            CommandFindings::Advice(advice) => edits_called(&advice, handle),
            CommandFindings::WhatIf(found) => (found.handle == handle).then_some(found.edits),
            _ => None,
        })
}

fn of_findings(handle: &str, trace: &Arc<Trace>, machine: &Machine, keep: KeepArgs) -> Result<Vec<String>> {
    let question = question::<report::Args>("report", None, &[machine]);
    let job = Job { machine: machine.clone(), wanted: Wanted::Report(None), by_path: false };
    let answer = keep.answer(question, &[trace], || Ok(job.run(trace.clone())?.answer()))?;
    let CommandAnswer { found: CommandFindings::Report(report), .. } = answer else {
        bail!("a report was asked for, and something else was found");
    };
    edits_of(&report, handle)?.with_context(|| {
        format!(
            "--edit {handle}: no finding and no advice that is kept has this handle; `memlode report {0}` shows those of \
             findings, and `memlode advise {0}` those of edits",
            trace.directory().display()
        )
    })
}

/// The edit that a finding carries; `None` if nothing has the handle.
fn edits_of(report: &Report, handle: &str) -> Result<Option<Vec<String>>> {
    let waits = report.findings.iter().find(|finding| finding.handle == handle);
    let split = |NamedEdit::Split { ty, members }: &NamedEdit| {
        format!("split {ty}: hot={} by=index", members.join(","))
    };
    let edit = waits.map(|finding| finding.edit.as_ref().map(split));
    let shared = report.sharing.iter().flat_map(|sharing| &sharing.objects);
    let shared = shared.filter(|object| object.handle == handle).map(|object| object.edits.first().cloned());
    match edit.or_else(|| shared.into_iter().next()) {
        None => Ok(None),
        Some(Some(edit)) => Ok(Some(vec![edit])),
        Some(None) => bail!(
            "--edit {handle}: the finding carries no edit; `memlode advise` tries some of the type, and tells their handles"
        ),
    }
}
