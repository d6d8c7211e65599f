//! Answers of `memlode report` on small programs whose answer is known: the data and function that lead, how they wait, and how much
//! of it is theirs.

use serde_json::Value;

use crate::sim::Recorded;
use crate::waiting::{MACHINE, how, report};

const HEAD: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline))
static uint32_t next(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }
"#;

/// The first finding that is right.
struct Answer {
    function: &'static str,
    /// The member, or else the variable.
    data: &'static str,
    how: &'static str,
    /// It has at least this part of the wait.
    share: f64,
}

fn first(program: &str) -> Value {
    let report = report(&Recorded::new(&format!("{HEAD}{program}"), MACHINE));
    let finding = report["findings"][0].clone();
    assert!(finding.is_object(), "no finding: {report}");
    finding
}

fn leads(program: &str, answer: &Answer) -> Value {
    let finding = first(program);
    let data = finding["member"].as_str().or_else(|| finding["variable"].as_str());
    assert_eq!(finding["function"], answer.function, "{finding}");
    assert_eq!(data, Some(answer.data), "{finding}");
    assert_eq!(how(&finding), Some(answer.how.into()), "{finding}");
    assert!(finding["cost"]["wait_share"].as_f64() >= Some(answer.share), "{finding}");
    finding
}

/// Sixty lines with as many arrays, each with a small part of the wait.
#[test]
fn many_lines_of_little_are_one_finding() {
    let lines: String = (0..60).map(|array| format!("sum += arrays[{array}][i];\n")).collect();
    let program = format!(
        r#"
enum {{ LENGTH = 1 << 13, ARRAYS = 60 }};
static double *arrays[ARRAYS];
APART static double wide(void) {{
  double sum = 0;
  for (int i = 0; i < LENGTH; i++) {{
{lines}  }}
  return sum;
}}
APART static double narrow(const double *array) {{
  double sum = 0;
  for (int i = 0; i < 8 * LENGTH; i++) sum += array[i];
  return sum;
}}
int main(void) {{
  for (int array = 0; array < ARRAYS; array++) {{
    arrays[array] = malloc(LENGTH * sizeof(double));
    for (int i = 0; i < LENGTH; i++) arrays[array][i] = array;
  }}
  double *other = calloc(8 * LENGTH, sizeof(double)), sum = 0;
  for (int i = 0; i < 8 * LENGTH; i++) other[i] = i;
  for (int round = 0; round < 4; round++) sum += wide() + narrow(other);
  printf("%g\n", sum);
}}
"#
    );
    let finding = first(&program);
    assert_eq!(finding["function"], "wide", "{finding}");
    assert!(finding["cost"]["wait_share"].as_f64() > Some(0.8), "{finding}");
}

/// A hundred functions that look through the same orders, each with a small part of the wait.
#[test]
fn many_functions_of_little_are_one_finding() {
    let members = ["id", "price", "weight", "place"];
    let functions: String = (0..100)
        .map(|number| {
            let member = members[number % members.len()];
            format!(
                "APART static double f{number}(const struct order *orders) {{
  double sum = {number};
  for (int i = 0; i < ORDERS; i++) sum += orders[i].{member};
  return sum;
}}\n"
            )
        })
        .collect();
    let calls: String = (0..100).map(|number| format!("sum += f{number}(orders);\n")).collect();
    let program = format!(
        r#"
enum {{ ORDERS = 1 << 13 }};
struct order {{ double id, price, weight, place; char rest[32]; }};
{functions}
int main(void) {{
  struct order *orders = calloc(ORDERS, sizeof *orders);
  for (int i = 0; i < ORDERS; i++) orders[i] = (struct order){{i, i, i, i, {{0}}}};
  double sum = 0;
  {calls}
  printf("%g\n", sum);
}}
"#
    );
    let report = report(&Recorded::new(&format!("{HEAD}{program}"), MACHINE));
    let findings = report["findings"].as_array().expect("findings");
    let [finding] = &findings[..] else { panic!("one finding: {report}") };
    assert_eq!(finding["type"], "order", "{finding}");
    assert!(finding["cost"]["wait_share"].as_f64() > Some(0.9), "{finding}");
    let evidence = finding["evidence"].as_array().expect("evidence");
    let together = evidence.iter().find(|one| one["kind"] == "together").expect("other lines");
    let lines = together["lines"].as_array().expect("lines");
    assert!(lines.len() > 90 && lines.iter().any(|line| line["function"] == "f7"), "{finding}");
}

