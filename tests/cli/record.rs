//! `memlode run` and `memlode record`: the program behaves as usual, and the trace has its
//! accesses.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    assert_one_sentence, evidence, executables, installation, memlode, shared_folder, stderr, stdout,
};

/// Behaves as its first argument says.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item { long key; char payload[56]; };

static long counter;

static void on_term(int signal) { (void)signal; _exit(9); }

__attribute__((noinline)) static long sum(const struct item *items, long n) {
  __asm__ volatile("" ::: "memory"); // so that no two calls become one
  long total = 0;
  for (long i = 0; i < n; i++)
    total += items[i].key; // the hot line
  return total;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "echo")) {
    for (int c; (c = getchar()) != EOF;) putchar(c);
    return 0;
  }
  long n = 100000;
  struct item *items = calloc(n, sizeof *items);
  for (int pass = 0; pass < 3; pass++)
    counter += sum(items, n);
  printf("%ld\n", counter);
  if (!strcmp(what, "scatter")) // addresses that pack badly: many chunks
    for (unsigned long i = 0, at = 1; i < 200000; i++)
      items[(at = at * 6364136223846793005 + 1442695040888963407) % n].key += at >> 40;
  if (!strcmp(what, "exit")) return 42;
  if (!strcmp(what, "_exit")) _exit(43);
  if (!strcmp(what, "abort")) abort();
  if (!strcmp(what, "kill")) kill(getpid(), SIGKILL);
  if (!strcmp(what, "crash")) *(volatile int *)8 = 1;
  if (!strcmp(what, "wait")) {
    signal(SIGTERM, on_term);
    puts("ready");
    fflush(stdout);
    for (;;) { counter++; usleep(1000); }
  }
  free(items);
  return 0;
}
"#;

