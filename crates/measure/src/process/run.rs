//! Starts a program, waits for it, and reads its costs.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::Serialize;

use super::AddressLayout;
use super::layout::PADDING;
use crate::Error;

/// Set to end the measurement: the running program is ended, too.
pub type StopFlag = AtomicBool;

/// The part of a program's output that reaches the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Nothing.
    #[default]
    Discarded,
    /// Everything, as if the program were run directly.
    Shown,
}

/// A command, and all that is the same in each of its runs.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments; the first is looked up on the path as a shell would.
    pub words: Vec<OsString>,
    /// File that the program reads on standard input; nothing if there is no file.
    pub input: Option<PathBuf>,
    /// The destination of its output.
    pub output: Output,
    /// Variables that it gets beside ours, or in their place.
    pub environment: Vec<(OsString, OsString)>,
}

/// A program that was started, and is to be waited for.
#[derive(Debug)]
pub struct Started {
    pid: Pid,
    at: Instant,
}

/// A region of a program that turns counters on when it enters it, and off when it leaves it.
#[derive(Clone, Copy, Debug)]
pub struct CountedRegion<'a> {
    /// The name that the program gives to `memlode_start`.
    pub name: &'a str,
    /// Descriptors of the counters.
    pub descriptors: &'a [RawFd],
    /// The library that has the functions, for programs that do not.
    pub library: &'a Path,
}

impl CountedRegion<'_> {
    /// The first descriptor of a counter in the program. Programs take low numbers for themselves.
    const FIRST: RawFd = 200;

    fn give_to(&self, command: &mut Command) {
        let last = Self::FIRST + self.descriptors.len() as RawFd - 1;
        command.env("MEMLODE_COUNT_REGION", format!("{}-{last}:{}", Self::FIRST, self.name));
        let others = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
        let mut preload = self.library.as_os_str().to_owned();
        if let Some(others) = others {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        let descriptors = self.descriptors.to_vec();
        let give = move || {
            for (number, descriptor) in (Self::FIRST..).zip(&descriptors) {
                // SAFETY: both are numbers. The copy is inherited by the program.
                if unsafe { libc::dup2(*descriptor, number) } < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: duplicating descriptors is one system call each, and touches no memory.
        unsafe { command.pre_exec(give) };
    }
}

/// When a run is given up.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits<'a> {
    /// Set to stop.
    pub stop: &'a StopFlag,
    /// A run that takes longer is ended, and is an error.
    pub longest: Duration,
}

/// The times of one run, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// From the start to the end of the program, by the clock on the wall.
    pub wall: f64,
    /// CPU time of the program and of the processes that it waited for.
    pub cpu: f64,
    /// The part of `cpu` in which these ran in user space.
    pub user: f64,
    /// The part of `wall` in which the program's main thread could run but had no processor; 0
    /// where the kernel does not report it.
    pub queued: f64,
    /// Processes of it that still run, and are not in any of this.
    pub left_behind: bool,
}

impl Launch {
    /// The words of the command as one would type them.
    pub fn text(&self) -> String {
        shell_words::join(self.words.iter().map(|word| word.to_string_lossy()))
    }

    /// Runs the program once.
    ///
    /// # Errors
    /// If it cannot be started, does not end with success or in time, or it is stopped.
    pub fn run(&self, layout: AddressLayout, limits: RunLimits<'_>) -> Result<Sample, Error> {
        self.finish(self.start(layout, None)?, limits)
    }

