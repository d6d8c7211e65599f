//! Chunks that wait for their turn: they are few, whatever their stamps are.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memlode_replay::Replay;
use memlode_trace::Trace;
use memlode_trace::format::ChunkHeader;
use support::*;

/// The system's allocator, and how much memory is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two threads of `chunks` chunks, with stamps that are computed from a chunk's number.
fn write(directory: &Path, chunks: usize, stamps: fn(u64) -> (u64, u64)) {
    let plan = Plan {
        functions: 1,
        site_bytes: vec![8],
        segments: vec![Seg { function: 0, steps: vec![Step::Access(0, Operand::Word)] }],
    };
    let chunk: Vec<Execution> = (0..2000).map(|i| (0, vec![0x1000 + 64 * i])).collect();
    let thread = vec![chunk; chunks];
    write_trace(directory, &plan, &[thread.clone(), thread]);
    for number in 0..2 {
        let path = directory.join(format!("threads/p0000-t000{number}.mlt"));
        let mut bytes = fs::read(&path).unwrap();
        let mut at = 0;
        while at < bytes.len() {
            let place = at..at + ChunkHeader::BYTES;
            let mut header = ChunkHeader::from_bytes(bytes[place.clone()].try_into().unwrap());
            (header.first_stamp, header.last_stamp) = stamps(header.sequence.into());
            header.header_crc32 = 0;
            header.header_crc32 = crc32fast::hash(&header.to_bytes());
            bytes[place].copy_from_slice(&header.to_bytes());
            at += ChunkHeader::BYTES + header.payload_bytes as usize;
        }
        fs::write(&path, bytes).unwrap();
    }
    fs::remove_file(directory.join("chunks.mlx")).unwrap();
}

/// Most memory that a replay takes, and the accesses that it finds.
fn replay(chunks: usize, stamps: fn(u64) -> (u64, u64)) -> (usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path, chunks, stamps);
    let trace = Trace::open(&path).unwrap();
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut accesses = 0;
    let replayed = trace.interleave(0, |piece| {
        accesses += piece.accesses().len();
        ControlFlow::Continue(())
    });
    assert!(replayed.damaged.is_empty());
    (PEAK.load(Ordering::Relaxed) - before, accesses)
}

#[test]
fn no_stamps_make_all_chunks_wait() {
    let cases: [fn(u64) -> (u64, u64); 4] = [
        |_| (1, 1),
        |_| (1, 1 << 40),
        |number| (1 << 40 | number, number),
        |number| ((1 << 40) - number, 1 << 41),
    ];
    for stamps in cases {
        let (few, found) = replay(50, stamps);
        assert_eq!(found, 2 * 50 * 2000);
        let (many, found) = replay(500, stamps);
        assert_eq!(found, 2 * 500 * 2000);
        assert!(many < 2 * few, "{few} bytes for 50 chunks, {many} for 500, stamps {:?}", stamps(7));
    }
}
