//! Hand over a trace's events in order.
//!
//! ```text
//! Trace, LiveTrace ─► chunks, as they began ─► crew: decode, deal out to shards ─► order: streams merged ─► Piece
//!                                              several threads                     each consumer's own thread
//! ```
//! Whoever simulates sees [`Piece`]s: events of one stream that nothing of another comes between. One consumer sees all of them
//! ([`Replay::interleave`]), or each of several the lines of its [`Shards`] of the caches' sets ([`Replay::interleave_shards`]).
//! A trace that is still written is replayed as it comes ([`live`]). [`check`] proves that what a trace says agrees.

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
