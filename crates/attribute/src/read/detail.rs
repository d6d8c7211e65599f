//! Why the accesses of each cell missed, and how many of the fetched bytes were used: roll-ups like
//! those of [`crate::read::tables`].

use std::collections::BTreeSet;
use std::hash::Hash;
use std::ops::AddAssign;

use memlode_simulate::{LevelDetail, NumaDetail, Tag, TlbDetail};
use memlode_trace::event::ThreadId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::{Cell, DetailedProfile};
use crate::read::tables::{Row, Tables};

/// Details of some accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellDetail {
    /// Cache levels, innermost first; empty if nothing was found at any.
    pub levels: Vec<LevelDetail>,
    /// Translations.
    pub tlb: TlbDetail,
    /// Loads that agreed with a store to another address in the low 12 bits.
    pub alias_conflicts: u64,
    /// Which memory served the accesses.
    pub numa: NumaDetail,
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct DetailRow<K> {
    /// The key and the counts.
    pub row: Row<K>,
    /// Its details.
    pub detail: CellDetail,
    /// Indexed by level: the evictors of the missing lines, the most frequent first; `None` stands
    /// for those without a key.
    pub evicted_by: Vec<Vec<(Option<K>, u64)>>,
}

/// Loads of one key that conflict with stores of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasRow<K> {
    /// The loads.
    pub load: K,
    /// The stores.
    pub store: K,
    /// Number of loads.
    pub conflicts: u64,
    /// The least distance from a store to its load, in accesses of the thread.
    pub least_accesses: u32,
}

/// Misses of one key because of another core's writes of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingRow<K> {
    /// The accesses that missed.
    pub missed: K,
    /// Threads that made them.
    pub missed_by: BTreeSet<ThreadId>,
    /// The writes that had taken the lines.
    pub written: K,
    /// Threads that wrote those bytes.
    pub written_by: BTreeSet<ThreadId>,
    /// They touch the same bytes; else only the same line.
    pub is_true: bool,
    /// Number of misses.
    pub misses: u64,
    /// First addresses of the lines, in lines of the first level.
    pub lines: FxHashSet<u64>,
}

impl AddAssign<&CellDetail> for CellDetail {
    fn add_assign(&mut self, other: &CellDetail) {
        self.levels.resize(self.levels.len().max(other.levels.len()), LevelDetail::default());
        for (sum, more) in self.levels.iter_mut().zip(&other.levels) {
            *sum += more;
        }
        self.tlb += &other.tlb;
        self.alias_conflicts += other.alias_conflicts;
        self.numa += &other.numa;
    }
}

impl DetailedProfile {
    /// Returns the results of one cell.
    pub fn of(&self, cell: &Cell) -> CellDetail {
        let tag = cell.tag.index();
        let loads = self.details.aliases.partition_point(|pair| pair.load_tag < cell.tag);
        let pairs = self.details.aliases[loads..].iter().take_while(|pair| pair.load_tag == cell.tag);
        CellDetail {
            levels: self.details.levels.get(tag).cloned().unwrap_or_default(),
            tlb: self.details.tlb.get(tag).copied().unwrap_or_default(),
            alias_conflicts: pairs.map(|pair| pair.conflicts).sum(),
            numa: self.details.numa.get(tag).copied().unwrap_or_default(),
        }
    }

    /// Names for which page sizes were set, but which no accessed object has.
    pub fn unmet_names(&self) -> Vec<String> {
        let homes: FxHashSet<_> = self.profile.cells.iter().map(|cell| cell.class).collect();
        let homes: Vec<_> = homes.iter().map(|class| &self.profile.classes[class.0 as usize].home).collect();
        let unmet = self.setup.named.iter().filter(|pages| !homes.iter().any(|home| pages.memory.has(home)));
        unmet.map(|pages| pages.memory.to_string()).collect()
    }

    /// Returns the details of everything.
    pub fn total(&self) -> CellDetail {
        let mut sum = CellDetail::default();
        for cell in &self.profile.cells {
            sum += &self.of(cell);
        }
        sum
    }

