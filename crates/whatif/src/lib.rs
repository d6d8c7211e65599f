//! Replay a trace as if its data lay elsewhere, and say what that would change.
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
//! `plan` finds the types and objects that edits are about, `placement` makes the trace's allocation calls again with edited sizes, and
//! `moved` is the map from old bytes to new places that `crates/attribute` replays through. An `Allocator` serves the calls: `malloc` of
//! the C library, in a process of its own that the command line starts (`crates/cli/src/place.rs`), or a model of it, which can be
//! seeded. `fresh` counts what the kernel does for the pages of it. `values` knows which values members had, where they were recorded.
//! `remedies` propose edits of what a trace waits for, one file each. `advise` tries them and keeps those that are worth it, for a
//! `host` that shows progress.
//! `noise` has 20 seeds place the same objects on a part of the trace, and keeps beside the trace what that changed.

pub mod advise;
pub mod aliased;
pub mod allocator;
pub mod apart;
pub mod budget;
pub mod contended;
pub mod cost;
mod elements;
pub mod fresh;
pub mod heat;
pub mod host;
pub mod hot_cold;
pub mod moved;
pub mod named;
pub mod noise;
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
