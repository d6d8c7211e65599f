//! # Values
//!
//! **What it finds.** Members, variables and arrays that need fewer bytes than they have: all their
//! values are *one*, or a *few* (16 at most), or fit *narrow*er numbers. Stores of the value that
//! is already in memory (*silent* stores), and loads that read the same value there as the load
//! before (*redundant* loads), by line. It needs recorded values: build the program with `--values`
//! ([compiling](../compiling.md)).
//!
//! **Why it costs.** Unnecessary bytes take room in each line that is fetched. A silent store makes
//! its line dirty, so the line is written back, and taken from the other cores. A redundant load
//! mostly leads to a result that was already computed.
//!
//! **What to do.** Declare members and elements with smaller types; replace the few values by an
//! index; remove members that never change. `memlode whatif --edit 'narrow T: m to N'`, or
//! `'remove T: m'`, shows the gain; `memlode advise` tries both. Compare before storing to
//! data that threads share, or mark what has changed and store only that. Keep results until their
//! inputs change.
//!
//! **When it is wrong.** The values are those of one run: another input may need more. Writes of
//! the kernel, and of code that memlode did not compile, are not seen until the value is loaded: a
//! store that restores the old value is then taken for silent. A newly allocated block counts as
//! new memory. Local variables and atomic and volatile accesses are left out. Cycles are those of
//! all accesses of the row that missed, as if their waits did not overlap.
//!
//! **Reference.** Lepak, Lipasti: Silent stores for free (MICRO 2000). Wen, Liu, Byrne, Chabbi:
//! RedSpy, exploring value locality in software (ASPLOS 2017). Su, Wen, Yang, Jiao, Jin, Liu:
//! Redundant loads, a software inefficiency indicator (ICSE 2019).
//!
//! **Arguments.** `least=N`: members with fewer values, and lines with fewer silent stores or
//! redundant loads, are left out (100). `share=PART`: lines are left out if a smaller part of their
//! stores or loads is silent or redundant, 0 to 1 (0.5).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::Hash;

use memlode_attribute::Home;
use memlode_attribute::annotate::{AnnotatedAccesses, BlockEvent, Extras, Life};
use memlode_attribute::place::{Place, What, what};
use memlode_attribute::values::{Number, SeenValues};
use memlode_trace::format::flag;
use memlode_trace::sites::SiteKind;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::shadow::{Shadow, WordPart};
use crate::{
    Analysis, Argument, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds,
    Meta, Reads, Splits, Table, TableMeta, Value, View,
};

/// The number of values that an index of half a byte can distinguish.
const FEW: usize = 16;

const DATA: Column = Column { id: "data", holds: Holds::What };
const LINE: Column = Column { id: "line", holds: Holds::Place };
const MISS_CYCLES: Column = Column { id: "miss_cycles", holds: Holds::Count };

/// See the module's page.
pub struct Values {
    /// Data with fewer values, and lines with fewer silent stores or redundant loads, are left out.
    least: u64,
    /// Lines with a smaller part of such accesses are left out.
    share: f64,
}

/// Different values; `None` if there are more than a few.
type Different = Option<BTreeSet<u64>>;

/// Accesses of a cell, or of several that a row has together.
#[derive(Clone, Serialize, Deserialize)]
struct Sum {
    /// Accesses by the level that served them.
    served: Vec<u64>,
    seen: SeenValues,
    different: Different,
    /// Stores or loads that were compared with a known value, and those that changed nothing.
    compared: u64,
    same: u64,
}

impl Default for Sum {
    fn default() -> Sum {
        let different = Some(BTreeSet::new());
        Sum { served: Vec::new(), seen: SeenValues::default(), different, compared: 0, same: 0 }
    }
}

impl Sum {
    fn add_value(&mut self, value: &[u8], is_float: bool) {
        self.seen.add(value, is_float);
        let mut word = [0; 8];
        word[..value.len()].copy_from_slice(value);
        self.differ([u64::from_le_bytes(word)]);
    }

    fn differ(&mut self, more: impl IntoIterator<Item = u64>) {
        if let Some(known) = &mut self.different {
            known.extend(more);
            if known.len() > FEW {
                self.different = None;
            }
        }
    }

