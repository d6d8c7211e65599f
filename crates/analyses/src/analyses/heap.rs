//! # Heap
//!
//! **What it finds.** How much memory is alive as the run goes, and whose: for each allocation, with
//! its callers, the blocks that it makes and that are freed, the bytes alive at the end of each of
//! at most 64 equal stretches of the run, and at the moment at which the program has most.
//!
//! **Why it costs.** What is alive together competes for caches and pages, and more memory than the
//! machine has is no longer memory.
//!
//! **What to do.** See whose blocks make up the peak, and how many of them are still needed then:
//! [ranges](ranges.md) shows whether they are accessed at all after that. An allocation that makes
//! many blocks and has few alive is one for [temporaries](temporaries.md).
//!
//! **When it is wrong.** Bytes are those that the program asked for: what an allocator adds, keeps
//! or maps is not known, and neither is memory of code that is not recorded. A block that such code
//! frees stays alive here until another one takes its place. A block that `realloc` returns is a
//! new one. A peak inside a stretch is in the row of the stretch and in the numbers at the peak; the
//! bytes of single allocations over time are those at the ends of stretches. Processes are added
//! up.
//!
//! **Reference.** Rosenberg, Wickman and others: memray, whose report of the high-water mark this
//! resembles; and Massif, Nethercote and Seward, "Valgrind: a framework for heavyweight dynamic
//! binary instrumentation", PLDI 2007.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, BlockEvent, Life};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::bins::{MOST, Scale};
use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// See the module's page.
pub struct Heap;

/// Bytes that are alive, and that were at the end of each stretch that is over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Alive {
    bytes: u64,
    at_ends: Vec<u64>,
}

impl Alive {
    /// Ends the stretches before this one.
    fn reach(&mut self, stretch: usize) {
        self.at_ends.resize(self.at_ends.len().max(stretch), self.bytes);
    }

    /// Joins `times` stretches each. One of which a part is over goes on.
    fn widen(&mut self, times: usize) {
        self.at_ends = self.at_ends.chunks_exact(times).map(|stretches| stretches[times - 1]).collect();
    }
}

/// The blocks of an allocation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sum {
    made: u64,
    freed: u64,
    made_bytes: u64,
    alive: Alive,
    /// Bytes alive when the program had most, unless they have not changed since.
    at_peak: u64,
    /// The number of the last change.
    changed: u64,
}

/// All blocks together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Total {
    alive: Alive,
    /// The most bytes in each stretch so far.
    most: Vec<u64>,
    peak: u64,
    /// The number of the change that made the peak, and the access behind it.
    peak_change: u64,
    peak_access: u64,
    changes: u64,
    /// The number of the last access, and 1.
    accesses: u64,
}

/// The memory so far.
#[derive(Default)]
pub struct Memory {
    stretches: Scale,
    /// Keyed by process and beginning: the live blocks, each with its object and its size.
    live: FxHashMap<u64, (u32, u64)>,
    /// Indexed by object.
    objects: Vec<Sum>,
    total: Total,
}

impl Memory {
    fn of(&mut self, object: u32) -> &mut Sum {
        let object = object as usize;
        if object >= self.objects.len() {
            self.objects.resize(object + 1, Sum::default());
        }
        &mut self.objects[object]
    }

    /// Widens the stretches so that an access of this number has one.
    fn lengthen(&mut self, access: u64) {
        let wider = self.stretches.max(Scale::of(access));
        if wider > self.stretches {
            let times = 1 << (wider.shift - self.stretches.shift);
            self.stretches = wider;
            self.objects.iter_mut().for_each(|of| of.alive.widen(times));
            self.total.alive.widen(times);
            let most = self.total.most.chunks(times).filter_map(|most| most.iter().max());
            self.total.most = most.copied().collect();
        }
    }

