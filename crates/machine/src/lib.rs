//! Descriptions of machines: caches, sharing, latencies; files and host detection.
//!
//! A machine is data: one file in `machines/` with its sources, or the kernel's description of the
//! host.
//!
//! ```
//! use memlode_machine::Machine;
//!
//! let machine = Machine::find("zen3")?;
//! assert_eq!(machine.levels[2].sets(), 32768);
//! let host = Machine::find("host")?;
//! assert!(!host.levels.is_empty());
//! # Ok::<(), memlode_machine::MachineError>(())
//! ```

mod built_in;
mod core_parts;
mod costs;
mod cpuid;
mod document;
mod file;
mod host;
mod machine;
mod rules;
mod sysfs;
mod write;

pub use crate::core_parts::{InFlight, TlbArray};
pub use built_in::names;
pub use costs::{Constant, Costs, MOST_SPREAD, SharingCosts};
pub use cpuid::CpuidCache;
pub use host::{HostSources, kept_folder, measured_file};
pub use machine::{Identity, LatencySpreads, Level, Machine, MachineError, Provenance};
pub use memlode_simulate::{Coherence, Inclusion, Prefetch, Replacement, Write};
pub use rules::{Allocate, Rules};
