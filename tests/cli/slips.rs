//! Slips of the hand: each is reported at once, once, with the right form.

use std::fs;
use std::process::Output;

use tempfile::TempDir;

use crate::record::{program, trace};
use crate::{assert_one_sentence, memlode, stderr};

fn whatif(words: &[&str]) -> Output {
    memlode().arg("whatif").arg(trace()).args(words).output().expect("memlode runs")
}

#[test]
fn an_edit_is_shown_with_its_fault_marked() {
    let output = whatif(&["--edit", "reordr item: key"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().map(|line| line.trim_start_matches("memlode: ")).collect();
    let [message, line, mark] = lines[..] else { panic!("three lines: {said}") };
    assert!(message.ends_with("line 1: unknown verb `reordr`; did you mean `reorder`?"), "{said}");
    assert_eq!((line.trim(), mark.trim()), ("reordr item: key", "^^^^^^"), "{said}");
}

#[test]
fn a_type_that_is_misspelt_is_told_before_anything_is_replayed() {
    for words in [["--edit", "soa tiem"], ["--search", "tiem"]] {
        let output = whatif(&words);
        assert_eq!(output.status.code(), Some(1));
        // What a replay would say of the trace does not stand before it.
        assert!(stderr(&output).starts_with("memlode: error: "), "{}", stderr(&output));
        assert_one_sentence(&output, &["the trace has no type `tiem`; there ", " item"]);
    }
}

#[test]
fn a_long_option_with_one_dash_is_named() {
    for (words, slip) in [
        (&["report", "-machine", "generic"][..], "`-machine`"),
        (&["sim", "-machine=generic"], "`-machine=generic`"),
        (&["run", "-html", "x.html", "--", "./a"], "`-html`"),
    ] {
        let output = memlode().args(words).output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_one_sentence(&output, &[slip, "has one dash: the option is `--"]);
    }
    // Words behind `--` are the program's.
    let output =
        memlode().args(["run", "--", "./no-such-program", "-machine"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["there is no program"]);
}

#[test]
fn the_systems_error_is_told_once_and_options_where_they_help() {
    let folder = TempDir::new().expect("a temporary folder");
    let record = |directory: &str| {
        let mut command = memlode();
        command.current_dir(folder.path()).args(["record", "-o", directory, "--"]).arg(program());
        command.output().expect("memlode runs")
    };
    let output = record("/proc/no-such-directory/t");
    assert_eq!(stderr(&output).matches("os error").count(), 1, "{}", stderr(&output));
    assert!(record("t").status.success());
    assert_one_sentence(&record("t"), &["already holds a trace", "with -o", "--force"]);
    fs::write(folder.path().join("file"), "").expect("a file");
    let output = record("file");
    assert_one_sentence(&output, &["is not a directory", "with -o"]);
    assert!(!stderr(&output).contains("--force"), "{}", stderr(&output));
}

#[test]
fn nothing_recorded_is_a_failure_of_its_own_whatever_the_program_returns() {
    let folder = TempDir::new().expect("a temporary folder");
    for command in ["run", "record"] {
        let mut memlode = memlode();
        memlode.current_dir(folder.path()).args([command, "--", "sh", "-c", "exit 3"]);
        let output = memlode.output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        assert!(stderr(&output).contains("status 3"), "{}", stderr(&output));
    }
}
