//! `report --between`, `--function`, `--file` and `--thread`: parts of a trace add up to the whole, and a naive count of
//! annotated accesses agrees.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{assert_one_sentence, installation, memlode, shared_folder, stderr, stdout};

/// Loops that are one record, ranges, pointers and two threads: windows begin and end in the middle of each of them.
const PROGRAM: &str = r#"
#include <memlode.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "list.h"

static long table[1 << 15], copy[1 << 15];

__attribute__((noinline)) static void fill(long value) {
  for (int i = 0; i < 1 << 15; i++)
    table[i] = value + i;
}

static void *work(void *argument) {
  long sum = 0;
  for (unsigned long i = 0, at = (unsigned long)argument; i < 20000; i++)
    sum += copy[(at = at * 6364136223846793005 + 1442695040888963407) >> 49];
  return (void *)sum;
}

int main(void) {
  pthread_t threads[2];
  struct node *nodes = make(3000);
  for (long round = 0; round < 3; round++) {
    memlode_start("fill");
    fill(round);
    memlode_stop("fill");
    memcpy(copy, table, sizeof copy - 8 * round);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    table[round] += length(nodes);
  }
  return table[5] == 42;
}
"#;

const HEADER: &str = r#"
struct node { struct node *next; char rest[120]; };
__attribute__((noinline)) static struct node *make(int n) {
  struct node *first = 0;
  for (int i = 0; i < n; i++) {
    struct node *node = malloc(sizeof *node);
    node->next = first;
    first = node;
  }
  return first;
}
__attribute__((noinline)) static long length(const struct node *node) {
  long n = 0;
  for (; node; node = node->next) n++;
  return n;
}
"#;

/// The folder with a trace of it, `t`.
fn folder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("parts");
        fs::write(folder.join("parts.c"), PROGRAM).expect("a file");
        fs::write(folder.join("list.h"), HEADER).expect("a file");
        for words in [
            "cc -O2 -pthread parts.c -o parts",
            "record -o t -- ./parts",
            "record -o gaps --region fill -- ./parts",
        ] {
            let mut command = memlode();
            command.env("MEMLODE_HOME", installation()).current_dir(&folder);
            let output = command.args(words.split(' ')).output().expect("memlode runs");
            assert!(output.status.success(), "{words}: {}", stderr(&output));
        }
        folder
    };
    BUILT.get_or_init(build)
}

fn run(words: &[&str]) -> Output {
    memlode().current_dir(folder()).args(words).output().expect("memlode runs")
}

/// Accesses and misses of each level, by function and by thread.
type Counted = BTreeMap<String, [u64; 4]>;

const LEVELS: [&str; 3] = ["L1d", "L2", "L3"];

fn add(counted: &mut Counted, name: String, numbers: [u64; 4]) {
    if numbers[0] > 0 {
        let row = counted.entry(name).or_default();
        (0..4).for_each(|at| row[at] += numbers[at]);
    }
}

/// Returns what a report counts.
fn reported(part: &[&str]) -> Counted {
    let output = run(&[&["report", "t", "-m", "generic", "--json"], part].concat());
    assert!(output.status.success(), "{part:?}: {}", stderr(&output));
    counts(&serde_json::from_str(&stdout(&output)).expect("JSON"))
}

fn counts(report: &Value) -> Counted {
    let mut counted = Counted::new();
    let numbers = |row: &Value| {
        let misses = LEVELS.map(|level| row["misses"][level].as_u64().unwrap_or(0));
        [row["accesses"].as_u64().expect("accesses"), misses[0], misses[1], misses[2]]
    };
    for row in report["functions"].as_array().expect("functions") {
        add(&mut counted, format!("function {}", row["function"]), numbers(row));
    }
    for row in report["threads"].as_array().expect("threads") {
        add(&mut counted, format!("thread {}", row["thread"]), numbers(row));
    }
    let levels = report["machine"]["levels"].as_array().expect("levels");
    let read_or_written =
        |level: &Value, what: [&str; 2]| what.iter().filter_map(|what| level[what].as_u64()).sum();
    let first = &levels[0];
    let missed = |level: usize| read_or_written(&levels[level], ["read_misses", "write_misses"]);
    add(
        &mut counted,
        "levels".to_owned(),
        [read_or_written(first, ["reads", "writes"]), missed(0), missed(1), missed(2)],
    );
    counted
}

fn sum(parts: impl IntoIterator<Item = Counted>) -> Counted {
    let mut all = Counted::new();
    for (name, numbers) in parts.into_iter().flatten() {
        add(&mut all, name, numbers);
    }
    all
}

/// Every access, as `replay` prints it.
fn rows() -> &'static [Value] {
    static ROWS: OnceLock<Vec<Value>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let output = run(&["replay", "t", "-m", "generic", "--annotate", "hits", "--format", "ndjson"]);
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    })
}

/// The count of those rows that are wanted, made without the engine's counters.
fn naive(wanted: impl Fn(&Value) -> bool) -> Counted {
    let mut counted = Counted::new();
    for row in rows().iter().filter(|row| wanted(row)) {
        let depth = LEVELS.iter().position(|level| row["level"] == **level).unwrap_or(3);
        let numbers = [1, u64::from(depth > 0), u64::from(depth > 1), u64::from(depth > 2)];
        for name in [
            format!("function {}", row["function"]),
            format!("thread {}", row["thread"]),
            "levels".to_owned(),
        ] {
            add(&mut counted, name, numbers);
        }
    }
    counted
}

