//! `memlode replay`: every access, with what became of it. Summed up, that is what `report` and `sim` say.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Two threads that share one variable, a table on the heap, and something on the stack.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; long key; char rest[112]; };
static _Atomic long shared;
static long table[4096];
static void *work(void *argument) {
  struct node *nodes = calloc(300, sizeof *nodes);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 300; i++) {
      nodes[i].next = &nodes[(i * 7) % 300];
      nodes[i].key += table[(i * 64) % 4096];
      atomic_fetch_add(&shared, 1);
    }
  memcpy(table, nodes, 8000);
  long sum = nodes[5].key;
  free(nodes);
  return (void *)(sum + (long)argument);
}
int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, work, (void *)1);
  pthread_join(other, NULL);
  return work((void *)2) == NULL;
}
"#;

const MACHINE: &str = r#"
name = "tiny"
description = "small enough that there are misses of every kind"
sources = ["made up"]
cores = 2
line_bytes = 64
memory_latency_cycles = 100
page_walk_cycles = 20
store_buffer_entries = 8
reorder_buffer_entries = 32
nodes = 2
remote_memory_latency_cycles = 150

[[level]]
name = "L1d"
size = "4 KiB"
ways = 4
latency_cycles = 4

[[level]]
name = "L2"
size = "32 KiB"
ways = 8
latency_cycles = 12
shared_by = 2

[[tlb]]
name = "DTLB"
level = 1
pages = ["4 KiB", "2 MiB"]
entries = 4
ways = 4
"#;

struct Recorded(TempDir);

