//! `memlode sim` with the rules of a machine: lines that threads take from each other, by name.

use std::fs;

use serde_json::Value;

use crate::sim::{Recorded, field};

/// Two threads take turns a thousand times each. In each turn a thread counts in a slot of its own, in a line that holds
/// both slots; then in a padded one. The first thread writes what the second reads.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { TURNS = 1000 };
struct slot { volatile long count; };
struct padded { volatile long count; char rest[56]; };
struct mail { volatile long letter; };

static struct slot slots[2] __attribute__((aligned(64)));
static struct padded apart[2] __attribute__((aligned(64)));
static struct mail mail __attribute__((aligned(64)));
static _Atomic int turn __attribute__((aligned(64)));
static sem_t may_go[2]; // a thread that only looked would look as often as the machine lets it

static void *work(void *argument) {
  int me = argument != 0;
  for (int i = 0; i < TURNS; i++) {
    sem_wait(&may_go[me]);
    while (atomic_load(&turn) != 2 * i + me) continue;
    slots[me].count++;
    apart[me].count++;
    if (me == 0) mail.letter = i;
    else if (mail.letter != i) return argument;
    atomic_store(&turn, 2 * i + me + 1);
    sem_post(&may_go[!me]);
  }
  return 0;
}

int main(void) {
  pthread_t other;
  if (sem_init(&may_go[0], 0, 1) || sem_init(&may_go[1], 0, 0)) return 1;
  if (pthread_create(&other, 0, work, &other)) return 1;
  work(0);
  return pthread_join(other, 0);
}
"#;

/// Private first levels over one that is shared.
const MACHINE: &str = r#"
name = "two"
description = "two cores that are kept the same"
sources = ["made up"]
cores = 2
line_bytes = 64
memory_latency_cycles = 100
coherence = "mesi"

[[level]]
name = "L1d"
size = "4 KiB"
ways = 4
latency_cycles = 4
replacement = "tree-plru"

[[level]]
name = "L2"
size = "64 KiB"
ways = 16
shared_by = 2
latency_cycles = 12
"#;

/// For any schedule, turns are turns: a slot's first reads are cold, and every later one finds that
/// the other thread has written its own slot.
#[test]
fn false_and_true_sharing_have_names() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    let sim = recorded.json(&[]);
    let first_level = |ty, member| {
        let causes = &field(&sim, ty, member)["causes"][0];
        let names = [
            "cold",
            "capacity",
            "conflict",
            "held_elsewhere",
            "true_sharing",
            "false_sharing",
            "invalidations",
        ];
        names.map(|key| causes[key].as_u64().expect(key))
    };
    // The first write takes nothing from anybody; the other thread finds that the first has the line; then each takes it from
    // the other.
    assert_eq!(first_level("slot", "count"), [1, 0, 0, 1, 0, 1998, 1999]);
    assert_eq!(first_level("padded", "count"), [2, 0, 0, 0, 0, 0, 0]);
    // Written a thousand times, read in between: the writer keeps its copy and takes the reader's.
    assert_eq!(first_level("mail", "letter"), [1, 0, 0, 1, 999, 0, 999]);
    assert!(sim["side_by_side"].is_null());
    let beside = recorded.json(&["--threads", "parallel"]);
    assert_eq!(beside["side_by_side"]["order"], "parallel");
    assert_eq!(beside["side_by_side"]["false_sharing"][0]["object"]["symbol"], "slots");
    assert_eq!(beside["side_by_side"]["unknown_starts"], 0);
    assert_eq!(sim["rules"]["coherence"], "mesi");
    let rules = &sim["rules"]["levels"][0];
    assert_eq!((&rules["level"], &rules["replacement"]), (&"L1d".into(), &"tree-plru".into()));
    assert_eq!((&rules["prefetch"], &rules["text"]), (&Value::Array(Vec::new()), &"tree-PLRU".into()));

    let rows = sim["sharing"].as_array().expect("rows");
    let of = |kind: &str, ty: &str| {
        let is_it = |row: &&Value| row["kind"] == kind && row["missed"]["type"] == ty;
        rows.iter().filter(is_it).collect::<Vec<_>>()
    };
    let [row] = of("false", "slot")[..] else { panic!("{rows:?}") };
    assert_eq!((&row["misses"], &row["lines"]), (&1998.into(), &1.into()));
    assert_eq!((&row["written"]["type"], &row["written"]["member"]), (&"slot".into(), &"count".into()));
    assert_eq!(
        (&row["missed"]["threads"], &row["written"]["threads"]),
        (&vec![0, 1].into(), &vec![0, 1].into())
    );
    assert_eq!(row["missed"]["object"]["symbol"], "slots");
    let [row] = of("true", "mail")[..] else { panic!("{rows:?}") };
    assert_eq!((&row["misses"], &row["lines"]), (&999.into(), &1.into()));
    assert_eq!((&row["missed"]["threads"], &row["written"]["threads"]), (&vec![1].into(), &vec![0].into()));
    assert!(
        of("false", "mail").is_empty() && of("true", "slot").is_empty() && of("false", "padded").is_empty()
    );
    let total: u64 = rows.iter().filter_map(|row| row["misses"].as_u64()).sum();
    let coherence = &sim["coherence"];
    let sum = ["true_sharing", "false_sharing"].map(|kind| coherence[kind].as_u64().expect(kind));
    assert_eq!(total, sum.iter().sum::<u64>());

    let text = recorded.run(&["sim", "trace", "-m", "./tiny.toml"]);
    for expected in
        ["rules    L1d: tree-PLRU; L2: LRU; MESI", "False sharing", "slot.count", "global slots", "1 line"]
    {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    // Caches that know nothing of each other.
    let plain = recorded.json(&["--rules", "lru"]);
    assert_eq!((&plain["coherence"], &plain["rules"]["coherence"]), (&Value::Null, &"none".into()));
    assert_eq!(field(&plain, "slot", "count")["causes"][0]["cold"], 2);
    assert_eq!(field(&plain, "slot", "count")["misses"]["L1d"], 2);
}

