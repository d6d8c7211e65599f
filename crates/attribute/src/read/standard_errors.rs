//! Standard errors of the figures of a row, where the trace is a sample.
//!
//! Each figure is a ratio of sums over clusters ([`crate::sampled::sample`]): `y` is the row's
//! part, `x` the whole. In most clusters most rows have nothing, and there the residual is `R x`.
//! So only the clusters that a row is in are visited:
//!
//! ```text
//! Σ (yᵢ − R xᵢ)²  =  Σ (yᵢ − R xᵢ)²  +  R² (Σ xᵢ² − Σ xᵢ²)
//!  all                its clusters         all   its clusters
//! ```

use std::ops::AddAssign;

use memlode_simulate::MAX_LEVELS;

use crate::counts::Counts;
use crate::read::cost::CostModel;
use crate::sampled::cell_runs::{CellRuns, Entry};
use crate::sampled::sample::{Estimate, clusters_error};

/// Standard errors of a row's figures, each in the unit of its figure. For counts: how much the
/// count would vary between parts of the program with as many accesses as the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StandardErrors {
    /// The error of its part of all modelled stall cycles.
    pub stall_share: f64,
    /// The error of its part of all waiting; of stall cycles where there is no cost model.
    pub wait_share: f64,
    /// The error of its modelled stall cycles.
    pub stall_cycles: f64,
    /// The error of its accesses.
    pub accesses: f64,
    /// The error of its misses of each level, innermost first.
    pub misses: [f64; MAX_LEVELS],
    /// The error of its misses as parts of its accesses; `None` if it is in one cluster alone.
    pub miss_ratios: Option<[f64; MAX_LEVELS]>,
}

/// Figures that are estimated of a row, of its part in a cluster, or of everything there.
#[derive(Clone, Copy, Default)]
struct Figures {
    accesses: f64,
    stall: f64,
    wait: f64,
    misses: [f64; MAX_LEVELS],
}

impl AddAssign<&Figures> for Figures {
    fn add_assign(&mut self, other: &Figures) {
        self.accesses += other.accesses;
        self.stall += other.stall;
        self.wait += other.wait;
        for (sum, more) in self.misses.iter_mut().zip(other.misses) {
            *sum += more;
        }
    }
}

/// Sums of squares over the clusters that a row is in.
#[derive(Clone, Copy, Default)]
struct Squares {
    clusters: u32,
    /// The whole that the row is a part of: accesses, and stall cycles.
    all_accesses: f64,
    all_stall: f64,
    all_wait: f64,
    /// Sums of the residuals.
    stall_share: f64,
    wait_share: f64,
    stall_cycles: f64,
    accesses: f64,
    misses: [f64; MAX_LEVELS],
    miss_ratios: [f64; MAX_LEVELS],
}

impl Squares {
    /// Adds the row's figures in a cluster, all figures of that cluster, and both over all
    /// clusters.
    fn add(&mut self, y: &Figures, x: &Figures, row: &Figures, all: &Figures) {
        let residual = |y: f64, x: f64, row: f64, all: f64| (y - over(row, all) * x).powi(2);
        self.clusters += 1;
        self.all_accesses += x.accesses.powi(2);
        self.all_stall += x.stall.powi(2);
        self.all_wait += x.wait.powi(2);
        self.stall_share += residual(y.stall, x.stall, row.stall, all.stall);
        self.wait_share += residual(y.wait, x.wait, row.wait, all.wait);
        self.stall_cycles += residual(y.stall, x.accesses, row.stall, all.accesses);
        self.accesses += residual(y.accesses, x.accesses, row.accesses, all.accesses);
        for level in 0..MAX_LEVELS {
            let (here, whole) = (y.misses[level], row.misses[level]);
            self.misses[level] += residual(here, x.accesses, whole, all.accesses);
            self.miss_ratios[level] += residual(here, y.accesses, whole, row.accesses);
        }
    }
}

/// `y / x`; nothing of nothing is nothing.
fn over(y: f64, x: f64) -> f64 {
    if x > 0.0 { y / x } else { 0.0 }
}

/// A profile's runs, taken as a sample.
pub(crate) struct Sampled<'a> {
    runs: &'a CellRuns,
    latencies: &'a [u32],
    costs: Option<&'a CostModel>,
    /// Part of the program that they are.
    covered: f64,
    /// Figures of each cluster, and of all.
    clusters: Vec<Figures>,
    all: Figures,
}

