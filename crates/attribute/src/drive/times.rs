//! The time in each stream of a trace.

use memlode_replay::Piece;
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

/// The latest time stamp of each stream.
#[derive(Default)]
pub(crate) struct Times(FxHashMap<(ThreadId, u8), u64>);

impl Times {
    /// The clock of a piece's stream where the piece begins, to be advanced to its end. `None` if
    /// the stream is unknown.
    pub fn at(&mut self, piece: &Piece<'_>) -> Option<&mut u64> {
        let batch = piece.batch;
        let (thread, _) = batch.thread.zip(batch.process)?;
        let time = self.0.entry((thread, batch.stream)).or_default();
        if piece.is_first() {
            *time = (*time).max(batch.stamps.0);
        }
        Some(time)
    }
}
