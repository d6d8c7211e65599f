//! Files that others named or made: all of them are opened here.
//!
//! A trace may come from anybody, and so may the path of a source, an image or a machine file. A
//! FIFO in the place of a file makes its reader wait for ever, a device never ends, opening one may
//! have effects of its own, and a symbolic link leads to any file of the reader's. So a file is
//! examined before it is opened, opened without waiting, and read up to a size.
//!
//! | a file that … | is read by |
//! |---|---|
//! | the user names: a machine, a budget, edits, an image | [`open`], [`read`], [`read_text`]: links are followed |
//! | a trace names, such as a source | [`read_stored`]: what a kernel makes up is refused as well |
//! | lies in a trace | [`Folder`]: no link is followed, and what is written is a fresh file |
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let machine = folder.path().join("machine.toml");
//! std::fs::write(&machine, "name = \"m\"")?;
//! assert_eq!(memlode_files::read_text(&machine, memlode_files::SMALL)?, "name = \"m\"");
//! let error = memlode_files::read_text("/dev/zero".as_ref(), memlode_files::SMALL).unwrap_err();
//! assert_eq!(error.to_string(), "is a device, not a regular file");
//! # Ok::<(), std::io::Error>(())
//! ```

mod door;
mod folder;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{CWD, OFlags};

pub use folder::{Folder, Stored};

/// Bytes of the largest file that people write by hand: a machine, a budget, edits, a list of
/// names.
pub const SMALL: u64 = 1 << 20;

/// Bytes of the largest source file that is read.
pub const SOURCE: u64 = 16 << 20;

/// Opens a regular file for reading, without waiting. Links are followed.
///
/// # Errors
/// Callers get the system's error, or an error if the path leads to something else: a
/// directory, a FIFO, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    door::open(CWD, path, OFlags::RDONLY, door::Storage::Any)
}

/// The contents of a regular file of at most `most` bytes.
///
/// # Errors
/// The call fails like [`open`], if reading fails, and if the file has more bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_whole(open(path)?, most)
}

/// The contents of a regular file of at most `most` bytes, all of it text.
///
/// # Errors
/// Those of [`read`], or that the text is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

/// The contents of a regular file in a file system that stores files. In those of the kernel
/// (`/proc`, `/sys` and their like) reading may wait, change something, or return text that no file
/// has.
///
/// FUSE counts as storage, for sources lie on shared folders, too.
///
/// # Errors
/// Those of [`read`], or that the file is one of the kernel's.
pub fn read_stored(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_whole(door::open(CWD, path, OFlags::RDONLY, door::Storage::Stored)?, most)
}

/// Reads an open file, at most `most` bytes.
fn read_whole(file: File, most: u64) -> io::Result<Vec<u8>> {
    let expected = file.metadata()?.len();
    if expected > most {
        return Err(too_long(most));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected as usize)?;
    // A file may grow while it is read.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not text"))
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("has more than {most} bytes, as many as are read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        for (path, what) in [
            (fifo.as_path(), "a FIFO"),
            (&link, "a FIFO"),
            (&socket, "a socket"),
            (folder.path(), "a directory"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let error = open(path).unwrap_err().to_string();
            assert_eq!(error, format!("is {what}, not a regular file"), "{}", path.display());
        }
    }

    #[test]
    fn no_more_is_read_than_there_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // Of kernel files the length is not known beforehand.
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
        assert!(read_text(Path::new("/proc/self/status"), 1 << 20).unwrap().contains("Pid:"));
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn what_the_kernel_makes_up_is_not_stored() {
        for path in ["/proc/self/status", "/proc/version", "/sys/kernel/notes", "/sys/kernel/mm/ksm/run"] {
            if Path::new(path).exists() {
                let error = read_stored(Path::new(path), 1 << 20).unwrap_err().to_string();
                assert!(error.contains("kernel"), "{path}: {error}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/version", &link).unwrap();
        assert!(read_stored(&link, 1 << 20).is_err(), "a link to one is no better");
        // Beside the test: what changes below `crates` is built again.
        let test = std::env::current_exe().unwrap();
        let places = [folder.path(), test.parent().unwrap(), Path::new("/dev/shm")];
        for place in places.into_iter().filter(|place| place.is_dir()) {
            let file = tempfile::NamedTempFile::new_in(place);
            let Ok(file) = file else { continue };
            std::fs::write(file.path(), "x").unwrap();
            assert_eq!(read_stored(file.path(), 1).unwrap(), b"x", "{}", place.display());
        }
    }
}
