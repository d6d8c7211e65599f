//! What a run costs: one number for a profile, which a change of layout makes larger or smaller.

use memlode_attribute::{Counts, Profile};
use memlode_trace::sites::SiteTable;

/// Cycles that an instruction takes where nothing is waited for.
const AN_INSTRUCTION: f64 = 0.3;
/// Instructions to an access where the program does not tell.
const INSTRUCTIONS: f64 = 3.0;

/// Cycles of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycles {
    /// All of them.
    pub run: f64,
    /// Those of waiting for data.
    pub wait: f64,
}

/// The cycles of a whole profile: the latencies of what missed the first level, without overlap, so that the
/// wait is an upper bound, and those of instructions. What a report ranks by is finer
/// ([`memlode_attribute::cost`]).
pub fn cycles(names: &SiteTable, profile: &Profile, latencies: &[u32]) -> Cycles {
    let mut total = Counts::default();
    let mut instructions = 0.0;
    for cell in &profile.cells {
        total += &cell.counts;
        let each = names.work(cell.site).map_or(INSTRUCTIONS, |work| f64::from(work.before));
        instructions += each * cell.counts.accesses() as f64;
    }
    let wait = total.stall_cycles(latencies) as f64;
    Cycles { run: wait + AN_INSTRUCTION * instructions, wait }
}
