//! Machines with lines of other sizes than 64 bytes: everything about lines uses the machine's.

use std::collections::{BTreeMap, BTreeSet};

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

/// Walks an array in an order that nothing foretells, and uses one member.
const WALK: &str = r#"
#include <stdlib.h>

enum { ITEMS = 512 };
struct item { long key; char rest[56]; };

int main(void) {
  struct item *items = aligned_alloc(256, ITEMS * sizeof *items);
  for (int i = 0; i < ITEMS; i++) items[i].key = i;
  long sum = 0;
  for (int i = 0; i < 4 * ITEMS; i++) sum += items[i * 37 % ITEMS].key;
  free(items);
  return sum == 42;
}
"#;

fn one_core(inner: u64, outer: u64) -> String {
    format!(
        r#"
name = "one"
description = "levels with lines of their own sizes"
sources = ["made up"]
cores = 1
line_bytes = {outer}
memory_latency_cycles = 100
coherence = "mesi"

[[level]]
name = "L1d"
size = "{} B"
ways = {WAYS}
line_bytes = {inner}
latency_cycles = 4

[[level]]
name = "L2"
size = "{} B"
ways = {WAYS}
line_bytes = {outer}
latency_cycles = 14
"#,
        INNER_SETS * WAYS * inner,
        OUTER_SETS * WAYS * outer,
    )
}

const WAYS: u64 = 4;
const INNER_SETS: u64 = 8;
const OUTER_SETS: u64 = 32;

/// A cache as the textbooks have it: sets of lines, the last used one in front.
struct NaiveCache {
    line_bytes: u64,
    sets: u64,
    /// Each line with the bytes that were touched since it was fetched.
    lines: Vec<Vec<(u64, BTreeSet<u64>)>>,
    misses: u64,
    unused_bytes: u64,
}

impl NaiveCache {
    fn new(line_bytes: u64, sets: u64) -> NaiveCache {
        NaiveCache { line_bytes, sets, lines: vec![Vec::new(); sets as usize], misses: 0, unused_bytes: 0 }
    }

    /// Looks up the line of some bytes, and returns whether it missed.
    fn miss(&mut self, bytes: std::ops::RangeInclusive<u64>) -> bool {
        let line = bytes.start() / self.line_bytes;
        let set = &mut self.lines[(line % self.sets) as usize];
        let found = set.iter().position(|(there, _)| *there == line);
        let mut entry = found.map_or((line, BTreeSet::new()), |at| set.remove(at));
        entry.1.extend(bytes);
        set.insert(0, entry);
        self.misses += u64::from(found.is_none());
        if set.len() > WAYS as usize {
            let (_, used) = set.pop().expect("a line");
            self.unused_bytes += self.line_bytes - used.len() as u64;
        }
        found.is_none()
    }
}

