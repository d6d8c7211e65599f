//! The traced program as a child: started in our place, its end passed on.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context, Result};
use memlode_collect::Switch;
use rustix::process::{PidfdFlags, Signal};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::driver::toolchain::search_path;
use crate::interrupt;

/// The shells' status of a program that is there but cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The shells' status of a program that does not exist.
pub const NOT_FOUND: u8 = 127;

/// The reason why there is no child, and its exit status.
#[derive(Debug)]
pub struct NotStarted {
    /// 126 or 127.
    pub status: u8,
    /// A sentence.
    pub why: String,
}

/// Finds the program as a shell would, so that a mistyped name is reported before anything is
/// created.
pub fn locate(program: &OsStr) -> Result<PathBuf, NotStarted> {
    if let Some(path) = search_path(program) {
        return Ok(path);
    }
    let name = program.display();
    let path = Path::new(program);
    if !program.as_encoded_bytes().contains(&b'/') {
        let why = if path.exists() {
            format!(
                "there is no program {name} on the path, but a file of that name is here: did you mean ./{name}?"
            )
        } else {
            format!("there is no program {name} on the path")
        };
        return Err(NotStarted { status: NOT_FOUND, why });
    }
    Err(match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            NotStarted { status: NOT_EXECUTABLE, why: format!("{name} is a directory, not a program") }
        }
        Ok(_) => NotStarted {
            status: NOT_EXECUTABLE,
            why: format!("{name} is not executable: `chmod +x {name}` if it is a program"),
        },
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            NotStarted { status: NOT_EXECUTABLE, why: format!("{name} cannot be reached: {error}") }
        }
        Err(_) => NotStarted { status: NOT_FOUND, why: format!("there is no program {name}") },
    })
}

/// The destination of the program's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramOutput {
    /// To our standard output.
    Own,
    /// To our standard error, as standard output is the report's.
    StandardError,
}

/// A running program.
pub struct Program {
    child: Child,
}

impl Program {
    /// Starts `path` (found by [`locate`]) under the name that the user typed, its output where `output`
    /// says. While it runs, signals that others send to us go to it, except the one that toggles the
    /// recording.
    pub fn start(
        path: &Path,
        command: &[OsString],
        variables: &[(&str, &OsStr)],
        output: ProgramOutput,
        signals: &interrupt::Signals,
        toggle: Option<(i32, Switch)>,
    ) -> Result<Result<Program, NotStarted>> {
        use std::os::unix::process::CommandExt;
        let mut started = Command::new(path);
        started
            .arg0(&command[0])
            .args(&command[1..])
            .envs(variables.iter().copied())
            .env_remove(crate::destination::TOKEN);
        if output == ProgramOutput::StandardError {
            started.stdout(std::io::stderr());
        }
        let child = match started.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(not_started(path, &error))),
        };
        let pid = rustix::process::Pid::from_child(&child);
        // A descriptor and not a number: it never comes to mean another process.
        let pidfd =
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).context("cannot watch the program")?;
        signals.started(pidfd, toggle);
        Ok(Ok(Program { child }))
    }

    /// The kernel's number of it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program.
    pub fn wait(mut self) -> Result<ExitStatus> {
        self.child.wait().context("cannot wait for the program")
    }
}

/// Runs a command as if it were this process: signals that ask us to end go to it.
pub fn run_in_our_place(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGTERM])?;
    let mut child = command.spawn()?;
    let pid = rustix::process::Pid::from_child(&child);
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
            }
        }
    });
    child.wait()
}

fn not_started(path: &Path, error: &std::io::Error) -> NotStarted {
    let name = path.display();
    let why = match error.kind() {
        // The file is there (it was located): what is missing is what its first line or header asks for.
        ErrorKind::NotFound => {
            return NotStarted {
                status: NOT_FOUND,
                why: format!("{name} needs an interpreter or loader that is not on this machine"),
            };
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            format!("{name} is neither a program for this machine nor a script with a #! line")
        }
        _ => format!("{name} cannot be executed: {error}"),
    };
    NotStarted { status: NOT_EXECUTABLE, why }
}

/// The status that a shell would report.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => interrupt::status(signal),
        (None, None) => 1,
    }
}

/// Returns how the program ended, when that is worth a word.
pub fn ending(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            Some(format!("the program was ended by {name}"))
        }
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("the program exited with status {code}")),
        (None, None) => None,
    }
}
