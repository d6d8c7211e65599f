//! Read and write memlode trace directories.
//!
//! ```text
//!                 write::ChunkEncoder        write::TraceWriter
//! words of a thread ───────────────► chunks ───────────────────► threads/*.mlt
//! sections of an ELF image ────────────────────────────────────► modules/*.mlm
//! what happened ───────────────────────────────────────────────► events.ndjson, manifest.json
//!
//!                 Trace::chunks              Trace::decode, Trace::interleave
//! threads/*.mlt ───────────────► replay order ───────────────────► Piece ──► simulate, attribute, text
//! modules/*.mlm ──► SiteTable, globals ─────────────────────────────────────────┘
//! ```
//! The format is described in `format/SPEC.md`. This crate prints nothing and never exits.

mod bytes;
pub mod census;
pub mod check;
mod decode;
pub mod error;
pub mod event;
pub mod files;
mod flatten;
#[path = "../../../format/generated/format.rs"]
#[rustfmt::skip]
pub mod format;
mod index;
mod interleave;
mod live;
pub mod log;
pub mod manifest;
pub mod module;
mod names;
mod pack;
mod read;
mod replay;
mod schedule;
mod schedules;
mod sections;
mod shards;
pub mod sites;
pub mod stack;
mod table;
pub mod text;
mod varints;
mod words;
pub mod write;

pub use error::Error;
pub use index::{ChunkRef, Damage};
pub use interleave::{Events, Piece, Stop};
pub use live::{LiveStore, LiveTrace, live};
pub use read::{Clock, Image, Process, Thread, Trace};
pub use replay::Replayed;
pub use schedule::{Periods, Schedule, Shape, Touch};
pub use schedules::Schedules;
pub use shards::{Cuts, Half, Shards};
