//! Hand over a trace's events in order.
//!
//! ```text
//! Trace, LiveTrace ─► chunks, as they began ─► crew: decode, deal out to shards ─► order: streams merged ─► Piece
//!                                              several threads                     each consumer's own thread
//! ```
//! Whoever simulates sees [`Piece`]s: events of one stream that nothing of another comes between. One consumer sees all of them
//! ([`Replay::interleave`]), or each of several the lines of its [`Shards`] of the caches' sets ([`Replay::interleave_shards`]).
//! A trace that is still written is replayed as it comes ([`live`]). [`check`] proves that what a trace says agrees.
//!
//! # Order
//!
//! - All threads decode; a chunk is dealt out by the thread that decoded it. What a shard needs to know of that is beside the chunk, not in
//!   it (`Dealing`).
//! - Streams that ran side by side take turns at stamps and, between these, at moments (`moments`): time goes by in proportion to accesses
//!   there. They are found when a chunk is decoded and dealt out with it, so that all shards have the same ones. In a long loop that is
//!   one record a moment stands for many, each at an iteration where the loop looks to a cache as at its beginning, so that its part is
//!   simulated by line as well (`Piece::runs`). Where a stream acquired something and nobody knows when it was released, the others
//!   catch up first (`order`), so that no acquisition comes before its release.
//! - Live, chunks are decoded as they come; if none are kept, their words are not coded as those of a file
//!   (`crates/trace/src/write/payload.rs`). The collector tells of each stream when its next chunk begins at the earliest, and looks into
//!   chunks in use every 20 ms, so that none holds the others up; what began before all of these has its turn. So replay order is that
//!   of a stored trace; only a chunk that comes too late all the same goes where it still can.

pub mod check;
mod crew;
mod live;
mod moments;
mod order;
mod piece;
mod shards;
mod strides;
mod walks;

pub use crew::Replayed;
pub use live::{LiveStore, LiveTrace, live};
pub use moments::{Inside, Moment, moments};
pub use order::Replay;
pub use piece::{Events, LoopPart, Piece, PieceEnd};
pub use shards::{Cuts, Dealer, Dealing, Dealt, Half, Shards};
pub use strides::strided;
pub use walks::{Walk, Walks};
