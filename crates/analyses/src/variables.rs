//! Variables of 1 to 8 bytes, and which threads access each, from begin to end.

use std::cmp::Reverse;

use memlode_attribute::annotate::{AnnotatedAccesses, Life};
use memlode_simulate::Space;
use memlode_trace::event::ThreadId;
use memlode_trace::format::flag;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{BadNumber, CellPacker, CellUnpacker, View};

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
pub(crate) struct Accessor {
    pub thread: ThreadId,
    pub writes: bool,
    /// A variable in a frame of the thread's own stack.
    on_stack: bool,
    object: u32,
    /// Bits that lines of its process have and those of others have not.
    space: Space,
}

/// Variables on their way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedVariables {
    /// The variables of each line.
    lines: Vec<(u64, Vec<SavedVariable>)>,
    /// Variables of a line that ended together.
    ended: Vec<Vec<SavedVariable>>,
}

/// A variable on its way to another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedVariable {
    offset: u16,
    bytes: u16,
    is_shared: bool,
    /// Accesses by cell; for a variable that is not shared, at most the last reader and the last
    /// writer.
    by: Vec<(u32, u64)>,
}

/// The variables that were accessed.
pub struct Variables {
    lines: FxHashMap<u64, u32>,
    variables: Vec<Vec<Variable>>,
    /// Indexed by number: accesses by cell.
    shared: Vec<Vec<(u32, u64)>>,
    /// Variables of a line that ended together, if more than one thread had accessed them.
    ended: Vec<Vec<Variable>>,
    /// Line and its place in `variables`.
    recent: Vec<(u64, u32)>,
    /// Indexed by cell, of those met so far.
    pub(crate) cells: Vec<Accessor>,
}

/// A variable's accesses by cell.
pub(crate) struct Counted {
    offset: u16,
    bytes: u16,
    /// Cell and count.
    pub by: Vec<(u32, u64)>,
}

impl Variables {
    /// An empty set.
    pub fn new() -> Variables {
        Variables {
            lines: FxHashMap::default(),
            variables: Vec::new(),
            shared: Vec::new(),
            ended: Vec::new(),
            // No line has this number.
            recent: vec![(u64::MAX, 0); RECENT],
            cells: Vec::new(),
        }
    }

    /// Looks up the cells that have come since the last time.
    pub fn look_up(&mut self, view: &View<'_>) {
        for cell in self.cells.len()..view.cells.cells.len() {
            let known = view.cell(cell as u32);
            self.cells.push(Accessor {
                thread: known.thread,
                writes: view.writes(cell as u32),
                on_stack: view.site(cell as u32).flags & flag::STACK != 0,
                object: known.object,
                space: view.space(known.thread),
            });
        }
    }

    /// Shows a batch.
    pub fn observe(&mut self, rows: &AnnotatedAccesses, view: &View<'_>) {
        self.look_up(view);
        let line_bytes = view.line_bytes();
        let begun = rows.blocks.iter().filter_map(|block| match block.life {
            Life::Begins { bytes, .. } => Some((block.row as usize, block.process, block.address, bytes)),
            Life::Ends => None,
        });
        let mut begun = begun.peekable();
        for (row, ((&address, &bytes), &cell)) in
            rows.address.iter().zip(&rows.bytes).zip(&rows.cell).enumerate()
        {
            while let Some((_, process, address, bytes)) = begun.next_if(|block| block.0 <= row) {
                self.end(view.process_space(process).place(address), bytes, line_bytes);
            }
            pieces(address, bytes, line_bytes, |first, bytes| {
                self.touch(first / line_bytes, ((first % line_bytes) as u16, bytes), cell);
            });
        }
        begun.for_each(|(_, process, address, bytes)| {
            self.end(view.process_space(process).place(address), bytes, line_bytes);
        });
    }

    /// Adds what another part saw, of other lines.
    pub fn merge(&mut self, later: Variables) {
        let (before, shared) = (self.variables.len() as u32, self.shared.len() as u32);
        let renumbered = |mut line: Vec<Variable>| {
            line.iter_mut().filter(|known| known.is_shared).for_each(|known| known.by[0].0 += shared);
            line
        };
        self.lines.extend(later.lines.into_iter().map(|(line, place)| (line, before + place)));
        self.variables.extend(later.variables.into_iter().map(renumbered));
        self.ended.extend(later.ended.into_iter().map(renumbered));
        self.shared.extend(later.shared);
        if later.cells.len() > self.cells.len() {
            self.cells = later.cells;
        }
    }

