//! # Shared variables
//!
//! **What it finds.** Memory that several threads use in turn: variables of 1 to 8 bytes that at least two
//! threads access about equally often and that these write, by the data and the lines that do it; and
//! lines of cache in which threads have variables of their own. Both begin with what is written most.
//!
//! **Why it costs.** A line that one core writes leaves every other core's cache. Each change of
//! hands costs as much as a miss of the last level, also when a lock or an atomic operation keeps
//! the program correct.
//!
//! **What to do.** Give each thread its own and add up at the end. What is only in the same line
//! (the second table), put on lines of its own, or group by the thread that uses it.
//!
//! **When it is wrong.** It counts accesses, not changes of hands: threads that use a variable one
//! after the other, long apart, share it at no cost; `memlode report` has the changes of hands.
//! A thread that accesses a variable much less often than others, as who clears it first or adds up at the end, does not
//! count. Accesses before the second thread came are charged to the last lines that made them. A
//! variable ends where a block begins that has its bytes, and where another function or thread has it
//! on its stack.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016): variables whose most frequent thread has less than twice the accesses of the
//! second. `rule=source` is that to the letter: every address that several threads access and that passes this
//! test, written or not, and the source lines of these by their accesses.
//!
//! **Arguments.** `least=N`: what has fewer accesses is left out (100; with `rule=source`, none is). `ratio=R`: the busiest
//! thread has less than R times the accesses of the second (2). `rule=source`: see above. As in
//! `memlode replay DIR --analyse shared:least=1000,ratio=4`.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, Life};
use memlode_attribute::place::{Place, What};
use memlode_simulate::Space;
use memlode_trace::event::ThreadId;
use memlode_trace::format::flag;
use rustc_hash::FxHashMap;

use crate::{
    Analysis, Argument, Arguments, BadArgument, Blocks, Column, Findings, Holds, Meta, Reads, Splits, Table,
    TableMeta, Value, View,
};

/// Bytes of the largest variable, and of a line.
const WORD: u64 = 8;

/// Lines whose place is found without a hash: a power of two.
const RECENT: usize = 1 << 12;

/// A variable.
#[derive(Clone, Copy)]
struct Variable {
    /// Its first byte in its line.
    offset: u16,
    bytes: u16,
    is_shared: bool,
    /// The cell that accessed it last as a variable of its own stack frame, + 1.
    frame: u32,
    /// Accesses of its one thread, reads and writes: the last cell, and how many. Of a shared one: its number and nothing.
    by: [(u32, u32); 2],
}

/// The part of a cell that matters here.
#[derive(Clone, Copy)]
struct Accessor {
    thread: ThreadId,
    writes: bool,
    /// A variable in a frame of the thread's own stack.
    on_stack: bool,
    object: u32,
    /// Bits that lines of its process have and those of others have not.
    space: Space,
}

/// See the module's page.
pub struct Shared {
    /// Variables with fewer accesses are left out.
    least: u64,
    /// The most frequent thread of a variable has less than so many times the accesses of the second.
    ratio: f64,
    /// As the paper has it.
    as_published: bool,
}

/// The variables that were accessed.
pub struct Variables {
    /// Nothing ends, as nobody looks at the time of an access.
    is_endless: bool,
    lines: FxHashMap<u64, u32>,
    variables: Vec<Vec<Variable>>,
    /// Indexed by number: accesses by cell.
    shared: Vec<Vec<(u32, u64)>>,
    /// Variables of a line that ended together, if more than one thread had accessed them.
    ended: Vec<Vec<Variable>>,
    /// Line and its place in `variables`.
    recent: Vec<(u64, u32)>,
    /// Indexed by cell, of those met so far.
    cells: Vec<Accessor>,
}

/// A variable's accesses by cell.
struct Counted {
    offset: u16,
    bytes: u16,
    by: Vec<(u32, u64)>,
}

impl Variables {
    fn place(&mut self, line: u64) -> usize {
        let recent = &mut self.recent[line as usize % RECENT];
        if recent.0 != line {
            let next = self.variables.len() as u32;
            let place = *self.lines.entry(line).or_insert(next);
            if place == next {
                self.variables.push(Vec::new());
            }
            *recent = (line, place);
        }
        recent.1 as usize
    }

