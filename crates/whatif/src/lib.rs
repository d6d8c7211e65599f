//! Replay a trace as if its data lay elsewhere, and compute the effect.
//!
//! ```
//! use memlode_whatif::noise::{Noise, Verdict};
//!
//! // Placements of the same objects change a run by 1%: an edit has to gain more, and 2% at least.
//! let noise = Noise { chunks: 1, accesses: 1000, run: vec![1.0, 1.01, 0.99] };
//! assert_eq!(noise.verdict(100.0, 97.0), Verdict::WorthIt);
//! assert_eq!(noise.verdict(100.0, 99.5), Verdict::Neutral);
//! ```
//!
//! ```text
//!   edits ──► plan ──► which types and objects they are about
//!              │
//!   trace ─────┼─► allocation calls, with edited sizes ─► allocator ─► places
//!              │                                                         │
//!              └────────────────────────► moved: an AddressMap ◄─────────┘
//!                                           │
//!   trace ─► attribute::Simulation::under ◄────┘ ─► counts ─► compared with those of the trace as it is
//! ```
//!
//! `plan` finds the types and objects that edits are about, `placement` makes the trace's
//! allocation calls again with edited sizes, and `moved` is the map from old bytes to new places
//! that `crates/attribute` replays through. An `Allocator` serves the calls: `malloc` of the C
//! library, in a process of its own that the command line starts (`crates/cli/src/place.rs`), or a
//! model of it, which can be seeded. `fresh` counts the kernel's work for fresh pages. `values` has
//! the values of members, where they were recorded. `remedies` propose edits of the data that a
//! trace waits for, one file each. `advise` tries them and keeps the worthwhile ones, for a `host`
//! that shows progress. `part` has stretches of the trace, spread over it, that are replayed quickly.
//! `noise` places the same objects by 20 seeds there, and keeps the differences beside the trace.

pub mod advise;
pub mod aliased;
pub mod allocator;
pub mod apart;
pub mod budget;
pub mod contended;
pub mod cost;
mod elements;
mod embedded;
pub mod fresh;
pub mod heat;
pub mod host;
pub mod hot_cold;
pub mod moved;
pub mod named;
pub mod noise;
pub mod part;
pub mod placement;
pub mod plan;
pub mod predict;
mod remedies;
pub mod remedy;
pub mod side_by_side;
mod sizes;
pub mod structures;
pub mod uses;
pub mod values;