    /// A block begins or ends in front of an access.
    fn block(&mut self, place: u64, life: Life, now: u64) {
        self.lengthen(now);
        match life {
            Life::Begins { bytes, object } => {
                // Nobody saw the end of what was there.
                if let Some((before, bytes)) = self.live.insert(place, (object, bytes)) {
                    self.change(before, now, |alive| alive.saturating_sub(bytes));
                }
                let of = self.of(object);
                of.made += 1;
                of.made_bytes = of.made_bytes.saturating_add(bytes);
                self.change(object, now, |alive| alive.saturating_add(bytes));
            }
            Life::Ends => {
                let Some((object, bytes)) = self.live.remove(&place) else { return };
                self.of(object).freed += 1;
                self.change(object, now, |alive| alive.saturating_sub(bytes));
            }
        }
    }

    /// Changes the bytes of an object that are alive, and those of all.
    fn change(&mut self, object: u32, now: u64, to: impl Fn(u64) -> u64) {
        let stretch = usize::from(self.stretches.bin(now));
        let peak_change = self.total.peak_change;
        self.total.changes += 1;
        let change = self.total.changes;
        let of = self.of(object);
        of.alive.reach(stretch);
        of.at_peak = of.at_peak(peak_change);
        (of.alive.bytes, of.changed) = (to(of.alive.bytes), change);
        self.total.change(stretch, now, to);
    }

    /// The number of stretches, all of which are over.
    fn end(&mut self) -> usize {
        let stretches = match self.total.accesses {
            0 => 0,
            accesses => usize::from(self.stretches.bin(accesses - 1)) + 1,
        };
        self.objects.iter_mut().for_each(|of| of.alive.reach(stretches));
        self.total.reach(stretches);
        stretches
    }
}

impl Sum {
    /// Bytes alive when the program had most, after the change of that number.
    fn at_peak(&self, peak_change: u64) -> u64 {
        if self.changed <= peak_change { self.alive.bytes } else { self.at_peak }
    }
}

impl Total {
    fn reach(&mut self, stretches: usize) {
        self.alive.reach(stretches);
        self.most.resize(self.most.len().max(stretches), self.alive.bytes);
    }

    fn change(&mut self, stretch: usize, now: u64, to: impl Fn(u64) -> u64) {
        self.alive.reach(stretch);
        self.most.resize(self.most.len().max(stretch + 1), self.alive.bytes);
        self.alive.bytes = to(self.alive.bytes);
        self.most[stretch] = self.most[stretch].max(self.alive.bytes);
        if self.alive.bytes > self.peak {
            (self.peak, self.peak_change, self.peak_access) = (self.alive.bytes, self.changes, now);
        }
    }
}

impl Analysis for Heap {
    const META: Meta = Meta {
        id: "heap",
        title: "memory alive over the run, and at its peak, by allocation",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // One thread or stretch frees what another made, and the peak is that of all together.
        splits: Splits { chunks: false, address: None, thread: false, time: false },
        arguments: &[],
        tables: &[
            TableMeta {
                id: "heap",
                title: "Memory by allocation: what the program had most of at its peak",
                is_whole: false,
                columns: &[
                    Column { id: "object", holds: Holds::Object },
                    Column { id: "made", holds: Holds::Count },
                    Column { id: "freed", holds: Holds::Count },
                    Column { id: "made_bytes", holds: Holds::Bytes },
                    Column { id: "peak_bytes", holds: Holds::Bytes },
                    Column { id: "end_bytes", holds: Holds::Bytes },
                    Column { id: "stretch_accesses", holds: Holds::Count },
                    Column { id: "bytes_over_time", holds: Holds::Bins },
                ],
            },
            TableMeta {
                id: "heap_over_time",
                title: "Memory of all allocations, stretch by stretch",
                is_whole: true,
                columns: &[
                    Column { id: "access", holds: Holds::Count },
                    Column { id: "most_bytes", holds: Holds::Bytes },
                    Column { id: "end_bytes", holds: Holds::Bytes },
                ],
            },
            TableMeta {
                id: "heap_peak",
                title: "When the program has most memory",
                is_whole: true,
                columns: &[
                    Column { id: "access", holds: Holds::Count },
                    Column { id: "peak_bytes", holds: Holds::Bytes },
                ],
            },
        ],
    };

