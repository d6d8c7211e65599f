//! A command of the user's in a folder as it is, and in the same folder with edited files.
//!
//! ```text
//!   folder ──► a copy ───────────────────► command ──► status, output ─┐
//!          └─► a copy ──► edited files ──► command ──► status, output ─┴─► the same?
//! ```
//! The copies are ours. If the kernel can enforce it, the command can write only in them.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use walkdir::WalkDir;

use crate::Error;
use crate::link::confine;
use crate::process::{RunLimits, StopFlag, finish};

/// Bytes of a folder that are copied, at most.
const MOST_COPIED: u64 = 4 << 30;
/// Bytes of an output that are kept to show the first difference.
const MOST_KEPT: u64 = 16 << 20;
/// A process that was left behind may hold the output open; we wait for it no longer than this.
const LEFT_BEHIND: Duration = Duration::from_secs(5);
/// The edited program may take this many times as long as the other, and this much longer.
const TIMES_AS_LONG: u32 = 10;
const LONGER: Duration = Duration::from_secs(60);

/// The judgement of a command on edited files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    /// Status and standard output are those without the edit.
    Same,
    /// The status is, and the output differs from run to run without any edit.
    SameStatus,
    /// The command behaves differently; this ends a sentence that begins with the command.
    Different(String),
}

/// A folder, and a command that is run in copies of it.
#[derive(Clone, Copy, Debug)]
pub struct FolderCheck<'a> {
    /// The folder, absolute.
    pub folder: &'a Path,
    /// Folders below it that are not copied, such as traces.
    pub without: &'a [PathBuf],
    /// A line for the shell.
    pub command: &'a str,
    /// Set to stop.
    pub stop: &'a StopFlag,
}

/// The end of a command.
struct Answer {
    status: ExitStatus,
    output: Said,
    errors: Said,
    took: Duration,
}

/// The text that a command printed.
struct Said {
    bytes: u64,
    hash: u64,
    /// The first of it.
    kept: Vec<u8>,
}

impl FolderCheck<'_> {
    /// Runs the command without and with the edited files, which are absolute and below the folder.
    ///
    /// # Errors
    /// The folder cannot be copied, the command fails without the edit already, or it is stopped.
    pub fn run(&self, edited: &[(PathBuf, String)]) -> Result<CheckVerdict, Error> {
        let before = self.answer(&[], Duration::MAX)?;
        if !before.status.success() {
            return Err(Error::Usage(format!(
                "`{}` {} without the edit already, in a copy of {}{}",
                self.command,
                how(before.status),
                self.folder.display(),
                before.errors.last_line().map(|line| format!(": {line}")).unwrap_or_default()
            )));
        }
        let longest = before.took * TIMES_AS_LONG + LONGER;
        let after = match self.answer(edited, longest) {
            Ok(after) => after,
            Err(Error::TooLong { seconds, .. }) => {
                let took = before.took.as_secs_f64();
                return Ok(CheckVerdict::Different(format!(
                    "had not ended after {seconds:.0} s, and takes {took:.1} s without the edit"
                )));
            }
            Err(other) => return Err(other),
        };
        if after.status != before.status {
            let why = after.errors.last_line().map(|line| format!(": {line}")).unwrap_or_default();
            return Ok(CheckVerdict::Different(format!("{}{why}", how(after.status))));
        }
        if after.output.is(&before.output) {
            return Ok(CheckVerdict::Same);
        }
        let again = self.answer(&[], Duration::MAX)?;
        match again.output.is(&before.output) {
            true => Ok(CheckVerdict::Different(before.output.difference(&after.output))),
            false => Ok(CheckVerdict::SameStatus),
        }
    }

    fn answer(&self, edited: &[(PathBuf, String)], longest: Duration) -> Result<Answer, Error> {
        let ours = TempDir::with_prefix("memlode-check-")
            .map_err(|source| Error::System { doing: "cannot make a folder for a copy", source })?;
        let (copy, temporary) = (ours.path().join("copy"), ours.path().join("tmp"));
        self.copy(&copy)?;
        for (file, text) in edited {
            let place = copy.join(file.strip_prefix(self.folder).unwrap_or(file));
            fs::write(&place, text).map_err(|source| Error::File { path: place, source })?;
        }
        fs::create_dir(&temporary).map_err(|source| Error::File { path: temporary.clone(), source })?;
        let mut command = Command::new("sh");
        command.args(["-c", self.command]).current_dir(&copy).env("TMPDIR", &temporary).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        confine(&mut command, ours.path());
        let started = Instant::now();
        let not_started = |source| Error::NotStarted { program: "sh".into(), source };
        let mut child = command.spawn().map_err(not_started)?;
        let pid = Pid::from_child(&child);
        let output = said(child.stdout.take().map(Pipe::Output));
        let errors = said(child.stderr.take().map(Pipe::Errors));
        let ended = finish(pid, started, self.command, RunLimits { stop: self.stop, longest });
        // Those that it left behind would hold its output, and our folder.
        let _ = kill_process_group(pid, Signal::KILL);
        let ended = ended?;
        let took = Duration::from_secs_f64(ended.wall);
        let held = |_| {
            Error::Usage(format!(
                "`{}` has ended, and a process that it left behind still holds its output",
                self.command
            ))
        };
        let output = output.recv_timeout(LEFT_BEHIND).map_err(held)?;
        let errors = errors.recv_timeout(LEFT_BEHIND).map_err(held)?;
        Ok(Answer { status: ended.status, output, errors, took })
    }

    /// Copies regular files, folders and links, with their dates, so that a build finds nothing to do.
    fn copy(&self, to: &Path) -> Result<(), Error> {
        let mut bytes = 0;
        let walk = WalkDir::new(self.folder).into_iter();
        for entry in walk.filter_entry(|entry| !self.without.iter().any(|path| path == entry.path())) {
            if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(self.folder).to_owned();
                Error::File { path, source: error.into() }
            })?;
            let place = to.join(entry.path().strip_prefix(self.folder).unwrap_or(entry.path()));
            let failed = |source| Error::File { path: entry.path().to_owned(), source };
            let kind = entry.file_type();
            if kind.is_dir() {
                fs::create_dir(&place).map_err(failed)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(failed)?;
                std::os::unix::fs::symlink(target, &place).map_err(failed)?;
            } else if kind.is_file() {
                let facts = entry.metadata().map_err(|error| failed(error.into()))?;
                bytes += facts.len();
                if bytes > MOST_COPIED {
                    return Err(Error::Usage(format!(
                        "{} has more than {} GiB, too much for a copy: stand in a folder that has the program alone",
                        self.folder.display(),
                        MOST_COPIED >> 30
                    )));
                }
                copy_file(entry.path(), &place, &facts).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn copy_file(from: &Path, to: &Path, facts: &fs::Metadata) -> io::Result<()> {
    fs::copy(from, to)?;
    let changed = facts.modified()?;
    match File::options().append(true).open(to) {
        Ok(copy) => copy.set_modified(changed),
        // What may only be read has the date of the copy; that is newer, and a build may do more than it has to.
        Err(_) => Ok(()),
    }
}

/// One of two pipes.
enum Pipe {
    Output(ChildStdout),
    Errors(ChildStderr),
}

/// Reads a pipe to its end, beside the rest.
fn said(pipe: Option<Pipe>) -> Receiver<Said> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let said = match pipe {
            Some(Pipe::Output(mut pipe)) => Said::read(&mut pipe),
            Some(Pipe::Errors(mut pipe)) => Said::read(&mut pipe),
            None => Said::read(&mut io::empty()),
        };
        // Nobody may be there any more.
        let _ = sender.send(said);
    });
    receiver
}

