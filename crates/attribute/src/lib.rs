//! Join events with names and objects.
//!
//! ```text
//!   drive/                    count/                       profile.rs                 read/
//!   Simulation of a    ──►     Profiler: access ──► cell ──► cells: thread × site ──►  tables: lines, members, types,
//!   trace on a machine        │ caches: simulate           × object class             objects, functions, threads;
//!                             │ address → object: objects/ → level that served it     costs, standard errors
//! ```
//! A [`Profile`] is plain numbers keyed by ids of the trace's site table; it merges by addition. Of a trace with gaps it has
//! them run by run besides ([`CellRuns`]), and the rows of tables tell how far they may be off ([`StandardErrors`]). Nothing here
//! prints, and nothing here knows what a finding is.

mod count;
pub mod counts;
mod drive;
pub mod objects;
pub mod profile;
mod read;
mod sampled;
pub mod setup;
pub mod sharing;
mod stays;
pub mod values;

pub use count::engine::Engine;
pub use count::map::{AddressMap, MappedPiece, ObjectRef};
pub use count::profiler::{LoadedGlobal, Profiler};
pub use counts::Counts;
pub use drive::heap_calls::{HeapCall, MadeBlock, first_uses, heap_calls};
pub use drive::simulation::Simulation;
pub use drive::source::{Source, has_gaps};
pub use drive::window::Window;
pub use drive::{annotate, simulators};
pub use objects::classes;
pub use objects::classes::{Class, ClassId, Home};
pub use objects::paths::{PathId, Paths};
pub use profile::{Cell, DetailedProfile, Profile, TimedProfile};
pub use read::cost::{CostModel, Parallelism, UnderEdit, Wait, WaitKind};
pub use read::coverage::Coverage;
pub use read::detail::AliasRow;
pub use read::standard_errors::{Shares, StandardErrors};
pub use read::touched::FirstTouches;
pub use read::{cost, coverage, detail, libraries, place, stack, tables, timed};
pub use sampled::cell_runs::{CellRuns, Entry};
pub use sampled::sample;
pub use sampled::sample::{Covered, Estimate, Gaps, covered};
pub use stays::{LineFetch, LineStay, Stays};