    fn join(&mut self, other: &Sum) {
        self.served.resize(self.served.len().max(other.served.len()), 0);
        for (sum, more) in self.served.iter_mut().zip(&other.served) {
            *sum = sum.saturating_add(*more);
        }
        self.seen.join(&other.seen);
        match &other.different {
            Some(more) => self.differ(more.iter().copied()),
            None => self.different = None,
        }
        self.compared = self.compared.saturating_add(other.compared);
        self.same = self.same.saturating_add(other.same);
    }

    /// Cycles until the accesses were served, beyond those of the first level.
    fn miss_cycles(&self, view: &View<'_>) -> u64 {
        let first = view.latencies.first().copied().unwrap_or(0);
        let cycles = self.served.iter().zip(view.latencies);
        let beyond = cycles.map(|(n, latency)| n.saturating_mul(latency.saturating_sub(first).into()));
        beyond.fold(0, u64::saturating_add)
    }

    /// Why fewer bytes would do, if they would.
    fn kind(&self) -> Option<&'static str> {
        let is_wide = self.seen.bytes > 1;
        match &self.different {
            Some(known) if known.len() == 1 => Some("one"),
            Some(_) if is_wide => Some("few"),
            _ if [1, 2, 4].into_iter().any(|bytes| bytes < self.seen.bytes && self.seen.fits(bytes)) => {
                Some("narrow")
            }
            _ => None,
        }
    }
}

/// The treatment of a cell's accesses.
#[derive(Clone, Copy)]
struct Facts {
    kind: SiteKind,
    /// Local variables come and go unseen.
    is_local: bool,
    /// Others may change it at any time.
    is_shared: bool,
    is_prefetch: bool,
    is_float: bool,
    /// Bytes of a value, of which an access may have several; 0 if they are unknown.
    element_bytes: u64,
}

impl Facts {
    fn of(cell: u32, view: &View<'_>) -> Facts {
        let site = view.site(cell);
        let object = &view.cells.objects[view.cell(cell).object as usize];
        let bytes = u64::from(site.bytes);
        let of_type = site.ty.map_or(0, |ty| view.names.ty(ty).bytes);
        let is_vector = site.flags & flag::VECTOR != 0;
        let is_numbers = |element: u64| matches!(element, 1 | 2 | 4 | 8) && bytes % element == 0;
        let element_bytes = match is_vector {
            true if site.member.is_none() && is_numbers(of_type) => of_type,
            false if is_numbers(bytes) => bytes,
            _ => 0,
        };
        Facts {
            kind: site.kind,
            is_local: site.flags & flag::STACK != 0 || matches!(object.home, Home::Stack { .. }),
            is_shared: site.flags & (flag::ATOMIC | flag::VOLATILE) != 0,
            is_prefetch: site.is_prefetch(),
            is_float: site.flags & flag::FLOAT != 0,
            element_bytes,
        }
    }
}

/// A part of an access whose earlier value this state does not know.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Open {
    cell: u32,
    is_load: bool,
    /// The next one is of the same access.
    goes_on: bool,
    part: WordPart,
}

/// Memory and cells as far as they were seen.
#[derive(Default)]
pub struct Seen {
    facts: Vec<Facts>,
    cells: Vec<Sum>,
    /// The bytes in memory.
    there: Shadow,
    /// The bytes as they were loaded last.
    loaded: Shadow,
    /// Accesses that agree with all that is known, where not all is.
    open: Vec<Open>,
    /// True if it began at the trace's first access: values that are missing since then are
    /// unknown.
    is_begin: Option<bool>,
}

/// The state, in the form for another replay.
#[derive(Serialize, Deserialize)]
pub struct SavedSeen {
    cells: Vec<(u32, Sum)>,
    there: Shadow,
    loaded: Shadow,
    open: Vec<Open>,
    is_begin: Option<bool>,
}

