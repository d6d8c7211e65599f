//! Blocks of samples by the calls that allocated them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memlode_trace::sampled::{
    InstructionFrame, InstructionId, SampledBlock, SampledInstruction, SampledRecording,
};

use crate::report::{AllocationCall, SampledAllocation, SampledBlocks};
use crate::share::{SampleCount, SampleShare};

/// Calls that are told of a way to an allocation.
const LONGEST_WAY: usize = 4;

/// Counts of samples in blocks.
#[derive(Default)]
pub(crate) struct Allocations {
    ways: Vec<SampledAllocation>,
    counts: Vec<WayCount>,
    /// Weights of an instruction's samples by way.
    of_instruction: HashMap<InstructionId, BTreeMap<usize, u128>>,
}

#[derive(Default)]
struct WayCount {
    time: SampleCount,
    blocks: BTreeSet<u32>,
    instructions: BTreeMap<InstructionId, u128>,
}

impl Allocations {
    /// Counts samples, each of which stands for its weight, or all for as much.
    pub fn of(recording: &SampledRecording, is_weighted: bool) -> Allocations {
        let mut found = Allocations::default();
        let mut numbers: HashMap<SampledAllocation, usize> = HashMap::new();
        let of_block = |block: &SampledBlock| {
            let way = way(recording, block);
            let next = numbers.len();
            let number = *numbers.entry(way.clone()).or_insert(next);
            if number == next {
                found.ways.push(way);
                found.counts.push(WayCount::default());
            }
            number
        };
        let ways: Vec<usize> = recording.blocks.iter().map(of_block).collect();
        for sample in &recording.samples {
            let Some(block) = sample.block else { continue };
            let (way, weight) = (ways[block as usize], if is_weighted { sample.weight } else { 1 });
            let count = &mut found.counts[way];
            count.time.take(weight);
            count.blocks.insert(block);
            *count.instructions.entry(sample.at).or_default() += u128::from(weight);
            *found.of_instruction.entry(sample.at).or_default().entry(way).or_default() += u128::from(weight);
        }
        found
    }

    /// The ways to the blocks that an instruction touched, each with its weight.
    pub fn of_instruction(&self, at: InstructionId) -> impl Iterator<Item = (usize, u128)> {
        self.of_instruction.get(&at).into_iter().flatten().map(|(way, weight)| (*way, *weight))
    }

    /// A way by its number.
    pub fn way(&self, number: usize) -> &SampledAllocation {
        &self.ways[number]
    }

    /// All ways with their counts; `name` names the data of an instruction.
    pub fn blocks(
        &self,
        recording: &SampledRecording,
        name: impl Fn(&SampledInstruction) -> Option<String>,
        share: impl Fn(SampleCount) -> SampleShare,
    ) -> Vec<SampledBlocks> {
        let one = |(allocated, count): (&SampledAllocation, &WayCount)| {
            let mut data: BTreeMap<String, u128> = BTreeMap::new();
            for (at, weight) in &count.instructions {
                if let Some(name) = name(recording.instruction(*at)) {
                    *data.entry(name).or_default() += weight;
                }
            }
            let most = data.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            let bytes = count.blocks.iter().map(|block| recording.blocks[*block as usize].bytes);
            SampledBlocks {
                allocated: allocated.clone(),
                blocks: count.blocks.len(),
                bytes: bytes.fold(0, u64::saturating_add),
                data: most.map(|(name, _)| name),
                time: share(count.time),
            }
        };
        self.ways.iter().zip(&self.counts).filter(|(_, count)| !count.blocks.is_empty()).map(one).collect()
    }
}

/// The calls of a path from the first one on that is no library's.
fn way(recording: &SampledRecording, block: &SampledBlock) -> SampledAllocation {
    let mut frames: Vec<InstructionFrame> = Vec::new();
    for call in recording.calls(block.path) {
        match call.frames.is_empty() {
            true => {
                frames.push(InstructionFrame { function: call.symbol.clone(), ..InstructionFrame::default() })
            }
            false => frames.extend(call.frames.iter().cloned()),
        }
    }
    let own = frames.iter().position(|frame| frame.line > 0 && !is_of_library(&frame.file));
    let first = own.or_else(|| frames.iter().position(|frame| frame.line > 0));
    let mut calls = Vec::new();
    for InstructionFrame { function, file, line, .. } in frames.into_iter().skip(first.unwrap_or(0)) {
        let is_main = function == "main";
        calls.push(AllocationCall { function, file, line });
        if is_main || calls.len() == LONGEST_WAY {
            break;
        }
    }
    SampledAllocation { calls, is_mapped: block.is_mapped, is_older: block.begun == 0 }
}

/// Files that come with a compiler or a system.
fn is_of_library(file: &str) -> bool {
    ["/usr/", "/rustc/"].iter().any(|folder| file.starts_with(folder))
}
