//! Writing a trace: what the collector uses.
//!
//! One [`ChunkEncoder`] per traced thread turns words into chunks; one [`TraceWriter`] puts chunks, modules and events
//! into a [`Store`], of which a [`DirectoryStore`] is one. [`AddressSpace`] knows, per process, what the header words stand for.

mod chunk;
mod directory;
mod encode;
mod known;
mod sieve;
mod space;
mod store;
mod writer;

pub use crate::pack::Packer;
pub use chunk::{EncodedChunk, FullChunk};
pub use directory::DirectoryStore;
pub use encode::{Appended, ChunkEncoder, Stop, Tail};
pub use sieve::Sieve;
pub use space::AddressSpace;
pub use store::{Store, TraceFile};
pub use writer::TraceWriter;
