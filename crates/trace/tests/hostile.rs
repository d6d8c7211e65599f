//! Traces made to cost their reader too much: memory and work stay in proportion to the files, and
//! the reader waits for nothing that only looks like a file.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memlode_replay::check::{CheckReport, check};
use memlode_trace::Trace;
use memlode_trace::format::{ChunkHeader, ModuleHeader, codec, limit, magic, version};
use memlode_trace::module::{Module, ModuleImage, Section};
use support::*;

/// An allocator that counts.
struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size() as u64;
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
        PEAK.fetch_max(NOW.fetch_add(bytes, Ordering::Relaxed) + bytes, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs one test at a time: the counts are global.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the cost of some work: the most bytes at one time, and bytes in all.
fn cost<T>(work: impl FnOnce() -> T) -> (T, u64, u64) {
    let (before, total) = (NOW.load(Ordering::Relaxed), TOTAL.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (result, PEAK.load(Ordering::Relaxed) - before, TOTAL.load(Ordering::Relaxed) - total)
}

/// Does it, or fails when it takes minutes.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(Duration::from_secs(600)).expect("it waits for something, or does not end")
}

fn plan() -> Plan {
    Plan {
        functions: 1,
        site_bytes: vec![8],
        segments: vec![Seg { function: 0, steps: vec![Step::Access(0, Operand::Word)] }],
    }
}

/// A trace of one chunk, in a directory of its own.
fn fresh() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write_trace(&path, &plan(), &[vec![vec![(0, vec![64])]]]);
    (folder, path)
}

fn checked(path: &Path) -> CheckReport {
    let path = path.to_owned();
    in_time(move || check(&path, 1)).unwrap()
}