impl Seen {
    /// Counts an access, the value of which may be known.
    fn access(&mut self, (cell, level): (u32, u8), (address, bytes): (u64, u32), value: Option<&[u8]>) {
        let facts = self.facts[cell as usize];
        let sum = &mut self.cells[cell as usize];
        if facts.is_prefetch {
            return;
        }
        sum.served[usize::from(level)] += 1;
        let whole = value.filter(|value| !value.is_empty() && value.len() % bytes.max(1) as usize == 0);
        if let Some(value) = whole.filter(|_| facts.element_bytes > 0) {
            let numbers = value.chunks_exact(facts.element_bytes as usize);
            numbers.for_each(|number| sum.add_value(number, facts.is_float));
        }
        if facts.is_local {
            return;
        }
        // Of an update, what is there after it comes last.
        let now = whole.map(|value| &value[value.len() - bytes as usize..]);
        let compares = facts.kind != SiteKind::Update && !facts.is_shared;
        if facts.kind != SiteKind::Load {
            match now {
                Some(now) => self.meet(cell, false, compares, (address, now)),
                None => self.there.lose(address, bytes.into()),
            }
            return;
        }
        match now {
            Some(now) => {
                WordPart::of(address, now).for_each(|part| self.there.set(part));
                self.meet(cell, true, compares, (address, now));
            }
            None => self.loaded.lose(address, bytes.into()),
        }
    }

    /// Compares bytes with those that are known, and knows them from then on.
    fn meet(&mut self, cell: u32, is_load: bool, compares: bool, (address, bytes): (u64, &[u8])) {
        let shadow = if is_load { &mut self.loaded } else { &mut self.there };
        let (mut agrees, before) = (compares, self.open.len());
        for part in WordPart::of(address, bytes) {
            match shadow.compare(part).filter(|_| agrees) {
                None => agrees = false,
                Some(0) => {}
                Some(_) if self.is_begin == Some(true) => agrees = false,
                Some(unseen) => {
                    let part = WordPart { bytes: unseen, ..part };
                    self.open.push(Open { cell, is_load, goes_on: true, part });
                }
            }
            shadow.set(part);
        }
        if compares {
            self.cells[cell as usize].compared += 1;
            self.decide(cell, agrees, before);
        }
    }

    /// Counts an access if it agrees with all that is known, and leaves open what is not, which begins at `before`.
    fn decide(&mut self, cell: u32, agrees: bool, before: usize) {
        if !agrees {
            self.open.truncate(before);
        } else if self.open.len() == before {
            let sum = &mut self.cells[cell as usize];
            sum.same = sum.same.saturating_add(1);
        } else if let Some(last) = self.open.last_mut() {
            last.goes_on = false;
        }
    }

    /// Compares what a later state left open.
    fn close(&mut self, later: &[Open]) {
        for access in later.chunk_by(|open, _| open.goes_on) {
            let (mut agrees, before, cell) = (true, self.open.len(), access[0].cell);
            for open in access {
                let shadow = if open.is_load { &self.loaded } else { &self.there };
                match shadow.compare(open.part) {
                    None => agrees = false,
                    Some(0) => {}
                    Some(_) if self.is_begin == Some(true) => agrees = false,
                    Some(bytes) => {
                        self.open.push(Open {
                            goes_on: true,
                            part: WordPart { bytes, ..open.part },
                            ..*open
                        });
                    }
                }
            }
            self.decide(cell, agrees, before);
        }
    }

    fn block(&mut self, address: u64, life: Life) {
        if let Life::Begins { bytes, .. } = life {
            self.there.lose(address, bytes);
            self.loaded.lose(address, bytes);
        }
    }

    fn cell(&mut self, cell: usize) -> &mut Sum {
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, Sum::default());
        }
        &mut self.cells[cell]
    }

    /// Sums over cells that have a key in common.
    fn sums<K: Eq + Hash>(&self, view: &View<'_>, key: impl Fn(u32) -> Option<K>) -> Vec<(K, Sum, u64)> {
        let mut sums: FxHashMap<K, Sum> = FxHashMap::default();
        for (cell, sum) in (0..).zip(&self.cells).filter(|(_, sum)| sum.served.iter().any(|n| *n > 0)) {
            if let Some(key) = key(cell) {
                sums.entry(key).or_default().join(sum);
            }
        }
        let costing = |(key, sum): (K, Sum)| {
            let cycles = sum.miss_cycles(view);
            (key, sum, cycles)
        };
        sums.into_iter().map(costing).collect()
    }
}

