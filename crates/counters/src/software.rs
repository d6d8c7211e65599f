//! Events that the kernel counts by itself, on every machine.

use serde::{Deserialize, Serialize};

/// An event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Software {
    /// Nanoseconds in which the program's threads had a processor.
    TaskClock,
    /// Page faults that needed no disk.
    MinorFaults,
    /// Page faults that waited for a disk.
    MajorFaults,
    /// Times that a thread left its processor.
    ContextSwitches,
    /// Times that a thread came back on another processor.
    Migrations,
}

impl Software {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Software; 5] = [
        Software::TaskClock,
        Software::MinorFaults,
        Software::MajorFaults,
        Software::ContextSwitches,
        Software::Migrations,
    ];

    /// Returns whether it happens in the kernel: a counter of user space alone would give zero.
    pub fn is_of_kernel(self) -> bool {
        matches!(self, Software::ContextSwitches | Software::Migrations)
    }
}
