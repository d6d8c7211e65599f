//! A machine as the text of a machine file.

use toml::{Table, Value};

use crate::costs::{Constant, Costs, SharingCosts};
use crate::machine::{Level, Machine};
use crate::rules;

impl Machine {
    /// The text of a file that [`Machine::from_toml`] reads as this machine again.
    pub fn to_toml(&self) -> String {
        let mut root = Table::new();
        put(&mut root, "name", self.name.clone());
        put(&mut root, "description", self.description.clone());
        put(&mut root, "sources", strings(self.sources.iter().map(String::as_str)));
        put(&mut root, "cores", self.cores);
        put(&mut root, "line_bytes", self.line_bytes);
        put(&mut root, "page_bytes", integer(self.page_bytes));
        put(&mut root, "memory_latency_cycles", self.memory_latency_cycles);
        spread(&mut root, "memory_latency_spread", self.spreads.memory);
        put(&mut root, "coherence", word(&rules::COHERENCES, &self.coherence));
        if !self.tlbs.is_empty() {
            put(&mut root, "page_walk_cycles", self.page_walk_cycles);
        }
        spread(&mut root, "page_walk_spread", self.spreads.page_walk);
        if let Some(flight) = self.in_flight {
            put(&mut root, "store_buffer_entries", flight.stores);
            put(&mut root, "reorder_buffer_entries", flight.instructions);
        }
        if self.nodes > 1 {
            put(&mut root, "nodes", self.nodes);
            put(&mut root, "remote_memory_latency_cycles", self.remote_latency_cycles);
        }
        put(&mut root, "cost", costs(&self.costs));
        let identities = self.identities.iter().map(|identity| {
            let mut table = Table::new();
            put(&mut table, "vendor", identity.vendor.clone());
            if let Some(family) = identity.family {
                put(&mut table, "family", family);
            }
            let range = |r: &std::ops::RangeInclusive<u32>| Value::from(vec![*r.start(), *r.end()]);
            put(&mut table, "models", identity.models.iter().map(range).collect::<Vec<_>>());
            if !identity.features.is_empty() {
                put(&mut table, "features", identity.features.clone());
            }
            Value::Table(table)
        });
        put(&mut root, "identified_by", identities.collect::<Vec<_>>());
        put(&mut root, "level", self.levels.iter().map(level).collect::<Vec<_>>());
        let tlbs = self.tlbs.iter().map(|tlb| {
            let mut table = Table::new();
            put(&mut table, "name", tlb.name.clone());
            put(&mut table, "level", tlb.level);
            put(&mut table, "pages", tlb.page_bytes.iter().map(|bytes| size(*bytes)).collect::<Vec<_>>());
            put(&mut table, "entries", tlb.entries);
            put(&mut table, "ways", tlb.ways);
            put(&mut table, "latency_cycles", tlb.latency_cycles);
            Value::Table(table)
        });
        put(&mut root, "tlb", tlbs.collect::<Vec<_>>());
        root.to_string()
    }
}

fn level(level: &Level) -> Value {
    let mut table = Table::new();
    put(&mut table, "name", level.name.clone());
    put(&mut table, "size", integer(level.bytes));
    put(&mut table, "ways", level.ways);
    put(&mut table, "line_bytes", level.line_bytes);
    put(&mut table, "shared_by", level.shared_by);
    put(&mut table, "latency_cycles", level.latency_cycles);
    spread(&mut table, "latency_spread", level.latency_spread);
    let rules = &level.rules;
    put(&mut table, "replacement", word(&rules::REPLACEMENTS, &rules.replacement));
    put(&mut table, "inclusion", word(&rules::INCLUSIONS, &rules.inclusion));
    put(&mut table, "write", word(&rules::WRITES, &rules.write));
    put(&mut table, "allocate", word(&rules::ALLOCATES, &rules.allocate));
    put(
        &mut table,
        "prefetch",
        strings(rules.prefetch.iter().map(|prefetch| word(&rules::PREFETCHERS, prefetch))),
    );
    if let Some(sector) = rules.sector_bytes {
        put(&mut table, "sector", sector);
    }
    Value::Table(table)
}

fn costs(costs: &Costs) -> Value {
    let mut table = Table::new();
    for (key, constant) in [
        ("clock_ghz", costs.clock_ghz),
        ("instruction_cycles", costs.instruction_cycles),
        ("overlap_l2", costs.overlap_l2),
        ("overlap_memory", costs.overlap_memory),
        ("overlap_walk", costs.overlap_walk),
        ("read_line_cycles", costs.read_line_cycles),
        ("write_line_cycles", costs.write_line_cycles),
        ("window_instructions", costs.window_instructions),
        ("increment_cycles", costs.increment_cycles),
        ("atomic_cycles", costs.atomic_cycles),
        ("fence_cycles", costs.fence_cycles),
        ("mispredict_cycles", costs.mispredict_cycles),
        ("counting_slowdown", costs.counting_slowdown),
        ("fault_cycles", costs.fault_cycles),
        ("zeroed_line_cycles", costs.zeroed_line_cycles),
    ] {
        put_constant(&mut table, key, constant);
    }
    put(&mut table, "near", sharing(&costs.near));
    if let Some(far) = &costs.far {
        put(&mut table, "far", sharing(far));
    }
    Value::Table(table)
}

fn sharing(costs: &SharingCosts) -> Value {
    let mut table = Table::new();
    put_constant(&mut table, "transfer_cycles", costs.transfer_cycles);
    put_constant(&mut table, "arrival_cycles", costs.arrival_cycles);
    put_constant(&mut table, "use_cycles", costs.use_cycles);
    Value::Table(table)
}

fn put_constant(table: &mut Table, key: &str, constant: Constant) {
    put(table, key, constant.value);
    spread(table, &format!("{key}_spread"), constant.spread);
}

fn spread(table: &mut Table, key: &str, spread: Option<f64>) {
    if let Some(spread) = spread {
        put(table, key, spread);
    }
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_string(), value.into());
}

/// A number of bytes: at most 16 GiB in a machine file, so it fits TOML's integers.
fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A page size, a power of two from 4 KiB to 1 GiB.
fn size(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        30.. => format!("{} GiB", bytes >> 30),
        20.. => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

fn strings<'a>(items: impl Iterator<Item = &'a str>) -> Vec<Value> {
    items.map(Value::from).collect()
}

/// Returns how files write one of a few choices; every choice has a word.
fn word<T: PartialEq>(words: &[(&'static str, T)], choice: &T) -> &'static str {
    words.iter().find(|(_, known)| known == choice).map_or("", |(word, _)| word)
}