impl Values {
    /// Data that need fewer bytes than they have.
    fn data(&self, seen: &Seen, view: &View<'_>) -> Vec<Vec<Value>> {
        let key = |cell| {
            let data = what(view.names, view.site(cell), false);
            // Who loads several numbers at once may say less of them; it is of the same data.
            let is_named = data.member.is_some() || data.variable.is_some();
            (is_named && (data.member.is_some() || !Facts::of(cell, view).is_local)).then_some(data)
        };
        let mut rows = seen.sums(view, key);
        rows.retain(|(_, sum, _)| sum.seen.count >= self.least);
        rows.sort_by_key(|&(data, ref sum, cycles)| (Reverse((cycles, sum.seen.count)), data));
        let row = |(data, sum, cycles): (What, Sum, u64)| {
            let number = |number: Option<Number>| number.map_or(Value::Nothing, Value::Number);
            let (least, most) = sum.seen.range().unzip();
            let different = sum.different.as_ref().map(|known| Number::Unsigned(known.len() as u64));
            Some(vec![
                Value::What(data),
                Value::Word(sum.kind()?),
                Value::Count(sum.seen.count),
                number(different),
                number(least),
                number(most),
                Value::Bytes(sum.seen.bytes),
                Value::Count(sum.seen.bits().into()),
                Value::Count(cycles),
            ])
        };
        rows.into_iter().filter_map(row).collect()
    }

    /// Lines of stores, or loads, that brought nothing new.
    fn lines(&self, seen: &Seen, view: &View<'_>, kind: SiteKind) -> Vec<Vec<Value>> {
        let key = |cell| (view.site(cell).kind == kind).then(|| view.key(cell));
        let mut rows = seen.sums(view, key);
        let share = |sum: &Sum| sum.same as f64 / sum.compared.max(1) as f64;
        rows.retain(|(_, sum, _)| sum.same >= self.least.max(1) && share(sum) >= self.share);
        rows.sort_by_key(|&(key, ref sum, cycles)| (Reverse((cycles, sum.same)), key));
        let row = |((data, place), sum, cycles): ((What, Place), Sum, u64)| {
            let counts = [Value::Count(sum.compared), Value::Count(sum.same), Value::Share(share(&sum))];
            let names = [Value::What(data), Value::Place(place)];
            names.into_iter().chain(counts).chain([Value::Count(cycles)]).collect()
        };
        rows.into_iter().map(row).collect()
    }
}

impl Analysis for Values {
    const META: Meta = Meta {
        id: "values",
        title: "data whose values need fewer bytes, stores and loads that bring nothing new",
        reads: Reads::Rows,
        inlines: false,
        levels: true,
        after: &[],
        // Which value is in memory depends on all threads, and an access that is cut is compared twice.
        splits: Splits { chunks: false, address: None, thread: false, time: true },
        arguments: &[
            Argument {
                name: "least",
                help: "values, silent stores or redundant loads from which on they count [default: 100]",
            },
            Argument {
                name: "share",
                help: "part of a line's stores or loads from which on it counts [default: 0.5]",
            },
        ],
        tables: &[
            TableMeta {
                id: "narrow_values",
                title: "Data whose values need fewer bytes, by cycles of misses",
                is_whole: false,
                columns: &[
                    DATA,
                    Column { id: "kind", holds: Holds::Word(&["one", "few", "narrow"]) },
                    Column { id: "values", holds: Holds::Count },
                    Column { id: "different", holds: Holds::Number },
                    Column { id: "least", holds: Holds::Number },
                    Column { id: "most", holds: Holds::Number },
                    Column { id: "bytes", holds: Holds::Bytes },
                    Column { id: "bits", holds: Holds::Count },
                    MISS_CYCLES,
                ],
            },
            TableMeta {
                id: "silent_stores",
                title: "Stores of what is there already",
                is_whole: false,
                columns: &[
                    DATA,
                    LINE,
                    Column { id: "stores", holds: Holds::Count },
                    Column { id: "silent", holds: Holds::Count },
                    Column { id: "share_of_stores", holds: Holds::Share },
                    MISS_CYCLES,
                ],
            },
            TableMeta {
                id: "redundant_loads",
                title: "Loads of what was loaded before, unchanged",
                is_whole: false,
                columns: &[
                    DATA,
                    LINE,
                    Column { id: "loads", holds: Holds::Count },
                    Column { id: "redundant", holds: Holds::Count },
                    Column { id: "share_of_loads", holds: Holds::Share },
                    MISS_CYCLES,
                ],
            },
        ],
    };

