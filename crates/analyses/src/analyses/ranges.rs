//! # Ranges
//!
//! **What it finds.** Which part of each object each thread accesses, and when: the object in at
//! most 64 equal bins, the run in at most 64 equal stretches. For each object and thread it gives
//! the least and the greatest offset, and the range with the middle nine tenths of the accesses, to
//! one bin; and the same for each stretch. Blocks of one allocation are one object: offsets count
//! from each block's beginning. For the objects that the program waits for most, it gives the same
//! by call path; on request, for each thread, by block in order of allocation.
//!
//! **Why it costs.** Where threads use parts of an object that overlap, they take lines from each
//! other, and on a machine with several nodes of memory the pages of an object cannot all be near
//! all of its threads. Where the part in use moves through an object, the rest need not be in the
//! cache. Where one call path sweeps an object that others use in one place, that path alone needs
//! another order. Where only late blocks are in use, early ones keep memory that is not needed, and
//! blocks that are used together may be allocated together.
//!
//! **What to do.** Parts that do not overlap: have each thread allocate or first touch its own, and
//! round them up to lines. The same part in all threads: interleave its pages, or copy what is only
//! read. A part that stays small: keep it together. One that moves: do all work on it while it is
//! there.
//!
//! **When it is wrong.** Threads and stretches are separate, but a range has only its ends: a part
//! with a hole looks whole, and only the bins show the hole. An access counts where it begins.
//! Stacks are left out, and so is memory of unknown blocks. If blocks have different sizes, the
//! bins are those of the largest. A block that `realloc` returns is a new one. Call paths are those
//! of [contexts](contexts.md): recursion is folded, and code that is not compiled with memlode is on
//! none. Stall cycles are an upper bound, as misses overlap. All stretches have the same number of
//! accesses of all threads; their duration is unknown.
//!
//! **Arguments.** `contexts=N`: call paths of the N objects with the most stall cycles, 8; with 0,
//! no caches need be simulated. `blocks=yes`: by block, too.
//!
//! **Reference.** Liu and Mellor-Crummey, "A tool to analyze the performance of multithreaded
//! programs on NUMA architectures", PPoPP 2014: address-centric attribution, by the least and the
//! greatest address of each thread.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, EventCell, Extras, WithinObject};
use memlode_attribute::place::Line;
use memlode_attribute::stack::stack;
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::bins::{Bins, MOST, Scale};
use crate::served::{add, stall_cycles, total};
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// Objects whose call paths are reported, unless an argument says otherwise.
const COSTLIEST: usize = 8;

const OBJECT: Column = Column { id: "object", holds: Holds::Object };
const OBJECT_BYTES: Column = Column { id: "object_bytes", holds: Holds::Bytes };
const THREAD: Column = Column { id: "thread", holds: Holds::Count };
const ACCESSES: Column = Column { id: "accesses", holds: Holds::Count };
const FROM: Column = Column { id: "from", holds: Holds::Bytes };
const P5: Column = Column { id: "p5", holds: Holds::Bytes };
const P95: Column = Column { id: "p95", holds: Holds::Bytes };
const TO: Column = Column { id: "to", holds: Holds::Bytes };
const BIN_BYTES: Column = Column { id: "bin_bytes", holds: Holds::Bytes };
const BINS: Column = Column { id: "bins", holds: Holds::Bins };

/// The accesses on a call path to objects of a class.
#[derive(Default)]
struct OnPath {
    bins: Bins,
    /// Accesses, by the level that served them.
    served: Vec<u64>,
}

/// The accesses to objects of a class.
#[derive(Default)]
struct OfObject {
    bins: Scale,
    /// Bytes of the largest.
    bytes: u64,
    /// Accesses by thread and stretch.
    stretches: FxHashMap<(ThreadId, u8), Bins>,
    /// Accesses by cell and call path.
    paths: FxHashMap<(u32, u32), OnPath>,
    /// The highest number of a block that is accessed, and the accesses by thread and block.
    last_block: u64,
    blocks: FxHashMap<ThreadId, Bins>,
}

