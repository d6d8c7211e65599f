//! `memlode sim --time`: what takes the time, on programs whose waits are known.

use serde_json::Value;

use crate::sim::Recorded;
use crate::stderr;

/// Nodes in an order that nothing foretells, read one after the other; an array read from front to
/// back; words that are written by halves and read whole; words that lie in two lines; two arrays,
/// of which each iteration reads one place of each, both of which were loaded in the iteration
/// before.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
enum { NODES = 1 << 14, WORDS = 1 << 15, TURNS = 1000 };
struct node { struct node *next; long rest[31]; };
static struct node nodes[NODES];
static long words[WORDS];
static volatile union { uint32_t half[2]; uint64_t whole; } both;
static _Alignas(4096) char packed[128 * (TURNS + 1)];
static struct { unsigned part; unsigned rest[63]; } left[NODES], right[NODES];
__attribute__((noinline)) static unsigned both_at_once(void) {
  unsigned at = 1;
  for (int i = 0; i < NODES; i++) at = left[at].part + right[at].part;
  return at;
}
__attribute__((noinline)) static long chase(struct node *node) {
  long count = 0;
  for (; node; node = node->next) count++;
  return count;
}
__attribute__((noinline)) static long sweep(void) {
  long sum = 0;
  for (int i = 0; i < WORDS; i++) sum += ((volatile long *)words)[i];
  return sum;
}
__attribute__((noinline)) static long halves(void) {
  long sum = 0;
  for (int i = 0; i < TURNS; i++) {
    both.half[0] = i;
    sum += both.whole;
  }
  return sum;
}
__attribute__((noinline)) static long across(void) {
  long sum = 0;
  for (int i = 0; i < TURNS; i++) sum += *(volatile long *)(packed + 128 * i + 124);
  return sum;
}
int main(void) {
  for (int i = 0; i < WORDS; i++) ((volatile long *)words)[i] = i;
  unsigned at = 0;
  for (int i = 0; i < NODES - 1; i++) {
    unsigned next = (at * 5 + 12345) % NODES;
    nodes[at].next = &nodes[next];
    at = next;
  }
  for (unsigned i = 0; i < NODES; i++) {
    left[i].part = (i * 5 + 12345) % NODES / 3;
    right[i].part = (i * 5 + 12345) % NODES - left[i].part;
  }
  return (chase(nodes) + sweep() + halves() + across() + both_at_once()) == 1;
}
"#;

const MACHINE: &str = r#"
name = "tiny"
description = "one core with times of its own"
sources = ["made up"]
cores = 1
line_bytes = 64
memory_latency_cycles = 300
store_buffer_entries = 8
reorder_buffer_entries = 200

[cost]
clock_ghz = 1.0
read_line_cycles = 15.0

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
"#;

fn row<'a>(rows: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = rows.as_array().expect("rows").iter().find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("no {name} in {rows}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn it_says_what_takes_the_time_and_what_is_waited_for() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    let text = recorded.run(&["sim", "trace", "-m", "./tiny.toml", "--time", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found["format"], "memlode sim --time");
    let functions = &found["functions"];

    // Nothing but a chain, and every link is as far as memory.
    let chase = row(functions, "function", "chase");
    let cycles = number(&chase["cycles"]);
    assert!((16380.0 * 300.0..16384.0 * 310.0).contains(&cycles), "{cycles}");
    assert!(number(&chase["stalls"]["chain"]) > 0.95 * cycles, "{chase}");
    // Two loads that wait for both of the turn before take one latency a turn.
    let both = row(functions, "function", "both_at_once");
    let cycles = number(&both["cycles"]);
    assert!((16380.0 * 300.0..16384.0 * 330.0).contains(&cycles), "{cycles}");
    // The same number of bytes from front to back costs the bandwidth.
    let sweep = row(functions, "function", "sweep");
    let lines = 32768.0 / 8.0;
    assert!((14.5 * lines..16.5 * lines).contains(&number(&sweep["cycles"])), "{sweep}");
    assert!(number(&sweep["stalls"]["bandwidth"]) > 0.5 * number(&sweep["cycles"]), "{sweep}");
    // A load of a word half of which is on its way to the cache waits, each time.
    let halves = row(functions, "function", "halves");
    assert_eq!((&halves["blocked_loads"], &halves["forwarded_loads"]), (&Value::from(1000), &Value::from(0)));
    let across = row(functions, "function", "across");
    assert_eq!(across["line_crossings"], 1000);
    // Of one in 32, the second line lies in the next page.
    assert_eq!(across["page_crossings"], 31);

    // What is charged adds up, whatever it is asked by; a clock of 1 GHz makes cycles nanoseconds.
    let total = number(&found["total"]["cycles"]);
    assert!((number(&found["total"]["ms"]) - total / 1e6).abs() < 1e-6);
    for table in ["lines", "data", "objects", "functions", "threads"] {
        let rows = found[table].as_array().expect("rows");
        let sum: f64 = rows.iter().map(|row| number(&row["cycles"])).sum();
        assert!((sum - total).abs() <= 0.1 * rows.len() as f64, "{table}: {sum} of {total}");
        let shares: f64 = rows.iter().map(|row| number(&row["share"])).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{table}");
        for row in rows {
            let stalls: f64 = row["stalls"].as_object().expect("stalls").values().map(number).sum();
            let parts = stalls + number(&row["instruction_cycles"]);
            assert!((parts - number(&row["cycles"])).abs() < 1.0, "{row}");
        }
    }

    let text = recorded.run(&["sim", "trace", "-m", "./tiny.toml", "--time", "--by", "function,data"]);
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or(&text);
    assert!(line("chase").contains("chain "), "{text}");
    assert!(line("time").contains("by the model, of which"), "{text}");
    assert!(text.contains("wait for a store"), "{text}");
}

#[test]
fn rules_and_bursts_have_no_time() {
    let program =
        "int main(void) { static volatile int a[4]; for (int i = 0; i < 30000000; i++) a[a[i & 3] & 3]++; }";
    let recorded = Recorded::new(program, MACHINE);
    for option in [["--rules", "lru"], ["--placement", "interleave"]] {
        let refused =
            recorded.try_run(&[&["sim", "trace", "-m", "./tiny.toml", "--time"], &option[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    }
    recorded.run(&["record", "--burst", "1ms/10ms", "-o", "bursts", "--", "./program"]);
    let refused = recorded.try_run(&["sim", "bursts", "-m", "./tiny.toml", "--time"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("whole trace"), "{}", stderr(&refused));
}
