//! The memory that programs note their blocks in, from the reader's side (`blocks/src/notes.c`).

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use memlode_trace::format::{
    BlockNote as Written, BlockNotesHeader, BlockPath, block_note, block_notes, magic, version,
};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

use crate::Error;

/// A note that is not finished after this time belongs to a thread that died.
const PATIENCE: Duration = Duration::from_secs(1);
/// Notes that are read together.
const TOGETHER: u64 = 4096;

/// The place of the reader's number.
const READER: usize = offset_of!(BlockNotesHeader, reader);
const NOTES: u64 = block_notes::NOTES as u64;

/// The events of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteKind {
    /// A block of the heap was taken.
    Taken,
    /// A block was given back.
    Freed,
    /// Memory was mapped.
    Mapped,
    /// A mapping was unmapped.
    Unmapped,
}

/// A note of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockNote {
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    pub pid: u32,
    pub kind: NoteKind,
    pub address: u64,
    /// 0 of a block that was given back.
    pub bytes: u64,
    /// The number of the calls that led there, if there was room for them.
    pub path: Option<u16>,
}

/// Memory that a program and all that it starts note their blocks in.
pub struct BlockNotes {
    pub(super) memory: File,
    tail: u64,
    /// Notes that had been lost before this reader came.
    lost: u64,
    /// Bytes of the smallest blocks that are passed on.
    least: u64,
    /// The memory is a process's own: it makes no notes without a reader.
    is_theirs: bool,
    /// The number of a note that is not finished, and since when.
    unfinished: Option<(u64, Instant)>,
}

impl BlockNotes {
    /// Makes the memory. Blocks of fewer bytes than `least` are not noted.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(least: u64) -> Result<BlockNotes, Error> {
        let made = (|| {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let memory = File::from(rustix::fs::memfd_create("memlode-blocks", flags)?);
            memory.set_len(block_notes::BYTES.into())?;
            // Whoever maps it relies on its length.
            rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW)?;
            let header = BlockNotesHeader {
                magic: magic::BLOCK_NOTES,
                version: version::BLOCK_NOTES,
                least: least.max(1),
                reader: std::process::id(),
                ..BlockNotesHeader::default()
            };
            memory.write_all_at(&header.to_bytes(), 0)?;
            io::Result::Ok(memory)
        })();
        let memory =
            made.map_err(|source| Error::System { doing: "cannot make memory for notes of blocks", source })?;
        Ok(BlockNotes { memory, tail: 0, lost: 0, least: least.max(1), is_theirs: false, unfinished: None })
    }

    /// Makes a process note its blocks from now on, if it was started to wait for that (`MEMLODE_BLOCKS=wait`); `None` if it
    /// was not. It stops when this is dropped. Blocks of fewer bytes than `least` are left out.
    ///
    /// # Errors
    /// If its memory cannot be opened, or another process reads it.
    pub fn of_process(pid: u32, least: u64) -> Result<Option<BlockNotes>, Error> {
        let Some(memory) = waiting(pid) else { return Ok(None) };
        let failed = |source| Error::System { doing: "cannot read the process's notes of blocks", source };
        let mut notes = BlockNotes { memory, tail: 0, lost: 0, least, is_theirs: false, unfinished: None };
        let mut bytes = [0; BlockNotesHeader::BYTES];
        notes.memory.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let header = BlockNotesHeader::from_bytes(&bytes);
        let is_alive = |reader: u32| std::path::Path::new(&format!("/proc/{reader}")).exists();
        if header.reader != 0 && is_alive(header.reader) {
            return Err(Error::OtherReader { pid, reader: header.reader });
        }
        notes.tail = header.head;
        notes.lost = header.lost;
        notes.least = header.least.max(least);
        notes.put(offset_of!(BlockNotesHeader, tail), &header.head.to_le_bytes()).map_err(failed)?;
        notes.put(READER, &std::process::id().to_le_bytes()).map_err(failed)?;
        notes.is_theirs = true;
        Ok(Some(notes))
    }

    /// Bytes of the smallest blocks that are noted.
    pub fn least(&self) -> u64 {
        self.least
    }

    fn put(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, offset as u64)
    }

    /// The name by which a process of this machine opens the memory: the value of `MEMLODE_BLOCKS`.
    pub fn name(&self) -> OsString {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd()).into()
    }

    /// Takes what was noted since the last call. Of a note that is being made the others wait, unless this is the `last`
    /// call.
    pub(crate) fn take(&mut self, is_last: bool, found: &mut Vec<BlockNote>) {
        let Some(head) = self.number(offset_of!(BlockNotesHeader, head)) else { return };
        // A program may write there what it likes.
        if head.wrapping_sub(self.tail) > NOTES {
            return;
        }
        let mut bytes = Vec::new();
        while self.tail < head {
            let first = self.tail % NOTES;
            let count = (head - self.tail).min(TOGETHER).min(NOTES - first);
            bytes.resize(count as usize * Written::BYTES, 0);
            let offset = u64::from(block_notes::FIRST_NOTE_OFFSET) + first * Written::BYTES as u64;
            if self.memory.read_exact_at(&mut bytes, offset).is_err() {
                return;
            }
            let before = self.tail;
            for written in bytes.as_chunks::<{ Written::BYTES }>().0 {
                match note(&Written::from_bytes(written), self.tail) {
                    Some(note) => found.extend(note.filter(|note| self.is_wanted(note))),
                    None if !is_last && !self.is_given_up() => break,
                    None => {}
                }
                self.tail += 1;
            }
            let tail = self.tail.to_le_bytes();
            let _ = self.memory.write_all_at(&tail, offset_of!(BlockNotesHeader, tail) as u64);
            if self.tail < before + count {
                return;
            }
        }
    }

    fn is_wanted(&self, note: &BlockNote) -> bool {
        !matches!(note.kind, NoteKind::Taken | NoteKind::Mapped) || note.bytes >= self.least
    }

    /// Returns whether the next note, which is not finished, has been so for long.
    fn is_given_up(&mut self) -> bool {
        match self.unfinished {
            Some((number, since)) if number == self.tail => since.elapsed() > PATIENCE,
            _ => {
                self.unfinished = Some((self.tail, Instant::now()));
                false
            }
        }
    }

    /// Notes for which there was no room.
    pub(crate) fn lost(&self) -> u64 {
        self.number(offset_of!(BlockNotesHeader, lost)).unwrap_or(0).saturating_sub(self.lost)
    }

    /// The return addresses of a path, the innermost first; none if it is not known.
    pub(crate) fn calls(&self, path: u16) -> Vec<u64> {
        let offset = u64::from(block_notes::FIRST_PATH_OFFSET) + u64::from(path) * BlockPath::BYTES as u64;
        let mut bytes = [0; BlockPath::BYTES];
        if u32::from(path) >= block_notes::PATHS || self.memory.read_exact_at(&mut bytes, offset).is_err() {
            return Vec::new();
        }
        let BlockPath { calls, at, .. } = BlockPath::from_bytes(&bytes);
        at[..at.len().min(calls as usize)].to_vec()
    }

    fn number(&self, offset: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, offset as u64).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

