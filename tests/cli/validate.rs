//! `memlode validate`: models against a timer. What is tested are laws and errors, never times.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// One line takes all the time there is: a walk where each load waits for the one before.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct step { uint32_t next; uint32_t rest[15]; };
static struct step steps[1 << 17];
static uint32_t order[1 << 17];
__attribute__((noinline)) static uint32_t walk(uint32_t at, long count) {
  for (long i = 0; i < count; i++)
    at = steps[at].next; // <-- slow
  return at;
}
int main(int argc, char **argv) {
  uint64_t seed = 1;
  for (uint32_t i = 0; i < 1 << 17; i++) order[i] = i;
  for (uint32_t i = (1 << 17) - 1; i > 0; i--) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t other = (uint32_t)(seed >> 32) % (i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (uint32_t i = 0; i < 1 << 17; i++) steps[order[i]].next = order[(i + 1) % (1 << 17)];
  printf("%u\n", walk(0, argc > 1 ? atol(argv[1]) : 1));
}
"#;

/// The program built by memlode, and by clang with these options.
struct Programs {
    folder: TempDir,
    recorded: PathBuf,
    native: PathBuf,
}

impl Programs {
    fn build(source: &str, options: &[&str]) -> Programs {
        let folder = tempfile::tempdir().expect("a folder");
        let (recorded, native) = (folder.path().join("recorded"), folder.path().join("native"));
        let place = folder.path().join("program.c");
        std::fs::write(&place, source).expect("written");
        let mut command = memlode();
        command
            .env("MEMLODE_HOME", installation())
            .args(["cc", "-O2", "-g", "-o"])
            .arg(&recorded)
            .arg(&place);
        let output = command.output().expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        compile(&place, &native, options);
        Programs { folder, recorded, native }
    }

    fn validate(&self, options: &[&str], steps: &str) -> Output {
        self.validate_by(memlode(), options, steps)
    }

    /// Runs the command with answers kept, which is what users get.
    fn validate_and_keep(&self, options: &[&str], steps: &str) -> Output {
        let mut command = memlode();
        command.env_remove("MEMLODE_RESULTS");
        self.validate_by(command, options, steps)
    }

    fn validate_by(&self, mut command: Command, options: &[&str], steps: &str) -> Output {
        command.env("MEMLODE_HOME", installation()).current_dir(self.folder.path());
        command.args(["validate", "--machine", "generic"]).args(options);
        command.arg("--native").arg(&self.native).arg("--").arg(&self.recorded).arg(steps);
        command.output().expect("memlode runs")
    }
}

fn compile(source: &Path, program: &Path, options: &[&str]) {
    let status = Process::new("clang-22").args(options).arg(source).arg("-o").arg(program).status();
    assert!(status.expect("clang runs").success());
}

fn slow_line() -> u64 {
    PROGRAM.lines().position(|line| line.contains("<-- slow")).expect("a mark") as u64 + 1
}

#[test]
fn columns_add_up_and_the_line_that_takes_all_the_time_leads_them() {
    let programs = Programs::build(PROGRAM, &["-O2", "-g"]);
    let output = programs.validate(&["--json"], "4000000");
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&found["format"], &found["version"]), (&"memlode validate".into(), &1.into()));
    assert_eq!(found["machine"], "generic");
    let lines = found["lines"].as_array().expect("lines");
    let sum = |of: &dyn Fn(&Value) -> f64| lines.iter().map(of).sum::<f64>();
    let names: Vec<&str> = found["models"]
        .as_array()
        .expect("models")
        .iter()
        .filter_map(|judged| judged["model"].as_str())
        .collect();
    assert_eq!((names.first(), names.last()), (Some(&"lru"), Some(&"timer2")));
    for column in ["timer", "timer2"] {
        let total = sum(&|row| row[column].as_f64().expect("a share"));
        assert!((total - 1.0).abs() < 1e-9, "{column}: {total}");
    }
    for model in names.iter().filter(|name| **name != "timer2") {
        let total = sum(&|row| row["models"][model].as_f64().expect("a share"));
        assert!((total - 1.0).abs() < 1e-9, "{model}: {total}");
    }
    // Nothing else in the program takes a tenth of what these loads take, on any machine.
    assert_eq!(lines[0]["line"], slow_line(), "{lines:?}");
    assert_eq!(lines[0]["function"], "walk");
    let again = found["models"].as_array().expect("models").last().expect("the timer");
    assert_eq!((&again["slowest_line_rank"], &again["first_good"]), (&1.into(), &true.into()));
    let functions = found["functions"].as_array().expect("functions");
    assert_eq!(functions[0]["function"], "walk");
    let seconds: f64 = functions.iter().filter_map(|function| function["seconds"].as_f64()).sum();
    let measured = found["measured_s"].as_f64().expect("seconds");
    assert!((seconds - measured).abs() < 1e-6 * measured.max(1.0), "{seconds} of {measured}");
    let skid = &found["timer"]["skid"];
    assert!(skid["instructions"].as_u64().is_some_and(|far| far <= 1), "{skid}");
}

