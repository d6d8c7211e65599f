//! Facts that follow from the order of accesses alone, for any caches.

pub mod bounds;
pub mod reuse;
