//! Read and write memlode trace directories.
//!
//! ```
//! let trace = memlode_trace::Trace::open("../analyses/fixtures/offenders/trace".as_ref())?;
//! let accesses: u64 = trace.chunks().iter().map(|chunk| chunk.accesses()).sum();
//! assert!(accesses > 0 && trace.threads().len() == 1 && !trace.sites().sites().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!                 write::ChunkEncoder        write::TraceWriter
//! words of a thread ───────────────► chunks ───────────────────► threads/*.mlt
//! sections of an ELF image ────────────────────────────────────► modules/*.mlm
//! what happened ───────────────────────────────────────────────► events.ndjson, manifest.json
//!
//!                 Trace::chunks                        Trace::decode, Decoder
//! threads/*.mlt ───────────────► chunks as they began ───────────────────────► Batch ──► replay, text
//! modules/*.mlm ──► SiteTable, globals ───────────────────────────────────────────────────┘
//! ```
//! A [`GrowingTrace`] is one that is still being written. `memlode-replay` orders threads, and
//! decodes on several of ours.
//!
//! The format is described in `format/SPEC.md`.
//!
//! # Where the time goes
//!
//! - A chunk is decoded in two passes, its words first and then its segments (`words`,
//!   `decode/plain`): each loop is small enough for its state to fit into registers. Most segments
//!   have one or two accesses of known size, and at most calls besides: they are executed from
//!   plans, and only ranges, lanes, values and loops leave that loop (`decode/ops`). AVX-512 reads
//!   and writes words eight at a time (`words/avx512`): a head has as many trailing ones as its
//!   tail has bytes.
//! - A program that is recorded to files waits for encoding. An encoder reads 32 bytes for each
//!   segment (`write/known`). Segments that the chunk knows are encoded in a fast loop
//!   (`Encoder::plain`), all others in the general loop behind it.
//! - An index (`index`) has the places and contents of chunks. It is used as far as it agrees with
//!   the files; the rest is found by walking through them.

mod asked;
mod bytes;
pub mod calls;
pub mod census;
mod compiled;
mod decode;
pub mod error;
pub mod event;
mod flatten;
mod foreign;
mod foreign_code;
#[path = "../../../format/generated/format.rs"]
#[rustfmt::skip]
pub mod format;
mod grow;
mod index;
mod kept;
pub mod layouts;
mod left_out;
pub mod log;
pub mod manifest;
pub mod module;
mod names;
mod pack;
mod read;
pub mod sampled;
mod sections;
pub mod sites;
pub mod stack;
mod table;
pub mod text;
mod unrecorded;
mod untyped;
mod varints;
mod words;
pub mod work;
pub mod write;

pub use compiled::CompiledSources;
pub use decode::{Decoder, Loops};
pub use error::Error;
pub use foreign_code::{ForeignCode, ForeignFunction};
pub use grow::{GrowingTrace, Meanings};
pub use index::{ChunkRef, Damage};
pub use kept::KeptTables;
pub use left_out::LeftOut;
pub use read::{Clock, Image, Process, Thread, Trace};
pub use unrecorded::{Unrecorded, UnrecordedId};