    /// Bytes `offset..offset + bytes` of a line, at most eight.
    fn touch(&mut self, line: u64, (offset, bytes): (u16, u16), cell: u32) {
        let accessor = self.cells[cell as usize];
        let Accessor { thread, writes, space, .. } = accessor;
        let place = self.place(space.place(line));
        let variables = &mut self.variables[place];
        let at = variables.iter().position(|known| (known.offset, known.bytes) == (offset, bytes));
        let at = at.unwrap_or_else(|| {
            variables.push(Variable { offset, bytes, is_shared: false, frame: 0, by: [(0, 0); 2] });
            variables.len() - 1
        });
        let known = &mut variables[at];
        if accessor.on_stack && !self.is_endless {
            let before = known.frame.checked_sub(1).map(|cell| &self.cells[cell as usize]);
            if before.is_some_and(|before| (before.thread, before.object) != (thread, accessor.object)) {
                // Another function's, or thread's, frame lies there now.
                let ended =
                    std::mem::replace(known, Variable { is_shared: false, by: [(0, 0); 2], ..*known });
                if ended.is_shared {
                    self.ended.push(vec![ended]);
                }
            }
            known.frame = cell + 1;
        }
        if known.is_shared {
            let by = &mut self.shared[known.by[0].0 as usize];
            match by.iter_mut().find(|(by, _)| *by == cell) {
                Some((_, count)) => *count += 1,
                None => by.push((cell, 1)),
            }
            return;
        }
        let mut others = known.by.iter().filter(|by| by.1 > 0);
        if others.all(|by| self.cells[by.0 as usize].thread == thread) {
            let (last, count) = &mut known.by[usize::from(writes)];
            (*last, *count) = (cell, count.saturating_add(1));
            return;
        }
        let before = known.by.iter().filter(|by| by.1 > 0).map(|&(cell, count)| (cell, u64::from(count)));
        let by = before.chain([(cell, 1)]).collect();
        (known.is_shared, known.by) = (true, [(self.shared.len() as u32, 0), (0, 0)]);
        self.shared.push(by);
    }

    /// A block begins there: what was there ends.
    fn end(&mut self, base: u64, bytes: u64, line_bytes: u64) {
        let Some(last) = bytes.checked_sub(1).map(|more| base.saturating_add(more)) else { return };
        let (first_line, last_line) = (base / line_bytes, last / line_bytes);
        let mut lines: Vec<(u64, u32)> = if last_line - first_line < self.lines.len() as u64 {
            (first_line..=last_line).filter_map(|line| Some((line, *self.lines.get(&line)?))).collect()
        } else {
            let inside = |line: &u64| (first_line..=last_line).contains(line);
            self.lines.iter().map(|(&line, &place)| (line, place)).filter(|(line, _)| inside(line)).collect()
        };
        lines.sort_unstable();
        for (line, place) in lines {
            let is_in = |known: &mut Variable| {
                let first = line * line_bytes + u64::from(known.offset);
                first >= base && first + u64::from(known.bytes - 1) <= last
            };
            let ended: Vec<Variable> = self.variables[place as usize].extract_if(.., is_in).collect();
            let mut threads = ended.iter().flat_map(|known| known.by).filter(|by| by.1 > 0);
            let first = threads.next().map(|by| self.cells[by.0 as usize].thread);
            let is_of_one = threads.all(|by| Some(self.cells[by.0 as usize].thread) == first);
            if ended.iter().any(|known| known.is_shared) || !is_of_one {
                self.ended.push(ended);
            }
        }
    }

    /// The variables of a line: those that others lie in are taken apart.
    fn counted(&self, variables: &[Variable]) -> Vec<Counted> {
        let by = |known: &Variable| match known.is_shared {
            true => self.shared[known.by[0].0 as usize].clone(),
            false => {
                known.by.iter().filter(|by| by.1 > 0).map(|&(cell, count)| (cell, u64::from(count))).collect()
            }
        };
        let count = |known: &Variable| Counted { offset: known.offset, bytes: known.bytes, by: by(known) };
        let mut all: Vec<Counted> = variables.iter().map(count).collect();
        all.sort_by_key(|known| (Reverse(known.bytes), known.offset));
        let mut parts: Vec<Counted> = Vec::new();
        while let Some(whole) = all.pop() {
            // Smaller ones come first.
            let end = whole.offset + whole.bytes;
            let is_in = |part: &&mut Counted| part.offset >= whole.offset && part.offset + part.bytes <= end;
            let mut inside: Vec<&mut Counted> = parts.iter_mut().filter(is_in).collect();
            for part in &mut inside {
                for &(cell, count) in &whole.by {
                    match part.by.iter_mut().find(|(by, _)| *by == cell) {
                        Some((_, sum)) => *sum += count,
                        None => part.by.push((cell, count)),
                    }
                }
            }
            if inside.is_empty() {
                parts.push(whole);
            }
        }
        parts.sort_by_key(|part| (part.offset, part.bytes));
        parts
    }