    /// Starts the program, which may count a region of its own.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, layout: AddressLayout, region: Option<&CountedRegion<'_>>) -> Result<Started, Error> {
        let mut command = self.command(layout)?;
        if let Some(region) = region {
            region.give_to(&mut command);
        }
        let started = Instant::now();
        let child = command.spawn().map_err(|source| Error::NotStarted {
            program: self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default(),
            source,
        })?;
        Ok(Started { pid: Pid::from_child(&child), at: started })
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// If it does not end with success or in time, or it is stopped.
    pub fn finish(&self, started: Started, limits: RunLimits<'_>) -> Result<Sample, Error> {
        let Started { pid, at } = started;
        let Ended { status, wall, cpu, user, queued } = finish(pid, at, &self.text(), limits)?;
        let how = match (status.code(), status.signal()) {
            (Some(0), _) => {
                let left_behind = rustix::process::test_kill_process_group(pid).is_ok();
                return Ok(Sample { wall, cpu, user, queued, left_behind });
            }
            (Some(code), _) => format!("exited with status {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        };
        Err(Error::Failed { command: self.text(), how })
    }

    pub(crate) fn command(&self, layout: AddressLayout) -> Result<Command, Error> {
        let (program, arguments) =
            self.words.split_first().ok_or_else(|| Error::Usage("a command has no words".into()))?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).env_remove(PADDING);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(value) = layout.value() {
            command.env(PADDING, value);
        }
        command.stdin(match &self.input {
            None => Stdio::null(),
            Some(path) => {
                File::open(path).map_err(|source| Error::File { path: path.clone(), source })?.into()
            }
        });
        if self.output == Output::Discarded {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        if !layout.randomised {
            fix_addresses(&mut command);
        }
        Ok(command)
    }
}

/// Runs a command at the same addresses each time. Where the system forbids it (a container may),
/// they stay random.
pub fn fix_addresses(command: &mut Command) {
    // SAFETY: personality is one system call and touches no memory of this process.
    unsafe { command.pre_exec(fixed_addresses) };
}

fn fixed_addresses() -> std::io::Result<()> {
    // SAFETY: takes and returns a number.
    unsafe {
        let now = libc::personality(0xffff_ffff);
        if now >= 0 {
            libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
    }
    Ok(())
}

/// Returns whether programs can be run at fixed addresses here.
pub fn can_fix_addresses() -> bool {
    let mut command = Command::new("/proc/self/exe");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let refused = || {
        // SAFETY: as in `fixed_addresses`.
        let answer = unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        // Only a number of the system's comes back from there.
        Err(std::io::Error::from_raw_os_error(if answer < 0 { libc::EPERM } else { libc::ECANCELED }))
    };
    // SAFETY: as in `fixed_addresses`; the child never comes to run a program.
    unsafe { command.pre_exec(refused) };
    command.spawn().is_err_and(|error| error.raw_os_error() == Some(libc::ECANCELED))
}

/// A program that was started has ended.
pub(crate) struct Ended {
    /// How.
    pub status: ExitStatus,
    /// Seconds since it was started.
    pub wall: f64,
    /// Seconds of CPU time, of it and of the children that it waited for.
    pub cpu: f64,
    /// The part of that in user space.
    pub user: f64,
    /// Seconds in which its main thread waited for a processor.
    pub queued: f64,
}

/// Waits for a program that leads its own process group, and reaps it. If it does not end in time,
/// or is not waited for any more, its group is killed.
pub(crate) fn finish(
    pid: Pid,
    started: Instant,
    command: &str,
    limits: RunLimits<'_>,
) -> Result<Ended, Error> {
    let ended = wait(pid, started, limits);
    let wall = started.elapsed().as_secs_f64();
    if ended.is_err() {
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let queued = queued(pid);
    let (status, cpu, user) = reap(pid)?;
    ended.map_err(|why| match why {
        GivenUp::Stopped => Error::Interrupted,
        GivenUp::TooLong => Error::TooLong { command: command.into(), seconds: limits.longest.as_secs_f64() },
        GivenUp::System(source) => Error::System { doing: "cannot wait for the program", source },
    })?;
    Ok(Ended { status, wall, cpu, user, queued })
}

enum GivenUp {
    Stopped,
    TooLong,
    System(std::io::Error),
}

/// Until the program has ended, without taking its remains away.
fn wait(pid: Pid, started: Instant, limits: RunLimits<'_>) -> Result<(), GivenUp> {
    let pidfd: OwnedFd =
        pidfd_open(pid, PidfdFlags::empty()).map_err(|error| GivenUp::System(error.into()))?;
    loop {
        if limits.stop.load(Ordering::Relaxed) {
            return Err(GivenUp::Stopped);
        }
        let left = limits.longest.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(GivenUp::TooLong);
        }
        // A signal that sets `stop` interrupts this; one that came just before waits for the end of the time.
        let slice = left.min(Duration::from_millis(200));
        let slice = Timespec { tv_sec: 0, tv_nsec: slice.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)], Some(&slice)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(GivenUp::System(error.into())),
        }
    }
}

/// Lets a process that runs already go on until the time is over, it ends, or the measurement is
/// stopped. Returns the seconds that passed.
///
/// # Errors
/// If it was stopped before, or the process cannot be waited for.
pub fn pass(pid: u32, time: Duration, stop: &StopFlag) -> Result<f64, Error> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let none = || Error::Usage(format!("there is no process {pid}"));
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(none)?;
    let started = Instant::now();
    match wait(pid, started, RunLimits { stop, longest: time }) {
        // The process ended before it could be waited for.
        Err(GivenUp::System(error)) if error.raw_os_error() == Some(libc::ESRCH) => {}
        Err(GivenUp::System(source)) => {
            return Err(Error::System { doing: "cannot wait for the process", source });
        }
        Ok(()) | Err(GivenUp::Stopped | GivenUp::TooLong) => {}
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds in which the main thread of a process waited for a processor.
fn queued(pid: Pid) -> f64 {
    let text =
        std::fs::read_to_string(format!("/proc/{}/schedstat", pid.as_raw_nonzero())).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Reaps an ended child: its status, its CPU time and that of the children it waited for, and the
/// part of that in user space.
fn reap(pid: Pid) -> Result<(ExitStatus, f64, f64), Error> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, and zeros are valid ones.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both point to variables that live here.
        let got = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
        if got == pid.as_raw_nonzero().get() {
            break;
        }
        let source = std::io::Error::last_os_error();
        if source.kind() != std::io::ErrorKind::Interrupted {
            return Err(Error::System { doing: "cannot wait for the program", source });
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let user = seconds(usage.ru_utime);
    Ok((ExitStatus::from_raw(status), user + seconds(usage.ru_stime), user))
}
