//! What a trace lacks.

use memlode_replay::Replayed;
use memlode_trace::Trace;

use crate::model::Note;
use crate::render;

/// What a reader must know before trusting the numbers. Empty for a whole trace of a program that ended well.
pub fn notes(trace: &Trace, replayed: Option<&Replayed>) -> Vec<Note> {
    let manifest = trace.manifest();
    let mut notes = Vec::new();
    notes.extend(trace.sites().is_filtered().then_some(Note::Filtered));
    notes.extend(manifest.info.only.iter().map(|to| Note::Narrowed { to: to.clone() }));
    notes.extend((!manifest.complete).then_some(Note::Unfinished));
    notes.extend(trace.sites().is_as_written().then_some(Note::AsWritten));
    notes.extend(trace.damage().iter().map(|damage| Note::Damaged { part: damage.to_string() }));
    let damaged = replayed.map_or(&[][..], |replayed| &replayed.damaged);
    notes.extend(damaged.iter().map(|(_, error)| Note::LeftOut { part: error.to_string() }));
    if let Some(summary) = &manifest.summary {
        notes.extend(summary.switched.then_some(Note::Switched));
        notes.extend(summary.losses().into_iter().map(|loss| Note::Lost { loss }));
        notes.extend(summary.signal.map(|signal| Note::Signal { signal }));
    }
    notes
}

/// The same as sentences.
pub fn sentences(trace: &Trace, replayed: Option<&Replayed>) -> Vec<String> {
    notes(trace, replayed).iter().map(render::note).collect()
}

/// Whether everything that was recorded could be read.
pub fn is_complete(trace: &Trace, replayed: Option<&Replayed>) -> bool {
    let lossless = trace.manifest().summary.as_ref().is_none_or(|summary| summary.losses().is_empty());
    lossless
        && trace.manifest().complete
        && trace.damage().is_empty()
        && replayed.is_none_or(|replayed| replayed.damaged.is_empty())
}

/// Why nothing of a replayed trace could be decoded, as a sentence, if so.
pub fn nothing_decoded(trace: &Trace, replayed: &Replayed) -> Option<String> {
    let first = || replayed.damaged.first().map(|(_, error)| error.to_string()).unwrap_or_default();
    (replayed.chunks == 0 && !replayed.stopped)
        .then(|| format!("nothing in {} could be decoded: {}", trace.directory().display(), first()))
}

/// Why a trace has no events, as a sentence.
pub fn nothing_recorded(trace: &Trace) -> String {
    let directory = trace.directory().display();
    if let Some(damage) = trace.damage().first() {
        format!("nothing of {directory} can be read: {damage}")
    } else if trace.processes().is_empty() {
        format!(
            "{directory} holds no events: nothing that ran was built by memlode; build the program with `memlode cc` \
             or `memlode c++` (see `memlode help cc`), or with `memlode cargo`, and record it again"
        )
    } else if let Some(burst) = trace.manifest().burst() {
        format!(
            "{directory} holds no events: nothing ran in a burst, of which the first comes after {:.3} s; record with a \
             shorter period, or without --burst",
            (burst.period_us - burst.on_us.min(burst.period_us)) as f64 / 2e6
        )
    } else if let [first, ..] = &trace.manifest().info.only[..] {
        format!("{directory} holds no events: {first}")
    } else if trace.sites().is_filtered() {
        format!(
            "{directory} holds no events: the filter that the program was compiled with leaves out all that it did"
        )
    } else {
        format!(
            "{directory} holds no events: the program ended before it touched memory in instrumented code"
        )
    }
}
