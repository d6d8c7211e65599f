//! Replaying a trace on a machine: where events come from, what simulates, and how threads share the work.
//!
//! A trace that is still written is driven as a stored one is ([`source`]): whatever is found of a trace can be found live.
//!
//! - **Counts.** Some threads simulate: each has the sets of the caches that are its own, sees every allocation and call, and of the
//!   accesses the lines of its sets (`crates/replay/src/shards.rs`). All decode, the others nothing else. How many simulate depends on
//!   what the trace is made of, as seen in a few of its chunks (`threads/division.rs`): misses are shared, but each thread that
//!   simulates has to follow all calls. If one simulates, another has the outer levels (`threads/outer_levels.rs`): what misses the
//!   first level is looked up there in the same order, only later.
//! - **Causes.** A `simulate::Detailed` has caches of a `Hierarchy`'s shape or, if the machine has rules, a `Model`
//!   ([`simulators`]). Both tell one watcher of every line, which knows why it was missed and what of it was used, and simulates
//!   nothing. Caches have one thread; translations and stores in flight go with attribution on another
//!   (`threads/beside_caches.rs`), unless the trace has gaps. Accesses wait, and go through a few hundred at a time, or a few thousand
//!   from thread to thread (`crates/simulate/src/watch/batch.rs`): caches, translations and stores each in a loop of their own, with
//!   the records of lines to come fetched ahead. A loop that is one record waits as one (`crates/simulate/src/loops/`). The figures
//!   are those of the accesses one by one.

pub mod annotate;
pub mod heap_calls;
pub mod simulation;
pub mod simulators;
pub mod source;
pub(crate) mod threads;
pub mod timed;
mod times;
pub mod window;
