//! How far the figures of a row may be off, where the trace is a sample.
//!
//! Each is a ratio of sums over clusters ([`crate::sample`]): `y` is the row's part, `x` what it is a part of. In most clusters
//! most rows have nothing, and there the residual is `R x`. So only the clusters that a row is in are visited:
//!
//! ```text
//! Σ (yᵢ − R xᵢ)²  =  Σ (yᵢ − R xᵢ)²  +  R² (Σ xᵢ² − Σ xᵢ²)
//!  all                its clusters         all   its clusters
//! ```

use std::ops::AddAssign;

use memlode_simulate::MAX_LEVELS;

use crate::counts::Counts;
use crate::ledger::{CellRuns, Entry};
use crate::sample::{Estimate, clusters_error};

/// Standard errors of a row's figures, each in the unit of its figure. Those of counts are of what a part of the program with as many
/// accesses as the sample has may have instead.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Of its part of all modelled stall cycles.
    pub stall_share: f64,
    /// Of its modelled stall cycles.
    pub stall_cycles: f64,
    /// Of its accesses.
    pub accesses: f64,
    /// Of its misses of each level, innermost first.
    pub misses: [f64; MAX_LEVELS],
    /// Of its misses as parts of its accesses; `None` if it is in one cluster alone.
    pub miss_ratios: Option<[f64; MAX_LEVELS]>,
}

/// What is estimated of a row, of its part in a cluster, or of everything there.
#[derive(Clone, Copy, Default)]
struct Figures {
    accesses: f64,
    stall: f64,
    misses: [f64; MAX_LEVELS],
}

impl Figures {
    fn of(counts: &Counts, latencies: &[u32]) -> Figures {
        Figures {
            accesses: counts.accesses() as f64,
            stall: counts.stall_cycles(latencies) as f64,
            misses: std::array::from_fn(|level| counts.misses(level) as f64),
        }
    }
}

impl AddAssign<&Figures> for Figures {
    fn add_assign(&mut self, other: &Figures) {
        self.accesses += other.accesses;
        self.stall += other.stall;
        for (sum, more) in self.misses.iter_mut().zip(other.misses) {
            *sum += more;
        }
    }
}

/// Sums of squares over the clusters that a row is in.
#[derive(Clone, Copy, Default)]
struct Squares {
    clusters: u32,
    /// Of what the row is a part of: accesses, and stall cycles.
    all_accesses: f64,
    all_stall: f64,
    /// Of the residuals.
    stall_share: f64,
    stall_cycles: f64,
    accesses: f64,
    misses: [f64; MAX_LEVELS],
    miss_ratios: [f64; MAX_LEVELS],
}

