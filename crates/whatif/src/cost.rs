//! The cost of a run: one number for a profile, which a change of layout makes larger or smaller.

use memlode_attribute::{CostModel, Profile};
use memlode_machine::Machine;

/// Instructions to an access where the program does not tell.
const INSTRUCTIONS: f64 = 3.0;

/// Cycles of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    /// All of them: instructions, first touches of memory and the kernel's work for it, waiting, and what threads lose to each
    /// other.
    pub run: f64,
    /// Those of waiting for data, as a report has them.
    pub wait: f64,
    /// Those that threads lose to lines that they take from each other, where that was found out.
    pub lost: f64,
}

impl Cycles {
    /// Sums the cycles of a whole profile by the model that reports rank by. How sites walk is part of a profile, so of one
    /// under an edit it is seen where the edit puts the data. `kernel` are the cycles of its work for fresh memory.
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

    /// The same with what threads lose to each other.
    #[must_use]
    pub fn with_lost(self, lost: f64) -> Cycles {
        Cycles { run: self.run - self.lost + lost, lost, ..self }
    }
}
