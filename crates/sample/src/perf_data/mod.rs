//! Recordings of `perf record`: the file's parts, its events, and its records in the order of time.
//!
//! ```text
//!   header ── where things are     attributes ── one for each event, with the numbers that its samples have
//!   data ──── records, some of them compressed, in rounds: what is in a round is no older than the round before the last
//!   features ── names of events, build ids of programs, the command
//! ```
//! A recording that went through a pipe has the attributes and features among its records.
//!
//! The file may be anybody's. Nothing is allocated by a number that it states: parts are read if they lie in the file,
//! and lists as far as their bytes reach. (The crate `linux-perf-data` reserves memory for what a header claims, and
//! drops weights and sources of data.)

mod choose;
mod container;
mod header;
mod order;
mod unpack;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use choose::{Imported, import};

use crate::attributes::EventAttributes;
use crate::records::{Record, RecordLayout, field};

/// An event of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerfEvent {
    /// Its name, as it was given to `perf`, if the file has it; or the kernel's; or its numbers.
    pub name: String,
    /// The facts about it.
    pub attributes: EventAttributes,
    /// The numbers that records have of it.
    pub ids: Vec<u64>,
}

/// A recording, without its records.
#[derive(Debug)]
pub struct PerfData {
    path: PathBuf,
    events: Vec<PerfEvent>,
    /// Places of events among [`PerfData::events`] by their numbers.
    by_id: HashMap<u64, usize>,
    build_ids: HashMap<OsString, Vec<u8>>,
    command: Vec<String>,
    data: container::Data,
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct PerfDataError {
    /// The file.
    pub path: PathBuf,
    /// The error, and the remedy.
    pub what: String,
}

impl PerfData {
    /// Reads all but the records.
    ///
    /// # Errors
    /// If the file cannot be read, or is no recording of `perf`, or has contradictions.
    pub fn open(path: &Path) -> Result<PerfData, PerfDataError> {
        let failed = |what| PerfDataError { path: path.to_owned(), what };
        let found = container::read(path).map_err(failed)?;
        let mut by_id = HashMap::new();
        for (at, event) in found.events.iter().enumerate() {
            by_id.extend(event.ids.iter().map(|id| (*id, at)));
        }
        let data = PerfData {
            path: path.to_owned(),
            events: found.events,
            by_id,
            build_ids: found.build_ids,
            command: found.command,
            data: found.data,
        };
        data.refuse_unknown().map_err(failed)?;
        Ok(data)
    }

    /// The events that were sampled.
    pub fn events(&self) -> &[PerfEvent] {
        &self.events
    }

    /// The command, with its arguments; empty if the file does not have it.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Build ids of programs and libraries, by path.
    pub fn build_ids(&self) -> &HashMap<OsString, Vec<u8>> {
        &self.build_ids
    }

    /// Passes on all records in the order of time, each with the place of its event among
    /// [`PerfData::events`].
    ///
    /// # Errors
    /// If the file ends early, or has records that are too short for their kind.
    pub fn replay(&self, take: &mut dyn FnMut(usize, Record)) -> Result<(), PerfDataError> {
        let failed = |what| PerfDataError { path: self.path.clone(), what };
        let mut order = order::Rounds::default();
        container::walk(&self.path, &self.data, &mut |raw| {
            if raw.kind == container::FINISHED_ROUND {
                order.finish_round(take);
                return Ok(());
            }
            if raw.kind >= container::FIRST_OF_PERF {
                return Ok(());
            }
            let event = self.event_of(raw);
            let layout = &self.events[event].attributes.layout;
            match layout.parse(raw.kind, raw.misc, raw.body) {
                Some(record) => order.insert(event, record),
                None if container::is_always_read(raw.kind) => Err(raw.fault("is too short for its kind")),
                None => Ok(()),
            }
        })
        .map_err(failed)?;
        order.finish(take);
        Ok(())
    }

    /// The place of a record's event. Records without an event have the first event's layout, as in
    /// `perf`.
    fn event_of(&self, raw: &container::RawRecord<'_>) -> usize {
        if self.events.len() == 1 {
            return 0;
        }
        let id = self.events[0].attributes.layout.id(raw.kind, raw.body);
        id.and_then(|id| self.by_id.get(&id).copied()).unwrap_or(0)
    }

    /// Refuses events whose records could not be distinguished, or have unknown fields.
    fn refuse_unknown(&self) -> Result<(), String> {
        let known = 2 * field::WEIGHT_STRUCT - 1;
        let layouts: Vec<&RecordLayout> = self.events.iter().map(|event| &event.attributes.layout).collect();
        for (event, layout) in self.events.iter().zip(&layouts) {
            if layout.sample_type & !known != 0 {
                return Err(format!(
                    "samples of `{}` have fields that memlode does not know (sample_type {:#x}): record with a perf of \
                     Linux 6, or without its newest options",
                    event.name, layout.sample_type
                ));
            }
            if layout.sample_type & field::IP == 0 {
                return Err(format!("samples of `{}` do not say at which instruction they are", event.name));
            }
        }
        let first = layouts[0];
        let same = |layout: &&RecordLayout| {
            layout.sample_type == first.sample_type && layout.sample_id_all == first.sample_id_all
        };
        let has_identifier = |layout: &&RecordLayout| layout.sample_type & field::IDENTIFIER != 0;
        if layouts.iter().all(same) || layouts.iter().all(has_identifier) {
            return Ok(());
        }
        Err("its events have different fields and no identifier, so their samples cannot be told apart"
            .into())
    }
}