    /// All lines, those that ended among them.
    fn lines(&self) -> impl Iterator<Item = Vec<Counted>> {
        self.variables.iter().chain(&self.ended).map(|line| self.counted(line))
    }

    /// Accesses and writes by thread, the most first.
    fn threads(&self, by: &[(u32, u64)]) -> Vec<(ThreadId, u64, u64)> {
        let mut threads: FxHashMap<ThreadId, (u64, u64)> = FxHashMap::default();
        for &(cell, count) in by {
            let Accessor { thread, writes, .. } = self.cells[cell as usize];
            let sum = threads.entry(thread).or_default();
            *sum = (sum.0 + count, sum.1 + if writes { count } else { 0 });
        }
        let mut threads: Vec<_> =
            threads.into_iter().map(|(thread, (all, writes))| (thread, all, writes)).collect();
        threads.sort_by_key(|&(thread, all, _)| (Reverse(all), thread));
        threads
    }
}

impl Analysis for Shared {
    const META: Meta = Meta {
        id: "shared",
        title: "memory that threads use in turn",
        reads: Reads::Rows,
        inlines: true,
        after: &[],
        // Which line a variable's first thread is charged to depends on what came before, so neither by thread
        // nor by time.
        splits: Splits { address: Some(Blocks::Lines), thread: false, time: false },
        arguments: &[
            Argument { name: "least", help: "accesses of a variable from which on it counts [default: 100]" },
            Argument {
                name: "ratio",
                help: "the busiest thread has less than so many times the accesses of the second [default: 2]",
            },
            Argument { name: "rule", help: "`source`: the variables of the paper [default: none]" },
        ],
        tables: &[
            TableMeta {
                id: "shared_words",
                title: "Variables that threads share evenly",
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
                title: "Lines in which threads have variables of their own",
                is_whole: false,
                columns: &[
                    Column { id: "data", holds: Holds::What },
                    Column { id: "with", holds: Holds::What },
                    Column { id: "lines", holds: Holds::Count },
                    Column { id: "accesses", holds: Holds::Count },
                    Column { id: "writes", holds: Holds::Count },
                ],
            },
            TableMeta {
                id: "shared_source",
                title: "Source lines of variables that threads share evenly, by the rule of the paper",
                is_whole: false,
                columns: &[
                    Column { id: "file", holds: Holds::File },
                    Column { id: "line", holds: Holds::Count },
                    Column { id: "variable", holds: Holds::Name },
                    Column { id: "totalcount", holds: Holds::Count },
                    Column { id: "threadcount", holds: Holds::Count },
                    Column { id: "threads", holds: Holds::Threads },
                ],
            },
        ],
    };

    type State = Variables;

    fn new(arguments: &Arguments) -> Result<Shared, BadArgument> {
        let rule: Option<String> = arguments.get("rule", "source")?;
        let as_published = match rule.as_deref() {
            None => false,
            Some("source") => true,
            Some(other) => {
                return Err(BadArgument(format!("`{other}` is no value for rule: expected source")));
            }
        };
        Ok(Shared {
            least: arguments.get("least", "a number")?.unwrap_or(if as_published { 0 } else { 100 }),
            ratio: arguments.get("ratio", "a number")?.unwrap_or(2.0),
            as_published,
        })
    }

    fn start(&self) -> Variables {
        Variables {
            is_endless: self.as_published,
            lines: FxHashMap::default(),
            variables: Vec::new(),
            shared: Vec::new(),
            ended: Vec::new(),
            // No line has this number.
            recent: vec![(u64::MAX, 0); RECENT],
            cells: Vec::new(),
        }
    }

