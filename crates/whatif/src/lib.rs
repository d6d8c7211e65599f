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

pub mod allocator;
pub mod budget;
pub mod candidates;
pub mod cost;
pub mod fresh;
pub mod hot_cold;
pub mod moved;
pub mod noise;
pub mod patch;
pub mod placement;
pub mod plan;
pub mod predict;
pub mod proposals;
pub mod side_by_side;
pub mod structures;
pub mod values;
