//! The work on several threads: shards of the caches, and outer levels beside the first.

pub mod beside_caches;
pub mod division;
pub mod outer_levels;
