//! # Shared variables
//!
//! **What it finds.** Memory that several threads use in turn: words that at least two threads access about equally often and that are
//! written meanwhile, by the data and the lines that do it; and lines of cache that threads share although none of their words is shared.
//!
//! **Why it costs.** A line that one core writes leaves every other core's cache. Each change of hands costs as much as a miss of
//! the last level, also when a lock or an atomic operation keeps the program correct.
//!
//! **What to do.** Give each thread its own and add up at the end. What is only in the same line (the second table), put 64 bytes apart, or
//! group by the thread that uses it.
//!
//! **When it is wrong.** It counts accesses, not changes of hands: threads that use a word one after the other, long apart, share it at no cost.
//! Accesses before the second thread came are charged to the last line that made them. Memory that was freed and given to another thread is the
//! same word.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance profiling (2016): variables whose
//! most frequent thread has less than twice the accesses of the second.

use memlode_attribute::annotate::Events;
use memlode_attribute::tables::{Place, What};
use memlode_trace::event::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Meta;
use crate::events::{Analysis, Arguments, BadArgument, Known, Table, Value, View};

/// Bytes of a word, and of a line.
const WORD: u64 = 8;
const LINE: u64 = 64;
const WORDS: usize = (LINE / WORD) as usize;

/// Lines whose place is found without a hash: a power of two.
const RECENT: usize = 1 << 12;

/// A word that several threads have accessed.
const IS_SHARED: u32 = u32::MAX;

/// Set in a word's count if it was written.
const WRITTEN: u32 = 1 << 31;

/// A word by the one thread that uses it.
#[derive(Clone, Copy, Default)]
struct Word {
    /// The cell that accessed it last, of its only thread; or [`IS_SHARED`].
    cell: u32,
    /// Accesses; or the number of the shared word. And [`WRITTEN`].
    count: u32,
}

/// A word that several threads use.
#[derive(Default)]
struct SharedWord {
    /// Accesses by cell.
    by: Vec<(u32, u64)>,
    /// Whether it was written since there were two threads.
    is_written: bool,
}

/// What matters of a cell.
#[derive(Clone, Copy)]
struct Accessor {
    thread: ThreadId,
    writes: bool,
    /// Bits that lines of its process have and those of others have not.
    space: u64,
}

/// See the module's page.
pub struct Shared {
    /// Words with fewer accesses are left out.
    least: u64,
    /// The most frequent thread of a word has less than so many times the accesses of the second.
    ratio: f64,
    lines: FxHashMap<u64, u32>,
    words: Vec<[Word; WORDS]>,
    shared: Vec<SharedWord>,
    /// Line and its place in `words`.
    recent: Vec<(u64, u32)>,
    /// By cell, of those met so far.
    cells: Vec<Accessor>,
}

impl Shared {
    /// How it is asked for.
    pub const KNOWN: Known = Known {
        meta: Meta { id: "shared", title: "memory that threads use in turn" },
        arguments: &[
            ("least", "accesses of a word from which on it counts [default: 100]"),
            (
                "ratio",
                "the busiest thread has less than so many times the accesses of the second [default: 2]",
            ),
        ],
        make: |arguments| {
            arguments.check(&Shared::KNOWN)?;
            Ok(Box::new(Shared::new(arguments)?))
        },
    };

    /// Reads its arguments.
    pub fn new(arguments: &Arguments) -> Result<Shared, BadArgument> {
        Ok(Shared {
            least: arguments.get("least")?.unwrap_or(100),
            ratio: arguments.get("ratio")?.unwrap_or(2.0),
            lines: FxHashMap::default(),
            words: Vec::new(),
            shared: Vec::new(),
            // No line has this number.
            recent: vec![(u64::MAX, 0); RECENT],
            cells: Vec::new(),
        })
    }

    fn place(&mut self, line: u64) -> usize {
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.0 != line {
            let next = self.words.len() as u32;
            let place = *self.lines.entry(line).or_insert(next);
            if place == next {
                self.words.push([Word::default(); WORDS]);
            }
            *recent = (line, place);
        }
        recent.1 as usize
    }

    fn touch(&mut self, line: u64, word: usize, cell: u32) {
        let Accessor { thread, writes, space } = self.cells[cell as usize];
        let place = self.place(line ^ space);
        let known = &mut self.words[place][word];
        if known.cell == IS_SHARED {
            let shared = &mut self.shared[(known.count & !WRITTEN) as usize];
            shared.is_written |= writes;
            match shared.by.iter_mut().find(|(by, _)| *by == cell) {
                Some((_, count)) => *count += 1,
                None => shared.by.push((cell, 1)),
            }
            return;
        }
        let count = known.count & !WRITTEN;
        let written = known.count & WRITTEN | if writes { WRITTEN } else { 0 };
        if count == 0 || self.cells[known.cell as usize].thread == thread {
            *known = Word { cell, count: (count + 1).min(!WRITTEN) | written };
            return;
        }
        let by = vec![(known.cell, u64::from(count)), (cell, 1)];
        *known = Word { cell: IS_SHARED, count: self.shared.len() as u32 | written };
        self.shared.push(SharedWord { by, is_written: writes });
    }
}

