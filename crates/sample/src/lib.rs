//! Samples running programs of any kind with the kernel's CPU clock: no performance counter is needed.
//!
//! The clock interrupts a program some hundred or thousand times a second of its time, and the kernel says where it was.
//! [`Skid`] finds on a loop that is known how far behind the waiting instruction such a sample lies.

pub mod records;

mod error;
mod live;
mod skid;
mod tally;

pub use error::Error;
pub use live::{counts_cycles, sample};
pub use skid::Skid;
pub use tally::{Sampled, SampledPlace, SampledState, Tally};
