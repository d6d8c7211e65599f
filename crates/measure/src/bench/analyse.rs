//! From runs to effects.

use serde::Serialize;

use super::measure::{BenchPlan, BenchRun, Measured, Metric, RANDOM_RUNS};
use crate::link::LinkVariation;
use crate::stats::{Effect, Random, median, pseudomedian, quantile, random};

/// A fit that explains less is not used: it would add the calibration's own noise.
const EXPLAINS: f64 = 0.1;

/// The result.
#[derive(Clone, Debug)]
pub struct Result {
    /// The metric that is compared.
    pub metric: Metric,
    /// All random choices followed from it.
    pub seed: u64,
    /// Rounds that everything rests on.
    pub rounds: usize,
    /// It was ended early.
    pub interrupted: bool,
    /// The programs whose code was laid out anew. Addresses and the length of the environment are
    /// varied for all.
    pub code: CodeVariation,
    /// The programs in the order in which they were given.
    pub programs: Vec<Contestant>,
    /// Each but the first with the first.
    pub comparisons: Vec<Comparison>,
    /// The trust that the machine deserved meanwhile.
    pub trust: Trust,
    /// Notes that a reader should know.
    pub notes: Vec<BenchNote>,
    /// Every run.
    pub runs: Vec<BenchRun>,
}

/// Variation of the layout of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeVariation {
    /// All programs were linked anew, the first of them in this way.
    All(LinkVariation),
    /// Some were, the first of them in this way.
    Some(LinkVariation),
    /// No program was.
    None,
}

/// A reason to read a result with care.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BenchNote {
    /// Programs waited for a processor.
    Busy {
        /// The part of the wall time.
        queued: f64,
        /// The metric that is compared.
        metric: Metric,
    },
    /// The processor's speed varied.
    Clock {
        /// The 90% quantile of the calibrations over the 10% quantile.
        clock: f64,
        /// The part of the differences between runs that it explains and that was taken out; none
        /// if it explains nothing.
        explained: Option<f64>,
    },
    /// Processes of a program went on after its end, and their time is not counted.
    LeftBehind,
    /// The system forbids fixed addresses, so the layout given has random ones.
    RandomAddresses,
    /// A run is mostly the start of a process.
    Short,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
pub struct Contestant {
    /// Its command.
    pub command: String,
    /// Seconds at the layout given.
    pub given: Spread,
    /// Seconds at random layouts.
    pub random: Spread,
    /// The time at the layout given over the time at random ones.
    pub layout: Effect,
}

/// The spread of times.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Half of the runs took at most this.
    pub median: f64,
    /// A tenth of them did.
    pub low: f64,
    /// Nine tenths did.
    pub high: f64,
}

/// One program beside the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Its number; the first is 0.
    pub program: usize,
    /// The ratio of times at the layouts given.
    pub given: Effect,
    /// The ratio over random layouts.
    pub random: Effect,
    /// The former relative to the latter: the effect of layout alone on the comparison.
    pub layout: Effect,
    /// Both programs were linked anew for random layouts.
    #[serde(skip)]
    pub is_code_varied: bool,
}

/// Signs of a machine that is busy or changes its clock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trust {
    /// The 90% quantile of the calibrations over the 10% quantile.
    pub clock: f64,
    /// The part of the differences between runs that the calibration beside them explains, 0 to 1; it is taken out.
    pub explained: f64,
    /// The part of the wall time in which programs waited for a processor.
    pub queued: f64,
}