impl OfObject {
    /// Widens the bins so that an object of this size has no more than there may be.
    fn widen(&mut self, bytes: u64, bins: Scale) {
        self.bytes = self.bytes.max(bytes);
        if bins > self.bins {
            let before = std::mem::replace(&mut self.bins, bins);
            let on_paths = self.paths.values_mut().map(|on_path| &mut on_path.bins);
            self.stretches.values_mut().chain(on_paths).for_each(|counts| counts.widen(before, bins));
        }
    }

    /// Widens the bins of blocks so that a block of this number has one.
    fn reach(&mut self, block: u64) {
        let before = Scale::of(self.last_block);
        self.last_block = self.last_block.max(block);
        let wider = Scale::of(self.last_block);
        if wider > before {
            self.blocks.values_mut().for_each(|counts| counts.widen(before, wider));
        }
    }

    /// Widens the stretches.
    fn lengthen(&mut self, before: Scale, wider: Scale) {
        for ((thread, stretch), counts) in std::mem::take(&mut self.stretches) {
            self.stretches.entry((thread, before.rebin(stretch, wider))).or_default().add_all(&counts);
        }
    }

    /// Adds accesses of the same class that are counted in bins of the same width.
    fn merge(&mut self, more: OfObject) {
        for (key, counts) in more.stretches {
            self.stretches.entry(key).or_default().add_all(&counts);
        }
        for (key, OnPath { bins, served }) in more.paths {
            let on_path = self.paths.entry(key).or_default();
            on_path.bins.add_all(&bins);
            add(&mut on_path.served, &served);
        }
        for (thread, counts) in more.blocks {
            self.blocks.entry(thread).or_default().add_all(&counts);
        }
    }

    fn accesses(&self) -> u64 {
        self.stretches.values().fold(0, |sum, counts| sum.saturating_add(counts.total()))
    }

    fn stall_cycles(&self, view: &View<'_>) -> u64 {
        let each = self.paths.values().map(|on_path| stall_cycles(&on_path.served, view.latencies));
        each.fold(0, u64::saturating_add)
    }

    /// The offsets between which all accesses and nine tenths of them lie.
    fn bounds(&self, counts: &Bins) -> [Value; 4] {
        counts.bounds(self.bins, self.bytes).map(Value::Bytes)
    }

    /// Returns the accesses of each thread.
    fn by_thread(&self) -> Vec<(ThreadId, OfThread<'_>)> {
        let mut threads: FxHashMap<ThreadId, OfThread<'_>> = FxHashMap::default();
        for ((thread, stretch), counts) in &self.stretches {
            let of = threads.entry(*thread).or_default();
            of.stretches.push((*stretch, counts));
            of.all.add_all(counts);
        }
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.iter_mut().for_each(|(_, of)| of.stretches.sort_unstable_by_key(|(at, _)| *at));
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        threads
    }

    /// Accesses by call path, the costliest first. Threads and sites of one path come together.
    fn by_path(&self, view: &View<'_>) -> Vec<(Vec<(Line, bool)>, OnPath)> {
        let mut sums: FxHashMap<Vec<(Line, bool)>, OnPath> = FxHashMap::default();
        for ((cell, path), OnPath { bins, served }) in &self.paths {
            let site = view.names.site(view.cell(*cell).site);
            let lines = stack(view.names, site, view.cells.path(*path));
            let lines = lines.iter().map(|line| (line.named(view.names), line.is_inlined)).collect();
            let sum = sums.entry(lines).or_default();
            sum.bins.add_all(bins);
            add(&mut sum.served, served);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        let cost = |of: &OnPath| Reverse((stall_cycles(&of.served, view.latencies), total(&of.served)));
        sums.sort_by(|a, b| cost(&a.1).cmp(&cost(&b.1)).then_with(|| a.0.cmp(&b.0)));
        sums
    }
}

/// The accesses of one thread to objects of a class, in each stretch and in all.
#[derive(Default)]
struct OfThread<'b> {
    stretches: Vec<(u8, &'b Bins)>,
    all: Bins,
}

/// A class of objects on its way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedObject {
    object: u32,
    bytes: u64,
    /// Thread, stretch, and accesses by bin.
    stretches: Vec<(u32, u8, Vec<u64>)>,
    /// Cell, path, accesses by bin, and by the level that served them.
    paths: Vec<(u32, u32, Vec<u64>, Vec<u64>)>,
    last_block: u64,
    /// Thread, and accesses by bin of blocks.
    blocks: Vec<(u32, Vec<u64>)>,
}