#[test]
fn windows_of_accesses_add_up_and_are_what_a_naive_count_finds() {
    let whole = reported(&[]);
    let number = rows().len() as u64;
    assert_eq!(whole["levels"][0], number);
    // In a loop of one record, in a copy, in the list, and close to each other.
    for cuts in [[1, 2], [number / 7, number / 7 + 1], [9001, 40_003], [number / 2, number - 1]] {
        let [a, b] = cuts.map(|cut| cut.to_string());
        let parts = [format!("..{a}"), format!("{a}..{b}"), format!("{b}..")]
            .map(|part| reported(&["--between", &part]));
        let inside = |row: &Value| (cuts[0]..cuts[1]).contains(&row["sequence"].as_u64().expect("a number"));
        assert_eq!(parts[1], naive(inside), "{a}..{b}");
        assert_eq!(sum(parts), whole, "{a}..{b}");
    }
}

#[test]
fn windows_of_time_add_up_and_are_what_a_naive_count_finds() {
    let whole = reported(&[]);
    let time = |row: &Value| row["time_ns"].as_u64().expect("a time");
    let mut times: Vec<u64> = rows().iter().map(time).collect();
    times.sort_unstable();
    times.dedup();
    assert!(times.len() > 8, "there are {} times only", times.len());
    let [from, to] = [times[times.len() / 3], times[times.len() * 2 / 3]];
    // Between two nanoseconds, so that digits behind a point make no difference.
    let text = |ns: u64| format!("{}.{:03}us", ns / 1000, ns % 1000);
    let parts =
        [format!("..{}", text(from)), format!("{}..{}", text(from), text(to)), format!("{}..", text(to))]
            .map(|part| reported(&["--between", &part]));
    assert_eq!(parts[1], naive(|row| (from..to).contains(&time(row))));
    assert_eq!(sum(parts), whole);
}

#[test]
fn functions_files_and_threads_are_parts_of_the_whole_and_of_windows() {
    let whole = reported(&[]);
    let names = ["fill", "work", "main", "make", "length"];
    assert_eq!(sum(names.map(|name| reported(&["--function", name]))), whole);
    assert_eq!(sum(["parts.c", "list.h"].map(|file| reported(&["--file", file]))), whole);
    let path = folder().join("list.h");
    let by_path = reported(&["--file", path.canonicalize().expect("a path").to_str().expect("UTF-8")]);
    assert_eq!(by_path, reported(&["--function", "make", "--function", "length"]));
    let threads = ["0.0", "1", "2", "3", "4", "5", "6"];
    assert_eq!(sum(threads.map(|thread| reported(&["--thread", thread]))), whole);
    let both = ["--between", "9k..40k", "--thread", "0.0", "--function", "main"];
    let wanted = |row: &Value| {
        (9000..40_000).contains(&row["sequence"].as_u64().expect("a number"))
            && row["thread"] == 0
            && row["function"] == "main"
    };
    assert_eq!(reported(&both), naive(wanted));
}

/// One thread simulates a window, for any number of decoding threads.
#[test]
fn the_number_of_processors_changes_nothing() {
    for part in [&["--between", "9001..40003"][..], &["--function", "work"]] {
        let output = std::process::Command::new("taskset")
            .args(["-c", "0"])
            .arg(assert_cmd::cargo::cargo_bin!("memlode"))
            .args(["report", "t", "-m", "generic", "--json"])
            .args(part)
            .current_dir(folder())
            .output()
            .expect("taskset runs");
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(
            counts(&serde_json::from_str(&stdout(&output)).expect("JSON")),
            reported(part),
            "{part:?}"
        );
    }
}

#[test]
fn what_a_part_is_of_is_told_and_impossible_parts_are_refused() {
    let output = run(&["report", "t", "-m", "generic", "--between", "9k..40k", "--function", "main"]);
    let told = "only a part is counted, and all of the trace went through the caches: accesses 9k..40k, function main";
    let words: Vec<String> = stdout(&output).split_whitespace().map(str::to_owned).collect();
    assert!(words.join(" ").contains(told), "{}", stdout(&output));
    for (part, why) in [
        (&["--function", "nobody"][..], "no access is in the part that was asked for"),
        (&["--between", "1G.."], "no access is in the part that was asked for"),
        (&["--thread", "77"], "there is no thread 77"),
    ] {
        let output = run(&[&["report", "t", "-m", "generic"], part].concat());
        assert_eq!(output.status.code(), Some(1), "{part:?}");
        assert_one_sentence(&output, &[why]);
    }
    let output = run(&["sim", "t", "--function", "main"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["are options of `memlode report`"]);
    let output = run(&["report", "gaps", "-m", "generic", "--between", "..5k"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["--thread need a trace without gaps"]);
    for (part, why) in [
        ("5", "expected A..B"),
        ("..", "expected A..B"),
        ("1s..5k", "expected A..B"),
        ("5..5", "nothing lies between the ends of `5..5`"),
        ("2s..1s", "nothing lies between the ends of `2s..1s`"),
    ] {
        let output = run(&["report", "t", "--between", part]);
        assert_eq!(output.status.code(), Some(2), "{part}");
        assert!(stderr(&output).contains(why), "{part}: {}", stderr(&output));
    }
}
