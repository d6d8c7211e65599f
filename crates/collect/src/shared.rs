//! A process's shared memory, seen from the collector's side.
//!
//! The traced program may scribble over all of it at any moment, so nothing in here is trusted:
//! every word is read once, through an atomic, and every index is checked by who uses it.

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use memlode_trace::format::{ProcessHeader, RingHeader, magic, ring, stream, version};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, SeekFrom};
use rustix::io;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

use crate::clock;

/// Bytes from one ring to the next.
pub const REGION_BYTES: usize = (2 * ring::CHUNKS as usize + 2) * ring::CHUNK_BYTES as usize;
/// Most bytes that a chunk can hold, its slack included.
pub const CHUNK_AND_SLACK_BYTES: usize = 2 * ring::CHUNK_BYTES as usize;

/// Bytes of the names of regions, each with a zero behind it.
pub const REGIONS_BYTES: usize = 256;

const LENGTH: usize = ring::FIRST_RING_OFFSET as usize + ring::RINGS as usize * REGION_BYTES;

/// The memfd and its mapping.
pub struct SharedMemory {
    base: NonNull<c_void>,
    fd: OwnedFd,
}

// SAFETY: the mapping lives as long as the value, and is accessed through atomics only.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

macro_rules! field {
    ($structure:ty, $field:ident) => {
        std::mem::offset_of!($structure, $field)
    };
}

