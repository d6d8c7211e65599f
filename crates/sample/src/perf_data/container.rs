//! The parts of the file, and its records as bytes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::PerfEvent;
use super::header::{self, HEAD_BYTES, Head};
use super::unpack::Unpacker;

/// Bytes of a feature that are read, at most.
const MOST_FEATURE: u64 = 64 << 20;
/// Bytes of all attributes, at most.
const MOST_ATTRIBUTES: u64 = 16 << 20;

/// Kinds of records that `perf` writes besides those of the kernel, from its `event.h`.
pub const FIRST_OF_PERF: u32 = 64;
const HEADER_ATTR: u32 = 64;
const TRACING_DATA: u32 = 66;
const HEADER_BUILD_ID: u32 = 67;
/// The end of a round.
pub const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// The part of the file with records.
#[derive(Clone, Debug, Default)]
pub struct Data {
    range: Range<u64>,
    is_pipe: bool,
}

/// All of the file but its records.
#[derive(Debug, Default)]
pub struct Contents {
    pub events: Vec<PerfEvent>,
    pub build_ids: HashMap<OsString, Vec<u8>>,
    pub command: Vec<String>,
    pub data: Data,
}

/// A record as in the file.
#[derive(Debug)]
pub struct RawRecord<'a> {
    /// Its place in the file, or of the one that it was unpacked from.
    pub offset: u64,
    /// Its kind.
    pub kind: u32,
    /// Bits about it.
    pub misc: u16,
    /// All behind its head.
    pub body: &'a [u8],
}

impl RawRecord<'_> {
    /// A sentence about it.
    pub fn fault(&self, what: &str) -> String {
        format!("the record at byte {} {what}: the file is damaged", self.offset)
    }
}

/// A record that must make sense: maps, losses and samples.
pub fn is_always_read(kind: u32) -> bool {
    matches!(kind, 1 | 2 | 9 | 10 | 13)
}

/// Reads all but the records.
pub fn read(path: &Path) -> Result<Contents, String> {
    let file = memlode_files::open(path).map_err(|why| why.to_string())?;
    let length = file.metadata().map_err(|why| why.to_string())?.len();
    let mut reader = BufReader::new(file);
    let first = bytes(&mut reader, 0..length.min(HEAD_BYTES as u64))?;
    let head = Head::parse(&first, length)?;
    let data = Data { range: head.data.clone(), is_pipe: head.is_pipe };
    let mut found = Contents { data, ..Contents::default() };
    match head.is_pipe {
        true => piped(path, &mut found)?,
        false => features(&mut reader, &head, length, &mut found)?,
    }
    if found.events.is_empty() {
        return Err("it has no events: it is damaged, or `perf record` did not come to its end".into());
    }
    Ok(found)
}

/// A range that lies in the file.
fn bytes(reader: &mut (impl Read + Seek), range: Range<u64>) -> Result<Vec<u8>, String> {
    reader.seek(SeekFrom::Start(range.start)).map_err(|why| why.to_string())?;
    let mut found = Vec::new();
    let wanted = range.end - range.start;
    reader.take(wanted).read_to_end(&mut found).map_err(|why| why.to_string())?;
    match found.len() as u64 == wanted {
        true => Ok(found),
        false => Err("it became shorter while it was read".into()),
    }
}

/// Reads behind the records: the places of features, and these.
fn features(
    reader: &mut BufReader<File>,
    head: &Head,
    length: u64,
    found: &mut Contents,
) -> Result<(), String> {
    let beyond = || "its features lie beyond its end: the file was cut off".to_owned();
    let places = 16 * head.features.len() as u64;
    let places = header::section(head.data.end, places, length).ok_or_else(beyond)?;
    let places = header::words(&bytes(reader, places)?);
    for (feature, place) in head.features.iter().zip(places.chunks_exact(2)) {
        let range = header::section(place[0], place[1], length).ok_or_else(beyond)?;
        let is_read = matches!(*feature, header::BUILD_ID | header::COMMAND | header::EVENT_DESC);
        if is_read && range.end - range.start <= MOST_FEATURE {
            feature_of(*feature, &bytes(reader, range)?, found)?;
        }
    }
    // The names are in a feature, and so are the attributes once more; those that the records go by are these.
    let attributes = attributes(reader, head, length)?;
    found.events = match found.events.len() == attributes.len() {
        true => {
            let named = std::mem::take(&mut found.events).into_iter().map(|event| event.name);
            attributes.into_iter().zip(named).map(|(event, name)| PerfEvent { name, ..event }).collect()
        }
        false => attributes,
    };
    Ok(())
}

fn feature_of(feature: u32, bytes: &[u8], found: &mut Contents) -> Result<(), String> {
    match feature {
        header::BUILD_ID => header::build_ids(bytes, &mut found.build_ids),
        header::COMMAND => found.command = header::command(bytes).ok_or("the command in it is damaged")?,
        header::EVENT_DESC => {
            found.events = header::named_events(bytes).ok_or("its list of events is damaged")?;
        }
        _ => {}
    }
    Ok(())
}

fn attributes(reader: &mut BufReader<File>, head: &Head, length: u64) -> Result<Vec<PerfEvent>, String> {
    let damaged = || "its attributes of events are damaged".to_owned();
    let all = head.attributes.end - head.attributes.start;
    if all > MOST_ATTRIBUTES || head.attribute_bytes == 0 {
        return Err(damaged());
    }
    let each = usize::try_from(head.attribute_bytes).map_err(|_| damaged())?;
    let mut events = Vec::new();
    // Numbers may be shared by no two events, so all of them are no longer than the file.
    let mut left = length;
    for entry in bytes(reader, head.attributes.clone())?.chunks_exact(each) {
        let (attributes, (from, count)) = header::attribute(entry).ok_or_else(damaged)?;
        left = left.checked_sub(count).ok_or_else(damaged)?;
        let ids = header::section(from, count, length).ok_or_else(damaged)?;
        let ids = header::words(&bytes(reader, ids)?);
        events.push(PerfEvent { name: header::name_of(&attributes), attributes, ids });
    }
    Ok(events)
}