    fn saved(&self, line: &[Variable], carried: &mut CellPacker<'_>) -> Vec<SavedVariable> {
        let saved = |known: &Variable| SavedVariable {
            offset: known.offset,
            bytes: known.bytes,
            is_shared: known.is_shared,
            by: self.by(known).into_iter().map(|(cell, count)| (carried.cell(cell), count)).collect(),
        };
        line.iter().map(saved).collect()
    }

    /// Reads what [`Variables::save`] gave.
    pub fn load(saved: SavedVariables, carried: &CellUnpacker<'_>) -> Result<Variables, BadNumber> {
        let mut variables = Variables::new();
        for (line, saved) in saved.lines {
            let loaded = variables.loaded(saved, carried)?;
            variables.lines.insert(line, variables.variables.len() as u32);
            variables.variables.push(loaded);
        }
        for saved in saved.ended {
            let loaded = variables.loaded(saved, carried)?;
            variables.ended.push(loaded);
        }
        Ok(variables)
    }

    /// Makes them ready to leave their replay.
    pub fn save(&self, carried: &mut CellPacker<'_>) -> SavedVariables {
        let mut lines: Vec<_> = self.lines.iter().map(|(&line, &place)| (line, place)).collect();
        lines.sort_unstable();
        let lines = lines.into_iter();
        SavedVariables {
            lines: lines
                .map(|(line, place)| (line, self.saved(&self.variables[place as usize], carried)))
                .collect(),
            ended: self.ended.iter().map(|line| self.saved(line, carried)).collect(),
        }
    }

    /// A line of another replay.
    fn loaded(
        &mut self,
        line: Vec<SavedVariable>,
        carried: &CellUnpacker<'_>,
    ) -> Result<Vec<Variable>, BadNumber> {
        let mut variables = Vec::new();
        for SavedVariable { offset, bytes, is_shared, by } in line {
            let end = u64::from(offset) + u64::from(bytes);
            BadNumber::check("byte of a line", end, u16::MAX.into())?;
            let by = by.into_iter().map(|(cell, count)| Ok((carried.cell(cell)?, count)));
            let by: Vec<(u32, u64)> = by.collect::<Result<_, BadNumber>>()?;
            let mut known = Variable { offset, bytes, is_shared, frame: 0, by: [(0, 0); 2] };
            if is_shared {
                known.by[0].0 = self.shared.len() as u32;
                self.shared.push(by);
            } else {
                BadNumber::check("cell of a variable", by.len() as u64, known.by.len() + 1)?;
                for (known, (cell, count)) in known.by.iter_mut().zip(by) {
                    *known = (cell, u32::try_from(count).unwrap_or(u32::MAX));
                }
            }
            variables.push(known);
        }
        Ok(variables)
    }

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
        if accessor.on_stack {
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

    /// A block begins there: variables in its bytes end.
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

    /// A variable's accesses by cell.
    fn by(&self, known: &Variable) -> Vec<(u32, u64)> {
        match known.is_shared {
            true => self.shared[known.by[0].0 as usize].clone(),
            false => {
                known.by.iter().filter(|by| by.1 > 0).map(|&(cell, count)| (cell, u64::from(count))).collect()
            }
        }
    }

    /// The variables of a line: those that others lie in are taken apart.
    fn counted(&self, variables: &[Variable]) -> Vec<Counted> {
        let count =
            |known: &Variable| Counted { offset: known.offset, bytes: known.bytes, by: self.by(known) };
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
    pub(crate) fn lines(&self) -> impl Iterator<Item = Vec<Counted>> {
        self.variables.iter().chain(&self.ended).map(|line| self.counted(line))
    }

    /// Accesses and writes by thread, the most first.
    pub fn threads(&self, by: &[(u32, u64)]) -> Vec<(ThreadId, u64, u64)> {
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

/// Divides an access into the pieces that are counted: first byte and bytes. Pieces larger than a
/// word are several variables, and none crosses a line.
pub(crate) fn pieces(address: u64, bytes: u32, line_bytes: u64, mut tell: impl FnMut(u64, u16)) {
    let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
    let step = if u64::from(bytes) <= WORD { line_bytes } else { WORD };
    let mut first = address;
    loop {
        let end = (first / step * step + (step - 1)).min(last);
        tell(first, (end - first + 1) as u16);
        if end == last {
            break;
        }
        first = end + 1;
    }
}
