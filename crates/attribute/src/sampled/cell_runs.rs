//! Counts of each cell in each run of a trace with gaps.
//!
//! A row of a table is the sum of its cells, which vary together: the error of a row does not
//! follow from the errors of its cells. So the counts of cells are kept for each run in which they
//! did something, and are summed by row before errors are estimated
//! ([`crate::read::standard_errors`]).
//!
//! When there are too many runs to keep each one, neighbours are merged, two by two. Two neighbours
//! are a cluster like a single run: the sample then consists of half as many clusters of twice the
//! size, to which the same formula applies. It has fewer differences to use, but still enough.

use memlode_simulate::MAX_LEVELS;
use rustc_hash::FxHashMap;

use crate::counts::Counts;

/// Entries of clusters, each a cell's, from which on clusters are put together: some 50 bytes each.
const MOST_ENTRIES: usize = 1 << 20;
/// With fewer clusters than this, their differences would not be significant.
const LEAST_CLUSTERS: usize = 32;

/// The counts of cells, cluster by cluster. A cluster is a run, or several that are neighbours.
/// Cells go by their tags ([`crate::Cell::tag`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRuns {
    /// Levels of cache.
    levels: usize,
    /// A cluster is 2 to the power of this runs.
    shift: u32,
    clusters: Vec<Cluster>,
    /// Entries of all clusters, and how many are too many.
    entries: usize,
    most: usize,
    least_clusters: usize,
}

/// Entries, one for each cell; several of a run that was come back to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cluster {
    /// Twice the tag, plus 1 if the cell writes.
    keys: Vec<u32>,
    /// Indexed by entry: accesses by the level that served them, then the further cycles of
    /// waiting.
    values: Vec<u64>,
}

impl CellRuns {
    /// Without counts, for caches with this many levels.
    pub(crate) fn new(levels: usize) -> CellRuns {
        CellRuns::bounded(levels, MOST_ENTRIES, LEAST_CLUSTERS)
    }

    fn bounded(levels: usize, most: usize, least_clusters: usize) -> CellRuns {
        CellRuns { levels, shift: 0, clusters: Vec::new(), entries: 0, most, least_clusters }
    }

    /// Returns how many clusters there are.
    pub fn count(&self) -> usize {
        self.clusters.len()
    }

    /// Returns the counts of cells in each cluster. A cell may come more than once.
    pub fn clusters(&self) -> impl Iterator<Item = impl Iterator<Item = Entry<'_>>> {
        let width = width(self.levels);
        self.clusters.iter().map(move |cluster| {
            let entries = cluster.keys.iter().zip(cluster.values.chunks_exact(width));
            entries.map(|(&key, values)| Entry { key, values })
        })
    }

    /// Adds the counts of some cells in a run.
    fn add(&mut self, run: usize, cells: impl Iterator<Item = (u32, Counts)>) {
        let cluster = run >> self.shift;
        if self.clusters.len() <= cluster {
            self.clusters.resize_with(cluster + 1, Cluster::default);
        }
        let Cluster { keys, values } = &mut self.clusters[cluster];
        let before = keys.len();
        for (tag, counts) in cells {
            keys.push(tag << 1 | u32::from(counts.writes != [0; MAX_LEVELS + 1]));
            values.extend((0..=self.levels).map(|depth| counts.reads[depth] + counts.writes[depth]));
            values.push(counts.other_cycles);
        }
        self.entries += keys.len() - before;
        if self.entries > self.most {
            self.shrink();
        }
    }

    /// Puts clusters together until half as many entries are left as there may be.
    fn shrink(&mut self) {
        let width = width(self.levels);
        self.clusters.iter_mut().for_each(|cluster| cluster.tidy(width));
        self.entries = self.clusters.iter().map(|cluster| cluster.keys.len()).sum();
        while self.entries > self.most / 2 && self.clusters.len() >= 2 * self.least_clusters {
            let mut clusters = std::mem::take(&mut self.clusters).into_iter();
            while let Some(mut cluster) = clusters.next() {
                if let Some(next) = clusters.next() {
                    cluster.keys.extend(next.keys);
                    cluster.values.extend(next.values);
                    cluster.tidy(width);
                }
                self.clusters.push(cluster);
            }
            self.shift += 1;
            self.entries = self.clusters.iter().map(|cluster| cluster.keys.len()).sum();
        }
        // Where there are so many cells that few clusters are large, they may be.
        self.most = self.most.max(2 * self.entries);
    }
}

/// Counts of a cell in a cluster.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    key: u32,
    values: &'a [u64],
}

impl Entry<'_> {
    /// The cell's tag.
    pub fn tag(&self) -> u32 {
        self.key >> 1
    }

    /// Its counts.
    pub fn counts(&self) -> Counts {
        let (other_cycles, answered) = self.values.split_last().expect("an entry has numbers");
        let mut counts = Counts { other_cycles: *other_cycles, ..Counts::default() };
        for (depth, &accesses) in (0u8..).zip(answered) {
            counts.add(depth, self.key & 1 != 0, accesses);
        }
        counts
    }
}

