//! Replays the events of a trace in order.
//!
//! ```
//! // Everything in a trace is read, and what it says in several places is compared.
//! let report = memlode_replay::check::check("../analyses/fixtures/offenders/trace".as_ref(), 1)?;
//! assert!(report.is_sound() && report.accesses > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! Trace, LiveTrace ─► chunks, as they began ─► crew: decode, deal out to shards ─► order: streams merged ─► Piece
//!                                              several threads                     each consumer's own thread
//! ```
//! A consumer gets [`Piece`]s: events of one stream without any of another stream between them. One
//! consumer sees all of them ([`Replay::interleave`]), or each of several the lines of its
//! [`Shards`] of the caches' sets ([`Replay::interleave_shards`]). A trace that is still being
//! written is replayed as it comes ([`live`]). [`check`] proves that a trace does not contradict
//! itself.
//!
//! # Order
//!
//! - All threads decode; the thread that decoded a chunk also deals it out to the shards. The
//!   results of dealing are kept beside the chunk, not in it (`Dealing`).
//! - Streams that ran side by side take turns at stamps and, between these, at moments (`moments`):
//!   time goes by in proportion to accesses there. They are found when a chunk is decoded and dealt
//!   out with it, so that all shards have the same ones. In a long loop that is one record, a
//!   moment stands for many. Each is at an iteration where the loop's lines repeat, so that each
//!   part is simulated by line as well (`Piece::runs`). Where a stream acquired something at an
//!   unknown time, the other streams catch up first (`order`), so that no acquisition comes before
//!   its release.
//! - Live, chunks are decoded as they come; if none are kept, their words are not coded like those
//!   of a file (`crates/trace/src/write/payload.rs`). For each stream, the collector knows the
//!   earliest time at which its next chunk can begin. It examines chunks in use every 20 ms, so
//!   that no stream delays the others. Chunks that began before the earliest of these times are
//!   replayed. So replay order is that of a stored trace; a chunk that comes too late nevertheless
//!   is replayed as early as still possible.

pub mod check;
mod crew;
mod excerpt;
mod live;
mod moments;
mod order;
mod piece;
mod resume;
mod shards;
mod strides;
mod walks;

pub use crew::Replayed;
pub use excerpt::{Excerpt, stretches};
pub use live::{LiveStore, LiveTrace, live};
pub use moments::{Inside, Moment, moments};
pub use order::Replay;
pub use piece::{Events, LoopPart, Piece, PieceEnd};
pub use resume::{Point, ReplayStep};
pub use shards::{Cuts, Dealer, Dealing, Dealt, Half, Shards};
pub use strides::strided;
pub use walks::{Walk, Walks};
