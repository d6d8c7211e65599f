//! `memlode sim`: why a program missed, on a machine small enough to count by hand.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Three habits, each with a type of its own. What is volatile is done as written.
const PROGRAM: &str = r#"
struct way { volatile long value; char rest[1016]; };
struct cell { volatile long key; char rest[56]; };
struct pair { volatile long stored; char rest[4088]; volatile long loaded; };

static struct way ways[5] __attribute__((aligned(4096)));
static struct cell cells[256] __attribute__((aligned(4096)));
static struct pair pair __attribute__((aligned(4096)));

int main(void) {
  long sum = 0;
  for (int round = 0; round < 100; round++)
    for (int i = 0; i < 5; i++) sum += ways[i].value;
  for (int round = 0; round < 4; round++)
    for (int i = 0; i < 256; i++) sum += cells[i].key;
  for (int i = 0; i < 100; i++) {
    pair.stored = i;
    sum += pair.loaded;
  }
  return sum != 0;
}
"#;

/// Lines that are 1024 bytes apart meet in a set of the first level, which has 64 lines in all.
const MACHINE: &str = r#"
name = "tiny"
description = "small enough to count by hand"
sources = ["made up"]
cores = 1
line_bytes = 64
memory_latency_cycles = 100
page_walk_cycles = 20
store_buffer_entries = 8
reorder_buffer_entries = 32

[[level]]
name = "L1d"
size = "4 KiB"
ways = 4
latency_cycles = 4

[[level]]
name = "L2"
size = "64 KiB"
ways = 16
latency_cycles = 12

[[tlb]]
name = "DTLB"
level = 1
pages = ["4 KiB", "2 MiB"]
entries = 4
ways = 4
"#;

/// A folder with the trace of a program and a machine to simulate it on.
pub struct Recorded(pub TempDir);

impl Recorded {
    pub fn new(program: &str, machine: &str) -> Recorded {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("program.c"), program).expect("a file");
        fs::write(folder.path().join("tiny.toml"), machine).expect("a file");
        let recorded = Recorded(folder);
        recorded.run(&["cc", "-O2", "-pthread", "program.c", "-o", "program"]);
        recorded.run(&["record", "-o", "trace", "--", "./program"]);
        recorded
    }

    pub fn try_run(&self, words: &[&str]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "100").current_dir(self.0.path());
        command.args(words).output().expect("memlode runs")
    }

    pub fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let sim = ["sim", "trace", "-m", "./tiny.toml", "--json"];
        serde_json::from_str(&self.run(&[&sim, words].concat())).expect("JSON")
    }
}

pub fn field<'a>(sim: &'a Value, ty: &str, member: &str) -> &'a Value {
    let is_it = |row: &&Value| row["type"] == ty && row["member"] == member;
    sim["fields"].as_array().expect("fields").iter().find(is_it).expect("a row")
}

