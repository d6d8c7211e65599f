//! A trace directory made from the input: opened, checked, printed and profiled.
//!
//! Almost no mutation of a whole trace survives its checksums, so the input holds the trace's
//! parts, and the checksums are made right here; other tests see to it that wrong ones are noticed.
//! A part is a tag, a length of two bytes, and that many bytes ([`Tag`]).
#![no_main]

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memlode_attribute::{Simulation, Source};
use memlode_machine::Machine;
use memlode_replay::Replay;
use memlode_replay::check::check;
use memlode_trace::Trace;
use memlode_trace::format::{ChunkHeader, ModuleHeader, TableHeader, codec, magic, version};
use memlode_trace::text::{TextWriter, is_unsafe};

/// The kind of a part.
mod tag {
    /// The manifest, but for its checksum.
    pub const MANIFEST: u8 = b'm';
    /// A line of `events.ndjson`, but for its checksum.
    pub const EVENT: u8 = b'e';
    /// The payload of the next module file.
    pub const MODULE: u8 = b'o';
    /// The payload of the next module file, packed; four bytes in front of it say to how many it unpacks.
    pub const PACKED: u8 = b'z';
    /// Marks a FIFO, a device or a directory that looks like a file, in the place of one: [`IRREGULAR`].
    pub const IRREGULAR: u8 = b'i';
    /// A chunk, appended to the current thread's file.
    pub const CHUNK: u8 = b'c';
    /// Bytes as they are, appended to the current thread's file.
    pub const RAW: u8 = b'r';
    /// Turns to the next thread's file.
    pub const THREAD: u8 = b't';
}

/// Names by the first byte of the part; the second selects the contents.
const IRREGULAR: [&str; 4] =
    ["manifest.json", "events.ndjson", "modules/0000.mlm", "threads/p0000-t0000.mlt"];

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    parent.join(format!("memlode-fuzz-{}", std::process::id()))
});
static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::named("generic").expect("it is built in"));

fuzz_target!(|input: &[u8]| {
    let directory = DIRECTORY.as_path();
    let _ = fs::remove_dir_all(directory);
    build(input, directory);
    read(directory);
    let _ = fs::remove_dir_all(directory);
});

fn build(mut input: &[u8], directory: &Path) {
    let (modules, threads) = (directory.join("modules"), directory.join("threads"));
    fs::create_dir_all(&modules).expect("room for a directory");
    fs::create_dir_all(&threads).expect("room for a directory");
    let (mut events, mut files) = (Vec::new(), vec![Vec::new()]);
    let mut module = 0;
    let mut irregular: Vec<[u8; 2]> = Vec::new();
    while let [tag, low, high, rest @ ..] = input {
        let (part, behind) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([*low, *high]))));
        input = behind;
        let thread = files.len() as u32 - 1;
        let file = files.last_mut().expect("there is always one");
        match *tag {
            tag::MANIFEST => {
                fs::write(directory.join("manifest.json"), seal(part)).expect("room for a manifest");
            }
            tag::EVENT => events.extend([&seal(part)[..], b"\n"].concat()),
            tag::MODULE => {
                let path = modules.join(format!("{module:04}.mlm"));
                fs::write(path, module_file(part)).expect("room for a module");
                module += 1;
            }
            tag::PACKED => {
                let path = modules.join(format!("{module:04}.mlm"));
                fs::write(path, packed_module(part)).expect("room for a module");
                module += 1;
            }
            tag::IRREGULAR => irregular.extend(part.first_chunk::<2>()),
            tag::CHUNK => file.extend(chunk(part, thread)),
            tag::RAW => file.extend(part),
            tag::THREAD => files.push(Vec::new()),
            _ => {}
        }
    }
    fs::write(directory.join("events.ndjson"), events).expect("room for events");
    for (thread, bytes) in files.iter().enumerate().take(64) {
        fs::write(threads.join(format!("p0000-t{thread:04}.mlt")), bytes).expect("room for a thread");
    }
    for [name, kind] in irregular {
        put_irregular(&directory.join(IRREGULAR[usize::from(name) % IRREGULAR.len()]), kind);
    }
}

