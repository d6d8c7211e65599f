//! Rounds of runs, in random order at random layouts, until the time is over.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::Serialize;
use tempfile::TempDir;

use crate::Error;
use crate::link::LinkLine;
use crate::process::{
    AddressLayout, Launch, Pinned, RunLimits, Sample, StopFlag, calibrate, can_fix_addresses, processors,
};
use crate::stats::{Random, median, random};

/// Runs at random layouts for each one at the layout given.
pub const RANDOM_RUNS: usize = 2;
/// Eleven differences of one sign are the fewest that a claim can rest on; one more allows for a tie.
pub const LEAST_ROUNDS: usize = 12;
/// More rounds would add little.
const MOST_ROUNDS: usize = 1000;
/// Runs of each program that only serve to make the plan.
const PILOTS: usize = 2;
/// The distance of stack starts that are tried: the kernel's alignment of stacks, over one page.
const STACK_STEP: usize = 16;
const STACK_STARTS: usize = 256;

/// The metric that is compared: CPU time or wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Seconds that processors spent on the program; other programs affect it only as far as they
    /// disturb its caches.
    Cpu,
    /// Seconds from the program's start to its end.
    Wall,
}

/// A plan of what to compare, and how.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The programs; the others are compared with the first.
    pub programs: Vec<Launch>,
    /// Indexed by program: how to link it anew, if that is known.
    pub links: Vec<Option<LinkLine>>,
    /// Variants of each program to link.
    pub variants: usize,
    /// Shell commands that are run before each run of a program: one for all, or one for each; not timed.
    pub prepare: Vec<String>,
    /// Runs of each program before anything is measured.
    pub warmup: usize,
    /// When to end. At least [`LEAST_ROUNDS`] rounds must fit.
    pub time: Duration,
    /// Number of rounds, for any time.
    pub rounds: Option<usize>,
    /// The metric that is compared; chosen by a few runs if it is not given.
    pub metric: Option<Metric>,
    /// All random choices follow from it.
    pub seed: u64,
}

/// The current work, for progress displays.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Programs are linked: number done, number of all.
    Linking(usize, usize),
    /// The plan: rounds, seconds of each, and in all.
    Planned {
        /// Rounds.
        rounds: usize,
        /// Seconds of one.
        round: f64,
        /// Runs in one.
        runs: usize,
    },
    /// The number of rounds that are done.
    Round(usize),
}

/// The place of a run, and its surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BenchPlace {
    /// Which program.
    pub program: usize,
    /// Which round.
    pub round: usize,
    /// Which of the runs of this program in the round: 0 is the layout given.
    pub slot: usize,
    /// Number of its link; 0 is the original program.
    pub variant: usize,
    /// Environment and addresses.
    pub layout: AddressLayout,
}

/// One run that counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BenchRun {
    /// Its place and surroundings.
    pub place: BenchPlace,
    /// Its times.
    pub sample: Sample,
    /// Nanoseconds of the calibration beside it, the mean of one before and one after.
    pub calibration: f64,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The runs of whole rounds, in the order in which they were made.
    pub runs: Vec<BenchRun>,
    /// Whole rounds.
    pub rounds: usize,
    /// The metric that is compared.
    pub metric: Metric,
    /// It was ended early.
    pub interrupted: bool,
    /// The system allows the layout given to be the same in each run.
    pub fixed_addresses: bool,
}

/// Measures.
///
/// # Errors
/// If a program cannot be run or fails, if the time does not suffice, or if `stop` was set before there was a result.
pub fn measure(plan: &BenchPlan, stop: &StopFlag, tell: &mut dyn FnMut(Progress)) -> Result<Measured, Error> {
    let bench = Bench { plan, stop, linked: link(plan, stop, tell)? };
    let started = Instant::now();
    let pilots = bench.pilots()?;
    let metric = plan.metric.unwrap_or_else(|| choose(&pilots));
    let walls: f64 =
        pilots.iter().map(|runs| median(&runs.iter().map(|run| run.wall).collect::<Vec<_>>())).sum();
    let runs = plan.programs.len() * (1 + RANDOM_RUNS);
    let round = walls * (1 + RANDOM_RUNS) as f64 + runs as f64 * 4.0 * calibrate() / 1e9;
    let least =
        LEAST_ROUNDS.max(plan.links.iter().flatten().count().min(1) * plan.variants.div_ceil(RANDOM_RUNS));
    let left = plan.time.saturating_sub(started.elapsed()).as_secs_f64();
    let rounds = plan.rounds.unwrap_or(((left / round) as usize).min(MOST_ROUNDS));
    if plan.rounds.is_none() && rounds < least {
        return Err(Error::LimitTooShort {
            round_seconds: round,
            rounds: least,
            needed_seconds: started.elapsed().as_secs_f64() + 1.2 * round * least as f64,
        });
    }
    tell(Progress::Planned { rounds, round, runs });
    let until = plan.rounds.is_none().then(|| started + plan.time);
    bench.rounds(rounds, until, least, metric, tell)
}

struct Bench<'a> {
    plan: &'a BenchPlan,
    stop: &'a StopFlag,
    /// The file by program and by variant. The first is the original program.
    linked: Linked,
}

struct Linked {
    programs: Vec<Vec<PathBuf>>,
    /// Goes with all that is in it.
    _folder: Option<TempDir>,
}

