//! Many lines through one cache in a row, in a loop that is compiled for the width of its rows.
//!
//! Each loop does everything that a line may need, and then keeps what it did need. Which lines are
//! missing, and which evicted lines were written, cannot be predicted, and a wrong guess costs the
//! processor more than both ways together.

use crate::lru::row::{DIRTY, Entry, Row};
use crate::lru::sets::{SetIndex, Sets};
use crate::tag::{Asker, Tag};

/// The number of requests whose rows are being fetched.
const AHEAD: usize = 12;
/// The rows of smaller caches are near anyway.
const FAR_BYTES: usize = 512 << 10;

/// Bytes of a line of the machine we run on, at least.
const LINE: usize = 64;

/// A request to a level.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// An address in a line of the level that the request comes from. The lowest bits hold the kind
    /// of the request, as lines have at least four bytes.
    pub(crate) address: u64,
    /// The tag and, above it, the core: one word, as it is only passed on.
    whose: u64,
}

impl Request {
    /// The access writes.
    pub(crate) const WRITE: u64 = 1;
    /// It is no access, but a line that was written and then dropped.
    pub(crate) const DROPPED: u64 = 2;

    /// For the line of the first level that begins at an address
    /// ([`Hierarchy::show`](crate::Hierarchy::show)).
    #[inline(always)]
    pub fn new(core: usize, address: u64, is_write: bool, tag: Tag) -> Request {
        Request::of(core, address, is_write, Asker::one(tag))
    }

    #[inline(always)]
    pub(crate) fn of(core: usize, address: u64, is_write: bool, asker: Asker) -> Request {
        Request {
            address: address | u64::from(is_write),
            whose: (core as u64) << 32 | u64::from(asker.bits()),
        }
    }

    /// The same for another line, if this one is for that at address 0.
    #[inline(always)]
    pub fn at(self, address: u64) -> Request {
        Request { address: self.address | address, ..self }
    }

    /// Makes the request of a line that was written and has to make room, for the same access.
    #[inline(always)]
    pub(crate) fn dropped(self, address: u64) -> Request {
        Request { address: address | Request::DROPPED, ..self }
    }

    #[inline(always)]
    pub(crate) fn asker(self) -> Asker {
        Asker::of_bits(self.whose as u32)
    }

    #[inline(always)]
    pub(crate) fn core(self) -> usize {
        (self.whose >> 32) as usize
    }
}

/// A cache, as a pass sees it.
pub(crate) struct Pass<E> {
    /// The first entry of the first row.
    pub rows: *mut E,
    pub sets: SetIndex,
    pub ways: usize,
    /// From address to line.
    pub shift: u32,
}

/// The result of a pass.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Requests that were served.
    pub here: Vec<Request>,
    /// Requests that were not served, and lines that were written and then dropped.
    pub further: Vec<Request>,
    /// Number of the latter.
    pub dropped: u64,
}

impl<E: Entry> Pass<E> {
    /// Moves lines to the fronts of their rows. Missing lines go to `further`.
    ///
    /// # Safety
    /// `rows` are those of a cache of these sets and ways in rows of `R`, which nothing else refers
    /// to; the processor has `R`'s instructions.
    #[inline(always)]
    pub unsafe fn show<R: Row<Entry = E>>(&self, shown: &[Request], seen: &mut Seen) {
        // SAFETY: as promised.
        unsafe {
            match self.sets.power_of_two() {
                Some(sets) => self.show_by::<R>(shown, seen, sets),
                None => self.show_by::<R>(shown, seen, self.sets),
            }
        }
    }

    /// # Safety
    /// As of [`Pass::show`], of the same sets.
    #[inline(always)]
    unsafe fn show_by<R: Row<Entry = E>>(&self, shown: &[Request], seen: &mut Seen, sets: impl Sets) {
        let &Pass { rows, ways, shift, .. } = self;
        let mut further = Writer::new(&mut seen.further, 2 * shown.len());
        let mut dropped = 0;
        for request in shown {
            let (set, tag) = E::split(request.address >> shift, sets);
            // SAFETY: as promised; of two requests for each line there is room.
            unsafe {
                let row = rows.add(set * R::stride(ways));
                let moved = R::to_front(row, ways, tag, request.address & Request::WRITE);
                let drops = moved.last & DIRTY & u64::from(!moved.hit);
                further.write_if(drops, request.dropped(E::join(set, moved.last >> 1, sets) << shift));
                further.write_if(u64::from(!moved.hit), *request);
                dropped += drops;
            }
        }
        further.finish();
        seen.dropped += dropped;
    }

