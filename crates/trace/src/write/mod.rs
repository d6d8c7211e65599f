//! Writing a trace: what the collector uses.
//!
//! One [`ChunkEncoder`] per traced thread turns words into chunks, and [`Encoder`]s parts of a
//! stream ahead of it; one [`TraceWriter`] puts chunks, modules and events into a [`Store`], of
//! which a [`DirectoryStore`] is one. [`AddressSpace`] maps the header words of a process to
//! segments.

mod chunk;
mod directory;
mod encode;
mod history;
mod known;
mod payload;
mod relative;
mod sieve;
mod space;
mod store;
mod stream;
mod writer;

pub use crate::pack::Packer;
pub use chunk::{EncodedChunk, FullChunk, LooseChunk};
pub use directory::DirectoryStore;
pub use encode::{Appended, Before, Encoder, FULL_WORDS, Stop, Tail};
pub use history::{History, Wanted};
pub use payload::{Form, Payload};
pub use sieve::Sieve;
pub use space::{AddressSpace, Promise};
pub use store::{Store, TraceFile};
pub use stream::ChunkEncoder;
pub use writer::TraceWriter;
