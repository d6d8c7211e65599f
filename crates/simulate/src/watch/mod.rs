//! What is known of misses: why each line was missed, who evicted it, what of it was used.

pub mod batch;
pub mod causes;
pub mod detailed;
pub mod first_level;
pub mod late_twin;
pub mod misses;
pub mod model_watch;
pub mod outer_level;
pub mod pairs;
pub mod recent;
pub mod records;
pub mod touched;
pub mod twin;
pub mod uses;
