//! Measures this machine without performance counters, and makes a machine file of it.
//!
//! Every constant is measured in several rounds. Its value is the median of the rounds, its spread the interquartile
//! range over the median. A constant that spreads more than [`MOST_SPREAD`] stays as it was assumed.

mod core;
mod kernels;
mod memory;
mod settled;
mod sharing;
mod touches;

use memlode_machine::{Constant, MOST_SPREAD, Machine};

use serde::Serialize;

use crate::Error;
use crate::process::{Pinned, processors};
use crate::stats::{median, quantile};

use self::core::Core;
pub use settled::settled;

use sharing::Sharing;
use touches::Touches;

/// Rounds that every constant is measured in.
const ROUNDS: usize = 9;

/// Most processors that the first one is paired with.
const PARTNERS: usize = 7;

/// A latency is far if it exceeds a near one by this factor.
const FAR: f64 = 1.5;

/// One measured constant.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its key in the machine file; of a level's latency, the level's name.
    pub name: String,
    /// Median of the rounds, in the unit of the key.
    pub value: f64,
    /// Interquartile range over median.
    pub spread: f64,
    /// The machine's earlier figure, if it is kept because the measurements spread too much or make
    /// no sense.
    pub kept: Option<f64>,
}

/// The measurements, and the machine with them.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The given machine, with measured constants in place of assumed ones.
    pub machine: Machine,
    /// Each constant.
    pub constants: Vec<Measured>,
    /// Notes on constants that could not be measured, and why, and on differences from the system's
    /// description.
    pub notes: Vec<MachineNote>,
}

/// A reason to read a calibration with care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineNote {
    /// There is one processor, so the cost of shared lines is assumed.
    OneProcessor,
    /// These processors did not run at the same time.
    Apart(usize, usize),
    /// Memory serves hardly later than this level, whose size is the system's word then.
    HardlyLater {
        /// The level's name.
        level: String,
    },
    /// Chases find less in the last level than the system says.
    Smaller {
        /// The level's name.
        level: String,
        /// Bytes that the system says.
        bytes: u64,
        /// Bytes that it is taken to have.
        believed: u64,
    },
}

/// Measures the costs of the machine's caches, memory and core, in some ten seconds. `machine` has
/// the shape of the caches, and the constants that cannot be measured.
///
/// # Errors
/// If there is not enough memory, or the kernel lets the thread run on no processor.
pub fn calibrate(machine: &Machine) -> Result<Calibration, Error> {
    let cpus = processors();
    let first = *cpus.first().ok_or_else(|| Error::Machine("no processor may be used".to_string()))?;
    let mut samples = Samples::default();
    let sizes = Sizes::of(machine, available_bytes());
    {
        let _pinned = Pinned::to(first);
        let mut core = Core::new(&sizes)?;
        for _ in 0..ROUNDS {
            core.round(&sizes, &mut samples);
        }
    }
    let mut notes = Vec::new();
    if cpus.len() < 2 {
        notes.push(MachineNote::OneProcessor);
    }
    for partner in cpus.iter().skip(1).take(PARTNERS) {
        let pair: Vec<Sharing> = (0..ROUNDS).filter_map(|_| sharing::measure(first, *partner)).collect();
        if pair.len() < ROUNDS.div_ceil(2) {
            notes.push(MachineNote::Apart(first, *partner));
        } else {
            samples.pairs.push(pair);
        }
    }
    Ok(samples.conclude(machine, &sizes, notes))
}

/// Bytes of memory that are available without evicting others; 1 GiB if the kernel does not report
/// them.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib << 10)
}

/// The sizes that are chased through.
struct Sizes {
    /// For each level a size that it holds and the level inside it does not; powers of two, rising.
    levels: Vec<usize>,
    /// Sizes that show where the last level ends: from its own in `levels` to half of that of memory.
    beyond: Vec<usize>,
    /// A size of which caches hold a small part.
    memory: usize,
}

