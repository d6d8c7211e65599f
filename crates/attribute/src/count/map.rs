//! Other places for the bytes of objects: how an edit of a program's data changes addresses.

use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::TypeId;

use crate::objects::classes::Home;

/// An object whose bytes may be moved.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'p> {
    /// The process that has it in memory.
    pub process: ProcessId,
    /// The thread that accesses it, or made it.
    pub thread: ThreadId,
    /// Its number among the blocks that the process allocated, in replay order, from 0; `None` for
    /// a global variable.
    pub allocation: Option<u64>,
    /// Its home.
    pub home: &'p Home,
    /// Type of its elements, if the allocation names one.
    pub element: Option<TypeId>,
    /// Address of the first byte.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of an element: the size of its type, else the size passed to an allocator of arrays.
    /// `None` if neither is known, or the object is not a whole number of elements.
    pub element_bytes: Option<u64>,
}

/// A place of some of an access's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedPiece {
    /// Original offset in the object of the first byte of this piece.
    pub offset: u64,
    /// Address of the first byte now.
    pub address: u64,
    /// Bytes now, at least 1; they may be fewer than they were.
    pub bytes: u32,
    /// The piece is a link to those behind it, read on the way to them: an access of its own.
    pub is_link: bool,
}

/// The way in which an object is placed, kept beside it so that accesses need not ask the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceHint<'m> {
    /// The map has to be asked.
    Unknown,
    /// The whole object begins here.
    Whole {
        /// Address of its first byte now.
        base: u64,
    },
    /// Its elements lie as a table says.
    Elements {
        /// The map's number of the table.
        table: u32,
        /// Address of each part of the object.
        bases: &'m [u64],
    },
}

/// The places of the bytes of elements of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementTable {
    /// The parts of an object.
    pub parts: Vec<TablePart>,
    /// The bytes of an element, in their original order.
    pub bytes: Vec<TableByte>,
}

/// A part of the objects of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePart {
    /// Elements in a block.
    pub block: u64,
    /// Bytes from one block to the next.
    pub stride: u64,
}

/// The place of a byte of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableByte {
    /// The part that has it.
    pub part: u32,
    /// The number of bytes from it on that stay side by side; 0 if the map has to be asked.
    pub together: u32,
    /// Its offset in the block.
    pub offset: u64,
    /// Bytes from one element of the block to the next.
    pub step: u64,
}

impl ElementTable {
    /// Returns the part of some bytes of an object, and their offset in it, if they lie side by side.
    #[inline(always)]
    pub(crate) fn place(&self, offset: u64, bytes: u32) -> Option<(u32, u64)> {
        let size = self.bytes.len() as u64;
        // Most objects are one element, and a division takes longer than all the rest.
        let (element, within) = if offset < size { (0, offset) } else { (offset / size, offset % size) };
        let byte = self.bytes[within as usize];
        if bytes > byte.together {
            return None;
        }
        let TablePart { block, stride } = self.parts[byte.part as usize];
        let (number, within) = if block == 1 { (element, 0) } else { (element / block, element % block) };
        let begin = number.wrapping_mul(stride).wrapping_add(within.wrapping_mul(byte.step));
        Some((byte.part, begin.wrapping_add(byte.offset)))
    }
}

/// Places the bytes of objects under another layout. It is called in replay order, but a result
/// must not depend on earlier calls.
///
/// An access whose bytes all lie side by side is simulated there. One in several pieces is still
/// one access, and counts with the depth of its deepest piece. A copy of an object over many lines
/// is as many accesses before and after: each piece is cut into lines on its own. Objects for which
/// [`AddressMap::moves`] returns false stay where they are. So do stack variables and bytes of no
/// object, unless [`AddressMap::places_the_rest`].
pub trait AddressMap: Send + Sync {
    /// Returns whether any byte of an object moves, or any access to it needs more accesses. Called
    /// once per object.
    fn moves(&self, object: &ObjectRef<'_>) -> bool;

    /// Adds the pieces in which `bytes` of an object from `offset` on lie, in the order in which
    /// they are accessed. None if all of them are gone: then there is no access.
    fn map(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, pieces: &mut Vec<MappedPiece>);

    /// Returns in which way an object's bytes are placed. Called once per object.
    fn hint(&self, _object: &ObjectRef<'_>) -> PlaceHint<'_> {
        PlaceHint::Unknown
    }

    /// The tables of [`PlaceHint::Elements`], by their numbers.
    fn tables(&self) -> &[ElementTable] {
        &[]
    }

    /// Returns the new distance between bytes that were `step` apart (modulo 2^64), from `offset`
    /// on up to the offset `last`. With it, the accesses of a loop stay one record. `None` if the
    /// distances differ, or the bytes lie in several pieces.
    fn stride(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, step: u64, last: u64) -> Option<u64>;

    /// Returns whether stacks and bytes of no object go to fixed places, too: stacks by thread,
    /// other pages in the order of their first use. Then no address of the trace matters.
    fn places_the_rest(&self) -> bool {
        false
    }
}