/// Reads attributes and features among the records of a file that went through a pipe.
fn piped(path: &Path, found: &mut Contents) -> Result<(), String> {
    let data = found.data.clone();
    let mut named = Contents::default();
    walk(path, &data, &mut |raw| {
        match raw.kind {
            HEADER_ATTR => {
                let event = header::piped(raw.body).ok_or_else(|| raw.fault("has no attributes"))?;
                found.events.push(event);
            }
            HEADER_BUILD_ID => header::build_id(raw.misc, raw.body, &mut named.build_ids),
            FEATURE => {
                let feature = raw.body.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                let bytes = raw.body.get(8..).unwrap_or_default();
                feature_of(u32::try_from(feature).unwrap_or(0), bytes, &mut named)?;
            }
            _ => {}
        }
        Ok(())
    })?;
    // The events of a feature are named, in an order that may be another one.
    for event in &mut found.events {
        let same = named.events.iter().find(|named| !event.ids.is_empty() && named.ids == event.ids);
        if let Some(named) = same {
            event.name.clone_from(&named.name);
        }
    }
    found.build_ids = named.build_ids;
    found.command = named.command;
    Ok(())
}

/// Visits all records in the order of the file; compressed ones are unpacked.
pub fn walk(
    path: &Path,
    data: &Data,
    visit: &mut dyn FnMut(&RawRecord<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut file = memlode_files::open(path).map_err(|why| why.to_string())?;
    file.seek(SeekFrom::Start(data.range.start)).map_err(|why| why.to_string())?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut offset = data.range.start;
    let mut unpacker = None;
    let mut body = Vec::new();
    while offset < data.range.end {
        let cut = || format!("it ends in the record at byte {offset}: the file was cut off");
        let left = data.range.end - offset;
        let mut head = [0; 8];
        let whole = left >= 8 && reader.read_exact(&mut head).is_ok();
        let (kind, misc, size) = whole.then(|| parts(head)).ok_or_else(cut)?;
        if size < 8 {
            return Err(format!("the record at byte {offset} is shorter than its head: the file is damaged"));
        }
        body.resize(size as usize - 8, 0);
        let whole = left >= size && reader.read_exact(&mut body).is_ok();
        whole.then_some(()).ok_or_else(cut)?;
        let raw = RawRecord { offset, kind, misc, body: &body };
        let behind = behind(&raw, data.is_pipe)?;
        if behind > left - size {
            return Err(cut());
        }
        match packed(&raw)? {
            Some(packed) => {
                let unpacker = match &mut unpacker {
                    Some(unpacker) => unpacker,
                    none => none.insert(Unpacker::new()?),
                };
                unpacker.unpack(packed)?;
                unpacked(offset, &mut unpacker.rest, visit)?;
            }
            None => visit(&raw)?,
        }
        if behind > 0 {
            let skipped = i64::try_from(behind).map_err(|_| cut())?;
            reader.seek_relative(skipped).map_err(|why| why.to_string())?;
        }
        offset += size + behind;
    }
    Ok(())
}

/// A record's kind, bits and bytes.
fn parts(head: [u8; 8]) -> (u32, u16, u64) {
    let [a, b, c, d, e, f, g, h] = head;
    (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u64::from(u16::from_le_bytes([g, h])))
}

/// Bytes that follow a record and are not counted in its size.
fn behind(raw: &RawRecord<'_>, is_pipe: bool) -> Result<u64, String> {
    let short = || raw.fault("is too short for its kind");
    match raw.kind {
        AUXTRACE => raw.body.first_chunk().map(|word| u64::from_le_bytes(*word)).ok_or_else(short),
        TRACING_DATA if is_pipe => {
            let size = raw.body.first_chunk().map(|half| u32::from_le_bytes(*half)).ok_or_else(short)?;
            Ok(u64::from(size).next_multiple_of(8))
        }
        _ => Ok(0),
    }
}

/// The bytes that a compressed record has.
fn packed<'a>(raw: &RawRecord<'a>) -> Result<Option<&'a [u8]>, String> {
    match raw.kind {
        COMPRESSED => Ok(Some(raw.body)),
        COMPRESSED2 => {
            let length = raw.body.first_chunk().map(|word| u64::from_le_bytes(*word));
            let length = length.and_then(|length| usize::try_from(length).ok());
            let packed = length.and_then(|length| raw.body[8..].get(..length));
            packed.map(Some).ok_or_else(|| raw.fault("is too short for its kind"))
        }
        _ => Ok(None),
    }
}

/// Visits the whole records of unpacked data; the beginning of an incomplete one stays.
fn unpacked(
    offset: u64,
    bytes: &mut Vec<u8>,
    visit: &mut dyn FnMut(&RawRecord<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut at = 0;
    while let Some(head) = bytes[at..].first_chunk() {
        let (kind, misc, size) = parts(*head);
        let whole = bytes.get(at + 8..at + (size as usize).max(8));
        let raw = RawRecord { offset, kind, misc, body: whole.unwrap_or_default() };
        if size < 8 || packed(&raw)?.is_some() {
            return Err(raw.fault("unpacks to none"));
        }
        if whole.is_none() {
            break;
        }
        visit(&raw)?;
        at += size as usize;
    }
    bytes.drain(..at);
    Ok(())
}
