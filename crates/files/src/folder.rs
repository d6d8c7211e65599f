//! A directory whose files may come from strangers.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::door::{self, PRIVATE_FILE, Storage};

/// Names that a fresh file is tried under; others may be taken.
const ATTEMPTS: u32 = 100;

/// A directory, open. Names lead to files in it and below, and never out of it: no link is
/// followed.
///
/// ```
/// let place = tempfile::tempdir()?;
/// let folder = memlode_files::Folder::open(place.path())?;
/// folder.write("results.json".as_ref(), b"{}")?;
/// assert_eq!(folder.read_text("results.json".as_ref(), 10)?, "{}");
/// std::os::unix::fs::symlink("/etc/passwd", place.path().join("link"))?;
/// assert!(folder.read_text("link".as_ref(), 1 << 20).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    directory: OwnedFd,
}

impl Folder {
    /// Opens a directory that the user names; links are followed on the way to it.
    ///
    /// # Errors
    /// Callers get the system's error.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Folder { path: path.to_owned(), directory })
    }

    /// Returns its name, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Callers get the system's error, or an error if the name leads to something other than a
    /// regular file, such as a link, or lies behind a link.
    pub fn file(&self, name: &Path) -> io::Result<File> {
        self.opened(name, OFlags::RDONLY)
    }

    /// Opens a regular file for writing behind its end.
    ///
    /// # Errors
    /// It fails where [`Folder::file`] does.
    pub fn append(&self, name: &Path) -> io::Result<File> {
        self.opened(name, OFlags::WRONLY | OFlags::APPEND)
    }

    /// The contents of a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// It fails where [`Folder::file`] or reading does, or if the file has more bytes.
    pub fn read(&self, name: &Path, most: u64) -> io::Result<Vec<u8>> {
        crate::read_whole(self.file(name)?, most)
    }

    /// The contents of a regular file of at most `most` bytes in a file system that stores files,
    /// like [`crate::read_stored`].
    ///
    /// # Errors
    /// It fails where [`Folder::read`] does, or if the file is one of the kernel's.
    pub fn read_stored(&self, name: &Path, most: u64) -> io::Result<Stored> {
        let (parent, last) = self.parent(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
        let file = door::open(fd(self, &parent), last, flags, Storage::Stored)?;
        let modified = file.metadata()?.modified()?;
        Ok(Stored { bytes: crate::read_whole(file, most)?, modified })
    }

    /// The contents of a regular file of at most `most` bytes, all of it text.
    ///
    /// # Errors
    /// It fails where [`Folder::read`] does, or if the text is not UTF-8.
    pub fn read_text(&self, name: &Path, most: u64) -> io::Result<String> {
        crate::text(self.read(name, most)?)
    }

    /// Names in the directory, or in one below it, in no order; none if that does not exist.
    ///
    /// # Errors
    /// Callers get the system's error, or an error if there is a link on the way.
    pub fn names(&self, below: Option<&Path>) -> io::Result<Vec<OsString>> {
        let opened = match below.map(|name| self.folder(name)).transpose() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let directory = opened.as_ref().map_or(self.directory.as_fd(), AsFd::as_fd);
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Makes a directory of its user's own that was not there.
    ///
    /// # Errors
    /// Callers get the system's error; [`ErrorKind::AlreadyExists`] if anything has the name.
    pub fn make(&self, name: &Path) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        Ok(rustix::fs::mkdirat(fd(self, &parent), last, Mode::RWXU)?)
    }

    /// Makes a file that was not there, to be written behind its end.
    ///
    /// # Errors
    /// Callers get the system's error; [`ErrorKind::AlreadyExists`] if anything has the name,
    /// be it a link that leads nowhere.
    pub fn create(&self, name: &Path) -> io::Result<File> {
        let (parent, last) = self.parent(name)?;
        Ok(fresh(fd(self, &parent), last)?)
    }

    /// Makes or replaces a file as a whole: a fresh file takes the name once it is complete, so
    /// nothing is ever written through an old link.
    ///
    /// # Errors
    /// Callers get the system's error; then the file is as it was.
    pub fn write(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        let parent = fd(self, &parent);
        let (temporary, mut file) = temporary(parent, last)?;
        let written =
            file.write_all(bytes).and_then(|()| Ok(rustix::fs::renameat(parent, &temporary, parent, last)?));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::empty());
        }
        written
    }

    /// Replaces the contents of a regular file, on a disk without room, by contents that fit where the
    /// old ones lie. A process that is killed meanwhile leaves a part of them, so [`Folder::write`]
    /// is to be tried first.
    ///
    /// # Errors
    /// Callers get an error where [`Folder::file`] or writing gives one, and
    /// [`ErrorKind::StorageFull`] if the file has less room or a second name.
    pub fn overwrite(&self, name: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.opened(name, OFlags::WRONLY)?;
        let found = file.metadata()?;
        if found.nlink() != 1 || found.blocks().saturating_mul(512) < bytes.len() as u64 {
            return Err(ErrorKind::StorageFull.into());
        }
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)
    }

    /// Copies the files in this directory, and below it, into another one; files there must be new.
    /// Only directories and regular files are copied.
    ///
    /// # Errors
    /// Callers get the system's error, and the name of the file concerned.
    pub fn copy_to(&self, to: &Folder) -> Result<(), (PathBuf, io::Error)> {
        self.copy_below(to, Path::new(""))
    }

    fn copy_below(&self, to: &Folder, below: &Path) -> Result<(), (PathBuf, io::Error)> {
        let failed = |name: &Path| {
            let name = name.to_owned();
            move |error| (name, error)
        };
        let names = self.names(Some(below).filter(|below| !below.as_os_str().is_empty()));
        for name in names.map_err(failed(below))? {
            let name = below.join(name);
            match self.kind(&name).map_err(failed(&name))? {
                FileType::Directory => {
                    let made = to.make(&name);
                    made.or_else(existing_is_fine).map_err(failed(&name))?;
                    self.copy_below(to, &name)?;
                }
                _ => {
                    let copied =
                        self.file(&name).and_then(|mut from| io::copy(&mut from, &mut to.create(&name)?));
                    copied.map_err(failed(&name))?;
                }
            }
        }
        Ok(())
    }

    fn kind(&self, name: &Path) -> io::Result<FileType> {
        let (parent, last) = self.parent(name)?;
        let stat = rustix::fs::statat(fd(self, &parent), last, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    fn opened(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        let (parent, last) = self.parent(name)?;
        door::open(fd(self, &parent), last, flags | OFlags::NOFOLLOW, Storage::Any)
    }

    /// Opens a directory below.
    fn folder(&self, name: &Path) -> io::Result<OwnedFd> {
        let (parent, last) = self.parent(name)?;
        door::below(fd(self, &parent), last)
    }

    /// The directory that a name lies in, `None` for this one, and its last component. Directories
    /// are opened one after the other, since a link in the place of one leads out of the folder,
    /// too.
    fn parent<'a>(&self, name: &'a Path) -> io::Result<(Option<OwnedFd>, &'a Path)> {
        let mut parent: Option<OwnedFd> = None;
        let mut components = name.components().peekable();
        while let Some(Component::Normal(component)) = components.next() {
            let component = Path::new(component);
            if components.peek().is_none() {
                return Ok((parent, component));
            }
            parent = Some(door::below(fd(self, &parent), component)?);
        }
        Err(io::Error::new(ErrorKind::InvalidInput, "is no name of a file in the directory"))
    }
}

