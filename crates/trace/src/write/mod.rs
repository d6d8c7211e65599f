//! Writing a trace: what the collector uses.
//!
//! One [`ChunkEncoder`] per traced thread turns words into chunks; one [`TraceWriter`] puts chunks, modules and events
//! into the directory. [`AddressSpace`] knows, per process, what the header words stand for.

mod directory;
mod encode;
mod space;

pub use crate::pack::Packer;
pub use directory::TraceWriter;
pub use encode::{Appended, ChunkEncoder, EncodedChunk, FullChunk, Stop, Tail};
pub use space::AddressSpace;
