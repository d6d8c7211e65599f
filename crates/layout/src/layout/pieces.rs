//! The place of one access's bytes after an edit.

use super::{Layout, Part, Slot};

/// Bytes of one part that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPiece {
    /// Offset, in the structure as compiled, of the first of these bytes.
    pub was: u64,
    /// The part, an index into [`Layout::parts`].
    pub part: usize,
    /// Bytes from the part's beginning.
    pub offset: u64,
    /// Length in bytes, at least 1.
    pub bytes: u64,
}

/// The place of a byte of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedByte {
    /// The part, an index into [`Layout::parts`].
    pub part: usize,
    /// Its offset in the first element of a block.
    pub offset: u64,
    /// Bytes from one element of a block to the next.
    pub step: u64,
    /// The number of bytes from it on that lie side by side, as they did.
    pub together: u64,
}

impl Part {
    /// Bytes of this many elements.
    pub fn bytes(&self, elements: u64) -> u64 {
        elements.div_ceil(u64::from(self.block)).saturating_mul(self.stride)
    }

    /// Offset of an element's value of one slot.
    fn offset(&self, slot: &Slot, element: u64) -> u64 {
        let block = u64::from(self.block);
        // Divisions take longer than all the rest.
        if block == 1 {
            return element.wrapping_mul(self.stride).wrapping_add(slot.offset);
        }
        (element / block)
            .wrapping_mul(self.stride)
            .wrapping_add(slot.offset)
            .wrapping_add(element % block * slot.step())
    }
}

impl Layout {
    /// Appends the pieces in which bytes of one element lie, in the order of the old offsets.
    /// Neighbours are joined. Bytes that lie in no member, such as holes, have no piece; neither
    /// have removed members.
    ///
    /// `offset` and `bytes` are within the structure as compiled; bytes behind it are ignored.
    pub fn pieces(&self, element: u64, offset: u64, bytes: u64, pieces: &mut Vec<PartPiece>) {
        let end = offset.saturating_add(bytes);
        let first = self.units.partition_point(|unit| unit.offset + unit.bytes <= offset);
        let begin = pieces.len();
        for (unit, place) in self.units.iter().zip(&self.places).skip(first) {
            if unit.offset >= end {
                break;
            }
            let Some((part, slot)) = *place else { continue };
            let slot = &self.parts[part].slots[slot];
            let from = offset.max(unit.offset) - unit.offset;
            let to = end.min(unit.offset + unit.bytes) - unit.offset;
            let was = unit.offset + from;
            let (from, to) = scale(slot, from, to);
            let piece = PartPiece {
                was,
                part,
                offset: self.parts[part].offset(slot, element).wrapping_add(from),
                bytes: to - from,
            };
            match pieces[begin..].last_mut() {
                Some(last) if last.part == part && last.offset.wrapping_add(last.bytes) == piece.offset => {
                    last.bytes += piece.bytes;
                }
                _ => pieces.push(piece),
            }
        }
    }

    /// The piece in which all bytes of an access lie; none if they lie in several members, or in
    /// one that was removed.
    pub fn piece(&self, element: u64, offset: u64, bytes: u64) -> Option<PartPiece> {
        let at = self.units.partition_point(|unit| unit.offset + unit.bytes <= offset);
        let unit = self.units.get(at).filter(|unit| unit.offset <= offset)?;
        let from = offset - unit.offset;
        let to = from.checked_add(bytes).filter(|to| *to <= unit.bytes && bytes > 0)?;
        let (part, slot) = self.places[at]?;
        let slot = &self.parts[part].slots[slot];
        let (from, to) = scale(slot, from, to);
        let offset_now = self.parts[part].offset(slot, element).wrapping_add(from);
        Some(PartPiece { was: offset, part, offset: offset_now, bytes: to - from })
    }

    /// Returns the place of each byte of an element; none for one that was removed, of a narrowed
    /// member, or behind a link.
    pub fn placed_bytes(&self) -> Vec<Option<PlacedByte>> {
        let mut found: Vec<Option<PlacedByte>> = vec![None; self.structure.bytes as usize];
        for (unit, place) in self.units.iter().zip(&self.places) {
            let Some((part, slot)) = place.filter(|&(part, _)| part == 0 || self.link.is_none()) else {
                continue;
            };
            let slot = &self.parts[part].slots[slot];
            if slot.bytes != slot.was_bytes {
                continue;
            }
            for (within, found) in (0..unit.bytes).zip(found.iter_mut().skip(unit.offset as usize)) {
                let (offset, together) = (slot.offset + within, unit.bytes - within);
                *found = Some(PlacedByte { part, offset, step: slot.step(), together });
            }
        }
        // Members that are neighbours before and after lie side by side as well.
        for at in (1..found.len()).rev() {
            if let (Some(byte), Some(next)) = (found[at - 1], found[at])
                && (byte.part, byte.offset + 1) == (next.part, next.offset)
                && (byte.together > 1 || self.parts[byte.part].block == 1)
            {
                found[at - 1] = Some(PlacedByte { together: next.together + 1, ..byte });
            }
        }
        found
    }

    /// The piece that holds an element's link to its cold part.
    pub fn link_piece(&self, element: u64) -> Option<PartPiece> {
        let link = self.link?;
        let slot = &self.parts[0].slots[link.slot];
        Some(PartPiece { was: 0, part: 0, offset: self.parts[0].offset(slot, element), bytes: slot.bytes })
    }

    /// Bytes from a member of one element to that of the next, where that is the same for all
    /// elements; none for a byte in no member and in blocks of several elements.
    pub fn stride(&self, offset: u64) -> Option<u64> {
        let at = self.units.partition_point(|unit| unit.offset + unit.bytes <= offset);
        let unit = self.units.get(at).filter(|unit| unit.offset <= offset)?;
        let (part, _) = self.places[at]?;
        debug_assert!(unit.bytes > 0);
        (self.parts[part].block == 1).then_some(self.parts[part].stride)
    }
}

/// The bytes of a narrowed member that stand for some of its bytes before: in proportion, at least
/// one.
fn scale(slot: &Slot, from: u64, to: u64) -> (u64, u64) {
    if slot.bytes == slot.was_bytes {
        return (from, to);
    }
    let from = (from * slot.bytes / slot.was_bytes).min(slot.bytes - 1);
    let to = (to * slot.bytes).div_ceil(slot.was_bytes).clamp(from + 1, slot.bytes);
    (from, to)
}