impl Measured {
    /// Computes the result of these runs.
    pub fn result(self, plan: &BenchPlan) -> Result {
        let view = View { measured: &self, programs: plan.programs.len() };
        let mut random = random(plan.seed ^ 0x5eed);
        let comparisons = plan.programs.len().saturating_sub(1);
        let (slope, explained) = view.slope();
        let names: Vec<String> = plan.programs.iter().map(crate::process::Launch::text).collect();
        let linked: Vec<bool> = plan.links.iter().map(Option::is_some).collect();
        let all_linked = linked.iter().all(|linked| *linked);
        let compare = |program: usize, random: &mut Random| {
            let [given, over, layout] = view.against_first(program, slope);
            let given = Effect::of(&given, comparisons, random);
            let over = Effect::of(&over, comparisons, random);
            let layout = Effect::of(&layout, comparisons, random);
            let is_code_varied = linked[0] && linked[program];
            Comparison { program, given, random: over, layout, is_code_varied }
        };
        let compared: Vec<_> =
            (1..plan.programs.len()).map(|program| compare(program, &mut random)).collect();
        let programs = (0..plan.programs.len()).map(|program| Contestant {
            command: names[program].clone(),
            given: Spread::of(&view.times(program, true)),
            random: Spread::of(&view.times(program, false)),
            layout: Effect::of(&view.moved(program, slope), plan.programs.len(), &mut random),
        });
        let programs = programs.collect();
        let trust = view.trust(explained);
        let mut notes = trust.notes(self.metric);
        if self.runs.iter().any(|run| run.sample.left_behind) {
            notes.push(BenchNote::LeftBehind);
        }
        if !self.fixed_addresses {
            notes.push(BenchNote::RandomAddresses);
        }
        if view.times(0, true).iter().any(|time| *time < 0.005) {
            notes.push(BenchNote::Short);
        }
        let first = plan.links.iter().flatten().next().map(|line| line.varies());
        let code = match (all_linked, first) {
            (true, Some(varied)) => CodeVariation::All(varied),
            (false, Some(varied)) => CodeVariation::Some(varied),
            (_, None) => CodeVariation::None,
        };
        Result {
            metric: self.metric,
            seed: plan.seed,
            rounds: self.rounds,
            interrupted: self.interrupted,
            code,
            programs,
            comparisons: compared,
            trust,
            notes,
            runs: self.runs,
        }
    }
}

impl Spread {
    fn of(times: &[f64]) -> Spread {
        Spread { median: median(times), low: quantile(times, 0.1), high: quantile(times, 0.9) }
    }
}

impl Trust {
    fn notes(&self, metric: Metric) -> Vec<BenchNote> {
        let mut notes = Vec::new();
        if self.queued > 0.05 {
            notes.push(BenchNote::Busy { queued: self.queued, metric });
        }
        if self.clock > 1.05 {
            let explained = Some(self.explained).filter(|part| *part >= EXPLAINS);
            notes.push(BenchNote::Clock { clock: self.clock, explained });
        }
        notes
    }
}

struct View<'a> {
    measured: &'a Measured,
    programs: usize,
}