/// A run that waits for nothing but lines that go to and fro has these as its findings.
#[test]
fn a_run_that_only_loses_lines_has_findings() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    let report = ["report", "trace", "-m", "generic"];
    let json: Value =
        serde_json::from_str(&recorded.run(&[&report[..], &["--json"]].concat())).expect("JSON");
    let ms = |key: &str| json["sharing"][key].as_f64().expect(key);
    assert!(ms("ms") > 0.02 * (ms("ms") + ms("rest_ms")), "{}", json["sharing"]);
    let text = recorded.run(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    for finding in ["F1 turn (int)", "F2 mail.letter", "F3 slot.count"] {
        assert!(text.contains(finding), "{finding} in {text}");
    }
    assert!(text.contains("of the cycles: threads take its lines from each other"), "{text}");
    assert!(!text.contains("would gain little"), "{text}");
}

/// `run` takes the order of threads as `report` does: without a word each goes on as if it had a core of its own.
#[test]
fn threads_of_a_run_go_on_as_it_is_told() {
    let recorded = Recorded::new(PROGRAM, MACHINE);
    for (words, order) in [
        (&[][..], "parallel"),
        (&["--threads", "parallel"], "parallel"),
        (&["--threads", "recorded"], "recorded"),
    ] {
        let run = ["run", "-o", "again", "--force", "-m", "generic", "--json", "--report-to", "report.json"];
        recorded.run(&[&run[..], words, &["--", "./program"]].concat());
        let report = fs::read_to_string(recorded.0.path().join("report.json")).expect("a report");
        let sharing = serde_json::from_str::<Value>(&report).expect("JSON")["sharing"].take();
        assert_eq!(sharing["order"], order, "{sharing}");
        // A slot's line comes twice in each turn but the first, whatever the order: turns are turns.
        let slots = &sharing["false_sharing"][0];
        assert_eq!(slots["object"]["symbol"], "slots", "{sharing}");
        let transfers = slots["transfers"].as_u64().expect("a number");
        assert!((1900..=2000).contains(&transfers), "{sharing}");
    }
}
