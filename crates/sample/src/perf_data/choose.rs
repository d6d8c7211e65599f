//! Which events of a recording are reported together, and their samples.

use std::path::Path;

use super::{PerfData, PerfDataError, PerfEvent};
use crate::attributes::{flag, kind};
use crate::data_source::DataSource;
use crate::records::RecordEvent;
use crate::resolve::SampleSource;
use crate::tally::{Sampled, Tally};
use crate::unwinding::Unwinding;

/// The samples of a recording.
#[derive(Debug)]
pub struct Imported {
    /// Places and counts.
    pub sampled: Sampled,
    /// Facts that names are found by.
    pub source: SampleSource,
    /// Other events of the recording, and how many samples they have.
    pub others: Vec<(String, u64)>,
}

/// Counts of an event's samples.
#[derive(Clone, Copy, Default)]
struct EventSamples {
    all: u64,
    /// Samples with the source of their data.
    with_source: u64,
}

/// Reads a recording: the named event, or else the events whose samples have the source of their
/// data, or else the event with most samples. Files are below `root`, if they are another machine's.
///
/// # Errors
/// If the file is no recording, is damaged, or has no samples of the event.
pub fn import(path: &Path, event: Option<&str>, root: Option<&Path>) -> Result<Imported, PerfDataError> {
    let data = PerfData::open(path)?;
    let failed = |what| PerfDataError { path: path.to_owned(), what };
    let mut counts = vec![EventSamples::default(); data.events().len()];
    data.replay(&mut |event, record| {
        if let RecordEvent::Sample(sample) = &record.event {
            counts[event].all += 1;
            counts[event].with_source += u64::from(sample.data_source.and_then(DataSource::of).is_some());
        }
    })?;
    let chosen = choose(data.events(), &counts, event).map_err(failed)?;
    // Samples that do not say what they stand for are of an event that is sampled at a fixed distance, if at any.
    let periods: Vec<Option<u64>> = data.events().iter().map(fixed_period).collect();
    let unwinding = Unwinding::new(root.map(Path::to_owned), data.build_ids().clone());
    let mut tally = Tally::keeping(0).with_unwinding(unwinding);
    let (mut first, mut last) = (u64::MAX, 0);
    data.replay(&mut |event, mut record| {
        if let RecordEvent::Sample(sample) = &mut record.event {
            sample.period = sample.period.or(periods[event]);
            first = first.min(record.time);
            last = last.max(record.time);
            if !chosen.contains(&event) {
                return;
            }
        }
        tally.take(record);
    })?;
    if tally.is_overfull() {
        return Err(failed("its processes map more files than memlode follows".into()));
    }
    let seconds = last.saturating_sub(first) as f64 / 1e9;
    let named = |at: usize| (data.events()[at].name.clone(), counts[at].all);
    let others =
        (0..counts.len()).filter(|at| !chosen.contains(at) && counts[*at].all > 0).map(named).collect();
    let source = SampleSource { root: root.map(Path::to_owned), ..source(&data, &chosen, path) };
    Ok(Imported { sampled: Sampled { seconds, ..tally.finish() }, source, others })
}

/// Events between two samples, if there are always as many.
fn fixed_period(event: &PerfEvent) -> Option<u64> {
    let attributes = &event.attributes;
    (attributes.flags & flag::RATE == 0).then_some(attributes.period)
}

fn choose(events: &[PerfEvent], counts: &[EventSamples], wanted: Option<&str>) -> Result<Vec<usize>, String> {
    let names = || events.iter().map(|event| format!("`{}`", event.name)).collect::<Vec<_>>().join(", ");
    let chosen: Vec<usize> = match wanted {
        Some(wanted) => {
            let found: Vec<usize> = (0..events.len()).filter(|at| events[*at].name == wanted).collect();
            if found.is_empty() {
                return Err(format!("it has no event `{wanted}`, but {}", names()));
            }
            found
        }
        None => {
            let with_source: Vec<usize> =
                (0..events.len()).filter(|at| 2 * counts[*at].with_source > counts[*at].all).collect();
            // The first of those with most.
            let most = (0..events.len()).rev().max_by_key(|at| counts[*at].all);
            if with_source.is_empty() { most.into_iter().collect() } else { with_source }
        }
    };
    match chosen.iter().all(|at| counts[*at].all == 0) {
        true => Err(format!("it has no samples of {}", wanted.map_or_else(names, |one| format!("`{one}`")))),
        false => Ok(chosen),
    }
}

fn source(data: &PerfData, chosen: &[usize], path: &Path) -> SampleSource {
    let of: Vec<&PerfEvent> = chosen.iter().map(|at| &data.events()[*at]).collect();
    let period_ns = match &of[..] {
        [one] => one.attributes.period_ns().unwrap_or(0),
        _ => 0,
    };
    let command = data.command().join(" ");
    let subject = match command.is_empty() {
        true => path.display().to_string(),
        false => format!("{} (`{command}`)", path.display()),
    };
    SampleSource {
        subject,
        events: of.iter().map(|event| event.name.clone()).collect(),
        is_time: of.iter().all(|event| event.attributes.is_time()),
        period_ns,
        skid: of.iter().map(|event| skid(event)).max().unwrap_or(0),
        root: None,
        build_ids: data.build_ids().clone(),
        least_block: None,
    }
}

/// Instructions from the one that the event happened at to the one that its samples name.
fn skid(event: &PerfEvent) -> u8 {
    const FAULTS: [&str; 3] = ["page-faults", "minor-faults", "major-faults"];
    let attributes = &event.attributes;
    let is_fault = attributes.known_name().is_some_and(|name| FAULTS.contains(&name));
    let has_source = attributes.layout.sample_type & crate::records::field::DATA_SRC != 0;
    match attributes.precision() {
        1 => 1,
        2.. => 0,
        // A unit of its own that says where data came from names the instruction that did it.
        _ if is_fault || has_source && attributes.kind > kind::RAW => 0,
        _ => 1,
    }
}