impl View<'_> {
    fn time(&self, run: &BenchRun) -> f64 {
        // Less than the clock's step is no time to take the logarithm of.
        match self.measured.metric {
            Metric::Cpu => run.sample.cpu.max(1e-6),
            Metric::Wall => run.sample.wall.max(1e-6),
        }
    }

    fn times(&self, program: usize, given: bool) -> Vec<f64> {
        let wanted = |run: &&BenchRun| run.place.program == program && (run.place.slot == 0) == given;
        self.measured.runs.iter().filter(wanted).map(|run| self.time(run)).collect()
    }

    /// Returns the run by round, slot and program.
    fn table(&self) -> Vec<Option<&BenchRun>> {
        let mut table = vec![None; self.measured.rounds * (1 + RANDOM_RUNS) * self.programs];
        for run in &self.measured.runs {
            table[self.at(run.place.round, run.place.slot, run.place.program)] = Some(run);
        }
        table
    }

    fn at(&self, round: usize, slot: usize, program: usize) -> usize {
        (round * (1 + RANDOM_RUNS) + slot) * self.programs + program
    }

    /// Returns how far times follow the calibration, from 0 (not at all) to 1 (in proportion), and
    /// which part of the differences between runs that explains. Fitted through zero, so that
    /// exchanging two programs only changes the signs of differences.
    fn slope(&self) -> (f64, f64) {
        let table = self.table();
        let mut pairs = Vec::new();
        for round in 0..self.measured.rounds {
            for slot in 0..=RANDOM_RUNS {
                // A program beside itself at another layout, and beside the first at the same.
                for program in 0..self.programs {
                    let other = if program > 0 {
                        table[self.at(round, slot, 0)]
                    } else {
                        table[self.at(round, (slot + 1) % (1 + RANDOM_RUNS), 0)]
                    };
                    if let (Some(a), Some(b)) = (table[self.at(round, slot, program)], other) {
                        pairs
                            .push(((a.calibration / b.calibration).ln(), (self.time(a) / self.time(b)).ln()));
                    }
                }
            }
        }
        // What differs because the programs differ is not for the clock to explain; bursts are not, either.
        let reach = 3.0 * median(&pairs.iter().map(|(_, time)| time.abs()).collect::<Vec<_>>());
        pairs.retain(|(_, time)| time.abs() <= reach);
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        let (xx, xy, yy) = (sum(&|p| p.0 * p.0), sum(&|p| p.0 * p.1), sum(&|p| p.1 * p.1));
        if xx <= 0.0 || yy <= 0.0 {
            return (0.0, 0.0);
        }
        let slope = (xy / xx).clamp(0.0, 1.0);
        let explained = 1.0 - (yy - 2.0 * slope * xy + slope * slope * xx) / yy;
        if explained < EXPLAINS { (0.0, explained.max(0.0)) } else { (slope, explained) }
    }

    /// The logarithm of the ratio of two runs, without the effect of the clock frequency.
    fn difference(&self, a: &BenchRun, b: &BenchRun, slope: f64) -> f64 {
        (self.time(a) / self.time(b)).ln() - slope * (a.calibration / b.calibration).ln()
    }

    /// Differences of a program and the first: at the layout given, over random ones, and the former less the latter.
    /// One for each round, or for each link where programs were linked anew: rounds that share a link share its luck.
    fn against_first(&self, program: usize, slope: f64) -> [Vec<f64>; 3] {
        let table = self.table();
        let pair = |round: usize, slot: usize| -> Option<(f64, usize)> {
            let (a, b) = (table[self.at(round, slot, program)]?, table[self.at(round, slot, 0)]?);
            Some((self.difference(a, b, slope), a.place.variant.max(b.place.variant)))
        };
        let mut given = Vec::new();
        let mut over = Units::default();
        let mut layout = Units::default();
        for round in 0..self.measured.rounds {
            let Some((at_given, _)) = pair(round, 0) else { continue };
            given.push(at_given);
            for slot in 1..=RANDOM_RUNS {
                let Some((at_random, variant)) = pair(round, slot) else { continue };
                over.add(round, variant, at_random);
                layout.add(round, variant, at_given - at_random);
            }
        }
        [given, over.finish(), layout.finish()]
    }

    /// Differences of a program at the layout given and at random ones.
    fn moved(&self, program: usize, slope: f64) -> Vec<f64> {
        let table = self.table();
        let mut units = Units::default();
        for round in 0..self.measured.rounds {
            let Some(given) = table[self.at(round, 0, program)] else { continue };
            for slot in 1..=RANDOM_RUNS {
                let Some(random) = table[self.at(round, slot, program)] else { continue };
                units.add(round, random.place.variant, self.difference(given, random, slope));
            }
        }
        units.finish()
    }

    fn trust(&self, explained: f64) -> Trust {
        let runs = &self.measured.runs;
        let calibrations: Vec<f64> = runs.iter().map(|run| run.calibration).collect();
        let wall: f64 = runs.iter().map(|run| run.sample.wall).sum();
        Trust {
            clock: quantile(&calibrations, 0.9) / quantile(&calibrations, 0.1),
            explained,
            queued: runs.iter().map(|run| run.sample.queued).sum::<f64>() / wall,
        }
    }
}

/// Values grouped by their units.
#[derive(Default)]
struct Units(std::collections::BTreeMap<(usize, usize), Vec<f64>>);

impl Units {
    fn add(&mut self, round: usize, variant: usize, value: f64) {
        let key = if variant > 0 { (0, variant) } else { (round, 0) };
        self.0.entry(key).or_default().push(value);
    }

    fn finish(self) -> Vec<f64> {
        self.0.into_values().map(|values| pseudomedian(&values)).collect()
    }
}
