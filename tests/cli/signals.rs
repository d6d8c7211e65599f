//! Ctrl-C, TERM and HUP: the program's while it runs, and an end to `memlode run` afterwards, with the trace kept.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{installation, memlode, shared_folder, stderr, stdout};

/// Prints its number. `catch`: counts interrupts until half a second after the first. `leave`: a
/// child lives on. Then it makes enough accesses for seconds of simulation.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts;
static unsigned long table[1 << 20];

static void count(int signal) { (void)signal; interrupts++; }

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "catch")) signal(SIGINT, count);
  if (!strcmp(what, "leave") && fork() == 0) {
    close(1);
    close(2);
    for (int i = 0; i < 30000; i++) { table[i]++; usleep(1000); }
    _exit(0);
  }
  printf("%d\n", getpid());
  fflush(stdout);
  if (!strcmp(what, "catch")) {
    for (int i = 0; i < 2000 && !interrupts; i++) usleep(10000);
    for (int i = 0; i < 50; i++) usleep(10000);
    printf("%d interrupts\n", interrupts);
  }
  for (unsigned long i = 0, at = 1; i < 20000000; i++)
    table[(at = at * 6364136223846793005 + 1442695040888963407) >> 44]++;
  return 0;
}
"#;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("long");
        fs::write(folder.join("long.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(&folder)
            .args(["cc", "-O2", "long.c", "-o", "long"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        folder
    };
    BUILT.get_or_init(build)
}

/// The time within which everything ends, even on a busy machine: a test that takes longer hangs.
/// Memlode's status shows whether it ended because of the signal or because it was done.
const LONG: Duration = Duration::from_secs(600);

/// Pauses between the end of the program and a signal. What is sent before memlode knows of the end is the program's, and memlode
/// goes on to its own end: then the next pause is tried.
const PAUSES: [u64; 5] = [50, 100, 200, 400, 800];

/// Restores default signals: the runner of the tests may ignore some, which every program would
/// inherit.
fn with_usual_signals(binary: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM,HUP").arg(binary);
    command
}

/// The number of the program, which comes first.
fn number(reader: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("the program says its number");
    line.trim().to_owned()
}

/// Waits until memlode has seen the end of the program, and a pause longer.
fn wait_for_end(pid: &str, pause: u64) {
    let start = Instant::now();
    while Path::new("/proc").join(pid).exists() {
        assert!(start.elapsed() < LONG, "{pid} does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(pause));
}

/// Runs it, sends memlode a signal when the program has ended, and returns memlode's status, its
/// output, and its number.
fn interrupted(folder: &Path, words: &[&str], argument: &str, signal: &str) -> (Option<i32>, String, u32) {
    let (last, sooner) = PAUSES.split_last().expect("pauses");
    for pause in sooner {
        let found = interrupted_after(*pause, folder, words, argument, signal);
        if found.0 != Some(0) {
            return found;
        }
        let _ = fs::remove_dir_all(folder.join("t"));
    }
    interrupted_after(*last, folder, words, argument, signal)
}

fn interrupted_after(
    pause: u64,
    folder: &Path,
    words: &[&str],
    argument: &str,
    signal: &str,
) -> (Option<i32>, String, u32) {
    let mut memlode = with_usual_signals(assert_cmd::cargo::cargo_bin!("memlode"))
        .args(words)
        .arg("--")
        .arg(program().join("long"))
        .arg(argument)
        .current_dir(folder)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("memlode runs");
    let mut out = BufReader::new(memlode.stdout.take().expect("piped"));
    wait_for_end(&number(&mut out), pause);
    let pid = memlode.id();
    let sent =
        Command::new("kill").args(["-s", signal, "--", &format!("-{pid}")]).status().expect("kill runs");
    assert!(sent.success());
    let status = ended(&mut memlode);
    let mut text = String::new();
    memlode.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    (status, text, pid)
}

fn ended(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return status.code();
        }
        if start.elapsed() > LONG {
            let _ = child.kill();
            panic!("memlode goes on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn assert_whole(trace: &Path) {
    let output = memlode().arg("check").arg(trace).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("whole: 40.0 M accesses"), "{}", stdout(&output));
}

#[test]
fn a_simulation_is_ended_and_its_trace_is_kept() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = TempDir::new().expect("a temporary folder");
        let (code, text, _) = interrupted(folder.path(), &["run", "--sim", "-o", "t"], "", signal);
        assert_eq!(code, Some(status), "{text}");
        assert_eq!(text, "memlode: trace kept in t: `memlode report t`\n");
        assert_whole(&folder.path().join("t"));
    }
}

#[test]
fn a_live_simulation_is_ended_and_its_trace_is_kept_if_it_has_a_place() {
    let folder = TempDir::new().expect("a temporary folder");
    let (code, text, _) = interrupted(folder.path(), &["run", "--live", "--sim", "-o", "t"], "", "INT");
    assert_eq!(code, Some(130), "{text}");
    assert_eq!(text, "memlode: trace kept in t: `memlode report t`\n");
    assert_whole(&folder.path().join("t"));
    let (code, text, _) = interrupted(folder.path(), &["run", "--live", "--sim"], "", "INT");
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("no trace is kept"), "{text}");
}

#[test]
fn a_trace_in_memory_is_copied_first_or_leaves_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    for (words, expected) in [
        (&["run", "--sim", "--to", "ram"][..], "no trace is kept"),
        (&["run", "--sim", "--to", "ram", "-o", "t"], "trace kept in t: `memlode report t`"),
    ] {
        let (code, text, pid) = interrupted(folder.path(), words, "", "INT");
        assert_eq!(code, Some(130), "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(!Path::new("/dev/shm").join(format!("memlode-{pid}-0")).exists(), "it was left");
    }
    assert_whole(&folder.path().join("t"));
}

#[test]
fn waiting_for_children_is_ended() {
    let folder = TempDir::new().expect("a temporary folder");
    let words = ["record", "--wait", "-o", "t"];
    let (code, text, _) = interrupted(folder.path(), &words, "leave", "HUP");
    assert_eq!(code, Some(129), "{text}");
    assert_eq!(text, "memlode: trace kept in t: `memlode report t`\n");
}

/// The terminal sends an interrupt to memlode and to the program: the program gets one, and memlode none while it runs.
#[test]
fn interrupts_from_a_terminal_are_first_the_programs_and_then_ours() {
    let ended = PAUSES.iter().any(|pause| {
        let folder = TempDir::new().expect("a temporary folder");
        let (code, text) = interrupted_at_a_terminal(folder.path(), *pause);
        if code == Some(0) {
            return false;
        }
        assert_eq!(code, Some(130), "{text}");
        assert!(text.contains("memlode: trace kept in t: `memlode report t`"), "{text}");
        assert_whole(&folder.path().join("t"));
        true
    });
    assert!(ended, "memlode is never interrupted");
}

/// Status and last words of a memlode that is interrupted by a key, first while its program runs and then after that.
fn interrupted_at_a_terminal(folder: &Path, pause: u64) -> (Option<i32>, String) {
    let memlode = assert_cmd::cargo::cargo_bin!("memlode");
    let line = format!("{} run --sim -o t -- {}/long catch", memlode.display(), program().display());
    let mut terminal = with_usual_signals("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(folder)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let mut keys = terminal.stdin.take().expect("piped");
    let mut screen = BufReader::new(terminal.stdout.take().expect("piped"));
    let pid = number(&mut screen);
    keys.write_all(b"\x03").expect("a key");
    let mut line = String::new();
    screen.read_line(&mut line).expect("the program speaks");
    assert_eq!(line.trim_end().trim_start_matches("^C"), "1 interrupts");
    wait_for_end(&pid, pause);
    keys.write_all(b"\x03").expect("a key");
    let status = ended(&mut terminal);
    let mut rest = String::new();
    screen.read_to_string(&mut rest).expect("text");
    (status, rest)
}
