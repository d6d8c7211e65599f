//! `--burst`: a sample says that it is one, and is near the truth.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, shared_folder, stderr, stdout};

/// Every second access is to a random line of 4 MiB: as long as it runs, about half of the accesses
/// miss the first level. The lines are touched by a loop without calls inside another one where the
/// first argument is `nested`. Runs for a number of rounds, or if it is 0, for a number of
/// milliseconds.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line { long key; char rest[56]; };
static struct line lines[1 << 16];
static volatile long hot;

__attribute__((noinline)) static unsigned long round_of(unsigned long at) {
  for (int i = 0; i < 1000; i++) {
    at = at * 6364136223846793005 + 1442695040888963407;
    hot += lines[at >> 48].key;
  }
  return at;
}

__attribute__((noinline)) static long nested(long rounds) {
  long sum = 0;
  for (long round = 0; round < rounds; round++) {
    for (long i = 0; i < 1000000; i++)
      sum += lines[i * 7 & 0xffff].key ^ sum;
    lines[round & 0xffff].key = sum;
  }
  return sum;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
  (void)argc;
  unsigned long at = 1;
  if (argv[1][0] == 'n') {
    printf("%ld\n", nested(atol(argv[2])));
    return 0;
  }
  long rounds = atol(argv[1]);
  for (long i = 0; i < rounds; i++)
    at = round_of(at);
  double end = now() + atof(argv[2]);
  while (now() < end)
    at = round_of(at);
  printf("%d\n", at != 0);
  return 0;
}
"#;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("random");
        fs::write(folder.join("random.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(&folder)
            .args(["cc", "-O2", "random.c", "-o", "random"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        folder
    };
    BUILT.get_or_init(build)
}

fn record(trace: &Path, options: &[&str], arguments: [&str; 2]) {
    let output = memlode()
        .args(["record", "-o"])
        .arg(trace)
        .args(options)
        .arg("--")
        .arg(program().join("random"))
        .args(arguments)
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let check = memlode().arg("check").arg(trace).output().expect("memlode runs");
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
}

fn simulated(trace: &Path) -> (Value, String) {
    let sim = |options: &[&str]| {
        let output =
            memlode().arg("sim").arg(trace).args(["-m", "generic"]).args(options).output().expect("memlode");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    (serde_json::from_str(&sim(&["--json"])).expect("JSON"), sim(&[]))
}

fn miss_ratio(sim: &Value) -> f64 {
    let level = &sim["machine"]["levels"][0];
    let count = |name: &str| level[name].as_f64().expect(name);
    (count("read_misses") + count("write_misses")) / (count("reads") + count("writes"))
}

#[test]
fn a_sample_says_so_and_is_near_the_truth() {
    let folder = TempDir::new().expect("a temporary folder");
    let (whole, sampled) = (folder.path().join("whole"), folder.path().join("sampled"));
    record(&whole, &[], ["1000", "0"]);
    record(&sampled, &["--burst", "1ms/20ms"], ["0", "400"]);

    let (truth, text) = simulated(&whole);
    assert!(truth["trace"]["sample"].is_null() && !text.contains("sample"), "{text}");
    let (estimate, text) = simulated(&sampled);
    assert!((miss_ratio(&truth) - miss_ratio(&estimate)).abs() < 0.02);
    let sample = &estimate["trace"]["sample"];
    assert_eq!(sample["burst"]["on_seconds"], 0.001);
    assert_eq!(sample["burst"]["period_seconds"], 0.02);
    assert!(text.contains("every 20 ms") && text.contains("of the time"), "{text}");
    // How much is covered depends on how busy the machine is.
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(sample["runs"].as_u64() > Some(1), "{sample}");
    assert!((0.001..0.7).contains(&number(&sample["time_share"])), "{sample}");
    assert!((0.001..0.7).contains(&number(&sample["access_share"]["value"])), "{sample}");
    let level = &sample["levels"][0];
    assert_eq!(level["name"], "L1d");
    assert!((number(&level["miss_ratio"]["value"]) - miss_ratio(&estimate)).abs() < 1e-9);
    assert!(number(&level["miss_ratio"]["standard_error"]) < 0.02, "{sample}");
    let (least, most) = (number(&level["least"]), number(&level["most"]));
    assert!(least <= miss_ratio(&estimate) && miss_ratio(&estimate) <= most, "{sample}");
    // The first level is soon known in full: what it held before a burst matters little.
    assert!(most - least < 0.1, "{sample}");
}

/// In an inner loop, recording may begin but not end; behind that loop, it can end.
#[test]
fn bursts_come_and_go_in_loops_without_calls() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = folder.path().join("trace");
    record(&trace, &["--burst", "200us/10ms"], ["nested", "1500"]);
    let (sim, text) = simulated(&trace);
    let sample = &sim["trace"]["sample"];
    assert!(sample["runs"].as_u64() > Some(4), "{text}");
    assert!(sample["time_share"].as_f64() < Some(0.9), "{text}");
}

#[test]
fn a_program_that_ends_before_its_first_burst_is_told_why_there_is_nothing() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = memlode()
        .current_dir(folder.path())
        .args(["run", "--burst", "1s/1000s", "-o", "t", "--"])
        .arg(program().join("random"))
        .args(["1", "0"])
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("the first comes after 499.500 s"), "{}", stderr(&output));
}

#[test]
fn what_is_no_duty_cycle_is_refused() {
    for cycle in ["0%", "5ms", "2s/1s", "1us/1s"] {
        let output = memlode().args(["run", "--burst", cycle, "--", "true"]).output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(2), "{cycle}");
        assert!(stderr(&output).contains(cycle), "{}", stderr(&output));
    }
}
