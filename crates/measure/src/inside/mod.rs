//! One function of a running program: called again and again in its place, and examined instruction
//! by instruction.
//!
//! A program is started and stopped where it first calls the function. Its arguments are in
//! registers then, so a few instructions that are put into the program can repeat the call, at any
//! place of the stack, and read the clock around it: no program has to be built for that, and its
//! environment does not change. A second process does the same call one instruction at a time, and
//! reports the reads and writes of each.
//!
//! This works on x86-64 only.

mod accesses;
mod call;
mod copy;
mod names;
mod tracee;

pub use accesses::{
    Agreeing, AliasedLoad, CoreFacts, Facts, SteppedAccess, SteppedFrame, Steps, aliased_loads, facts, step,
};
pub use call::{Repeated, Timing};
pub use names::Names;
pub use tracee::{Registers, Tracee};
