//! Samples of single instructions, and of any set of them: a line, a function.

use std::collections::BTreeMap;

use memlode_trace::sampled::{InstructionId, SampledRecording};
use serde::Serialize;

use crate::report::SampledCost;
use crate::share::{SampleCount, SampleShare, SourceCount};
use crate::summary::{InstructionCount, add, counts};

/// Samples by instruction.
pub struct InstructionSamples {
    counts: BTreeMap<InstructionId, InstructionCount>,
    all: SampleCount,
    cycles: u128,
    loads: Vec<InstructionId>,
    stores: Vec<InstructionId>,
}

/// The samples of some instructions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceSamples {
    /// All of them.
    pub time: SampleShare,
    /// Samples at instructions that read memory and do not write it.
    pub loads: u64,
    /// Samples at instructions that write memory.
    pub stores: u64,
    /// Sources and latencies; `None` where samples have none.
    pub cost: Option<SampledCost>,
}

impl InstructionSamples {
    /// Counts the samples of a recording.
    pub fn of(recording: &SampledRecording) -> InstructionSamples {
        let counts = counts(recording);
        let mut all = SampleCount::default();
        counts.values().for_each(|count| all.add(count.time));
        let sources = counts.values().flat_map(|count| count.sources.values());
        let cycles = sources.fold(0, |sum: u128, count| sum.saturating_add(count.cycles));
        let accesses = |is_store: bool| {
            let accesses = |id: &&InstructionId| {
                recording.instruction(**id).access.is_some_and(|access| access.is_store == is_store)
            };
            counts.keys().filter(accesses).copied().collect()
        };
        let (loads, stores) = (accesses(false), accesses(true));
        InstructionSamples { counts, all, cycles, loads, stores }
    }

    /// Instructions that were sampled, in order.
    pub fn instructions(&self) -> impl Iterator<Item = InstructionId> {
        self.counts.keys().copied()
    }

    /// Sums up instructions; each counts once.
    pub fn sum(&self, of: &[InstructionId]) -> PlaceSamples {
        let mut time = SampleCount::default();
        let mut sources: BTreeMap<_, SourceCount> = BTreeMap::new();
        let (mut loads, mut stores) = (0, 0);
        for id in of {
            let Some(count) = self.counts.get(id) else { continue };
            time.add(count.time);
            add(&mut sources, &count.sources);
            if self.loads.binary_search(id).is_ok() {
                loads += count.time.samples;
            }
            if self.stores.binary_search(id).is_ok() {
                stores += count.time.samples;
            }
        }
        let cost = SampledCost::of(&sources, self.cycles);
        PlaceSamples { time: SampleShare::of(time, self.all), loads, stores, cost }
    }
}