impl SavedObject {
    fn of(object: u32, of: OfObject, carried: &mut CellPacker<'_>) -> SavedObject {
        let stretches = of.stretches.into_iter();
        let stretches =
            stretches.map(|((thread, stretch), bins)| (thread.0, stretch, bins.counts())).collect();
        let blocks = of.blocks.into_iter().map(|(thread, bins)| (thread.0, bins.counts())).collect();
        let path = |((cell, path), OnPath { bins, served })| {
            (carried.cell(cell), carried.path(path), bins.counts(), served)
        };
        let paths = of.paths.into_iter().map(path).collect();
        let (bytes, last_block) = (of.bytes, of.last_block);
        SavedObject { object: carried.object(object), bytes, stretches, paths, last_block, blocks }
    }

    fn read(self, carried: &CellUnpacker<'_>) -> Result<OfObject, BadNumber> {
        let mut of = OfObject::default();
        of.widen(self.bytes, Scale::of(self.bytes.saturating_sub(1)));
        of.reach(self.last_block);
        for (thread, stretch, bins) in self.stretches {
            BadNumber::check("stretch", stretch.into(), MOST as usize)?;
            let counts = of.stretches.entry((carried.thread(thread)?, stretch)).or_default();
            counts.add_all(&Bins::read(bins)?);
        }
        for (cell, path, bins, served) in self.paths {
            let on_path = of.paths.entry((carried.cell(cell)?, carried.path(path)?)).or_default();
            on_path.bins.add_all(&Bins::read(bins)?);
            add(&mut on_path.served, &carried.by_level(served)?);
        }
        for (thread, bins) in self.blocks {
            of.blocks.entry(carried.thread(thread)?).or_default().add_all(&Bins::read(bins)?);
        }
        Ok(of)
    }
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
        if stretches > self.stretches {
            let before = std::mem::replace(&mut self.stretches, stretches);
            self.objects.values_mut().for_each(|object| object.lengthen(before, stretches));
        }
    }
}

/// See the module's page.
pub struct Ranges {
    /// Objects whose call paths are reported.
    contexts: usize,
    /// True if accesses are also counted by block.
    blocks: bool,
}

impl Ranges {
    /// Makes rows of an object by thread, and of each stretch.
    fn by_thread(
        &self,
        (object, of): (&Value, &OfObject),
        stretches: Scale,
        tables: &mut [Vec<Vec<Value>>; 4],
    ) {
        let [all_of_run, over_time, ..] = tables;
        for (thread, OfThread { stretches: in_stretches, all }) in of.by_thread() {
            let thread = Value::Count(thread.0.into());
            for (stretch, counts) in in_stretches {
                let first = Value::Count(stretches.first(stretch));
                let mut row = vec![object.clone(), thread.clone(), first, Value::Count(counts.total())];
                row.extend(of.bounds(counts));
                row.push(counts.value(of.bins, of.bytes));
                over_time.push(row);
            }
            let mut row = vec![object.clone(), Value::Bytes(of.bytes), thread, Value::Count(all.total())];
            row.extend(of.bounds(&all));
            row.extend([Value::Bytes(of.bins.width()), all.value(of.bins, of.bytes)]);
            all_of_run.push(row);
        }
    }

