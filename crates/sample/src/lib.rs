//! Samples running programs of any kind with the kernel's CPU clock: no performance counter is needed. Reads samples of
//! others, too: recordings of `perf`.
//!
//! ```
//! use memlode_sample::data_source::DataSource;
//!
//! // The kernel's word of a sampled load that its first level served, and one that says nothing.
//! let load = DataSource::of(2 | 2 << 5 | 8 << 5).expect("a load");
//! assert!(!load.is_store && DataSource::of(0).is_none());
//! ```
//!
//! The clock interrupts a program some hundred or thousand times a second of its time, and the kernel says where it was.
//! [`Skid`] finds on a loop that is known how far behind the waiting instruction such a sample lies.

pub mod attributes;
pub mod data_source;
pub mod perf_data;
pub mod records;
pub mod tiers;

mod allocations;
mod attach;
mod blocks;
mod difference;
mod error;
mod frameless;
mod kept;
mod live;
mod places;
mod report;
mod resolve;
mod share;
mod sites;
mod skid;
mod summary;
mod tally;
mod unwinding;

pub use attach::{attach, root_of};
pub use blocks::{BlockChange, BlockEvent, BlockNotes, KeptBlocks};
pub use difference::{SampleDifference, ShareChange};
pub use error::Error;
pub use frameless::{Frameless, frameless};
pub use kept::{FilePlace, KeptCall, KeptSample, KeptSamples};
pub use live::{counts_cycles, sample, sample_event, sample_events};
pub use places::{InstructionSamples, PlaceSamples};
pub use report::{
    AllocationCall, SampleCoverage, SampleReport, SampledAllocation, SampledBlocks, SampledCaller,
    SampledCost, SampledData, SampledFunction, SampledImage, SampledLine, SampledSource, UntypedShare,
};
pub use resolve::{SampleSource, resolve};
pub use share::SampleShare;
pub use skid::Skid;
pub use summary::{name, report};
pub use tally::{Sampled, SampledPlace, Tally};
pub use unwinding::Unwinding;
