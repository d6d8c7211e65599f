//! Files that tests run, written by another process.
//!
//! A process that is forked in the moment in which a test writes a program has that program open for writing until its
//! own `exec`, and the kernel refuses to run the program meanwhile (`ETXTBSY`, execve(2)). Other tests fork all the
//! time; what `install` has open is inherited by no process.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

/// Copies a program.
pub fn copy(program: impl AsRef<Path>, to: &Path) {
    install(program.as_ref(), to, Stdio::null());
}

/// Writes a file that anybody may run. Its folder exists.
pub fn write(file: &Path, bytes: &[u8]) {
    let mut text = tempfile::tempfile().expect("a temporary file");
    io::Write::write_all(&mut text, bytes).expect("room");
    io::Seek::rewind(&mut text).expect("a regular file");
    install(Path::new("/dev/stdin"), file, text.into());
}

fn install(from: &Path, to: &Path, input: Stdio) {
    let status = Command::new("install").arg("-m755").args([from, to]).stdin(input).status();
    assert!(status.expect("coreutils").success(), "{}", to.display());
    assert!(fs::metadata(to).is_ok_and(|file| file.is_file()), "{}", to.display());
}
