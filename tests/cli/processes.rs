//! `memlode replay --analyse … --processes N`: what processes find in parts of a trace is what one pass finds, to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;

use crate::{assert_one_sentence, memlode, stderr, stdout};

/// Analyses for each cut: chunks, stretches, lines, threads, and none.
const ANALYSES: [&str; 7] = [
    "accesses",
    "shared:rule=source",
    "reuse",
    "working-set:every=10k",
    "shared",
    "alias:least=1",
    "strides",
];

/// Names the analysis that no process can do a part of.
const NOT_CUT: &str = "memlode: note: not cut into parts, but one task: strides\n";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyses/fixtures").join(name).join("trace")
}

fn analyses(trace: &Path, words: &[&str]) -> Output {
    let mut command = memlode();
    command.args(["replay", "-m", "generic"]).arg(trace);
    for analysis in ANALYSES {
        command.args(["--analyse", analysis]);
    }
    command.args(words).output().expect("memlode runs")
}

/// Asserts that any number of processes says what one pass says, also of what is missing.
fn assert_same(trace: &Path) {
    for form in [&["--json"][..], &["--top", "3"]] {
        let whole = analyses(trace, form);
        assert!(whole.status.success() && !whole.stdout.is_empty(), "{}", stderr(&whole));
        for processes in ["1", "2", "7"] {
            let parts = analyses(trace, &[form, &["--processes", processes]].concat());
            assert!(stdout(&whole) == stdout(&parts), "{processes}:\n{}\n{}", stdout(&whole), stdout(&parts));
            let said = stderr(&parts);
            assert_eq!(said.contains(NOT_CUT), processes != "1", "{said}");
            assert_eq!(stderr(&whole), said.replace(NOT_CUT, ""));
        }
    }
}

#[test]
fn processes_find_what_one_pass_finds() {
    assert_same(&fixture("shared"));
    assert_same(&fixture("reuse"));
}

#[test]
fn processes_miss_what_one_pass_misses() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = copy(&fixture("shared"), folder.path());
    let file = trace.join("threads/p0000-t0000.mlt");
    let mut bytes = fs::read(&file).expect("a thread's chunks");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).expect("a file");
    assert!(stdout(&analyses(&trace, &["--json"])).contains("checksum"));
    assert_same(&trace);
}

#[test]
fn what_a_process_cannot_do_is_said() {
    let folder = TempDir::new().expect("a temporary folder");
    let nowhere = folder.path().join("nowhere");
    let task = serde_json::json!({
        "trace": nowhere, "machine": "generic", "cut": "Whole", "part": 0, "parts": 1, "questions": [[0, "reuse"]],
        "asked": 1,
    });
    let run = |input: String| memlode().arg("part").write_stdin(input).output().expect("memlode runs");
    assert_one_sentence(&run(task.to_string()), &["nowhere", "no such directory"]);
    assert_one_sentence(&run("[]".into()), &["has no task of a plan"]);
    let output = analyses(&nowhere, &["--processes", "2"]);
    assert_one_sentence(&output, &["nowhere", "no such directory"]);
}

fn copy(trace: &Path, to: &Path) -> PathBuf {
    let to = to.join("trace");
    for folder in ["", "threads", "modules"] {
        fs::create_dir_all(to.join(folder)).expect("a folder");
        for entry in fs::read_dir(trace.join(folder)).expect("a folder of a trace") {
            let entry = entry.expect("an entry").path();
            if entry.is_file() {
                fs::copy(&entry, to.join(folder).join(entry.file_name().expect("a name"))).expect("a copy");
            }
        }
    }
    to
}