    type State = Seen;
    type Saved = SavedSeen;

    fn new(arguments: &Arguments) -> Result<Values, BadArgument> {
        Ok(Values {
            least: arguments.get("least", "a number of values")?.unwrap_or(100),
            share: arguments.get("share", "a part, 0 to 1")?.unwrap_or(0.5),
        })
    }

    fn extras(&self) -> Extras {
        Extras { values: true, ..Extras::default() }
    }

    fn start(&self) -> Seen {
        Seen::default()
    }

    fn observe(&self, seen: &mut Seen, rows: &AnnotatedAccesses, view: &View<'_>) {
        for cell in seen.facts.len()..view.cells.cells.len() {
            seen.facts.push(Facts::of(cell as u32, view));
            seen.cell(cell).served.resize(view.levels.len(), 0);
        }
        if let (None, Some(first)) = (seen.is_begin, rows.sequence.first()) {
            seen.is_begin = Some(*first == 0);
        }
        let mut blocks = rows.blocks.iter().peekable();
        let mut values = rows.values.iter().peekable();
        let mut begin = |seen: &mut Seen, row: usize| {
            while let Some(&BlockEvent { process, address, life, .. }) =
                blocks.next_if(|block| block.row as usize <= row)
            {
                seen.block(view.process_space(process).place(address), life);
            }
        };
        for row in 0..rows.rows() {
            begin(seen, row);
            let value = values.next_if(|(of, _)| *of == row).map(|(_, value)| value);
            seen.access((rows.cell[row], rows.level[row]), (rows.address[row], rows.bytes[row]), value);
        }
        begin(seen, usize::MAX);
    }

    fn merge(&self, seen: &mut Seen, later: Seen) {
        for (cell, sum) in later.cells.iter().enumerate() {
            seen.cell(cell).join(sum);
        }
        seen.close(&later.open);
        seen.there.overlay(later.there);
        seen.loaded.overlay(later.loaded);
        seen.is_begin = seen.is_begin.or(later.is_begin);
    }

    fn save(&self, seen: Seen, carried: &mut CellPacker<'_>) -> SavedSeen {
        let used = (0..).zip(seen.cells).filter(|(_, sum)| sum.served.iter().any(|n| *n > 0));
        let cells = used.map(|(cell, sum)| (carried.cell(cell), sum)).collect();
        let open = seen.open.into_iter().map(|open| Open { cell: carried.cell(open.cell), ..open }).collect();
        SavedSeen { cells, there: seen.there, loaded: seen.loaded, open, is_begin: seen.is_begin }
    }

    fn load(&self, saved: SavedSeen, carried: &CellUnpacker<'_>) -> Result<Seen, BadNumber> {
        let mut seen = Seen { is_begin: saved.is_begin, ..Seen::default() };
        for (cell, sum) in saved.cells {
            let served = carried.by_level(sum.served)?;
            if sum.seen.bytes > 8 {
                return Err(BadNumber { what: "a value of bytes", number: sum.seen.bytes });
            }
            seen.cell(carried.cell(cell)? as usize).join(&Sum { served, ..sum });
        }
        for open in saved.open {
            let cell = carried.cell(open.cell)?;
            seen.cell(cell as usize);
            seen.open.push(Open { cell, ..open });
        }
        if !saved.there.is_sound() || !saved.loaded.is_sound() {
            return Err(BadNumber { what: "a page of words", number: 0 });
        }
        (seen.there, seen.loaded) = (saved.there, saved.loaded);
        Ok(seen)
    }

    fn finish(&self, seen: Seen, view: &View<'_>) -> Findings {
        let [narrow, silent, redundant] = Values::META.tables else { unreachable!() };
        let tables = vec![
            Table::plain(narrow, self.data(&seen, view)),
            Table::plain(silent, self.lines(&seen, view, SiteKind::Store)),
            Table::plain(redundant, self.lines(&seen, view, SiteKind::Load)),
        ];
        Findings { findings: Vec::new(), tables }
    }
}
