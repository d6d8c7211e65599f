//! The head of the file, the attributes of events, and features.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;

use super::PerfEvent;
use crate::attributes::{EventAttributes, LEAST_BYTES};

/// Events of a recording, at most: thousands are made by a tracepoint for each system call.
const MOST_EVENTS: usize = 1 << 14;

/// Features that are read, by the bits of the header.
pub const BUILD_ID: u32 = 2;
pub const COMMAND: u32 = 11;
pub const EVENT_DESC: u32 = 12;

/// The parts of a file, from its first bytes.
#[derive(Debug, Default)]
pub struct Head {
    /// It went through a pipe: there is nothing but records.
    pub is_pipe: bool,
    /// Attributes, each with the place of its event's numbers.
    pub attributes: Range<u64>,
    /// Bytes of one of these.
    pub attribute_bytes: u64,
    /// Records.
    pub data: Range<u64>,
    /// Bits of the features, which lie behind the records in this order.
    pub features: Vec<u32>,
}

/// Bytes of the head.
pub const HEAD_BYTES: usize = 104;
/// Bytes of the head of a recording that went through a pipe.
pub const PIPE_BYTES: u64 = 16;

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

impl Head {
    /// Reads the first bytes of a file of `length` bytes.
    ///
    /// # Errors
    /// If it is no recording, or a part is not in the file.
    pub fn parse(bytes: &[u8], length: u64) -> Result<Head, String> {
        let short = || "it ends in its header: it is no whole recording".to_owned();
        match bytes.get(..8) {
            Some(b"PERFILE2") => {}
            Some(b"2ELIFREP") => {
                return Err("it is of a big-endian machine, which memlode does not read".into());
            }
            Some(b"PERFFILE") => {
                return Err("it is of a perf before Linux 3.0: record anew with a newer one".into());
            }
            _ => return Err("it is no recording of `perf record`: it does not begin with PERFILE2".into()),
        }
        if u64_at(bytes, 8).ok_or_else(short)? == PIPE_BYTES {
            return Ok(Head { is_pipe: true, data: PIPE_BYTES..length, ..Head::default() });
        }
        let part = |at: usize, what: &str| {
            let (from, bytes) = u64_at(bytes, at).zip(u64_at(bytes, at + 8)).ok_or_else(short)?;
            section(from, bytes, length).ok_or(format!("its {what} lie beyond its end: the file was cut off"))
        };
        let (attributes, data) = (part(24, "attributes")?, part(40, "records")?);
        if data.is_empty() {
            return Err("it has no records: `perf record` did not come to its end".into());
        }
        let attribute_bytes = u64_at(bytes, 16).ok_or_else(short)?;
        let bits = bytes.get(72..HEAD_BYTES).ok_or_else(short)?;
        let features = (0..256).filter(|bit| bits[*bit as usize / 8] >> (bit % 8) & 1 != 0).collect();
        Ok(Head { is_pipe: false, attributes, attribute_bytes, data, features })
    }
}

/// A part of a file, if it lies in it.
pub fn section(from: u64, bytes: u64, length: u64) -> Option<Range<u64>> {
    let to = from.checked_add(bytes)?;
    (to <= length).then_some(from..to)
}

/// The place of one event's numbers, behind its attributes.
pub fn attribute(entry: &[u8]) -> Option<(EventAttributes, (u64, u64))> {
    let bytes = attribute_length(entry)?;
    let attributes = EventAttributes::parse(entry.get(..bytes)?)?;
    Some((attributes, (u64_at(entry, bytes)?, u64_at(entry, bytes + 8)?)))
}

/// Bytes of the attributes, from their own field; the first version had none.
fn attribute_length(entry: &[u8]) -> Option<usize> {
    match u32_at(entry, 4)? as usize {
        0 => Some(LEAST_BYTES),
        bytes if bytes >= LEAST_BYTES => Some(bytes),
        _ => None,
    }
}

/// An event of a recording that went through a pipe.
pub fn piped(body: &[u8]) -> Option<PerfEvent> {
    let bytes = attribute_length(body)?;
    let (attributes, ids) = body.split_at_checked(bytes)?;
    let attributes = EventAttributes::parse(attributes)?;
    Some(PerfEvent { name: name_of(&attributes), attributes, ids: words(ids) })
}

/// Words of a list.
pub fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The name of an event whose file has none.
pub fn name_of(attributes: &EventAttributes) -> String {
    let numbers = || match attributes.config1 {
        0 => format!("type {}, config {:#x}", attributes.kind, attributes.config),
        more => format!("type {}, config {:#x}, config1 {more:#x}", attributes.kind, attributes.config),
    };
    attributes.known_name().map_or_else(numbers, str::to_owned)
}

/// Events as they were named to `perf`: attributes, numbers and a name of each.
pub fn named_events(bytes: &[u8]) -> Option<Vec<PerfEvent>> {
    let (count, each) = (u32_at(bytes, 0)? as usize, u32_at(bytes, 4)? as usize);
    if count > MOST_EVENTS {
        return None;
    }
    let mut rest = &bytes[8..];
    let mut take = |bytes: usize| {
        let (head, behind) = rest.split_at_checked(bytes)?;
        rest = behind;
        Some(head)
    };
    let mut found = Vec::new();
    for _ in 0..count {
        let attributes = EventAttributes::parse(take(each)?)?;
        let ids = u32_at(take(4)?, 0)? as usize;
        let name = u32_at(take(4)?, 0)? as usize;
        let name = String::from_utf8_lossy(until_zero(take(name)?)).into_owned();
        let ids = words(take(ids.checked_mul(8)?)?);
        found.push(PerfEvent { name, attributes, ids });
    }
    Some(found)
}

/// Words of a command.
pub fn command(bytes: &[u8]) -> Option<Vec<String>> {
    let count = u32_at(bytes, 0)?;
    let mut rest = bytes.get(4..)?;
    let mut found = Vec::new();
    for _ in 0..count {
        let length = u32_at(rest, 0)? as usize;
        let (word, behind) = rest.get(4..)?.split_at_checked(length)?;
        found.push(String::from_utf8_lossy(until_zero(word)).into_owned());
        rest = behind;
    }
    Some(found)
}

/// Build ids, by path. The list ends where its bytes make no sense.
pub fn build_ids(mut bytes: &[u8], found: &mut HashMap<OsString, Vec<u8>>) {
    while let Some(length) = bytes.get(6..8).map(|half| usize::from(u16::from_le_bytes([half[0], half[1]]))) {
        let Some((entry, rest)) = bytes.split_at_checked(length).filter(|_| length > 8) else { return };
        let misc = u16::from_le_bytes([entry[4], entry[5]]);
        build_id(misc, &entry[8..], found);
        bytes = rest;
    }
}

/// One of these: process, 20 bytes of the id and perhaps its length, path.
pub fn build_id(misc: u16, body: &[u8], found: &mut HashMap<OsString, Vec<u8>>) {
    const HAS_LENGTH: u16 = 1 << 15;
    const MOST: usize = 20;
    let Some((id, path)) = body.get(4..28).zip(body.get(28..)) else { return };
    let length = match misc & HAS_LENGTH {
        // An older perf: shorter ids end in words of zeros.
        0 => id[..MOST].rchunks(4).skip_while(|word| **word == [0; 4]).count() * 4,
        _ => usize::from(id[MOST]).min(MOST),
    };
    found.insert(OsString::from_vec(until_zero(path).to_vec()), id[..length].to_vec());
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
