//! # Shared variables
//!
//! **What it finds.** Memory that several threads use in turn: words of 8 bytes that at least two
//! threads access about equally often and that are written meanwhile, by the data and the lines
//! that do it; and lines of cache that threads share although none of their words is shared.
//!
//! **Why it costs.** A line that one core writes leaves every other core's cache. Each change of
//! hands costs as much as a miss of the last level, also when a lock or an atomic operation keeps
//! the program correct.
//!
//! **What to do.** Give each thread its own and add up at the end. What is only in the same line
//! (the second table), put 64 bytes apart, or group by the thread that uses it.
//!
//! **When it is wrong.** It counts accesses, not changes of hands: threads that use a word one
//! after the other, long apart, share it at no cost. Accesses before the second thread came are
//! charged to the last line that made them. Memory that was freed and given to another thread is
//! the same word.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016): variables whose most frequent thread has less than twice the accesses of the
//! second.
//!
//! **Arguments.** `least=N`: words with fewer accesses are left out (100). `ratio=R`: the busiest
//! thread has less than R times the accesses of the second (2). As in `memlode replay DIR --analyse
//! shared:least=1000,ratio=4`.

use std::cmp::Reverse;

use memlode_attribute::annotate::Events;
use memlode_attribute::tables::{Place, What};
use memlode_trace::event::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Analysis, Argument, Arguments, BadArgument, Column, Found, Holds, Meta, Reads, Splits, Table, TableMeta,
    Value, View,
};

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
}

/// The words that were accessed.
pub struct Words {
    lines: FxHashMap<u64, u32>,
    words: Vec<[Word; WORDS]>,
    shared: Vec<SharedWord>,
    /// Line and its place in `words`.
    recent: Vec<(u64, u32)>,
    /// By cell, of those met so far.
    cells: Vec<Accessor>,
}

impl Words {
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
    const META: Meta = Meta {
        id: "shared",
        title: "memory that threads use in turn",
        reads: Reads::Rows,
        inlines: true,
        after: &[],
        // Which line a word's first thread is charged to depends on what came before, so neither by thread
        // nor by time.
        splits: Splits { address: Some(LINE), thread: false, time: false },
        arguments: &[
            Argument { name: "least", help: "accesses of a word from which on it counts [default: 100]" },
            Argument {
                name: "ratio",
                help: "the busiest thread has less than so many times the accesses of the second [default: 2]",
            },
        ],
        tables: &[
            TableMeta {
                id: "shared_words",
                title: "Words that threads share evenly",
                is_whole: false,
                columns: &[
                    Column { id: "data", holds: Holds::What },
                    Column { id: "line", holds: Holds::Place },
                    Column { id: "accesses", holds: Holds::Count },
                    Column { id: "writes", holds: Holds::Count },
                    Column { id: "words", holds: Holds::Count },
                    Column { id: "threads", holds: Holds::Count },
                    Column { id: "by_thread", holds: Holds::Threads },
                ],
            },
            TableMeta {
                id: "false_sharing",
                title: "Lines that threads share, but no word of them",
                is_whole: false,
                columns: &[
                    Column { id: "data", holds: Holds::What },
                    Column { id: "with", holds: Holds::What },
                    Column { id: "lines", holds: Holds::Count },
                    Column { id: "accesses", holds: Holds::Count },
                ],
            },
        ],
    };

    type State = Words;

    fn new(arguments: &Arguments) -> Result<Shared, BadArgument> {
        Ok(Shared {
            least: arguments.get("least", "a number")?.unwrap_or(100),
            ratio: arguments.get("ratio", "a number")?.unwrap_or(2.0),
        })
    }

    fn start(&self) -> Words {
        Words {
            lines: FxHashMap::default(),
            words: Vec::new(),
            shared: Vec::new(),
            // No line has this number.
            recent: vec![(u64::MAX, 0); RECENT],
            cells: Vec::new(),
        }
    }

