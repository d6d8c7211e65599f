//! A program, or one function of it, at every length of the environment: which of them slow it
//! down?
//!
//! The length of the environment decides where the stack begins, and with fixed addresses nothing
//! else does. Over two pages of 4 KiB there are 512 such contexts. A whole program is run at each
//! of them. For a function, the stack is moved in the running program, which takes microseconds and
//! not milliseconds, and so shows smaller effects.

use std::time::Duration;

use serde::Serialize;

use super::sweep::{Candidate, Extent, LEAST_ROUNDS, SweepSource, Swept, sweep};
use crate::Error;
use crate::names::Name;
use crate::process::{AddressLayout, Launch, RunLimits, StopFlag, calibrate, can_fix_addresses};

/// Contexts: distinct stack starts over two pages.
pub const CONTEXTS: usize = 512;
/// Bytes from one context to the next.
pub const STEP: usize = 16;
/// The first: shorter ones leave no room for the variable's name.
const FIRST: usize = 32;
/// Contexts of one page.
const PAGE: usize = 256;

/// The times of a program at all sizes of its environment.
#[derive(Clone, Debug, Serialize)]
pub struct Sweep {
    /// Bytes added to the environment, by context.
    pub padding: Vec<usize>,
    /// The times, by context.
    #[serde(flatten)]
    pub swept: Swept,
    /// Seconds of the median context.
    pub seconds: f64,
    /// The function that was called, if it was not the whole program that ran.
    pub function: Option<String>,
    /// Counts by candidate, in their order: loads that agree in the low 12 bits with stores to other data
    /// there and not at the control. Known of spikes of functions only.
    pub pairs: Vec<Vec<EnvironmentPair>>,
}

/// A load and a store to other data whose addresses agree in the low 12 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvironmentPair {
    /// Name of the data that is loaded.
    pub load: Name,
    /// Name of the data that was stored to before.
    pub store: Name,
    /// Times in one call.
    pub count: usize,
    /// Accesses from the store to the load, at least.
    pub least: u32,
}

/// The program to sweep.
#[derive(Clone, Debug)]
pub struct EnvironmentPlan {
    /// The program.
    pub program: Launch,
    /// Time for everything.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

impl EnvironmentPlan {
    pub(super) fn extent(&self, rounds: usize) -> Extent {
        Extent { contexts: CONTEXTS, page: PAGE, time: self.time, rounds, seed: self.seed }
    }
}

/// The layout of a context.
pub(super) fn layout(context: usize) -> AddressLayout {
    AddressLayout { padding: FIRST + STEP * context, randomised: false }
}

/// Sweeps a whole program. `tell` receives the number of runs, and the seconds of each.
///
/// # Errors
/// If addresses cannot be fixed, if the program fails, if the fewest runs do not fit into the time,
/// or if it is stopped.
pub fn sweep_program(
    plan: &EnvironmentPlan,
    stop: &StopFlag,
    tell: &mut dyn FnMut(usize, f64),
) -> Result<Sweep, Error> {
    struct Runs<'a> {
        program: &'a Launch,
        limits: RunLimits<'a>,
    }
    impl SweepSource for Runs<'_> {
        fn time(&mut self, context: usize) -> Result<f64, Error> {
            let before = calibrate();
            let cpu = self.program.run(layout(context), self.limits)?.cpu.max(1e-6);
            // In units of the calibration: seconds at the usual clock.
            Ok((cpu / (before + calibrate())).ln())
        }
    }
    needs_fixed_addresses()?;
    let clock = 2.0 * calibrate();
    let mut runs = Runs { program: &plan.program, limits: RunLimits { stop, longest: plan.time } };
    plan.program.run(AddressLayout::GIVEN, runs.limits)?;
    let swept = sweep(plan.extent(LEAST_ROUNDS), &mut runs, stop, tell)?;
    Ok(Sweep::new(swept, clock))
}

/// The environment's length decides nothing where the stack begins anywhere.
pub(super) fn needs_fixed_addresses() -> Result<(), Error> {
    match can_fix_addresses() {
        true => Ok(()),
        false => Err(Error::Machine(
            "this system does not let a program have fixed addresses (it refuses `personality`, as containers do), so the \
             environment's length decides nothing here"
                .into(),
        )),
    }
}

impl Sweep {
    /// Makes the sweep from times in units of `unit` seconds.
    pub(super) fn new(swept: Swept, unit: f64) -> Sweep {
        Sweep {
            padding: (0..CONTEXTS).map(|context| FIRST + STEP * context).collect(),
            seconds: swept.middle.exp() * unit,
            function: None,
            pairs: vec![Vec::new(); swept.candidates.len()],
            swept,
        }
    }

    /// Bytes added to the environment where a candidate was found.
    pub fn padding_of(&self, candidate: &Candidate) -> usize {
        self.padding[candidate.context]
    }

    /// Returns whether two contexts lie one page apart, where the stack begins at equal offsets.
    pub fn is_page_apart(&self, one: &Candidate, other: &Candidate) -> bool {
        self.padding_of(one).abs_diff(self.padding_of(other)) == STEP * PAGE
    }

    /// The pairs that agree at a candidate, as far as they are known.
    pub fn pairs_of(&self, candidate: &Candidate) -> &[EnvironmentPair] {
        let at = self.swept.candidates.iter().position(|other| other.context == candidate.context);
        at.map_or(&[], |at| &self.pairs[at])
    }
}
