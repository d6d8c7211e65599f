//! A trace on its way through a socket.
//!
//! ```
//! use memlode_wire::{Address, Token};
//!
//! let address: Address = "tcp://localhost:4000".parse()?;
//! assert_eq!(address.to_string(), "tcp://localhost:4000");
//! assert_ne!(Token::generate()?.reveal(), Token::generate()?.reveal());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!  TraceWriter ──► RemoteStore ══ TCP or Unix socket ══► Server ──► DirectoryStore (or any other)
//!                       │  one frame a piece of a file        │
//!                       └── waits while the receiver is busy  └── one thread a sender, one frame of memory each
//! ```
//! * `address`: `tcp://host:port`, `unix:///path`, and the streams behind them
//! * `token`: who may send
//! * `client`: the sender's side
//! * `server`: the receiver's
//!
//! The bytes that arrive are those of the files that a local
//! [`memlode_trace::write::DirectoryStore`] would write, so the receiver's directory equals a local
//! one. The protocol is in format/SPEC.md §6.

mod address;
mod client;
mod server;
mod token;

pub use address::{Address, AddressError, Listener};
pub use client::RemoteStore;
pub use server::{Limits, Open, Server, Tell, Told};
pub use token::Token;

/// Neither side waits longer than this for the other's first message.
const HANDSHAKE: std::time::Duration = std::time::Duration::from_secs(10);
/// A sender with nothing to send signals this often that it is alive.
const ALIVE: std::time::Duration = std::time::Duration::from_secs(5);
/// Time without a byte taken or sent after which the other side is dead.
pub const SILENCE: std::time::Duration = std::time::Duration::from_secs(60);