impl SharedMemory {
    /// Creates the memory of one process, which waits for this time for us if we show no sign of
    /// life. Pages take room only once they are written to.
    pub fn create(pid: u32, process: u32, patience: Duration) -> io::Result<SharedMemory> {
        let fd = rustix::fs::memfd_create("memlode", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, LENGTH as u64)?;
        // Shrinking it would make our next read a fatal fault.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        // SAFETY: a fresh mapping of our own descriptor at an address of the kernel's choice.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                LENGTH,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &fd,
                0,
            )?
        };
        let memory = SharedMemory { base: NonNull::new(base).expect("mmap returned an address"), fd };
        let header = ProcessHeader {
            magic: magic::RING,
            version: version::RING,
            pid,
            process,
            ring_count: ring::RINGS,
            chunks: ring::CHUNKS,
            patience_ms: patience.as_millis().try_into().unwrap_or(u32::MAX),
            ..Default::default()
        };
        for (index, bytes) in header.to_bytes().as_chunks::<4>().0.iter().enumerate() {
            memory.u32_at(index * 4).store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        Ok(memory)
    }

    /// Returns the memory that the program maps.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= LENGTH && offset.is_multiple_of(4));
        // SAFETY: inside the mapping, aligned, and only ever accessed through atomics.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().byte_add(offset).cast()) }
    }

    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= LENGTH && offset.is_multiple_of(8));
        // SAFETY: inside the mapping, aligned, and only ever accessed through atomics.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().byte_add(offset).cast()) }
    }

    fn words_at(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8) && offset + count * 8 <= LENGTH);
        // SAFETY: inside the mapping, aligned, and only ever accessed through atomics.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().byte_add(offset).cast(), count) }
    }

    /// The futex on which the collector sleeps.
    pub fn doorbell(&self) -> &AtomicU32 {
        self.u32_at(field!(ProcessHeader, doorbell))
    }

    /// Returns how many of the collector's workers sleep.
    pub fn sleepers(&self) -> &AtomicU32 {
        self.u32_at(field!(ProcessHeader, collector_asleep))
    }

    /// Shows the program that we are alive.
    pub fn beat(&self) {
        self.u32_at(field!(ProcessHeader, heartbeat)).fetch_add(1, Ordering::Relaxed);
    }

    /// Rings claimed so far; moves when there may be a new one.
    pub fn generation(&self) -> u64 {
        self.u64_at(field!(ProcessHeader, generation)).load(Ordering::Relaxed)
    }

    /// The thread that ran the program's exit handlers, 0 if none did.
    pub fn exiting_thread(&self) -> u32 {
        self.u32_at(field!(ProcessHeader, exiting_thread)).load(Ordering::Relaxed)
    }

    /// Returns whether the program is about to end, or to become another one, by its own will.
    pub fn exits(&self) -> bool {
        self.u32_at(field!(ProcessHeader, exits)).load(Ordering::Acquire) != 0
    }

    /// Returns whether a thread may have been cancelled at any instruction.
    pub fn cancels(&self) -> bool {
        self.u32_at(field!(ProcessHeader, cancels)).load(Ordering::Relaxed) != 0
    }

    /// Returns whether the program has forbidden itself system calls, and is not recorded since.
    pub fn is_sealed(&self) -> bool {
        self.u32_at(field!(ProcessHeader, sealed)).load(Ordering::Relaxed) != 0
    }

    /// Children of the program that did not find us.
    pub fn lost_children(&self) -> u32 {
        self.u32_at(field!(ProcessHeader, lost_children)).load(Ordering::Relaxed)
    }

    /// Tasks that share the program's memory and are no threads of it.
    pub fn foreign_tasks(&self) -> u32 {
        self.u32_at(field!(ProcessHeader, foreign_tasks)).load(Ordering::Relaxed)
    }

    /// Another copy of the runtime shares the memory.
    pub fn expect_copies(&self) {
        self.u32_at(field!(ProcessHeader, copies)).store(1, Ordering::Relaxed);
    }

    /// The number under which the system lists the memory among a process's mappings.
    pub fn inode(&self) -> Option<u64> {
        rustix::fs::fstat(&self.fd).ok().map(|status| status.st_ino)
    }

    /// Threads that found no free ring.
    pub fn unregistered_threads(&self) -> u32 {
        self.u32_at(field!(ProcessHeader, unregistered_threads)).load(Ordering::Relaxed)
    }

    /// Returns whether the program went on without us.
    pub fn given_up(&self) -> bool {
        self.u32_at(field!(ProcessHeader, given_up)).load(Ordering::Relaxed) != 0
    }

    /// Switches recording off for a reason (`off.*`), or takes that reason back.
    pub fn switch(&self, reason: u32, off: bool) {
        let dormant = self.u64_at(field!(ProcessHeader, dormant));
        if off {
            self.u32_at(field!(ProcessHeader, was_dormant)).store(1, Ordering::Relaxed);
            dormant.fetch_or(reason.into(), Ordering::Release);
        } else {
            dormant.fetch_and(!u64::from(reason), Ordering::Release);
        }
    }

    /// Sets the regions that are to be recorded; too long a list is cut. To be called before the
    /// program has the memory.
    pub fn set_regions(&self, names: &[String]) {
        let list: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
        let mut field = [0; REGIONS_BYTES];
        let length = list.len().min(field.len() - 1);
        field[..length].copy_from_slice(&list[..length]);
        let offset = field!(ProcessHeader, regions);
        for (index, bytes) in field.as_chunks::<4>().0.iter().enumerate() {
            self.u32_at(offset + 4 * index).store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// Returns whether recording is off, or has ever been.
    pub fn was_dormant(&self) -> bool {
        self.u32_at(field!(ProcessHeader, was_dormant)).load(Ordering::Acquire) != 0
    }

    /// The ring in a slot.
    pub fn ring(&self, slot: u32) -> Ring<'_> {
        assert!(slot < ring::RINGS);
        Ring { memory: self, offset: ring::FIRST_RING_OFFSET as usize + slot as usize * REGION_BYTES }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped in `create`, and every reference into it borrows from `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr(), LENGTH) };
    }
}

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// The lines of a chunk are in the cache of the processor that wrote them. Requests a line for
/// writing, some lines ahead: read first and written later, each would be requested twice.
fn fetch_to_write(words: &[AtomicU64], line: usize) {
    const AHEAD: usize = 8;
    #[cfg(target_arch = "x86_64")]
    if let Some(word) = words.get((line + AHEAD) * LINE_WORDS) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(word.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, line, AHEAD);
}

fn take(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    word.store(0, Ordering::Relaxed);
    value
}

/// One ring slot.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    memory: &'a SharedMemory,
    offset: usize,
}

/// The words of a chunk and when they were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    /// The chunk was taken.
    pub first: u64,
    /// It was handed over, or read while in use.
    pub last: u64,
}

/// The end of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Bytes used.
    pub bytes: usize,
    /// Its writer was abandoned: the last segment may lack words.
    pub cut_short: bool,
    /// Recording was switched off behind it.
    pub gap: bool,
    /// Recording was off in it.
    pub dormant: bool,
}

impl<'a> Ring<'a> {
    fn u32(&self, field: usize) -> &'a AtomicU32 {
        self.memory.u32_at(self.offset + field)
    }

    /// `ring.slot_*`
    pub fn state(&self) -> u32 {
        self.u32(field!(RingHeader, state)).load(Ordering::Acquire)
    }

    /// The owner, as the program's kernel thread id.
    pub fn tid(&self) -> u32 {
        self.u32(field!(RingHeader, tid)).load(Ordering::Relaxed)
    }

    /// Generation of the first ring of the same thread.
    pub fn owner(&self) -> u64 {
        self.memory.u64_at(self.offset + field!(RingHeader, owner)).load(Ordering::Relaxed)
    }

    /// Returns whether a signal handler has interrupted the code that writes here, and is not over.
    pub fn is_interrupted(&self) -> bool {
        self.u32(field!(RingHeader, interrupted)).load(Ordering::Relaxed) != 0
    }

    /// Bytes of a chunk up to which every segment is known to be whole.
    pub fn settled(&self, chunk: u32) -> usize {
        let settled = self.memory.u64_at(self.offset + field!(RingHeader, settled)).load(Ordering::Acquire);
        let bytes = settled as u32 as usize;
        if (settled >> 32) as u32 == chunk && bytes.is_multiple_of(8) { bytes } else { 0 }
    }

    /// Returns whether the thread had ended by itself before its process did.
    pub fn has_ended(&self) -> bool {
        self.u32(field!(RingHeader, ended)).load(Ordering::Relaxed) != 0
    }

    /// Larger is younger.
    pub fn generation(&self) -> u64 {
        self.memory.u64_at(self.offset + field!(RingHeader, generation)).load(Ordering::Relaxed)
    }

    /// Chunks handed over so far.
    pub fn head(&self) -> u32 {
        self.u32(field!(RingHeader, head)).load(Ordering::Acquire)
    }

    fn chunk_offset(&self, chunk: u32) -> usize {
        self.offset + (2 * (chunk % ring::CHUNKS) as usize + 1) * ring::CHUNK_BYTES as usize
    }

    /// When a chunk was written.
    pub fn stamps(&self, chunk: u32) -> Stamps {
        let index = (chunk % ring::CHUNKS) as usize * 8;
        let at = |field: usize| self.memory.u64_at(self.offset + field + index).load(Ordering::Relaxed);
        Stamps { first: at(field!(RingHeader, first_stamp)), last: at(field!(RingHeader, last_stamp)) }
    }

    /// Bytes used in a chunk, 0 while it is being written; `None` if the value is nonsense.
    pub fn end(&self, chunk: u32) -> Option<End> {
        let index = (chunk % ring::CHUNKS) as usize * 4;
        let end = self.u32(field!(RingHeader, end) + index).load(Ordering::Relaxed);
        let bytes = (end & !(ring::END_CUT_SHORT | ring::END_GAP | ring::END_DORMANT)) as usize;
        (bytes.is_multiple_of(8) && bytes <= CHUNK_AND_SLACK_BYTES).then_some(End {
            bytes,
            cut_short: end & ring::END_CUT_SHORT != 0,
            gap: end & ring::END_GAP != 0,
            dormant: end & ring::END_DORMANT != 0,
        })
    }

    /// Returns whether recording is off in a chunk that is still in use and has been written to.
    pub fn is_dormant(&self, chunk: u32) -> bool {
        self.u32(field!(RingHeader, dormant_chunk)).load(Ordering::Acquire) == chunk.wrapping_add(1)
    }

    /// Copies the written part of a chunk that is still in use, from a word on: up to its last word
    /// that is not 0, and then as many zeros as may belong to the same segment. Nothing if there is
    /// no such word.
    ///
    /// The program may be writing it meanwhile. The last word is looked for first and the rest is
    /// read afterwards, so all words before the last one are what the program stored there.
    pub fn peek(&self, chunk: u32, from: usize, into: &mut Vec<u64>) {
        into.clear();
        let offset = self.chunk_offset(chunk);
        // Pages that were never written to would be allocated by reading them.
        let hole = rustix::fs::seek(&self.memory.fd, SeekFrom::Hole(offset as u64));
        let bytes =
            hole.map_or(CHUNK_AND_SLACK_BYTES, |hole| hole as usize - offset).min(CHUNK_AND_SLACK_BYTES);
        let words = self.memory.words_at(offset, bytes / 8);
        let Some(words) = words.get(from..) else { return };
        let Some(last) = words.iter().rposition(|word| word.load(Ordering::Relaxed) != 0) else { return };
        fence(Ordering::Acquire);
        if !cfg!(target_arch = "x86_64") {
            // Elsewhere a later store may be seen before an earlier one.
            clock::everyone_passes_a_barrier();
        }
        into.extend(words[..=last].iter().map(|word| word.load(Ordering::Relaxed)));
        // The last segment's last words may be zeros by rights.
        into.resize(words.len().min(into.len() + stream::MAX_SEGMENT_WORDS as usize + 1), 0);
    }

    /// Adds the first `bytes` of a chunk to words, leaving zeros behind.
    pub fn take(&self, chunk: u32, bytes: usize, into: &mut Vec<u64>) {
        let words = self.memory.words_at(self.chunk_offset(chunk), bytes / 8);
        into.reserve(words.len());
        let (lines, rest) = words.as_chunks::<LINE_WORDS>();
        for (index, line) in lines.iter().enumerate() {
            fetch_to_write(words, index);
            into.extend_from_slice(&line.each_ref().map(take));
        }
        into.extend(rest.iter().map(take));
    }

    /// Leaves zeros in the first `bytes` of a chunk.
    pub fn clear(&self, chunk: u32, bytes: usize) {
        let words = self.memory.words_at(self.chunk_offset(chunk), bytes / 8);
        for (index, line) in words.chunks(LINE_WORDS).enumerate() {
            fetch_to_write(words, index);
            line.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Gives a chunk that was taken back to the program, which then has `pending` left to be read.
    pub fn release(&self, chunk: u32, pending: u32) {
        let index = (chunk % ring::CHUNKS) as usize * 4;
        self.u32(field!(RingHeader, end) + index).store(0, Ordering::Relaxed);
        let tail = self.u32(field!(RingHeader, tail));
        tail.store(chunk.wrapping_add(1), Ordering::Release);
        // Pairs with the program's: it says that it waits, then looks at tail again. A waiting thread
        // is woken when it has room for a while, not chunk by chunk.
        fence(Ordering::SeqCst);
        if pending <= ring::CHUNKS / 2
            && self.u32(field!(RingHeader, producer_waits)).load(Ordering::Relaxed) != 0
        {
            let _ = futex::wake(tail, futex::Flags::empty(), u32::MAX >> 1);
        }
    }

    /// Marks the thread as gone.
    pub fn drain(&self) {
        self.u32(field!(RingHeader, state)).store(ring::SLOT_DRAINING, Ordering::Release);
    }

    /// Makes the slot free: its memory goes back to the system and reads as zero.
    pub fn free(&self) {
        let chunks = self.offset + ring::CHUNK_BYTES as usize;
        let length = REGION_BYTES - ring::CHUNK_BYTES as usize;
        let punched = rustix::fs::fallocate(
            &self.memory.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            chunks as u64,
            length as u64,
        );
        if punched.is_err() {
            for word in self.memory.words_at(chunks, length / 8) {
                word.store(0, Ordering::Relaxed);
            }
        }
        // The header last, its state at the very end: from then on the slot may be claimed.
        for word in &self.memory.words_at(self.offset, RingHeader::BYTES / 8)[1..] {
            word.store(0, Ordering::Relaxed);
        }
        self.u32(field!(RingHeader, tid)).store(0, Ordering::Relaxed);
        self.u32(field!(RingHeader, state)).store(ring::SLOT_FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as a program does to its first ring.
    fn write(memory: &SharedMemory, words: &[u64]) {
        let chunk = memory.words_at(memory.ring(0).chunk_offset(0), words.len());
        chunk.iter().zip(words).for_each(|(shared, &word)| shared.store(word, Ordering::Relaxed));
    }

    #[test]
    fn an_unfinished_chunk_ends_with_its_last_word_and_zeros() {
        let memory = SharedMemory::create(1, 0, Duration::ZERO).unwrap();
        let mut words = vec![7u64];
        memory.ring(0).peek(0, 0, &mut words);
        assert!(words.is_empty());
        write(&memory, &[1, 0, 2, 0, 0, 3]);
        memory.ring(0).peek(0, 2, &mut words);
        assert_eq!(words[..4], [2, 0, 0, 3]);
        assert!(words.len() > 4 && words[4..].iter().all(|&word| word == 0));
        memory.ring(0).peek(0, 6, &mut words);
        assert!(words.is_empty());
        memory.ring(0).peek(0, CHUNK_AND_SLACK_BYTES / 8, &mut words);
        assert!(words.is_empty());
    }

    #[test]
    fn what_is_taken_is_left_zeroed() {
        let memory = SharedMemory::create(1, 0, Duration::ZERO).unwrap();
        let written: Vec<u64> = (1..=8195).collect();
        write(&memory, &written);
        let mut words = vec![9];
        memory.ring(0).take(0, written.len() * 8, &mut words);
        assert_eq!((words[0], &words[1..]), (9, &written[..]));
        memory.ring(0).peek(0, 0, &mut words);
        assert!(words.is_empty());
        write(&memory, &written);
        memory.ring(0).clear(0, written.len() * 8);
        memory.ring(0).peek(0, 0, &mut words);
        assert!(words.is_empty());
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let memory = SharedMemory::create(1, 0, Duration::ZERO).unwrap();
        let ring = memory.ring(ring::RINGS - 1);
        for (end, expected) in
            [(0, Some(0)), (8, Some(8)), (0x2_0000, Some(0x2_0000)), (0x2_0008, None), (0x2_0010, None)]
        {
            for cut_short in [false, true] {
                let (gap, dormant) = (!cut_short, cut_short);
                let word = end
                    | if cut_short { ring::END_CUT_SHORT } else { 0 }
                    | if gap { ring::END_GAP } else { 0 }
                    | if dormant { ring::END_DORMANT } else { 0 };
                ring.u32(field!(RingHeader, end) + 4 * 3).store(word, Ordering::Relaxed);
                let expected = expected.map(|bytes| End { bytes, cut_short, gap, dormant });
                assert_eq!(ring.end(3 + ring::CHUNKS), expected);
            }
        }
    }

    #[test]
    fn a_free_slot_is_as_good_as_new() {
        let memory = SharedMemory::create(1, 0, Duration::ZERO).unwrap();
        write(&memory, &[1, 2, 3]);
        let ring = memory.ring(0);
        for word in memory.words_at(ring.offset, RingHeader::BYTES / 8) {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        ring.free();
        let header = memory.words_at(ring.offset, RingHeader::BYTES / 8);
        assert!(header.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert!(
            memory.words_at(ring.chunk_offset(0), 3).iter().all(|word| word.load(Ordering::Relaxed) == 0)
        );
    }
}