/// Links the programs that can be linked, each in as many variants.
fn link(plan: &BenchPlan, stop: &StopFlag, tell: &mut dyn FnMut(Progress)) -> Result<Linked, Error> {
    let total = plan.links.iter().flatten().count() * plan.variants;
    if total == 0 {
        return Ok(Linked { programs: vec![Vec::new(); plan.programs.len()], _folder: None });
    }
    let folder = tempfile::Builder::new().prefix("memlode-link-").tempdir();
    let folder =
        folder.map_err(|source| Error::System { doing: "cannot make a temporary folder", source })?;
    let mut programs = Vec::new();
    let mut done = 0;
    for (number, line) in plan.links.iter().enumerate() {
        let mut files = Vec::new();
        for variant in 0..if line.is_some() { plan.variants } else { 0 } {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            tell(Progress::Linking(done, total));
            done += 1;
            // Programs that share objects do not share orders: layouts are drawn anew for each.
            let seed = plan.seed.wrapping_mul(1_000_003) ^ (1 + variant + number * plan.variants) as u64;
            files.extend(line.as_ref().map(|line| line.link(seed.max(1), folder.path())).transpose()?);
        }
        programs.push(files);
    }
    Ok(Linked { programs, _folder: Some(folder) })
}

/// CPU time for programs that only compute on one processor; wall time if they wait, or use
/// several.
fn choose(pilots: &[Vec<Sample>]) -> Metric {
    let alone = |run: &Sample| run.cpu < 1.05 * run.wall && run.wall - run.queued - run.cpu < 0.1 * run.wall;
    match pilots.iter().all(|runs| runs.iter().any(alone)) {
        true => Metric::Cpu,
        false => Metric::Wall,
    }
}

impl Bench<'_> {
    fn pilots(&self) -> Result<Vec<Vec<Sample>>, Error> {
        let all = |program: usize| {
            let all: Result<Vec<_>, _> =
                (0..self.plan.warmup + PILOTS).map(|_| self.once(program, 0, AddressLayout::GIVEN)).collect();
            all.map(|runs| runs[self.plan.warmup..].to_vec())
        };
        (0..self.plan.programs.len()).map(all).collect()
    }

    fn rounds(
        &self,
        rounds: usize,
        until: Option<Instant>,
        least: usize,
        metric: Metric,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Measured, Error> {
        let mut random = random(self.plan.seed);
        let cpus = processors();
        let fixed_addresses = can_fix_addresses();
        let mut measured =
            Measured { runs: Vec::new(), rounds: 0, metric, interrupted: false, fixed_addresses };
        let mut orders = Orders::new(self.plan.variants);
        while measured.rounds < rounds
            && (measured.rounds < least || until.is_none_or(|until| Instant::now() < until))
        {
            // Where many threads work, the system chooses.
            let cpu = cpus.choose(&mut random).filter(|_| metric == Metric::Cpu);
            let _pinned = cpu.map(|cpu| Pinned::to(*cpu));
            match self.round(measured.rounds, &mut orders, &mut random) {
                Ok(runs) => measured.runs.extend(runs),
                Err(Error::Interrupted) if measured.rounds >= LEAST_ROUNDS => {
                    measured.interrupted = true;
                    return Ok(measured);
                }
                Err(error) => return Err(error),
            }
            measured.rounds += 1;
            tell(Progress::Round(measured.rounds));
        }
        Ok(measured)
    }

    /// Every program at every layout of one round.
    fn round(&self, round: usize, orders: &mut Orders, random: &mut Random) -> Result<Vec<BenchRun>, Error> {
        let mut places = Vec::new();
        for slot in 0..=RANDOM_RUNS {
            let layout = match slot {
                0 => AddressLayout::GIVEN,
                _ => AddressLayout {
                    padding: STACK_STEP * random.random_range(2..2 + STACK_STARTS),
                    randomised: true,
                },
            };
            let variant = if slot == 0 { 0 } else { orders.next(random) };
            for program in 0..self.plan.programs.len() {
                let linked = !self.linked.programs[program].is_empty();
                places.push(BenchPlace {
                    program,
                    round,
                    slot,
                    variant: if linked { variant } else { 0 },
                    layout,
                });
            }
        }
        places.shuffle(random);
        let one = |place: BenchPlace| {
            let before = calibrate();
            let sample = self.once(place.program, place.variant, place.layout)?;
            Ok(BenchRun { place, sample, calibration: (before + calibrate()) / 2.0 })
        };
        places.into_iter().map(one).collect()
    }

    /// One run; variant 0 is the original program.
    fn once(&self, program: usize, variant: usize, layout: AddressLayout) -> Result<Sample, Error> {
        let prepare = &self.plan.prepare;
        if let Some(line) = prepare.get(program).or(prepare.first().filter(|_| prepare.len() == 1)) {
            let status =
                Command::new("sh").arg("-c").arg(line).stdin(Stdio::null()).stdout(Stdio::null()).status();
            match status {
                Ok(status) if status.success() => {}
                _ if self.stop.load(Ordering::Relaxed) => return Err(Error::Interrupted),
                Ok(status) => return Err(Error::Usage(format!("--prepare `{line}` failed: {status}"))),
                Err(source) => return Err(Error::NotStarted { program: "sh".into(), source }),
            }
        }
        let mut launch = self.plan.programs[program].clone();
        if variant > 0 {
            launch.words[0] = self.linked.programs[program][variant - 1].clone().into();
        }
        // Nothing that is worth comparing takes as long as everything together.
        let longest = if self.plan.rounds.is_some() { Duration::MAX } else { self.plan.time };
        launch.run(layout, RunLimits { stop: self.stop, longest })
    }
}

/// Numbers of variants in random orders, each as often as any other.
struct Orders {
    variants: usize,
    left: Vec<usize>,
}

impl Orders {
    fn new(variants: usize) -> Orders {
        Orders { variants, left: Vec::new() }
    }

    fn next(&mut self, random: &mut Random) -> usize {
        if self.left.is_empty() {
            self.left = (1..=self.variants).collect();
            self.left.shuffle(random);
        }
        self.left.pop().unwrap_or(0)
    }
}
