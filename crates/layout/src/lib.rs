//! Layouts of structures as values, edits of them as data, and where each byte of an element goes.
//!
//! ```
//! use memlode_layout::{Edit, edits_from_text};
//!
//! let edits = edits_from_text("reorder arc: state, tail; align worker to 64")?;
//! assert!(matches!(&edits[1], Edit::Align { to: 64, .. }));
//! assert_eq!(edits[0].to_string(), "reorder arc: state,tail");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!   "split arc: hot=cost,tail by=index"      [[edit]] split = "arc" …
//!             │ text.rs                         │ document.rs
//!             └────────────► clause.rs ◄────────┘      words, and where they stand
//!                               │
//!                               ▼
//!                            edit.rs                   Edit: what is to change
//!                               │
//!   structure.rs ──────────► layout/                   Layout: parts, slots, links, or a refusal
//!   (members as compiled)       │
//!                               ▼
//!                            pieces                    old bytes of one element → new places
//! ```
//!
//! Nothing here knows of traces or caches. A caller who knows an access's object, element and
//! offset asks a [`Layout`] where these bytes lie after the edit.
//!
//! **Invariant:** an edit that cannot be made is refused with its reason; no layout is guessed.

mod clause;
mod document;
mod edit;
mod layout;
mod near;
mod structure;
mod text;

pub use clause::EditError;
pub use document::edits_from_toml;
pub use edit::{Edit, Link, PagePlacement, Scope};
pub use layout::{ArrayBehind, Layout, LayoutLink, Part, PartPiece, PlacedByte, Refusal, Slot};
pub use near::nearest;
pub use structure::{AddressUse, Role, Structure, StructureMember};
pub use text::edits_from_text;
