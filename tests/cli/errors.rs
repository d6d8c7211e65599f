//! Reports of samples: each share has its standard error, and the true value is near enough.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Reads random lines of three tables, one at a time for a while: `often` for four of seven whiles,
/// `seldom` for two, `hardly` for one. Runs for a number of whiles, or if it is 0, for a number of
/// milliseconds of its own processor time: on a busy machine, where it often waits, as much of it
/// lies in bursts.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct often { long key; char rest[56]; };
struct seldom { long key; char rest[56]; };
struct hardly { long key; char rest[56]; };
static struct often often[1 << 14];
static struct seldom seldom[1 << 14];
static struct hardly hardly[1 << 14];

#define READ(table)                                                  \
  __attribute__((noinline)) static long read_##table(unsigned long at) { \
    long sum = 0;                                                    \
    for (int i = 0; i < 2000; i++) {                                 \
      at = at * 6364136223846793005 + 1442695040888963407;           \
      sum += table[at >> 50].key;                                    \
    }                                                                \
    return sum;                                                      \
  }
READ(often)
READ(seldom)
READ(hardly)

static long read_one(unsigned long at) {
  switch ((at >> 33) % 7) {
  case 0: return read_hardly(at);
  case 1: case 2: return read_seldom(at);
  default: return read_often(at);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
  (void)argc;
  unsigned long at = 1;
  long sum = 0;
  for (long i = 0; i < 1 << 14; i++)
    often[i].key = seldom[i].key = hardly[i].key = i;
  long rounds = atol(argv[1]);
  for (long i = 0; i < rounds; i++, at = at * 2862933555777941757 + 3037000493)
    sum += read_one(at);
  double end = now() + atof(argv[2]);
  for (; now() < end; at = at * 2862933555777941757 + 3037000493)
    sum += read_one(at);
  printf("%d\n", sum == 42);
  return 0;
}
"#;

struct Built(TempDir);

impl Built {
    fn new() -> Built {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("tables.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(folder.path())
            .args(["cc", "-O2", "tables.c", "-o", "tables"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        Built(folder)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn record(&self, trace: &str, options: &[&str], arguments: [&str; 2]) {
        self.said(&[&["record", "-o", trace], options, &["--", "./tables"], &arguments[..]].concat());
    }

    fn said(&self, words: &[&str]) -> String {
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .env("COLUMNS", "120")
            .current_dir(self.folder())
            .args(words)
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    /// Returns what `report` or `sim` says, as JSON and as text.
    fn reported(&self, command: &str, trace: &str) -> (Value, String) {
        let words = [command, trace, "--machine", "generic"];
        let json = self.said(&[&words[..], &["--json"]].concat());
        (serde_json::from_str(&json).expect("JSON"), self.said(&[&words[..], &["--by", "type"]].concat()))
    }
}

/// The row of a type.
fn row<'a>(report: &'a Value, ty: &str) -> &'a Value {
    let rows = report["types"].as_array().expect("rows");
    rows.iter().find(|row| row["type"] == ty).unwrap_or_else(|| panic!("no row of {ty}: {report}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn shares_of_a_sample_have_errors_and_those_of_a_whole_have_none() {
    let built = Built::new();
    built.record("whole", &[], ["2000", "0"]);
    built.record("bursts", &["--burst", "1ms/20ms"], ["0", "800"]);

    let (whole, text) = built.reported("report", "whole");
    assert!(!whole.to_string().contains("standard_error") && !text.contains('±'), "{text}");
    let (sample, text) = built.reported("report", "bursts");
    for ty in ["often", "seldom", "hardly"] {
        let errors = &row(&sample, ty)["standard_errors"];
        let (share, error) = (number(&row(&sample, ty)["stall_share"]), number(&errors["stall_share"]));
        assert!(error > 0.0 && error < 0.2, "{ty}: {share} ± {error}");
        // The whole is a sample itself, of what the program does as long as it runs.
        let truth = number(&row(&whole, ty)["stall_share"]);
        assert!((share - truth).abs() < 5.0 * error + 0.05, "{ty}: {share} ± {error}, in truth {truth}");
        assert!(number(&errors["misses"]["L1d"]) > 0.0 && number(&errors["accesses"]) > 0.0, "{errors}");
    }
    let finding = &sample["findings"][0];
    assert_eq!(finding["type"], "often", "{text}");
    assert!(number(&finding["standard_errors"]["stall_share"]) > 0.0, "{finding}");
    assert!(number(&finding["cost"]["standard_error"]) > 0.0, "{finding}");
    let share = |finding: &Value| number(&finding["cost"]["wait_share"]);
    let lead = share(finding) - share(&sample["findings"][1]);
    assert_eq!(finding["doubt"][0]["kind"], "lead");
    assert!((lead - number(&finding["doubt"][0]["value"])).abs() < 1e-9, "{finding}");
    // `often.key  tables.c:… read_often  57% ± 4.1% of the wait`, and the row of the table.
    let headline = text.lines().find(|line| line.starts_with("F1  often.key")).expect("a finding");
    assert!(headline.contains("% ± ") && headline.contains("% of the wait  "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  often ") && line.contains("% ± ")), "{text}");
}

#[test]
fn a_simulation_of_a_sample_tells_the_errors_of_its_misses() {
    let built = Built::new();
    built.record("bursts", &["--burst", "1ms/20ms"], ["0", "400"]);
    let (sample, text) = built.reported("sim", "bursts");
    let often = row(&sample, "often");
    assert!(number(&often["standard_errors"]["misses"]["L1d"]) > 0.0, "{often}");
    assert!(number(&often["standard_errors"]["stall_share"]) > 0.0, "{often}");
    let heading = text.lines().find(|line| line.contains("capacity")).expect("a table");
    assert!(heading.contains("misses") && heading.contains(" ± "), "{text}");
}

/// Recordings that were switched by hand were chosen, and not by chance.
#[test]
fn what_was_switched_by_hand_tells_no_errors() {
    let built = Built::new();
    built.record("late", &["--delay", "30ms"], ["0", "100"]);
    let (late, text) = built.reported("report", "late");
    assert!(!late["trace"]["sample"].is_null(), "{text}");
    assert!(!late.to_string().contains("standard_errors") && !text.contains('±'), "{text}");
}
