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
//! - **Time.** An engine that serves each access at once ([`timed`]): caches say where lines are, and a core with a window, fill buffers,
//!   a store buffer, prefetchers and a branch predictor (`crates/simulate/src/time/`) says when it commits. It knows feeders and
//!   instructions by site, as the pass wrote them, and how often the site of a feeder was executed since the load that is meant
//!   (`Feed::back`): one site stands for the copies of an unrolled loop, and a value may be of the iteration before. Time is whole
//!   ticks, so sums do not depend on their order. A naive model that keeps everything equals it to the digit
//!   (`crates/simulate/tests/time/naive.rs`). A trace has no branches: they are seen where one site is followed by different ones.
//!   The compiler says which loads they depend on (SPEC §2.4); behind a mispredicted branch, what lies on both its ways is fetched
//!   early.
//! - **Windows.** A counter between the profiler and its caches ([`window`]) keeps what is inside by cell; parts by function, file or
//!   thread are cells left out of a whole profile.

pub mod annotate;
pub mod heap_calls;
pub mod simulation;
pub mod simulators;
pub mod source;
pub(crate) mod threads;
pub mod timed;
mod times;
pub mod window;
