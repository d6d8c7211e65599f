//! The places of blocks as most accesses need them: one look by the slot of an access's block, and
//! no question to the map.

use memlode_replay::Walks;
use memlode_trace::event::Access;

use super::Block;
use crate::count::map::{ElementTable, PlaceHint};
use crate::count::single_line::Places;
use crate::objects::classes::ClassId;
use crate::objects::granules::{GRANULE, Known};
use crate::objects::{BlockSlot, NOBODY, Objects};

/// The table of a block that lies in one place.
const WHOLE: u32 = u32::MAX;

/// The place of a block.
#[derive(Clone, Copy)]
struct Placed {
    base: u64,
    /// 0 if nothing is known, or the map has to be asked.
    bytes: u64,
    class: ClassId,
    table: u32,
    /// The address of its first part.
    at: u64,
    /// The place of the addresses of its other parts among those of all blocks.
    others: u32,
}

const UNKNOWN: Placed = Placed { base: 0, bytes: 0, class: ClassId::UNKNOWN, table: WHOLE, at: 0, others: 0 };

/// The places of a process's blocks.
#[derive(Default)]
pub(super) struct BlockPlaces {
    /// Indexed by slot.
    placed: Vec<Placed>,
    others: Vec<u64>,
}

impl BlockPlaces {
    /// Sets where the block of a slot lies.
    pub fn set(&mut self, slot: BlockSlot, block: &Block, hint: PlaceHint<'_>) {
        let Block { base, bytes, class, .. } = *block;
        let whole = Placed { base, bytes, class, table: WHOLE, at: base, others: 0 };
        let placed = match hint {
            _ if !block.moves => whole,
            PlaceHint::Unknown => UNKNOWN,
            PlaceHint::Whole { base } => Placed { at: base, ..whole },
            PlaceHint::Elements { table, bases } => {
                let (first, others) = (self.others.len() as u32, bases.get(1..).unwrap_or_default());
                self.others.extend(others);
                bases.first().map_or(UNKNOWN, |&at| Placed { table, at, others: first, ..whole })
            }
        };
        let number = slot.0 as usize;
        if self.placed.len() <= number {
            self.placed.resize(number + 1, UNKNOWN);
        }
        self.placed[number] = placed;
    }

    /// Nothing is known of a slot any more.
    pub fn forget(&mut self, slot: BlockSlot) {
        if let Some(placed) = self.placed.get_mut(slot.0 as usize) {
            *placed = UNKNOWN;
        }
    }

    /// Returns the class of an access to the block of a slot, and where the access goes, if its bytes
    /// are all in the block and stay side by side.
    #[inline(always)]
    pub fn find(&self, tables: &[ElementTable], slot: u32, access: &Access) -> Option<(ClassId, u64)> {
        let placed = self.placed.get(slot as usize)?;
        let offset = access.address.wrapping_sub(placed.base);
        if offset >= placed.bytes || u64::from(access.bytes) > placed.bytes - offset {
            return None;
        }
        if placed.table == WHOLE {
            return Some((placed.class, placed.at.wrapping_add(offset)));
        }
        let (part, offset) = tables[placed.table as usize].place(offset, access.bytes)?;
        let begin = match part {
            0 => placed.at,
            _ => self.others[(placed.others + part) as usize - 1],
        };
        Some((placed.class, begin.wrapping_add(offset)))
    }
}

/// Accesses of one process under a map.
pub(super) struct UnderMap<'m> {
    pub blocks: &'m BlockPlaces,
    pub tables: &'m [ElementTable],
    /// The walks of the current chunk, if it is examined.
    pub walks: Option<&'m mut Walks>,
}

impl Places for UnderMap<'_> {
    #[inline(always)]
    fn known<'o>(&self, objects: &'o Objects) -> Known<'o> {
        objects.known_slots()
    }

    #[inline(always)]
    fn place(&self, known: Known<'_>, access: &Access) -> Option<(ClassId, u64)> {
        let Access { address, bytes, .. } = *access;
        if bytes == 0 {
            return None;
        }
        match known.at(address) {
            // Memory of no object stays, but an object may begin in the next eight bytes.
            NOBODY => {
                let is_in_one = address % GRANULE + u64::from(bytes) <= GRANULE;
                is_in_one.then_some((ClassId(NOBODY), address))
            }
            slot => self.blocks.find(self.tables, slot, access),
        }
    }

    #[inline(always)]
    fn gone(&mut self, access: &Access, address: u64) {
        if let Some(walks) = &mut self.walks {
            walks.access(&Access { address, ..*access });
        }
    }
}