    type State = Memory;
    type Saved = (u32, Vec<(u32, Sum)>, Total);

    fn new(_arguments: &Arguments) -> Result<Heap, BadArgument> {
        Ok(Heap)
    }

    fn start(&self) -> Memory {
        Memory::default()
    }

    fn observe(&self, memory: &mut Memory, rows: &AnnotatedAccesses, view: &View<'_>) {
        let next = rows.sequence.last().map_or(memory.total.accesses, |last| last + 1);
        for &BlockEvent { row, process, address, life } in &rows.blocks {
            let now = rows.sequence.get(row as usize).copied().unwrap_or(next);
            memory.block(view.process_space(process).place(address), life, now);
        }
        memory.total.accesses = next;
        memory.lengthen(next.saturating_sub(1));
    }

    fn merge(&self, memory: &mut Memory, later: Memory) {
        for (object, more) in (0..).zip(later.objects) {
            let sum = memory.of(object);
            sum.made += more.made;
            sum.freed += more.freed;
            sum.made_bytes = sum.made_bytes.saturating_add(more.made_bytes);
            if more.made > 0 {
                (sum.alive, sum.at_peak, sum.changed) = (more.alive, more.at_peak, more.changed);
            }
        }
        if later.total.changes > 0 {
            (memory.total, memory.stretches) = (later.total, later.stretches);
        }
    }

    fn save(&self, mut memory: Memory, carried: &mut CellPacker<'_>) -> (u32, Vec<(u32, Sum)>, Total) {
        memory.end();
        let objects = (0..).zip(memory.objects).filter(|(_, of)| of.made > 0);
        let objects = objects.map(|(object, of)| (carried.object(object), of)).collect();
        (memory.stretches.shift, objects, memory.total)
    }

    fn load(
        &self,
        (shift, objects, total): (u32, Vec<(u32, Sum)>, Total),
        carried: &CellUnpacker<'_>,
    ) -> Result<Memory, BadNumber> {
        BadNumber::check("stretch", shift.into(), u64::BITS as usize)?;
        let is_sound = |alive: &Alive| alive.at_ends.len() <= MOST as usize;
        let mut memory = Memory { stretches: Scale { shift }, total, ..Memory::default() };
        let last = memory.total.accesses.saturating_sub(1);
        if !is_sound(&memory.total.alive) || Scale::of(last) > memory.stretches {
            return Err(BadNumber { what: "access", number: last });
        }
        for (object, of) in objects {
            BadNumber::check("stretch", of.alive.at_ends.len() as u64, MOST as usize + 1)?;
            *memory.of(carried.object(object)?) = of;
        }
        Ok(memory)
    }

