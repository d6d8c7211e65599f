//! # Ranges
//!
//! **What it finds.** Which part of each object each thread accesses, and when: the object in at
//! most 64 equal bins, the run in at most 64 equal stretches. For each object and thread it gives
//! the least and the greatest offset, and the range with the middle nine tenths of the accesses, to
//! one bin; and the same for each stretch. Blocks of one allocation are one object: offsets count
//! from each block's beginning.
//!
//! **Why it costs.** Where threads use parts of an object that overlap, they take lines from each
//! other, and on a machine with several nodes of memory the pages of an object cannot all be near
//! all of its threads. Where the part in use moves through an object, the rest need not be in the
//! cache.
//!
//! **What to do.** Parts that do not overlap: have each thread allocate or first touch its own, and
//! round them up to lines. The same part in all threads: interleave its pages, or copy what is only
//! read. A part that stays small: keep it together. One that moves: do all work on it while it is
//! there.
//!
//! **When it is wrong.** Threads and stretches are separate, but a range has only its ends: a part
//! with a hole looks whole, and only the bins show the hole. An access counts where it begins.
//! Stacks are left out, and so is memory of unknown blocks. If blocks have different sizes, the
//! bins are those of the largest. All stretches have the same number of accesses of all threads;
//! their duration is unknown.
//!
//! **Reference.** Liu and Mellor-Crummey, "A tool to analyze the performance of multithreaded
//! programs on NUMA architectures", PPoPP 2014: address-centric attribution, by the least and the
//! greatest address of each thread.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, EventCell, Extras};
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// Bins of an object, and stretches of a run, at most: a power of two.
const MOST: u64 = 64;

const OBJECT: Column = Column { id: "object", holds: Holds::Object };
const THREAD: Column = Column { id: "thread", holds: Holds::Count };
const ACCESSES: Column = Column { id: "accesses", holds: Holds::Count };
const FROM: Column = Column { id: "from", holds: Holds::Bytes };
const P5: Column = Column { id: "p5", holds: Holds::Bytes };
const P95: Column = Column { id: "p95", holds: Holds::Bytes };
const TO: Column = Column { id: "to", holds: Holds::Bytes };
const BINS: Column = Column { id: "bins", holds: Holds::Bins };

/// Numbers in at most [`MOST`] bins of one width, which doubles as larger ones come.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Scale {
    /// The width is 2 to the power of this.
    shift: u32,
}

impl Scale {
    /// The least width with which a number has a bin.
    fn of(number: u64) -> Scale {
        Scale { shift: (u64::BITS - number.leading_zeros()).saturating_sub(MOST.ilog2()) }
    }

    fn bin(self, number: u64) -> u8 {
        (number >> self.shift) as u8
    }

    /// The bin of a wider scale that a bin is in.
    fn rebin(self, bin: u8, wider: Scale) -> u8 {
        bin.checked_shr(wider.shift - self.shift).unwrap_or(0)
    }

    fn first(self, bin: u8) -> u64 {
        u64::from(bin) << self.shift
    }
}

/// Accesses of one thread to one object: by bin and stretch.
type Counts = FxHashMap<(ThreadId, u8, u8), u64>;

/// The accesses to objects of a class.
#[derive(Default)]
struct OfObject {
    bins: Scale,
    /// Bytes of the largest.
    bytes: u64,
    counts: Counts,
}

impl OfObject {
    /// Widens the bins so that an object of this size has no more than there may be.
    fn widen(&mut self, bytes: u64, bins: Scale) {
        self.bytes = self.bytes.max(bytes);
        if bins.shift > self.bins.shift {
            let before = std::mem::replace(&mut self.bins, bins);
            self.rekey(|(thread, bin, stretch)| (thread, before.rebin(bin, bins), stretch));
        }
    }

