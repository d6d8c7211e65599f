//! # Locks
//!
//! **What it finds.** For each lock that several threads take: how often it was taken and changed
//! hands, what the program accessed while it was held, how many modelled cycles that stalled, and
//! which lines of data came from the thread that had it before. Locks that were allocated by one
//! call are one row.
//!
//! **Why it costs.** Work under a lock is done by one thread at a time, so each of its cycles
//! counts for all waiting threads. When a lock changes hands, its line comes over from another
//! core, and then the data that it guards, line by line.
//!
//! **What to do.** Move work that needs no lock out of it. Put the data that one lock guards into
//! as few lines as possible: beside the lock if few threads wait for it, in separate lines if many
//! do. Let each thread gather its results, and take the lock once for all of them; or give parts of
//! the data separate locks.
//!
//! **When it is wrong.** The schedule decides which thread gets a lock next, and recording slows
//! threads down: another run changes hands at other times. Locks are those of libc, libstdc++,
//! libc++ and other libraries that the pass knows; a lock that a program makes of atomic operations
//! looks like a counter and is missing here; `memlode report` lists it among the lines that threads
//! take from each other. A line that came is one that another thread wrote last under the same lock
//! and this one had not accessed since; it may have come earlier, without the lock. Stall cycles
//! are an upper bound, as misses overlap, and assume caches from which no other thread takes a
//! line; `memlode report` has the cost of lines that come from another core. A thread that waits
//! for a condition holds no lock meanwhile, and accesses nothing.
//!
//! **Reference.** Tallent, Mellor-Crummey and Porterfield, "Analyzing lock contention in
//! multithreaded applications", PPoPP 2010, who blame the holder of a lock for what others wait.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, Extras, SyncEvent};
use memlode_attribute::place::{Place, What};
use memlode_trace::event::{SyncKind, ThreadId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::addresses::sorted;
use crate::served::{add, misses, stall_cycles, total};
use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

const LOCK: Column = Column { id: "lock", holds: Holds::Object };

/// See the module's page.
pub struct Locks;

/// A line under a lock.
struct LineUse {
    /// The thread that wrote it last.
    writer: Option<ThreadId>,
    /// Other threads that have accessed it since.
    readers: Vec<ThreadId>,
}

/// One lock.
#[derive(Default)]
struct Lock {
    object: u32,
    takes: FxHashMap<ThreadId, u64>,
    changes: u64,
    last: Option<ThreadId>,
    /// Accesses while it was held, by the level that served them.
    served: Vec<u64>,
    lines: FxHashMap<u64, LineUse>,
    /// Lines that came with it, by the cell that accessed them first.
    came: FxHashMap<u32, u64>,
}

impl Lock {
    fn taken(&mut self, thread: ThreadId) {
        *self.takes.entry(thread).or_default() += 1;
        self.changes += u64::from(self.last.is_some_and(|last| last != thread));
        self.last = Some(thread);
    }

    /// A line is accessed while a thread holds it.
    fn touch(&mut self, line: u64, thread: ThreadId, writes: bool, cell: u32) {
        let fresh = LineUse { writer: None, readers: Vec::new() };
        let known = self.lines.entry(line).or_insert(fresh);
        let is_new = known.writer != Some(thread) && !known.readers.contains(&thread);
        if is_new && known.writer.is_some() {
            *self.came.entry(cell).or_default() += 1;
        }
        if writes {
            (known.writer, known.readers) = (Some(thread), Vec::new());
        } else if is_new {
            known.readers.push(thread);
        }
    }
}

/// The locks so far.
#[derive(Default)]
pub struct Held {
    numbers: FxHashMap<u64, usize>,
    locks: Vec<Lock>,
    /// Indexed by thread: the locks that it holds.
    by_thread: Vec<Vec<usize>>,
    /// Locks that other states brought, by object.
    sums: FxHashMap<u32, OfObject>,
}

/// All locks of a class of objects that several threads took.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct OfObject {
    locks: u64,
    changes: u64,
    served: Vec<u64>,
    /// Times taken by thread.
    takes: Vec<(u32, u64)>,
    /// Lines that came, by cell.
    came: Vec<(u32, u64)>,
}

