//! Batches of numbers to record batches with names.

use std::sync::Arc;

use memlode_attribute::annotate::{AnnotatedAccesses, Cells, Why};
use memlode_machine::Machine;
use memlode_simulate::{Cause, Translation};
use memlode_trace::{Clock, Trace};

use crate::names::{HOMES, KINDS, Keys, NONE, Names};
use crate::table::{
    ArrowTable, BatchColumn, ColumnType, ColumnValues, Field, Spares, Strings, Validity, put_bits,
};

/// Why a level missed.
pub(crate) const CAUSES: [&str; 6] =
    ["cold", "capacity", "conflict", "true sharing", "false sharing", "held by another core"];

/// The levels that had the translation of an address.
pub(crate) const TRANSLATIONS: [&str; 3] = ["first", "second", "walk"];

/// Makes record batches of the accesses of one trace on one machine.
pub struct BatchEncoder {
    pub(crate) names: Names,
    /// Names of the levels, memory last.
    pub(crate) levels: Vec<String>,
    /// Cycles until the levels serve a load.
    pub(crate) latencies: Vec<u32>,
    /// The causes of misses, if they are known.
    pub(crate) why: Option<WhyColumns>,
    pub(crate) clock: Option<Clock>,
    texts: Texts,
}

/// Which columns there are about why accesses missed.
#[derive(Clone, Copy)]
pub(crate) struct WhyColumns {
    pub translation: bool,
    pub alias: bool,
    pub remote: bool,
}

/// Dictionaries that are the same for every trace, and the levels.
struct Texts {
    kinds: Arc<Strings>,
    homes: Arc<Strings>,
    causes: Arc<Strings>,
    translations: Arc<Strings>,
    levels: Arc<Strings>,
}