impl Cluster {
    /// Sums the entries of each cell.
    fn tidy(&mut self, width: usize) {
        let mut first: FxHashMap<u32, usize> = FxHashMap::default();
        let mut kept = 0;
        for entry in 0..self.keys.len() {
            let at = *first.entry(self.keys[entry]).or_insert(kept);
            for value in 0..width {
                let more = self.values[entry * width + value];
                let sum = &mut self.values[at * width + value];
                // It may be the entry's own place.
                *sum = if at == kept { more } else { *sum + more };
            }
            if at == kept {
                self.keys[kept] = self.keys[entry];
                kept += 1;
            }
        }
        self.keys.truncate(kept);
        self.values.truncate(kept * width);
        self.keys.shrink_to_fit();
        self.values.shrink_to_fit();
    }
}

/// Numbers of an entry.
fn width(levels: usize) -> usize {
    levels + 2
}

/// Makes [`CellRuns`] while a trace is simulated. It is called for the cell of each access, and
/// reads the counts of those cells when their run is over.
pub(crate) struct Ledger {
    runs: CellRuns,
    /// The current run.
    run: usize,
    /// Number of times that there was another one, plus 1.
    iteration: u32,
    /// Indexed by cell: the iteration that it was met in last.
    met: Vec<u32>,
    /// Cells met in this iteration.
    touched: Vec<u32>,
    /// Indexed by cell: the counts that are recorded so far.
    told: Vec<Counts>,
}

impl Ledger {
    /// Makes an empty one, for caches with this many levels.
    pub fn new(levels: usize) -> Ledger {
        let runs = CellRuns::new(levels);
        Ledger { runs, run: 0, iteration: 1, met: Vec::new(), touched: Vec::new(), told: Vec::new() }
    }

    /// An access of a cell.
    #[inline(always)]
    pub fn touch(&mut self, cell: u32) {
        if self.met.get(cell as usize) != Some(&self.iteration) {
            self.meet(cell);
        }
    }

    #[cold]
    fn meet(&mut self, cell: u32) {
        let number = cell as usize;
        if self.met.len() <= number {
            self.met.resize(number + 1, 0);
            self.told.resize(number + 1, Counts::default());
        }
        self.met[number] = self.iteration;
        self.touched.push(cell);
    }

    /// Returns whether the current run is another one.
    pub fn is_elsewhere(&self, run: usize) -> bool {
        self.run != run
    }

    /// Begins a run, if it is another one. `counted` returns all counts of a cell so far, with no
    /// access left to settle.
    pub fn iteration_to(&mut self, run: usize, counted: impl Fn(u32) -> Counts) {
        let told = &mut self.told;
        let since = self.touched.drain(..).map(|cell| {
            let now = counted(cell);
            let before = std::mem::replace(&mut told[cell as usize], now);
            (cell, now.since(&before))
        });
        self.runs.add(self.run, since);
        self.iteration += 1;
        self.run = run;
    }

    /// All that was written down.
    pub fn finish(mut self, counted: impl Fn(u32) -> Counts) -> CellRuns {
        self.iteration_to(self.run, counted);
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(reads: [u64; 3]) -> Counts {
        let mut counts = Counts::default();
        counts.reads[..3].copy_from_slice(&reads);
        counts
    }

    fn written(runs: &CellRuns) -> Vec<Vec<(u32, Counts)>> {
        runs.clusters().map(|cells| cells.map(|cell| (cell.tag(), cell.counts())).collect()).collect()
    }

    #[test]
    fn a_run_has_what_was_done_since_the_one_before() {
        let mut ledger = Ledger::new(2);
        ledger.touch(1);
        ledger.iteration_to(1, |_| counts([4, 0, 0]));
        ledger.touch(1);
        ledger.touch(0);
        ledger.touch(1);
        ledger.iteration_to(0, |cell| counts([[0, 1, 0], [4, 2, 0]][cell as usize]));
        ledger.touch(0);
        let runs = ledger.finish(|_| Counts { other_cycles: 7, ..counts([0, 1, 3]) });
        let back = (0, Counts { other_cycles: 7, ..counts([0, 0, 3]) });
        assert_eq!(
            written(&runs),
            [vec![(1, counts([4, 0, 0])), back], vec![(1, counts([0, 2, 0])), (0, counts([0, 1, 0]))]]
        );
    }

    #[test]
    fn neighbours_are_put_together_when_there_are_too_many() {
        let mut runs = CellRuns::bounded(2, 16, 2);
        // Cell 0 in every run, another one in each; run 3 is come back to.
        for run in (0..9).chain([3]) {
            runs.add(run, [(0, counts([1, 0, 0])), (run as u32 + 1, counts([0, 0, 1]))].into_iter());
        }
        let cells = |cluster: &Vec<(u32, Counts)>| {
            cluster.iter().map(|(tag, counts)| (*tag, counts.accesses())).collect::<Vec<_>>()
        };
        let cells: Vec<_> = written(&runs).iter().map(cells).collect();
        // Four runs each, as far as there are some; what came later stands behind.
        assert_eq!(
            cells,
            [
                vec![(0, 4), (1, 1), (2, 1), (3, 1), (4, 1), (0, 1), (4, 1)],
                vec![(0, 4), (5, 1), (6, 1), (7, 1), (8, 1)],
                vec![(0, 1), (9, 1)],
            ]
        );
    }

    #[test]
    fn there_are_never_too_few_clusters() {
        let mut runs = CellRuns::bounded(2, 16, 4);
        for run in 0..1000 {
            runs.add(run, (0..10).map(|tag| (tag, counts([1, 0, 0]))));
        }
        assert!((4..=16).contains(&runs.count()), "{}", runs.count());
        let all: u64 = written(&runs).iter().flatten().map(|(_, counts)| counts.accesses()).sum();
        assert_eq!(all, 10_000);
    }
}
