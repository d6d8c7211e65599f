//! Ratios that a replayed trace can give, where nothing counts them.

use memlode_attribute::timed::{Stall, TICKS};
use memlode_attribute::{DetailedProfile, TimedProfile};
use memlode_counters::ratio::Ratio;
use memlode_counters::stat::SimulatedRun;
use memlode_machine::{Coherence, Machine};
use memlode_trace::Trace;

/// Values by ratio, and what they come from.
pub struct SimulatedRatios {
    /// Those that a trace can give.
    pub ratios: Vec<(Ratio, f64)>,
    /// The simulation.
    pub run: SimulatedRun,
}

/// Makes ratios of two replays of a trace on a machine: one by the rules of its caches, one by the time of its core. Nothing if
/// the trace says nothing of instructions, or has none.
pub fn simulated_ratios(
    trace: &Trace,
    machine: &Machine,
    detailed: &DetailedProfile,
    timed: &TimedProfile,
) -> Option<SimulatedRatios> {
    let names = trace.sites();
    let work = timed.profile.cells.iter().map(|cell| {
        let work = names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after));
        work * cell.counts.accesses() as f64
    });
    let instructions: f64 = work.sum();
    let all = timed.roll(|_| Some(())).pop()?;
    let cycles = all.charged.ticks() as f64 / TICKS as f64;
    if instructions < 1.0 || cycles <= 0.0 {
        return None;
    }
    let part = |stall: Stall| all.charged.of(stall) as f64 / all.charged.ticks() as f64;
    let counts = &detailed.profile.levels;
    let misses =
        |level: usize| counts.get(level).map(|level| (level.read_misses + level.write_misses) as f64);
    let mut ratios = vec![
        (Ratio::ClocksPerInstruction, cycles / instructions),
        (Ratio::LoadRate, counts.first()?.reads as f64 / cycles),
        (Ratio::StoreOrderBlock, part(Stall::Stores)),
        (Ratio::L1dMissRate, misses(0)? / instructions),
        (Ratio::LockedOperations, part(Stall::Order)),
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
    };
    Some(SimulatedRatios { ratios, run })
}
