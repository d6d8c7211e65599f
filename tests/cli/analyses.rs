//! What analyses of every access find: `memlode replay --analyse` and `memlode timeline`.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Two threads share one counter, one line of cache without sharing a word of it, and a table that they only read. What one
/// thread alone uses is nobody's problem, nor is what it hands over once.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
struct slot { long hits; };
static volatile struct slot slots[2] __attribute__((aligned(64)));
static _Alignas(64) _Atomic long turns;
static _Alignas(64) volatile long own[2][8];
static _Alignas(64) volatile long table[64];
static _Alignas(64) volatile long handed;
static void *work(void *argument) {
  long me = (long)argument;
  handed += me;
  for (int i = 0; i < 3000; i++) {
    slots[me].hits++;
    own[me][0] += table[i % 64];
    if (i % 4 == 0) atomic_fetch_add(&turns, 1);
  }
  return 0;
}
int main(void) {
  pthread_t other;
  for (int i = 0; i < 64; i++) table[i] = i;
  for (int i = 0; i < 1000; i++) handed = i;
  pthread_create(&other, 0, work, (void *)1);
  work((void *)0);
  return pthread_join(other, 0);
}
"#;

struct Recorded(TempDir);

impl Recorded {
    fn new() -> Recorded {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("work.c"), PROGRAM).expect("a file");
        let recorded = Recorded(folder);
        recorded.run(&["cc", "-O1", "work.c", "-o", "work", "-lpthread"]);
        recorded.run(&["record", "-o", "trace", "--", "./work"]);
        recorded
    }

    fn try_run(&self, words: &[&str]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "100").current_dir(self.0.path());
        command.args(words).output().expect("memlode runs")
    }

    fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[words, &["-m", "generic", "--json"]].concat())).expect("JSON")
    }
}

#[test]
fn shared_memory_is_named() {
    let recorded = Recorded::new();
    let found = recorded.json(&["replay", "trace", "--analyse", "shared"]);
    let [words, lines] = &found["tables"].as_array().expect("tables")[..] else { panic!("{found}") };
    // Not the table, which is only read, nor what was handed over: 1001 accesses against one.
    let [turns] = &words["rows"].as_array().expect("rows")[..] else { panic!("{words}") };
    assert_eq!(turns["data"]["variable"], "turns");
    assert_eq!(turns["line"]["line"], 16);
    assert_eq!((&turns["accesses"], &turns["writes"]), (&1500.into(), &1500.into()));
    assert_eq!((&turns["words"], &turns["threads"]), (&1.into(), &2.into()));
    assert_eq!(turns["by_thread"], serde_json::json!([[0, 750], [1, 750]]));
    let [slots] = &lines["rows"].as_array().expect("rows")[..] else { panic!("{lines}") };
    assert_eq!((&slots["data"]["member"], &slots["with"]["member"]), (&"hits".into(), &"hits".into()));
    assert_eq!((&slots["lines"], &slots["accesses"]), (&1.into(), &12_000.into()));

    let few = recorded.json(&["replay", "trace", "--analyse", "shared:least=1501"]);
    assert_eq!(few["tables"][0]["rows"], serde_json::json!([]));
    let uneven = recorded.json(&["replay", "trace", "--analyse", "shared:ratio=1e9,least=1002"]);
    let with_handed = uneven["tables"][0]["rows"].as_array().expect("rows");
    assert!(with_handed.iter().any(|row| row["data"]["variable"] == "handed"), "{uneven}");

    let text = recorded.run(&["replay", "trace", "--analyse", "shared", "-m", "generic"]);
    assert!(text.contains("0: 50%, 1: 50%"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    for (wanted, part) in [
        ("shard", "there is shared"),
        ("shared:most=1", "no argument `most`; it has least, ratio"),
        ("shared:least=x", "`x` is no value for least"),
        ("shared:least", "expected name=value"),
    ] {
        assert_one_sentence(&recorded.try_run(&["replay", "trace", "--analyse", wanted]), &[wanted, part]);
    }
    let output = recorded.try_run(&["replay", "trace"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_time_line_adds_up() {
    let recorded = Recorded::new();
    let report = recorded.json(&["report", "trace"]);
    let total = &report["total"];
    for every in ["1000", "7k", "1M", "20us", "1s"] {
        let line = recorded.json(&["timeline", "trace", "--every", every]);
        let rows = line["tables"][0]["rows"].as_array().expect("rows");
        let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().expect(name)).sum::<u64>();
        assert_eq!(total["accesses"], sum("accesses"), "{every}");
        for level in ["L1d", "L2", "L3"] {
            assert_eq!(total["misses"][level], sum(&format!("{level}_misses")), "{every}");
        }
        assert_eq!(total["stall_cycles"], sum("wait_cycles"), "{every}");
        let mut next = 0;
        for row in rows {
            assert_eq!(row["access"], next, "{every}");
            next += row["accesses"].as_u64().expect("accesses");
        }
        let times: Vec<f64> = rows.iter().map(|row| row["seconds"].as_f64().expect("seconds")).collect();
        assert!(times.is_sorted() && times[0] >= 0.0, "{times:?}");
        match every {
            "1000" => assert!(rows[..rows.len() - 1].iter().all(|row| row["accesses"] == 1000)),
            "20us" => {
                let number = |time: f64| (time / 20e-6).floor();
                assert!(times.windows(2).all(|pair| number(pair[0]) < number(pair[1])), "{times:?}");
            }
            _ => {}
        }
    }
    // An interval in which nothing waits names nothing; the first one waits for what it touches first.
    let line = recorded.json(&["timeline", "trace", "--every", "50"]);
    assert_eq!(line["tables"][0]["rows"][0]["data"]["variable"], "table");
    let text = recorded.run(&["timeline", "trace", "--every", "1000", "-m", "generic"]);
    assert!(text.contains("L1d misses") && text.contains("1.00 k"), "{text}");

    for wrong in ["0", "0ms", "ten", "10 parsecs", "99999999999999999999G"] {
        let output = recorded.try_run(&["timeline", "trace", "--every", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains("such as 500k or 10M"), "{}", stderr(&output));
    }
}
