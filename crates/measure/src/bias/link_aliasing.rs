//! Examines one call of a function in each link of a program: which of its loads agree with stores
//! to other data.

use std::sync::Arc;

use super::environment::EnvironmentPair;
use super::function::pairs;
use super::links::{CallAliases, LinksPlan};
use crate::Error;
use crate::inside::{CoreFacts, Facts, Names, Repeated, Steps, Tracee, facts, step};
use crate::process::{AddressLayout, Launch, Pinned, StopFlag, processors};

/// The most instructions of one call that are executed one by one: half a second.
const MOST: usize = 200_000;
/// A stack is no larger than this, and begins no further than this from where a call is looked at.
const STACK: u64 = 16 << 20;

/// The aliases of one call in each of the programs. Those with the stack are left out, since
/// linking does not move it.
pub(super) fn look(
    plan: &LinksPlan,
    function: &str,
    programs: &[Launch],
    stop: &Arc<StopFlag>,
) -> Result<Vec<CallAliases>, Error> {
    // To wake a process on another processor takes ten times as long as one instruction of it.
    let _pinned = processors().first().map(|cpu| Pinned::to(*cpu));
    programs.iter().map(|program| look_at(plan, function, program, stop)).collect()
}

fn look_at(
    plan: &LinksPlan,
    function: &str,
    program: &Launch,
    stop: &Arc<StopFlag>,
) -> Result<CallAliases, Error> {
    let mut names = None;
    let find = |tracee: &Tracee| {
        let found = names.insert(Names::of(&tracee.file()?)?);
        found.loaded_at(tracee.entry()?);
        found.function(function)
    };
    let mut call = Repeated::start(program, AddressLayout::GIVEN, function, find, stop, plan.time)?;
    let names = names.ok_or(Error::Interrupted)?;
    let (back, stack) = call.rewind(0)?;
    let steps = step(call.tracee(), back, stack, MOST)?;
    let mut facts = facts(&steps, CoreFacts::of_host());
    leave_out_stack(&steps, &mut facts, stack);
    let count = facts.pairs.iter().map(|pair| pair.count).sum();
    let pairs: Vec<EnvironmentPair> = pairs(&(steps, facts), None, &|access| names.name(access));
    Ok(CallAliases { count, pairs })
}

fn leave_out_stack(steps: &Steps, facts: &mut Facts, stack: u64) {
    let on_stack = |at: usize| {
        let access = &steps.accesses[at];
        access.frame.is_some() || access.address.abs_diff(stack) < STACK
    };
    facts.pairs.retain(|pair| !on_stack(pair.load) && !on_stack(pair.store));
}
