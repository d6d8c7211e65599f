//! Attributes of an event: what `perf_event_open` takes, and files of `perf` keep.

use crate::records::RecordLayout;

/// Kinds of events, from `linux/perf_event.h`.
pub mod kind {
    /// An event of the processor, by the kernel's names.
    pub const HARDWARE: u32 = 0;
    /// An event of the kernel itself.
    pub const SOFTWARE: u32 = 1;
    /// An event of the processor, by its own codes.
    pub const RAW: u32 = 4;
}

/// The fewest bytes that attributes have: those of their first version.
pub const LEAST_BYTES: usize = 64;

/// The event that is sampled, how often, and which fields the records have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventAttributes {
    /// One of [`kind`], or a number of the machine's own for a unit.
    pub kind: u32,
    /// The event.
    pub config: u64,
    /// More of it: on Intel's processors the least latency of loads.
    pub config1: u64,
    /// More of it.
    pub config2: u64,
    /// Events between two samples, or samples a second.
    pub period: u64,
    /// The bits that follow each other in the kernel's structure.
    pub flags: u64,
    /// The fields of records.
    pub layout: RecordLayout,
    /// Bytes of the stack that are copied for each sample, where its layout has them: a multiple of 8.
    pub stack_bytes: u32,
}

/// Bits of [`EventAttributes::flags`].
pub mod flag {
    /// Nothing of the kernel is sampled.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// [`super::EventAttributes::period`] is a rate.
    pub const RATE: u64 = 1 << 10;
    /// Two bits: how near the event the sample's instruction must be.
    pub const PRECISE_SHIFT: u32 = 15;
    /// Records that are no samples end with process, thread and time, too.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
}

impl EventAttributes {
    /// Reads the kernel's structure, as many bytes of it as there are. `None` if these are too few.
    pub fn parse(bytes: &[u8]) -> Option<EventAttributes> {
        if bytes.len() < LEAST_BYTES {
            return None;
        }
        let u64_at = |at: usize| {
            let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_le_bytes)
        };
        let flags = u64_at(40);
        let layout = RecordLayout {
            sample_type: u64_at(24),
            regs_user: u64_at(80),
            regs_intr: u64_at(96),
            read_format: u64_at(32),
            branch_type: u64_at(72),
            sample_id_all: flags & flag::SAMPLE_ID_ALL != 0,
        };
        let (kind, config, period) = (u64_at(0) as u32, u64_at(8), u64_at(16));
        let (config1, config2) = (u64_at(56), u64_at(64));
        let stack_bytes = u64_at(88) as u32;
        Some(EventAttributes { kind, config, config1, config2, period, flags, layout, stack_bytes })
    }

    /// Returns how near the event a sample's instruction is: 0 anywhere behind it, 1 a constant distance, 2 and 3 at it.
    pub fn precision(&self) -> u8 {
        (self.flags >> flag::PRECISE_SHIFT & 3) as u8
    }

    /// Returns the event's name, where the kernel has one for it.
    pub fn known_name(&self) -> Option<&'static str> {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 10] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
        ];
        let names = match self.kind {
            kind::HARDWARE => HARDWARE,
            kind::SOFTWARE => SOFTWARE,
            _ => return None,
        };
        names.get(usize::try_from(self.config).ok()?).copied()
    }

    /// It samples time: of the processor, or of the program.
    pub fn is_time(&self) -> bool {
        matches!(self.known_name(), Some("cpu-clock" | "task-clock" | "cycles" | "ref-cycles"))
    }

    /// Nanoseconds of time between two samples, where it samples time in these.
    pub fn period_ns(&self) -> Option<u64> {
        let is_clock = matches!(self.known_name(), Some("cpu-clock" | "task-clock"));
        match self.flags & flag::RATE != 0 {
            true => 1_000_000_000_u64.checked_div(self.period).filter(|_| is_clock),
            false => Some(self.period).filter(|period| is_clock && *period > 0),
        }
    }
}