impl Sizes {
    fn of(machine: &Machine, available: u64) -> Sizes {
        let mut levels: Vec<usize> = Vec::new();
        let mut inside = 0_u64;
        for (at, level) in machine.levels.iter().enumerate() {
            let most = floor_power_of_two(level.bytes / 2).max(4096);
            // A guest is told of a last level that it shares with others: believe a part of it only.
            let wanted = if at == 0 { most } else { (inside * 8).next_power_of_two() };
            let least = levels.last().map_or(4096, |last| *last as u64 * 2);
            levels.push(wanted.min(most).max(least) as usize);
            inside = level.bytes;
        }
        let last = levels.last().copied().unwrap_or(4096);
        let claimed = machine.levels.last().map_or(0, |level| level.bytes);
        let most = floor_power_of_two(available / 8).max(1 << 22) as usize;
        let wanted = claimed.saturating_mul(8).min(1 << 30) as usize;
        let memory = wanted.next_power_of_two().max(1 << 26).min(most).max(last * 2);
        let doubled = std::iter::successors(Some(last), |size| Some(size * 2));
        Sizes { levels, beyond: doubled.take_while(|size| *size < memory).collect(), memory }
    }
}

fn floor_power_of_two(number: u64) -> u64 {
    if number == 0 { 0 } else { 1 << number.ilog2() }
}

/// Nanoseconds, round by round.
#[derive(Default)]
struct Samples {
    cycle: Vec<f64>,
    /// For each round, the step of each of [`Core::rings`].
    steps: Vec<Vec<f64>>,
    memory: Vec<f64>,
    walk: Vec<f64>,
    gather_walk: Vec<f64>,
    gather_l2: Vec<f64>,
    gather_memory: Vec<f64>,
    window: Vec<f64>,
    read_line: Vec<f64>,
    write_line: Vec<f64>,
    /// Times of first touches; empty for rounds without memory for them.
    touches: Vec<Touches>,
    increment: Vec<f64>,
    atomic: Vec<f64>,
    fence: Vec<f64>,
    /// Costs of each pair of processors.
    pairs: Vec<Vec<Sharing>>,
}

impl Samples {
    fn conclude(&self, machine: &Machine, sizes: &Sizes, notes: Vec<MachineNote>) -> Calibration {
        let mut out = Calibration { machine: machine.clone(), constants: Vec::new(), notes };
        let made = &mut out.machine;
        made.sources = vec![
            "memlode machine calibrate: latencies by chases of pointers, overlap by independent loads, bandwidth by \
             sweeps, the window by pairs of chases, sharing by two threads; medians of 9 rounds"
                .to_string(),
        ];
        made.sources.extend(machine.sources.iter().map(|source| format!("The rest: {source}")));

        // Of a clock, each round has its own: it drifts.
        let in_cycles = |samples: &[f64]| -> Vec<f64> {
            samples.iter().zip(&self.cycle).map(|(time, cycle)| time / cycle).collect()
        };
        let clock: Vec<f64> = self.cycle.iter().map(|cycle| 1.0 / cycle).collect();
        out.note("clock_ghz", &clock, machine.costs.clock_ghz.value);
        let step = |at: usize| in_cycles(&self.steps.iter().map(|round| round[at]).collect::<Vec<_>>());
        let mut inside = 0.0;
        for (at, level) in machine.levels.iter().enumerate() {
            let latency = step(at);
            let sensible = median(&latency) >= inside;
            let measured = out.note_if(sensible, &level.name, &latency, level.latency_cycles.into());
            let made = &mut out.machine.levels[at];
            made.latency_cycles = (measured.value.round() as u32).max(inside as u32).max(1);
            made.latency_spread = measured.spread;
            inside = f64::from(made.latency_cycles);
        }
        let memory = in_cycles(&self.memory);
        let sensible = median(&memory) > inside;
        let measured = out.note_if(sensible, "memory", &memory, machine.memory_latency_cycles.into());
        out.machine.memory_latency_cycles = (measured.value.round() as u32).max(inside as u32);
        out.machine.spreads.memory = measured.spread;
        if out.machine.nodes == 1 {
            out.machine.remote_latency_cycles = out.machine.memory_latency_cycles;
        }
        self.last_level(machine, sizes, &mut out);
        let overlap = |latency: Vec<f64>, gather: &[f64]| -> Vec<f64> {
            latency.iter().zip(in_cycles(gather)).map(|(latency, time)| (latency / time).max(1.0)).collect()
        };
        let assumed = machine.costs;
        if !machine.tlbs.is_empty() {
            let walk = in_cycles(&self.walk);
            let cycles = f64::from(machine.page_walk_cycles);
            // Where huge pages are not to be had, there is nothing to compare with.
            let sensible = median(&walk) >= 1.0;
            let measured = out.note_if(sensible, "page_walk_cycles", &walk, cycles);
            out.machine.page_walk_cycles = (measured.value.round() as u32).max(1);
            out.machine.spreads.page_walk = measured.spread;
            // Of the walk that is believed in, so that their quotient is what a walk was seen to take beside others. The
            // lines themselves come meanwhile.
            let walk = vec![f64::from(out.machine.page_walk_cycles); self.gather_walk.len()];
            let samples = overlap(walk, &self.gather_walk);
            out.machine.costs.overlap_walk =
                out.note_if(sensible, "overlap_walk", &samples, assumed.overlap_walk.value);
        }
        if machine.levels.len() > 1 {
            let samples = overlap(step(1), &self.gather_l2);
            out.machine.costs.overlap_l2 = out.note("overlap_l2", &samples, assumed.overlap_l2.value);
        }
        let samples = overlap(memory, &self.gather_memory);
        out.machine.costs.overlap_memory = out.note("overlap_memory", &samples, assumed.overlap_memory.value);
        let samples = in_cycles(&self.read_line);
        out.machine.costs.read_line_cycles =
            out.note("read_line_cycles", &samples, assumed.read_line_cycles.value);
        let samples = in_cycles(&self.write_line);
        out.machine.costs.write_line_cycles =
            out.note("write_line_cycles", &samples, assumed.write_line_cycles.value);
        out.machine.costs.window_instructions =
            out.note("window_instructions", &self.window, assumed.window_instructions.value);
        out.machine.costs.increment_cycles =
            out.note("increment_cycles", &in_cycles(&self.increment), assumed.increment_cycles.value);
        out.machine.costs.atomic_cycles =
            out.note("atomic_cycles", &in_cycles(&self.atomic), assumed.atomic_cycles.value);
        out.machine.costs.fence_cycles =
            out.note("fence_cycles", &in_cycles(&self.fence), assumed.fence_cycles.value);
        touches::conclude(&self.touches, median(&self.cycle), machine, &mut out);
        out.machine.costs.clock_ghz = out.constant("clock_ghz");
        self.sharing(machine, &mut out);
        out
    }

