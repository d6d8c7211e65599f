//! Details of misses: why each line was missed, who evicted it, and how much of it was used.

pub mod batch;
pub mod detailed;
pub mod lru;
pub mod misses;
pub mod model;
pub mod pairs;
pub mod records;
pub mod touched;
pub mod twin;
pub mod watched;
pub mod watcher;