impl OfObject {
    fn merge(&mut self, more: OfObject) {
        self.locks = self.locks.saturating_add(more.locks);
        self.changes = self.changes.saturating_add(more.changes);
        add(&mut self.served, &more.served);
        self.takes.extend(more.takes);
        self.came.extend(more.came);
    }
}

impl Held {
    fn sync(&mut self, sync: &SyncEvent) {
        let thread = sync.thread.0 as usize;
        if thread >= self.by_thread.len() {
            self.by_thread.resize_with(thread + 1, Vec::new);
        }
        match sync.kind {
            SyncKind::Lock => {
                let next = self.locks.len();
                let number = *self.numbers.entry(sync.address).or_insert(next);
                if number == next {
                    self.locks.push(Lock { object: sync.object, ..Lock::default() });
                }
                self.locks[number].taken(sync.thread);
                // A recursive one is held until it was given back as often.
                self.by_thread[thread].push(number);
            }
            SyncKind::Unlock => {
                let Some(number) = self.numbers.get(&sync.address) else { return };
                let held = &mut self.by_thread[thread];
                if let Some(at) = held.iter().rposition(|lock| lock == number) {
                    held.remove(at);
                }
            }
            _ => {}
        }
    }

    /// Returns what the locks of each class of objects did that several threads took.
    fn sums(self) -> FxHashMap<u32, OfObject> {
        let mut sums = self.sums;
        for lock in self.locks.into_iter().filter(|lock| lock.takes.len() > 1) {
            let more = OfObject {
                locks: 1,
                changes: lock.changes,
                served: lock.served,
                takes: lock.takes.into_iter().map(|(thread, times)| (thread.0, times)).collect(),
                came: lock.came.into_iter().collect(),
            };
            sums.entry(lock.object).or_default().merge(more);
        }
        sums
    }
}

impl Analysis for Locks {
    const META: Meta = Meta {
        id: "locks",
        title: "locks that several threads take, and what is done while one is held",
        reads: Reads::Rows,
        inlines: true,
        levels: true,
        after: &[],
        // Who had a lock before, and which lines under it, is what all threads did before.
        splits: Splits { chunks: false, address: None, thread: false, time: false },
        arguments: &[],
        tables: &[
            TableMeta {
                id: "locks",
                title: "Locks that several threads take",
                is_whole: false,
                columns: &[
                    LOCK,
                    Column { id: "locks", holds: Holds::Count },
                    Column { id: "takes", holds: Holds::Count },
                    Column { id: "changes_of_hands", holds: Holds::Count },
                    Column { id: "accesses_held", holds: Holds::Count },
                    Column { id: "*_misses", holds: Holds::Count },
                    Column { id: "stall_cycles_held", holds: Holds::Count },
                    Column { id: "lines_came", holds: Holds::Count },
                    Column { id: "takes_by_thread", holds: Holds::Threads },
                ],
            },
            TableMeta {
                id: "locks_lines",
                title: "Lines of data that came with a lock, by what accessed them first",
                is_whole: false,
                columns: &[
                    LOCK,
                    Column { id: "data", holds: Holds::What },
                    Column { id: "line", holds: Holds::Place },
                    Column { id: "lines_came", holds: Holds::Count },
                ],
            },
        ],
    };

    type State = Held;
    type Saved = Vec<(u32, OfObject)>;

    fn new(_arguments: &Arguments) -> Result<Locks, BadArgument> {
        Ok(Locks)
    }

    fn extras(&self) -> Extras {
        Extras { syncs: true, ..Extras::default() }
    }

    fn start(&self) -> Held {
        Held::default()
    }

    fn observe(&self, held: &mut Held, rows: &AnnotatedAccesses, view: &View<'_>) {
        let line_bytes = view.line_bytes();
        let mut syncs = rows.syncs.iter().peekable();
        for row in 0..rows.rows() {
            while let Some(sync) = syncs.next_if(|sync| sync.row as usize <= row) {
                held.sync(sync);
            }
            let cell = rows.cell[row];
            let thread = view.cell(cell).thread;
            let Held { locks, by_thread, .. } = held;
            for &lock in by_thread.get(thread.0 as usize).into_iter().flatten() {
                let lock = &mut locks[lock];
                lock.served.resize(view.levels.len(), 0);
                lock.served[usize::from(rows.level[row])] += 1;
                let (first, bytes) = (rows.address[row], u64::from(rows.bytes[row].max(1)));
                for line in first / line_bytes..=first.saturating_add(bytes - 1) / line_bytes {
                    lock.touch(line, thread, view.writes(cell), cell);
                }
            }
        }
        syncs.for_each(|sync| held.sync(sync));
    }

