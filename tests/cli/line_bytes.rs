//! Machines with lines of other sizes than 64 bytes: everything about lines uses the machine's.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sim::Recorded;

/// Two threads take turns a hundred times each, and count 64 bytes apart.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { TURNS = 100 };
struct counter { volatile long count; char rest[56]; };
static struct counter counters[2] __attribute__((aligned(256)));
static _Atomic int turn __attribute__((aligned(256)));

static void *work(void *argument) {
  int me = argument != 0;
  for (int i = 0; i < TURNS; i++) {
    while (atomic_load(&turn) != 2 * i + me) sched_yield();
    counters[me].count++;
    atomic_store(&turn, 2 * i + me + 1);
  }
  return 0;
}

int main(void) {
  pthread_t other;
  if (pthread_create(&other, 0, work, &other)) return 1;
  work(0);
  return pthread_join(other, 0);
}
"#;

fn machine(line_bytes: u32) -> String {
    format!(
        r#"
name = "two"
description = "two cores that are kept the same"
sources = ["made up"]
cores = 2
line_bytes = {line_bytes}
memory_latency_cycles = 100
coherence = "mesi"

[[level]]
name = "L1d"
size = "4 KiB"
ways = 4
latency_cycles = 4
"#
    )
}

/// Takes what is expected from the accesses alone: each line of the rows has an address, bytes and a thread.
#[test]
fn every_line_is_the_machines() {
    let recorded = Recorded::new(PROGRAM, &machine(64));
    for line_bytes in [32, 64, 128, 256] {
        std::fs::write(recorded.0.path().join("tiny.toml"), machine(line_bytes)).expect("a file");
        let json = |words: &[&str]| -> Value {
            serde_json::from_str(&recorded.run(&[words, &["-m", "./tiny.toml", "--json"]].concat()))
                .expect("JSON")
        };
        let rows =
            recorded.run(&["replay", "trace", "-m", "./tiny.toml", "--rows", "hits", "--format", "ndjson"]);
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).expect("a row")).collect();
        let lines: BTreeSet<u64> = rows.iter().flat_map(|row| lines_of(row, line_bytes.into())).collect();
        let bytes = lines.len() as u64 * u64::from(line_bytes);

        let sets = json(&["replay", "trace", "--analyse", "working-set:every=1000000000000"]);
        let [set] = &sets["tables"][0]["rows"].as_array().expect("rows")[..] else { panic!("{sets}") };
        assert_eq!((&set["lines_bytes"], &set["new_bytes"]), (&bytes.into(), &bytes.into()), "{line_bytes}");

        // The counters of the two threads are in one line if it is longer than what lies between them.
        let is_shared = line_bytes > 64;
        let shared = json(&["replay", "trace", "--analyse", "shared"]);
        let in_lines = shared["tables"][1]["rows"].as_array().expect("rows");
        assert_eq!(
            in_lines.iter().any(|row| row["data"]["type"] == "counter"),
            is_shared,
            "{line_bytes}: {shared}"
        );

        let beside = json(&["sim", "trace", "--threads", "parallel"]);
        let falsely = beside["side_by_side"]["false_sharing"].as_array().expect("rows");
        let counters = falsely.iter().find(|row| row["object"]["symbol"] == "counters");
        assert_eq!(counters.is_some(), is_shared, "{line_bytes}: {falsely:?}");
        // Turns are turns: each but the first takes the line from the other thread.
        assert_eq!(counters.map_or(199, |row| row["transfers"].as_u64().expect("a number")), 199);
        let misses = beside["sharing"].as_array().expect("rows");
        let of_counters = |row: &&Value| row["kind"] == "false" && row["missed"]["type"] == "counter";
        assert_eq!(misses.iter().any(|row| of_counters(&row)), is_shared, "{line_bytes}: {misses:?}");
    }
}

/// Returns the lines that a row's access touches.
fn lines_of(row: &Value, line_bytes: u64) -> std::ops::RangeInclusive<u64> {
    let number = |key: &str| {
        let value = &row[key];
        value.as_u64().unwrap_or_else(|| {
            let text = value.as_str().expect("an address").trim_start_matches("0x");
            u64::from_str_radix(text, 16).expect("an address")
        })
    };
    let (first, bytes) = (number("address"), number("bytes"));
    first / line_bytes..=(first + bytes - 1) / line_bytes
}