#[test]
fn a_trace_that_is_there_is_used_and_the_table_is_for_people() {
    let programs = Programs::build(PROGRAM, &["-O2", "-g"]);
    let mut record = memlode();
    record
        .env("MEMLODE_HOME", installation())
        .args(["record", "-o"])
        .arg(programs.folder.path().join("kept"));
    let recorded = record.arg("--").arg(&programs.recorded).arg("3000000").output().expect("memlode runs");
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    // The program that would be recorded is not even there.
    std::fs::remove_file(&programs.recorded).expect("removed");
    let succeed = |options: &[&str]| {
        let output = programs.validate_and_keep(&[&["--trace", "kept"], options].concat(), "3000000");
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let is_timed = |output: &Output| stderr(output).contains("timing twice");
    let output = succeed(&["--top", "3"]);
    assert!(is_timed(&output), "{}", stderr(&output));
    let text = stdout(&output);
    for part in
        [&format!("program.c:{} walk", slow_line()), "the timer again", "on wrong lines", "a known loop"]
    {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    // The answer is kept: of the same program, in whichever shape.
    let kept = succeed(&["--top", "3"]);
    assert!(!is_timed(&kept) && stderr(&kept).contains("--again computes it anew"), "{}", stderr(&kept));
    assert_eq!(stdout(&kept), text);
    let kept = succeed(&["--json"]);
    let found: Value = serde_json::from_str(&stdout(&kept)).expect("JSON");
    assert!(!is_timed(&kept) && found["lines"][0]["line"] == slow_line(), "{found}");
    // Another program is another question.
    compile(&programs.folder.path().join("program.c"), &programs.native, &["-O1", "-g"]);
    assert!(is_timed(&succeed(&["--no-keep"])), "it was built anew");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let programs = Programs::build(PROGRAM, &["-O2", "-g0"]);
    let refused = |output: &Output, parts: &[&str]| {
        assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
        // Progress may stand before it.
        let text = stderr(output);
        let error = text.lines().last().expect("a line");
        assert!(error.starts_with("memlode: error: ") && !text.contains("panicked"), "{text}");
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    };
    refused(&programs.validate(&[], "2000000"), &["debug information", "compile it with -g"]);
    // Built from a source whose lines are others.
    let place = programs.folder.path().join("program.c");
    std::fs::write(&place, "\n".repeat(500) + PROGRAM).expect("written");
    compile(&place, &programs.native, &["-O2", "-g"]);
    refused(&programs.validate(&[], "2000000"), &["built from the same source", "program.c:"]);
    std::fs::write(&place, PROGRAM).expect("written");
    compile(&place, &programs.native, &["-O2", "-g"]);
    refused(&programs.validate(&[], "1"), &["200 are needed", "larger input"]);
    std::fs::write(&place, "int main(void) { return 3; }").expect("written");
    compile(&place, &programs.native, &["-O2", "-g"]);
    refused(&programs.validate(&[], "1"), &["exited with status 3"]);
}

#[test]
fn programs_that_are_not_there() {
    let output = memlode().args(["validate", "--", "/nowhere/program"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/nowhere/program"), "{}", stderr(&output));
    let output =
        memlode().args(["validate", "--trace", "/nowhere/trace", "--", "true"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["/nowhere/trace"]);
}
