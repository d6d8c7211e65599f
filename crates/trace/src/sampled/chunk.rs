//! Samples as a chunk holds them: an execution of a segment each, and sections.

use std::collections::HashMap;

use super::{CallPath, InstructionId, SampledBlock, StoredSample, columns};
use crate::bytes::{Reader, put_blob, put_varint};
use crate::decode::DecodeError;
use crate::event::{Batch, Mark};
use crate::sections::{Sections, put_sections};

/// Samples of one chunk, at most.
pub(super) const MOST: usize = 1 << 14;

/// Everything of a payload that stands before the words, and the words themselves as differences.
pub(crate) struct Contents {
    pub before: Vec<u8>,
    pub differences: Vec<u64>,
    pub accesses: u64,
    pub stamps: (u64, u64),
    pub samples: usize,
}

/// Samples of one thread, with the paths and blocks that their indices, and those of their blocks, are of.
#[derive(Default)]
pub(crate) struct ChunkSamples {
    pub samples: Vec<StoredSample>,
    pub paths: Vec<CallPath>,
    pub blocks: Vec<SampledBlock>,
}

/// Makes the contents of a chunk.
pub(super) fn contents(chunk: &ChunkSamples, is_access: impl Fn(InstructionId) -> bool) -> Contents {
    let samples = &chunk.samples;
    let (mut before, mut control, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    let mut dictionary: Vec<InstructionId> = Vec::new();
    let mut last: Vec<(u64, u64)> = Vec::new();
    let mut locals = HashMap::new();
    let mut accesses = 0;
    for sample in samples {
        let local = *locals.entry(sample.at).or_insert_with(|| {
            dictionary.push(sample.at);
            last.push((0, 0));
            dictionary.len() - 1
        });
        // Named one by one: those of programs that wait do not follow each other in any order.
        put_varint(&mut control, local as u64);
        put_varint(&mut control, 0);
        let (address, time) = (sample.address.unwrap_or(0), sample.time);
        if is_access(sample.at) {
            accesses += 1;
            differences.push(address.wrapping_sub(last[local].0));
        }
        differences.push(time.wrapping_sub(last[local].1));
        last[local] = (address, time);
    }
    put_sections(&mut before, &columns::sections(chunk));
    put_varint(&mut before, dictionary.len() as u64);
    for InstructionId { module, instruction } in &dictionary {
        put_varint(&mut before, u64::from(*module));
        put_varint(&mut before, u64::from(*instruction) << 1);
    }
    // Nothing is known of the stack.
    put_varint(&mut before, 0);
    put_blob(&mut before, &control);
    let time = |sample: Option<&StoredSample>| sample.map_or(0, |sample| sample.time);
    let stamps = (time(samples.first()), time(samples.last()));
    Contents { before, differences, accesses, stamps, samples: samples.len() }
}

/// Samples of a chunk with their paths and blocks, from its unpacked payload and the batch that was decoded from that.
pub(crate) fn samples(
    payload: &[u8],
    batch: &Batch,
    is_access: impl Fn(InstructionId) -> Option<bool>,
) -> Result<ChunkSamples, DecodeError> {
    let mut reader = Reader::new(payload);
    let sections = Sections::read(&mut reader)?;
    let order = executed(&mut reader)?;
    let mut accesses = batch.accesses.iter();
    let mut times = batch.marks.iter().filter_map(|(_, mark)| match mark {
        Mark::Stamp { stamp } => Some(*stamp),
        _ => None,
    });
    let mut samples = Vec::with_capacity(order.len());
    let promised = order.len() as u64;
    let differ = |what, found| DecodeError::Count { what, expected: promised, found };
    for at in order {
        let found = samples.len() as u64;
        let time = times.next().ok_or_else(|| differ("times", found))?;
        let address = match is_access(at) {
            Some(true) => Some(accesses.next().ok_or_else(|| differ("addresses", found))?.address),
            _ => None,
        };
        samples.push(StoredSample { time, at, address, ..StoredSample::default() });
    }
    let (paths, blocks) = columns::read(&sections, &mut samples, |at| is_access(at).is_some())?;
    Ok(ChunkSamples { samples, paths, blocks })
}

/// Segments in the order in which they were executed.
fn executed(reader: &mut Reader<'_>) -> Result<Vec<InstructionId>, DecodeError> {
    let count = reader.count()?;
    let mut dictionary = Vec::with_capacity(count);
    for _ in 0..count {
        let module = reader.u32()?;
        let word = reader.varint()?;
        let instruction = u32::try_from(word >> 1).map_err(|_| DecodeError::Source)?;
        // Samples do not inherit words, which are of another segment's executions.
        if word & 1 == 1 {
            return Err(DecodeError::Source);
        }
        dictionary.push(InstructionId { module, instruction });
    }
    for _ in 0..reader.count()? {
        reader.index(count)?;
        reader.svarint()?;
    }
    let mut control = Reader::new(reader.blob()?);
    let (mut order, mut successors): (Vec<u32>, Vec<Option<u32>>) = (Vec::new(), vec![None; count]);
    while control.left() > 0 {
        let named = control.index(count)?;
        if let Some(before) = order.last() {
            successors[*before as usize] = Some(named);
        }
        order.push(named);
        for _ in 0..control.up_to(MOST as u64)? {
            let before = order.last().ok_or(DecodeError::NoSuccessor)?;
            order.push(successors[*before as usize].ok_or(DecodeError::NoSuccessor)?);
        }
        if order.len() > MOST {
            return Err(DecodeError::TooMany(MOST as u64));
        }
    }
    Ok(order.into_iter().map(|local| dictionary[local as usize]).collect())
}
