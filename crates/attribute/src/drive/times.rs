//! The time in each stream of a trace.

use memlode_replay::Piece;
use memlode_trace::event::ThreadId;
use rustc_hash::FxHashMap;

/// The latest time stamp of each stream.
#[derive(Default)]
pub(crate) struct Times(FxHashMap<(ThreadId, u8), u64>);

impl Times {
    /// The time of each stream, by its thread and number.
    pub fn all(&self) -> Vec<(u32, u8, u64)> {
        let mut all: Vec<_> =
            self.0.iter().map(|(&(thread, stream), &time)| (thread.0, stream, time)).collect();
        all.sort_unstable();
        all
    }

    /// Times that [`Times::all`] returned.
    pub fn of(all: &[(u32, u8, u64)]) -> Times {
        Times(all.iter().map(|&(thread, stream, time)| ((ThreadId(thread), stream), time)).collect())
    }

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
