//! `bias env` of one function: its stack is moved in the program that runs, and the pair that collides is named.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::environment::{
    CONTEXTS, EnvironmentPair, EnvironmentPlan, STEP, Sweep, layout, needs_fixed_addresses,
};
use super::sweep::{SweepSource, SweepVerdict, sweep};
use crate::Error;
use crate::inside::{Agreeing, CoreFacts, Facts, Names, Repeated, SteppedAccess, Steps, Tracee, facts, step};
use crate::names::Name;
use crate::process::{Pinned, StopFlag, processors};

/// Instructions of one call that are looked at: a few seconds.
const MOST: usize = 1_000_000;
/// Instructions of one call that are looked at in each context, where that is done in all of them.
const FEW: usize = 4000;
/// Time limit for examining all contexts, generous enough for a busy machine.
const LOOKING: Duration = Duration::from_secs(3600);
/// Confirming rounds in any case: a round takes milliseconds.
pub(super) const ROUNDS: usize = 60;
/// Seconds of one step of the chain in which times are counted, at three cycles and 3 GHz: only
/// used to show the length of a call.
const STEP_SECONDS: f64 = 1e-9;

/// Sweeps a function where the program first calls it. `tell` receives the number of timings, and
/// the seconds of each.
///
/// # Errors
/// If the program does not call it or does not survive calling it again, or if it is stopped.
pub fn sweep_function(
    plan: &EnvironmentPlan,
    function: &str,
    stop: &Arc<StopFlag>,
    tell: &mut dyn FnMut(usize, f64),
) -> Result<Sweep, Error> {
    needs_fixed_addresses()?;
    let mut source = Calls { plan, function, stop, now: None };
    source.renew()?;
    let swept = sweep(plan.extent(ROUNDS), &mut source, stop, tell)?;
    let mut found = Sweep::new(swept, STEP_SECONDS);
    found.function = Some(function.to_owned());
    // To wake a process on another processor takes ten times as long as one instruction of it.
    let _pinned = processors().first().map(|cpu| Pinned::to(*cpu));
    let (mut call, names) = start(plan, function, stop)?;
    for (at, candidate) in found.swept.candidates.iter().enumerate() {
        if candidate.verdict() == SweepVerdict::Spike {
            let slow = look(&mut call, candidate.context, MOST)?;
            let control = look(&mut call, candidate.control, MOST)?;
            found.pairs[at] = pairs(&slow, Some(&control), &|access| names.name(access));
        }
    }
    Ok(found)
}

/// A process that stands where the function is first called; a new one after each pass.
struct Calls<'a> {
    plan: &'a EnvironmentPlan,
    function: &'a str,
    stop: &'a Arc<StopFlag>,
    now: Option<Repeated>,
}

impl SweepSource for Calls<'_> {
    fn time(&mut self, context: usize) -> Result<f64, Error> {
        let call = self.now.as_mut().ok_or(Error::Interrupted)?;
        Ok(call.time((STEP * context) as u64)?.steps.ln())
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.now = None;
        self.now = Some(start(self.plan, self.function, self.stop)?.0);
        Ok(())
    }
}

/// Starts the program in the first context, as if its environment were the shortest.
fn start(plan: &EnvironmentPlan, function: &str, stop: &Arc<StopFlag>) -> Result<(Repeated, Names), Error> {
    let mut names = None;
    let find = |tracee: &Tracee| {
        let found = names.insert(Names::of(&tracee.file()?)?);
        found.loaded_at(tracee.entry()?);
        found.function(function)
    };
    let call = Repeated::start(&plan.program, layout(0), function, find, stop, plan.time)?;
    names.map(|names| (call, names)).ok_or(Error::Interrupted)
}

/// Examines the beginning of a call in each context, for facts that a processor's counters might
/// show.
///
/// # Errors
/// As [`sweep_function`].
pub fn facts_by_context(
    plan: &EnvironmentPlan,
    function: &str,
    stop: &Arc<StopFlag>,
) -> Result<Vec<Facts>, Error> {
    needs_fixed_addresses()?;
    let _pinned = processors().first().map(|cpu| Pinned::to(*cpu));
    // Two million single steps take what they take, however little time the sweep was given.
    let plan = EnvironmentPlan { time: LOOKING, ..plan.clone() };
    let (mut call, _) = start(&plan, function, stop)?;
    (0..CONTEXTS)
        .map(|context| match stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(look(&mut call, context, FEW)?.1),
        })
        .collect()
}

fn look(call: &mut Repeated, context: usize, most: usize) -> Result<(Steps, Facts), Error> {
    let (back, stack) = call.rewind((STEP * context) as u64)?;
    let steps = step(call.tracee(), back, stack, most)?;
    let facts = facts(&steps, CoreFacts::of_host());
    Ok((steps, facts))
}

/// The pairs that agree in a context and do not at its control, the most frequent first.
pub(super) fn pairs(
    slow: &(Steps, Facts),
    control: Option<&(Steps, Facts)>,
    name: &dyn Fn(&SteppedAccess) -> Name,
) -> Vec<EnvironmentPair> {
    let key = |steps: &Steps, pair: &Agreeing| {
        (steps.accesses[pair.load].instruction, steps.accesses[pair.store].instruction)
    };
    let usual: HashSet<(u64, u64)> = control
        .into_iter()
        .flat_map(|(steps, facts)| facts.pairs.iter().map(move |pair| key(steps, pair)))
        .collect();
    let new = slow.1.pairs.iter().filter(|pair| !usual.contains(&key(&slow.0, pair)));
    let pair = |pair: &Agreeing| EnvironmentPair {
        load: name(&slow.0.accesses[pair.load]),
        store: name(&slow.0.accesses[pair.store]),
        count: pair.count,
        least: pair.least,
    };
    new.map(pair).collect()
}