    /// The rows of [`Tables::roll`] with their results.
    pub fn roll<K: Hash + Eq + Ord + Clone>(
        &self,
        tables: &Tables<'_>,
        key: impl Fn(&Cell) -> Option<K>,
    ) -> Vec<DetailRow<K>> {
        let levels = self.profile.levels.len();
        let mut rows: Vec<DetailRow<K>> = tables
            .roll(&key)
            .into_iter()
            .map(|row| DetailRow { row, detail: CellDetail::default(), evicted_by: vec![Vec::new(); levels] })
            .collect();
        let index: FxHashMap<K, usize> =
            rows.iter().enumerate().map(|(i, row)| (row.row.key.clone(), i)).collect();
        // By tag: its row, if its cell has a key.
        let mut row_of: Vec<Option<usize>> = vec![None; self.profile.cells.len()];
        for cell in &self.profile.cells {
            let row = key(cell).and_then(|key| index.get(&key).copied());
            if let Some(place) = row_of.get_mut(cell.tag.index()) {
                *place = row;
            }
            if let Some(row) = row {
                rows[row].detail += &self.of(cell);
            }
        }
        let row_of = |tag: Tag| row_of.get(tag.index()).copied().flatten();
        for (level, evictions) in self.details.evictions.iter().enumerate() {
            let mut sums: FxHashMap<(usize, Option<usize>), u64> = FxHashMap::default();
            for eviction in evictions {
                if let Some(row) = row_of(eviction.tag) {
                    *sums.entry((row, row_of(eviction.by))).or_default() += eviction.misses;
                }
            }
            let mut sums: Vec<_> = sums.into_iter().collect();
            sums.sort_unstable_by_key(|&(pair, misses)| (u64::MAX - misses, pair));
            for ((row, by), misses) in sums {
                let by = by.map(|by| rows[by].row.key.clone());
                rows[row].evicted_by[level].push((by, misses));
            }
        }
        rows
    }

    /// Conflicts of loads with stores to other addresses, the most frequent first.
    pub fn aliases<K: Hash + Eq + Ord + Clone>(&self, key: impl Fn(&Cell) -> K) -> Vec<AliasRow<K>> {
        let cells = self.cells_by_tag();
        let mut sums: FxHashMap<(K, K), (u64, u32)> = FxHashMap::default();
        for pair in &self.details.aliases {
            let (Some(load), Some(store)) = (cells.of(pair.load_tag), cells.of(pair.store_tag)) else {
                continue;
            };
            let sum = sums.entry((key(load), key(store))).or_insert((0, u32::MAX));
            *sum = (sum.0 + pair.conflicts, sum.1.min(pair.least_accesses));
        }
        let row = |((load, store), (conflicts, least_accesses))| AliasRow {
            load,
            store,
            conflicts,
            least_accesses,
        };
        let mut rows: Vec<AliasRow<K>> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            b.conflicts.cmp(&a.conflicts).then_with(|| (&a.load, &a.store).cmp(&(&b.load, &b.store)))
        });
        rows
    }

    /// Misses because of other cores' writes, the most frequent first.
    pub fn sharing<K: Hash + Eq + Ord + Clone>(&self, key: impl Fn(&Cell) -> K) -> Vec<SharingRow<K>> {
        let lines = self.details.model.iter().flat_map(|model| &model.sharing);
        let cells = self.cells_by_tag();
        let mut rows: FxHashMap<(K, K, bool), SharingRow<K>> = FxHashMap::default();
        for line in lines {
            let (Some(cell), Some(by)) = (cells.of(line.tag), cells.of(line.by)) else { continue };
            let row = rows.entry((key(cell), key(by), line.is_true)).or_insert_with_key(|key| SharingRow {
                missed: key.0.clone(),
                missed_by: BTreeSet::new(),
                written: key.1.clone(),
                written_by: BTreeSet::new(),
                is_true: key.2,
                misses: 0,
                lines: FxHashSet::default(),
            });
            row.missed_by.insert(cell.thread);
            row.written_by.insert(by.thread);
            row.misses += line.misses;
            row.lines.insert(line.address);
        }
        let mut rows: Vec<SharingRow<K>> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            let names = |row: &SharingRow<K>| (row.missed.clone(), row.written.clone(), row.is_true);
            b.misses.cmp(&a.misses).then_with(|| names(a).cmp(&names(b)))
        });
        rows
    }

    fn cells_by_tag(&self) -> CellsByTag<'_> {
        let mut cells = vec![None; self.profile.cells.len()];
        for cell in &self.profile.cells {
            if let Some(place) = cells.get_mut(cell.tag.index()) {
                *place = Some(cell);
            }
        }
        CellsByTag(cells)
    }
}

struct CellsByTag<'a>(Vec<Option<&'a Cell>>);

impl<'a> CellsByTag<'a> {
    fn of(&self, tag: Tag) -> Option<&'a Cell> {
        self.0.get(tag.index()).copied().flatten()
    }
}
