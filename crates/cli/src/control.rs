//! The recorded part of a run: set by options, and changed by `memlode ctl` and a signal.
//!
//! There is a second socket beside the collector's, in the directory that only this user can enter.
//! A client sends one line, `PID COMMAND ARGUMENTS`, and gets one line back: `no` if the process is
//! not recorded here, else `ok` or `error` and a sentence.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_collect::private::PREFIX;
use memlode_collect::{MOST_REGIONS_BYTES, Options, Switch};
use memlode_report::text::{bytes, count};
use memlode_trace::manifest::{Burst, ManifestInfo};

use crate::args::numbers;
use crate::args::times::{burst_text, duration_text, parse_burst, parse_duration};

/// The heading of these options in `--help`.
pub const PART: &str = "Recording a part of the run";

/// Which part of a run is recorded.
#[derive(Debug, Parser)]
pub struct ControlArgs {
    /// Record in bursts: 1% records 1% of the time, 5ms/500ms means 5 ms in every 500 ms
    #[arg(long, value_name = "CYCLE", value_parser = parse_burst)]
    burst: Option<Burst>,
    /// Record only between memlode_start("NAME") and memlode_stop("NAME") of <memlode.h>; may be given several times
    #[arg(long, hide_short_help = true, help_heading = PART, value_name = "NAME", value_parser = parse_region)]
    region: Vec<String>,
    /// Begin recording after this time, as in 1.5s
    #[arg(long, hide_short_help = true, help_heading = PART, value_name = "TIME", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// Record for this time only
    #[arg(long, hide_short_help = true, help_heading = PART, value_name = "TIME", value_parser = parse_duration)]
    r#for: Option<Duration>,
    /// Stop recording soon after this number of accesses; the program goes on
    #[arg(long, hide_short_help = true, help_heading = PART, value_name = "ACCESSES", value_parser = numbers::count)]
    stop_after: Option<u64>,
    /// Begin recording when `memlode ctl PID start` or --signal says so
    #[arg(long, hide_short_help = true, help_heading = PART)]
    paused: bool,
    /// This signal, sent to memlode, stops and starts recording, and does not go to the program: HUP, USR1, USR2 or WINCH
    #[arg(long, hide_short_help = true, help_heading = PART, value_name = "SIGNAL", value_parser = parse_signal)]
    signal: Option<i32>,
}

impl ControlArgs {
    /// Passes it to the collector.
    pub fn apply(&self, options: &mut Options) -> Result<()> {
        let bytes: usize = self.region.iter().map(|name| name.len() + 1).sum();
        if bytes > MOST_REGIONS_BYTES {
            bail!(
                "the names given by --region have {bytes} bytes with an end to each; at most {MOST_REGIONS_BYTES} fit"
            );
        }
        options.burst = self.burst;
        options.regions.clone_from(&self.region);
        options.delay = self.delay.unwrap_or_default();
        options.length = self.r#for;
        options.most_accesses = self.stop_after;
        Ok(())
    }

    /// Adds it to the trace's manifest.
    pub fn describe(&self, info: ManifestInfo) -> ManifestInfo {
        let mut only = Vec::new();
        if !self.region.is_empty() {
            only.push(format!(
                "only what was done in these regions was recorded: {}",
                self.region.join(", ")
            ));
        }
        if let Some(delay) = self.delay {
            only.push(format!("recording began after {}", duration_text(delay)));
        }
        if let Some(length) = self.r#for {
            only.push(format!("recording ended after {}", duration_text(length)));
        }
        if let Some(accesses) = self.stop_after {
            only.push(format!("recording was to end after {} accesses", count(accesses)));
        }
        if self.paused {
            only.push("recording began when the user started it".to_owned());
        }
        ManifestInfo { burst: self.burst, only, ..info }
    }

    /// Returns whether recording is off now and then, or may be.
    pub fn has_gaps(&self) -> bool {
        self.burst.is_some()
            || !self.region.is_empty()
            || self.delay.is_some()
            || self.signal.is_some()
            || self.paused
    }

    /// Returns whether recording waits for the user's command.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The signal that stops and starts recording.
    pub fn signal(&self) -> Option<i32> {
        self.signal
    }
}

fn parse_region(name: &str) -> Result<String, String> {
    match name.len() {
        0 => Err("a region has a name".into()),
        1..=63 => Ok(name.to_owned()),
        _ => Err("a region's name has at most 63 bytes".into()),
    }
}

