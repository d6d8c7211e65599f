//! Choices of what is recorded of a program: regions, a stretch of it, and as `memlode ctl` and a signal say.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, shared_folder, stderr, stdout};

/// Does what the letters of its argument say, or of its input if it has none, and echoes them: a, b and c go over an
/// array each; capital letters do so in a region, R in another one, and t has a thread do what b does.
const PROGRAM: &str = r#"
#include <memlode.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long a[1000], b[1000], c[1000];

__attribute__((noinline)) static void do_a(void) { for (int i = 0; i < 1000; i++) a[i]++; }
__attribute__((noinline)) static void do_b(void) { for (int i = 0; i < 1000; i++) b[i]++; }
__attribute__((noinline)) static void do_c(void) { for (int i = 0; i < 1000; i++) c[i]++; }
static void *do_thread(void *unused) { do_b(); return unused; }

static void do_one(char what) {
  pthread_t thread;
  switch (what) {
  case 'a': do_a(); break;
  case 'b': do_b(); break;
  case 'c': do_c(); break;
  case 'A': memlode_start("one"); do_a(); memlode_stop("one"); break;
  case 'B': memlode_start("one"); do_b(); memlode_stop("one"); break;
  case 'R': memlode_start("other"); do_c(); memlode_stop("other"); break;
  case 't':
    pthread_create(&thread, 0, do_thread, 0);
    pthread_join(thread, 0);
    break;
  }
}

int main(int argc, char **argv) {
  char what;
  if (argc > 1)
    for (const char *at = argv[1]; *at; at++)
      do_one(*at);
  else
    while (read(0, &what, 1) == 1) {
      do_one(what);
      write(1, &what, 1);
    }
  return 0;
}
"#;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("letters");
        fs::write(folder.join("letters.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(&folder)
            .args(["cc", "-O2", "-pthread", "letters.c", "-o", "letters"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        folder
    };
    BUILT.get_or_init(build)
}

/// Returns how often each of the arrays was touched, and the report.
fn touched(trace: &Path) -> ([u64; 3], Value) {
    let check = memlode().arg("check").arg(trace).output().expect("memlode runs");
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
    let output =
        memlode().arg("report").arg(trace).args(["--json", "-m", "generic"]).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let of = |array: &str| {
        let lines = report["lines"].as_array().expect("lines").iter();
        lines.filter(|row| row["variable"] == array).filter_map(|row| row["accesses"].as_u64()).sum()
    };
    (["a", "b", "c"].map(of), report)
}

fn record(options: &[&str], letters: &str) -> ([u64; 3], Value) {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let output = memlode()
        .args(["record", "-o"])
        .arg(&trace)
        .args(options)
        .arg("--")
        .arg(program().join("letters"))
        .arg(letters)
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    touched(&trace)
}

#[test]
fn a_region_has_its_own_accesses_only() {
    assert_eq!(record(&[], "aBRc").0, [2000, 2000, 4000]);
    let (counts, report) = record(&["--region", "one"], "aBRcBa");
    assert_eq!(counts, [0, 4000, 0]);
    let notes = report["trace"]["notes"].to_string();
    assert!(notes.contains("only what was done in these regions was recorded: one"), "{notes}");
    // What was chosen is no sample: it has no errors.
    let sample = &report["trace"]["sample"];
    assert_eq!((&sample["runs"], &sample["burst"]), (&2.into(), &Value::Null), "{sample}");
    assert!(sample["levels"][0]["miss_ratio"]["standard_error"].is_null());
    assert_eq!(record(&["--region", "one", "--region", "other"], "aBRc").0, [0, 2000, 2000]);
}

#[test]
fn a_thread_in_no_region_is_recorded_while_another_is_in_one() {
    // The thread is over before the region begins, or it begins within it.
    assert_eq!(record(&["--region", "one"], "tAt").0, [2000, 0, 0]);
}

#[test]
fn the_header_alone_does_nothing() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/include");
    let folder = TempDir::new().expect("a temporary folder");
    for language in ["c", "c++"] {
        let mut compiler = Command::new("clang-22");
        compiler.args(["-O2", "-Wall", "-Wno-unused-result", "-Werror", "-pthread", "-x", language]);
        compiler
            .arg("-I")
            .arg(&include)
            .arg(program().join("letters.c"))
            .arg("-o")
            .arg(folder.path().join("plain"));
        let built = compiler.output().expect("clang-22");
        assert!(built.status.success(), "{}", stderr(&built));
        let run = Command::new(folder.path().join("plain")).arg("ABRt").status().expect("it runs");
        assert!(run.success());
    }
}

#[test]
fn a_stretch_of_time_that_never_comes_is_told() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = memlode()
        .current_dir(folder.path())
        .args(["run", "--delay", "1000s", "-o", "t", "--"])
        .arg(program().join("letters"))
        .arg("abc")
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(
        &output,
        &["recording began after 1000s, and the program ran for 0.", "`memlode run -- "],
    );
}

#[test]
fn recording_ends_after_so_many_accesses() {
    // Several rings full of words: the program cannot be over before the first ones were counted.
    let letters = "a".repeat(120_000);
    let ([a, _, _], _) = record(&["--stop-after", "10000"], &letters);
    assert!((10_000..240_000_000).contains(&a), "{a}");
}

const SWITCHED: &str = "recording was stopped, started or set to other bursts";