fn fd<'a>(folder: &'a Folder, parent: &'a Option<OwnedFd>) -> BorrowedFd<'a> {
    parent.as_ref().map_or(folder.directory.as_fd(), AsFd::as_fd)
}

fn fresh(parent: BorrowedFd<'_>, name: &Path) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, PRIVATE_FILE).map(File::from)
}

/// Makes a fresh file beside a name: its own with the process's number behind it, and a count where
/// that is taken.
fn temporary(parent: BorrowedFd<'_>, name: &Path) -> io::Result<(PathBuf, File)> {
    for attempt in 0..ATTEMPTS {
        let mut temporary = name.as_os_str().to_owned();
        temporary.push(format!(".{}-{attempt}.new", std::process::id()));
        let temporary = PathBuf::from(temporary);
        match fresh(parent, &temporary) {
            Err(Errno::EXIST) => {}
            made => return Ok((temporary, made?)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn existing_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

/// A file that is stored somewhere.
#[derive(Debug)]
pub struct Stored {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// When it was written last, before it was read.
    pub modified: SystemTime,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_name_leads_out_of_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, place.path().join("link")).unwrap();
        symlink(outside.path(), place.path().join("threads")).unwrap();
        symlink(outside.path().join("none"), place.path().join("dangling")).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        for name in
            ["link", "threads/secret", "threads", "dangling", "../secret", "./link", "", "/etc/passwd"]
        {
            let name = Path::new(name);
            assert!(folder.read(name, 100).is_err(), "read {}", name.display());
            assert!(folder.append(name).is_err(), "append to {}", name.display());
            assert!(folder.create(name).is_err(), "create {}", name.display());
        }
        assert!(folder.names(Some(Path::new("threads"))).is_err());
        let error = folder.read(Path::new("link"), 100).unwrap_err().to_string();
        assert_eq!(error, "is a symbolic link, not a regular file");
        let error = folder.read(Path::new("threads/secret"), 100).unwrap_err().to_string();
        assert_eq!(error, "threads is a symbolic link, not a directory");
        // Writing takes the place of a link, and leaves alone what that leads to.
        folder.write(Path::new("link"), b"ours").unwrap();
        assert!(folder.write(Path::new("threads/secret"), b"ours").is_err());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(fs::read_to_string(place.path().join("link")).unwrap(), "ours");
        assert!(fs::symlink_metadata(place.path().join("link")).unwrap().is_file());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn fresh_files_take_no_name_that_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "as it was").unwrap();
        for attempt in 0..3 {
            let name = format!("file.{}-{attempt}.new", std::process::id());
            symlink(&victim, place.path().join(name)).unwrap();
        }
        folder.write(Path::new("file"), b"one").unwrap();
        folder.write(Path::new("file"), b"two").unwrap();
        assert_eq!(folder.read_text(Path::new("file"), 3).unwrap(), "two");
        assert_eq!(fs::read_to_string(victim).unwrap(), "as it was");
        let left = folder.names(None).unwrap();
        assert_eq!(left.len(), 5, "what was there, and the file: {left:?}");
    }

    #[test]
    fn files_are_overwritten_in_their_own_room() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let name = Path::new("file");
        folder.write(name, b"longer than that").unwrap();
        fs::File::open(place.path().join(name)).unwrap().sync_all().unwrap();
        folder.overwrite(name, b"short").unwrap();
        assert_eq!(folder.read_text(name, 99).unwrap(), "short");
        assert!(folder.overwrite(name, &[0; 1 << 20]).is_err(), "it has no such room");
        fs::hard_link(place.path().join(name), place.path().join("other")).unwrap();
        assert!(folder.overwrite(name, b"other").is_err(), "another file's contents");
        assert_eq!(folder.read_text(name, 99).unwrap(), "short");
    }

    #[test]
    fn a_tree_is_copied_file_by_file() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("threads")).unwrap();
        fs::write(from.path().join("threads/a"), "a").unwrap();
        fs::write(from.path().join("b"), "b").unwrap();
        let (one, other) = (Folder::open(from.path()).unwrap(), Folder::open(to.path()).unwrap());
        one.copy_to(&other).unwrap();
        assert_eq!(other.read_text(Path::new("threads/a"), 9).unwrap(), "a");
        assert_eq!(other.read_text(Path::new("b"), 9).unwrap(), "b");
        assert!(one.copy_to(&other).is_err(), "they are there already");
    }
}
