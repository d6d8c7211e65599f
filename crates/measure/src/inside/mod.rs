//! One function of a running program: called again and again where it stands, and looked at instruction by instruction.
//!
//! A program is started and stopped where it first calls the function. Its arguments are in registers then, so a few
//! instructions that are put into the program can repeat the call, at any place of the stack, and read the clock around
//! it: no program has to be built for that, and nothing of its environment changes. A second process does the same call
//! one instruction at a time, and says what each of them reads and writes.
//!
//! This is about registers of x86-64.

mod accesses;
mod call;
mod copy;
mod names;
mod tracee;

pub use accesses::{
    Agreeing, AliasedLoad, Facts, SteppedAccess, SteppedFrame, Steps, aliased_loads, facts, first_level, step,
};
pub use call::{Repeated, Timing};
pub use names::Names;
pub use tracee::{Registers, Tracee};
