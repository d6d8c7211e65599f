//! Findings of `--analyse shared` about threads that use the same lines: a program that has each kind, in turns.

use serde_json::{Value, json};

use crate::sim::Recorded;

/// Two threads take turns a thousand times each. What is `_own` are variables of one thread beside those of the other, cleared by main
/// first and summed up by it in the end; `apart` are such variables in lines of their own; the rest is needed.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 1000, BOXES = 128 };
struct slot { volatile long hits; };
struct padded { volatile long hits; char rest[120]; };
struct stat { volatile long a, b, c, d, e, f; };
struct state { volatile long todo; long limit; };

static volatile int words_own[16] __attribute__((aligned(64)));
static struct stat stats_own[2] __attribute__((aligned(64)));
static volatile long locked_own[8] __attribute__((aligned(64)));
static struct padded apart[2] __attribute__((aligned(128)));
static struct { volatile long first, second; } mixed __attribute__((aligned(64)));
static volatile long boxes[BOXES] __attribute__((aligned(64)));
static volatile long handed[512] __attribute__((aligned(64)));
static _Alignas(64) _Atomic int turn;
static struct { pthread_mutex_t lock; char rest[88]; } locks[2] __attribute__((aligned(128)));
static struct slot *slots_own;

static void take(struct state *state) {
  state->todo++;
}

static struct state *shared_state;

static void *work(void *argument) {
  int me = argument != 0;
  for (int i = 0; i < 512; i++) handed[i] += me;
  for (int i = 0; i < TURNS; i++) {
    while (atomic_load(&turn) != 2 * i + me) sched_yield();
    slots_own[me].hits++;
    words_own[me]++;
    (&stats_own[me].a)[i % 6]++;
    apart[me].hits++;
    pthread_mutex_lock(&locks[me].lock);
    locked_own[me]++;
    pthread_mutex_unlock(&locks[me].lock);
    if (me == 0) {
      mixed.first = i;
      mixed.second = i; // <-- second
      for (int box = 5; box < BOXES; box += 8) boxes[box] += i;
    } else {
      long sum = mixed.second;
      for (int box = 0; box < BOXES; box++) sum += boxes[box];
      if (sum < 0) abort();
    }
    take(shared_state);
    atomic_store(&turn, 2 * i + me + 1);
  }
  return 0;
}

int main(void) {
  struct state state = {0, TURNS};
  pthread_t threads[2];
  slots_own = aligned_alloc(64, 64);
  memset(slots_own, 0, 64);
  memset((void *)words_own, 0, sizeof words_own);
  shared_state = &state;
  for (int i = 0; i < 512; i++) handed[i] = i;
  for (int i = 0; i < 2; i++) pthread_mutex_init(&locks[i].lock, 0);
  for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  long sum = state.todo + state.limit;
  for (int i = 0; i < 2; i++) sum += slots_own[i].hits + words_own[i] + locked_own[i] + stats_own[i].a;
  return sum == 0;
}
"#;

const MACHINE: &str = r#"
name = "two"
description = "two cores"
sources = ["made up"]
cores = 2
line_bytes = 64
memory_latency_cycles = 100

[[level]]
name = "L1d"
size = "32 KiB"
ways = 8
latency_cycles = 4

[cost.near]
transfer_cycles = 50.0
"#;

/// The line of the program with a mark.
fn line(mark: &str) -> u64 {
    let at = PROGRAM.lines().position(|line| line.ends_with(&format!("// <-- {mark}")));
    at.expect("a mark") as u64 + 1
}

#[test]
fn shared_variables_do_not_depend_on_who_clears_and_sums_up() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    let json = |words: &[&str]| -> Value {
        let command = [&["replay", "trace", "-m", "./tiny.toml", "--json"], words].concat();
        serde_json::from_str(&recorded.run(&command)).expect("JSON")
    };
    let found = json(&["--analyse", "shared"]);
    let rows = |table: usize| found["tables"][table]["rows"].as_array().expect("rows").clone();
    let names = |row: &Value| format!("{} {}", row["data"]["variable"], row["data"]["member"]);
    let shared: Vec<String> = rows(0).iter().map(names).collect();
    for name in ["todo", "second"] {
        assert!(shared.iter().any(|row| row.contains(name)), "{name}: {shared:?}");
    }
    let own: Vec<String> = rows(1).iter().map(names).collect();
    for name in ["words_own", "locked_own", "hits"] {
        assert!(own.iter().any(|row| row.contains(name)), "{name}: {own:?}");
        assert!(!shared.iter().any(|row| row.contains("_own")), "{shared:?}");
    }
    assert!(!own.iter().any(|row| row.contains("apart")), "{own:?}");
    let writes = |table| rows(table).iter().map(|row| row["writes"].as_u64()).collect::<Vec<_>>();
    assert!([0, 1].iter().all(|&table| writes(table).is_sorted_by(|a, b| a >= b)), "{found:#}");

    // To the letter: any address, written or not.
    let source = json(&["--analyse", "shared", "--rule", "source"]);
    assert_eq!(source, json(&["--analyse", "shared:rule=source"]));
    let rows = source["tables"][0]["rows"].as_array().expect("rows");
    let second = rows.iter().find(|row| row["line"] == line("second")).expect("a row");
    assert_eq!(second["totalcount"], 1000);
    assert_eq!(second["threadcount"], 1);
    // Threads are numbered as they were first heard of.
    assert!([json!([[1, 1000]]), json!([[2, 1000]])].contains(&second["threads"]), "{second}");
    assert!(second["file"].as_str().is_some_and(|file| file.ends_with(".c")), "{second}");
    assert!(second["variable"].as_str().is_some_and(|name| name.ends_with("second")), "{second}");
    let counts: Vec<_> = rows.iter().map(|row| row["totalcount"].as_u64()).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
}
