//! Machine files.

use sha2::{Digest, Sha256};

use crate::core_parts;
use crate::costs::{self, Costs};
use crate::document::{Document, Table};
use crate::machine::{Identity, LatencySpreads, Level, Machine, MachineError};
use crate::rules::{self, Rules};

/// Bounds that no cache ever built comes near; they catch slips of the unit and keep the arithmetic
/// safe.
const CORES: u64 = 4096;
const LEVELS: usize = 8;
const LEVEL_BYTES: u64 = 16 << 30;
const WAYS: u64 = 1 << 16;
const LINE_BYTES: std::ops::RangeInclusive<u64> = 8..=4096;
const LATENCY_CYCLES: u64 = 100_000;

pub fn read(text: &str, file: &str) -> Result<Machine, MachineError> {
    let document = Document { text, file };
    let root = document.parse()?;
    let mut root = Table::new(document, String::new(), root.get_ref(), 0..0);

    let name = root.string("name")?;
    let description = root.string("description")?;
    let sources = root.strings("sources")?;
    let cores = root.integer("cores", 1..=CORES)? as u32;
    let line_bytes = power_of_two(&mut root, "line_bytes", None, LINE_BYTES)? as u32;
    let page_bytes = core_parts::page_bytes(&mut root)?;
    let memory_latency_cycles = root.integer("memory_latency_cycles", 1..=LATENCY_CYCLES)? as u32;

    let mut levels: Vec<Level> = Vec::new();
    for mut table in root.tables("level")? {
        let level = level(&mut table, line_bytes, cores, file)?;
        if let Some(inner) = levels.last() {
            nests(&table, inner, &level)?;
        }
        if let Some((key, message)) = level.rules.problem(&level, levels.last()) {
            return Err(table.error(key, message));
        }
        table.finish()?;
        levels.push(level);
    }
    if levels.is_empty() || levels.len() > LEVELS {
        let message = format!("expected 1 to {LEVELS} tables headed [[level]], found {}", levels.len());
        return Err(root.error("level", message));
    }
    let identities = root.tables("identified_by")?.into_iter().map(identity).collect::<Result<_, _>>()?;
    let (tlbs, page_walk_cycles) = core_parts::tlbs(&mut root, page_bytes)?;
    let in_flight = core_parts::in_flight(&mut root)?;
    let nodes = core_parts::nodes(&mut root, cores)?;
    let remote_latency_cycles = core_parts::remote_latency(&mut root, nodes, memory_latency_cycles)?;
    let coherence = rules::coherence(&mut root)?;
    let costs = Costs::read(&mut root, in_flight.map(|flight| flight.instructions))?;
    let spreads = LatencySpreads {
        memory: costs::spread(&mut root, "memory_latency_spread")?,
        page_walk: costs::spread(&mut root, "page_walk_spread")?,
    };
    root.finish()?;
    Ok(Machine {
        name,
        description,
        sources,
        cores,
        line_bytes,
        page_bytes,
        memory_latency_cycles,
        levels,
        tlbs,
        page_walk_cycles,
        in_flight,
        nodes,
        remote_latency_cycles,
        costs,
        spreads,
        coherence,
        identities,
        file_hash: Some(hash(text)),
    })
}

/// The first twelve hexadecimal digits of a text's SHA-256.
fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn level(table: &mut Table, line_bytes: u32, cores: u32, file: &str) -> Result<Level, MachineError> {
    let name = table.string("name")?;
    let bytes = table.bytes("size", 1..=LEVEL_BYTES)?;
    let ways = table.integer("ways", 1..=WAYS)? as u32;
    let line_bytes = power_of_two(table, "line_bytes", Some(line_bytes.into()), LINE_BYTES)? as u32;
    let set_bytes = u64::from(ways) * u64::from(line_bytes);
    if !bytes.is_multiple_of(set_bytes) {
        return Err(table.error(
            "size",
            format!("expected a multiple of {ways} ways × {line_bytes} bytes = {set_bytes}, found {bytes}"),
        ));
    }
    let shared_by = table.integer_or("shared_by", 1, 1..=CORES)? as u32;
    if shared_by > cores {
        return Err(
            table.error("shared_by", format!("expected at most the {cores} cores, found {shared_by}"))
        );
    }
    let latency_cycles = table.integer("latency_cycles", 1..=LATENCY_CYCLES)? as u32;
    let latency_spread = costs::spread(table, "latency_spread")?;
    let rules = Rules::read(table)?;
    Ok(Level {
        name,
        bytes,
        ways,
        line_bytes,
        shared_by,
        latency_cycles,
        latency_spread,
        rules,
        provenance: file.to_string(),
    })
}

/// Checks a level against the one inside it. Outer levels may be smaller; lines and groups of cores
/// may not shrink.
fn nests(table: &Table, inner: &Level, outer: &Level) -> Result<(), MachineError> {
    if outer.line_bytes < inner.line_bytes {
        let message = format!(
            "expected at least the {} bytes of {}, found {}",
            inner.line_bytes, inner.name, outer.line_bytes
        );
        return Err(table.error("line_bytes", message));
    }
    if !outer.shared_by.is_multiple_of(inner.shared_by) {
        let message = format!(
            "expected a multiple of the {} cores that share {}, found {}",
            inner.shared_by, inner.name, outer.shared_by
        );
        return Err(table.error("shared_by", message));
    }
    if outer.latency_cycles < inner.latency_cycles {
        let message = format!(
            "expected at least the {} cycles of {}, found {}",
            inner.latency_cycles, inner.name, outer.latency_cycles
        );
        return Err(table.error("latency_cycles", message));
    }
    Ok(())
}

fn identity(mut table: Table) -> Result<Identity, MachineError> {
    let vendor = table.string("vendor")?;
    let family = match table.optional("family") {
        None => None,
        Some(_) => Some(table.integer("family", 0..=0xffff)? as u32),
    };
    let models = table.ranges("models", 0..=0xffff)?;
    let models = models.into_iter().map(|range| *range.start() as u32..=*range.end() as u32).collect();
    let features = match table.optional("features") {
        None => Vec::new(),
        Some(_) => table.strings("features")?,
    };
    table.finish()?;
    Ok(Identity { vendor, family, models, features })
}

pub(crate) fn power_of_two(
    table: &mut Table,
    key: &'static str,
    default: Option<u64>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, MachineError> {
    let number = match default {
        Some(default) => table.integer_or(key, default, range)?,
        None => table.integer(key, range)?,
    };
    if number.is_power_of_two() {
        return Ok(number);
    }
    Err(table.error(key, format!("expected a power of two, found {number}")))
}
