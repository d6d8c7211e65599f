//! Address spaces of several processes side by side.

/// The address space of a process: bits above those of user addresses, so that addresses, lines and
/// pages of two processes differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Space(u64);

impl Space {
    /// Bits of an address that user space has.
    const BITS: u32 = 48;
    /// Bytes of user space.
    pub(crate) const BYTES: u64 = 1 << Space::BITS;

    /// Returns the space of a process, by its number.
    #[inline(always)]
    pub const fn of(process: u32) -> Space {
        Space((process as u64) << Space::BITS)
    }

    /// Adds the process's bits to an address of it, or takes them away again.
    #[inline(always)]
    pub const fn place(self, address: u64) -> u64 {
        address ^ self.0
    }

    /// Returns the number of a block of `bytes`, a power of two; numbers of different processes
    /// differ.
    #[inline(always)]
    pub const fn place_block(self, number: u64, bytes: u64) -> u64 {
        number ^ (self.0 / bytes)
    }

    /// Returns an address without the bits of its space.
    #[inline(always)]
    pub(crate) const fn within(address: u64) -> u64 {
        address & (Space::BYTES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_addresses_of_their_own() {
        let address = 0x7fff_1234_5678;
        assert_eq!(Space::of(0).place(address), address);
        let other = Space::of(7).place(address);
        assert_ne!(other, address);
        assert_eq!(Space::of(7).place_block(address / 64, 64), other / 64);
        assert_eq!((Space::within(other), Space::of(7).place(other)), (address, address));
    }
}
