//! The look at a file before, and after, it is opened.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, StatFs, fstat, fstatfs, openat};

/// Only a file's owner reads and writes it: a trace shows where a program keeps its data.
pub(crate) const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Flags of every opening: it does not wait for the other end of a FIFO, gets no terminal, and
/// children do not inherit it.
const ALWAYS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// File systems that files of a trace's making may lie in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Whichever.
    Any,
    /// File systems that keep the data written to them.
    Stored,
}

/// Opens a regular file of a directory. `flags` are those of `open`; they decide whether a link in
/// the place of the file is followed.
///
/// The file is first examined by a descriptor that opens nothing (`O_PATH`), since opening a device
/// has effects. The file that is then opened must be the same.
pub(crate) fn open(folder: BorrowedFd<'_>, name: &Path, flags: OFlags, storage: Storage) -> io::Result<File> {
    let seen = look(folder, name, flags & OFlags::NOFOLLOW)?;
    let known = regular(&seen)?;
    if storage == Storage::Stored && !is_stored(&fstatfs(&seen)?) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "is made up by the kernel, not a stored file"));
    }
    let file = openat(folder, name, flags | ALWAYS, Mode::empty())?;
    same(&known, &regular(&file)?)?;
    Ok(file.into())
}

/// Opens a directory below another; links are not followed.
pub(crate) fn below(folder: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let kind = kind(&fstat(look(folder, name, OFlags::NOFOLLOW)?)?);
    if kind != FileType::Directory {
        let what = format!("{} is {}, not a directory", name.display(), said(kind));
        return Err(io::Error::new(ErrorKind::InvalidInput, what));
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

fn look(folder: BorrowedFd<'_>, name: &Path, follow: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?)
}

/// Facts about a regular file; an error for anything else.
pub(crate) fn regular(file: impl AsFd) -> io::Result<Stat> {
    let stat = fstat(file)?;
    match kind(&stat) {
        FileType::RegularFile => Ok(stat),
        other => {
            let what = format!("is {}, not a regular file", said(other));
            Err(io::Error::new(ErrorKind::InvalidInput, what))
        }
    }
}

fn same(one: &Stat, other: &Stat) -> io::Result<()> {
    if (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino) {
        return Ok(());
    }
    Err(io::Error::other("was replaced by another file while it was opened"))
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn said(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something else",
    }
}

/// Returns whether a file system keeps files. Those of the kernel have no blocks (`simple_statfs`).
/// Three others have none either, and keep files: in memory, in memory that grows, or in a process.
fn is_stored(system: &StatFs) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    const FUSE: i64 = 0x6573_5546;
    // The type's width and sign are the processor's.
    #[allow(clippy::unnecessary_cast)]
    let magic = system.f_type as i64 & 0xffff_ffff;
    system.f_blocks > 0 || matches!(magic, TMPFS | RAMFS | FUSE)
}
