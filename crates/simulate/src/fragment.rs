//! Accesses whose bytes do not lie side by side.

/// A part of an access that lies apart from the others: what a program reads or writes at once may be in several places under another
/// layout of its data. The access counts once, at each level at most one miss, as one that straddles lines does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes touched, at least 1; a range that would run past the last address is cut there.
    pub bytes: u32,
    /// True if it is written. A link on the way to what is written is not.
    pub is_write: bool,
}

impl Fragment {
    /// Address of the last byte.
    pub(crate) fn last(&self) -> u64 {
        self.address.saturating_add(u64::from(self.bytes.max(1)) - 1)
    }
}
