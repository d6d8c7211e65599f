//! The places where the data of a program come to lie.

use serde::Serialize;

/// The name of the variable that makes the environment longer.
pub const PADDING: &str = "MEMLODE_PADDING";

/// The layout of one run, as far as one can choose it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AddressLayout {
    /// Bytes by which the environment is made longer, which moves the stack down; 0 leaves it
    /// unchanged. The added variable takes at least its name and `=`.
    pub padding: usize,
    /// Stack, heap and mappings start where the kernel puts them at random. Otherwise always at the same place.
    pub randomised: bool,
}

impl AddressLayout {
    /// The given environment, and addresses that are the same in each run.
    pub const GIVEN: AddressLayout = AddressLayout { padding: 0, randomised: false };

    /// The value of [`PADDING`] that makes the environment `padding` bytes longer, if it can.
    pub(super) fn value(&self) -> Option<String> {
        // On the stack lie the text `NAME=value`, a zero, and a pointer to it.
        let least = PADDING.len() + 2 + size_of::<usize>();
        self.padding.checked_sub(least).map(|length| "x".repeat(length))
    }
}
