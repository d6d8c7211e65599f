//! Blocks of the heap by the calls that allocated them: a library in the program notes them (`blocks/`), and samples
//! are matched with those that lay at their addresses at their time.

mod book;
mod notes;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use book::BlockBook;
pub use book::{BlockChange, BlockEvent, KeptBlocks};
pub use notes::BlockNotes;
pub(crate) use notes::{BlockNote, NoteKind};
pub(crate) use sweep::{SweptBlock, sweep};