fn put_irregular(path: &Path, kind: u8) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    match kind % 3 {
        0 => rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).expect("room for a FIFO"),
        1 => std::os::unix::fs::symlink("/dev/zero", path).expect("room for a link"),
        _ => fs::create_dir(path).expect("room for a directory"),
    }
}

fn read(directory: &Path) {
    let checked = check(directory, 1);
    let Ok(trace) = Trace::open(directory) else {
        assert!(checked.is_err(), "check opens what cannot be opened");
        return;
    };
    let mut text = TextWriter::new(&trace);
    let mut lines = Lines::default();
    let mut touched = 0u64;
    trace.interleave(1, |piece| {
        touched += piece.accesses().iter().map(|access| u64::from(access.bytes)).sum::<u64>();
        let (accesses, marks) = piece.places();
        match text.write_some(piece.batch, accesses, marks, &mut lines) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    // A copy of terabytes is simulated line by line, like any: that is long, not endless.
    if lines.0 < Lines::MANY && touched < 64 << 20 {
        let _ = Simulation::of(&Source::from(trace), &MACHINE).count(|_| ControlFlow::Continue(()));
    }
}

/// Takes lines of text until there are many.
#[derive(Default)]
struct Lines(u32);

impl Lines {
    const MANY: u32 = 20_000;
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // However hostile the names are.
        let text = std::str::from_utf8(bytes).expect("lines are text");
        assert!(text.chars().all(|c| matches!(c, '\t' | '\n') || !is_unsafe(c)), "{text:?}");
        self.0 += 1;
        if self.0 < Self::MANY { Ok(bytes.len()) } else { Err(std::io::ErrorKind::StorageFull.into()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// With the member that holds the checksum.
fn seal(json: &[u8]) -> Vec<u8> {
    let body = json.strip_suffix(b"}").unwrap_or(json);
    [body, format!(",\"crc32\":\"{:08x}\"}}", crc32fast::hash(body)).as_bytes()].concat()
}

fn module_file(payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let needle = magic::TABLE.to_le_bytes();
    // The inner ones first, where one lies in another.
    for at in (0..payload.len()).rev() {
        if payload[at..].starts_with(&needle) {
            seal_table(&mut payload[at..]);
        }
    }
    sealed_module(codec::STORED, &payload, payload.len() as u64)
}

fn packed_module(part: &[u8]) -> Vec<u8> {
    let (unpacked, payload) = part.split_first_chunk::<4>().unwrap_or((&[0; 4], part));
    sealed_module(codec::ZSTD, payload, u32::from_le_bytes(*unpacked).into())
}

fn sealed_module(codec: u8, payload: &[u8], unpacked_bytes: u64) -> Vec<u8> {
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

fn seal_table(bytes: &mut [u8]) {
    let Some((header_bytes, payload)) = bytes.split_first_chunk_mut::<{ TableHeader::BYTES }>() else {
        return;
    };
    let mut header = TableHeader::from_bytes(header_bytes);
    if let Some(payload) = payload.get(..header.payload_bytes as usize) {
        header.crc32 = crc32fast::hash(payload);
        *header_bytes = header.to_bytes();
    }
}

/// A chunk whose header only an accident would make right.
fn chunk(part: &[u8], thread: u32) -> Vec<u8> {
    let Some((header, payload)) = part.split_first_chunk::<{ ChunkHeader::BYTES }>() else {
        return part.to_vec();
    };
    let mut header = ChunkHeader {
        magic: magic::CHUNK,
        version: version::TRACE,
        process: 0,
        thread,
        payload_bytes: payload.len() as u32,
        payload_crc32: crc32fast::hash(payload),
        header_crc32: 0,
        ..ChunkHeader::from_bytes(header)
    };
    if header.codec == 0 {
        header.unpacked_bytes = header.payload_bytes;
    }
    header.header_crc32 = crc32fast::hash(&header.to_bytes());
    [&header.to_bytes()[..], payload].concat()
}
