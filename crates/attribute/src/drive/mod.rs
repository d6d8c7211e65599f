//! Replaying a trace on a machine: where events come from, what simulates, and how threads share
//! the work.
//!
//! A trace that is still being written is driven like a stored one ([`source`]), so every analysis
//! of a trace works live.
//!
//! - **Counts.** Some threads simulate: each has its own sets of the caches, and sees every
//!   allocation and call, and the accesses to lines of its sets (`crates/replay/src/shards.rs`).
//!   All threads decode; the others do nothing else. A few chunks show how many should simulate
//!   (`threads/division.rs`): misses are shared, but each simulating thread has to follow all
//!   calls. If only one simulates, another one has the outer levels (`threads/outer_levels.rs`):
//!   misses of the first level are looked up there in the same order, only later.
//! - **Causes.** A `simulate::Detailed` has caches of a `Hierarchy`'s shape or, if the machine has
//!   rules, a `Model` ([`simulators`]). Both report every line to a watcher, which simulates
//!   nothing, but finds why a line was missed and which of its bytes were used. Caches have one
//!   thread; translations and stores in flight go with attribution on another
//!   (`threads/beside_caches.rs`), unless the trace has gaps. Accesses wait, and go through a few
//!   hundred at a time, or a few thousand from thread to thread
//!   (`crates/simulate/src/watch/batch.rs`): caches, translations and stores each in a loop of
//!   their own, with the records of lines to come fetched ahead. A loop that is one record waits as
//!   one (`crates/simulate/src/loops/`). The figures equal those of accesses that are simulated one
//!   by one.
//! - **Time.** An engine that serves each access at once ([`timed`]): caches find the lines, and a
//!   core with a window, fill buffers, a store buffer, prefetchers and a branch predictor
//!   (`crates/simulate/src/time/`) computes when accesses commit. The pass wrote down, by site,
//!   instructions and feeders (the loads whose values an access needs), and how often a feeder's
//!   site was executed since the load that is meant (`Feed::back`): one site stands for the copies
//!   of an unrolled loop, and a value may be of the iteration before. Time is whole ticks, so sums
//!   do not depend on their order. A naive model that keeps everything equals it to the digit
//!   (`crates/simulate/tests/time/naive.rs`). A trace has no branches: they are seen where one site
//!   is followed by different ones. The compiler says which loads they depend on (SPEC §2.4);
//!   behind a mispredicted branch, lines that both of its ways need are fetched early.
//! - **Windows.** A counter between the profiler and its caches ([`window`]) keeps the counts
//!   inside by cell. A part by function, file or thread is a whole profile without the other cells.

pub mod annotate;
pub mod heap_calls;
pub mod simulation;
pub mod simulators;
pub mod source;
pub(crate) mod threads;
pub mod timed;
mod times;
pub mod window;
