//! Traces with gaps: standard errors of the figures of rows.

mod common;

use common::site;
use memlode_attribute::LoadedGlobal;
use memlode_attribute::setup::Setup;
use memlode_attribute::simulators::detailed;
use memlode_attribute::tables::{Row, Tables};
use memlode_attribute::{CellRuns, Counts, Estimate, Profile, Profiler, StandardErrors};
use memlode_machine::Machine;
use memlode_simulate::{Hierarchy, LevelSpec};
use memlode_trace::event::{Access, Batch, ProcessId, ThreadId};
use memlode_trace::sites::{Site, SiteId, SiteKind, SiteTable};
use proptest::prelude::*;

/// Cycles of the two levels and of memory.
const LATENCIES: [u32; 3] = [1, 11, 101];
const A: SiteId = SiteId(0);
const B: SiteId = SiteId(1);
const C: SiteId = SiteId(2);

/// Two sites that load, and one that stores.
fn sites() -> Vec<Site> {
    [SiteKind::Load, SiteKind::Load, SiteKind::Store].map(|kind| site(kind, 0)).to_vec()
}

/// Two levels of one line and of four lines: first touches miss both.
fn caches(cores: u32) -> Hierarchy {
    let level = |lines: u64, ways| LevelSpec { bytes: 64 * lines, ways, line_bytes: 64, shared_by: 1 };
    Hierarchy::new(&[level(1, 1), level(4, 4)], cores).expect("caches")
}

/// A chunk; `run` is when it was recorded, and it comes after a gap.
fn chunk(thread: u32, run: u64, accesses: Vec<Access>) -> Batch {
    Batch {
        process: Some(ProcessId(0)),
        thread: Some(ThreadId(thread)),
        after_gap: true,
        stamps: (100 * run + 1, 100 * run + 50),
        accesses,
        ..Batch::default()
    }
}

/// The rows of a profile by site, in the order of the sites.
fn by_site(profile: &Profile, covered: f64) -> Vec<Row<SiteId>> {
    let names = SiteTable::default();
    let tables = Tables::new(profile, &names, &LATENCIES).of_sample(covered);
    let mut rows = tables.roll(|cell| Some(cell.site));
    rows.sort_by_key(|row| row.key);
    rows
}

/// Touches lines for the first time, one after the other.
#[derive(Default)]
struct Fresh(u64);

impl Fresh {
    fn access(&mut self, site: SiteId) -> Access {
        self.0 += 64;
        Access { address: 0x10_0000 + self.0, bytes: 8, site }
    }
}