impl Recorded {
    fn new() -> Recorded {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("work.c"), PROGRAM).expect("a file");
        fs::write(folder.path().join("tiny.toml"), MACHINE).expect("a file");
        let recorded = Recorded(folder);
        recorded.run(&["cc", "-O1", "work.c", "-o", "work", "-lpthread"]);
        recorded.run(&["record", "-o", "trace", "--", "./work"]);
        recorded
    }

    fn try_run(&self, words: &[&str]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(self.0.path());
        command.args(words).output().expect("memlode runs")
    }

    fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    fn lines(&self, words: &[&str]) -> Vec<Value> {
        let replay = ["replay", "trace", "-m", "./tiny.toml", "--format", "ndjson"];
        let text = self.run(&[&replay, words].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Returns what a row of a report, or an access, is about.
fn key(names: &Value) -> String {
    let members = ["type", "member", "variable", "file", "line", "function"];
    members.map(|name| names[name].to_string()).join(" ")
}

#[test]
fn adds_up_to_the_report() {
    let recorded = Recorded::new();
    let all = recorded.lines(&["--rows", "hits"]);
    let report = recorded.run(&["report", "trace", "-m", "./tiny.toml", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");

    // By line: accesses, misses of both levels, cycles beyond the first.
    let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let mut of_threads: BTreeMap<u64, u64> = BTreeMap::new();
    let levels = ["L1d", "L2", "memory"];
    for (number, access) in all.iter().enumerate() {
        assert_eq!(access["sequence"], number);
        let level = levels.iter().position(|level| access["level"] == *level).expect("a level");
        let sum = sums.entry(key(access)).or_default();
        sum[0] += 1;
        sum[1] += u64::from(level > 0);
        sum[2] += u64::from(level > 1);
        sum[3] += access["cycles"].as_u64().expect("cycles") - 4;
        *of_threads.entry(access["thread"].as_u64().expect("a thread")).or_default() += 1;
    }
    let mut expected: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for row in report["lines"].as_array().expect("lines") {
        let number = |value: &Value| value.as_u64().expect("a number");
        let misses = &row["misses"];
        let numbers = [&row["accesses"], &misses["L1d"], &misses["L2"], &row["stall_cycles"]].map(number);
        let sum = expected.entry(key(row)).or_default();
        sum.iter_mut().zip(numbers).for_each(|(sum, more)| *sum += more);
    }
    assert_eq!(sums, expected);
    let threads = report["threads"].as_array().expect("threads").iter();
    let threads = threads.map(|row| (row["thread"].as_u64().unwrap(), row["accesses"].as_u64().unwrap()));
    assert_eq!(of_threads, threads.collect());
    assert_eq!(of_threads.len(), 2);

    // Names of the kinds there are.
    let kinds = |kind: &str| all.iter().filter(|access| access["kind"] == kind).count();
    assert_eq!(kinds("update"), 1800);
    assert!(kinds("load") > 0 && kinds("store") > 0);
    let node = all.iter().find(|access| access["member"] == "key").expect("an access of node.key");
    assert_eq!((&node["type"], &node["object_kind"]), (&"node".into(), &"heap".into()));
    assert!(node["object"].as_str().unwrap().starts_with("work.c:10 work"), "{node}");
    let shared = all.iter().find(|access| access["kind"] == "update").expect("an update");
    assert_eq!((&shared["variable"], &shared["object_kind"]), (&"shared".into(), &"global".into()));

    // Filters leave rows out and change nothing else.
    let some = |wanted: &dyn Fn(&Value) -> bool| -> Vec<&Value> {
        all.iter().filter(|access| wanted(access)).collect()
    };
    let lines = |words: &[&str]| recorded.lines(&[&["--rows", "hits"], words].concat());
    assert_eq!(lines(&["--misses-only"]).iter().collect::<Vec<_>>(), some(&|a| a["level"] != "L1d"));
    assert_eq!(lines(&["--level", "l2"]).iter().collect::<Vec<_>>(), some(&|a| a["level"] == "L2"));
    assert_eq!(lines(&["--level", "L1d,memory"]).iter().collect::<Vec<_>>(), some(&|a| a["level"] != "L2"));
    assert_eq!(lines(&["--thread", "0.1"]).iter().collect::<Vec<_>>(), some(&|a| a["thread"] == 1));
    assert_eq!(lines(&["-n", "7"]), all[..7]);
    assert!(lines(&["-n", "0"]).is_empty());

    // Why they missed is what `sim` says, however the machine is set up.
    let setups: [&[&str]; 3] =
        [&[], &["--pages", "4KiB,2MiB@heap", "--cores", "1,0"], &["--rules", "lru", "--placement", "node:1"]];
    let mut remote = Vec::new();
    for setup in setups {
        let why = recorded.lines(&[&["--rows", "causes"], setup].concat());
        let sim = recorded.run(&[&["sim", "trace", "-m", "./tiny.toml", "--json"], setup].concat());
        let sim: Value = serde_json::from_str(&sim).expect("JSON");
        let count = |name: &str, value: &Value| {
            Value::from(why.iter().filter(|access| &access[name] == value).count())
        };
        let by_level = sim["total"]["causes"].as_array().expect("causes");
        for (level, causes) in ["L1d", "L2"].iter().zip(by_level) {
            for cause in ["cold", "capacity", "conflict"] {
                assert_eq!(causes[cause], count(&format!("cause_{level}"), &cause.into()), "{level} {cause}");
            }
        }
        assert_eq!(sim["total"]["translation"]["walks"], count("translation", &"walk".into()), "{setup:?}");
        assert_eq!(sim["total"]["alias_conflicts"], count("alias_4k", &true.into()), "{setup:?}");
        assert_eq!(sim["total"]["memory"]["remote"], count("remote", &true.into()), "{setup:?}");
        remote.push(count("remote", &true.into()).as_u64());
    }
    assert!(remote[2] != remote[0], "the third setup places pages elsewhere: {remote:?}");
}

#[test]
fn an_arrow_stream_is_framed() {
    let recorded = Recorded::new();
    let path = recorded.0.path();
    recorded.run(&["replay", "trace", "--rows", "hits", "-m", "./tiny.toml", "--to", "all.arrows"]);
    let bytes = fs::read(path.join("all.arrows")).expect("a file");
    let piped = recorded.try_run(&["replay", "trace", "--rows", "hits", "-m", "./tiny.toml"]);
    assert_eq!(piped.stdout, bytes, "the same through a pipe, and each time");
    // tests/python reads what is inside.
    assert_eq!(bytes[..4], [0xff; 4]);
    assert_eq!(bytes[bytes.len() - 8..], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(bytes.len() % 8, 0);

    recorded.run(&["replay", "trace", "--rows", "hits", "-m", "./tiny.toml", "--to", "few.jsonl", "-n", "2"]);
    assert_eq!(fs::read_to_string(path.join("few.jsonl")).expect("text").lines().count(), 2);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let recorded = Recorded::new();
    let mut replay = Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
        .args(["replay", "trace", "--rows", "hits", "-m", "generic", "--format", "ndjson"])
        .current_dir(recorded.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("memlode runs");
    let mut first = String::new();
    let mut out = BufReader::new(replay.stdout.take().expect("its output"));
    out.read_line(&mut first).expect("a line");
    drop(out);
    let output = replay.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    assert!(first.starts_with("{\"sequence\":0,"), "{first}");
}

#[test]
fn what_cannot_be_done_is_told() {
    let recorded = Recorded::new();
    for (words, parts) in [
        (&["--rows", "hits", "--level", "L7"][..], &["L7", "L1d, L2, memory"][..]),
        (&["--rows", "hits", "--thread", "9"], &["no thread 9", "0.0, 0.1"]),
        (&["--rows", "hits", "--pages", "2MiB"], &["--pages is for --rows causes"]),
        (&["--rows", "hits", "--to", "nowhere/x.arrows"], &["nowhere/x.arrows cannot be written"]),
        (&["--rows", "causes", "--pages", "1GiB"], &["tiny", "no first-level TLB"]),
    ] {
        let replay = ["replay", "trace", "-m", "./tiny.toml"];
        assert_one_sentence(&recorded.try_run(&[&replay, words].concat()), parts);
    }
    let output = recorded.try_run(&["replay", "trace", "--rows", "hits", "--misses-only", "--level", "L2"]);
    assert_eq!(output.status.code(), Some(2));
}
