//! Loops of accesses that each go a constant step per iteration, and which of these accesses must
//! be simulated one by one.
//!
//! A [`Schedule`] selects the accesses of a [`Hierarchy`](crate::Hierarchy) that its first level
//! has to see; the proof is there. A [`Detailed`](crate::Detailed) simulation reports more, and
//! must find what it would find one by one. Most accesses of a loop are to the line and the page
//! that they were in an iteration before, and only add to a count. Caches, translations and stores
//! in flight each know for how many iterations that holds, and count these together.

mod lines;
mod pages;
mod schedule;
mod schedules;
mod stores;
mod strided;

pub(crate) use lines::Deferred;
pub use schedule::{Periods, Schedule, Shape, ShownAccess};
pub use schedules::Schedules;
pub use strided::Strided;

/// Most accesses of an iteration.
pub const MOST_STRIDES: usize = 256;
