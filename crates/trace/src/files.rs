//! Regular files, and nothing that only looks like one.
//!
//! A trace may come from anybody, and so may the path of an image: a FIFO in the place of a file would make its reader
//! wait for ever, a device would never end, and opening one may have effects of its own.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading, without waiting.
///
/// # Errors
/// What the system says, or that the path leads to something else: a directory, a FIFO, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    regular(&fs::metadata(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    // Something else may have taken its place meanwhile.
    regular(&file.metadata()?)?;
    Ok(file)
}

/// The contents of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`] and reading say, or that the file has more bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
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

/// The contents of a regular file of at most `most` bytes, all of it text.
///
/// # Errors
/// As [`read`] says, or that it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not text"))
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("has more than {most} bytes, as many as are read"))
}

fn regular(meta: &Metadata) -> io::Result<()> {
    if meta.is_file() {
        return Ok(());
    }
    let what = format!("is {}, not a file", kind(meta.file_type()));
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn kind(file: FileType) -> &'static str {
    match () {
        () if file.is_dir() => "a directory",
        () if file.is_fifo() => "a FIFO",
        () if file.is_socket() => "a socket",
        () if file.is_char_device() || file.is_block_device() => "a device",
        () => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
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
            assert_eq!(error, format!("is {what}, not a file"), "{}", path.display());
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
}
