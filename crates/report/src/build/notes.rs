//! The parts that a trace lacks.

use memlode_replay::Replayed;
use memlode_trace::{ForeignCode, Trace};

use crate::build::unrecorded;
use crate::model::Note;
use crate::names::demangle_short;
use crate::render;

/// Returns the facts that a reader must know before trusting the numbers. Empty for a whole trace
/// of a program that ended well.
pub fn notes(trace: &Trace, replayed: Option<&Replayed>) -> Vec<Note> {
    let damaged = replayed.map_or(&[][..], |replayed| &replayed.damaged);
    notes_without(trace, replayed, damaged.iter().map(|(_, error)| error.to_string()))
}

/// The same, where the chunks that could not be decoded are known by sentences alone.
pub(super) fn notes_without(
    trace: &Trace,
    replayed: Option<&Replayed>,
    damaged: impl IntoIterator<Item = String>,
) -> Vec<Note> {
    let manifest = trace.manifest();
    let mut notes = Vec::new();
    notes.extend(trace.sites().is_filtered().then_some(Note::Filtered));
    let unmatched: Vec<String> = trace.sites().unmatched().iter().map(|rule| rule.to_string()).collect();
    notes.extend((!unmatched.is_empty()).then_some(Note::Unmatched { rules: unmatched }));
    notes.extend(unrecorded::note(trace.sites(), replayed));
    notes.extend(plain(trace));
    notes.extend(trace.modules().iter().filter_map(|module| foreign(&module.path, &module.foreign)));
    notes.extend(trace.sites().is_nameless().then_some(Note::Nameless));
    notes.extend(manifest.info.only.iter().map(|to| Note::Narrowed { to: to.clone() }));
    notes.extend((!manifest.complete).then_some(Note::Unfinished));
    notes.extend(trace.sites().is_as_written().then_some(Note::AsWritten));
    notes.extend(trace.damage().iter().map(|damage| Note::Damaged { part: damage.to_string() }));
    notes.extend(damaged.into_iter().map(|part| Note::LeftOut { part }));
    if let Some(summary) = &manifest.summary {
        notes.extend(summary.switched.then_some(Note::Switched));
        notes.extend(summary.losses().into_iter().map(|loss| Note::Lost { loss }));
        notes.extend(summary.signal.map(|signal| Note::Signal { signal }));
    }
    notes
}

/// Returns loaded code outside the system's folders that memlode did not build, so that nothing of
/// it is recorded. Calls of the system's libraries are reported elsewhere.
fn plain(trace: &Trace) -> Option<Note> {
    let is_systems = |file: &str| SYSTEM.iter().any(|folder| file.starts_with(folder));
    let is_ours = |file: &str| file.rsplit('/').next().is_some_and(|name| name.starts_with("libmemlode_"));
    let plain = &trace.manifest().summary.as_ref()?.plain;
    let files: Vec<String> =
        plain.iter().filter(|file| !is_systems(file) && !is_ours(file)).cloned().collect();
    (!files.is_empty()).then_some(Note::Plain { files })
}

/// Returns the note on functions of an image that memlode did not compile, if it has any.
pub fn foreign(file: &str, code: &ForeignCode) -> Option<Note> {
    const NAMED: usize = 5;
    let bytes = code.functions.iter().fold(0, |sum: u64, function| sum.saturating_add(function.bytes));
    let longest = code.functions.iter().take(NAMED);
    let note = Note::Foreign {
        file: file.to_owned(),
        functions: code.functions.len() as u64,
        bytes,
        names: longest.map(|function| demangle_short(&function.name)).collect(),
        has_libraries: code.has_libraries,
    };
    (!code.functions.is_empty()).then_some(note)
}

/// Folders of libraries that distributions install.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];

/// The same as sentences.
pub fn sentences(trace: &Trace, replayed: Option<&Replayed>) -> Vec<String> {
    notes(trace, replayed).iter().map(render::note).collect()
}

/// Returns whether everything that was recorded could be read.
pub fn is_complete(trace: &Trace, replayed: Option<&Replayed>) -> bool {
    let lossless = trace.manifest().summary.as_ref().is_none_or(|summary| summary.losses().is_empty());
    lossless
        && trace.manifest().complete
        && trace.damage().is_empty()
        && replayed.is_none_or(|replayed| replayed.damaged.is_empty())
}