/// An element of a member that is an array is no member of its own.
#[test]
fn an_array_that_is_read_whole_is_not_split() {
    let finding = leads(
        r#"
enum { ROWS = 4000 };
struct row { long id; int cells[254]; };
APART static long total(const struct row *rows) {
  long sum = 0;
  for (int row = 0; row < ROWS; row++)
    for (int cell = 0; cell < 254; cell++) sum += rows[row].cells[cell];
  return sum;
}
int main(void) {
  struct row *rows = malloc(ROWS * sizeof *rows);
  for (int row = 0; row < ROWS; row++) memset(&rows[row], row, sizeof *rows);
  printf("%ld\n", total(rows) + total(rows));
}
"#,
        &Answer { function: "total", data: "cells[]", how: "streamed", share: 0.9 },
    );
    assert!(finding["edit"].is_null(), "{finding}");
}

/// An index from an array, or from a search that never runs.
#[test]
fn a_way_that_was_not_taken_makes_no_chain() {
    leads(
        r#"
enum { LENGTH = 1 << 18 };
APART static double gather(const double *values, const int *index, int is_searched) {
  double sum = 0;
  for (long i = 0; i < LENGTH; i++) {
    long at = index[i];
    if (is_searched) {
      long low = 0, high = LENGTH - 1;
      while (high - low > 1) {
        long middle = (low + high) / 2;
        if (values[middle] > at) high = middle; else low = middle;
      }
      at = low;
    }
    sum += values[at];
  }
  return sum;
}
int main(int count, char **words) {
  double *values = malloc(LENGTH * sizeof *values);
  int *index = malloc(LENGTH * sizeof *index);
  uint32_t seed = 1;
  for (long i = 0; i < LENGTH; i++) values[i] = i, index[i] = next(&seed) >> 14;
  printf("%g\n", gather(values, index, count > 1) + gather(values, index, count > 1));
}
"#,
        &Answer { function: "gather", data: "values", how: "overlapping", share: 0.8 },
    );
}

/// All misses are those of instructions that the compiler does not know.
#[test]
fn inline_assembly_waits_as_well() {
    let finding = leads(
        r#"
enum { LINES = 1 << 15, UPDATES = 200000 };
static inline void add(long *to, long by) { __asm__ volatile("lock addq %1, %0" : "+m"(*to) : "er"(by)); }
APART static void count(long *lines) {
  uint32_t seed = 1;
  for (int i = 0; i < UPDATES; i++) add(&lines[(next(&seed) >> 17) * 8], i);
}
int main(void) {
  long *lines = calloc(LINES, 64);
  count(lines);
  printf("%ld\n", lines[8]);
}
"#,
        &Answer { function: "add", data: "to", how: "stored", share: 0.9 },
    );
    assert_eq!(finding["accesses"], 200_000, "{finding}");
}

/// Lines that are filled one after the other cost their bandwidth, and not a latency each.
#[test]
fn probes_lead_before_a_fill_of_more_lines() {
    leads(
        r#"
enum { ENTRIES = 1 << 18, PROBES = 100000 };
struct entry { uint64_t key, value; };
APART static void clear(struct entry *entries) {
  memset(entries, 0, ENTRIES * sizeof *entries);
  __asm__ volatile("" : : "r"(entries) : "memory");
}
APART static uint64_t probe(const struct entry *entries) {
  uint64_t found = 0;
  uint32_t seed = 1;
  for (int i = 0; i < PROBES; i++) found += entries[((next(&seed) >> 14) + found) % ENTRIES].key + 1;
  return found;
}
int main(void) {
  struct entry *entries = malloc(ENTRIES * sizeof *entries);
  clear(entries);
  clear(entries);
  printf("%llu\n", (unsigned long long)probe(entries));
}
"#,
        &Answer { function: "probe", data: "key", how: "chained", share: 0.6 },
    );
}

/// Two pointers that approach each other in steps, although the iterations depend on loaded values.
#[test]
fn steps_from_both_ends_are_streams() {
    leads(
        r#"
enum { RECORDS = 1 << 16, BLOCK = 64 };
struct record { uint64_t key, value; };
APART static long partition(struct record *low, struct record *high, uint64_t pivot) {
  unsigned char from[BLOCK], to[BLOCK];
  long moved = 0;
  while (high - low > 2 * BLOCK) {
    int first = 0, last = 0;
    for (int i = 0; i < BLOCK; i++) { from[first] = i; first += low[i].key >= pivot; }
    for (int i = 0; i < BLOCK; i++) { to[last] = i; last += high[-1 - i].key < pivot; }
    int both = first < last ? first : last;
    for (int i = 0; i < both; i++) moved += from[i] + to[i];
    low += BLOCK, high -= BLOCK;
  }
  return moved;
}
int main(void) {
  struct record *records = malloc(RECORDS * sizeof *records);
  uint32_t seed = 1;
  for (int i = 0; i < RECORDS; i++) records[i] = (struct record){next(&seed), i};
  long moved = 0;
  for (int round = 0; round < 4; round++) moved += partition(records, records + RECORDS, 1u << 31);
  printf("%ld\n", moved);
}
"#,
        &Answer { function: "partition", data: "key", how: "streamed", share: 0.9 },
    );
}

