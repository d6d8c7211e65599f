//! Join events with names and objects.
//!
//! ```text
//! Batch ──► Profiler ──► Profile: cells (thread × site × object class → level that answered)
//!             │ caches: simulate::Hierarchy, or Detailed       │
//!             │ address → object: objects                      ▼
//!             │ allocation call paths: paths                tables: lines, fields, types, objects, functions, threads
//! ```
//! A [`Profile`] is plain numbers keyed by ids of the trace's site table; it merges by addition. Of a trace with gaps it has
//! them run by run besides ([`CellRuns`]), and the rows of tables tell how far they may be off ([`Errors`]). Nothing here
//! prints, and nothing here knows what a finding is.

pub mod annotate;
pub mod cost;
pub mod counts;
pub mod coverage;
pub mod detail;
pub mod engine;
mod fast_path;
pub mod libraries;
pub mod map;
mod mapped;
pub mod objects;
mod past_caches;
pub mod paths;
pub mod profile;
mod road;
pub mod run;
mod sampled;
pub mod sharing;
pub mod simulator;
mod source;
mod stacks;
mod stays;
pub mod tables;
mod threads;
pub mod timed;
mod times;
mod touched;
mod window;

pub use cost::{CostModel, Parallelism, UnderEdit, Wait, WaitKind};
pub use counts::Counts;
pub use coverage::Coverage;
pub use detail::{AliasRow, DetailedProfile};
pub use engine::Engine;
pub use map::{AddressMap, MappedPiece, ObjectRef};
pub use objects::classes;
pub use objects::classes::{Class, ClassId, Home};
pub use objects::heap_calls::{HeapCall, MadeBlock, first_uses, heap_calls};
pub use paths::{PathId, Paths};
pub use profile::{Cell, Profile, Profiler};
pub use run::{profile_in_detail, profile_mapped, profile_mapped_in_detail, profile_trace};
pub use sampled::cell_runs::{CellRuns, Entry};
pub use sampled::errors::{Errors, Shares};
pub use sampled::sample::{Covered, Estimate, Gaps, covered};
pub use sampled::{errors, sample};
pub use source::{Source, has_gaps};
pub use stays::{LineFetch, LineStay, Stays};
pub use timed::{TimedProfile, profile_in_time};
pub use touched::FirstTouches;
pub use window::{Window, profile_within};