    /// The size of the last level: the system's value, unless chases find far less. A chase through
    /// more than a cache holds finds a part of it there, so the mean step lies between that of the
    /// cache and that of memory. The part is used only where it is half or more: otherwise a small
    /// error of the step would be a large error of the size.
    fn last_level(&self, machine: &Machine, sizes: &Sizes, out: &mut Calibration) {
        let Some(level) = machine.levels.last() else { return };
        let inner = sizes.levels.len() - 1;
        let time = |at: usize| median(&self.steps.iter().map(|round| round[inner + at]).collect::<Vec<_>>());
        let (cache, memory) = (time(0), median(&self.memory));
        if memory < 1.2 * cache {
            out.notes.push(MachineNote::HardlyLater { level: level.name.clone() });
            return;
        }
        let part = |at: usize| ((memory - time(at)) / (memory - cache)).min(1.0);
        let halves = (0..sizes.beyond.len()).map(part).take_while(|part| *part >= 0.5);
        let held =
            halves.zip(&sizes.beyond).map(|(part, size)| part * *size as f64).fold(0.0, f64::max) as u64;
        // Sizes are tried at powers of two: the last one that is held may be half of what there is.
        if held * 2 >= level.bytes {
            return;
        }
        let set = u64::from(level.ways) * u64::from(level.line_bytes);
        let believed = (held / set).max(1) * set;
        out.notes.push(MachineNote::Smaller { level: level.name.clone(), bytes: level.bytes, believed });
        let last = out.machine.levels.len() - 1;
        out.machine.levels[last].bytes = believed;
        out.machine.levels[last].provenance = "measured".to_string();
    }