/// Loads that were moved out of a loop and lost their lines are those of the loop, not of the wrapper that made their pointer.
#[test]
fn a_load_without_a_line_is_not_given_that_of_the_allocation() {
    let recorded = Recorded::new(
        &format!(
            "{HEAD}{}",
            r#"
enum { BLOCKS = 1 << 13 };
static inline double *take(size_t count) {
  return malloc(count * sizeof(double)); // the wrapper
}
APART static double work(const double *signs) {
  double *left = take(8 * BLOCKS), *right = take(8 * BLOCKS), sum = 0;
  for (int i = 0; i < 8 * BLOCKS; i++) left[i] = right[i] = i & 15;
  for (int block = 0; block < BLOCKS; block++) {
    double parts[8][4];
    for (int k = 0; k < 4; k++) {
      double all = 0;
      for (int c = 0; c < 8; c++) all += left[8 * block + c] * signs[8 * k + c];
      for (int c = 0; c < 8; c++) parts[c][k] = signs[8 * k + c] - right[8 * block + c] * all;
    }
    for (int c = 0; c < 8; c++) sum += parts[c][0] * parts[c][1] - parts[c][2] * parts[c][3];
  }
  free(left);
  free(right);
  return sum;
}
int main(void) {
  double signs[32], sum = 0;
  for (int i = 0; i < 32; i++) signs[i] = i & 1 ? -1 : 1;
  for (int round = 0; round < 4; round++) sum += work(signs);
  printf("%g\n", sum);
}
"#
        ),
        MACHINE,
    );
    let report = report(&recorded);
    let lines = report["lines"].as_array().expect("lines");
    assert!(lines.iter().any(|line| line["function"] == "work"), "{report}");
    assert!(lines.iter().all(|line| line["function"] != "take"), "{report}");
}

/// A table that fits the second level is read between fills of a large buffer. Fills past the caches leave it there.
#[cfg(target_arch = "x86_64")]
#[test]
fn stores_past_the_caches_leave_them_alone() {
    let recorded = Recorded::new(
        &format!(
            r#"{HEAD}
#include <immintrin.h>
enum {{ LENGTH = 1 << 18, ENTRIES = 1 << 12, ROUNDS = 4 }};
static long long *buffer, *table;
APART static void fill_through(int round) {{
  for (int i = 0; i < LENGTH; i++) ((volatile long long *)buffer)[i] = i + round;
}}
APART static void fill_past(int round) {{
  for (int i = 0; i < LENGTH; i++) _mm_stream_si64(&buffer[i], i + round);
  _mm_sfence();
}}
APART static long long after_through(void) {{
  long long sum = 0;
  for (int i = 0; i < ENTRIES; i += 8) sum += ((volatile long long *)table)[i];
  return sum;
}}
APART static long long after_past(void) {{
  long long sum = 1;
  for (int i = 0; i < ENTRIES; i += 8) sum += ((volatile long long *)table)[i];
  return sum;
}}
int main(void) {{
  buffer = aligned_alloc(64, LENGTH * sizeof *buffer);
  table = calloc(ENTRIES, sizeof *table);
  long long sum = 0;
  for (int round = 0; round < ROUNDS; round++) {{
    fill_through(round);
    sum += after_through();
    fill_past(round);
    sum += after_past();
  }}
  printf("%lld\n", sum + buffer[5]);
}}
"#
        ),
        MACHINE,
    );
    // By the formula, and simulated with all rules.
    for of in [report(&recorded), recorded.json(&[])] {
        let misses = |function: &str| -> u64 {
            let rows = of["lines"].as_array().expect("lines").iter();
            let of_it = rows.filter(|row| row["function"] == function);
            of_it.map(|row| row["misses"]["L2"].as_u64().expect("misses")).sum()
        };
        assert_eq!(misses("after_past"), 0, "the table was read just before: {of}");
        assert!(misses("after_through") >= 4 * 512 - 8, "the fill takes its place: {of}");
        let lines = (1 << 18) * 8 / 64;
        assert_eq!(misses("fill_past"), 4 * lines, "each line goes to memory once: {of}");
    }
    let report = report(&recorded);
    let finding = &report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["function"] == "fill_past");
    let kinds = finding.expect("it waits")["evidence"].as_array().expect("evidence");
    assert!(kinds.iter().any(|fact| fact["kind"] == "past_caches"), "{report}");
    // In time, the lines that are written take what lines that are read take.
    let timed = recorded.json(&["--time"]);
    let rows = timed["functions"].as_array().expect("functions");
    let time = |function: &str| {
        let row = rows.iter().find(|row| row["function"] == function).expect("a row");
        row["cycles"].as_f64().expect("cycles")
    };
    assert!(time("after_through") > 3.0 * time("after_past"), "{timed}");
    assert!(time("fill_past") > 0.0, "{timed}");
}

