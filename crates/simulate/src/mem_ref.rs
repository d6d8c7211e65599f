//! One access, as every simulation of this crate takes it.

use crate::tag::Tag;

/// A memory reference: an access of a core to some bytes.
///
/// An access of no bytes touches nothing, and a range that would run past the last address is cut
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemRef {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes touched.
    pub bytes: u32,
    /// The core, counted from 0.
    pub core: u32,
    /// Its place in the program. Models that count nothing by tag ignore it.
    pub tag: Tag,
    /// True if it writes.
    pub is_write: bool,
}

impl MemRef {
    /// A read.
    #[inline(always)]
    pub const fn read(core: usize, address: u64, bytes: u32) -> MemRef {
        MemRef { address, bytes, core: core as u32, tag: Tag::new(0), is_write: false }
    }

    /// A write.
    #[inline(always)]
    pub const fn write(core: usize, address: u64, bytes: u32) -> MemRef {
        MemRef { is_write: true, ..MemRef::read(core, address, bytes) }
    }

    /// The same, if it writes or not.
    #[inline(always)]
    pub const fn writing(self, is_write: bool) -> MemRef {
        MemRef { is_write, ..self }
    }

    /// The same with a tag.
    #[inline(always)]
    pub const fn tagged(self, tag: u32) -> MemRef {
        MemRef { tag: Tag::new(tag), ..self }
    }

    /// The core as an index.
    #[inline(always)]
    pub(crate) const fn core(&self) -> usize {
        self.core as usize
    }

    /// Address of the last byte; of the first, if it has none.
    #[inline(always)]
    pub(crate) const fn last(&self) -> u64 {
        self.address.saturating_add((if self.bytes == 0 { 1 } else { self.bytes }) as u64 - 1)
    }
}
