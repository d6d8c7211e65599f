//! Rules of a level of cache beyond its shape. The simplest simulation needs none of them.

use memlode_simulate::{Coherence, Inclusion, Prefetch, Replacement, Write};

use crate::document::Table;
use crate::machine::{Level, MachineError};

/// Accesses that bring a line in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocate {
    /// Reads and writes.
    #[default]
    ReadsAndWrites,
    /// Reads only; a write that does not find its line goes past.
    Reads,
}

/// The rules of a level; by default exact LRU, non-inclusive, write-back, write-allocate, whole
/// lines, and no prefetcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Which line makes room.
    pub replacement: Replacement,
    /// Its relation to the lines of the level inside it.
    pub inclusion: Inclusion,
    /// Its treatment of writes.
    pub write: Write,
    /// Accesses that bring a line in.
    pub allocate: Allocate,
    /// Its prefetchers.
    pub prefetch: Vec<Prefetch>,
    /// Bytes of the parts in which lines are fetched; `None`: whole lines.
    pub sector_bytes: Option<u32>,
}

/// Spellings in machine files.
pub(crate) const REPLACEMENTS: [(&str, Replacement); 6] = [
    ("lru", Replacement::Lru),
    ("tree-plru", Replacement::TreePlru),
    ("srrip", Replacement::Srrip),
    ("brrip", Replacement::Brrip),
    ("fifo", Replacement::Fifo),
    ("random", Replacement::Random),
];
pub(crate) const INCLUSIONS: [(&str, Inclusion); 3] = [
    ("non-inclusive", Inclusion::NonInclusive),
    ("inclusive", Inclusion::Inclusive),
    ("exclusive", Inclusion::Exclusive),
];
pub(crate) const WRITES: [(&str, Write); 2] = [("back", Write::Back), ("through", Write::Through)];
pub(crate) const ALLOCATES: [(&str, Allocate); 2] =
    [("reads-and-writes", Allocate::ReadsAndWrites), ("reads", Allocate::Reads)];
pub(crate) const PREFETCHERS: [(&str, Prefetch); 4] = [
    ("next-line", Prefetch::NextLine),
    ("adjacent-line", Prefetch::AdjacentLine),
    ("stride", Prefetch::Stride),
    ("stream", Prefetch::Stream),
];
pub(crate) const COHERENCES: [(&str, Coherence); 2] = [("none", Coherence::None), ("mesi", Coherence::Mesi)];

impl Rules {
    /// The rules of a level's table, every key of which may be absent.
    pub(crate) fn read(table: &mut Table) -> Result<Rules, MachineError> {
        Ok(Rules {
            replacement: table.choice("replacement", &REPLACEMENTS)?.unwrap_or_default(),
            inclusion: table.choice("inclusion", &INCLUSIONS)?.unwrap_or_default(),
            write: table.choice("write", &WRITES)?.unwrap_or_default(),
            allocate: table.choice("allocate", &ALLOCATES)?.unwrap_or_default(),
            prefetch: table.choices("prefetch", &PREFETCHERS)?,
            sector_bytes: match table.optional("sector") {
                None => None,
                Some(_) => Some(table.bytes("sector", 1..=1 << 12)? as u32),
            },
        })
    }

    /// The key at fault and its error, if a level of this shape cannot have these rules.
    pub(crate) fn problem(&self, level: &Level, inner: Option<&Level>) -> Option<(&'static str, String)> {
        let Level { ways, line_bytes, .. } = *level;
        if self.replacement == Replacement::TreePlru && !ways.is_power_of_two() {
            let message = format!("expected a power of two of ways for \"tree-plru\", found {ways}");
            return Some(("replacement", message));
        }
        if let Some(sector) = self.sector_bytes
            && (!sector.is_power_of_two() || sector > line_bytes || line_bytes / sector > 64)
        {
            let expected =
                format!("a power of two that divides the line of {line_bytes} bytes by at most 64");
            return Some(("sector", format!("expected {expected}, found {sector}")));
        }
        if self.inclusion == Inclusion::NonInclusive {
            return None;
        }
        let Some(inner) = inner else {
            return Some((
                "inclusion",
                "expected \"non-inclusive\": no level is inside this one".to_string(),
            ));
        };
        if self.inclusion == Inclusion::Inclusive {
            return None;
        }
        let unit = |rules: &Rules, line_bytes| (line_bytes, rules.sector_bytes.unwrap_or(line_bytes));
        if unit(self, line_bytes) != unit(&inner.rules, inner.line_bytes) {
            let message = format!("expected the lines and sectors of {} for \"exclusive\"", inner.name);
            return Some(("inclusion", message));
        }
        let none = self.prefetch.is_empty();
        (!none).then(|| ("prefetch", "expected no prefetchers in an \"exclusive\" level".to_string()))
    }
}

/// The root key `coherence`.
pub(crate) fn coherence(root: &mut Table) -> Result<Coherence, MachineError> {
    Ok(root.choice("coherence", &COHERENCES)?.unwrap_or_default())
}