/// Two tables of objects in an unpredictable order: one walk waits for the lines that the other has
/// requested.
#[test]
fn what_was_prefetched_is_not_waited_for() {
    let recorded = Recorded::new(
        &format!(
            r#"{HEAD}
enum {{ OBJECTS = 20000, AHEAD = 8 }};
struct object {{ uint32_t value; char rest[124]; }};
static struct object *waits[OBJECTS], *asks[OBJECTS + AHEAD];
static uint32_t work(uint32_t value) {{
  for (int i = 0; i < 60; i++) value = (value ^ value >> 7) * 31u;
  return value;
}}
APART static uint32_t waiting(void) {{
  uint32_t sum = 0;
  for (int i = 0; i < OBJECTS; i++) sum += work(waits[i]->value);
  return sum;
}}
APART static uint32_t asking(void) {{
  uint32_t sum = 0;
  for (int i = 0; i < OBJECTS; i++) {{
    __builtin_prefetch(asks[i + AHEAD]);
    sum += work(asks[i]->value);
  }}
  return sum;
}}
APART static void fill(struct object **table, uint32_t seed) {{
  struct object *objects = calloc(OBJECTS, sizeof *objects);
  for (int i = 0; i < OBJECTS; i++) table[i] = &objects[i];
  for (int i = OBJECTS - 1; i > 0; i--) {{
    int other = (int)((next(&seed) >> 8) % (uint32_t)i);
    struct object *kept = table[i];
    table[i] = table[other];
    table[other] = kept;
  }}
}}
int main(void) {{
  fill(waits, 1);
  fill(asks, 2);
  uint32_t sum = 0;
  for (int round = 0; round < 4; round++) sum += waiting() + asking();
  printf("%u\n", sum);
}}
"#
        ),
        MACHINE,
    );
    let report = report(&recorded);
    let misses = |row: &Value| row["misses"]["L2"].as_u64().expect("misses");
    let cycles = |row: &Value, kind: &str| row["wait"][kind].as_f64().expect("cycles");
    // The lines that name the objects, those that miss most first.
    let lines = |function: &str| {
        let rows = report["lines"].as_array().expect("lines").iter();
        let of_it = |row: &&Value| row["function"] == function && row["member"] == "value";
        let mut rows: Vec<&Value> = rows.filter(of_it).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(misses(row)));
        rows
    };
    let (waiting, asking) = (lines("waiting"), lines("asking"));
    let ([waits], [asked, asks]) = (&waiting[..], &asking[..]) else {
        panic!("one line waits; one asks and one uses: {report}");
    };
    assert!(misses(waits) > 70_000 && misses(asks) < 100 && misses(asked) > 70_000, "{report}");
    assert!(cycles(asked, "cycles") == cycles(asked, "streamed"), "nothing waits for it: {asked}");
    assert!(cycles(waits, "overlapping") > 3.0 * cycles(asked, "streamed"), "{waits} {asked}");
    // A jump to wherever the table says is no stream, though it costs as much as one.
    let finding =
        report["findings"].as_array().expect("findings").iter().find(|one| one["line"] == asked["line"]);
    let evidence =
        finding.expect("what is fetched costs bandwidth")["evidence"].as_array().expect("evidence");
    assert!(evidence.iter().any(|one| one["kind"] == "software_prefetch"), "{evidence:?}");
    let text = recorded.run(&["report", "trace", "-m", "./tiny.toml"]);
    assert!(text.contains("software prefetches: they wait for nothing"), "{text}");

    let timed = recorded.json(&["--time"]);
    let functions = timed["functions"].as_array().expect("functions");
    let time = |function: &str| {
        let row = functions.iter().find(|row| row["function"] == function).expect("a row");
        row["cycles"].as_f64().expect("cycles")
    };
    assert!(time("waiting") > 1.5 * time("asking"), "{} {}", time("waiting"), time("asking"));
    let dump = recorded.run(&["dump", "trace"]);
    assert!(dump.lines().any(|line| line.split('\t').nth(2) == Some("prefetch")), "a word of its own");
}