impl Said {
    fn read(pipe: &mut dyn Read) -> Said {
        let (mut bytes, mut hash, mut kept) = (0, DefaultHasher::new(), Vec::new());
        let mut piece = [0; 1 << 16];
        while let Ok(got @ 1..) = pipe.read(&mut piece) {
            // In words of one size, however the pipe cut it.
            piece[..got].iter().for_each(|byte| hash.write_u8(*byte));
            let room = (MOST_KEPT - kept.len() as u64).min(got as u64) as usize;
            kept.extend_from_slice(&piece[..room]);
            bytes += got as u64;
        }
        Said { bytes, hash: hash.finish(), kept }
    }

    fn is(&self, other: &Said) -> bool {
        (self.bytes, self.hash) == (other.bytes, other.hash)
    }

    /// The last line that is not blank.
    fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.kept);
        text.lines().rev().find(|line| !line.trim().is_empty()).map(shown)
    }

    /// The first line that differs, and how.
    fn difference(&self, edited: &Said) -> String {
        let (one, other) = (String::from_utf8_lossy(&self.kept), String::from_utf8_lossy(&edited.kept));
        let (mut before, mut after) = (one.lines(), other.lines());
        let mut number = 0;
        loop {
            number += 1;
            match (before.next(), after.next()) {
                (None, None) => return "prints something else behind what is compared line by line".into(),
                (one, other) if one == other => {}
                (one, other) => {
                    let quoted = |line: Option<&str>| match line {
                        Some(line) => format!("`{}`", shown(line)),
                        None => "nothing".into(),
                    };
                    return format!(
                        "prints {} in line {number}, and {} without the edit",
                        quoted(other),
                        quoted(one)
                    );
                }
            }
        }
    }
}

/// A line of a program's, cut and without control characters.
fn shown(line: &str) -> String {
    line.chars().take(120).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exits with status {code}"),
        (None, signal) => format!("is ended by signal {}", signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Runs a command without and with another text in `a`.
    fn tried(command: &str, before: &str, after: &str) -> Result<CheckVerdict, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), before).expect("a file");
        fs::create_dir(folder.path().join("large")).expect("a folder");
        fs::write(folder.path().join("large/b"), "of no concern").expect("a file");
        let without = [folder.path().join("large")];
        let trial =
            FolderCheck { folder: folder.path(), without: &without, command, stop: &AtomicBool::new(false) };
        let verdict = trial.run(&[(folder.path().join("a"), after.to_owned())]);
        let names = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!((names, fs::read_to_string(folder.path().join("a")).expect("a file")), (2, before.into()));
        verdict
    }

    #[test]
    fn a_command_tells_an_edit_by_its_output_or_its_status() {
        let verdict = |command| tried(command, "x\ny\n", "x\nz\n").expect("a verdict");
        let different = |text: &str| CheckVerdict::Different(text.into());
        assert_eq!(verdict("wc -l < a; test ! -e large; echo >made; rm a"), CheckVerdict::Same);
        assert_eq!(verdict("cat a"), different("prints `z` in line 2, and `y` without the edit"));
        assert_eq!(verdict("grep -v z a"), different("prints nothing in line 2, and `y` without the edit"));
        assert_eq!(verdict("cat a >&2; grep -q y a"), different("exits with status 1: z"));
        assert_eq!(verdict("grep -q y a || kill -9 $$"), different("is ended by signal 9"));
        assert_eq!(verdict("cat a; cat /proc/sys/kernel/random/uuid"), CheckVerdict::SameStatus);
    }

    #[test]
    fn a_command_that_fails_anyway_says_nothing() {
        let error = tried("cat a b", "x", "y").expect_err("there is no b").to_string();
        assert!(error.contains("`cat a b` exits with status 1 without the edit already"), "{error}");
        assert!(error.contains("b: No such file"), "{error}");
    }
}