fn problems(report: &CheckReport) -> String {
    report.problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn what_is_no_file_is_named_and_not_waited_for() {
    let _alone = alone();
    // What the writer made, whatever that is, and all that a trace may have besides.
    let (_folder, path) = fresh();
    let mut files = vec!["chunks.mlx".to_string(), "events.ndjson".into()];
    for folder in ["", "modules", "threads"] {
        for entry in fs::read_dir(path.join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.is_file() {
                files.push(file.strip_prefix(&path).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files.dedup();
    assert!(files.len() >= 5, "{files:?}");
    for file in &files {
        for kind in ["a FIFO", "a socket", "a symbolic link", "a directory"] {
            let (_folder, path) = fresh();
            let there = path.join(file);
            fs::remove_file(&there).ok();
            match kind {
                "a FIFO" => {
                    rustix::fs::mkfifoat(rustix::fs::CWD, &there, rustix::fs::Mode::RWXU).unwrap();
                }
                "a socket" => drop(std::os::unix::net::UnixListener::bind(&there).unwrap()),
                "a symbolic link" => std::os::unix::fs::symlink("/dev/zero", &there).unwrap(),
                _ => fs::create_dir(&there).unwrap(),
            }
            let wanted = format!("is {kind}, not a regular file");
            let read = path.clone();
            let told = match in_time(move || check(&read, 1)) {
                Ok(report) => problems(&report),
                Err(error) => error.to_string(),
            };
            assert!(told.contains(file.as_str()) && told.contains(&wanted), "{file}, {kind}: {told}");
        }
    }
}

#[test]
fn a_thread_that_cannot_be_read_leaves_the_others() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let chunks = vec![vec![(0, vec![64])]];
    write_trace(&path, &plan(), &[chunks.clone(), chunks]);
    fs::remove_file(path.join("threads/p0000-t0000.mlt")).unwrap();
    fs::create_dir(path.join("threads/p0000-t0000.mlt")).unwrap();
    let report = checked(&path);
    assert_eq!((report.threads, report.chunks, report.accesses), (2, 1, 1), "{}", problems(&report));
}

fn module_file(codec: u8, payload: &[u8], unpacked_bytes: u64) -> Vec<u8> {
    let mut header = ModuleHeader {
        magic: magic::MODULE,
        version: version::TRACE,
        codec,
        payload_bytes: payload.len() as u64,
        unpacked_bytes,
        payload_crc32: crc32fast::hash(payload),
        ..Default::default()
    };
    header.header_crc32 = crc32fast::hash(&header.to_bytes());
    [&header.to_bytes()[..], payload].concat()
}

#[test]
fn a_module_cannot_unpack_to_a_thousand_times_its_bytes() {
    let _alone = alone();
    let (_folder, path) = fresh();
    let unpacked = 256 << 20;
    let packed = zstd::bulk::compress(&vec![0; unpacked], 19).unwrap();
    assert!(packed.len() < 1 << 20);
    fs::write(path.join("modules/0000.mlm"), module_file(codec::ZSTD, &packed, unpacked as u64)).unwrap();
    let (report, peak, _) = cost(|| checked(&path));
    assert!(problems(&report).contains("more than those of a module can"), "{}", problems(&report));
    assert!(peak < 16 << 20, "{peak}");
}

/// Stores a module that shrinks beyond the limit without compression, and reads it.
#[test]
fn a_module_of_nothing_but_zeros_is_stored_and_read() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut store = memlode_trace::write::DirectoryStore::create(folder.path(), false).unwrap();
    store = store.limited_to(1 << 30);
    let mut writer = memlode_trace::write::TraceWriter::new(Box::new(store), Default::default()).unwrap();
    let holes = Section { address: 0x1000, bytes: vec![0; 4 << 20] };
    let image = ModuleImage { path: "/p".into(), anchors: holes, ..Default::default() };
    writer.add_module(image.clone()).unwrap();
    writer.finish(Default::default()).unwrap();
    assert!(fs::metadata(folder.path().join("modules/0000.mlm")).unwrap().len() >= 4 << 20);
    let trace = Trace::open(folder.path()).unwrap();
    assert_eq!((trace.damage(), trace.modules()), (&[][..], &[image][..]));
}

/// Anchors of as many tables, each of which holds the ones behind it as its first string.
fn nested(tables: usize) -> ModuleImage {
    let mut bytes = Vec::new();
    for _ in 0..tables {
        let inner = bytes;
        let mut payload = Vec::new();
        // One string, the tables behind; no files; a function without a name worth having; no locations, types, sites; one segment.
        payload.push(1);
        let mut length = inner.len() as u64;
        while length >= 0x80 {
            payload.push(length as u8 | 0x80);
            length >>= 7;
        }
        payload.push(length as u8);
        payload.extend(&inner);
        payload.extend([0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        bytes = b"MLTB\x01\x00\x00\x00".to_vec();
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(crc32fast::hash(&payload).to_le_bytes());
        bytes.extend(payload);
    }
    let at: Vec<usize> =
        bytes.windows(4).enumerate().filter(|(_, four)| four == b"MLTB").map(|(at, _)| at).collect();
    assert_eq!(at.len(), tables);
    let anchors = at.iter().enumerate().flat_map(|(anchor, table)| {
        let rel = TABLES_AT + *table as u64 - (ANCHORS_AT + 8 * anchor as u64);
        [(rel as u32).to_le_bytes(), 0u32.to_le_bytes()].concat()
    });
    ModuleImage {
        anchors: Section { address: ANCHORS_AT, bytes: anchors.collect() },
        tables: Section { address: TABLES_AT, bytes },
        ..Default::default()
    }
}

#[test]
fn tables_do_not_lie_in_tables() {
    let _alone = alone();
    assert!(Module::parse(nested(1)).is_ok());
    let image = nested(1000);
    let bytes = image.tables.bytes.len() as u64;
    let (parsed, peak, total) = cost(|| Module::parse(image));
    let error = parsed.err().expect("they are nested").to_string();
    assert!(error.contains("lies in another one"), "{error}");
    assert!(peak < 16 * bytes && total < 64 * bytes, "{peak}, {total} for {bytes} bytes");
}

#[test]
fn no_two_anchors_stand_for_one_segment() {
    let _alone = alone();
    let mut image = image(&plan());
    let rel = TABLES_AT.wrapping_sub(ANCHORS_AT + 8) as u32;
    image.anchors.bytes.extend(rel.to_le_bytes());
    image.anchors.bytes.extend([0; 4]);
    let error = Module::parse(image).err().expect("it is named twice").to_string();
    assert_eq!(error, "anchor 1 names segment 0 of its site table, as another one before it does");
}

/// Every entry of a list costs its reader more than its bytes; how much more has a bound.
#[test]
fn the_smallest_entries_of_tables_cost_no_fortune() {
    let _alone = alone();
    const MANY: usize = 1 << 18;
    let mut many = plan();
    many.segments[0].steps = vec![Step::Exit; MANY];
    let exits = image(&many);
    let mut many = plan();
    many.segments = vec![Seg { function: 0, steps: vec![] }; MANY];
    let segments = image(&many);
    for image in [exits, segments] {
        let bytes = (image.tables.bytes.len() + image.anchors.bytes.len()) as u64;
        let (parsed, peak, _) = cost(|| Module::parse(image));
        assert!(parsed.is_ok());
        assert!(peak < 120 * bytes, "{peak} for {bytes} bytes");
    }
}

#[test]
fn thousands_of_copies_cost_what_they_are() {
    let _alone = alone();
    let (_folder, path) = fresh();
    let file = path.join("threads/p0000-t0000.mlt");
    let chunk = fs::read(&file).unwrap();
    fs::write(&file, chunk.repeat(20_000)).unwrap();
    let (report, peak, total) = cost(|| checked(&path));
    assert_eq!(problems(&report).lines().count(), 1, "{}", problems(&report));
    assert!(problems(&report).contains("19999 chunks come again, the first of them chunk 0"));
    assert!(peak < 16 << 20 && total < 64 << 20, "{peak}, {total}");
}

/// Before, each thread cost a block to search in, and a look at all damage for each.
#[test]
fn many_damaged_threads_cost_no_more_than_each() {
    let _alone = alone();
    let (_folder, path) = fresh();
    let good = fs::read(path.join("threads/p0000-t0000.mlt")).unwrap();
    const THREADS: u64 = 3000;
    for thread in 1..THREADS {
        let header = ChunkHeader::from_bytes(good[..ChunkHeader::BYTES].try_into().unwrap());
        let mut header = ChunkHeader { thread: thread as u32, header_crc32: 0, ..header };
        header.header_crc32 = crc32fast::hash(&header.to_bytes());
        let bytes = [b"damage", &header.to_bytes()[..], &good[ChunkHeader::BYTES..]].concat();
        fs::write(path.join(format!("threads/p0000-t{thread:04}.mlt")), bytes).unwrap();
    }
    let (report, _, total) = cost(|| checked(&path));
    assert_eq!(report.chunks, THREADS, "{}", report.problems[0]);
    assert!(total < (32 << 20) + THREADS * (32 << 10), "{total}: {} for each thread", total / THREADS);
}

#[test]
fn a_chunk_of_stamps_in_disorder_is_one_problem() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut plan = plan();
    plan.segments.push(Seg { function: 0, steps: vec![Step::Stamp] });
    let stamps = (0..10_000u64).rev().map(|stamp| (1, vec![1000 + stamp])).collect();
    write_trace(&path, &plan, &[vec![stamps]]);
    let report = checked(&path);
    assert_eq!(report.problems.len(), 1, "{}", report.problems.len());
    let told = problems(&report);
    assert!(told.contains("has 9999 stamps after later ones, first 10998 after 10999"), "{told}");
}

#[test]
fn events_are_read_line_by_line() {
    let _alone = alone();
    let (_folder, path) = fresh();
    let events = path.join("events.ndjson");
    let good = fs::read(&events).unwrap();
    // Rubbish of many short lines is one problem.
    fs::write(&events, [&good[..], &b"x\n".repeat(1 << 20)].concat()).unwrap();
    let (report, peak, _) = cost(|| checked(&path));
    assert_eq!(problems(&report).lines().count(), 2, "{}", problems(&report));
    assert!(problems(&report).contains("lines 5 to 1048580 are damaged (1048576 bytes unreadable)"));
    assert!(peak < 16 << 20, "{peak}");
    // A file that is one hole promises a line of a terabyte.
    fs::write(&events, &good).unwrap();
    fs::OpenOptions::new().write(true).open(&events).unwrap().set_len(1 << 40).unwrap();
    let (report, peak, _) = cost(|| checked(&path));
    assert!(problems(&report).contains("line 5 is longer than any can be"), "{}", problems(&report));
    assert!(peak < 4 * limit::EVENT_BYTES, "{peak}");
    assert_eq!(report.accesses, 1);
}

#[test]
fn a_hole_of_a_terabyte_in_a_thread_is_skipped() {
    let _alone = alone();
    let (_folder, path) = fresh();
    let file = path.join("threads/p0000-t0000.mlt");
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
    let report = checked(&path);
    assert_eq!(report.accesses, 1);
    assert!(problems(&report).contains("there is no chunk"), "{}", problems(&report));
}