impl BatchEncoder {
    /// `causes`: whether the accesses have causes of their misses.
    pub fn new(trace: Arc<Trace>, machine: &Machine, causes: bool) -> BatchEncoder {
        let levels = machine.served_by();
        let why = WhyColumns {
            translation: !machine.tlbs.is_empty(),
            alias: machine.in_flight.is_some(),
            remote: machine.nodes > 1,
        };
        let texts = |texts: &[&str]| Arc::new(Strings::of(texts));
        BatchEncoder {
            clock: trace.clock(),
            names: Names::new(trace),
            latencies: machine.latencies(),
            why: causes.then_some(why),
            texts: Texts {
                kinds: texts(&KINDS),
                homes: texts(&HOMES),
                causes: texts(&CAUSES),
                translations: texts(&TRANSLATIONS),
                levels: Arc::new(Strings::of(&levels)),
            },
            levels,
        }
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> Vec<Field> {
        let field = |name: &str, ty, nullable| Field { name: name.to_string(), ty, nullable };
        let mut fields = vec![
            field("sequence", ColumnType::U64, false),
            field("time_ns", ColumnType::U64, true),
            field("process", ColumnType::U32, false),
            field("thread", ColumnType::U32, false),
            field("address", ColumnType::U64, false),
            field("bytes", ColumnType::U32, false),
            field("kind", ColumnType::Keys8, false),
            field("level", ColumnType::Keys8, false),
            field("cycles", ColumnType::U32, false),
        ];
        if let Some(why) = self.why {
            let caches = &self.levels[..self.levels.len() - 1];
            fields
                .extend(caches.iter().map(|level| field(&format!("cause_{level}"), ColumnType::Keys8, true)));
            fields.extend(why.translation.then(|| field("translation", ColumnType::Keys8, false)));
            fields.extend(why.alias.then(|| field("alias_4k", ColumnType::Bool, false)));
            fields.extend(why.remote.then(|| field("remote", ColumnType::Bool, false)));
        }
        fields.extend([
            field("site", ColumnType::U32, false),
            field("function", ColumnType::Keys32, false),
            field("file", ColumnType::Keys32, true),
            field("line", ColumnType::U32, true),
            field("inlined_into", ColumnType::Keys32, true),
            field("variable", ColumnType::Keys32, true),
            field("type", ColumnType::Keys32, true),
            field("member", ColumnType::Keys32, true),
            field("object_kind", ColumnType::Keys8, true),
            field("object", ColumnType::Keys32, true),
        ]);
        fields
    }

    /// Fills `table` with a batch's columns; `cells` are those of the
    /// [`memlode_attribute::annotate::Annotations`] that returned it. The memory of the old table
    /// is reused; unused memory comes back, for
    /// [`give_back`](memlode_attribute::annotate::Annotations::give_back).
    pub fn encode(
        &mut self,
        events: AnnotatedAccesses,
        cells: &Cells,
        table: &mut ArrowTable,
    ) -> AnnotatedAccesses {
        self.names.learn(cells);
        let mut spares = Spares::of(std::mem::take(&mut table.columns));
        let AnnotatedAccesses { sequence, stamp, address, bytes, cell, level, why, .. } = events;
        let mut back = AnnotatedAccesses { cell, level, why, ..AnnotatedAccesses::default() };
        let (names, texts, latencies) = (&self.names, &self.texts, &self.latencies);
        let cells = Gather { keys: &names.cells, cell: &back.cell };
        let mut columns: Vec<BatchColumn> = Vec::with_capacity(32);
        back.sequence = spares.next_u64();
        columns.push(ColumnValues::U64(sequence).into());
        back.stamp = spares.next_u64();
        columns.push(self.times(stamp));
        columns.push(cells.numbers(&mut spares, |keys| keys.process));
        columns.push(cells.numbers(&mut spares, |keys| keys.thread));
        back.address = spares.next_u64();
        columns.push(ColumnValues::U64(address).into());
        back.bytes = spares.next_u32();
        columns.push(ColumnValues::U32(bytes).into());
        columns.push(cells.short(&mut spares, |keys| keys.of_site.kind, &texts.kinds));
        let mut levels = spares.next_i8();
        levels.extend(back.level.iter().map(|&level| level as i8));
        columns.push(ColumnValues::Keys8(levels, texts.levels.clone()).into());
        let mut cycles = spares.next_u32();
        cycles.extend(back.level.iter().map(|&level| latencies[usize::from(level)]));
        columns.push(ColumnValues::U32(cycles).into());
        if let Some(wanted) = self.why {
            self.causes(&mut columns, &mut spares, &back.why, wanted);
        }
        columns.push(cells.numbers(&mut spares, |keys| keys.site));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.function, &names.functions));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.file, &names.files));
        let mut lines = spares.next_u32();
        cells.put(&mut lines, |keys| keys.of_site.line);
        columns.push(BatchColumn::of_positive(lines));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.inlined_into, &names.inlined_into));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.variable, &names.variables));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.ty, &names.types));
        columns.push(cells.long(&mut spares, |keys| keys.of_site.member, &names.members));
        columns.push(cells.short(&mut spares, |keys| keys.object_kind, &texts.homes));
        columns.push(cells.long(&mut spares, |keys| keys.object, &names.object_texts));
        *table = ArrowTable { rows: back.level.len(), columns };
        back
    }

    /// Stamps as times.
    fn times(&self, mut stamps: Vec<u64>) -> BatchColumn {
        match self.clock {
            Some(clock) => {
                stamps.iter_mut().for_each(|stamp| *stamp = clock.ns(*stamp));
                ColumnValues::U64(stamps).into()
            }
            None => {
                let validity = Validity { bits: vec![0; stamps.len().div_ceil(8)], nulls: stamps.len() };
                BatchColumn { values: ColumnValues::U64(stamps), validity: Some(validity) }
            }
        }
    }

    fn causes(&self, columns: &mut Vec<BatchColumn>, spares: &mut Spares, why: &[Why], wanted: WhyColumns) {
        for level in 0..self.levels.len() - 1 {
            let mut keys = spares.next_i8();
            keys.extend(why.iter().map(|why| why.causes[level].map_or(NONE as i8, cause)));
            columns.push(BatchColumn::of_short_keys(keys, &self.texts.causes));
        }
        if wanted.translation {
            let mut keys = spares.next_i8();
            keys.extend(why.iter().map(|why| translation(why.translation)));
            columns.push(BatchColumn::of_short_keys(keys, &self.texts.translations));
        }
        let mut flag = |is_set: fn(Why) -> bool| {
            let mut bits = spares.next_bits();
            put_bits(&mut bits, why, is_set);
            columns.push(ColumnValues::Bits(bits).into());
        };
        if wanted.alias {
            flag(|why| why.alias);
        }
        if wanted.remote {
            flag(|why| why.remote);
        }
    }
}

pub(crate) fn cause(cause: Cause) -> i8 {
    match cause {
        Cause::Cold => 0,
        Cause::Capacity => 1,
        Cause::Conflict => 2,
        Cause::TrueSharing => 3,
        Cause::FalseSharing => 4,
        Cause::HeldElsewhere => 5,
    }
}

pub(crate) fn translation(translation: Translation) -> i8 {
    match translation {
        Translation::First => 0,
        Translation::Second => 1,
        Translation::Walk => 2,
    }
}

/// The cells of a batch.
struct Gather<'a> {
    keys: &'a [Keys],
    cell: &'a [u32],
}

impl Gather<'_> {
    fn put<T>(&self, out: &mut Vec<T>, part: impl Fn(&Keys) -> T) {
        out.extend(self.cell.iter().map(|&cell| part(&self.keys[cell as usize])));
    }

    fn numbers(&self, spares: &mut Spares, part: impl Fn(&Keys) -> u32) -> BatchColumn {
        let mut numbers = spares.next_u32();
        self.put(&mut numbers, part);
        ColumnValues::U32(numbers).into()
    }

    fn short(&self, spares: &mut Spares, part: impl Fn(&Keys) -> i8, strings: &Arc<Strings>) -> BatchColumn {
        let mut keys = spares.next_i8();
        self.put(&mut keys, part);
        BatchColumn::of_short_keys(keys, strings)
    }

    fn long(&self, spares: &mut Spares, part: impl Fn(&Keys) -> i32, strings: &Arc<Strings>) -> BatchColumn {
        let mut keys = spares.next_i32();
        self.put(&mut keys, part);
        BatchColumn::of_keys(keys, strings)
    }
}