#[test]
fn every_miss_has_its_cause() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    let sim = recorded.json(&[]);
    let causes = |row: &Value, level: usize| {
        let causes = &row["causes"][level];
        ["cold", "capacity", "conflict", "fetched_bytes", "unused_bytes"]
            .map(|key| causes[key].as_u64().expect(key))
    };
    let text = |value: &Value| value.as_str().expect("a name").to_string();
    let evictor = |row: &Value| {
        let first = &row["causes"][0]["evicted_by"][0];
        let by = &sim["fields"][first["row"].as_u64().expect("a row") as usize];
        (format!("{}.{}", text(&by["type"]), text(&by["member"])), first["misses"].as_u64())
    };
    // Five lines in a set of four, and 59 places unused elsewhere.
    let ways = field(&sim, "way", "value");
    assert_eq!(causes(ways, 0), [5, 0, 495, 500 * 64, 500 * 56]);
    assert_eq!(causes(ways, 1), [5, 0, 0, 5 * 64, 5 * 56]);
    assert_eq!(evictor(ways), ("way.value".to_string(), Some(495)));
    // 256 lines in turn through a cache of 64; the next one holds them.
    let cells = field(&sim, "cell", "key");
    assert_eq!(causes(cells, 0), [256, 768, 0, 1024 * 64, 1024 * 56]);
    assert_eq!(causes(cells, 1), [256, 0, 0, 256 * 64, 256 * 56]);
    assert_eq!(evictor(cells), ("cell.key".to_string(), Some(768)));
    // Four pages, each walked for once and used from end to end.
    assert_eq!(cells["translation"]["walks"], 4);
    assert_eq!(cells["translation"]["cycles"], 80);
    assert_eq!(cells["translation"]["unused_bytes"], 0);
    // 768 answers of the next level, 256 of memory, and the walks.
    assert_eq!(cells["stall_cycles"], 768 * 8 + 256 * 96 + 80);
    // Every load follows a store that is 4096 bytes below.
    let loaded = field(&sim, "pair", "loaded");
    assert_eq!((&loaded["alias_conflicts"], &loaded["reads"]), (&100.into(), &100.into()));
    let alias = &sim["aliases"][0];
    assert_eq!((&alias["load"]["member"], &alias["store"]["member"]), (&"loaded".into(), &"stored".into()));
    assert_eq!((&alias["conflicts"], &alias["least_accesses"]), (&100.into(), &1.into()));
    // The causes are the level's misses.
    let level = &sim["machine"]["levels"][0];
    let sum: u64 = causes(&sim["total"], 0)[..3].iter().sum();
    assert_eq!(
        Some(sum),
        level["read_misses"].as_u64().zip(level["write_misses"].as_u64()).map(|(r, w)| r + w)
    );

    // One page of 2 MiB holds the cells, or two.
    let large = recorded.json(&["--pages", "2MiB"]);
    let walks = field(&large, "cell", "key")["translation"]["walks"].as_u64();
    assert!(walks <= Some(1), "{walks:?}");

    // The same for the cells alone.
    let dump = recorded.run(&["dump", "trace"]);
    let first =
        dump.lines().map(|line| line.split('\t').collect::<Vec<_>>()).find(|columns| columns[7] == "cells");
    let start =
        u64::from_str_radix(first.expect("a cell")[3].trim_start_matches("0x"), 16).expect("an address");
    let range = format!("4KiB,2MiB@{start:x}-{:x}", start + 256 * 64);
    let mixed = recorded.json(&["--pages", &range]);
    let walks = field(&mixed, "cell", "key")["translation"]["walks"].as_u64();
    assert!(walks <= Some(2), "{walks:?}");
    assert_eq!(field(&mixed, "way", "value")["translation"], ways["translation"]);

    let text = recorded.run(&["sim", "trace", "-m", "./tiny.toml", "--by", "field,line,type,object"]);
    for expected in ["way.value", "way.value 99", "4K aliasing", "line lost to", "Threads"] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    for (size, complaint) in [("3MiB", "power of two"), ("1GiB", "no first-level TLB")] {
        let output = recorded.try_run(&["sim", "trace", "-m", "./tiny.toml", "--pages", size]);
        assert_one_sentence(&output, &["tiny", complaint]);
    }
    let output = recorded.try_run(&["sim", "trace", "--pages", "big"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("as in 4096, 64k, 4KiB"), "{}", stderr(&output));
}

/// Sixty-four pages of each kind of memory, one after the other, ten times over. There is room for four translations.
const PLACES: &str = r#"
#include <stdlib.h>
struct page { volatile long value; char rest[4088]; };
static struct page table[64] __attribute__((aligned(4096)));
__attribute__((noinline)) static void walk(struct page *pages) {
  for (int round = 0; round < 10; round++)
    for (int i = 0; i < 64; i++) pages[i].value = i;
}
int main(void) {
  struct page local[64] __attribute__((aligned(4096)));
  struct page *block = aligned_alloc(4096, sizeof table);
  walk(table);
  walk(local);
  walk(block);
  return block == 0;
}
"#;

#[test]
fn memory_has_pages_by_its_name() {
    let recorded = Recorded::new(PLACES, MACHINE);
    // Walks of the page tables for accesses to the heap, the stack and the table.
    let walks = |pages: &[&str]| {
        let words = [&["sim", "trace", "-m", "./tiny.toml", "--json"], pages].concat();
        let sim: Value = serde_json::from_str(&recorded.run(&words)).expect("JSON");
        let rows = sim["objects"].as_array().expect("rows");
        ["heap", "stack", "global"].map(|kind| {
            let of_kind = rows.iter().filter(|row| row["kind"] == kind);
            of_kind.map(|row| row["translation"]["walks"].as_u64().expect("walks")).sum::<u64>()
        })
    };
    assert_eq!(walks(&[]), [640; 3]);
    // 256 KiB lie in one huge page, or in two.
    for (huge, place) in ["4KiB,2MiB@heap", "4KiB,2MiB@stack", "4KiB,2MiB@table"].iter().enumerate() {
        for (kind, walks) in walks(&["--pages", place]).into_iter().enumerate() {
            let expected = if kind == huge { 1..=2 } else { 640..=640 };
            assert!(expected.contains(&walks), "{place}: {walks} of {kind}");
        }
    }
    // Names go before ranges, and the last one counts.
    let all = "4KiB,2MiB@table,4KiB@table,2MiB@heap,4KiB@0-7fffffffffff";
    let [heap, stack, global] = walks(&["--pages", all]);
    assert!((1..=2).contains(&heap) && (stack, global) == (640, 640), "{heap} {stack} {global}");

    let output =
        recorded.try_run(&["sim", "trace", "-m", "./tiny.toml", "--pages", "4KiB,2MiB@tabel,2MiB@heap"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("memory whose allocation was recorded lies in pages of 2 MiB"));
    assert_eq!(stderr(&output), "memlode: note: --pages: nothing that was accessed is called tabel\n");
}
