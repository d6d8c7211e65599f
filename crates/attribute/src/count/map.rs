//! Other places for the bytes of objects: what an edit of a program's data does to its addresses.

use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::TypeId;

use crate::objects::classes::Home;

/// An object whose bytes may lie elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRef<'p> {
    /// The process whose memory it is in.
    pub process: ProcessId,
    /// The thread that accesses it, or made it.
    pub thread: ThreadId,
    /// Its number among the blocks that the process allocated, in replay order, from 0; `None` for a global variable.
    pub allocation: Option<u64>,
    /// Its home.
    pub home: &'p Home,
    /// Type of its elements, if the allocation tells.
    pub element: Option<TypeId>,
    /// Address of the first byte.
    pub base: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of an element: the size of its type, else what an allocator of arrays was told. `None` if neither is known, or the object
    /// is no whole number of elements.
    pub element_bytes: Option<u64>,
}

/// A place of some of an access's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedPiece {
    /// Offset in the object, as it was, of the first of the bytes that lie here.
    pub offset: u64,
    /// Address of the first byte now.
    pub address: u64,
    /// Bytes now, at least 1; they may be fewer than they were.
    pub bytes: u32,
    /// It is a link that leads to the pieces behind it, and is read, whatever becomes of these: an access of its own.
    pub is_link: bool,
}

/// Says where the bytes of objects lie under another layout. It is asked in replay order, but an answer must not depend on what was
/// asked before.
///
/// An access of which all bytes lie side by side is simulated there. One in several pieces is still one access, and counts as deep as
/// the piece that had to go deepest. What goes over many lines, a copy of an object, is so many accesses before and after: each piece is
/// cut into lines on its own. What [`AddressMap::moves`] denies stays where it is; so do stack variables and bytes that no
/// object has, unless [`AddressMap::places_the_rest`].
pub trait AddressMap: Send + Sync {
    /// Returns whether any byte of an object lies elsewhere, or any access to it takes more. Asked once an object.
    fn moves(&self, object: &ObjectRef<'_>) -> bool;

    /// Adds the pieces in which `bytes` of an object from `offset` on lie, in the order in which they are accessed. None if all of them
    /// are gone: then there is no access.
    fn map(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, pieces: &mut Vec<MappedPiece>);

    /// Returns how far apart bytes lie that were `step` apart, modulo 2^64, from `offset` on again and again up to the offset `last`. With that
    /// the accesses of a loop stay one record. `None` if they are not evenly apart, or in several pieces.
    fn stride(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, step: u64, last: u64) -> Option<u64>;

    /// Says whether stacks and bytes that no object has go to fixed places too: stacks by thread, other pages in
    /// the order of their first use. Then no address of the trace decides anything.
    fn places_the_rest(&self) -> bool {
        false
    }
}
