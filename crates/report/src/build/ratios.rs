//! Ratios that a replayed trace can give, where nothing counts them.

use std::collections::BTreeMap;

use memlode_attribute::place::place;
use memlode_attribute::timed::{Stall, TICKS};
use memlode_attribute::{Cell, DetailedProfile, Profile, TimedProfile};
use memlode_counters::ratio::Ratio;
use memlode_counters::stat::{
    FunctionRatio, FunctionRatios, FunctionSource, FunctionTable, MissBounds, SimulatedRegion, SimulatedRun,
};
use memlode_machine::{Coherence, Machine};
use memlode_trace::Trace;
use memlode_trace::sites::{SiteTable, StringId};

/// Values by ratio, and the counts from which they are computed.
pub struct SimulatedRatios {
    /// Ratios that a trace can give.
    pub ratios: Vec<(Ratio, f64)>,
    /// The simulation.
    pub run: SimulatedRun,
}

/// Computes ratios from two replays of a trace on a machine: one by the rules of its caches, one by
/// the time of its core. `None` if the trace has no numbers of instructions.
pub fn simulated_ratios(
    trace: &Trace,
    machine: &Machine,
    detailed: &DetailedProfile,
    timed: &TimedProfile,
) -> Option<SimulatedRatios> {
    let names = trace.sites();
    let instructions: f64 = timed.profile.cells.iter().map(|cell| instructions(names, cell)).sum();
    let all = timed.roll(|_| Some(())).pop()?;
    let cycles = all.charged.ticks() as f64 / TICKS as f64;
    if instructions < 1.0 || cycles <= 0.0 {
        return None;
    }
    let part = |stall: Stall| all.charged.of(stall) as f64 / all.charged.ticks() as f64;
    // A call that takes a lock, or gives one back, is one atomic update where nobody waits for it.
    let calls = timed.lock_calls as f64 * machine.costs.atomic_cycles.value;
    let locked = (all.charged.of(Stall::Order) as f64 / TICKS as f64 + calls) / (cycles + calls);
    let counts = &detailed.profile.levels;
    let misses =
        |level: usize| counts.get(level).map(|level| (level.read_misses + level.write_misses) as f64);
    let mut ratios = vec![
        (Ratio::ClocksPerInstruction, cycles / instructions),
        (Ratio::LoadRate, counts.first()?.reads as f64 / cycles),
        (Ratio::StoreOrderBlock, part(Stall::Stores)),
        (Ratio::L1dMissRate, misses(0)? / instructions),
        (Ratio::LockedOperations, locked),
    ];
    ratios.extend(misses(1).map(|misses| (Ratio::L2MissRate, misses / instructions)));
    if !machine.tlbs.is_empty() {
        ratios.push((Ratio::TlbMissPenalty, part(Stall::Walk)));
        ratios.push((Ratio::DtlbMissRate, detailed.total().tlb.walks as f64 / instructions));
    }
    let coherent = machine.coherence == Coherence::Mesi;
    let threads = trace.threads().len();
    // One thread takes lines from nobody, and then no rules of coherence are simulated.
    let shared = match &detailed.details.model {
        Some(model) if coherent => {
            Some((model.coherence.true_sharing + model.coherence.false_sharing) as f64)
        }
        _ if coherent && threads == 1 => Some(0.0),
        _ => None,
    };
    ratios.extend(shared.map(|shared| (Ratio::ModifiedDataSharing, shared / instructions)));
    let run = SimulatedRun {
        machine: machine.name.clone(),
        trace: Some(trace.directory().display().to_string()),
        accesses: all.counts.accesses(),
        instructions: instructions.round() as u64,
        cycles: super::rounded(cycles),
        threads,
        region: None,
    };
    Some(SimulatedRatios { ratios, run })
}

