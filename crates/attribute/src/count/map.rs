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

/// A place of an object that is kept beside it, so that accesses need not look it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceHint {
    /// The map has to look the place up.
    Unknown,
    /// The whole object begins here.
    Whole {
        /// Address of its first byte now.
        base: u64,
    },
    /// The object has another layout, whose first part begins here.
    Parts {
        /// Address of the first part.
        base: u64,
        /// The map's number of the layout.
        layout: u32,
    },
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
    fn hint(&self, _object: &ObjectRef<'_>) -> PlaceHint {
        PlaceHint::Unknown
    }

    /// Returns the one piece that [`AddressMap::map`] would add, if it is found quickly and no link is
    /// before it. `hint` is the object's.
    fn map_to_one(
        &self,
        _object: &ObjectRef<'_>,
        _hint: PlaceHint,
        _offset: u64,
        _bytes: u32,
    ) -> Option<MappedPiece> {
        None
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