    fn observe(&self, variables: &mut Variables, rows: &AnnotatedAccesses, view: &View<'_>) {
        let line_bytes = view.line_bytes();
        for cell in variables.cells.len()..view.cells.cells.len() {
            let known = view.cell(cell as u32);
            variables.cells.push(Accessor {
                thread: known.thread,
                writes: view.writes(cell as u32),
                on_stack: view.site(cell as u32).flags & flag::STACK != 0,
                object: known.object,
                space: view.space(known.thread),
            });
        }
        let begun = rows.blocks.iter().filter_map(|block| match block.life {
            Life::Begins { bytes, .. } => Some((block.row as usize, block.process, block.address, bytes)),
            Life::Ends => None,
        });
        let mut begun = begun.filter(|_| !self.as_published).peekable();
        for (row, ((&address, &bytes), &cell)) in
            rows.address.iter().zip(&rows.bytes).zip(&rows.cell).enumerate()
        {
            while let Some((_, process, address, bytes)) = begun.next_if(|block| block.0 <= row) {
                variables.end(view.process_space(process).place(address), bytes, line_bytes);
            }
            let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
            let mut first = address;
            loop {
                // Larger ones are several variables.
                let step = if u64::from(bytes) <= WORD { line_bytes } else { WORD };
                let end = (first / step * step + (step - 1)).min(last);
                let piece = ((first % line_bytes) as u16, (end - first + 1) as u16);
                variables.touch(first / line_bytes, piece, cell);
                if end == last {
                    break;
                }
                first = end + 1;
            }
        }
        begun.for_each(|(_, process, address, bytes)| {
            variables.end(view.process_space(process).place(address), bytes, line_bytes);
        });
    }

    fn merge(&self, variables: &mut Variables, later: Variables) {
        let (before, shared) = (variables.variables.len() as u32, variables.shared.len() as u32);
        let renumbered = |mut line: Vec<Variable>| {
            line.iter_mut().filter(|known| known.is_shared).for_each(|known| known.by[0].0 += shared);
            line
        };
        variables.lines.extend(later.lines.into_iter().map(|(line, place)| (line, before + place)));
        variables.variables.extend(later.variables.into_iter().map(renumbered));
        variables.ended.extend(later.ended.into_iter().map(renumbered));
        variables.shared.extend(later.shared);
        if later.cells.len() > variables.cells.len() {
            variables.cells = later.cells;
        }
    }

    fn finish(&self, variables: Variables, view: &View<'_>) -> Findings {
        let tables = match self.as_published {
            true => vec![self.source_table(&variables, view)],
            false => vec![self.variables_table(&variables, view), self.lines_table(&variables, view)],
        };
        Findings { findings: Vec::new(), tables }
    }
}

/// Sums over the variables that one line of source text shares.
#[derive(Default)]
struct Sum {
    variables: u64,
    accesses: u64,
    writes: u64,
    threads: FxHashMap<ThreadId, u64>,
}

impl Sum {
    fn add(&mut self, Accessor { thread, writes, .. }: Accessor, count: u64) {
        self.accesses += count;
        self.writes += if writes { count } else { 0 };
        *self.threads.entry(thread).or_default() += count;
    }
}

impl Shared {
    /// Returns whether a thread with so many accesses counts beside the one that has the most.
    fn counts(&self, accesses: u64, most: u64) -> bool {
        (most as f64) < self.ratio * accesses as f64
    }

    /// Variables that threads share evenly, by data and line.
    fn variables_table(&self, variables: &Variables, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, Place), Sum> = FxHashMap::default();
        for shared in variables.lines().flatten() {
            let threads = variables.threads(&shared.by);
            let total: u64 = threads.iter().map(|thread| thread.1).sum();
            let [(_, most, _), (_, second, _), ..] = threads[..] else { continue };
            let even = threads.iter().filter(|thread| self.counts(thread.1, most));
            if total < self.least || !self.counts(second, most) || even.clone().all(|thread| thread.2 == 0) {
                continue;
            }
            let even: Vec<ThreadId> = even.map(|thread| thread.0).collect();
            let mut keys: Vec<(What, Place)> = Vec::new();
            for &(cell, count) in &shared.by {
                let accessor = variables.cells[cell as usize];
                if even.contains(&accessor.thread) {
                    let key = view.key(cell);
                    let sum = sums.entry(key).or_default();
                    sum.variables += u64::from(!keys.contains(&key));
                    keys.push(key);
                    sum.add(accessor, count);
                }
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(key, sum)| (Reverse(sum.writes), Reverse(sum.accesses), *key));
        let row = |((what, place), sum): ((What, Place), Sum)| {
            vec![
                Value::What(what),
                Value::Place(place),
                Value::Count(sum.accesses),
                Value::Count(sum.writes),
                Value::Count(sum.variables),
                Value::Count(sum.threads.len() as u64),
                Value::Threads(sorted(sum.threads)),
            ]
        };
        Table::plain(&Shared::META.tables[0], rows.into_iter().map(row).collect())
    }

