//! Exact LRU caches, the fast path: one rule, several levels and cores.

pub mod array;
pub mod cache;
pub mod deferred;
pub mod follow;
pub mod hierarchy;
pub mod many_lines;
pub mod residencies;
pub mod row;
pub mod sets;
