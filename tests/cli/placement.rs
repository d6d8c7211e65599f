//! Machines with several memory nodes: where pages lie, and where threads run.

use std::fs;

use serde_json::Value;

use crate::sim::Recorded;
use crate::{assert_one_sentence, stderr};

/// The first thread writes eight pages, then the second one reads them.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct page { volatile long value; char rest[4088]; };
static struct page pages[8] __attribute__((aligned(4096)));
static _Atomic int written;

static void *read_all(void *sum) {
  while (!atomic_load(&written)) sched_yield();
  for (int i = 0; i < 8; i++) *(long *)sum += pages[i].value;
  return 0;
}

int main(void) {
  pthread_t reader;
  long sum = 0;
  if (pthread_create(&reader, 0, read_all, &sum)) return 1;
  for (int i = 0; i < 8; i++) pages[i].value = i;
  atomic_store(&written, 1);
  pthread_join(reader, 0);
  return sum != 28;
}
"#;

const MACHINE: &str = r#"
name = "nodes"
description = "two nodes of one core"
sources = ["made up"]
cores = 2
line_bytes = 64
memory_latency_cycles = 100
nodes = 2
remote_memory_latency_cycles = 150

[[level]]
name = "L1d"
size = "4 KiB"
ways = 4
latency_cycles = 4
"#;

/// Remote accesses and waiting cycles of the writes to the pages, and of the reads.
fn remote(sim: &Value) -> [(u64, u64); 2] {
    let of = |kind: &str| {
        let is_it = |row: &&Value| row["type"] == "page" && row[kind] == 8;
        let row = sim["lines"].as_array().expect("lines").iter().find(is_it).expect("a row");
        (row["memory"]["remote"].as_u64().expect("a number"), row["stall_cycles"].as_u64().expect("a number"))
    };
    [of("writes"), of("reads")]
}

#[test]
fn pages_and_threads_are_where_they_are_put() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    // Each access misses the only level: 96 cycles, and 50 more from the other node.
    let cost = |remote: u64| (remote, 8 * 96 + 50 * remote);
    let found = |words: &[&str]| remote(&recorded.json(words));
    assert_eq!(found(&[]), [cost(0), cost(8)]);
    assert_eq!(found(&["--placement", "first-touch", "--cores", "1,0"]), [cost(0), cost(8)]);
    assert_eq!(found(&["--cores", "1"]), [cost(0), cost(8 - 8)]);
    assert_eq!(found(&["--placement", "interleave"]), [cost(4), cost(4)]);
    assert_eq!(found(&["--placement", "node:1"]), [cost(8), cost(0)]);
    // The first four pages in node 1, and the others where they are touched first.
    let dump = recorded.run(&["dump", "trace"]);
    let columns = dump.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let mut writes = columns.filter(|columns| columns[2] == "store" && columns[7] == "pages");
    let first = writes.next().expect("a write")[3].trim_start_matches("0x").to_string();
    let start = u64::from_str_radix(&first, 16).expect("an address");
    let file = format!("# half of them\n\n{start:x}-{:x} 1 # here\n", start + 4 * 4096);
    fs::write(recorded.0.path().join("homes"), file).expect("a file");
    assert_eq!(found(&["--placement", "homes"]), [cost(4), cost(4)]);
    let threads = recorded.json(&["--cores", "1,0"]);
    let cores = threads["threads"].as_array().expect("threads").iter();
    let mut cores: Vec<_> =
        cores.map(|thread| (thread["thread"].as_u64(), thread["core"].as_u64())).collect();
    cores.sort_unstable();
    assert_eq!(cores, [(Some(0), Some(1)), (Some(1), Some(0))]);
    let text = recorded.run(&["sim", "trace", "-m", "./tiny.toml", "--placement", "interleave"]);
    let expected = "the wait includes remote memory: 150 cycles, where the node's own takes 100";
    assert!(text.contains(expected), "{text}");
}

/// Both threads walk through a half of what the first one has filled; each step waits for the one before.
const HALVES: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { COUNT = 1 << 13, HALF = COUNT / 2 };
static long table[COUNT] __attribute__((aligned(4096)));
static _Atomic int filled;

static long walk(long at) {
  for (int step = 0; step < 4 * HALF; step++) at = table[at];
  return at;
}

static void *second(void *last) {
  while (!atomic_load(&filled)) sched_yield();
  *(long *)last = walk(HALF);
  return 0;
}

