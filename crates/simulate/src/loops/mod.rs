//! Loops: accesses that each go a constant step from turn to turn, and which of them a simulation has to look at one by one.
//!
//! A [`Schedule`] says which accesses of a [`Hierarchy`](crate::Hierarchy) its first level has to see; the proof is there. A
//! [`Detailed`](crate::Detailed) simulation has to say more, and finds what is found of the accesses one by one: most of them are to a
//! line, and to a page, that the same access was in a turn before, and have nothing to tell but that there was one more. Caches,
//! translations and stores in flight each know for how many turns that stays so, and write these down together.

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

/// Most accesses of a turn.
pub const MOST_STRIDES: usize = 256;
