//! The work on several threads: shards of the caches, outer levels apart from the first, and their results put together.

pub mod beside_caches;
pub mod division;
pub mod merge;
pub mod outer_levels;