impl<'a> Sampled<'a> {
    /// `None` if there are less than two clusters.
    pub fn new(
        runs: &'a CellRuns,
        latencies: &'a [u32],
        costs: Option<&'a CostModel>,
        covered: f64,
    ) -> Option<Sampled<'a>> {
        let mut sampled =
            Sampled { runs, latencies, costs, covered, clusters: Vec::new(), all: Figures::default() };
        let whole = |cells: &mut dyn Iterator<Item = Entry<'_>>| {
            let mut sum = Figures::default();
            cells.for_each(|cell| sum += &sampled.figures(&cell));
            sum
        };
        let clusters: Vec<Figures> = runs.clusters().map(|mut cells| whole(&mut cells)).collect();
        clusters.iter().for_each(|cluster| sampled.all += cluster);
        sampled.clusters = clusters;
        (sampled.clusters.len() > 1).then_some(sampled)
    }

    /// Returns the figures of a cell in a cluster.
    fn figures(&self, cell: &Entry<'_>) -> Figures {
        let counts: Counts = cell.counts();
        let stall = counts.stall_cycles(self.latencies) as f64;
        let wait = self.costs.map_or(stall, |costs| {
            let by_depth = std::array::from_fn(|depth| counts.reads[depth] + counts.writes[depth]);
            costs.cycles_of(cell.tag(), &by_depth)
        });
        Figures {
            accesses: counts.accesses() as f64,
            stall,
            wait,
            misses: std::array::from_fn(|level| counts.misses(level) as f64),
        }
    }

    /// The errors of `rows` rows; `row_of` has the row of each cell's tag.
    pub fn errors(&self, rows: usize, row_of: &[Option<usize>]) -> Vec<StandardErrors> {
        // What each row did in the cluster at hand, and which of them are there.
        let mut sums: Vec<Option<Figures>> = vec![None; rows];
        let mut here = Vec::new();
        let mut of_rows = |cells: &mut dyn Iterator<Item = Entry<'_>>,
                           done: &mut dyn FnMut(usize, Figures)| {
            for cell in cells {
                let Some(row) = row_of.get(cell.tag() as usize).copied().flatten() else { continue };
                let sum = sums[row].get_or_insert_with(|| {
                    here.push(row);
                    Figures::default()
                });
                *sum += &self.figures(&cell);
            }
            here.drain(..).for_each(|row| done(row, sums[row].take().unwrap_or_default()));
        };
        let mut whole = vec![Figures::default(); rows];
        for mut cells in self.runs.clusters() {
            of_rows(&mut cells, &mut |row, part| whole[row] += &part);
        }
        let mut squares = vec![Squares::default(); rows];
        for (mut cells, cluster) in self.runs.clusters().zip(&self.clusters) {
            of_rows(&mut cells, &mut |row, part| squares[row].add(&part, cluster, &whole[row], &self.all));
        }
        let mut all = Figures::default();
        for cluster in &self.clusters {
            all.accesses += cluster.accesses.powi(2);
            all.stall += cluster.stall.powi(2);
            all.wait += cluster.wait.powi(2);
        }
        whole.iter().zip(&squares).map(|(row, squares)| self.finish(row, squares, &all)).collect()
    }

    /// The errors of a row; `all` are the sums of squares over all clusters.
    fn finish(&self, row: &Figures, squares: &Squares, all: &Figures) -> StandardErrors {
        let k = self.clusters.len() as f64;
        // Squares of what everything did where the row is not.
        let other_accesses = (all.accesses - squares.all_accesses).max(0.0);
        let other_stall = (all.stall - squares.all_stall).max(0.0);
        let other_wait = (all.wait - squares.all_wait).max(0.0);
        let error = |squares: f64, ratio: f64, others: f64| {
            clusters_error(squares + ratio * ratio * others, k, self.covered)
        };
        let of_accesses = |squares: f64, y: f64| error(squares, over(y, self.all.accesses), other_accesses);
        // Where a row is not, nothing is known of how often it would miss.
        let own = f64::from(squares.clusters);
        let ratio =
            |level: usize| over(clusters_error(squares.miss_ratios[level], own, self.covered), row.accesses);
        let stall = error(squares.stall_share, over(row.stall, self.all.stall), other_stall);
        let wait = error(squares.wait_share, over(row.wait, self.all.wait), other_wait);
        StandardErrors {
            wait_share: over(wait, self.all.wait),
            stall_share: over(stall, self.all.stall),
            stall_cycles: of_accesses(squares.stall_cycles, row.stall),
            accesses: of_accesses(squares.accesses, row.accesses),
            misses: std::array::from_fn(|level| of_accesses(squares.misses[level], row.misses[level])),
            miss_ratios: (squares.clusters > 1).then(|| std::array::from_fn(ratio)),
        }
    }

    /// The parts of all waiting that a few groups of cells have; `group_of` has the group of each
    /// cell's tag.
    pub fn shares(&self, groups: usize, group_of: &[Option<usize>]) -> Shares {
        let clusters = self.runs.clusters().zip(&self.clusters).map(|(cells, whole)| {
            let mut wait = vec![0.0; groups];
            for cell in cells {
                if let Some(group) = group_of.get(cell.tag() as usize).copied().flatten() {
                    wait[group] += self.figures(&cell).wait;
                }
            }
            (wait, whole.wait)
        });
        Shares { clusters: clusters.collect(), covered: self.covered }
    }
}

/// Parts of all waiting that some groups of cells have.
pub struct Shares {
    /// Indexed by cluster: the cycles of each group, and all.
    clusters: Vec<(Vec<f64>, f64)>,
    covered: f64,
}

impl Shares {
    /// A group's part.
    pub fn of(&self, group: usize) -> Estimate {
        Estimate::ratio(self.clusters.iter().map(|(wait, all)| (wait[group], *all)), self.covered)
    }

    /// Returns the difference between the parts of two groups. Both are estimated from the same
    /// clusters, so their separate errors do not give the error of the difference.
    pub fn difference(&self, group: usize, other: usize) -> Estimate {
        let runs = self.clusters.iter().map(|(wait, all)| (wait[group] - wait[other], *all));
        Estimate::ratio(runs, self.covered)
    }
}