    /// Makes rows of an object by call path.
    fn by_path((object, of): (&Value, &OfObject), view: &View<'_>) -> Vec<Vec<Value>> {
        let row = |(path, on_path): (Vec<(Line, bool)>, OnPath)| {
            let mut row = vec![object.clone(), Value::Bytes(of.bytes), Value::Stack(path)];
            let cycles = stall_cycles(&on_path.served, view.latencies);
            row.extend([Value::Count(on_path.bins.total()), Value::Count(cycles)]);
            row.extend(of.bounds(&on_path.bins));
            row.extend([Value::Bytes(of.bins.width()), on_path.bins.value(of.bins, of.bytes)]);
            row
        };
        of.by_path(view).into_iter().map(row).collect()
    }

    /// Makes rows of an object by block, if there are several.
    fn by_block((object, of): (&Value, &OfObject)) -> Vec<Vec<Value>> {
        let mut threads: Vec<(&ThreadId, &Bins)> = of.blocks.iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| **thread);
        let (scale, blocks) = (Scale::of(of.last_block), of.last_block.saturating_add(1));
        let row = |(thread, counts): (&ThreadId, &Bins)| {
            let mut row = vec![object.clone(), Value::Count(blocks), Value::Count(thread.0.into())];
            row.push(Value::Count(counts.total()));
            row.extend(counts.bounds(scale, blocks).map(Value::Count));
            row.extend([Value::Count(scale.width()), counts.value(scale, blocks)]);
            row
        };
        threads.into_iter().filter(|_| of.last_block > 0).map(row).collect()
    }
}

