//! Tables that are made of a trace once, and kept.

use std::fmt::Debug;

/// Tables by name, beside a trace.
pub trait KeptTables: Debug + Send + Sync {
    /// Returns a table, if it is there, intact, of this trace, and made by this code.
    fn read(&self, name: &str) -> Option<Vec<u8>>;

    /// Keeps a table in place of an earlier one; returns whether that was possible.
    fn keep(&self, name: &str, table: &[u8]) -> bool;
}