    fn sharing(&self, machine: &Machine, out: &mut Calibration) {
        let cycle = median(&self.cycle);
        let transfer = |pair: &[Sharing]| median(&pair.iter().map(|s| s.transfer).collect::<Vec<_>>());
        let order = |a: &&Vec<Sharing>, b: &&Vec<Sharing>| transfer(a).total_cmp(&transfer(b));
        let near = self.pairs.iter().min_by(order);
        let far = self
            .pairs
            .iter()
            .max_by(order)
            .filter(|far| transfer(far) > FAR * near.map_or(0.0, |n| transfer(n)));
        let assumed = machine.costs;
        if let Some(near) = near {
            let counting: Vec<f64> = near.iter().map(|sharing| sharing.counting).collect();
            let assumed = assumed.counting_slowdown.value;
            out.machine.costs.counting_slowdown = out.note("counting_slowdown", &counting, assumed);
        }
        let mut costs = |name: &str, pair: &[Sharing], assumed: memlode_machine::SharingCosts| {
            let cycles = |of: fn(&Sharing) -> f64| pair.iter().map(|s| of(s) / cycle).collect::<Vec<_>>();
            let mut note = |key: &str, of: fn(&Sharing) -> f64, assumed: Constant| {
                out.note(&format!("{name}.{key}"), &cycles(of), assumed.value)
            };
            memlode_machine::SharingCosts {
                transfer_cycles: note("transfer_cycles", |s| s.transfer, assumed.transfer_cycles),
                arrival_cycles: note("arrival_cycles", |s| s.arrival, assumed.arrival_cycles),
                use_cycles: note("use_cycles", |s| s.usage, assumed.use_cycles),
            }
        };
        let near = near.map(|pair| costs("near", pair, assumed.near));
        let far = far.map(|pair| costs("far", pair, assumed.far.unwrap_or(assumed.near)));
        if let Some(near) = near {
            out.machine.costs.near = near;
            out.machine.costs.far = far;
        }
    }
}

impl Calibration {
    /// Notes a constant; the assumed value is kept where measurements spread too much.
    fn note(&mut self, name: &str, samples: &[f64], assumed: f64) -> Constant {
        self.note_if(true, name, samples, assumed)
    }

    /// Notes a constant; the assumed value is kept where measurements spread too much or make no sense.
    fn note_if(&mut self, sensible: bool, name: &str, samples: &[f64], assumed: f64) -> Constant {
        let value = median(samples);
        let spread = (quantile(samples, 0.75) - quantile(samples, 0.25)) / value.abs();
        let good = sensible && value.is_finite() && value > 0.0 && (0.0..=MOST_SPREAD).contains(&spread);
        let kept = (!good).then_some(assumed);
        self.constants.push(Measured { name: name.to_string(), value, spread, kept });
        match kept {
            Some(assumed) => Constant::assumed(assumed),
            None => Constant { value, spread: Some(spread) },
        }
    }

