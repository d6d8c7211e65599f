//! Buffers with a chain of pointers through all their lines, in an order that no prefetcher follows.

use std::ptr::NonNull;
use std::time::Instant;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::Error;

/// Bytes of a huge page of x86-64, which buffers are aligned to.
const HUGE: usize = 2 << 20;

/// The requested pages of a buffer. The kernel may not grant huge ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

/// Mean nanoseconds of the first touch of each page of a number of bytes, whether the requested
/// large pages were granted or not.
///
/// # Errors
/// If the system has not enough memory.
pub fn first_touch(bytes: usize, pages: PageKind) -> Result<f64, Error> {
    let buffer = Buffer::untouched(bytes, pages)?;
    let began = Instant::now();
    buffer.touch();
    let page = if pages == PageKind::Huge { HUGE } else { 4096 };
    Ok(began.elapsed().as_nanos() as f64 * page as f64 / bytes as f64)
}

/// The number behind `at` of a ring of all below `count`, a power of two of at least 4, in an order without steps.
///
/// It is a linear congruential generator of full period (Hull and Dobell, 1962): the multiplier is 1 modulo 4, the increment
/// odd.
pub fn next_place(at: usize, count: usize) -> usize {
    const MULTIPLIER: usize = 0x5851_f42d_4c95_7f2d;
    const INCREMENT: usize = 0x14_057b;
    at.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & (count - 1)
}

/// A private mapping, all of whose pages are there.
pub struct Buffer {
    mapping: NonNull<u8>,
    mapped: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the buffer owns its mapping; threads that use it at the same time do so through atomics.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps and touches a number of bytes.
    ///
    /// # Errors
    /// If the system has not as much memory.
    pub fn new(bytes: usize, pages: PageKind) -> Result<Buffer, Error> {
        let buffer = Buffer::untouched(bytes, pages)?;
        buffer.touch();
        Ok(buffer)
    }

    /// Touches a byte of every page.
    fn touch(&self) {
        for offset in (0..self.bytes).step_by(4096) {
            // SAFETY: within the mapping, which nobody else knows yet.
            unsafe { self.start().add(offset).write_volatile(1) };
        }
    }

    fn untouched(bytes: usize, pages: PageKind) -> Result<Buffer, Error> {
        let refused = |error: rustix::io::Errno| {
            Error::Machine(format!("cannot have {} MiB of memory to measure with: {error}", bytes >> 20))
        };
        let mapped = bytes + HUGE;
        // SAFETY: a new private mapping at an address of the kernel's choice touches nobody's memory.
        let mapping = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(refused)?;
        let aligned = (mapping as usize).next_multiple_of(HUGE) as *mut u8;
        let advice = match pages {
            PageKind::Small => Advice::LinuxNoHugepage,
            PageKind::Huge => Advice::LinuxHugepage,
        };
        // Kernels without huge pages refuse the advice; there are small pages then.
        // SAFETY: the range is ours, and the advice changes no contents.
        let _ = unsafe { madvise(aligned.cast(), bytes, advice) };
        let present = |pointer: *mut u8| NonNull::new(pointer).expect("mappings are not at address 0");
        Ok(Buffer { mapping: present(mapping.cast()), mapped, start: present(aligned), bytes })
    }

    /// First byte, at a multiple of 2 MiB.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes a ring of pointers through `count` places, a power of two of at least 4; `place`
    /// returns the offset of each in the buffer, a multiple of 8, different for all. The order is
    /// that of [`next_place`]. Returns its first pointer.
    pub fn chain(&mut self, count: usize, place: impl Fn(usize) -> usize) -> *const *const u8 {
        assert!(count.is_power_of_two() && count >= 4, "a period is a power of two");
        for at in 0..count {
            let (from, to) = (place(at), place(next_place(at, count)));
            assert!(from + 8 <= self.bytes && from.is_multiple_of(8), "a place is in the buffer");
            // SAFETY: within the mapping and aligned, as has just been checked of `from`, and `to` is some other
            // turn's `from`.
            unsafe { self.start().add(from).cast::<*const u8>().write_volatile(self.start().add(to)) };
        }
        // SAFETY: the place of number 0 was checked above.
        unsafe { self.start().add(place(0)).cast::<*const u8>() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what pointed into it borrowed the buffer.
        let _ = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_through_all_places_once() {
        let mut buffer = Buffer::new(1 << 20, PageKind::Small).unwrap();
        let count = 1 << 12;
        let first = buffer.chain(count, |at| at * 64);
        let mut seen = std::collections::HashSet::new();
        let mut at = first;
        for _ in 0..count {
            assert!(seen.insert(at));
            // SAFETY: `chain` wrote a pointer to another place there.
            at = unsafe { at.read() }.cast();
        }
        assert_eq!((at, seen.len()), (first, count));
    }
}
