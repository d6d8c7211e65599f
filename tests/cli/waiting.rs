//! Waiting of programs, in reports: what leads, and what is not mentioned.

use serde_json::Value;

use crate::sim::Recorded;

/// A list whose nodes lie in the order of the walk, one whose nodes do not, and the making of both.
const LISTS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct link { struct link *next; long value; char rest[48]; };
enum { LINKS = 100000 };
static struct link ordered[LINKS], mixed[LINKS];
static uint32_t order[LINKS];

__attribute__((noinline)) static long walk_ordered(struct link *at) {
  long sum = 0;
  for (; at; at = at->next) sum += at->value;
  return sum;
}

__attribute__((noinline)) static long walk_mixed(struct link *at) {
  long sum = 0;
  for (; at; at = at->next) sum += at->value;
  return sum;
}

__attribute__((noinline)) static void make(struct link *links) {
  for (int i = 0; i + 1 < LINKS; i++) {
    links[order[i]].next = &links[order[i + 1]];
    links[order[i]].value = i;
  }
}

int main(void) {
  uint64_t seed = 1;
  for (uint32_t i = 0; i < LINKS; i++) order[i] = i;
  make(ordered);
  for (uint32_t i = LINKS - 1; i > 0; i--) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t other = (uint32_t)(seed >> 33) % i, kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  make(mixed);
  long sum = 0;
  for (int round = 0; round < 3; round++) sum += walk_ordered(ordered) + walk_mixed(&mixed[order[0]]);
  printf("%ld\n", sum);
}
"#;

/// Buckets that are found by an index, with an overflow chain that one in a thousand has; and a walk of a list by a cursor, whose
/// position lies in memory.
const POSITIONS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1 << 16, SLOTS = 16 };
struct bucket { double slots[SLOTS]; struct bucket *more; };
struct link { struct link *next; long value; char rest[48]; };
struct cursor { struct link *at; };

__attribute__((noinline)) static long fill(struct bucket *buckets, const int *counts) {
  long followed = 0;
  for (uint32_t step = 0; step < BUCKETS; step++) {
    uint32_t number = step * 40503u % BUCKETS;
    struct bucket *bucket = &buckets[number];
    for (int slot = 0; slot < counts[number]; slot++) {
      bucket->slots[slot % SLOTS] += 1;
      if (slot % SLOTS == SLOTS - 1) bucket = bucket->more, followed++;
    }
  }
  return followed;
}

__attribute__((noinline)) static int advance(struct cursor *cursor, long *value) {
  struct link *link = cursor->at;
  if (!link) return 0;
  *value = link->value;
  cursor->at = link->next;
  return 1;
}

int main(void) {
  struct bucket *buckets = calloc(BUCKETS, sizeof *buckets);
  int *counts = calloc(BUCKETS, sizeof *counts);
  for (int i = 0; i < BUCKETS; i++) {
    counts[i] = i % 1000 ? 1 : SLOTS + 1;
    if (counts[i] > SLOTS) buckets[i].more = calloc(1, sizeof *buckets);
  }
  struct link *links = calloc(BUCKETS, sizeof *links), *first = 0;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    struct link *link = &links[i * 40503u % BUCKETS];
    link->value = i;
    link->next = first;
    first = link;
  }
  long sum = fill(buckets, counts) + fill(buckets, counts), value;
  struct cursor cursor = {first};
  while (advance(&cursor, &value)) sum += value;
  printf("%ld\n", sum);
}
"#;

/// Arithmetic on a table that fits into the first level.
const BUSY: &str = r#"
#include <stdint.h>
#include <stdio.h>

static uint32_t table[256];

int main(void) {
  uint32_t sum = 1;
  for (int i = 0; i < 3000000; i++) sum = (sum ^ table[sum % 256]++) * 2654435761u;
  printf("%u\n", sum);
}
"#;

pub const MACHINE: &str = r#"
name = "small"
description = "two levels"
sources = ["made up"]
cores = 1
line_bytes = 64
memory_latency_cycles = 300

[[level]]
name = "L1d"
size = "16 KiB"
ways = 4
latency_cycles = 4

[[level]]
name = "L2"
size = "256 KiB"
ways = 8
latency_cycles = 14

[[level]]
name = "L3"
size = "1 MiB"
ways = 8
latency_cycles = 60
"#;

