//! `memlode run --live`: what is found of a stored trace, without one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Threads that meet at a lock, one that waits for all of them, and a child that goes on by itself.
/// With an argument it reads its list for that many ms of processor time, long enough for bursts
/// even on a busy machine. With another one there is one thread, which has another list.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct node { long key; struct node *next; long rest[6]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *all;

static void *work(void *argument) {
  long sum = (long)argument;
  for (int i = 0; i < 3000; i++) {
    struct node *node = malloc(sizeof *node);
    node->key = i;
    pthread_mutex_lock(&lock);
    node->next = all;
    all = node;
    for (struct node *other = all; other && other->key > i - 50; other = other->next) sum += other->key;
    pthread_mutex_unlock(&lock);
  }
  return (void *)sum;
}

static long read_all(long ms) {
  long sum = 0;
  do {
    for (struct node *node = all; node; node = node->next) sum += node->key;
  } while (clock() < ms * (CLOCKS_PER_SEC / 1000));
  return sum;
}

int main(int count, char **words) {
  pthread_t threads[3];
  if (count > 2) {
    work(0);
    return read_all(atol(words[1])) == 0;
  }
  if (fork() == 0) _exit((long)work((void *)1) == 0);
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  wait(0);
  usleep(50000);
  return read_all(count > 1 ? atol(words[1]) : 0) == 0;
}
"#;

struct Built(TempDir);

impl Built {
    fn new() -> Built {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("threads.c"), PROGRAM).expect("a file");
        let built = Built(folder);
        built.run(&["cc", "-O1", "-pthread", "threads.c", "-o", "threads"]);
        built
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Returns what `memlode run --live` says, which also stores the trace, and what another memlode says of that.
    fn live_and_stored(&self, live: &[&str], program: &[&str], stored: &[&str]) -> (String, String) {
        let words = ["run", "--live", "-o", "trace", "--force", "--report-to", "live"];
        self.run(&[&words[..], live, &["--wait", "--"], program].concat());
        let live = fs::read_to_string(self.folder().join("live")).expect("a report");
        (live, stdout(&self.run(stored)))
    }

    fn try_run(&self, words: &[&str]) -> Output {
        let ran =
            memlode().args(words).current_dir(self.folder()).env("MEMLODE_HOME", installation()).output();
        ran.expect("it starts")
    }

    fn run(&self, words: &[&str]) -> Output {
        let output = self.try_run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        output
    }
}

/// A report without what threads lose to each other, which is found out of a stored trace alone: as JSON, or as text, where
/// it stands among the findings, too. Those are compared as JSON.
fn without_sharing(report: &str) -> String {
    if let Ok(mut report) = serde_json::from_str::<Value>(report) {
        report["sharing"].take();
        assert!(report["run_cycles"].take().is_number(), "{report}"); // they are among these
        return report.to_string();
    }
    let (before, behind) = report.split_once("\nFindings").unwrap_or((report, ""));
    let table = behind.find("\nMembers").unwrap_or(0);
    let is_whole = |line: &&str| !line.starts_with("wait ");
    before.lines().chain(behind[table..].lines()).filter(is_whole).map(|line| format!("{line}\n")).collect()
}

/// Live simulations are, to the letter, those of the trace that the program leaves.
#[test]
fn live_reports_are_those_of_the_stored_trace() {
    let built = Built::new();
    for (options, program) in
        [(&[][..], &["./threads"][..]), (&["--burst", "5ms/10ms"], &["./threads", "300"])]
    {
        let words = [&["-m", "zen4", "--json"], options].concat();
        let report = ["report", "trace", "-m", "zen4", "--json"];
        let (live, stored) = built.live_and_stored(&words, program, &report);
        assert!(live.contains("\"node\""), "{live}");
        assert_eq!(without_sharing(&live), without_sharing(&stored), "{options:?}");
    }
}

const THREADS: &[&str] = &["./threads"];
const ALONE: &[&str] = &["./threads", "0", "alone"];
/// Long enough for bursts.
const LONG: &[&str] = &["./threads", "100"];
const LONG_ALONE: &[&str] = &["./threads", "100", "alone"];

/// Neither how many threads nor how many processes there will be is known when a live simulation begins. Whether any caches have to be kept
/// the same depends on it on a machine like `generic`, and so does whether bursts have bounds.
#[test]
fn live_causes_are_those_of_the_stored_trace() {
    let built = Built::new();
    let ranges = ["--pages", "4KiB,2MiB@100000000-7fffffffffff,1GiB@heap", "--cores", "2,0"];
    let burst = ["--burst", "1ms/10ms"];
    for (machine, setup, recording, program) in [
        ("zen4", &[][..], &[][..], THREADS),
        ("generic", &[], &[], THREADS),
        ("generic", &[], &[], ALONE),
        ("zen4", &ranges, &[], THREADS),
        ("generic", &["--rules", "lru"], &[], THREADS),
        ("generic", &[], &burst, LONG),
        ("generic", &[], &burst, LONG_ALONE),
    ] {
        let words = [&["--sim", "-m", machine, "--json"], setup, recording].concat();
        let stored = [&["sim", "trace", "-m", machine, "--json"], setup].concat();
        let (live, stored) = built.live_and_stored(&words, program, &stored);
        assert!(live.contains("\"evicted_by\"") && live.contains("\"node\""), "{live}");
        assert_eq!(live, stored, "{machine} {setup:?} {recording:?} {program:?}");
    }
}