    fn finish(&self, mut memory: Memory, view: &View<'_>) -> Findings {
        let stretches = memory.end();
        let Memory { stretches: scale, total, objects, .. } = memory;
        let mut made: Vec<(usize, &Sum)> = objects.iter().enumerate().filter(|(_, of)| of.made > 0).collect();
        made.sort_by_cached_key(|(object, of)| {
            let weight = Reverse((of.at_peak(total.peak_change), of.made_bytes));
            (weight, format!("{:?}", view.cells.objects[*object]))
        });
        let of_object = |(object, of): (usize, &Sum)| {
            vec![
                Value::Object(view.cells.objects[object].clone()),
                Value::Count(of.made),
                Value::Count(of.freed),
                Value::Bytes(of.made_bytes),
                Value::Bytes(of.at_peak(total.peak_change)),
                Value::Bytes(of.alive.bytes),
                Value::Count(scale.width()),
                Value::Bins(of.alive.at_ends.iter().take(stretches).copied().collect()),
            ]
        };
        let of_stretch = |stretch: usize| {
            vec![
                Value::Count(scale.first(stretch as u8)),
                Value::Bytes(total.most[stretch]),
                Value::Bytes(total.alive.at_ends[stretch]),
            ]
        };
        let peak = vec![Value::Count(total.peak_access), Value::Bytes(total.peak)];
        let [of_objects, over_time, at_peak] = Heap::META.tables else { unreachable!() };
        let is_any = !made.is_empty();
        let tables = vec![
            Table::plain(of_objects, made.into_iter().map(of_object).collect()),
            Table::plain(over_time, (0..if is_any { stretches } else { 0 }).map(of_stretch).collect()),
            Table::plain(at_peak, if is_any { vec![peak] } else { Vec::new() }),
        ];
        Findings { findings: Vec::new(), tables }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block of one of three objects that begins or ends some accesses later.
    type Step = (u64, u64, Option<(u32, u64)>);

    /// Bytes of each object that are alive after each step, by a list of blocks alone.
    fn naive(steps: &[Step]) -> Vec<(u64, [u64; 3])> {
        let (mut now, mut live) = (0, Vec::<(u64, u32, u64)>::new());
        let after = steps.iter().map(|&(later, place, begins)| {
            now += later;
            live.retain(|block| block.0 != place);
            live.extend(begins.map(|(object, bytes)| (place, object, bytes)));
            let of = |object| live.iter().filter(|block| block.1 == object).map(|block| block.2).sum();
            (now, [of(0), of(1), of(2)])
        });
        after.collect()
    }

    proptest! {
        /// A list of blocks has as many bytes at the ends of stretches, at the most of each, and at
        /// the peak.
        #[test]
        fn memory_is_what_a_list_of_blocks_has(
            steps in prop::collection::vec(
                (0..40u64, 0..12u64, prop::option::of((0..3u32, 1..100u64))), 1..200),
            rest in 1..50u64,
        ) {
            let mut memory = Memory::default();
            let mut now = 0;
            for &(later, place, begins) in &steps {
                now += later;
                let begins = begins.map(|(object, bytes)| Life::Begins { bytes, object });
                memory.block(place, begins.unwrap_or(Life::Ends), now);
            }
            memory.total.accesses = now + rest;
            memory.lengthen(now + rest - 1);
            let stretches = memory.end();
            let after = naive(&steps);
            let width = memory.stretches.width();
            prop_assert!(stretches as u64 <= MOST && (stretches as u64 - 1) * width < now + rest);
            // The first of the steps after which the most is alive.
            let sum = |alive: &[u64; 3]| alive.iter().sum::<u64>();
            let most = after.iter().map(|(_, alive)| sum(alive)).max().unwrap_or(0);
            let (peak_access, at_peak) = match most {
                0 => (0, [0; 3]),
                _ => after.iter().copied().find(|(_, alive)| sum(alive) == most).expect("the most is one of them"),
            };
            prop_assert_eq!((memory.total.peak, memory.total.peak_access), (most, peak_access));
            memory.objects.resize(3, Sum::default());
            for (object, of) in memory.objects.iter_mut().enumerate() {
                of.alive.reach(stretches);
                prop_assert_eq!(of.at_peak(memory.total.peak_change), at_peak[object]);
                for stretch in 0..stretches {
                    let end = (stretch as u64 + 1) * width;
                    let before = after.iter().rev().find(|(when, _)| *when < end);
                    prop_assert_eq!(of.alive.at_ends[stretch], before.map_or(0, |(_, alive)| alive[object]));
                }
            }
            for stretch in 0..stretches as u64 {
                let inside = after.iter().filter(|(when, _)| when / width == stretch).map(|(_, alive)| sum(alive));
                let before = after.iter().rev().find(|(when, _)| *when < stretch * width);
                let most = inside.chain(before.map(|(_, alive)| sum(alive))).max().unwrap_or(0);
                prop_assert_eq!(memory.total.most[stretch as usize], most);
            }
        }
    }
}
