//! The places of the bytes of edited objects for threads that are replayed side by side, which have
//! no order among them.
//!
//! An object is known by its addresses alone. Where a program had several edited objects at the
//! same addresses, one after the other, all get the first one's place, as an allocator reuses a
//! place. Objects that overlap in another way stay where they are, and so do unedited objects.

use std::collections::BTreeMap;

use memlode_attribute::sharing::Relocation;
use memlode_attribute::{AddressMap, Home, MappedPiece, ObjectRef};
use memlode_trace::event::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

use crate::moved::Moved;

/// Set in the addresses of edited objects, so that none of them meets an unmoved one: user space
/// ends below.
const EDITED: u64 = 1 << 47;

/// An edited object.
#[derive(Clone, Copy, Debug)]
struct Placed {
    first: u64,
    last: u64,
    allocation: Option<u64>,
}

/// The edited objects of all processes by their addresses.
#[derive(Debug, Default)]
pub(crate) struct EditedRanges(FxHashMap<ProcessId, BTreeMap<u64, Placed>>);

impl EditedRanges {
    /// Takes note of an edited object: a block by its number, or a global variable.
    pub fn note(&mut self, process: ProcessId, first: u64, bytes: u64, allocation: Option<u64>) {
        let Some(last) = bytes.checked_sub(1).and_then(|more| first.checked_add(more)) else { return };
        let of_process = self.0.entry(process).or_default();
        let is_taken = of_process.range(..=last).next_back().is_some_and(|(_, known)| known.last >= first);
        if !is_taken {
            of_process.insert(first, Placed { first, last, allocation });
        }
    }

    /// The ranges of each process, in their order.
    fn sorted(&self) -> FxHashMap<ProcessId, Vec<Placed>> {
        self.0.iter().map(|(&process, ranges)| (process, ranges.values().copied().collect())).collect()
    }
}

/// The places of edited objects.
pub struct SideBySide<'m> {
    moved: &'m Moved,
    /// The lines that are taken together, as a power of two.
    together: u32,
    ranges: FxHashMap<ProcessId, Vec<Placed>>,
}

impl<'m> SideBySide<'m> {
    /// The places that objects have in `moved`.
    pub fn new(moved: &'m Moved) -> SideBySide<'m> {
        SideBySide { moved, together: 0, ranges: moved.edited.sorted() }
    }

    /// The same for processors that take lines in pairs: two lines are as large as one, and
    /// everything in them is half as large.
    #[must_use]
    pub fn in_pairs(self) -> SideBySide<'m> {
        SideBySide { together: 1, ..self }
    }

    /// The ranges that have a byte between two addresses.
    fn between(&self, process: ProcessId, first: u64, last: u64) -> &[Placed] {
        let Some(ranges) = self.ranges.get(&process) else { return &[] };
        match (ranges.first(), ranges.last()) {
            (Some(lowest), Some(highest)) if lowest.first <= last && highest.last >= first => {}
            _ => return &[],
        }
        let from = ranges.partition_point(|range| range.last < first);
        let to = from + ranges[from..].partition_point(|range| range.first <= last);
        &ranges[from..to]
    }
}

impl Relocation for SideBySide<'_> {
    fn touches(&self, process: ProcessId, first: u64, last: u64) -> bool {
        !self.between(process, first, last).is_empty()
    }

    fn places(
        &self,
        process: ProcessId,
        thread: ThreadId,
        address: u64,
        bytes: u32,
        pieces: &mut Vec<MappedPiece>,
    ) {
        let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
        let stays = |from: u64, to: u64| MappedPiece {
            offset: 0,
            address: from,
            bytes: (to - from + 1) as u32,
            is_link: false,
        };
        let mut at = address;
        for range in self.between(process, address, last) {
            if range.first > at {
                pieces.push(stays(at, range.first - 1));
                at = range.first;
            }
            let end = range.last.min(last);
            let object = ObjectRef {
                process,
                thread,
                allocation: range.allocation,
                home: &Home::Unknown,
                element: None,
                base: range.first,
                bytes: range.last - range.first + 1,
                element_bytes: None,
            };
            let before = pieces.len();
            self.moved.map(&object, at - range.first, (end - at + 1) as u32, pieces);
            for piece in &mut pieces[before..] {
                piece.address = (piece.address >> self.together) ^ EDITED;
                piece.bytes = (piece.bytes >> self.together).max(1);
            }
            if end == last {
                return;
            }
            at = end + 1;
        }
        pieces.push(stays(at, last));
    }
}
