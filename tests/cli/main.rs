//! The `memlode` binary from outside: what is typed, what comes out, how it exits.

mod analyses;
mod annotate;
mod answers;
mod bad_input;
mod bench;
mod bias;
mod bias_machine;
mod budget;
mod builds;
mod bursts;
mod call_sites;
mod cargo;
mod compiler;
mod compiling;
mod contention;
mod control;
mod destinations;
mod doctor;
mod dormant;
mod empty;
mod errors;
mod executables;
mod files;
mod findings;
mod foreign;
mod handles;
mod hostile;
mod import;
mod install;
mod library_blocks;
mod line_bytes;
mod live;
mod machine;
mod memory;
mod newcomer;
mod one_answer;
mod one_clock;
mod part;
mod placement;
mod processes;
mod ranges;
mod record;
mod replay;
mod reported;
mod results;
mod sample;
mod sample_blocks;
mod sharing;
mod signals;
mod sim;
mod sim_time;
mod slips;
mod source_lines;
mod stat;
mod stdcxx;
mod thread_edits;
mod threads;
mod unrecorded;
mod usage;
mod validate;
mod values;
mod waiting;
mod whatif;
mod whatif_embedded;
mod whatif_objects;
mod whatif_placement;
mod wrappers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// The binary under test, in an environment that the developer's own settings do not reach.
fn memlode() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memlode"));
    for variable in [
        "MEMLODE_CC",
        "MEMLODE_CXX",
        "MEMLODE_FC",
        "MEMLODE_HOME",
        "MEMLODE_ALLOCATORS",
        "MEMLODE_CCACHE",
        "MEMLODE_FIDELITY",
        "MEMLODE_FILTER",
        "MEMLODE_COLLECTOR",
        "MEMLODE_MODE",
        "MEMLODE_TOKEN",
        "MEMLODE_STAMPS",
    ] {
        command.env_remove(variable);
    }
    // What is tested is what is computed; tests/cli/results.rs tests what is kept.
    // Nor does it depend on the machine of the tests.
    command.env("NO_COLOR", "1").env("MEMLODE_RESULTS", "off").env("MEMLODE_CALIBRATE", "off");
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns what `make` built, if it did: the tests that compile and record programs need the plug-in and the
/// run-time library, and say so when they are missing.
fn installation() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/memlode");
    for file in ["lib/memlode-pass-22.so", "lib/libmemlode_record.so", "lib/libmemlode_stdcxx.a"] {
        assert!(home.join(file).exists(), "target/memlode/{file} is missing: run `make build` first");
    }
    home
}

/// An empty folder of this name for what several tests look at. It stays, under `target`: nothing that a `static` holds is
/// dropped when the tests end.
fn shared_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("what an earlier run left can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// One sentence on standard error that starts with `memlode: error:`, and nothing like a panic.
fn assert_one_sentence(output: &Output, parts: &[&str]) {
    let text = stderr(output);
    // What is said of the trace itself stands in front.
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("memlode: note: ")).collect();
    let [text] = lines[..] else { panic!("not one sentence:\n{text}") };
    assert!(text.starts_with("memlode: error: "), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// A finding's evidence of one kind; null if it has none.
fn evidence<'a>(finding: &'a serde_json::Value, kind: &str) -> &'a serde_json::Value {
    let facts = finding["evidence"].as_array().expect("evidence");
    facts.iter().find(|fact| fact["kind"] == kind).unwrap_or(&serde_json::Value::Null)
}