pub fn report(recorded: &Recorded) -> Value {
    let json = recorded.run(&["report", "trace", "-m", "./tiny.toml", "--json"]);
    serde_json::from_str(&json).expect("JSON")
}

/// The way in which a finding's accesses wait.
pub fn how(finding: &Value) -> Option<Value> {
    let evidence = finding["evidence"].as_array().expect("evidence").iter();
    evidence.filter(|fact| fact["kind"] == "waits").map(|fact| fact["how"].clone()).next()
}

#[test]
fn a_chain_leads_and_what_is_fetched_ahead_does_not() {
    let report = report(&Recorded::new(LISTS, MACHINE));
    let findings = report["findings"].as_array().expect("findings");
    let of = |function: &str| {
        let finding = findings.iter().find(|finding| finding["function"] == function);
        finding.unwrap_or_else(|| panic!("no finding in {function}: {report}"))
    };
    assert_eq!(findings[0]["function"], "walk_mixed", "{report}");
    assert!(findings.iter().all(|finding| finding["function"] != "make"), "{report}");
    let (mixed, ordered) = (of("walk_mixed"), of("walk_ordered"));
    assert_eq!(how(mixed), Some("chained".into()));
    assert_eq!(how(ordered), Some("streamed".into()));
    let share = |finding: &Value| finding["cost"]["wait_share"].as_f64().expect("a share");
    assert!(share(mixed) > 0.6 && share(ordered) < 0.3, "{report}");
    // As many accesses miss in both: it is not misses that tell them apart.
    assert_eq!(mixed["misses"]["L2"], ordered["misses"]["L2"]);
    let total = &report["total"]["wait"];
    let sum: f64 =
        ["stored", "streamed", "chained", "overlapping"].iter().filter_map(|kind| total[kind].as_f64()).sum();
    assert!((sum - total["cycles"].as_f64().expect("cycles")).abs() < 1.0, "{total}");
    assert!(total["first_touch_cycles"].as_f64().is_some_and(|cycles| cycles > 0.0), "{total}");
}

#[test]
fn a_chain_is_one_that_was_followed_and_may_go_through_memory() {
    let report = report(&Recorded::new(POSITIONS, MACHINE));
    let findings = report["findings"].as_array().expect("findings");
    let of = |member: &str| {
        let finding = findings.iter().find(|finding| finding["member"] == member);
        finding.unwrap_or_else(|| panic!("no finding of {member}: {report}"))
    };
    assert_eq!(how(of("slots[]")), Some("overlapping".into()), "{report}");
    assert_eq!(how(of("value")), Some("chained".into()), "{report}");
}

/// A walk of the page tables for nearly each of the nodes, which `report` takes for granted and `sim` counts.
#[test]
fn walks_of_the_page_tables_are_waited_for_once() {
    const TLB: &str = r#"
[[tlb]]
name = "DTLB"
level = 1
pages = ["4 KiB"]
entries = 64
ways = 4
"#;
    let latency = "memory_latency_cycles = 300\n";
    let machine = MACHINE.replace(latency, &format!("{latency}page_walk_cycles = 150\n")) + TLB;
    let recorded = Recorded::new(LISTS, &machine);
    let chained = |report: &Value| {
        let objects = report["objects"].as_array().expect("objects");
        let mixed = objects.iter().find(|row| row["symbol"] == "mixed").expect("a row");
        let kinds = ["stored", "streamed", "chained", "overlapping"].map(|kind| &mixed["wait"][kind]);
        kinds.map(|cycles| cycles.as_f64().expect("cycles"))
    };
    let ([.., guessed, none], [.., counted, others]) =
        (chained(&report(&recorded)), chained(&recorded.json(&[])));
    assert!((0.9..1.01).contains(&(counted / guessed)), "{counted} of {guessed}");
    assert!(none == 0.0 && others < 0.01 * counted, "{none}, {others}");
}

#[test]
fn a_program_that_waits_for_nothing_gets_one_sentence() {
    let recorded = Recorded::new(BUSY, MACHINE);
    let report = report(&recorded);
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0), "{report}");
    let text = recorded.run(&["report", "trace", "-m", "./tiny.toml"]);
    let sentences = text.lines().filter(|line| line.starts_with("Findings"));
    let sentences: Vec<&str> = sentences.collect();
    assert!(
        matches!(sentences[..], [one] if one.contains("none. This run waits for data in about 0")),
        "{text}"
    );
}