    fn observe(&self, words: &mut Words, rows: &Events, view: &View<'_>) {
        for cell in words.cells.len()..view.cells.cells.len() {
            let thread = view.cell(cell as u32).thread;
            let space = view.space(thread);
            words.cells.push(Accessor { thread, writes: view.writes(cell as u32), space });
        }
        for ((&address, &bytes), &cell) in rows.address.iter().zip(&rows.bytes).zip(&rows.cell) {
            let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
            for word in address / WORD..=last / WORD {
                words.touch(word / WORDS as u64, word as usize % WORDS, cell);
            }
        }
    }

    fn merge(&self, words: &mut Words, later: Words) {
        let (before, shared) = (words.words.len() as u32, words.shared.len() as u32);
        words.lines.extend(later.lines.into_iter().map(|(line, place)| (line, before + place)));
        words.words.extend(later.words.into_iter().map(|mut line| {
            for word in line.iter_mut().filter(|word| word.cell == IS_SHARED) {
                word.count += shared;
            }
            line
        }));
        words.shared.extend(later.shared);
        if later.cells.len() > words.cells.len() {
            words.cells = later.cells;
        }
    }

    fn finish(&self, words: Words, view: &View<'_>) -> Found {
        let tables = vec![self.words_table(&words, view), self.lines_table(&words, view)];
        Found { findings: Vec::new(), tables }
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
    fn words_table(&self, words: &Words, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, Place), Sum> = FxHashMap::default();
        for word in words.shared.iter().filter(|word| word.is_written && self.is_even(words, word)) {
            let mut keys: FxHashSet<(What, Place)> = FxHashSet::default();
            for &(cell, count) in &word.by {
                let key = view.key(cell);
                let sum = sums.entry(key).or_default();
                sum.words += u64::from(keys.insert(key));
                sum.accesses += count;
                let accessor = words.cells[cell as usize];
                sum.writes += if accessor.writes { count } else { 0 };
                *sum.threads.entry(accessor.thread).or_default() += count;
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by(|(a, x), (b, y)| y.accesses.cmp(&x.accesses).then_with(|| a.cmp(b)));
        let row = |((what, place), sum): ((What, Place), Sum)| {
            vec![
                Value::What(what),
                Value::Place(place),
                Value::Count(sum.accesses),
                Value::Count(sum.writes),
                Value::Count(sum.words),
                Value::Count(sum.threads.len() as u64),
                Value::Threads(sorted(sum.threads)),
            ]
        };
        Table::plain(&Shared::META.tables[0], rows.into_iter().map(row).collect())
    }

    fn is_even(&self, words: &Words, word: &SharedWord) -> bool {
        let mut threads: FxHashMap<ThreadId, u64> = FxHashMap::default();
        for &(cell, count) in &word.by {
            *threads.entry(words.cells[cell as usize].thread).or_default() += count;
        }
        let threads = sorted(threads);
        let total: u64 = threads.iter().map(|(_, count)| count).sum();
        matches!(threads[..], [(_, most), (_, second), ..]
            if total >= self.least && (most as f64) < self.ratio * second as f64)
    }

    /// Lines of cache that threads share, but no word of them: by the data of the two busiest threads.
    fn lines_table(&self, words: &Words, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, What), (u64, u64)> = FxHashMap::default();
        for line in &words.words {
            let used = || line.iter().filter(|word| word.count & !WRITTEN != 0 || word.cell == IS_SHARED);
            if used().any(|word| word.cell == IS_SHARED) || !used().any(|word| word.count & WRITTEN != 0) {
                continue;
            }
            // By thread: its accesses, and those of its busiest word, which is named.
            let mut threads: FxHashMap<ThreadId, (u64, u32, u32)> = FxHashMap::default();
            for word in used() {
                let count = word.count & !WRITTEN;
                let thread = threads.entry(words.cells[word.cell as usize].thread).or_default();
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
        rows.sort_by_key(|&(key, (_, accesses))| (Reverse(accesses), key));
        let row = |((one, other), (lines, accesses))| {
            vec![Value::What(one), Value::What(other), Value::Count(lines), Value::Count(accesses)]
        };
        Table::plain(&Shared::META.tables[1], rows.into_iter().map(row).collect())
    }
}

fn sorted(threads: FxHashMap<ThreadId, u64>) -> Vec<(ThreadId, u64)> {
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|&(thread, count)| (Reverse(count), thread));
    threads
}
