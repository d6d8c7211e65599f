//! Names of accesses.

use serde::Serialize;

/// The object of an access, and its place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// "g", "samples", "memory at 0x7ffff7fc1000".
    pub data: String,
    /// It is a variable of the stack.
    pub is_stack: bool,
    /// The function and line of the access, as far as they are known: "work kernel.c:7".
    pub place: String,
}
