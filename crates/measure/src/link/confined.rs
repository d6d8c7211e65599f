//! Commands of the user's that must not change their files.
//!
//! Landlock (Linux 5.13, <https://docs.kernel.org/userspace-api/landlock.html>) takes rights from a
//! process and its children, without privileges. On kernels without it, a command runs unconfined.

use std::fs::File;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The kernel's numbers, of <linux/landlock.h>.
const WRITE_FILE: u64 = 1 << 1;
/// Removing files and folders, and making them, of any kind.
const CHANGE_FOLDER: u64 = 0x1ff << 4;
/// Moving files between folders, since the second version.
const REFER: u64 = 1 << 13;
/// Since the third.
const TRUNCATE: u64 = 1 << 14;
const VERSION: u32 = 1;
const PATH_BENEATH: libc::c_int = 1;

#[repr(C)]
struct Ruleset {
    handled: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    folder: i32,
}

/// Lets a command write in one folder and to devices, and nowhere else.
pub fn confine(command: &mut Command, folder: &Path) {
    let Some(rules) = rules(folder) else { return };
    let restrict = move || {
        // SAFETY: two system calls with numbers as arguments; the descriptor is open, as this closure owns it.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0);
        }
        Ok(())
    };
    // SAFETY: `restrict` makes system calls only, and touches no memory that another thread may have locked.
    unsafe { command.pre_exec(restrict) };
}

/// The rules as a descriptor, if the kernel knows any.
fn rules(folder: &Path) -> Option<OwnedFd> {
    // SAFETY: without attributes the call returns the version of the interface.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<Ruleset>(), 0, VERSION) };
    let handled = match version {
        ..1 => return None,
        1 => WRITE_FILE | CHANGE_FOLDER,
        2 => WRITE_FILE | CHANGE_FOLDER | REFER,
        _ => WRITE_FILE | CHANGE_FOLDER | REFER | TRUNCATE,
    };
    let ruleset = Ruleset { handled };
    // SAFETY: the structure is as long as is said, and is only read.
    let made = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const ruleset, size_of::<Ruleset>(), 0)
    };
    let made = i32::try_from(made).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: a descriptor that the call has just made, and nobody else has.
    let rules = unsafe { OwnedFd::from_raw_fd(made) };
    for (place, allowed) in [(folder, handled), (Path::new("/dev"), WRITE_FILE | (handled & TRUNCATE))] {
        let place = File::open(place).ok()?;
        let rule = PathBeneath { allowed, folder: place.as_raw_fd() };
        // SAFETY: both descriptors are open, and the structure is only read.
        let added = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0)
        };
        if added != 0 {
            return None;
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A command may do anything in its own folder, and changes nothing elsewhere.
    #[test]
    fn only_the_folder_given_is_written() {
        let (ours, theirs) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        if rules(ours.path()).is_none() {
            return; // an old kernel
        }
        let theirs = theirs.path();
        fs::write(theirs.join("file"), "as it was").expect("a file");
        let script = "echo x > $OURS/a && mkdir $OURS/b && mv $OURS/a $OURS/b && echo y > /dev/null || exit 9; cat file
            echo z > file; echo z >> file; echo z > new; rm -f file; mv file other; mkdir folder; ln -s a link; ln file hard
            : > file; truncate -s 1 file; mv $OURS/b/a file";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(theirs).env("OURS", ours.path());
        confine(&mut command, ours.path());
        let output = command.output().expect("sh runs");
        assert_ne!(output.status.code(), Some(9));
        assert_eq!(output.stdout, b"as it was");
        let names: Vec<_> =
            fs::read_dir(theirs).expect("a folder").map(|entry| entry.expect("one").file_name()).collect();
        assert_eq!(names, ["file"]);
        assert_eq!(fs::read(theirs.join("file")).expect("a file"), b"as it was");
        assert!(ours.path().join("b/a").exists());
    }
}
