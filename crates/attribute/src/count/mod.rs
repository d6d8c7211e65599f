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
//! A [`profiler::Profiler`] drives what simulates through one interface, [`engine::Engine`], which says in which order its calls come
//! and which thread makes them.
//!
//! - **Single lines.** The loop over these accesses counts hits beside their site until the site has another cell; what it cannot
//!   serve is left to the profiler.
//! - **Loops.** Of a loop that is one record the caches are shown the accesses that enter a line, and those that leave it in another
//!   order than they entered: nothing else can miss, or change which line is dropped. The proof is in
//!   `crates/simulate/src/loops/schedule.rs`.
//! - **Stores past the caches** (`past_caches.rs`) are counted and go into none. A loop that has one is not kept as a loop when its chunk
//!   is decoded: what is proved of loops is about lines that stay.
//! - **Another layout** ([`map`]) is a map from the bytes of objects to other addresses. With one, accesses take another route
//!   (`mapped/`): each is resolved to its object and offset, simulated where the map puts its bytes, and charged to what it was
//!   charged to before. In several pieces it is an access for each line that one begins in, as deep as the worst of these
//!   (`simulate::Fragment`), and the link that leads there is one more. Objects come and go in replay order, so one thread
//!   resolves, and it has the first level, too. Without a map nothing of this runs.
//! - **Residencies.** Of the lines that are followed, it is known which block each was fetched for (`stays.rs`).
//! - **Gaps.** Of a trace with gaps the counts of cells are kept run by run as well (`sampled/cell_runs.rs`), for the cells that did
//!   something in a run. They add up to the rows, to the digit.
//!
//! Time goes by instructions here: `valgrind --tool=callgrind --dump-instr=yes memlode report` on a short trace counts them, the same
//! on every machine.

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
mod past_caches;
pub mod profiler;
pub(crate) mod route;
mod single_line;
mod straddling;