impl Drop for BlockNotes {
    fn drop(&mut self) {
        if self.is_theirs {
            let _ = self.put(READER, &0_u32.to_le_bytes());
        }
    }
}

/// The memory of a process that waits for a reader, among the files that it has open.
fn waiting(pid: u32) -> Option<File> {
    let is_ours = |file: &fs::DirEntry| {
        let name = fs::read_link(file.path()).ok()?;
        name.as_os_str().as_encoded_bytes().starts_with(b"/memfd:memlode-blocks").then_some(())
    };
    let mut files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.filter_map(Result::ok);
    let found = files.find(|file| is_ours(file).is_some())?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let memory = File::from(rustix::fs::open(found.path(), flags, Mode::empty()).ok()?);
    // A program may give any file that name.
    let mut bytes = [0; BlockNotesHeader::BYTES];
    let is_whole =
        memory.metadata().is_ok_and(|of| of.is_file() && of.len() == u64::from(block_notes::BYTES));
    let is_read = is_whole && memory.read_exact_at(&mut bytes, 0).is_ok();
    let header = BlockNotesHeader::from_bytes(&bytes);
    let is_known = header.magic == magic::BLOCK_NOTES && header.version == version::BLOCK_NOTES;
    (is_read && is_known).then_some(memory)
}

/// A note of a number; `None` if it is not finished, and no note if it is of no kind that is known.
fn note(written: &Written, number: u64) -> Option<Option<BlockNote>> {
    let Written { time, address, bytes, pid, kind, path, .. } = *written;
    let last = u64::from(pid) << 32 | u64::from(kind) << 16 | u64::from(path);
    let all = time ^ address.rotate_left(17) ^ bytes.rotate_left(34) ^ last.rotate_left(51);
    let seal = all.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number).wrapping_add(1);
    if seal != written.seal {
        return None;
    }
    let kind = match kind {
        block_note::TAKEN => NoteKind::Taken,
        block_note::FREED => NoteKind::Freed,
        block_note::MAPPED => NoteKind::Mapped,
        block_note::UNMAPPED => NoteKind::Unmapped,
        _ => return Some(None),
    };
    let path = Some(path).filter(|path| *path != block_note::NO_PATH);
    Some(Some(BlockNote { time, pid, kind, address, bytes, path }))
}
