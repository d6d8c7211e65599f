//! The cost of a run: one number for a profile, which a change of layout makes larger or smaller.

use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;
use rustc_hash::FxHashMap;

use crate::fresh::FreshMemory;

/// Assumed instructions per access where the trace does not have them.
const INSTRUCTIONS: f64 = 3.0;

/// Cycles of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    /// All cycles: instructions, first touches of memory and the kernel's work for it, waiting, and
    /// losses of threads to each other.
    pub run: f64,
    /// Cycles of waiting for data, as a report has them.
    pub wait: f64,
    /// Cycles that threads lose to lines that they take from each other, if computed.
    pub lost: f64,
}

impl Cycles {
    /// The cycles of a run with this profile, as `report`, `whatif` and `diff` have them, with the
    /// kernel's work for fresh memory and without losses of threads to each other.
    pub fn of_run(profile: &Profile, costs: &CostModel, machine: &Machine) -> Cycles {
        let kernel = FreshMemory::of(profile).cycles(machine, &FxHashMap::default());
        Cycles::of(profile, costs, machine, kernel)
    }

    /// Sums the cycles of a whole profile by the model by which reports rank. Walks of sites are
    /// part of a profile, so a profile under an edit has the walks under that edit. `kernel` are
    /// the kernel's cycles for fresh memory.
    pub fn of(profile: &Profile, costs: &CostModel, machine: &Machine, kernel: f64) -> Cycles {
        let total = costs.total();
        let instructions = if costs.knows_instructions() {
            total.instructions
        } else {
            let accesses: u64 = profile.cells.iter().map(|cell| cell.counts.accesses()).sum();
            INSTRUCTIONS * machine.costs.instruction_cycles.value * accesses as f64
        };
        let run = total.cycles() + total.first_touches + instructions + kernel;
        Cycles { run, wait: total.cycles(), lost: 0.0 }
    }

    /// The same, with the losses of threads to each other.
    #[must_use]
    pub fn with_lost(self, lost: f64) -> Cycles {
        Cycles { run: self.run - self.lost + lost, lost, ..self }
    }
}
