//! Exit statuses of memlode's own commands.

/// Success.
pub const OK: u8 = 0;
/// An error of memlode itself, or of its input.
pub const FAILED: u8 = 1;
/// Arguments that cannot be understood.
pub const WRONG_USAGE: u8 = 2;
/// `check`, `doctor`, `budget check`: problems were found.
pub const PROBLEMS: u8 = 3;