    fn constant(&self, name: &str) -> Constant {
        let found = self.constants.iter().find(|constant| constant.name == name);
        match found {
            Some(Measured { kept: None, value, spread, .. }) => {
                Constant { value: *value, spread: Some(*spread) }
            }
            _ => self.machine.costs.clock_ghz,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the results of nine rounds on a machine of half a nanosecond a cycle, each disturbed
    /// by up to `noise`.
    fn samples(sizes: &Sizes, memory: f64, noise: f64) -> Samples {
        let rounds = |value: f64| -> Vec<f64> {
            (0..ROUNDS).map(|round| value * (1.0 + noise * (round as f64 - 4.0) / 4.0)).collect()
        };
        let inner = [2.5, 8.0];
        // The last level holds 32 MiB.
        let beyond = sizes.beyond.iter().map(|size| if *size <= 32 << 20 { 30.0 } else { memory * 0.9 });
        let steps: Vec<f64> = inner.into_iter().chain(beyond).collect();
        let pair = |transfer: f64| {
            let one = |_| Sharing { transfer, arrival: transfer, usage: 2.0, counting: 1.1 };
            (0..ROUNDS).map(one).collect::<Vec<_>>()
        };
        Samples {
            cycle: vec![0.5; ROUNDS],
            steps: vec![steps; ROUNDS],
            memory: rounds(memory),
            walk: rounds(20.0),
            gather_walk: rounds(4.0),
            gather_l2: rounds(2.0),
            gather_memory: rounds(10.0),
            window: rounds(300.0),
            read_line: rounds(3.0),
            write_line: rounds(5.0),
            touches: rounds(1.0)
                .into_iter()
                .map(|by| Touches { small: 564.0 * by, huge: 33_268.0 * by })
                .collect(),
            increment: rounds(3.5),
            atomic: rounds(9.0),
            fence: rounds(16.0),
            pairs: vec![pair(100.0), pair(40.0), pair(45.0)],
        }
    }

    fn machine() -> (Machine, Sizes) {
        let machine = Machine::named("sapphire-rapids").unwrap();
        let sizes = Sizes::of(&machine, 24 << 30);
        (machine, sizes)
    }

    #[test]
    fn sizes_fit_one_level_each() {
        let (machine, sizes) = machine();
        for (at, size) in sizes.levels.iter().enumerate() {
            assert!(*size as u64 * 2 <= machine.levels[at].bytes);
            assert!(
                at == 0
                    || *size as u64 >= machine.levels[at - 1].bytes * 2
                    || machine.levels[at].bytes < 4 * machine.levels[at - 1].bytes
            );
        }
        assert!(sizes.memory as u64 >= 4 * machine.levels.last().unwrap().bytes);
        assert_eq!(sizes.beyond.last().unwrap() * 2, sizes.memory);
        // With little memory, what is measured is small, too.
        let small = Sizes::of(&machine, 1 << 30);
        assert!(small.beyond.iter().sum::<usize>() + small.memory < 1 << 29);
    }

    #[test]
    fn a_machine_is_what_was_measured() {
        let (machine, sizes) = machine();
        let found = samples(&sizes, 150.0, 0.02).conclude(&machine, &sizes, Vec::new());
        let made = &found.machine;
        assert_eq!(made.levels.iter().map(|level| level.latency_cycles).collect::<Vec<_>>(), [5, 16, 60]);
        assert_eq!((made.memory_latency_cycles, made.page_walk_cycles), (300, 40));
        let costs = &made.costs;
        assert_eq!(
            (costs.clock_ghz.value, costs.overlap_l2.value, costs.overlap_walk.value),
            (2.0, 4.0, 5.0)
        );
        assert!((costs.overlap_memory.value - 15.0).abs() < 0.01 && costs.overlap_memory.is_measured());
        assert_eq!((costs.read_line_cycles.value, costs.write_line_cycles.value), (6.0, 10.0));
        assert_eq!(
            (costs.near.transfer_cycles.value, costs.far.unwrap().transfer_cycles.value),
            (80.0, 200.0)
        );
        assert_eq!((costs.atomic_cycles.value, costs.fence_cycles.value), (18.0, 32.0));
        assert!(costs.increment_cycles.value == 7.0 && costs.increment_cycles.is_measured());
        assert_eq!((costs.fault_cycles.value, costs.zeroed_line_cycles.value), (1000.0, 2.0));
        assert!(costs.fault_cycles.is_measured());
        assert!(costs.forwards_waiting_stores() && !machine.costs.forwards_waiting_stores());
        assert_eq!(made.known(), memlode_machine::Provenance::Measured);
        // The last level is believed as far as it answers like one.
        let last = made.levels.last().unwrap();
        assert!((31 << 20..=32 << 20).contains(&last.bytes), "{}", last.bytes);
        assert!(
            matches!(found.notes[0], MachineNote::Smaller { believed, .. } if believed >> 20 == 31),
            "{:?}",
            found.notes
        );
        let again = Machine::from_toml(&made.to_toml(), "again.toml").unwrap();
        assert_eq!(again.levels.last().unwrap().bytes, last.bytes);
    }

    /// The last level ends between two of the sizes that are tried: of the larger one a part is found there.
    #[test]
    fn a_last_level_between_two_sizes_is_measured() {
        let (machine, sizes) = machine();
        for (mib, part) in [(48, 0.75), (40, 0.625)] {
            let mut samples = samples(&sizes, 150.0, 0.02);
            let twice = sizes.beyond.iter().position(|size| *size == 64 << 20).expect("a size");
            for round in &mut samples.steps {
                round[sizes.levels.len() - 1 + twice] = 150.0 - part * (150.0 - 30.0);
            }
            let found = samples.conclude(&machine, &sizes, Vec::new());
            let bytes = found.machine.levels.last().expect("a level").bytes;
            assert!((mib - 1..=mib).contains(&(bytes >> 20)), "{bytes}, not {mib} MiB");
        }
    }

    #[test]
    fn what_spreads_too_much_stays_assumed() {
        let (machine, sizes) = machine();
        let found = samples(&sizes, 150.0, 0.9).conclude(&machine, &sizes, Vec::new());
        assert_eq!(found.machine.memory_latency_cycles, machine.memory_latency_cycles);
        assert_eq!(found.machine.costs.read_line_cycles, machine.costs.read_line_cycles);
        assert_eq!(found.machine.known(), memlode_machine::Provenance::PartlyMeasured);
        // So does what contradicts the rest: memory that answers before the caches.
        let found = samples(&sizes, 1.0, 0.0).conclude(&machine, &sizes, Vec::new());
        assert_eq!(found.machine.memory_latency_cycles, machine.memory_latency_cycles);
        assert!(Machine::from_toml(&found.machine.to_toml(), "again.toml").is_ok());
    }
}