const TABLES: [TableMeta; 4] = [
    TableMeta {
        id: "ranges",
        title: "Parts of objects that threads access: all, and the middle nine tenths of the accesses",
        is_whole: false,
        columns: &[OBJECT, OBJECT_BYTES, THREAD, ACCESSES, FROM, P5, P95, TO, BIN_BYTES, BINS],
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
    TableMeta {
        id: "ranges_by_context",
        title: "Parts of the costliest objects, by call path",
        is_whole: false,
        columns: &[
            OBJECT,
            OBJECT_BYTES,
            Column { id: "path", holds: Holds::Stack },
            ACCESSES,
            Column { id: "stall_cycles", holds: Holds::Count },
            FROM,
            P5,
            P95,
            TO,
            BIN_BYTES,
            BINS,
        ],
    },
    TableMeta {
        id: "ranges_by_block",
        title: "Blocks that threads access, by their numbers in order of allocation",
        is_whole: false,
        columns: &[
            OBJECT,
            Column { id: "blocks", holds: Holds::Count },
            THREAD,
            ACCESSES,
            Column { id: "from_block", holds: Holds::Count },
            Column { id: "p5_block", holds: Holds::Count },
            Column { id: "p95_block", holds: Holds::Count },
            Column { id: "to_block", holds: Holds::Count },
            Column { id: "bin_blocks", holds: Holds::Count },
            BINS,
        ],
    },
];

impl Analysis for Ranges {
    const META: Meta = Meta {
        id: "ranges",
        title: "which part of each object each thread accesses, and when",
        reads: Reads::Rows,
        inlines: true,
        levels: true,
        after: &[],
        // Each access counts by itself; one that is cut counts twice.
        splits: Splits { chunks: false, address: None, thread: true, time: true },
        arguments: &[
            Argument { name: "contexts", help: "costliest objects whose call paths are reported (8)" },
            Argument { name: "blocks", help: "`yes`: also by block, in order of allocation (no)" },
        ],
        tables: &TABLES,
    };

    type State = InObjects;
    type Saved = (u32, Vec<SavedObject>);

    fn new(arguments: &Arguments) -> Result<Ranges, BadArgument> {
        let blocks: Option<String> = arguments.get("blocks", "yes or no")?;
        let blocks = match blocks.as_deref() {
            None | Some("no") => false,
            Some("yes") => true,
            Some(other) => {
                return Err(BadArgument(format!("`{other}` is no value for blocks: expected yes or no")));
            }
        };
        let contexts = arguments.get("contexts", "a number of objects")?.unwrap_or(COSTLIEST);
        Ok(Ranges { contexts, blocks })
    }

    fn reads_levels(&self) -> bool {
        self.contexts > 0
    }

    fn extras(&self) -> Extras {
        Extras { places: true, paths: self.contexts > 0, ..Extras::default() }
    }

    fn start(&self) -> InObjects {
        InObjects::default()
    }

    fn observe(&self, state: &mut InObjects, rows: &AnnotatedAccesses, view: &View<'_>) {
        if let Some(&last) = rows.sequence.last() {
            state.lengthen(Scale::of(last));
        }
        let each = rows.cell.iter().zip(&rows.sequence).zip(&rows.place);
        for (row, ((&cell, &sequence), &WithinObject { offset, bytes, block })) in each.enumerate() {
            if bytes == 0 {
                continue;
            }
            let EventCell { thread, object, .. } = view.cell(cell);
            let of = state.objects.entry(object).or_default();
            of.widen(bytes, Scale::of(bytes - 1));
            let bin = of.bins.bin(offset);
            of.stretches.entry((thread, state.stretches.bin(sequence))).or_default().add(bin, 1);
            if self.contexts > 0 {
                let path = rows.path.get(row).copied().unwrap_or(0);
                let on_path = of.paths.entry((cell, path)).or_default();
                on_path.bins.add(bin, 1);
                on_path.served.resize(view.levels.len(), 0);
                on_path.served[usize::from(rows.level[row])] += 1;
            }
            if self.blocks {
                of.reach(block);
                of.blocks.entry(thread).or_default().add(Scale::of(of.last_block).bin(block), 1);
            }
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
            of.reach(more.last_block);
            more.reach(of.last_block);
            of.merge(more);
        }
    }

    fn save(&self, state: InObjects, carried: &mut CellPacker<'_>) -> (u32, Vec<SavedObject>) {
        let mut objects: Vec<(u32, OfObject)> = state.objects.into_iter().collect();
        objects.sort_unstable_by_key(|(object, _)| *object);
        let saved = objects.into_iter().map(|(object, of)| SavedObject::of(object, of, carried));
        (state.stretches.shift, saved.collect())
    }

    fn load(
        &self,
        (shift, saved): (u32, Vec<SavedObject>),
        carried: &CellUnpacker<'_>,
    ) -> Result<InObjects, BadNumber> {
        BadNumber::check("stretch", shift.into(), u64::BITS as usize)?;
        let mut state = InObjects { stretches: Scale { shift }, ..InObjects::default() };
        for object in saved {
            let number = carried.object(object.object)?;
            let of = object.read(carried)?;
            // Each object comes once in what this analysis saves.
            if state.objects.insert(number, of).is_some() {
                return Err(BadNumber { what: "object", number: number.into() });
            }
        }
        Ok(state)
    }

    fn finish(&self, state: InObjects, view: &View<'_>) -> Findings {
        let mut objects: Vec<(u32, OfObject)> = state.objects.into_iter().collect();
        // Of equal ones, by what all readers of the trace call alike.
        let name = |object: u32| format!("{:?}", view.cells.objects[object as usize]);
        objects.sort_by_cached_key(|(object, of)| (Reverse(of.accesses()), name(*object)));
        let value = |object: u32| Value::Object(view.cells.objects[object as usize].clone());
        let mut rows: [Vec<Vec<Value>>; 4] = Default::default();
        for (object, of) in &objects {
            let object = value(*object);
            self.by_thread((&object, of), state.stretches, &mut rows);
            rows[3].extend(Ranges::by_block((&object, of)));
        }
        objects.sort_by_cached_key(|(_, of)| Reverse(of.stall_cycles(view)));
        for (object, of) in objects.iter().take(self.contexts) {
            rows[2].extend(Ranges::by_path((&value(*object), of), view));
        }
        let is_wanted = [true, true, self.contexts > 0, self.blocks];
        let tables = Ranges::META.tables.iter().zip(rows).zip(is_wanted);
        let tables =
            tables.filter(|(_, is_wanted)| *is_wanted).map(|((table, rows), _)| Table::plain(table, rows));
        Findings { findings: Vec::new(), tables: tables.collect() }
    }
}