/// A profile of runs, each one chunk.
fn profile(runs: impl IntoIterator<Item = Vec<Access>>) -> Profile {
    let mut profiler = Profiler::new(&sites(), caches(1));
    profiler.watch_gaps(None);
    for (run, accesses) in (1..).zip(runs) {
        profiler.observe(&chunk(0, run, accesses));
    }
    profiler.finish()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

#[test]
fn three_bursts_by_hand() {
    let mut fresh = Fresh::default();
    // Of each run: lines that A touches for the first time, how often it comes back to the last one, and those of B and C.
    let runs = [(3, 1, 1, 0), (1, 1, 3, 0), (2, 2, 1, 1)].map(|(a, again, b, c)| {
        let mut accesses: Vec<Access> = (0..a).map(|_| fresh.access(A)).collect();
        accesses.extend(vec![accesses[a - 1]; again]);
        accesses.extend((0..b).map(|_| fresh.access(B)));
        accesses.extend((0..c).map(|_| fresh.access(C)));
        accesses
    });
    let rows = by_site(&profile(runs), 0.25);
    let errors = |site: SiteId| rows[site.0 as usize].errors.expect("errors");
    // (1 − f) k / (k − 1) is 0.75 · 3 / 2 = 1.125.
    let a = errors(A);
    // 300, 100 and 200 of 400 cycles each: R is a half, the residuals are 100, −100, 0. √(1.125 · 20000) = 150 of 1200.
    assert!(close(a.stall_share, 0.125), "{a:?}");
    // 4, 2, 4 of 5, 5, 6 accesses: R = 0.625, the residuals are 0.875, −1.125, 0.25.
    assert!(close(a.accesses, (1.125f64 * 2.09375).sqrt()), "{a:?}");
    // 3, 1, 2 misses: R = 0.375, the residuals are 1.125, −0.875, −0.25.
    assert!(close(a.misses[0], (1.125f64 * 2.09375).sqrt()), "{a:?}");
    assert!(close(a.misses[1], a.misses[0]) && close(a.stall_cycles, 100.0 * a.misses[1]), "{a:?}");
    // Of its own 4, 2, 4 accesses: R = 0.6, the residuals are 0.6, −0.2, −0.4.
    assert!(close(a.miss_ratios.expect("ratios")[0], (1.125f64 * 0.56).sqrt() / 10.0), "{a:?}");
    // 0, 0 and 100 of 400 cycles: R = 1/12, the residuals are −100/3, −100/3, 200/3.
    let c = errors(C);
    assert!(close(c.stall_share, 7500f64.sqrt() / 1200.0), "{c:?}");
    // One run alone tells nothing of how the row's ratios differ from run to run.
    assert_eq!(c.miss_ratios, None);
}

#[test]
fn the_error_of_a_difference_is_not_the_sum_of_two() {
    let mut fresh = Fresh::default();
    let runs = [(3, 1), (1, 3), (2, 2)].map(|(a, b)| {
        let mut accesses: Vec<Access> = (0..a).map(|_| fresh.access(A)).collect();
        accesses.extend((0..b).map(|_| fresh.access(B)));
        accesses
    });
    let profile = profile(runs);
    let names = SiteTable::default();
    let tables = Tables::new(&profile, &names, &LATENCIES).of_sample(0.25);
    let shares = tables.shares(2, |cell| Some(cell.site.0 as usize)).expect("shares");
    let (share, difference) = (shares.of(0), shares.difference(0, 1));
    assert!(close(share.value, 0.5) && close(share.standard_error.expect("an error"), 0.125));
    // What one gains the other loses: 200, −200 and 0 cycles.
    assert!(close(difference.value, 0.0) && close(difference.standard_error.expect("an error"), 0.25));
}

#[test]
fn without_gaps_or_with_one_run_there_are_no_errors() {
    let mut fresh = Fresh::default();
    let mut run = || vec![fresh.access(A), fresh.access(B)];
    let one = profile([run()]);
    assert!(by_site(&one, 0.1).iter().all(|row| row.errors.is_none()));
    let mut profiler = Profiler::new(&sites(), caches(1));
    (0..3).for_each(|_| profiler.observe(&Batch { after_gap: false, ..chunk(0, 1, run()) }));
    assert!(by_site(&profiler.finish(), 0.1).iter().all(|row| row.errors.is_none()));
}

/// Chunks of a trace with gaps: thread, how many runs farther than the one before, accesses.
fn chunks() -> impl Strategy<Value = Vec<(u32, u64, Vec<Access>)>> {
    let access = (0u32..3, 0u64..40, prop::sample::select(vec![1u32, 8, 200]));
    let access =
        access.prop_map(|(site, at, bytes)| Access { address: 0x1000 + at * 24, bytes, site: SiteId(site) });
    prop::collection::vec((0u32..3, 0u64..2, prop::collection::vec(access, 0..30)), 1..40)
}

/// Returns a profiler's result for the runs. A thread's chunk is behind a gap if another run has
/// begun.
fn observed<S: memlode_attribute::Engine>(
    mut profiler: Profiler<S>,
    chunks: &[(u32, u64, Vec<Access>)],
) -> Profile {
    profiler.watch_gaps(None);
    let global = |symbol: &str, address| LoadedGlobal {
        address,
        bytes: 256,
        symbol: symbol.to_string(),
        image: "a.out".to_string(),
    };
    profiler.add_globals(ProcessId(0), [global("g", 0x1000), global("h", 0x1200)]);
    let (mut run, mut seen) = (1, [0; 3]);
    for (thread, farther, accesses) in chunks {
        run += farther;
        let seen = &mut seen[*thread as usize];
        let after_gap = std::mem::replace(seen, run) != run;
        // Threads that are late come back to the run that they slept in.
        profiler.observe(&Batch { after_gap, ..chunk(*thread, run, accesses.clone()) });
    }
    profiler.finish()
}

fn check(profile: &Profile) -> Result<(), TestCaseError> {
    let gaps = profile.gaps.as_ref().expect("gaps");
    let mut sums = vec![Counts::default(); profile.cells.len()];
    prop_assert_eq!(gaps.cells.count(), gaps.runs.len());
    for (cells, run) in gaps.cells.clusters().zip(&gaps.runs) {
        let mut all = Counts::default();
        for cell in cells {
            sums[cell.tag() as usize] += &cell.counts();
            all += &cell.counts();
        }
        // The levels count each run for themselves.
        prop_assert_eq!(all.accesses(), run.accesses);
        let misses = std::array::from_fn(|level| all.misses(level));
        prop_assert_eq!(misses, run.misses);
    }
    for cell in &profile.cells {
        prop_assert_eq!(&sums[cell.tag.index()], &cell.counts);
    }
    for row in by_site(profile, 0.3) {
        let expected = (gaps.cells.count() > 1).then(|| dense(profile, &gaps.cells, &row));
        prop_assert_eq!(row.errors.is_some(), expected.is_some());
        let Some((found, expected)) = row.errors.zip(expected) else { continue };
        prop_assert!(close(found.stall_share, expected.stall_share), "{found:?} {expected:?}");
        prop_assert!(close(found.stall_cycles, expected.stall_cycles), "{found:?} {expected:?}");
        prop_assert!(close(found.accesses, expected.accesses), "{found:?} {expected:?}");
        for level in 0..2 {
            prop_assert!(close(found.misses[level], expected.misses[level]), "{found:?} {expected:?}");
        }
    }
    Ok(())
}

/// The errors of a row, computed directly by the formula, with a number for every run.
fn dense(profile: &Profile, runs: &CellRuns, row: &Row<SiteId>) -> StandardErrors {
    let mut site_of = vec![A; profile.cells.len()];
    profile.cells.iter().for_each(|cell| site_of[cell.tag.index()] = cell.site);
    let runs: Vec<(Counts, Counts)> = runs
        .clusters()
        .map(|cells| {
            cells.fold((Counts::default(), Counts::default()), |(mut of_row, mut all), cell| {
                all += &cell.counts();
                if site_of[cell.tag() as usize] == row.key {
                    of_row += &cell.counts();
                }
                (of_row, all)
            })
        })
        .collect();
    let ratio = |y: &dyn Fn(&Counts) -> u64, x: &dyn Fn(&Counts) -> u64| {
        let pairs: Vec<(f64, f64)> =
            runs.iter().map(|(of_row, all)| (y(of_row) as f64, x(all) as f64)).collect();
        let sum: f64 = pairs.iter().map(|(_, x)| x).sum();
        let error = Estimate::ratio(pairs.into_iter(), 0.3).standard_error.unwrap_or(0.0);
        (error, error * sum)
    };
    let stall = |counts: &Counts| counts.stall_cycles(&LATENCIES);
    StandardErrors {
        wait_share: 0.0,
        stall_share: ratio(&stall, &stall).0,
        stall_cycles: ratio(&stall, &Counts::accesses).1,
        accesses: ratio(&Counts::accesses, &Counts::accesses).1,
        misses: std::array::from_fn(|level| ratio(&|counts| counts.misses(level), &Counts::accesses).1),
        miss_ratios: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn runs_add_up_to_the_rows(chunks in chunks()) {
        check(&observed(Profiler::new(&sites(), caches(3)), &chunks))?;
    }

    /// With translations and memory of other nodes, whose cycles are a part of the wait.
    #[test]
    fn runs_of_a_detailed_simulation_add_up_to_the_rows(chunks in chunks()) {
        let machine = Machine::named("skylake-sp").expect("a machine");
        let simulator = detailed(&machine, &Setup::of(&machine), 3).expect("a simulator");
        let profile = observed(Profiler::new(&sites(), simulator), &chunks);
        let accesses = chunks.iter().any(|(_, _, accesses)| !accesses.is_empty());
        prop_assert_eq!(profile.cells.iter().any(|cell| cell.counts.other_cycles > 0), accesses);
        check(&profile)?;
    }
}

/// Numbers that look random, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// A program of 1000 periods with phases: how often A and C miss in each, and how often B comes
/// back to a line that the second level has. Misses do not depend on what was recorded before.
fn periods() -> Vec<(u64, u64, u64)> {
    let mut random = Random(1);
    let period = |i: u64| {
        let busy = 1 + i / 130 % 3;
        (busy * (1 + random.below(8)), random.below(20), 2 + random.below(6))
    };
    (0..1000).map(period).collect()
}

/// One of these periods.
fn accesses(&(a, b, c): &(u64, u64, u64), fresh: &mut Fresh) -> Vec<Access> {
    let mut accesses = Vec::new();
    accesses.extend((0..a).map(|_| fresh.access(A)));
    accesses.extend((0..c).map(|_| fresh.access(C)));
    for _ in 0..b {
        // The last line but one is in the second level, and nowhere else.
        let again = Access { site: B, ..accesses[accesses.len() - 2] };
        accesses.push(again);
    }
    accesses
}

/// Takes samples of forty periods; returns for each how far the parts of the wait of A, B and C are
/// off, and their standard errors.
fn deviations(mut sample: impl FnMut() -> Vec<usize>) -> Vec<(f64, f64)> {
    let periods = periods();
    let stall = |&(a, b, c): &(u64, u64, u64)| [100 * a, 10 * b, 100 * c];
    let mut truth = [0.0; 3];
    for period in &periods {
        truth.iter_mut().zip(stall(period)).for_each(|(sum, stall)| *sum += stall as f64);
    }
    let all: f64 = truth.iter().sum();
    let mut fresh = Fresh::default();
    let mut found = Vec::new();
    for _ in 0..300 {
        let sample = sample();
        let covered = sample.len() as f64 / periods.len() as f64;
        let profile = profile(sample.into_iter().map(|i| accesses(&periods[i], &mut fresh)));
        let rows = by_site(&profile, covered);
        let total: u64 = rows.iter().map(|row| row.counts.stall_cycles(&LATENCIES)).sum();
        for (row, truth) in rows.iter().zip(truth) {
            let share = row.counts.stall_cycles(&LATENCIES) as f64 / total as f64;
            found.push((share - truth / all, row.errors.expect("errors").stall_share));
        }
    }
    found
}

/// Part of the samples whose true value lies within two standard errors.
fn within_two(deviations: &[(f64, f64)]) -> f64 {
    let within = deviations.iter().filter(|(off, error)| off.abs() <= 2.0 * error).count();
    within as f64 / deviations.len() as f64
}

#[test]
fn the_truth_is_mostly_within_two_standard_errors_of_a_random_sample() {
    let mut random = Random(2);
    let deviations = deviations(|| {
        let mut all: Vec<usize> = (0..1000).collect();
        for i in 0..40 {
            all.swap(i, i + random.below(1000 - i as u64) as usize);
        }
        all.truncate(40);
        all.sort_unstable();
        all
    });
    let within = within_two(&deviations);
    assert!((0.88..0.99).contains(&within), "{within}");
    // And they are no larger than they have to be.
    let mean = |square: &dyn Fn(&(f64, f64)) -> f64| deviations.iter().map(square).sum::<f64>();
    let told = (mean(&|(_, error)| error * error) / mean(&|(off, _)| off * off)).sqrt();
    assert!((0.85..1.15).contains(&told), "{told}");
}

/// Bursts come at regular times. In phases that are longer than the time between them, they meet
/// each phase as often as it is long, so the true error may be smaller than the standard error.
#[test]
fn the_truth_is_mostly_within_two_standard_errors_of_regular_bursts() {
    let mut random = Random(3);
    // Each burst is somewhere in its period of 25.
    let deviations = deviations(|| (0..40).map(|i| 25 * i + random.below(25) as usize).collect());
    let within = within_two(&deviations);
    assert!(within >= 0.88, "{within}");
}
