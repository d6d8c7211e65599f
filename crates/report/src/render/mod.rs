//! Words for a report: one module for each output.

pub mod budget;
pub mod json;
#[cfg(feature = "measure")]
pub mod measured;
pub mod page;
mod sentences;
pub mod svg;
pub mod terminal;
pub mod text;

pub use sentences::{note, peak_memory};
