//! The parts of a core besides its caches: translations, stores in flight, and the memory of its
//! node.

pub mod numa;
pub mod store_buffer;
pub mod tlb;
