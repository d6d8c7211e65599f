//! Proof of a trace's invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use memlode_trace::event::Batch;
use memlode_trace::manifest::ThreadTotals;
use memlode_trace::sites::{FunctionId, SiteKind};
use memlode_trace::stack::ShadowStack;
use memlode_trace::write::TraceFile;
use memlode_trace::{Damage, Error, Thread, Trace};

use crate::order::Replay;

/// The result of [`check`].
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Everything that is damaged, missing or contradictory; a trace without any is sound.
    pub problems: Vec<Damage>,
    /// True if the collector finished.
    pub complete: bool,
    /// Traced processes.
    pub processes: usize,
    /// Traced threads.
    pub threads: usize,
    /// Module files.
    pub modules: usize,
    /// Chunks that were read.
    pub chunks: u64,
    /// Bytes of all thread files.
    pub bytes: u64,
    /// Words of all streams, as far as they were read.
    pub raw_words: u64,
    /// Accesses they expand to.
    pub accesses: u64,
    /// Calls, returns, allocations and frees.
    pub marks: u64,
}

impl CheckReport {
    /// Returns whether everything that is there is sound. An incomplete trace can be sound.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Reads everything in a trace, and compares facts that it has in several places.
///
/// * the collector lost nothing
/// * every file is readable, and every checksum right; no chunk is missing
/// * the manifest's totals are those of the files
/// * each chunk holds what its header counts
/// * time does not run backwards within a thread, nor within a chunk
/// * the shadow stack that a chunk starts with is the one its predecessor ends with
/// * accesses are made by sites that load, store or update
/// * threads, processes and modules that something happens to have been started or loaded
/// * samples have as many times and addresses as their chunks promise, and calls of instructions that there are
pub fn check(directory: &Path, workers: usize) -> Result<CheckReport, Error> {
    let trace = Trace::open_any(directory)?;
    let mut report = CheckReport {
        problems: trace.damage().iter().chain(trace.index_fault()).cloned().collect(),
        complete: trace.manifest().complete,
        processes: trace.processes().len(),
        threads: trace.threads().len(),
        modules: trace.modules().len(),
        bytes: trace.threads().iter().map(|thread| thread.bytes).sum(),
        ..CheckReport::default()
    };
    for what in trace.manifest().summary.iter().flat_map(|summary| summary.losses()) {
        report.problem(&trace, TraceFile::Manifest.path(), what);
    }
    lives(&trace, &mut report);
    streams(&trace, workers, &mut report);
    totals(&trace, &mut report);
    // What cannot be decoded has been told.
    if trace.is_sampled() && report.is_sound() {
        report.problems.extend(trace.recording()?.1.into_iter().map(|problem| Damage {
            path: directory.to_owned(),
            what: problem.to_string(),
            bytes: 0,
            chunks: 0,
        }));
    }
    Ok(report)
}

impl CheckReport {
    fn problem(&mut self, trace: &Trace, file: impl AsRef<Path>, what: String) {
        self.lost(trace, file, what, 0, 0);
    }