/// A recorded program that waits for letters.
struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    fn start(options: &[&str]) -> Running {
        let folder = TempDir::new().expect("a temporary folder");
        let child = Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
            .args(["record", "-o"])
            .arg(folder.path().join("trace"))
            .args(options)
            .arg("--")
            .arg(program().join("letters"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("memlode runs");
        let mut running = Running { child, folder };
        running.type_in(" "); // it is there now
        running
    }

    /// Returns when the program is done with them.
    fn type_in(&mut self, letters: &str) {
        let (input, output) = (self.child.stdin.as_mut(), self.child.stdout.as_mut());
        input.expect("a pipe").write_all(letters.as_bytes()).expect("the program reads");
        let mut echo = vec![0; letters.len()];
        std::io::Read::read_exact(output.expect("a pipe"), &mut echo).expect("the program answers");
    }

    fn try_ctl(&self, command: &[&str]) -> Output {
        let pid = self.child.id().to_string();
        memlode().arg("ctl").arg(pid).args(command).output().expect("memlode runs")
    }

    fn ctl(&self, command: &[&str]) -> String {
        let output = self.try_ctl(command);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    /// Sends the signal, and waits until it is heard.
    fn toggle(&self, state: &str) {
        let kill = Command::new("kill").arg("-USR1").arg(self.child.id().to_string()).status();
        assert!(kill.expect("kill").success());
        let start = Instant::now();
        while !self.ctl(&["status"]).starts_with(state) {
            assert!(start.elapsed() < Duration::from_secs(300), "{state} does not come");
        }
    }

    fn finish(mut self) -> ([u64; 3], Value) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
        touched(&self.folder.path().join("trace"))
    }
}

#[test]
fn recording_is_stopped_and_started_while_the_program_runs() {
    let mut running = Running::start(&[]);
    assert!(running.ctl(&["status"]).starts_with("recording; "));
    running.type_in("a");
    assert!(running.ctl(&["stop"]).starts_with("not recording: stopped by the user"));
    running.type_in("bb");
    assert!(running.ctl(&["start"]).starts_with("recording; "));
    running.type_in("ct");
    assert!(running.ctl(&["burst", "5ms/500ms"]).contains("in bursts of 5000us/500000us"));
    assert!(!running.ctl(&["burst", "off"]).contains("in bursts of"));
    let (counts, report) = running.finish();
    assert_eq!(counts, [2000, 2000, 2000]);
    assert!(report["trace"]["notes"].to_string().contains(SWITCHED), "{}", report["trace"]);
}

#[test]
fn a_signal_stops_and_starts_it() {
    let mut running = Running::start(&["--signal", "USR1"]);
    running.toggle("not recording: stopped by the user");
    running.type_in("a");
    running.toggle("recording; ");
    running.type_in("b");
    assert_eq!(running.finish().0, [0, 2000, 0]);
}

/// Reports say of a duty cycle what holds only if it was kept.
#[test]
fn a_duty_cycle_that_the_user_changed_is_none() {
    for (commands, is_kept) in [
        (&[&["start"][..], &["burst", "5ms/10ms"]][..], true),
        (&[&["burst", "off"], &["burst", "5ms/10ms"]], false),
        (&[&["stop"], &["start"]], false),
    ] {
        let mut running = Running::start(&["--burst", "5ms/10ms"]);
        for command in commands {
            running.ctl(command);
        }
        for _ in 0..20 {
            running.type_in(&"abc".repeat(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        let (_, report) = running.finish();
        let trace = &report["trace"];
        assert_eq!(trace["notes"].to_string().contains(SWITCHED), !is_kept, "{commands:?}: {trace}");
        if !trace["sample"].is_null() {
            assert_eq!(trace["sample"]["burst"].is_null(), !is_kept, "{commands:?}: {trace}");
            assert_eq!(trace["sample"]["access_share"].is_null(), !is_kept, "{commands:?}: {trace}");
        }
    }
}

#[test]
fn who_is_not_recorded_is_told() {
    let output = memlode().args(["ctl", "1", "stop"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["process 1 is not being recorded by you"]);
}

/// Nothing is recorded until it is started, and nothing is lost of what its start brings.
#[test]
fn a_paused_recording_waits_for_its_start() {
    let mut running = Running::start(&["--paused"]);
    assert!(running.ctl(&["status"]).starts_with("not recording: stopped by the user"));
    running.type_in("a");
    assert!(running.ctl(&["start"]).starts_with("recording; "));
    running.type_in("bb");
    let (counts, report) = running.finish();
    assert_eq!(counts, [0, 4000, 0]);
    let notes = report["trace"]["notes"].to_string();
    assert!(notes.contains("recording began when the user started it"), "{notes}");
}

#[test]
fn a_start_that_starts_nothing_says_why() {
    for (options, why) in [
        (&["--delay", "1000s"][..], "the time of --delay is not over"),
        (&["--for", "1us"], "the time of --for or the accesses of --stop-after are over"),
    ] {
        let mut running = Running::start(options);
        running.type_in("a");
        let start = Instant::now();
        loop {
            let output = running.try_ctl(&["start"]);
            if output.status.code() == Some(1) {
                assert_one_sentence(&output, &["recording does not start", why]);
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{}", stdout(&output));
        }
        drop(running.child.stdin.take());
        running.child.wait().expect("it ends");
    }
    let mut running = Running::start(&["--region", "one"]);
    running.type_in("a");
    assert!(running.ctl(&["start"]).starts_with("recording in the regions one; "));
    running.type_in("A");
    running.finish();
}
