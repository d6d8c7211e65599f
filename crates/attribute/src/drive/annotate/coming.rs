//! Values on their way from a piece of a chunk to the rows of its accesses.

use memlode_replay::Piece;

use crate::count::engine::NO_PLACE;

/// The values of a piece's accesses, which come in order.
#[derive(Default)]
pub(super) struct ComingValues {
    /// The places of accesses in the chunk, and the ends of their values in `bytes`.
    ends: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// Values whose accesses have come; the last one may be of the current access.
    done: usize,
    /// The place of the current access.
    place: usize,
}

impl ComingValues {
    /// Takes up the values of a piece.
    pub fn take(&mut self, piece: &Piece<'_>) {
        (self.done, self.place) = (0, NO_PLACE);
        self.ends.clear();
        self.bytes.clear();
        let first = piece.places().0.start;
        for (access, bytes) in piece.values() {
            self.bytes.extend_from_slice(bytes);
            self.ends.push((first + access, self.bytes.len()));
        }
    }

    /// Goes on to the access at a place.
    pub fn come(&mut self, place: usize) {
        self.place = place;
        if place < NO_PLACE {
            while self.ends.get(self.done).is_some_and(|(of, _)| *of < place) {
                self.done += 1;
            }
        }
    }

    /// Returns the value of the current access, if it is known.
    pub fn now(&self) -> Option<&[u8]> {
        let &(_, end) = self.ends.get(self.done).filter(|(of, _)| *of == self.place)?;
        let start = self.done.checked_sub(1).map_or(0, |before| self.ends[before].1);
        Some(&self.bytes[start..end])
    }
}
