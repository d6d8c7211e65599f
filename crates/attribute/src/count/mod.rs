//! Counting: every access through the caches, then to its cell.
//!
//! ```text
//!   piece of a chunk ──► route ──► single_line   one line, class and cell known: almost every access
//!                          │    ├─► loops         a loop that is one record: by line, not by access
//!                          │    └─► profiler      everything else
//!                          └─ mapped              the same under another layout
//!                                   │
//!                                   ▼
//!                    engine (caches) ──► cells: hits, and accesses by the level that served them
//! ```
//! A [`profiler::Profiler`] drives the simulation through one interface, [`engine::Engine`], whose
//! page has the order of its calls and the threads that make them.
//!
//! - **Single lines.** The loop over these accesses counts hits beside their site until the site
//!   has another cell; the profiler does everything else.
//! - **Loops.** Of a loop that is one record the caches are shown the accesses that enter a line,
//!   and those that leave it in another order than they entered: nothing else can miss, or change
//!   which line is dropped. The proof is in `crates/simulate/src/loops/schedule.rs`.
//! - **Stores past the caches** (`past_caches.rs`) are counted and go into none. A loop that has
//!   one is not kept as a loop when its chunk is decoded: the proof about loops holds for lines
//!   that stay in a cache.
//! - **The past** (`past.rs`): where a replay is wanted from some access on, what comes before is
//!   blocks and calls alone, if no caches are simulated. What a replay came by can be written down
//!   for those that begin later (`past_log.rs`).
//! - **Another layout** ([`map`]) is a map from the bytes of objects to other addresses. With one,
//!   accesses take another route (`mapped/`): each is resolved to its object and offset, simulated
//!   where the map puts its bytes, and charged to what it was charged to before. If it falls into
//!   several pieces, it accesses each line that a piece begins in, counts as deep as the deepest of
//!   these (`simulate::Fragment`), and the link that leads there is one access more. Objects come
//!   and go in replay order, so one thread resolves, and it has the first level, too. Without a map
//!   nothing of this runs.
//! - **Residencies.** For each followed line it is known which block it was fetched for
//!   (`residencies.rs`).
//! - **Gaps.** Of a trace with gaps the counts of cells are kept run by run as well
//!   (`sampled/cell_runs.rs`), for the cells that did something in a run. They add up to the rows,
//!   to the digit.
//!
//! Time goes into instructions here: `valgrind --tool=callgrind --dump-instr=yes memlode report` on
//! a short trace counts them, the same on every machine.

mod cells;
mod contexts;
pub mod engine;
mod gaps;
mod loop_scratch;
mod loops;
pub mod map;
pub(crate) mod mapped;
mod marks;
pub(crate) mod merge;
mod past;
mod past_caches;
pub(crate) mod past_log;
pub mod profiler;
pub(crate) mod route;
mod single_line;
mod straddling;
