//! An edit, and the map that it is.

use crate::count::map::{AddressMap, ElementTable, MappedPiece, ObjectRef, PlaceHint, TableByte, TablePart};

/// An edit of a program's objects, all with elements of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub element: u64,
    pub how: How,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    /// Moves nothing, though it claims to.
    Same,
    /// Moves objects by this many bytes.
    Shift(u64),
    /// Adds this many bytes behind each element.
    Pad(u64),
    /// The first bytes of each element into one array, the others into another one, behind a link
    /// if `linked`.
    Split { hot: u64, linked: bool },
    /// Bytes of each element are gone.
    Remove { from: u64, to: u64 },
}

impl Edit {
    /// Which objects it is about.
    pub fn is_about(&self, base: u64) -> bool {
        matches!(self.how, How::Same) || !(base / 16).is_multiple_of(4)
    }

    /// Returns where a byte of an object goes.
    pub fn byte(&self, base: u64, offset: u64) -> Option<u64> {
        let (number, within) = (offset / self.element, offset % self.element);
        // Objects do not overlap there.
        let new = (base << 3) + 0x100_0000;
        match self.how {
            How::Same => Some(base + offset),
            How::Shift(far) => Some(new + far + offset),
            How::Pad(more) => Some(new + number * (self.element + more) + within),
            How::Split { hot, .. } if within < hot => Some(new + number * (hot + 8) + within),
            How::Split { hot, .. } => Some((new << 4) + number * (self.element - hot) + (within - hot)),
            How::Remove { from, to } if (from..to).contains(&within) => None,
            How::Remove { from, to } => {
                let before = if within < from { within } else { within - (to - from) };
                Some(new + number * (self.element - (to - from)) + before)
            }
        }
    }

    /// Returns where the link is that leads to a byte, if one does.
    pub fn link(&self, base: u64, offset: u64) -> Option<u64> {
        match self.how {
            How::Split { hot, linked: true } if offset % self.element >= hot => {
                self.byte(base, offset / self.element * self.element).map(|first| first + hot)
            }
            _ => None,
        }
    }

    /// Bytes from an element to the next.
    pub fn stride_of(&self, offset: u64) -> u64 {
        match self.how {
            How::Same | How::Shift(_) => self.element,
            How::Pad(more) => self.element + more,
            How::Split { hot, .. } if offset % self.element < hot => hot + 8,
            How::Split { hot, .. } => self.element - hot,
            How::Remove { from, to } => self.element - (to - from),
        }
    }
}

impl AddressMap for Edit {
    fn moves(&self, object: &ObjectRef<'_>) -> bool {
        self.is_about(object.base)
    }

    fn map(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, pieces: &mut Vec<MappedPiece>) {
        let mut before = None;
        for offset in offset..offset + u64::from(bytes) {
            let Some(address) = self.byte(object.base, offset) else { continue };
            match pieces.last_mut() {
                Some(piece) if before == Some((offset.wrapping_sub(1), address.wrapping_sub(1))) => {
                    piece.bytes += 1
                }
                _ => {
                    if let Some(address) = self.link(object.base, offset) {
                        pieces.push(MappedPiece { offset, address, bytes: 8, is_link: true });
                    }
                    pieces.push(MappedPiece { offset, address, bytes: 1, is_link: false });
                }
            }
            before = Some((offset, address));
        }
    }

    fn hint(&self, object: &ObjectRef<'_>) -> PlaceHint<'_> {
        let begin = |within: u64| self.byte(object.base, within).unwrap_or_default();
        let bases = match self.how {
            How::Same | How::Shift(_) => return PlaceHint::Whole { base: begin(0) },
            How::Split { hot, linked: false } => vec![begin(0), begin(hot)],
            _ => vec![begin(0)],
        };
        PlaceHint::Elements { table: 0, bases: bases.leak() }
    }

    fn tables(&self) -> &[ElementTable] {
        let place = |within: u64| match self.how {
            How::Split { hot, .. } if within >= hot => (1, within - hot, self.element - within),
            How::Split { hot, .. } => (0, within, hot - within),
            How::Remove { from, to } if within >= to => (0, within - (to - from), self.element - within),
            How::Remove { from, .. } => (0, within, from.saturating_sub(within)),
            _ => (0, within, self.element - within),
        };
        let byte = |within: u64| match (self.how, place(within)) {
            (How::Split { linked: true, .. }, (1, ..)) => TableByte::default(),
            (_, (part, offset, together)) => {
                TableByte { part, together: together as u32, offset, step: self.element }
            }
        };
        let parts =
            [0, self.element - 1].map(|within| TablePart { block: 1, stride: self.stride_of(within) });
        vec![ElementTable { parts: parts.to_vec(), bytes: (0..self.element).map(byte).collect() }].leak()
    }

    fn stride(&self, _: &ObjectRef<'_>, offset: u64, bytes: u32, step: u64, _: u64) -> Option<u64> {
        if matches!(self.how, How::Same | How::Shift(_)) {
            return Some(step);
        }
        let elements = (step as i64) / self.element as i64;
        let is_even = elements * self.element as i64 == step as i64;
        let is_in_one = offset % self.element + u64::from(bytes) <= self.element;
        (is_even && is_in_one).then(|| (elements * self.stride_of(offset) as i64) as u64)
    }
}