    /// Serves requests. Missing lines go to `further`.
    ///
    /// # Safety
    /// As of [`Pass::show`].
    #[inline(always)]
    pub unsafe fn answer<R: Row<Entry = E>>(&self, requests: &[Request], seen: &mut Seen) {
        // SAFETY: as promised.
        unsafe {
            match self.sets.power_of_two() {
                Some(sets) => self.answer_by::<R>(requests, seen, sets),
                None => self.answer_by::<R>(requests, seen, self.sets),
            }
        }
    }

    /// # Safety
    /// As of [`Pass::show_by`].
    #[inline(always)]
    unsafe fn answer_by<R: Row<Entry = E>>(&self, requests: &[Request], seen: &mut Seen, sets: impl Sets) {
        let &Pass { rows, ways, shift, .. } = self;
        let row_bytes = R::stride(ways) * size_of::<E>();
        let mut here = Writer::new(&mut seen.here, requests.len());
        let mut further = Writer::new(&mut seen.further, 2 * requests.len());
        let mut dropped = 0;
        let is_far = self.sets.count() as usize * row_bytes > FAR_BYTES;
        let ahead = if is_far { AHEAD } else { requests.len() };
        for (number, request) in requests.iter().enumerate() {
            if let Some(later) = requests.get(number + ahead) {
                let (set, _) = E::split(later.address >> shift, sets);
                prefetch(rows.wrapping_add(set * R::stride(ways)), row_bytes);
            }
            let (set, tag) = E::split(request.address >> shift, sets);
            // SAFETY: as promised; of one and two requests for each that came there is room.
            unsafe {
                let row = rows.add(set * R::stride(ways));
                if request.address & Request::DROPPED != 0 {
                    let is_missing = u64::from(!R::mark_dirty(row, ways, tag));
                    further.write_if(is_missing, *request);
                    dropped += is_missing;
                    continue;
                }
                // Only the first level keeps the write; what it hands outwards later makes outer copies dirty.
                let moved = R::to_front(row, ways, tag, 0);
                let drops = moved.last & DIRTY & u64::from(!moved.hit);
                here.write_if(u64::from(moved.hit), *request);
                further.write_if(drops, request.dropped(E::join(set, moved.last >> 1, sets) << shift));
                further.write_if(u64::from(!moved.hit), *request);
                dropped += drops;
            }
        }
        here.finish();
        further.finish();
        seen.dropped += dropped;
    }
}

/// Prefetches the row of a large cache, for at most two lines; it is seldom in the host's caches.
#[inline(always)]
pub(crate) fn prefetch<E>(row: *const E, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and every x86-64 processor has it.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(row.cast());
            if bytes > LINE {
                _mm_prefetch::<_MM_HINT_T0>(row.cast::<i8>().wrapping_add(LINE));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, bytes);
}

/// Adds to a vector that has room.
struct Writer<'v> {
    vector: &'v mut Vec<Request>,
    next: *mut Request,
}

impl Writer<'_> {
    #[inline(always)]
    fn new(vector: &mut Vec<Request>, room: usize) -> Writer<'_> {
        // One is written that does not stay.
        vector.reserve(room + 1);
        let next = vector.as_mut_ptr_range().end;
        Writer { vector, next }
    }

    /// Writes a request, and keeps it if `stays` is 1 rather than 0.
    ///
    /// # Safety
    /// No more requests are kept than the capacity given to `new`.
    #[inline(always)]
    unsafe fn write_if(&mut self, stays: u64, request: Request) {
        // SAFETY: there is room for what stays, and one more.
        unsafe {
            self.next.write(request);
            self.next = self.next.add(stays as usize);
        }
    }

    #[inline(always)]
    fn finish(self) {
        // SAFETY: as many were written, in the vector's own memory.
        unsafe {
            let written = self.next.offset_from_unsigned(self.vector.as_ptr());
            self.vector.set_len(written);
        }
    }
}