impl Squares {
    /// What the row did in a cluster, what everything did there, and both in all clusters.
    fn add(&mut self, y: &Figures, x: &Figures, row: &Figures, all: &Figures) {
        let residual = |y: f64, x: f64, row: f64, all: f64| (y - over(row, all) * x).powi(2);
        self.clusters += 1;
        self.all_accesses += x.accesses.powi(2);
        self.all_stall += x.stall.powi(2);
        self.stall_share += residual(y.stall, x.stall, row.stall, all.stall);
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
    /// Part of the program that they are.
    covered: f64,
    /// What was done in each cluster, and in all.
    clusters: Vec<Figures>,
    all: Figures,
}

impl<'a> Sampled<'a> {
    /// `None` if there are less than two clusters.
    pub fn new(runs: &'a CellRuns, latencies: &'a [u32], covered: f64) -> Option<Sampled<'a>> {
        let whole = |cells: &mut dyn Iterator<Item = Entry<'_>>| {
            let mut sum = Counts::default();
            cells.for_each(|cell| sum += &cell.counts());
            Figures::of(&sum, latencies)
        };
        let clusters: Vec<Figures> = runs.clusters().map(|mut cells| whole(&mut cells)).collect();
        let mut all = Figures::default();
        clusters.iter().for_each(|cluster| all += cluster);
        (clusters.len() > 1).then_some(Sampled { runs, latencies, covered, clusters, all })
    }

    /// The errors of rows, whose counts these are; `row_of` has the row of each cell's tag.
    pub fn errors(&self, rows: &[&Counts], row_of: &[Option<usize>]) -> Vec<Errors> {
        let rows: Vec<Figures> = rows.iter().map(|counts| Figures::of(counts, self.latencies)).collect();
        let mut squares = vec![Squares::default(); rows.len()];
        // What each row did in the cluster at hand, and which of them are there.
        let mut sums: Vec<Option<Counts>> = vec![None; rows.len()];
        let mut here = Vec::new();
        for (cells, whole) in self.runs.clusters().zip(&self.clusters) {
            for cell in cells {
                let Some(row) = row_of.get(cell.tag() as usize).copied().flatten() else { continue };
                let sum = sums[row].get_or_insert_with(|| {
                    here.push(row);
                    Counts::default()
                });
                *sum += &cell.counts();
            }
            for row in here.drain(..) {
                let part = Figures::of(&sums[row].take().unwrap_or_default(), self.latencies);
                squares[row].add(&part, whole, &rows[row], &self.all);
            }
        }
        let all = self.clusters.iter().fold((0.0, 0.0), |(accesses, stall), cluster| {
            (accesses + cluster.accesses.powi(2), stall + cluster.stall.powi(2))
        });
        rows.iter().zip(&squares).map(|(row, squares)| self.finish(row, squares, all)).collect()
    }

    /// The errors of a row; `all` are the sums of the squares of accesses and stall cycles of all clusters.
    fn finish(&self, row: &Figures, squares: &Squares, all: (f64, f64)) -> Errors {
        let k = self.clusters.len() as f64;
        // Squares of what everything did where the row is not.
        let other_accesses = (all.0 - squares.all_accesses).max(0.0);
        let other_stall = (all.1 - squares.all_stall).max(0.0);
        let error = |squares: f64, ratio: f64, others: f64| {
            clusters_error(squares + ratio * ratio * others, k, self.covered)
        };
        let of_accesses = |squares: f64, y: f64| error(squares, over(y, self.all.accesses), other_accesses);
        // Where a row is not, nothing is known of how often it would miss.
        let own = f64::from(squares.clusters);
        let ratio =
            |level: usize| over(clusters_error(squares.miss_ratios[level], own, self.covered), row.accesses);
        let stall = error(squares.stall_share, over(row.stall, self.all.stall), other_stall);
        Errors {
            stall_share: over(stall, self.all.stall),
            stall_cycles: of_accesses(squares.stall_cycles, row.stall),
            accesses: of_accesses(squares.accesses, row.accesses),
            misses: std::array::from_fn(|level| of_accesses(squares.misses[level], row.misses[level])),
            miss_ratios: (squares.clusters > 1).then(|| std::array::from_fn(ratio)),
        }
    }

    /// The parts of all stall cycles that a few groups of cells have; `group_of` has the group of each cell's tag.
    pub fn shares(&self, groups: usize, group_of: &[Option<usize>]) -> Shares {
        let clusters = self.runs.clusters().zip(&self.clusters).map(|(cells, whole)| {
            let mut stall = vec![0.0; groups];
            for cell in cells {
                if let Some(group) = group_of.get(cell.tag() as usize).copied().flatten() {
                    stall[group] += cell.counts().stall_cycles(self.latencies) as f64;
                }
            }
            (stall, whole.stall)
        });
        Shares { clusters: clusters.collect(), covered: self.covered }
    }
}

/// Parts of all modelled stall cycles that some groups of cells have.
pub struct Shares {
    /// By cluster: the stall cycles of each group, and all.
    clusters: Vec<(Vec<f64>, f64)>,
    covered: f64,
}

impl Shares {
    /// A group's part.
    pub fn of(&self, group: usize) -> Estimate {
        Estimate::ratio(self.clusters.iter().map(|(stall, all)| (stall[group], *all)), self.covered)
    }

    /// By how much a group's part is larger than another's. They are estimated from the same clusters, so the errors of the two do
    /// not tell that of their difference.
    pub fn difference(&self, group: usize, other: usize) -> Estimate {
        let runs = self.clusters.iter().map(|(stall, all)| (stall[group] - stall[other], *all));
        Estimate::ratio(runs, self.covered)
    }
}