impl Analysis for Shared {
    fn take(&mut self, events: &Events, view: View<'_>) {
        for cell in self.cells.len()..view.cells.cells.len() {
            let thread = view.cell(cell as u32).thread;
            // User addresses have 48 bits at most.
            let space = view.space(thread);
            self.cells.push(Accessor { thread, writes: view.writes(cell as u32), space });
        }
        for ((&address, &bytes), &cell) in events.address.iter().zip(&events.bytes).zip(&events.cell) {
            let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
            for word in address / WORD..=last / WORD {
                self.touch(word / WORDS as u64, word as usize % WORDS, cell);
            }
        }
    }

    fn finish(self: Box<Self>, view: View<'_>) -> Vec<Table> {
        vec![self.words_table(view), self.lines_table(view)]
    }
}

/// What is known of the words that one line of source text shares.
#[derive(Default)]
struct Sum {
    words: u64,
    accesses: u64,
    writes: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Shared {
    /// Words that threads share evenly, by data and line.
    fn words_table(&self, view: View<'_>) -> Table {
        let mut sums: FxHashMap<(What, Place), Sum> = FxHashMap::default();
        for word in self.shared.iter().filter(|word| word.is_written && self.is_even(word)) {
            let mut keys: FxHashSet<(What, Place)> = FxHashSet::default();
            for &(cell, count) in &word.by {
                let key = view.key(cell);
                let sum = sums.entry(key).or_default();
                sum.words += u64::from(keys.insert(key));
                sum.accesses += count;
                let accessor = self.cells[cell as usize];
                sum.writes += if accessor.writes { count } else { 0 };
                *sum.threads.entry(accessor.thread).or_default() += count;
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by(|(a, x), (b, y)| y.accesses.cmp(&x.accesses).then_with(|| a.cmp(b)));
        let row = |((what, place), sum): ((What, Place), Sum)| {
            vec![
                Value::What(Some(what)),
                Value::Place(place),
                Value::Count(sum.accesses),
                Value::Count(sum.writes),
                Value::Count(sum.words),
                Value::Count(sum.threads.len() as u64),
                Value::Threads(sorted(sum.threads)),
            ]
        };
        Table {
            id: "shared_words",
            title: "Words that threads share evenly".into(),
            columns: names(&["data", "line", "accesses", "writes", "words", "threads", "by_thread"]),
            rows: rows.into_iter().map(row).collect(),
            is_whole: false,
        }
    }

    fn is_even(&self, word: &SharedWord) -> bool {
        let mut threads: FxHashMap<ThreadId, u64> = FxHashMap::default();
        for &(cell, count) in &word.by {
            *threads.entry(self.cells[cell as usize].thread).or_default() += count;
        }
        let threads = sorted(threads);
        let total: u64 = threads.iter().map(|(_, count)| count).sum();
        matches!(threads[..], [(_, most), (_, second), ..]
            if total >= self.least && (most as f64) < self.ratio * second as f64)
    }

    /// Lines of cache that threads share, but no word of them: by the data of the two busiest threads.
    fn lines_table(&self, view: View<'_>) -> Table {
        let mut sums: FxHashMap<(What, What), (u64, u64)> = FxHashMap::default();
        for line in &self.words {
            let used = || line.iter().filter(|word| word.count & !WRITTEN != 0 || word.cell == IS_SHARED);
            if used().any(|word| word.cell == IS_SHARED) || !used().any(|word| word.count & WRITTEN != 0) {
                continue;
            }
            // By thread: its accesses, and those of its busiest word, which is named.
            let mut threads: FxHashMap<ThreadId, (u64, u32, u32)> = FxHashMap::default();
            for word in used() {
                let count = word.count & !WRITTEN;
                let thread = threads.entry(self.cells[word.cell as usize].thread).or_default();
                thread.0 += u64::from(count);
                if count > thread.1 {
                    (thread.1, thread.2) = (count, word.cell);
                }
            }
            let mut threads: Vec<_> = threads.into_values().collect();
            threads.sort_by(|a, b| b.cmp(a));
            let [(most, _, one), (second, _, other), ..] = threads[..] else { continue };
            let total: u64 = threads.iter().map(|thread| thread.0).sum();
            if total >= self.least && (most as f64) < self.ratio * second as f64 {
                let sum = sums.entry((view.key(one).0, view.key(other).0)).or_default();
                *sum = (sum.0 + 1, sum.1 + total);
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|&(key, (_, accesses))| (std::cmp::Reverse(accesses), key));
        let row = |((one, other), (lines, accesses))| {
            vec![
                Value::What(Some(one)),
                Value::What(Some(other)),
                Value::Count(lines),
                Value::Count(accesses),
            ]
        };
        Table {
            id: "false_sharing",
            title: "Lines that threads share, but no word of them".into(),
            columns: names(&["data", "with", "lines", "accesses"]),
            rows: rows.into_iter().map(row).collect(),
            is_whole: false,
        }
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn sorted(threads: FxHashMap<ThreadId, u64>) -> Vec<(ThreadId, u64)> {
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|&(thread, count)| (std::cmp::Reverse(count), thread));
    threads
}
