//! `memlode sample`: programs that were not rebuilt. Names and errors are tested, never times.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, memlode, stderr, stdout};

fn gallery(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery").join(source)
}

/// Builds a program without anything of memlode's.
fn built(folder: &TempDir, compiler: &str, options: &[&str], source: &Path) -> PathBuf {
    let program = folder.path().join("program");
    let status = Process::new(compiler).arg("-O2").args(options).arg(source).arg("-o").arg(&program).status();
    assert!(status.expect("a compiler").success());
    program
}

/// A report has names; that they are the right ones is tested where they are made.
#[test]
fn a_report_names_the_member_the_line_and_the_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-g"], &gallery("pricing-scan/before.c"));
    let output = memlode().args(["sample", "--rate", "20000", "--"]).arg(&program).output().expect("runs");
    let text = stdout(&output).replace("\n         ", " ");
    assert!(output.status.success(), "{}", stderr(&output));
    for word in [
        "arc.state",
        "before.c:",
        "price_block",
        "Lines",
        "Functions",
        "one each 0.050 ms",
        // And what only another recording can say.
        "only every access tells",
        "memlode run -- PROGRAM",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_cannot_be_sampled_is_said_in_one_sentence() {
    let sample = |words: &[&str]| memlode().arg("sample").args(words).output().expect("memlode runs");
    let words = |output: &Output| {
        let text = stderr(output);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("memlode: error: ")).collect();
        assert!(lines.len() == 1 && output.status.code() == Some(1), "{text}");
        lines[0].to_owned()
    };
    let none = words(&sample(&["-p", "4194304"]));
    assert!(none.contains("there is no process 4194304"), "{none}");
    assert_one_sentence(&sample(&["--", "/nonexistent"]), &["cannot run /nonexistent"]);
    let short = words(&sample(&["--rate", "1", "--", "true"]));
    assert!(short.contains("`true` ended before it had taken 1000.000 ms"), "{short}");
    // Here, or where there are counters, the way is taken, or told why not with what comes next.
    let memory = sample(&["--by", "memory", "--", "true"]);
    let said = stderr(&memory);
    assert!(said.contains("Next: ") || said.contains("ended before") || memory.status.success(), "{said}");
    for bad in [&["--rate", "0", "--", "true"][..], &[], &["-p", "1", "--", "true"], &["-p", "x"]] {
        assert_eq!(sample(bad).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn a_program_without_debug_information_has_functions_and_a_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &[], &gallery("pricing-scan/before.c"));
    let output = memlode().args(["sample", "--rate", "20000", "--"]).arg(&program).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("price_block") && text.contains("no debug information"), "{text}");
    assert!(text.contains("code without debug information"), "{text}");
    assert!(!text.contains("arc.state"), "{text}");
}

/// The status is the program's, and its output stays its own.
#[test]
fn the_programs_status_and_output_are_its_own() {
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo out; exit 7";
    let output = memlode().args(["sample", "--json", "--", "sh", "-c", script]).output().expect("runs");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).lines().any(|line| line == "out"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert!(report["samples"].as_u64() > Some(10), "{report:#}");
}