    fn lost(&mut self, trace: &Trace, file: impl AsRef<Path>, what: String, bytes: u64, chunks: u32) {
        self.problems.push(Damage { path: trace.directory().join(file), what, bytes, chunks });
    }
}

/// Events against each other.
fn lives(trace: &Trace, report: &mut CheckReport) {
    for (index, process) in trace.processes().iter().enumerate() {
        if process.started.is_none() {
            report.problem(trace, TraceFile::Events.path(), format!("process {index} never started"));
        }
        if process.ended.is_some() && process.ended < process.started {
            report.problem(
                trace,
                TraceFile::Events.path(),
                format!("process {index} ended before it started"),
            );
        }
    }
    for Thread { process, index, started, ended, .. } in trace.threads() {
        let name = format!("thread {index} of process {}", process.0);
        if started.is_none() {
            report.problem(trace, TraceFile::Events.path(), format!("{name} never started"));
        }
        if ended.is_some() && ended < started {
            report.problem(trace, TraceFile::Events.path(), format!("{name} ended before it started"));
        }
    }
    for image in trace.images() {
        let (module, process) = (image.module.0, image.process.0);
        if image.unloaded.is_some_and(|unloaded| unloaded < image.loaded) {
            let what = format!("module {module} is unloaded from process {process} before it was loaded");
            report.problem(trace, TraceFile::Events.path(), what);
        }
    }
}

/// Decodes everything.
fn streams(trace: &Trace, workers: usize, report: &mut CheckReport) {
    let sites = trace.sites();
    let is_access: Vec<bool> = sites
        .sites()
        .iter()
        .map(|site| matches!(site.kind, SiteKind::Load | SiteKind::Store | SiteKind::Update))
        .collect();
    let mut followers: Vec<Follower> = trace.threads().iter().map(|_| Follower::default()).collect();
    // One stream after the other would do as well: nothing is said of their order.
    let mut chunks = trace.chunks().to_vec();
    chunks.sort_by_key(|chunk| (chunk.thread, chunk.sequence()));
    let replayed = trace.replay_chunks(&chunks, workers, |batch| {
        let Some(thread) = batch.thread else { return ControlFlow::Continue(()) };
        let number = thread.0 as usize;
        let Thread { process, index, .. } = trace.threads()[number];
        let file = TraceFile::Thread { process: process.0, thread: index }.path();
        for what in followers[number].follow(batch) {
            report.problem(trace, &file, format!("chunk {}: {what}", batch.sequence));
        }
        if let Some(access) = batch.accesses.iter().find(|access| !is_access[access.site.0 as usize]) {
            let what = format!(
                "chunk {}: an access by a site of kind {:?}",
                batch.sequence,
                sites.site(access.site).kind
            );
            report.problem(trace, &file, what);
        }
        report.chunks += 1;
        report.accesses += batch.accesses.len() as u64;
        report.marks += batch.marks.len() as u64;
        ControlFlow::Continue(())
    });
    report.raw_words = trace.chunks().iter().map(|chunk| u64::from(chunk.raw_words())).sum();
    for (chunk, error) in replayed.damaged {
        let Thread { process, index, .. } = trace.threads()[chunk.thread.0 as usize];
        report.raw_words -= u64::from(chunk.raw_words());
        let what = match error {
            Error::Damaged { what, .. } => what,
            other => other.to_string(),
        };
        report.lost(
            trace,
            TraceFile::Thread { process: process.0, thread: index }.path(),
            what,
            chunk.file_bytes(),
            1,
        );
    }
}

/// Goes with a thread from chunk to chunk.
#[derive(Default)]
struct Follower {
    next: u32,
    /// Behind a gap nothing is known of a stack until its stream has shown it again.
    gap: bool,
    stacks: BTreeMap<u8, ShadowStack<FunctionId>>,
    /// When chunks begin.
    stamps: BTreeMap<u8, u64>,
    /// When the thread learnt something.
    learnt: BTreeMap<u8, u64>,
}

impl Follower {
    fn follow(&mut self, batch: &Batch) -> Vec<String> {
        let mut problems = Vec::new();
        if batch.sequence != self.next {
            self.gap = true;
            self.stacks.clear();
        }
        let snapshot: Vec<_> = batch.stack.iter().map(|frame| (frame.function, frame.address)).collect();
        let known = !self.gap || self.stacks.contains_key(&batch.stream);
        let stack = self.stacks.entry(batch.stream).or_default();
        if batch.after_gap || batch.dormant {
            stack.reset([]);
        }
        if known && stack.snapshot() != snapshot {
            problems.push("does not start with the stack that the chunk before ends with".to_owned());
        }
        let stamp = self.stamps.insert(batch.stream, batch.stamps.0).unwrap_or(0);
        if batch.stamps.0 < stamp {
            problems.push(format!("begins at stamp {}, before its predecessor at {stamp}", batch.stamps.0));
        }
        if batch.stamps.1 < batch.stamps.0 {
            problems
                .push(format!("ends at stamp {}, before it begins at {}", batch.stamps.1, batch.stamps.0));
        }
        // One sentence, however many there are: a chunk has room for half a million.
        let mut backwards: Option<(u64, u64, u64)> = None;
        // Against each other, not against the chunk's: one may have been read before the collector saw that nothing was written yet.
        let latest = self.learnt.entry(batch.stream).or_default();
        for (_, mark) in &batch.marks {
            let Some(stamp) = mark.stamp() else { continue };
            if stamp < *latest {
                backwards.get_or_insert((stamp, *latest, 0)).2 += 1;
            }
            *latest = stamp.max(*latest);
        }
        match backwards {
            None => {}
            Some((stamp, latest, 1)) => problems.push(format!("has stamp {stamp} after {latest}")),
            Some((stamp, latest, count)) => {
                problems.push(format!("has {count} stamps after later ones, first {stamp} after {latest}"));
            }
        }
        stack.reset(snapshot);
        batch.marks.iter().for_each(|(_, mark)| stack.apply(mark));
        self.next = batch.sequence.saturating_add(1);
        problems
    }
}

/// The manifest's totals against the files. Missing chunks at the end are reported elsewhere.
fn totals(trace: &Trace, report: &mut CheckReport) {
    if !trace.manifest().complete {
        return;
    }
    let mut found: Vec<ThreadTotals> = trace
        .threads()
        .iter()
        .map(|thread| {
            let (process, index) = (thread.process.0, thread.index);
            ThreadTotals { process, thread: index, bytes: thread.bytes, ..Default::default() }
        })
        .collect();
    for chunk in trace.chunks() {
        let totals = &mut found[chunk.thread.0 as usize];
        totals.chunks += 1;
        totals.raw_words += u64::from(chunk.raw_words());
        totals.accesses += chunk.accesses();
    }
    let key = |totals: &ThreadTotals| (totals.process, totals.thread);
    let promised: BTreeMap<_, _> =
        trace.manifest().threads.iter().map(|totals| (key(totals), totals)).collect();
    let damaged: BTreeSet<_> = trace.damage().iter().map(|damage| damage.path.as_path()).collect();
    for totals in found {
        let promised = promised.get(&key(&totals)).copied();
        let file = TraceFile::Thread { process: totals.process, thread: totals.thread }.path();
        if promised != Some(&totals) && !damaged.contains(&*trace.directory().join(&file)) {
            let what = match promised {
                Some(promised) => {
                    format!("holds {}, the manifest promises {}", told(&totals), told(promised))
                }
                None => "is not in the manifest".to_owned(),
            };
            report.problem(trace, file, what);
        }
    }
}

fn told(totals: &ThreadTotals) -> String {
    let ThreadTotals { chunks, bytes, raw_words, accesses, .. } = totals;
    format!("{chunks} chunks, {bytes} bytes, {raw_words} words and {accesses} accesses")
}
