//! Other places of some objects' bytes, for threads that are replayed side by side.

use memlode_trace::event::{ProcessId, ThreadId};

use crate::count::map::MappedPiece;

/// Gives the places of bytes under an edit. Threads that are replayed side by side have no order
/// among them, so a place depends on the address and the thread, never on time.
pub trait Relocation: Send + Sync {
    /// Returns whether a byte between two addresses, both included, lies elsewhere.
    fn touches(&self, process: ProcessId, first: u64, last: u64) -> bool;

    /// Adds the pieces in which the bytes of a thread's access lie, including those that did not
    /// move; their offsets are meaningless. Adds none if all bytes are gone.
    fn places(
        &self,
        process: ProcessId,
        thread: ThreadId,
        address: u64,
        bytes: u32,
        pieces: &mut Vec<MappedPiece>,
    );
}

/// The places of one thread's accesses.
pub(super) struct Placed<'r> {
    moved: Option<&'r dyn Relocation>,
    process: ProcessId,
    thread: ThreadId,
    /// The pieces of the last access.
    pub pieces: Vec<MappedPiece>,
}

impl<'r> Placed<'r> {
    pub fn new(moved: Option<&'r dyn Relocation>, process: ProcessId, thread: ThreadId) -> Placed<'r> {
        Placed { moved, process, thread, pieces: Vec::new() }
    }

    /// Returns whether bytes lie elsewhere; then their pieces are there.
    #[inline]
    pub fn moves(&mut self, address: u64, bytes: u32) -> bool {
        let Some(moved) = self.moved else { return false };
        let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
        if !moved.touches(self.process, address, last) {
            return false;
        }
        self.pieces.clear();
        moved.places(self.process, self.thread, address, bytes, &mut self.pieces);
        true
    }

    /// Returns whether anything lies elsewhere at all.
    pub fn are_moved(&self) -> bool {
        self.moved.is_some()
    }

    /// Returns whether a byte between two addresses, both included, lies elsewhere.
    pub fn touches(&self, first: u64, last: u64) -> bool {
        self.moved.is_some_and(|moved| moved.touches(self.process, first, last))
    }
}