fn parse_signal(name: &str) -> Result<i32, String> {
    use signal_hook::consts::{SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};
    let signals = [SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];
    let named = |signal: &i32| {
        signal_hook::low_level::signal_name(*signal)
            .is_some_and(|full| full == name || full.strip_prefix("SIG") == Some(name))
    };
    signals.into_iter().find(named).ok_or_else(|| "expected HUP, USR1, USR2 or WINCH".to_owned())
}

/// Listens to `memlode ctl` as long as it lives.
pub struct Server {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Name of the socket, beside the collector's.
const NAME: &str = "control";
/// Time in which a client must send its line, and read the reply.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest line.
const LONGEST: u64 = 256;

impl Server {
    /// Opens a socket in the directory of the collector's.
    pub fn start(collector: &Path, switch: Switch) -> Result<Server> {
        let path = collector.with_file_name(NAME);
        let listen = || -> std::io::Result<UnixListener> {
            let listener = UnixListener::bind(&path)?;
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        let listener = listen().with_context(|| format!("cannot open a socket at {}", path.display()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // A client that goes away needs no answer.
                let _ = client.and_then(|client| serve(client, &switch));
            }
        });
        Ok(Server { path, stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn serve(client: UnixStream, switch: &Switch) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&client).take(LONGEST)).read_line(&mut line)?;
    let answer = answer(&line, switch);
    (&client).write_all(format!("{answer}\n").as_bytes())
}

fn answer(line: &str, switch: &Switch) -> String {
    let mut words = line.split_whitespace();
    let pid: Option<u32> = words.next().and_then(|pid| pid.parse().ok());
    if pid.is_none_or(|pid| pid != std::process::id() && !switch.pids().contains(&pid)) {
        return "no".into();
    }
    let words: Vec<&str> = words.collect();
    match words[..] {
        ["start"] => {
            switch.record(true);
            if let Some(why) = switch.obstacle() {
                return format!("error recording does not start: {why}");
            }
        }
        ["stop"] => switch.record(false),
        ["toggle"] => switch.toggle(),
        ["burst", "off"] => switch.set_burst(None),
        ["burst", cycle] => match parse_burst(cycle) {
            Ok(burst) => switch.set_burst(Some(burst)),
            Err(why) => return format!("error {why}"),
        },
        ["status"] => {}
        _ => return "error it knows start, stop, toggle, burst and status".into(),
    }
    format!("ok {}", status(switch))
}

fn status(switch: &Switch) -> String {
    let why = switch.why_off();
    let state =
        if why.is_empty() { "recording".into() } else { format!("not recording: {}", why.join(", ")) };
    let burst =
        switch.burst().map_or(String::new(), |burst| format!("; in bursts of {}", burst_text(&burst)));
    let regions = switch.regions();
    let within =
        if regions.is_empty() { String::new() } else { format!(" in the regions {}", regions.join(", ")) };
    let stats = switch.stats();
    format!(
        "{state}{within}{burst}; {} accesses in {} of {} threads of {} processes so far",
        count(stats.accesses),
        bytes(stats.bytes),
        stats.threads,
        stats.processes,
    )
}

/// Sends a command to the memlode that records a process. Returns its sentence.
pub fn send(pid: u32, command: &[String]) -> Result<String> {
    let parents = [std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), Some(std::env::temp_dir())];
    for parent in parents.into_iter().flatten() {
        let entries = fs::read_dir(&parent).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            if !is_ours(&entry.path()) {
                continue;
            }
            let Some(answer) = ask(&entry.path().join(NAME), pid, command) else { continue };
            match answer.split_once(' ') {
                Some(("ok", sentence)) => return Ok(sentence.to_owned()),
                Some(("error", why)) => bail!("{why}"),
                _ => {} // records others
            }
        }
    }
    bail!(
        "process {pid} is not being recorded by you: expected the number of a process under `memlode run` or `record`, \
         or of that memlode"
    )
}

/// Returns whether a directory, and no link, belongs to this user, and no other user can enter it.
fn is_ours(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
    })
}

fn ask(socket: &Path, pid: u32, command: &[String]) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("{pid} {}\n", command.join(" ")).as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream.take(4 * LONGEST)).read_line(&mut answer).ok()?;
    Some(answer.trim_end().to_owned())
}