/// The reason why nothing of a replayed trace could be decoded, as a sentence, if so.
pub fn nothing_decoded(trace: &Trace, replayed: &Replayed) -> Option<String> {
    let first = || replayed.damaged.first().map(|(_, error)| error.to_string()).unwrap_or_default();
    (replayed.chunks == 0 && !replayed.stopped).then(|| nothing_in(trace, &first()))
}

/// The sentence about a trace of which nothing could be decoded, and about its first chunk.
pub(super) fn nothing_in(trace: &Trace, first: &str) -> String {
    format!("nothing in {} could be decoded: {first}", trace.directory().display())
}

/// Returns whether a trace has no accesses, as far as it can be read.
pub fn is_empty(trace: &Trace) -> bool {
    trace.chunks().iter().all(|chunk| chunk.accesses() == 0)
}

/// Why a trace has no accesses, and what to do, as a sentence.
pub fn nothing_recorded(trace: &Trace) -> String {
    let directory = trace.directory().display();
    let manifest = trace.manifest();
    let again = again(&manifest.info.command);
    if let Some(damage) = trace.damage().first() {
        format!("nothing of {directory} can be read: {damage}")
    } else if let Some(note) = refused(trace) {
        format!("{directory} holds no accesses: {note}")
    } else if trace.processes().is_empty() {
        format!(
            "{directory} holds no accesses: nothing that ran was built by memlode; build the program with `memlode cc` \
             or `memlode c++` (see `memlode help cc`), or with `memlode cargo`, and record it again"
        )
    } else if let Some(burst) = manifest.burst() {
        format!(
            "{directory} holds no accesses: nothing ran in a burst, of which the first comes after {:.3} s; record with a \
             shorter period, or without --burst: {again}",
            (burst.period_us - burst.on_us.min(burst.period_us)) as f64 / 2e6
        )
    } else if !manifest.info.only.is_empty() {
        let ran = seconds(trace).map_or(String::new(), |ran| format!(", and the program ran for {ran:.3} s"));
        let only = manifest.info.only.join("; ");
        format!("{directory} holds no accesses: {only}{ran}; choose more of the run, or all of it: {again}")
    } else if manifest.summary.as_ref().is_some_and(|summary| summary.switched) {
        format!(
            "{directory} holds no accesses: recording was switched off (`memlode ctl`, --signal, --paused) whenever the \
             program touched memory; start it earlier, or record all: {again}"
        )
    } else if trace.sites().is_filtered() {
        format!(
            "{directory} holds no accesses: the filter that the program was compiled with leaves out all that it did; \
             compile it with other rules, or without --filter, and record it again: {again}"
        )
    } else if !trace.chunks().is_empty() {
        format!(
            "{directory} holds allocations and calls, but no accesses: what touches the memory was not built by memlode; \
             build that, a library perhaps, with `memlode cc` or `memlode c++`, too, and record it again: {again}"
        )
    } else {
        format!(
            "{directory} holds no accesses: the program ended before it touched memory in instrumented code; is it what was \
             to be recorded, with its arguments? {again}"
        )
    }
}

/// The reason why none of the processes that wanted to be recorded was, if so.
fn refused(trace: &Trace) -> Option<&str> {
    let notes = &trace.manifest().summary.as_ref()?.notes;
    notes.first().filter(|_| trace.processes().is_empty()).map(String::as_str)
}

/// The command that records a program, all of it.
fn again(command: &[String]) -> String {
    const MOST: usize = 120;
    let quoted = |word: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "/.-_=+,:@%".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = command.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let is_short = !words.is_empty() && words.chars().count() <= MOST;
    format!("`memlode run -- {}`", if is_short { &words } else { "PROGRAM ARGUMENTS" })
}

/// Returns how long the program ran, if the trace has it.
fn seconds(trace: &Trace) -> Option<f64> {
    let clock = trace.clock()?;
    let ended = trace.processes().iter().filter_map(|process| process.ended).max()?;
    Some(clock.ns(ended) as f64 / 1e9)
}
