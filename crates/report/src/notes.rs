//! Sentences about what a trace lacks.

use memlode_trace::{Replayed, Trace};

/// What a reader must know before trusting the numbers. Empty for a whole trace of a program that ended well.
pub fn notes(trace: &Trace, replayed: Option<&Replayed>) -> Vec<String> {
    let mut notes = Vec::new();
    let manifest = trace.manifest();
    if trace.sites().is_filtered() {
        notes.push(
            "part of the program was compiled with a filter: what it leaves out is not in these numbers"
                .to_string(),
        );
    }
    notes.extend(manifest.info.only.iter().cloned());
    if !manifest.complete {
        notes.push("recording did not finish: what the collector had not yet written is missing".to_string());
    }
    if trace.sites().is_as_written() {
        notes.push(
            "part of the program was compiled with --fidelity=source: these are the accesses that its source names, \
             of which an optimised program makes fewer"
                .to_string(),
        );
    }
    notes.extend(trace.damage().iter().map(|damage| damage.to_string()));
    for (_, error) in replayed.map_or(&[][..], |replayed| &replayed.damaged) {
        notes.push(format!("{error}; left out"));
    }
    if let Some(summary) = &manifest.summary {
        if summary.switched {
            notes.push(
                "recording was stopped, started or set to other bursts while the program ran: what is missing was chosen, \
                 not sampled"
                    .to_string(),
            );
        }
        notes.extend(summary.losses());
        if let Some(signal) = summary.signal {
            notes.push(format!("the program was ended by signal {signal}"));
        }
    }
    notes
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
