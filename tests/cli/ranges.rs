//! Ranges of objects: by thread, by call path, and by block in order of allocation.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::analyses::{Recorded, steps};

/// Two threads write a half of a table each, by two call paths; forty blocks live one after the other.
const HALVES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
struct node { volatile long first, rest[6], last; };
static volatile long table[1024];
static void *work(void *from) {
  for (long i = 0; i < 512; i++) table[(long)from + i] = i;
  return 0;
}
int main(void) {
  pthread_t other;
  work((void *)0);
  pthread_create(&other, 0, work, (void *)512);
  pthread_join(other, 0);
  for (int i = 0; i < 40; i++) {
    struct node *node = malloc(sizeof *node);
    node->first = i;
    node->last = i;
    free(node);
  }
  return 0;
}
"#;

#[test]
fn parts_of_objects_are_those_that_each_thread_accesses() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("halves.c"), HALVES).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "-fno-builtin", "halves.c", "-o", "halves", "-lpthread"]);
    recorded.run(&["record", "-o", "trace", "--", "./halves"]);
    let found = recorded.json(&["replay", "trace", "--analyse", "ranges"]);
    let rows = |table: usize, symbol: &str, thread: u64| {
        let rows = found["tables"][table]["rows"].as_array().expect("rows").iter();
        let is_it = move |row: &&Value| row["thread"] == thread && row["object"].to_string().contains(symbol);
        rows.filter(is_it).collect::<Vec<_>>()
    };
    let numbers = |row: &Value| {
        let columns = ["accesses", "from", "p5", "p95", "to", "bin_bytes", "object_bytes"];
        columns.map(|column| row[column].as_u64().expect("a number"))
    };
    // Bins of 128 bytes have 16 accesses each: 26 of 512 are the first twentieth, 487 the last but one.
    assert_eq!(numbers(rows(0, "\"table\"", 0)[0]), [512, 0, 128, 3968, 4096, 128, 8192]);
    assert_eq!(numbers(rows(0, "\"table\"", 1)[0]), [512, 4096, 4224, 8064, 8192, 128, 8192]);
    // Of all blocks of the allocation, by the offset in each.
    assert_eq!(numbers(rows(0, "\"main\"", 0)[0]), [80, 0, 0, 57, 57, 1, 64]);
    let bins = |row: &Value| {
        let bins = row["bins"].as_array().expect("bins").iter();
        bins.map(|bin| bin.as_u64().expect("a count")).collect::<Vec<_>>()
    };
    let whole = bins(rows(0, "\"table\"", 1)[0]);
    assert_eq!((&whole[..32], &whole[32..]), (&[0; 32][..], &[16; 32][..]));
    let stretches = rows(1, "\"table\"", 1);
    assert!(stretches.len() > 8, "{found}");
    let mut sums = vec![0; 64];
    for stretch in &stretches {
        sums.iter_mut().zip(bins(stretch)).for_each(|(sum, more)| *sum += more);
    }
    assert_eq!(sums, whole);
    // It goes through its half from the beginning to the end.
    assert!(stretches.windows(2).all(|two| two[0]["from"].as_u64() <= two[1]["from"].as_u64()), "{found}");
    // Its call paths are those of the threads.
    let by_path = |caller: &[(&str, u64)]| {
        let rows = found["tables"][2]["rows"].as_array().expect("rows").iter();
        let is_it =
            |row: &&Value| row["object"]["symbol"] == "table" && steps(row)[1..].len() == caller.len();
        let found: Vec<_> = rows.filter(is_it).collect();
        let [row] = &found[..] else { panic!("{found:?}") };
        assert!(steps(row)[1..].iter().map(|(name, line)| (&name[..], *line)).eq(caller.iter().copied()));
        row["stall_cycles"].as_u64().filter(|cycles| *cycles > 0).expect("it misses");
        (numbers(row), bins(row))
    };
    assert_eq!(by_path(&[("main", 12)]).0, [512, 0, 128, 3968, 4096, 128, 8192]);
    assert_eq!(by_path(&[]), (numbers(rows(0, "\"table\"", 1)[0]), whole));
    // Without paths, nothing else is different; and each block is accessed twice.
    let again = recorded.json(&["replay", "trace", "--analyse", "ranges:contexts=0,blocks=yes"]);
    assert_eq!((&again["tables"][0], &again["tables"][1]), (&found["tables"][0], &found["tables"][1]));
    let [blocks] = &again["tables"][2]["rows"].as_array().expect("rows")[..] else { panic!("{again}") };
    let columns = ["blocks", "accesses", "from_block", "p5_block", "p95_block", "to_block", "bin_blocks"];
    let found = columns.map(|column| blocks[column].as_u64().expect("a number"));
    assert_eq!(found, [40, 80, 0, 1, 38, 40, 1], "{blocks}");
    assert_eq!(bins(blocks), [2; 40]);
}
