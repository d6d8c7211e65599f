//! One program, run once at one layout, and its costs.

mod calibrate;
mod layout;
mod run;

pub use calibrate::{Pinned, calibrate, processors};
pub use layout::AddressLayout;
pub(crate) use run::finish;
pub use run::{
    CountedRegion, Launch, Output, RunLimits, Sample, Started, StopFlag, can_fix_addresses, fix_addresses,
    pass,
};