    /// Lines of cache in which threads have variables of their own: by the data of the two busiest threads.
    fn lines_table(&self, variables: &Variables, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(What, What), (u64, u64, u64)> = FxHashMap::default();
        for line in variables.lines() {
            // By thread: accesses and writes of its variables, and of the busiest one, which is named.
            let mut threads: FxHashMap<ThreadId, (u64, u64, u64, u32)> = FxHashMap::default();
            for own in line {
                let by = variables.threads(&own.by);
                let Some(&(thread, most, writes)) = by.first() else { continue };
                if by.get(1).is_some_and(|second| self.counts(second.1, most)) {
                    continue;
                }
                let is_its = |by: &&(u32, u64)| variables.cells[by.0 as usize].thread == thread;
                let cell = own.by.iter().filter(is_its).max_by_key(|by| (by.1, Reverse(by.0)));
                let sum = threads.entry(thread).or_default();
                (sum.0, sum.1) = (sum.0 + most, sum.1 + writes);
                if let Some(&(cell, _)) = cell.filter(|_| most > sum.2) {
                    (sum.2, sum.3) = (most, cell);
                }
            }
            let mut threads: Vec<_> = threads.into_values().collect();
            threads.sort_by(|a, b| b.cmp(a));
            let [(most, _, _, one), (second, _, _, other), ..] = threads[..] else { continue };
            let total: u64 = threads.iter().map(|thread| thread.0).sum();
            let writes: u64 = threads.iter().map(|thread| thread.1).sum();
            if total >= self.least && self.counts(second, most) && writes > 0 {
                let sum = sums.entry((view.key(one).0, view.key(other).0)).or_default();
                *sum = (sum.0 + 1, sum.1 + total, sum.2 + writes);
            }
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|&(key, (_, accesses, writes))| (Reverse(writes), Reverse(accesses), key));
        let row = |((one, other), (lines, accesses, writes))| {
            let counts = [lines, accesses, writes].map(Value::Count);
            [Value::What(one), Value::What(other)].into_iter().chain(counts).collect()
        };
        Table::plain(&Shared::META.tables[1], rows.into_iter().map(row).collect())
    }

    /// The rule of the paper: source lines of addresses that threads access evenly.
    fn source_table(&self, variables: &Variables, view: &View<'_>) -> Table {
        let mut sums: FxHashMap<(Place, What), Sum> = FxHashMap::default();
        for line in &variables.variables {
            let mut addresses: FxHashMap<u16, Vec<(u32, u64)>> = FxHashMap::default();
            for known in line {
                let counted = variables.counted(std::slice::from_ref(known));
                addresses
                    .entry(known.offset)
                    .or_default()
                    .extend(counted.into_iter().flat_map(|known| known.by));
            }
            for by in addresses.into_values() {
                let threads = variables.threads(&by);
                let [(_, most, _), (_, second, _), ..] = threads[..] else { continue };
                let total: u64 = threads.iter().map(|thread| thread.1).sum();
                if total < self.least || !self.counts(second, most) {
                    continue;
                }
                for (cell, count) in by {
                    let (what, place) = view.key(cell);
                    sums.entry((place, what)).or_default().add(variables.cells[cell as usize], count);
                }
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
        Table::plain(&Shared::META.tables[2], rows.into_iter().map(row).collect())
    }
}

fn sorted(threads: FxHashMap<ThreadId, u64>) -> Vec<(ThreadId, u64)> {
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|&(thread, count)| (Reverse(count), thread));
    threads
}
