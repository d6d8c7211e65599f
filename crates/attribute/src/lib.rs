//! Join events with names and objects.
//!
//! ```
//! use memlode_attribute::{Simulation, Source};
//!
//! let trace = memlode_trace::Trace::open("../analyses/fixtures/offenders/trace".as_ref())?;
//! let (source, machine) = (Source::Stored(trace.into()), memlode_machine::Machine::find("generic")?);
//! let (profile, replayed) = Simulation::of(&source, &machine).count(|_| std::ops::ControlFlow::Continue(()))?;
//! assert!(replayed.damaged.is_empty() && profile.cells.iter().any(|cell| cell.counts.misses(0) > 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!   drive/                    count/                       profile.rs                 read/
//!   Simulation of a    ──►     Profiler: access ──► cell ──► cells: thread × site ──►  tables: lines, members, types,
//!   trace on a machine        │ caches: simulate           × object class             objects, functions, threads;
//!                             │ address → object: objects/ → level that served it     costs, standard errors
//! ```
//! A [`Profile`] is plain numbers keyed by ids of the trace's site table; it merges by addition.
//! For a trace with gaps it also has the counts of each run ([`CellRuns`]), and the rows of tables
//! have standard errors ([`StandardErrors`]). This crate does not print, and knows no findings.

mod count;
pub mod counts;
mod drive;
pub mod objects;
pub mod profile;
mod read;
mod residencies;
mod sampled;
pub mod setup;
pub mod sharing;
pub mod values;

pub use count::engine::Engine;
pub use count::map::{AddressMap, ElementTable, MappedPiece, ObjectRef, PlaceHint, TableByte, TablePart};
pub use count::profiler::{LoadedGlobal, Profiler};
pub use counts::Counts;
pub use drive::heap_calls::{CallCollector, HeapCall, MadeBlock, first_uses, heap_calls, heap_calls_in};
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
pub use read::{cost, coverage, detail, inside, libraries, place, stack, tables, timed};
pub use residencies::{LineFetch, LineResidency, Residencies};
pub use sampled::cell_runs::{CellRuns, Entry};
pub use sampled::sample;
pub use sampled::sample::{Covered, Estimate, Gaps, covered};