    fn rekey(&mut self, key: impl Fn((ThreadId, u8, u8)) -> (ThreadId, u8, u8)) {
        for (old, count) in std::mem::take(&mut self.counts) {
            let sum = self.counts.entry(key(old)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

/// A class of objects on its way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedObject {
    object: u32,
    bytes: u64,
    /// Thread, bin, stretch and accesses.
    counts: Vec<(u32, u8, u8, u64)>,
}

/// Accesses by object.
#[derive(Default)]
pub struct InObjects {
    stretches: Scale,
    objects: FxHashMap<u32, OfObject>,
}

impl InObjects {
    /// Widens the stretches so that an access of this number has one.
    fn lengthen(&mut self, stretches: Scale) {
        if stretches.shift > self.stretches.shift {
            let before = std::mem::replace(&mut self.stretches, stretches);
            for object in self.objects.values_mut() {
                object.rekey(|(thread, bin, stretch)| (thread, bin, before.rebin(stretch, stretches)));
            }
        }
    }
}

/// The accesses of some rows to an object, by bin.
struct Spread<'b> {
    bins: &'b [u64; MOST as usize],
    scale: Scale,
    bytes: u64,
}

impl Spread<'_> {
    fn accesses(&self) -> u64 {
        self.bins.iter().fold(0, |sum, more| sum.saturating_add(*more))
    }

    /// The bin up to which this part of the accesses lies.
    fn bin_at(&self, share: f64) -> u8 {
        let wanted = (self.accesses() as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0u64;
        let found = self.bins.iter().position(|count| {
            sum = sum.saturating_add(*count);
            sum >= wanted
        });
        found.unwrap_or(0) as u8
    }

    /// The bins of the object, up to its end.
    fn bins(&self) -> Value {
        let last = self.scale.bin(self.bytes.saturating_sub(1));
        Value::Bins(self.bins[..=usize::from(last).min(self.bins.len() - 1)].to_vec())
    }

    /// Accesses, and the offsets between which all of them and nine tenths of them lie.
    fn values(&self) -> [Value; 5] {
        let last = self.bins.iter().rposition(|count| *count > 0).unwrap_or(0) as u8;
        let end = |bin: u8| self.scale.first(bin).saturating_add(1 << self.scale.shift).min(self.bytes);
        [
            Value::Count(self.accesses()),
            Value::Bytes(self.scale.first(self.bin_at(0.0))),
            Value::Bytes(self.scale.first(self.bin_at(0.05))),
            Value::Bytes(end(self.bin_at(0.95))),
            Value::Bytes(end(last)),
        ]
    }
}

/// See the module's page.
pub struct Ranges;

impl Ranges {
    /// Returns the bins of each stretch of a thread's accesses.
    fn by_stretch(counts: &Counts, thread: ThreadId) -> Vec<(u8, [u64; MOST as usize])> {
        let mut stretches: FxHashMap<u8, [u64; MOST as usize]> = FxHashMap::default();
        for (&(_, bin, stretch), &count) in counts.iter().filter(|((of, ..), _)| *of == thread) {
            let bins = stretches.entry(stretch).or_insert([0; MOST as usize]);
            if let Some(sum) = bins.get_mut(usize::from(bin)) {
                *sum = sum.saturating_add(count);
            }
        }
        let mut stretches: Vec<_> = stretches.into_iter().collect();
        stretches.sort_unstable_by_key(|(stretch, _)| *stretch);
        stretches
    }
}

impl Analysis for Ranges {
    const META: Meta = Meta {
        id: "ranges",
        title: "which part of each object each thread accesses, and when",
        reads: Reads::Rows,
        inlines: false,
        levels: false,
        after: &[],
        // Each access counts by itself; one that is cut counts twice.
        splits: Splits { chunks: false, address: None, thread: true, time: true },
        arguments: &[],
        tables: &[
            TableMeta {
                id: "ranges",
                title: "Parts of objects that threads access: all, and the middle nine tenths of the accesses",
                is_whole: false,
                columns: &[
                    OBJECT,
                    Column { id: "object_bytes", holds: Holds::Bytes },
                    THREAD,
                    ACCESSES,
                    FROM,
                    P5,
                    P95,
                    TO,
                    Column { id: "bin_bytes", holds: Holds::Bytes },
                    BINS,
                ],
            },
            TableMeta {
                id: "ranges_over_time",
                title: "The same, stretch by stretch of the run",
                is_whole: false,
                columns: &[
                    OBJECT,
                    THREAD,
                    Column { id: "first_access", holds: Holds::Count },
                    ACCESSES,
                    FROM,
                    P5,
                    P95,
                    TO,
                    BINS,
                ],
            },
        ],
    };

    type State = InObjects;
    type Saved = (u32, Vec<SavedObject>);

    fn new(_arguments: &Arguments) -> Result<Ranges, BadArgument> {
        Ok(Ranges)
    }

    fn extras(&self) -> Extras {
        Extras { places: true, ..Extras::default() }
    }

    fn start(&self) -> InObjects {
        InObjects::default()
    }

    fn observe(&self, state: &mut InObjects, rows: &AnnotatedAccesses, view: &View<'_>) {
        if let Some(&last) = rows.sequence.last() {
            state.lengthen(Scale::of(last));
        }
        for ((&cell, &sequence), &(offset, bytes)) in rows.cell.iter().zip(&rows.sequence).zip(&rows.place) {
            if bytes == 0 {
                continue;
            }
            let EventCell { thread, object, .. } = view.cell(cell);
            let of = state.objects.entry(object).or_default();
            of.widen(bytes, Scale::of(bytes - 1));
            let key = (thread, of.bins.bin(offset), state.stretches.bin(sequence));
            *of.counts.entry(key).or_default() += 1;
        }
    }

    fn merge(&self, state: &mut InObjects, mut later: InObjects) {
        let longest = state.stretches.max(later.stretches);
        state.lengthen(longest);
        later.lengthen(longest);
        for (object, mut more) in later.objects {
            let of = state.objects.entry(object).or_default();
            let widest = of.bins.max(more.bins);
            of.widen(more.bytes, widest);
            more.widen(0, widest);
            for (key, count) in more.counts {
                let sum = of.counts.entry(key).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }

    fn save(&self, state: InObjects, carried: &mut CellPacker<'_>) -> (u32, Vec<SavedObject>) {
        let mut objects: Vec<(u32, OfObject)> = state.objects.into_iter().collect();
        objects.sort_unstable_by_key(|(object, _)| *object);
        let object = |(object, of): (u32, OfObject)| {
            let counts = of.counts.into_iter();
            let counts =
                counts.map(|((thread, bin, stretch), count)| (thread.0, bin, stretch, count)).collect();
            SavedObject { object: carried.object(object), bytes: of.bytes, counts }
        };
        (state.stretches.shift, objects.into_iter().map(object).collect())
    }

    fn load(
        &self,
        (shift, saved): (u32, Vec<SavedObject>),
        carried: &CellUnpacker<'_>,
    ) -> Result<InObjects, BadNumber> {
        BadNumber::check("stretch", shift.into(), u64::BITS as usize)?;
        let mut state = InObjects { stretches: Scale { shift }, ..InObjects::default() };
        for SavedObject { object, bytes, counts } in saved {
            let of = state.objects.entry(carried.object(object)?).or_default();
            of.widen(bytes, Scale::of(bytes.saturating_sub(1)));
            for (thread, bin, stretch, count) in counts {
                BadNumber::check("bin", bin.into(), MOST as usize)?;
                BadNumber::check("stretch", stretch.into(), MOST as usize)?;
                let sum = of.counts.entry((carried.thread(thread)?, bin, stretch)).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        Ok(state)
    }

    fn finish(&self, state: InObjects, view: &View<'_>) -> Findings {
        let mut objects: Vec<(u32, OfObject)> = state.objects.into_iter().collect();
        let accesses = |of: &OfObject| of.counts.values().fold(0u64, |sum, more| sum.saturating_add(*more));
        // Of equal ones, by what all readers of the trace call alike.
        let name = |object: u32| format!("{:?}", view.cells.objects[object as usize]);
        objects.sort_by_cached_key(|(object, of)| (Reverse(accesses(of)), name(*object)));
        let (mut all, mut over_time) = (Vec::new(), Vec::new());
        for (object, of) in &objects {
            let home = || Value::Object(view.cells.objects[*object as usize].clone());
            let mut threads: Vec<ThreadId> = of.counts.keys().map(|(thread, ..)| *thread).collect();
            threads.sort_unstable();
            threads.dedup();
            for thread in threads {
                let stretches = Ranges::by_stretch(&of.counts, thread);
                let mut whole = [0u64; MOST as usize];
                for (stretch, bins) in &stretches {
                    whole.iter_mut().zip(bins).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
                    let spread = Spread { bins, scale: of.bins, bytes: of.bytes };
                    let first = state.stretches.first(*stretch);
                    let mut row = vec![home(), Value::Count(thread.0.into()), Value::Count(first)];
                    row.extend(spread.values());
                    row.push(spread.bins());
                    over_time.push(row);
                }
                let spread = Spread { bins: &whole, scale: of.bins, bytes: of.bytes };
                let mut row = vec![home(), Value::Bytes(of.bytes), Value::Count(thread.0.into())];
                row.extend(spread.values());
                row.extend([Value::Bytes(1 << of.bins.shift), spread.bins()]);
                all.push(row);
            }
        }
        let [of_run, of_stretches] = Ranges::META.tables else { unreachable!() };
        Findings {
            findings: Vec::new(),
            tables: vec![Table::plain(of_run, all), Table::plain(of_stretches, over_time)],
        }
    }
}