    fn merge(&self, held: &mut Held, later: Held) {
        for (object, more) in later.sums() {
            held.sums.entry(object).or_default().merge(more);
        }
    }

    fn save(&self, held: Held, carried: &mut CellPacker<'_>) -> Vec<(u32, OfObject)> {
        // Their numbers on the way are in the order of those here.
        let mut sums: Vec<(u32, OfObject)> = held.sums().into_iter().collect();
        sums.sort_by_key(|(object, _)| *object);
        let saved = sums.into_iter().map(|(object, mut of)| {
            of.came.iter_mut().for_each(|(cell, _)| *cell = carried.cell(*cell));
            (carried.object(object), of)
        });
        saved.collect()
    }

    fn load(&self, saved: Vec<(u32, OfObject)>, carried: &CellUnpacker<'_>) -> Result<Held, BadNumber> {
        let mut held = Held::default();
        for (object, mut of) in saved {
            if !of.served.is_empty() {
                of.served = carried.by_level(of.served)?;
            }
            for (thread, _) in &of.takes {
                carried.thread(*thread)?;
            }
            for (cell, _) in &mut of.came {
                *cell = carried.cell(*cell)?;
            }
            held.sums.entry(carried.object(object)?).or_default().merge(of);
        }
        Ok(held)
    }

    fn finish(&self, held: Held, view: &View<'_>) -> Findings {
        let stall = |of: &OfObject| stall_cycles(&of.served, view.latencies);
        let object = |object: u32| Value::Object(view.cells.objects[object as usize].clone());
        let mut locks: Vec<(u32, OfObject)> = held.sums().into_iter().collect();
        locks.sort_by_key(|(object, of)| (Reverse((of.changes, stall(of))), *object));
        let lock_row = |(lock, of): &(u32, OfObject)| {
            let mut threads: FxHashMap<ThreadId, u64> = FxHashMap::default();
            for &(thread, times) in &of.takes {
                let sum = threads.entry(ThreadId(thread)).or_default();
                *sum = sum.saturating_add(times);
            }
            let takes = threads.values().fold(0, |sum: u64, times| sum.saturating_add(*times));
            let counts = [of.locks, takes, of.changes, total(&of.served)];
            let missed: Vec<u64> = match of.served.is_empty() {
                true => vec![0; view.caches().len()],
                false => misses(&of.served).collect(),
            };
            let came = of.came.iter().fold(0, |sum: u64, (_, lines)| sum.saturating_add(*lines));
            let counts = counts.into_iter().chain(missed).chain([stall(of), came]);
            let mut row = vec![object(*lock)];
            row.extend(counts.map(Value::Count));
            row.push(Value::Threads(sorted(threads)));
            row
        };
        let rows = locks.iter().map(lock_row).collect();
        let mut lines: FxHashMap<(usize, What, Place), u64> = FxHashMap::default();
        for (rank, (_, of)) in locks.iter().enumerate() {
            for &(cell, came) in &of.came {
                let (what, place) = view.key(cell);
                let sum = lines.entry((rank, what, place)).or_default();
                *sum = sum.saturating_add(came);
            }
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|&(key, came)| (Reverse(came), key));
        let line_row = |((rank, what, place), came): ((usize, What, Place), u64)| {
            vec![object(locks[rank].0), Value::What(what), Value::Place(place), Value::Count(came)]
        };
        let [of_locks, of_lines] = Locks::META.tables else { unreachable!() };
        let tables = vec![
            Table::new(of_locks, view.caches(), true, rows),
            Table::plain(of_lines, lines.into_iter().map(line_row).collect()),
        ];
        Findings { findings: Vec::new(), tables }
    }
}
