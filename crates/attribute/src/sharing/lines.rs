//! The lines that threads take from each other.

use memlode_machine::Machine;
use memlode_simulate::Space;
use memlode_trace::event::ProcessId;

/// Bits of the mask of the bytes of a line that an access touches.
const BITS: u64 = 64;

/// The size of the lines: the unit in which memory is fetched, because cores take it from each
/// other in this unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// Bytes of a line, a power of two.
    pub bytes: u64,
}

impl Lines {
    /// The lines of a machine.
    pub fn of(machine: &Machine) -> Lines {
        Lines { bytes: machine.line_bytes.into() }
    }

    /// Returns the number of an address's line, unique among all processes.
    pub fn number(self, process: ProcessId, address: u64) -> u64 {
        Space::of(process.0).place(address) / self.bytes
    }

    /// Returns where an address lies in its line.
    pub fn offset(self, address: u64) -> u64 {
        address % self.bytes
    }

    /// Returns the bits of the bytes `first..end` of a line. Of a line that is longer than 64
    /// bytes, each stands for a 64th part.
    pub fn bits(self, first: u64, end: u64) -> u64 {
        let of_bit = self.bytes.div_ceil(BITS);
        let (first, end) = (first / of_bit, end.div_ceil(of_bit));
        (u64::MAX >> (BITS - (end - first))) << first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_a_byte_or_a_64th_part() {
        let bits = |bytes, first, end| Lines { bytes }.bits(first, end);
        assert_eq!(bits(64, 0, 64), u64::MAX);
        assert_eq!(bits(64, 8, 12), 0xf00);
        assert_eq!(bits(32, 0, 32), u64::from(u32::MAX));
        assert_eq!(bits(128, 64, 128), 0xffff_ffff << 32);
        assert_eq!(bits(128, 3, 4), 0b10, "a byte has the bit of its half word");
        assert_eq!(bits(128, 3, 5), 0b110);
    }
}