/// Makes the bounds of misses of a region that was recorded alone, from a count of exact LRU caches.
/// `None` of a trace without gaps.
pub fn simulated_region(profile: &Profile, machine: &Machine) -> Option<SimulatedRegion> {
    let gaps = profile.gaps.as_ref()?;
    let bounds = gaps.bounds.iter().flatten().zip(&machine.levels);
    Some(SimulatedRegion {
        stretches: gaps.runs.iter().filter(|run| run.accesses > 0).count(),
        misses: bounds
            .map(|(&(least, most), level)| MissBounds { level: level.name.to_string(), least, most })
            .collect(),
    })
}

/// Makes ratios of each function that has a part of the modelled cycles, from the same two replays as [`simulated_ratios`].
/// Lines that cores take from each other are not among them: those are counted by line, not by function.
pub fn simulated_functions(
    trace: &Trace,
    machine: &Machine,
    detailed: &DetailedProfile,
    timed: &TimedProfile,
) -> FunctionTable {
    let names = trace.sites();
    let function = |cell: &Cell| place(names, names.site(cell.site)).line.function;
    let sums = |profile: &Profile, value: &dyn Fn(&Cell) -> f64| -> BTreeMap<StringId, f64> {
        let mut sums = BTreeMap::new();
        profile.cells.iter().for_each(|cell| *sums.entry(function(cell)).or_default() += value(cell));
        sums
    };
    let executed = sums(&timed.profile, &|cell| instructions(names, cell));
    let loads = sums(&detailed.profile, &|cell| cell.counts.reads.iter().sum::<u64>() as f64);
    let walks = sums(&detailed.profile, &|cell| detailed.of(cell).tlb.walks as f64);
    let levels = detailed.profile.levels.len();
    let misses: Vec<_> = (0..levels.min(2))
        .map(|level| sums(&detailed.profile, &|cell| cell.counts.misses(level) as f64))
        .collect();
    let rows = timed.roll(|cell| Some(function(cell)));
    let all: u64 = rows.iter().map(|row| row.charged.ticks()).sum();
    let rows = rows.into_iter().filter(|row| row.charged.ticks() > 0).map(|row| {
        let ticks = row.charged.ticks() as f64;
        let part = |stall: Stall| row.charged.of(stall) as f64 / ticks;
        let of = |sums: &BTreeMap<StringId, f64>| sums.get(&row.key).copied().unwrap_or_default();
        let executed = of(&executed);
        let rate = |count: f64| (executed >= 1.0).then(|| count / executed);
        let has_tlb = !machine.tlbs.is_empty();
        let values = [
            (Ratio::ClocksPerInstruction, rate(ticks / TICKS as f64)),
            (Ratio::LoadRate, Some(of(&loads) / (ticks / TICKS as f64))),
            (Ratio::StoreOrderBlock, Some(part(Stall::Stores))),
            (Ratio::L1dMissRate, misses.first().and_then(|misses| rate(of(misses)))),
            (Ratio::L2MissRate, misses.get(1).and_then(|misses| rate(of(misses)))),
            (Ratio::TlbMissPenalty, has_tlb.then(|| part(Stall::Walk))),
            (Ratio::DtlbMissRate, rate(of(&walks)).filter(|_| has_tlb)),
            (Ratio::LockedOperations, Some(part(Stall::Order))),
        ];
        let known = values
            .into_iter()
            .filter_map(|(ratio, value)| Some(FunctionRatio { ratio, value: value?, error: 0.0 }));
        FunctionRatios {
            function: names.string(row.key).to_owned(),
            share: ticks / all.max(1) as f64,
            samples: None,
            minor_faults: None,
            ratios: known.collect(),
        }
    });
    FunctionTable { source: FunctionSource::Simulated, rows: rows.collect() }
}

/// Returns the instructions around the accesses of a cell, as the pass estimates them.
fn instructions(names: &SiteTable, cell: &Cell) -> f64 {
    let work = names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after));
    work * cell.counts.accesses() as f64
}
