//! Accesses whose bytes lie in several places.

/// One part of an access whose bytes lie in several places. Under another layout of its data, what
/// a program reads or writes at once may be in pieces. The access still counts once, with at most
/// one miss at each level, like an access that straddles lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes touched, at least 1; a range that would run past the last address is cut there.
    pub bytes: u32,
    /// True if the program writes this part. A link that is read on the way to written data is not
    /// written.
    pub is_write: bool,
}

impl Fragment {
    /// Address of the last byte.
    pub(crate) fn last(&self) -> u64 {
        self.address.saturating_add(u64::from(self.bytes.max(1)) - 1)
    }
}
