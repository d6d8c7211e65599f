//! Facts that follow from the order of accesses alone, whatever caches there are.

pub mod bounds;
pub mod reuse;
