//! Facts that only samples have: the sections `samples`, `call_paths` and `blocks` of a chunk.

use super::chunk::ChunkSamples;
use super::{CallPath, InstructionId, SampledBlock, StoredSample};
use crate::bytes::{Malformed, Reader, put_blob, put_varint};
use crate::format::{chunk_section, sample_column, sampled_block_flag};
use crate::sections::Sections;

/// The number of a sample in a column.
type Column<'a> = &'a dyn Fn(&StoredSample) -> u64;

/// Sections of a chunk of samples.
pub(super) fn sections(ChunkSamples { samples, paths, blocks }: &ChunkSamples) -> Vec<(u32, Vec<u8>)> {
    let number = |value: Option<u64>| value.map_or(0, |value| value.saturating_add(1));
    let columns: [(u32, Column<'_>); 9] = [
        (sample_column::WEIGHT, &|sample| if sample.weight == 0 { 0 } else { number(Some(sample.weight)) }),
        (sample_column::ADDRESS_KNOWN, &|sample| sample.address.is_some().into()),
        (sample_column::ON_STACK, &|sample| number(sample.on_stack.map(u64::from))),
        (sample_column::LATENCY, &|sample| number(sample.latency)),
        (sample_column::SOURCE, &|sample| number(sample.source)),
        (sample_column::CPU, &|sample| number(sample.cpu.map(u64::from))),
        (sample_column::PAGE_BYTES, &|sample| number(sample.page_bytes)),
        (sample_column::CALL_PATH, &|sample| number(sample.path.map(u64::from))),
        (sample_column::BLOCK, &|sample| number(sample.block.map(u64::from))),
    ];
    let mut all = Vec::new();
    for (what, value) in columns {
        let mut column = Vec::new();
        samples.iter().for_each(|sample| put_varint(&mut column, value(sample)));
        // Nothing but zeros is what a column that is not there says.
        if column.iter().any(|byte| *byte != 0) {
            put_varint(&mut all, what.into());
            put_blob(&mut all, &column);
        }
    }
    let mut calls = Vec::new();
    put_varint(&mut calls, paths.len() as u64);
    for CallPath { parent, call } in paths {
        put_varint(&mut calls, number(parent.map(u64::from)));
        put_varint(&mut calls, call.module.into());
        put_varint(&mut calls, call.instruction.into());
    }
    let mut found = vec![(chunk_section::SAMPLES, all), (chunk_section::CALL_PATHS, calls)];
    if !blocks.is_empty() {
        let mut all = Vec::new();
        put_varint(&mut all, blocks.len() as u64);
        for SampledBlock { address, bytes, begun, is_mapped, path } in blocks {
            all.push(if *is_mapped { sampled_block_flag::MAPPED } else { 0 });
            let numbers = [*address, *bytes, *begun, number(path.map(u64::from))];
            numbers.into_iter().for_each(|number| put_varint(&mut all, number));
        }
        found.push((chunk_section::BLOCKS, all));
    }
    found
}

/// Fills in what sections say of samples, and returns the paths and blocks that these are said to have.
pub(super) fn read(
    sections: &Sections<'_>,
    samples: &mut [StoredSample],
    is_instruction: impl Fn(InstructionId) -> bool,
) -> Result<(Vec<CallPath>, Vec<SampledBlock>), Malformed> {
    let paths = match sections.get(chunk_section::CALL_PATHS) {
        Some(reader) => paths(reader, is_instruction)?,
        None => Vec::new(),
    };
    let blocks = match sections.get(chunk_section::BLOCKS) {
        Some(reader) => blocks(reader, paths.len())?,
        None => Vec::new(),
    };
    // Those of accesses whose address is not known say nothing.
    let addresses: Vec<_> = samples.iter_mut().map(|sample| sample.address.take()).collect();
    let Some(mut reader) = sections.get(chunk_section::SAMPLES) else { return Ok((paths, blocks)) };
    while reader.left() > 0 {
        let what = reader.u32()?;
        let mut column = Reader::new(reader.blob()?);
        for (sample, address) in samples.iter_mut().zip(&addresses) {
            let most = match what {
                sample_column::ADDRESS_KNOWN => 1,
                sample_column::ON_STACK => 2,
                sample_column::CPU => u64::from(u32::MAX),
                sample_column::CALL_PATH => paths.len() as u64,
                sample_column::BLOCK => blocks.len() as u64,
                _ => u64::MAX,
            };
            let value = column.up_to(most)?.checked_sub(1);
            match what {
                sample_column::WEIGHT => sample.weight = value.unwrap_or(0),
                sample_column::ADDRESS_KNOWN => sample.address = address.filter(|_| value.is_some()),
                sample_column::ON_STACK => sample.on_stack = value.map(|value| value == 1),
                sample_column::LATENCY => sample.latency = value,
                sample_column::SOURCE => sample.source = value,
                sample_column::CPU => sample.cpu = value.map(|value| value as u32),
                sample_column::PAGE_BYTES => sample.page_bytes = value,
                sample_column::CALL_PATH => sample.path = value.map(|value| value as u32),
                sample_column::BLOCK => sample.block = value.map(|value| value as u32),
                _ => break,
            }
        }
    }
    Ok((paths, blocks))
}

fn blocks(mut reader: Reader<'_>, paths: usize) -> Result<Vec<SampledBlock>, Malformed> {
    let count = reader.count()?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let is_mapped = reader.u8()? & sampled_block_flag::MAPPED != 0;
        let (address, bytes, begun) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let path = reader.optional_index(paths)?;
        blocks.push(SampledBlock { address, bytes, begun, is_mapped, path });
    }
    Ok(blocks)
}

fn paths(
    mut reader: Reader<'_>,
    is_instruction: impl Fn(InstructionId) -> bool,
) -> Result<Vec<CallPath>, Malformed> {
    let count = reader.count()?;
    let mut paths = Vec::with_capacity(count);
    for at in 0..count {
        let parent = reader.optional_index(at)?;
        let call = InstructionId { module: reader.u32()?, instruction: reader.u32()? };
        if !is_instruction(call) {
            let (at, value) = (reader.position(), u64::from(call.instruction));
            return Err(Malformed::Beyond { at, value, limit: 0 });
        }
        paths.push(CallPath { parent, call });
    }
    Ok(paths)
}