/// The program above, compiled by `memlode cc`, once for all tests.
pub fn program() -> &'static Path {
    static PROGRAM_FILE: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("prog");
        fs::write(folder.join("prog.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(&folder)
            .args(["cc", "-O2", "prog.c", "-o", "prog"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        folder.join("prog")
    };
    PROGRAM_FILE.get_or_init(build)
}

/// A recorded run of it that ended well, to be copied by tests that damage it.
pub fn trace() -> &'static Path {
    static TRACE: OnceLock<PathBuf> = OnceLock::new();
    let record = || {
        let folder = shared_folder("trace");
        let output = run(&folder, &["record", "-o", "trace", "--"], &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        folder.join("trace")
    };
    TRACE.get_or_init(record)
}

/// The same with a thread of many chunks.
pub fn long_trace() -> &'static Path {
    static TRACE: OnceLock<PathBuf> = OnceLock::new();
    let record = || {
        let folder = shared_folder("long-trace");
        let output = run(&folder, &["record", "-o", "trace", "--"], &["scatter"]);
        assert!(output.status.success(), "{}", stderr(&output));
        folder.join("trace")
    };
    TRACE.get_or_init(record)
}

fn run(folder: &Path, ours: &[&str], arguments: &[&str]) -> Output {
    memlode().current_dir(folder).args(ours).arg(program()).args(arguments).output().expect("memlode runs")
}

fn report(directory: &Path) -> Value {
    let output = memlode()
        .arg("report")
        .arg(directory)
        .args(["--json", "-m", "generic"])
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

#[test]
fn one_go_from_program_to_field_and_line() {
    let folder = folder();
    let output = run(folder.path(), &["run", "-m", "generic", "-o", "t", "--"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "0\n", "the program's output is its own");
    let text = stderr(&output);
    for part in ["item.key", "prog.c:18 sum", "in memory allocated at prog.c", "100% miss L1d"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }

    let report = report(&folder.path().join("t"));
    let first = &report["findings"][0];
    assert_eq!((&first["type"], &first["member"]), (&"item".into(), &"key".into()));
    assert_eq!(first["line"], 18);
    // 6.4 MB do not fit the second level; every structure is a line of its own.
    assert_eq!(first["accesses"], 300_000);
    assert_eq!(first["misses"]["L1d"], 300_000);
    assert_eq!(first["misses"]["L2"], 300_000);
    let object = &evidence(first, "objects")["objects"][0];
    assert_eq!((&object["kind"], &object["bytes"]), (&"heap".into(), &6_400_000.into()));
    assert_eq!(report["trace"]["complete"], true);
}

#[test]
fn json_has_the_documented_shape() {
    let report = report(trace());
    assert_eq!(report["format"], "memlode report");
    assert_eq!(report["version"], 2);
    for table in ["findings", "lines", "fields", "types", "objects", "functions", "threads"] {
        assert!(!report[table].as_array().expect(table).is_empty(), "{table}");
    }
    let coverage = &report["coverage"];
    for share in ["line", "variable_or_type", "member", "object"] {
        let share = coverage[share].as_f64().expect(share);
        assert!((0.0..=1.0).contains(&share));
    }
    assert_eq!(coverage["accesses"], report["total"]["accesses"]);
    let evidence: f64 =
        coverage["by_evidence"].as_object().expect("an object").values().filter_map(Value::as_f64).sum();
    assert!((evidence - 1.0).abs() < 1e-9, "every access has one kind of evidence: {evidence}");
    // Each table but the members' is a partition of all accesses.
    for table in ["lines", "objects", "functions", "threads"] {
        let sum: u64 =
            report[table].as_array().expect(table).iter().filter_map(|row| row["accesses"].as_u64()).sum();
        assert_eq!(report["total"]["accesses"], sum, "{table}");
    }
    let first = &report["machine"]["levels"][0];
    let asked = first["reads"].as_u64().expect("reads") + first["writes"].as_u64().expect("writes");
    assert_eq!(report["total"]["accesses"], asked);
}

#[test]
fn every_end_of_a_program_is_passed_on_and_leaves_its_trace() {
    for (how, status) in [("exit", 42), ("_exit", 43), ("abort", 134), ("kill", 137), ("crash", 139)] {
        let folder = folder();
        let output = run(folder.path(), &["record", "-o", "t", "--"], &[how]);
        assert_eq!(output.status.code(), Some(status), "{how}: {}", stderr(&output));
        let report = report(&folder.path().join("t"));
        let hot = report["lines"].as_array().expect("lines").iter().find(|row| row["line"] == 18);
        assert_eq!(hot.expect("the hot line")["accesses"], 300_000, "{how}");
        if status > 128 {
            let notes = report["trace"]["notes"].to_string();
            assert!(notes.contains(&format!("signal {}", status - 128)), "{how}: {notes}");
        }
    }
}

#[test]
fn the_program_may_stand_without_a_double_dash() {
    let folder = folder();
    let output = run(folder.path(), &["run", "--no-report", "-o", "t"], &["exit"]);
    assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
}

#[test]
fn standard_input_reaches_the_program() {
    let folder = folder();
    let output = memlode()
        .current_dir(folder.path())
        .args(["record", "-o", "t", "--"])
        .arg(program())
        .arg("echo")
        .write_stdin("one\ntwo\n")
        .output()
        .expect("memlode runs");
    assert_eq!(stdout(&output), "one\ntwo\n");
}

/// A memlode that waits for a program that waits.
struct Waiting {
    memlode: Child,
}

impl Waiting {
    fn start(folder: &Path) -> Waiting {
        let binary = assert_cmd::cargo::cargo_bin!("memlode");
        // Whoever runs the tests in the background may have us ignore interrupts, and every program that we start.
        let mut memlode = std::process::Command::new("env")
            .arg("--default-signal=INT")
            .arg(binary)
            .current_dir(folder)
            .args(["record", "-o", "t", "--"])
            .arg(program())
            .arg("wait")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("memlode runs");
        let mut lines = String::new();
        let stdout = memlode.stdout.as_mut().expect("piped");
        while !lines.contains("ready\n") {
            let mut byte = [0];
            std::io::Read::read_exact(stdout, &mut byte).expect("the program says that it is ready");
            lines.push(byte[0] as char);
        }
        Waiting { memlode }
    }

    fn signal(&self, signal: &str) {
        let pid = self.memlode.id().to_string();
        let status =
            std::process::Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs");
        assert!(status.success());
    }
}

#[test]
fn a_signal_to_memlode_is_one_to_the_program() {
    let folder = folder();
    let waiting = Waiting::start(folder.path());
    waiting.signal("TERM");
    let output = waiting.memlode.wait_with_output().expect("memlode ends");
    assert_eq!(output.status.code(), Some(9), "the program's handler chose this: {}", stderr(&output));
    assert_eq!(report(&folder.path().join("t"))["trace"]["complete"], true);
}

#[test]
fn a_signal_that_ends_the_program_ends_memlode_in_order() {
    let folder = folder();
    let waiting = Waiting::start(folder.path());
    waiting.signal("INT");
    let output = waiting.memlode.wait_with_output().expect("memlode ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let report = report(&folder.path().join("t"));
    assert!(report["trace"]["notes"].to_string().contains("signal 2"));
}

#[test]
fn what_a_killed_memlode_has_written_is_readable() {
    let folder = folder();
    let mut waiting = Waiting::start(folder.path());
    let directory = folder.path().join("t");
    let deadline = Instant::now() + Duration::from_secs(300);
    let written = || fs::metadata(directory.join("threads/p0000-t0000.mlt")).map_or(0, |file| file.len());
    while written() == 0 {
        assert!(Instant::now() < deadline, "nothing was written in 300 s");
        std::thread::sleep(Duration::from_millis(20));
    }
    let children = format!("/proc/{0}/task/{0}/children", waiting.memlode.id());
    let child = fs::read_to_string(children).expect("children").trim().to_string();
    waiting.signal("KILL");
    let status = waiting.memlode.wait().expect("memlode ends");
    assert_eq!(status.signal(), Some(9));

    // The program goes on without us.
    std::thread::sleep(Duration::from_millis(300));
    let state = fs::read_to_string(format!("/proc/{child}/stat")).expect("the program still runs");
    assert!(!state.contains(") Z "), "{state}");
    let killed = std::process::Command::new("kill").args(["-s", "KILL", &child]).status().expect("kill runs");
    assert!(killed.success());

    let report = report(&directory);
    assert_eq!(report["trace"]["complete"], false);
    assert!(report["trace"]["notes"].to_string().contains("recording did not finish"));
    let output = memlode().arg("check").arg(&directory).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
}

#[test]
fn without_a_collector_a_program_is_as_if_not_instrumented() {
    for collector in [None, Some("/nowhere/at/all")] {
        let mut command = Command::new(program());
        command.arg("exit").env_remove("MEMLODE_COLLECTOR");
        if let Some(path) = collector {
            command.env("MEMLODE_COLLECTOR", path);
        }
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(42));
        assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("0\n", ""));
    }
}

#[test]
fn a_trace_is_never_overwritten_unasked() {
    let folder = folder();
    assert!(run(folder.path(), &["record", "-o", "t", "--"], &[]).status.success());
    let output = run(folder.path(), &["record", "-o", "t", "--"], &[]);
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(&output, &["t exists", "choose another directory"]);
    assert_eq!(stdout(&output), "", "the program did not run");
    assert!(run(folder.path(), &["record", "-o", "t", "--force", "--"], &[]).status.success());

    fs::create_dir(folder.path().join("mine")).expect("a folder");
    fs::write(folder.path().join("mine/letter"), "dear").expect("a file");
    let output = run(folder.path(), &["record", "-o", "mine", "--force", "--"], &[]);
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(&output, &["mine exists"]);
    assert!(folder.path().join("mine/letter").exists());
}

#[test]
fn without_o_the_directory_is_named_after_the_program_and_numbered() {
    let folder = folder();
    for name in ["memlode-prog-trace", "memlode-prog-trace-2", "memlode-prog-trace-3"] {
        let output = run(folder.path(), &["record", "--"], &[]);
        assert!(stderr(&output).contains(&format!("`memlode report {name}`")), "{}", stderr(&output));
        assert!(folder.path().join(name).join("manifest.json").exists());
    }
}

#[test]
fn the_report_goes_where_it_is_told() {
    let folder = folder();
    let output = run(
        folder.path(),
        &["run", "-o", "t", "--json", "--report-to", "r.json", "-m", "generic", "--"],
        &[],
    );
    assert_eq!(stdout(&output), "0\n");
    assert!(!stderr(&output).contains("item.key"));
    let text = fs::read_to_string(folder.path().join("r.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["findings"][0]["member"], "key");
}

#[test]
fn discarding_leaves_nothing() {
    let folder = folder();
    let output = run(folder.path(), &["record", "--discard", "--"], &["exit"]);
    assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
    assert!(stderr(&output).contains("recorded and discarded"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn programs_that_cannot_run_have_the_shells_status() {
    let folder = folder();
    let plain = folder.path().join("plain");
    fs::write(&plain, "text").expect("a file");
    let script = folder.path().join("script");
    executables::write(&script, b"#!/no/such/interpreter\n");
    let blob = folder.path().join("blob");
    executables::write(&blob, &[0, 1, 2, 3]);
    for (program, status, words) in [
        ("no-such-program", 127, "there is no program no-such-program on the path"),
        ("./missing", 127, "there is no program ./missing"),
        ("plain", 127, "did you mean ./plain?"),
        ("./plain", 126, "chmod +x ./plain"),
        (".", 127, "there is no program"),
        ("./", 126, "is a directory"),
        ("./script", 127, "interpreter or loader"),
        ("./blob", 126, "neither a program"),
    ] {
        for command in ["run", "record"] {
            let output = memlode()
                .current_dir(folder.path())
                .args([command, "-o", "t", "--", program])
                .output()
                .expect("memlode runs");
            assert_eq!(output.status.code(), Some(status), "{program}: {}", stderr(&output));
            assert_one_sentence(&output, &[words]);
            assert!(!folder.path().join("t").exists(), "{program}: a trace of nothing was left");
        }
    }
}

#[test]
fn a_program_without_our_sections_is_told_how_to_get_them() {
    let folder = folder();
    let output = memlode()
        .current_dir(folder.path())
        .args(["run", "-o", "t", "--", "/bin/echo", "hello"])
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(stdout(&output), "hello\n");
    assert_one_sentence(&output, &["nothing that ran was built by memlode", "memlode cc"]);
    assert!(!folder.path().join("t").exists());
}

#[test]
fn dump_filters_and_ends_with_its_reader() {
    let dump = |arguments: &[&str]| {
        let output = memlode().arg("dump").arg(trace()).args(arguments).output().expect("memlode runs");
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (status, all, _) = dump(&[]);
    assert_eq!(status, Some(0));
    assert!(all.starts_with("#thread\tevent\tkind\t"));
    assert!(all.lines().count() > 300_000);
    let (_, some, _) = dump(&["-n", "5"]);
    assert_eq!(some.lines().collect::<Vec<_>>(), all.lines().take(6).collect::<Vec<_>>());
    let (_, one, _) = dump(&["--thread", "0.0", "-n", "2"]);
    assert_eq!(one.lines().count(), 3);
    let (status, _, why) = dump(&["--thread", "7"]);
    assert_eq!(status, Some(1));
    assert!(why.contains("there is no thread 7; the trace has 0.0"), "{why}");
    let (_, json, _) = dump(&["--json", "-n", "50"]);
    let events: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events.len(), 50);
    assert!(events.iter().any(|event| event["kind"] == "alloc" && event["bytes"] == 6_400_000));

    let (status, sites, _) = dump(&["--sites"]);
    assert_eq!(status, Some(0));
    assert!(sites.starts_with("#events\tkind\tbytes\tevidence\tplace\t"));
    let accesses = |text: &str, kind: usize, number: &dyn Fn(&[&str]) -> u64| -> u64 {
        let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.filter(|row| ["load", "store", "update"].contains(&row[kind])).map(|row| number(&row)).sum()
    };
    let executed = accesses(&sites, 1, &|row| row[0].parse().expect("a number"));
    assert_eq!(executed, accesses(&all, 2, &|_| 1), "every access is counted at its site");
    let (_, json, _) = dump(&["--sites", "--json", "-n", "1"]);
    let site: Value = serde_json::from_str(&json).expect("one object");
    assert!(site["events"].as_u64() > Some(1000) && site["type"].is_string(), "{site}");

    let mut shell = std::process::Command::new("sh");
    let binary = assert_cmd::cargo::cargo_bin!("memlode");
    let script =
        format!("{} dump {} | head -1; exit ${{PIPESTATUS:-0}}", binary.display(), trace().display());
    let output = shell.args(["-c", &script]).output().expect("sh runs");
    assert_eq!(stderr(&output), "", "a reader that leaves is no error");
}

#[test]
fn sim_counts_by_level_and_thread() {
    let output =
        memlode().arg("sim").arg(trace()).args(["-m", "generic", "--json"]).output().expect("memlode runs");
    let sim: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(sim["machine"]["levels"][2]["name"], "L3");
    assert_eq!(sim["threads"].as_array().expect("threads").len(), 1);
    let output = memlode().arg("sim").arg(trace()).args(["-m", "generic"]).output().expect("memlode runs");
    assert!(stdout(&output).contains("Threads"), "{}", stdout(&output));
}
