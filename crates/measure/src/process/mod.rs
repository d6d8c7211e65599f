//! One program, run once at one layout, and what it took.

mod calibrate;
mod layout;
mod run;

pub use calibrate::{Pinned, calibrate, processors};
pub use layout::Layout;
pub use run::{Launch, Limits, Output, Sample, Stop, can_fix_addresses, fix_addresses};