int main(void) {
  pthread_t thread;
  long last = 0;
  if (pthread_create(&thread, 0, second, &last)) return 1;
  for (long i = 0; i < COUNT; i++) table[i] = i / HALF * HALF + (i * 1597 + 1031) % HALF;
  atomic_store(&filled, 1);
  last += walk(0);
  pthread_join(thread, 0);
  return last == 0;
}
"#;

#[test]
fn an_edit_puts_an_object_on_nodes() {
    let recorded = Recorded::new(HALVES, MACHINE);
    let sim = recorded.json(&[]);
    let rows = sim["lines"].as_array().expect("lines").iter();
    let walked = rows.filter(|row| row["function"] == "walk" && row["variable"] == "table");
    let remote: u64 = walked.map(|row| row["memory"]["remote"].as_u64().expect("a number")).sum();
    assert!(remote > 1000, "{remote}");
    let under = |edit: &str| -> (String, f64) {
        let words = ["whatif", "trace", "-m", "./tiny.toml", "--sim", "--json", "--edit", edit];
        let found: Value = serde_json::from_str(&recorded.run(&words)).expect("JSON");
        assert_eq!(found["comparison"]["before"]["remote_accesses"], sim["total"]["memory"]["remote"]);
        let cycles = |side: &str| found["comparison"][side]["run_cycles"].as_f64().expect("cycles");
        (found["verdict"].as_str().expect("a verdict").to_string(), cycles("before") - cycles("after"))
    };
    // The second thread's half is near, and that saves what memory further away takes longer, of all steps but those to places nearby.
    let (verdict, saved) = under("place table: blockwise");
    let most = 50.0 * remote as f64;
    assert!(verdict == "worth_it" && (0.8 * most..=most).contains(&saved), "{verdict}, {saved}, {remote}");
    let edit = "place table: blockwise";
    let text = recorded.run(&["whatif", "trace", "-m", "./tiny.toml", "--sim", "--edit", edit]);
    assert!(text.contains("remote memory"), "{text}");
    // The program has no heap.
    assert!(text.contains("1 object moved") && !text.contains("malloc"), "{text}");
    // Each thread has half of its pages far away, or all the wrong one: as many as before.
    for edit in ["place table: interleave", "place table: node=1", "place table: first-touch"] {
        let (verdict, saved) = under(edit);
        assert!(verdict == "neutral" && saved.abs() <= 0.02 * most, "{edit}: {verdict}, {saved}");
    }
    let refused = |words: &[&str], why: &str| {
        let output = recorded.try_run(&[&["whatif", "trace", "--edit"], words].concat());
        assert_one_sentence(&output, &[words[0], why]);
    };
    let place = "place table: node=2";
    refused(&[place, "-m", "./tiny.toml"], "only simulated with --sim");
    refused(&[place, "-m", "generic", "--sim"], "the machine has one memory node");
    refused(&[place, "-m", "./tiny.toml", "--sim"], "the machine has nodes 0 to 1");
}

#[test]
fn bad_places_are_refused_in_a_sentence() {
    let recorded = Recorded::new("int main(void) { volatile int once = 1; return !once; }", MACHINE);
    let refused = |words: &[&str], parts: &[&str]| {
        let output = recorded.try_run(&[&["sim", "trace", "-m", "./tiny.toml"], words].concat());
        assert_one_sentence(&output, parts);
    };
    refused(&["--cores", "0,2"], &["--cores", "nodes has cores 0 to 1, not 2"]);
    refused(&["--placement", "node:2"], &["--placement", "a node from 0 to 1, found `2`"]);
    refused(&["--placement", "near"], &["--placement near", "interleave, node:N or a file", "No such file"]);
    for (line, complaint) in [
        ("1000 0", "START-END in hexadecimal digits"),
        ("2000-1000 0", "START below END, found `2000-1000`"),
        ("1000-2000", "expected `START-END NODE`, found `1000-2000`"),
        ("1000-2000 near", "a node from 0 to 1, found `near`"),
    ] {
        fs::write(recorded.0.path().join("homes"), format!("# places\n{line}\n")).expect("a file");
        refused(&["--placement", "homes"], &["homes:2", complaint]);
    }
    refused(&["--pages", "4KiB,2MiB"], &["--pages", "one size for all"]);
    let output = recorded.try_run(&["sim", "trace", "-m", "generic", "--placement", "interleave"]);
    assert_one_sentence(&output, &["generic has one memory node", "`remote_memory_latency_cycles`"]);
    for place in ["2000-1000", "0-y", "7", ""] {
        let output = recorded.try_run(&["sim", "trace", "--pages", &format!("2MiB@{place}")]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("heap, stack, the name of a global variable"),
            "{}",
            stderr(&output)
        );
    }
}
