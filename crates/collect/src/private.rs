//! Temporary directories, for one process of one user.
//!
//! They lie where all users may create directories, so their names cannot be guessed, and no other
//! user can take them first. The owner holds a lock on its directory for as long as it lives. So
//! directories of killed processes are recognised, and removed by the next process.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// A directory that only this user can enter. It goes with the value, and with all that is in it.
pub struct PrivateDirectory {
    path: PathBuf,
    /// Locked.
    _lock: File,
}

/// The beginning of all names.
pub const PREFIX: &str = "memlode-";
/// Random bytes of a name, each two hexadecimal digits.
const RANDOM: usize = 8;

impl PrivateDirectory {
    /// Makes one, and removes those of killed processes.
    ///
    /// # Errors
    /// The error of the system: no permission to write there, or no room.
    pub fn create_in(parent: &Path) -> io::Result<PrivateDirectory> {
        remove_left_over(parent);
        loop {
            let mut random = [0; RANDOM];
            getrandom(&mut random[..], GetRandomFlags::empty())?;
            let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = parent.join(format!("{PREFIX}{digits}"));
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            // Somebody who looks for what is left over may have come between: then there is another name.
            let Ok(lock) = File::open(&path) else { continue };
            // Where there are no locks, nothing is left over for certain, either.
            let is_there = flock(&lock, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
                && fs::symlink_metadata(&path).is_ok_and(|meta| Some(meta.ino()) == inode(&lock));
            if is_there {
                return Ok(PrivateDirectory { path, _lock: lock });
            }
        }
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn inode(file: &File) -> Option<u64> {
    file.metadata().ok().map(|meta| meta.ino())
}

/// Removes this user's directories of the kind whose owner is gone.
fn remove_left_over(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_one(&path)
            && let Ok(lock) = File::open(&path)
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Returns whether it is one, by its name, its owner and its mode: a directory, not a link.
fn is_one(path: &Path) -> bool {
    let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let is_named = name.strip_prefix(PREFIX.as_bytes()).is_some_and(|digits| {
        digits.len() == 2 * RANDOM && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    });
    is_named
        && fs::symlink_metadata(path).is_ok_and(|meta| {
            meta.is_dir()
                && meta.uid() == rustix::process::geteuid().as_raw()
                && meta.mode() & 0o7777 == Mode::RWXU.bits()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(parent).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn it_is_private_and_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let one = PrivateDirectory::create_in(parent.path()).unwrap();
        let other = PrivateDirectory::create_in(parent.path()).unwrap();
        assert_ne!(one.path(), other.path());
        assert_eq!(fs::metadata(one.path()).unwrap().mode() & 0o777, 0o700);
        fs::create_dir(one.path().join("d")).unwrap();
        fs::write(one.path().join("d/f"), "x").unwrap();
        drop((one, other));
        assert_eq!(names(parent.path()), [""; 0]);
    }

    #[test]
    fn what_is_left_over_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = PrivateDirectory::create_in(parent.path()).unwrap();
        // As a process that was killed leaves one.
        let left = PrivateDirectory::create_in(parent.path()).unwrap();
        fs::write(left.path().join("collector"), "x").unwrap();
        let (killed, lock) = (left.path().to_owned(), left._lock.try_clone().unwrap());
        std::mem::forget(left);
        flock(&lock, FlockOperation::Unlock).unwrap();
        // What only looks like it: another name, another mode, a link, a file.
        let kept = ["memlode-0123456789abcde", "memlode-trace", "memlode-0123456789abcdeg"];
        for name in kept {
            rustix::fs::mkdir(parent.path().join(name), Mode::RWXU).unwrap();
        }
        fs::create_dir(parent.path().join("memlode-1111111111111111")).unwrap();
        std::os::unix::fs::symlink(parent.path(), parent.path().join("memlode-2222222222222222")).unwrap();
        fs::write(parent.path().join("memlode-3333333333333333"), "x").unwrap();
        let before = names(parent.path()).len();
        let next = PrivateDirectory::create_in(parent.path()).unwrap();
        assert!(!killed.exists() && alive.path().exists() && next.path().exists());
        // One more, and one less.
        assert_eq!(names(parent.path()).len(), before);
    }

    #[test]
    fn names_cannot_be_taken_beforehand() {
        // All that could be guessed, as another user would take them.
        let parent = tempfile::tempdir().unwrap();
        for attempt in 0..1000 {
            let name = format!("memlode-{}-{attempt}", std::process::id());
            std::os::unix::fs::symlink("/", parent.path().join(name)).unwrap();
        }
        assert!(PrivateDirectory::create_in(parent.path()).is_ok());
    }
}
