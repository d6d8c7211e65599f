//! Reports say how often what is not recorded was executed, as the program itself counts it.

use std::fs;
use std::path::Path;

use memlode_trace::format::ChunkHeader;
use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Every call of a function that another compiler compiled is counted by a macro, in straight code, in a branch without
/// accesses, at the end of a function, and behind a loop; `quiet` is compiled with memlode and touches nothing.
const PROGRAM: &str = r#"
#include <stdio.h>
long foreign(long *), distant(long), quiet(long);
long calls[2];
#define FOREIGN(x) (calls[0]++, foreign(x))
#define DISTANT(x) (calls[1]++, distant(x))
__attribute__((noinline)) static long last(long n) { return DISTANT(n); }
__attribute__((noinline)) static long choose(long n) { return n % 3 ? n % 5 ? n : distant(n) : quiet(n); }
int main(void) {
  long data[8] = {0}, sum = 0;
  for (long i = 0; i < 100000; i++) {
    sum += FOREIGN(&data[i & 7]);
    calls[1] += i % 3 && i % 5 == 0;
    sum += choose(i);
    if (i % 7 == 0)
      sum += last(i);
    asm volatile("" ::: "memory");
    if (i % 10 == 0)
      asm volatile("movq (%0), %%rax" ::"r"(data) : "rax", "memory");
  }
  printf("%ld %ld %ld\n", calls[0], calls[1], sum);
}
"#;

const FOREIGN: &str = "long foreign(long *p) { return ++*p; } long distant(long n) { return n + 1; }";
const QUIET: &str = "long quiet(long n) { return n * 3; }";

/// Processes that look at parts count the same executions, each once, however the trace is cut.
fn assert_parts_say(trace: &Path, run: &impl Fn(&[&str]) -> String, note: &Value) {
    for (analysis, processes) in [
        ("accesses", "1"),
        ("accesses", "7"),
        ("reuse", "7"),
        ("shared", "7"),
        ("alias", "7"),
        ("strides", "7"),
    ] {
        let words =
            ["replay", "trace", "-m", "generic", "--analyse", analysis, "--json", "--processes", processes];
        let found: Value = serde_json::from_str(&run(&words)).expect("JSON");
        let notes = found["notes"].as_array().expect("notes");
        let theirs = notes.iter().find(|note| note["id"] == "not_recorded");
        assert_eq!(theirs, Some(note), "{analysis} in {processes} processes");
    }
    let chunks = fs::read(trace.join("chunks.mlx")).expect("an index of chunks").len() / ChunkHeader::BYTES;
    assert!(chunks > 2, "{chunks} chunks, so that several parts of chunks have something to count");
}

#[test]
fn calls_are_told_as_the_program_counts_them() {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, text) in [("program.c", PROGRAM), ("foreign.c", FOREIGN), ("quiet.c", QUIET)] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let run = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "200").current_dir(folder.path());
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let mut other = std::process::Command::new("cc");
    other.args(["-O2", "-c", "foreign.c"]).current_dir(folder.path());
    assert!(other.status().expect("a C compiler").success());
    for level in ["-O0", "-O2"] {
        run(&["cc", level, "-g", "program.c", "quiet.c", "foreign.o", "-o", "program"]);
        let said = run(&["record", "--force", "-o", "trace", "--", "./program"]);
        let own: Vec<u64> = said.split_whitespace().take(2).map(|n| n.parse().expect("a count")).collect();

        let report: Value =
            serde_json::from_str(&run(&["report", "trace", "-m", "generic", "--json"])).expect("JSON");
        let notes = report["trace"]["notes"].as_array().expect("notes");
        let note = notes.iter().find(|note| note["id"] == "not_recorded").expect("a note");
        let times = |reason: &str, function: Option<&str>| -> u64 {
            let places = note["places"].as_array().expect("places").iter();
            let found = places.filter(|of| of["reason"] == reason && of["function"].as_str() == function);
            found.filter_map(|of| of["executed"].as_u64()).sum()
        };
        assert_eq!(times("calls", Some("foreign")), own[0], "{level}: {note}");
        assert_eq!(times("calls", Some("distant")), own[1], "{level}: {note}");
        assert_eq!(times("calls", Some("quiet")), 0, "{level}: memlode compiled it: {note}");
        assert_eq!(times("calls", Some("printf")), 1, "{level}: {note}");
        assert_eq!(times("inline assembly", None), 10_000, "{level}: {note}");
        let text = run(&["report", "trace", "-m", "generic"]);
        assert!(text.contains("not recorded, by executions: foreign 100 k, distant"), "{text}");
        if level == "-O2" {
            assert_parts_say(&folder.path().join("trace"), &run, note);
        }
    }
}

/// A program that calls no foreign code has no note.
#[test]
fn a_trace_without_a_note_is_complete() {
    let program = crate::reported::Reported::new(
        "long data[100];\nint main(void) { long s = 0; for (int i = 0; i < 100; i++) s += data[i]++; return s != 0; }",
    );
    let text = program.report(&[]);
    assert!(!text.contains("not recorded"), "{text}");
}