#[test]
fn live_analyses_are_those_of_the_stored_trace() {
    let built = Built::new();
    for name in ["reuse", "strides", "shared:least=100", "working-set:every=10000"] {
        let words = ["--analyse", name, "-m", "zen4", "--json"];
        let (live, stored) =
            built.live_and_stored(&words, THREADS, &[&["replay", "trace"], &words[..]].concat());
        assert!(live.contains("\"rows\": [\n"), "{live}");
        assert_eq!(live, stored, "{name}");
    }
    let words = ["--every", "10k", "-m", "zen4", "--json"];
    let stored = [&["timeline", "trace"], &words[..]].concat();
    let (live, stored) = built.live_and_stored(&[&["--timeline"], &words[..]].concat(), THREADS, &stored);
    assert!(live.contains("\"seconds\"") && live.contains("\"wait_cycles\""), "{live}");
    // Only of a stored trace there is a report beside it.
    let mut stored: Value = serde_json::from_str(&stored).expect("JSON");
    let notes = stored["notes"].as_array_mut().expect("notes");
    notes.retain(|note| note["id"] != "sum_of_latencies");
    assert_eq!(serde_json::from_str::<Value>(&live).expect("JSON"), stored);
}

/// Chunks are not packed if nothing is stored. A run cannot be simulated both ways, but another one whose addresses are the same.
#[test]
fn what_is_not_stored_says_what_is() {
    let built = Built::new();
    for (options, program) in [
        (&[][..], ALONE),
        (&["--sim"], ALONE),
        (&["--sim", "--rules", "lru"], ALONE),
        (&["--analyse", "reuse"], ALONE),
        (&["--analyse", "strides"], ALONE),
    ] {
        let of_run = |how: &[&str]| {
            let words = [&["run"], how, &["--report-to", "found", "-m", "zen4", "--json"], options].concat();
            let ran = Command::new("setarch")
                .args(["-R", env!("CARGO_BIN_EXE_memlode")])
                .args([&words[..], &["--"], program].concat())
                .current_dir(built.folder())
                .env("MEMLODE_HOME", installation())
                .output()
                .expect("it starts");
            assert!(ran.status.success(), "{words:?}: {}", stderr(&ran));
            let found = fs::read_to_string(built.folder().join("found")).expect("a report");
            let is_of_this_run = |line: &&str| {
                ["\"directory\"", "\"trace\": \"", "\"pid\"", "\"tid\""]
                    .iter()
                    .any(|name| line.contains(name))
            };
            found.lines().filter(|line| !is_of_this_run(line)).collect::<Vec<_>>().join("\n")
        };
        let live = of_run(&["--live"]);
        assert!(live.lines().count() > 50, "{live}");
        assert_eq!(live, of_run(&["-o", "trace", "--force"]), "{options:?}");
    }
}

/// Answers are the same whether they are found meanwhile or of the trace, and as text.
#[test]
fn what_is_asked_for_takes_the_place_of_the_report() {
    let built = Built::new();
    for (run, alone) in [
        (
            &["--sim", "--by", "type,object", "--top", "3"][..],
            &["sim", "--by", "type,object", "--top", "3"][..],
        ),
        (&["--analyse", "strides", "--top", "2"], &["replay", "--analyse", "strides", "--top", "2"]),
        (&["--timeline", "--every", "10k"], &["timeline", "--every", "10k"]),
        (&["--by", "field"], &["report", "--by", "field"]),
    ] {
        let stored = [alone, &["trace", "-m", "zen4"]].concat();
        let (live, of_live) = built.live_and_stored(&[run, &["-m", "zen4"]].concat(), THREADS, &stored);
        assert_eq!(without_sharing(&live), without_sharing(&of_live), "{run:?}");
        let output = built
            .run(&[&["run", "-o", "trace", "--force", "-m", "zen4"], run, &["--", "./threads"]].concat());
        let of_stored = stdout(&built.run(&stored));
        assert!(stderr(&output).contains(of_stored.trim_end()), "{run:?}: {}", stderr(&output));
    }
    let both = ["--analyse", "strides", "--timeline", "--every", "10k", "-m", "zen4"];
    let output = built.run(&[&["run", "--live"], &both[..], &["--", "./threads"]].concat());
    assert!(
        stderr(&output).contains("constant") && stderr(&output).contains("Time line"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn live_leaves_nothing_behind() {
    let built = Built::new();
    let output = built.run(&["run", "--live", "-m", "zen4", "--", "./threads"]);
    assert!(stderr(&output).contains("node.key") && stderr(&output).contains("simulated as they came"));
    let mut left: Vec<_> = fs::read_dir(built.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["threads", "threads.c"]);
}

#[test]
fn what_cannot_be_simulated_is_told_before_the_program_runs() {
    let built = Built::new();
    let output = built.try_run(&["run", "--live", "-m", "pdp11", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(&output, &["pdp11"]);
    for option in [
        &["--to", "ram"][..],
        &["--discard"],
        &["--no-report"],
        &["--pages", "4KiB"],
        &["--every", "5"],
        &["--sim", "--timeline"],
        &["--sim", "--by", "function"],
    ] {
        let output = built.try_run(&[&["run", "--live"][..], option, &["--", "touch", "ran"]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(option[0]), "{}", stderr(&output));
    }
    for (option, parts) in [
        (&["--sim", "--pages", "3KiB"][..], &["a page of 3072 bytes"][..]),
        (&["--sim", "--cores", "400"], &["--cores", "not 400"]),
        (&["--sim", "--placement", "node:1"], &["--placement", "one memory node"]),
        (&["--analyse", "shard"], &["--analyse shard", "choose from", "shared"]),
        (&["--timeline", "--every", "10ms"], &["--live", "--every 10M"]),
    ] {
        let output =
            built.try_run(&[&["run", "--live", "-m", "zen4"], option, &["--", "touch", "ran"]].concat());
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        assert_one_sentence(&output, parts);
    }
    assert!(!built.folder().join("ran").exists());
}