/// Misses, unused bytes, reuse and what is used of a line, of levels with lines of one size and of two.
#[test]
fn what_lines_hold_is_as_a_naive_model_says() {
    let recorded = Recorded::new(WALK, &one_core(64, 64));
    for (inner, outer) in [(64, 64), (64, 128), (128, 128), (32, 256)] {
        std::fs::write(recorded.0.path().join("tiny.toml"), one_core(inner, outer)).expect("a file");
        let json = |words: &[&str]| -> Value {
            serde_json::from_str(&recorded.run(&[words, &["-m", "./tiny.toml", "--json"]].concat()))
                .expect("JSON")
        };
        let rows =
            recorded.run(&["replay", "trace", "-m", "./tiny.toml", "--rows", "hits", "--format", "ndjson"]);
        let (mut first, mut second) =
            (NaiveCache::new(inner, INNER_SETS), NaiveCache::new(outer, OUTER_SETS));
        // Last use of each line of the machine's, and the numbers of others used since.
        let mut stack: Vec<u64> = Vec::new();
        let mut distances: BTreeMap<Option<usize>, u64> = BTreeMap::new();
        for row in rows.lines() {
            let row: Value = serde_json::from_str(row).expect("a row");
            for line in lines_of(&row, inner) {
                let (address, bytes) = extent_of(&row);
                let from = address.max(line * inner);
                let to = (address + bytes - 1).min(line * inner + inner - 1);
                if first.miss(from..=to) {
                    second.miss(from..=to);
                }
            }
            for line in lines_of(&row, outer) {
                let at = stack.iter().rev().position(|&there| there == line);
                *distances.entry(at).or_default() += 1;
                stack.retain(|&there| there != line);
                stack.push(line);
            }
        }
        let sizes = format!("{inner} and {outer}");

        let sim = json(&["sim", "trace"]);
        let misses = &sim["total"]["misses"];
        assert_eq!((&misses["L1d"], &misses["L2"]), (&first.misses.into(), &second.misses.into()), "{sizes}");
        assert_eq!(sim["total"]["causes"][0]["fetched_bytes"], first.misses * inner, "{sizes}");
        // Lines that are there in the end count, too.
        let left = |(_, used): &(u64, BTreeSet<u64>)| inner - used.len() as u64;
        let unused = first.unused_bytes + first.lines.iter().flatten().map(left).sum::<u64>();
        assert_eq!(sim["total"]["causes"][0]["unused_bytes"], unused, "{sizes}");

        let report = json(&["report", "trace"]);
        assert_eq!(report["total"]["misses"], *misses, "{sizes}");
        let evidence = report["findings"][0]["evidence"].as_array().expect("evidence");
        let density = evidence.iter().find(|one| one["kind"] == "density").expect("of a line a part is used");
        let line = if density["level"] == "L1d" { inner } else { outer };
        assert_eq!(density["line_bytes"], line, "{sizes}: {density}");
        // A key is eight bytes, and the other items of a line are not used before it goes.
        let used = line.div_ceil(64) * 8;
        assert!(density["line_used_bytes"].as_u64().expect("bytes") <= used, "{sizes}: {density}");

        let reuse = json(&["replay", "trace", "--analyse", "reuse"]);
        let curve = reuse["tables"][0]["rows"].as_array().expect("rows");
        assert!(!curve.is_empty(), "{sizes}: {reuse}");
        for point in curve {
            let lines = (point["cache_bytes"].as_u64().expect("bytes") / outer) as usize;
            let misses: u64 = distances
                .iter()
                .filter(|(distance, _)| distance.is_none_or(|distance| distance >= lines))
                .map(|(_, count)| count)
                .sum();
            assert_eq!(point["misses"], misses, "{sizes}: {point}");
        }
    }
}

/// Threads that count 64 bytes apart, and wait for each other where nothing is recorded.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <semaphore.h>

enum { TURNS = 200 };
struct counter { volatile long count; char rest[56]; };
static struct counter counters[2] __attribute__((aligned(256)));
static sem_t turns[2];

static void *work(void *argument) {
  int me = argument != 0;
  for (int i = 0; i < TURNS; i++) {
    sem_wait(&turns[me]);
    for (int j = 0; j < 8; j++) counters[me].count++;
    sem_post(&turns[!me]);
  }
  return 0;
}

int main(void) {
  pthread_t other;
  sem_init(&turns[0], 0, 1);
  sem_init(&turns[1], 0, 0);
  if (pthread_create(&other, 0, work, &other)) return 1;
  work(0);
  return pthread_join(other, 0);
}
"#;

/// Counters of two threads are put a line of the machine's apart, however long it is.
#[test]
fn advice_for_threads_knows_the_line() {
    let recorded = Recorded::new(COUNTERS, &machine(64));
    for line_bytes in [64, 128, 256] {
        std::fs::write(recorded.0.path().join("tiny.toml"), machine(line_bytes)).expect("a file");
        let text = recorded.run(&["advise", "trace", "-m", "./tiny.toml"]);
        let edit = format!("align counter to {line_bytes}");
        assert_eq!(text.contains(&edit), line_bytes > 64, "{line_bytes}: {text}");
    }
}

/// Returns a row's address and bytes.
fn extent_of(row: &Value) -> (u64, u64) {
    let number = |key: &str| {
        let value = &row[key];
        value.as_u64().unwrap_or_else(|| {
            let text = value.as_str().expect("an address").trim_start_matches("0x");
            u64::from_str_radix(text, 16).expect("an address")
        })
    };
    (number("address"), number("bytes"))
}

/// Returns the lines that a row's access touches.
fn lines_of(row: &Value, line_bytes: u64) -> std::ops::RangeInclusive<u64> {
    let (first, bytes) = extent_of(row);
    first / line_bytes..=(first + bytes - 1) / line_bytes
}
