//! Accesses by address, by the rule of Miucin, Brady and Fedorova's paper on shared variables.

use std::cmp::Reverse;

use memlode_attribute::place::{Place, What};
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

use crate::{BadNumber, CellPacker, CellUnpacker, Value, View};

/// Accesses by address, which each process has for itself, and cell.
#[derive(Default)]
pub struct Addresses(FxHashMap<(u64, u32), u64>);

/// Sums over the addresses that one line of source text shares.
#[derive(Default)]
struct Sum {
    accesses: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Addresses {
    /// Counts an access.
    pub fn touch(&mut self, address: u64, cell: u32) {
        *self.0.entry((address, cell)).or_default() += 1;
    }

    /// Adds what another part counted.
    pub fn merge(&mut self, later: Addresses) {
        for (key, count) in later.0 {
            *self.0.entry(key).or_default() += count;
        }
    }

    /// Address, cell and count, on their way to another replay.
    pub fn save(self, carried: &mut CellPacker<'_>) -> Vec<(u64, u32, u64)> {
        self.0.into_iter().map(|((address, cell), count)| (address, carried.cell(cell), count)).collect()
    }

    /// Reads what [`Addresses::save`] gave.
    pub fn load(saved: Vec<(u64, u32, u64)>, carried: &CellUnpacker<'_>) -> Result<Addresses, BadNumber> {
        let mut addresses = Addresses::default();
        for (address, cell, count) in saved {
            *addresses.0.entry((address, carried.cell(cell)?)).or_default() += count;
        }
        Ok(addresses)
    }

    /// Returns source lines of the addresses that are shared evenly, by their accesses. `is_even`
    /// decides from the accesses of all threads, and of the two busiest ones.
    pub fn rows(self, view: &View<'_>, is_even: impl Fn(u64, u64, u64) -> bool) -> Vec<Vec<Value>> {
        let mut counts: Vec<((u64, u32), u64)> = self.0.into_iter().collect();
        counts.sort_unstable();
        let mut sums: FxHashMap<(Place, What), Sum> = FxHashMap::default();
        for here in counts.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let mut threads: FxHashMap<ThreadId, u64> = FxHashMap::default();
            for &((_, cell), count) in here {
                *threads.entry(view.cell(cell).thread).or_default() += count;
            }
            let mut most: Vec<u64> = threads.into_values().collect();
            most.sort_unstable_by_key(|count| Reverse(*count));
            let [first, second, ..] = most[..] else { continue };
            if !is_even(most.iter().sum(), first, second) {
                continue;
            }
            for &((_, cell), count) in here {
                let (what, place) = view.key(cell);
                let sum = sums.entry((place, what)).or_default();
                sum.accesses += count;
                *sum.threads.entry(view.cell(cell).thread).or_default() += count;
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(key, sum)| (Reverse(sum.accesses), *key));
        let row = |((place, what), sum): ((Place, What), Sum)| {
            vec![
                place.line.file.map_or(Value::Nothing, |(directory, name)| Value::File(directory, name)),
                Value::Count(place.line.line.into()),
                Value::Name(what),
                Value::Count(sum.accesses),
                Value::Count(sum.threads.len() as u64),
                Value::Threads(sorted(sum.threads)),
            ]
        };
        rows.into_iter().map(row).collect()
    }
}

/// Returns counts by thread, the highest first.
pub(crate) fn sorted(threads: FxHashMap<ThreadId, u64>) -> Vec<(ThreadId, u64)> {
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|&(thread, count)| (Reverse(count), thread));
    threads
}
