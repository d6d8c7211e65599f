//! Samples running programs of any kind with the kernel's CPU clock: no performance counter is needed. Reads samples of
//! others, too: recordings of `perf`.
//!
//! The clock interrupts a program some hundred or thousand times a second of its time, and the kernel says where it was.
//! [`Skid`] finds on a loop that is known how far behind the waiting instruction such a sample lies.

pub mod attributes;
pub mod data_source;
pub mod perf_data;
pub mod records;
pub mod tiers;

mod attach;
mod error;
mod live;
mod naming;
mod report;
mod skid;
mod tally;

pub use attach::{attach, root_of};
pub use error::Error;
pub use live::{counts_cycles, sample, sample_event, sample_registers};
pub use naming::{SampleSource, name};
pub use report::{
    SampleCoverage, SampleReport, SampleShare, SampledCost, SampledData, SampledFunction, SampledImage,
    SampledLine, SampledSource, UntypedShare,
};
pub use skid::Skid;
pub use tally::{Sampled, SampledPlace, SampledState, SourceCount, Tally};
