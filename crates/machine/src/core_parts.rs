//! The parts of a core besides caches: translations, and stores and accesses in flight.

use crate::document::Table;
use crate::file::power_of_two;
use crate::machine::MachineError;

const ENTRIES: u64 = 1 << 20;
const CYCLES: u64 = 100_000;
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// An array of translations of a core's data accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlbArray {
    /// `L1 DTLB`, …
    pub name: String,
    /// 1: looked up for every access; 2: looked up when level 1 has no translation.
    pub level: u32,
    /// Sizes of the pages it holds translations of, in bytes.
    pub page_bytes: Vec<u64>,
    /// Translations it holds: a power of two of sets.
    pub entries: u32,
    /// Translations in a set; `entries` where it is fully associative.
    pub ways: u32,
    /// Cycles that a translation from here costs beyond one from level 1.
    pub latency_cycles: u32,
}

/// Stores and accesses that a core keeps in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Stores that wait for the cache.
    pub stores: u32,
    /// Instructions between issue and retirement.
    pub instructions: u32,
}

/// The tables headed `[[tlb]]`, and the cycles of a page walk.
pub fn tlbs(root: &mut Table, page_bytes: u64) -> Result<(Vec<TlbArray>, u32), MachineError> {
    let mut tlbs: Vec<TlbArray> = Vec::new();
    for mut table in root.tables("tlb")? {
        let tlb = tlb(&mut table)?;
        let other = |other: &&TlbArray| {
            other.level == tlb.level && other.page_bytes.iter().any(|bytes| tlb.page_bytes.contains(bytes))
        };
        if let Some(other) = tlbs.iter().find(other) {
            let message = format!("expected sizes that {} of the same level does not hold", other.name);
            return Err(table.error("pages", message));
        }
        table.finish()?;
        tlbs.push(tlb);
    }
    if tlbs.is_empty() {
        return Ok((tlbs, 0));
    }
    if !tlbs.iter().any(|tlb| tlb.level == 1 && tlb.page_bytes.contains(&page_bytes)) {
        let message = format!("expected one of level 1 that holds pages of {page_bytes} bytes, found none");
        return Err(root.error("tlb", message));
    }
    let walk_cycles = root.integer("page_walk_cycles", 1..=CYCLES)? as u32;
    Ok((tlbs, walk_cycles))
}

fn tlb(table: &mut Table) -> Result<TlbArray, MachineError> {
    let name = table.string("name")?;
    let level = table.integer("level", 1..=2)? as u32;
    let page_bytes = table.sizes("pages", PAGE_BYTES)?;
    if let Some(odd) = page_bytes.iter().find(|bytes| !bytes.is_power_of_two()) {
        return Err(table.error("pages", format!("expected powers of two, found {odd}")));
    }
    let entries = table.integer("entries", 1..=ENTRIES)? as u32;
    let ways = table.integer("ways", 1..=u64::from(entries))? as u32;
    if !entries.is_multiple_of(ways) || !(entries / ways).is_power_of_two() {
        let message = format!("expected {ways} ways times a power of two, found {entries}");
        return Err(table.error("entries", message));
    }
    let latency_cycles = match level {
        1 => table.integer_or("latency_cycles", 0, 0..=CYCLES)?,
        _ => table.integer("latency_cycles", 0..=CYCLES)?,
    } as u32;
    Ok(TlbArray { name, level, page_bytes, entries, ways, latency_cycles })
}

/// The keys `store_buffer_entries` and `reorder_buffer_entries`, of which there are both or none.
pub fn in_flight(root: &mut Table) -> Result<Option<InFlight>, MachineError> {
    let any = root.optional("store_buffer_entries").is_some();
    let other = root.optional("reorder_buffer_entries").is_some();
    if !any && !other {
        return Ok(None);
    }
    let stores = root.integer("store_buffer_entries", 1..=ENTRIES)? as u32;
    let instructions = root.integer("reorder_buffer_entries", 1..=ENTRIES)? as u32;
    Ok(Some(InFlight { stores, instructions }))
}

/// The key `nodes`.
pub fn nodes(root: &mut Table, cores: u32) -> Result<u32, MachineError> {
    let nodes = root.integer_or("nodes", 1, 1..=u64::from(cores))? as u32;
    if cores.is_multiple_of(nodes) {
        return Ok(nodes);
    }
    Err(root.error("nodes", format!("expected a number that divides the {cores} cores, found {nodes}")))
}

/// The key `remote_memory_latency_cycles`: there is one if there are several nodes, and memory
/// further away takes longer.
pub fn remote_latency(root: &mut Table, nodes: u32, memory: u32) -> Result<u32, MachineError> {
    const KEY: &str = "remote_memory_latency_cycles";
    if nodes > 1 {
        return Ok(root.integer(KEY, u64::from(memory)..=CYCLES)? as u32);
    }
    match root.optional(KEY) {
        None => Ok(memory),
        Some(_) => Err(root.error(KEY, "expected `nodes` of more than 1 with it".to_string())),
    }
}

/// Bytes of an ordinary page.
pub fn page_bytes(root: &mut Table) -> Result<u64, MachineError> {
    power_of_two(root, "page_bytes", Some(4096), PAGE_BYTES)
}
