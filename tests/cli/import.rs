//! `memlode import`: recordings of `perf`. That they decode to what perf says is tested where they are read.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{assert_one_sentence, memlode, stderr, stdout};

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample/tests/perf_data").join(name)
}

#[test]
fn a_recording_of_loads_says_where_data_came_from() {
    let import = |options: &[&str]| {
        let output =
            memlode().arg("import").arg(recording("loads-stores.data")).args(options).output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let text = stdout(&import(&["--event", "cpu/mem-loads,ldlat=30/P"])).replace("\n         ", " ");
    for word in
        ["perf mem record", "by cpu/mem-loads", "from L3", "from a fill buffer", "locked", "of the samples"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("stores to"), "{text}");
    let report: Value = serde_json::from_slice(&import(&["--json"]).stdout).expect("JSON alone");
    assert_eq!(report["is_time"], false);
    assert_eq!(report["samples"].as_u64().zip(report["kernel"].as_u64()).map(|(a, b)| a + b), Some(698));
    let sources = report["cost"]["sources"].as_array().expect("sources");
    assert!(sources.iter().any(|source| source["level"] == "fill-buffer"), "{sources:#?}");
}

/// Another event than the one that is reported is named, with the option that reports it.
#[test]
fn events_that_are_left_out_are_named() {
    let mut command = memlode();
    command.arg("import").arg(recording("loads-stores.data")).args(["--event", "cpu/mem-stores/P"]);
    let output = command.output().expect("runs");
    let note = stderr(&output);
    assert!(
        note.contains("204 samples of another event") && note.contains("--event 'cpu/mem-loads"),
        "{note}"
    );
}

#[test]
fn what_is_no_recording_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let import = |path: &Path| memlode().arg("import").arg(path).output().expect("runs");
    let path = folder.path().join("perf.data");
    assert_one_sentence(&import(&path), &["perf.data: No such file"]);
    assert_one_sentence(&import(folder.path()), &["not a regular file"]);
    std::fs::write(&path, "text").expect("room");
    assert_one_sentence(&import(&path), &["perf.data: it is no recording of `perf record`"]);
    let whole = std::fs::read(recording("old-kernel.data")).expect("a fixture");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("room");
    assert_one_sentence(&import(&path), &["perf.data: its", "the file was cut off"]);
    assert_one_sentence(
        &memlode()
            .arg("import")
            .arg(recording("old-kernel.data"))
            .args(["--event", "x"])
            .output()
            .expect("runs"),
        &["no event `x`, but `cpu/mem-loads/pp`"],
    );
}

/// A trace says what was printed, to the digit; what needs every access refuses it.
#[test]
fn a_recording_that_is_kept_says_the_same() {
    for (name, samples) in [("loads-stores.data", 698), ("old-kernel.data", 16)] {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        let run = |words: &[&std::ffi::OsStr]| memlode().args(words).output().expect("runs");
        let word = |text: &'static str| std::ffi::OsStr::new(text);
        let path = recording(name);
        let printed = run(&[word("import"), path.as_ref(), word("--json"), word("-o"), kept.as_ref()]);
        assert!(printed.status.success(), "{}", stderr(&printed));
        let reported = run(&[word("report"), kept.as_ref(), word("--json")]);
        assert_eq!(stdout(&reported), stdout(&printed), "{name}");
        let report: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
        let count = report["samples"].as_u64().expect("samples");
        assert_eq!(count + report["kernel"].as_u64().expect("kernel"), samples, "{name}");
        let checked = run(&[word("check"), kept.as_ref()]);
        assert!(checked.status.success(), "{}", stdout(&checked));
        let table = folder.path().join("samples.csv");
        let written = run(&[word("export"), kept.as_ref(), word("--to"), table.as_ref()]);
        assert!(written.status.success(), "{}", stderr(&written));
        let rows = std::fs::read_to_string(&table).expect("a table");
        assert_eq!(rows.lines().count() as u64, 1 + count, "{name}");
        let other = run(&[word("diff"), kept.as_ref(), kept.as_ref(), word("--json")]);
        let other: Value = serde_json::from_slice(&other.stdout).expect("JSON");
        let functions = other["functions"].as_array().expect("functions");
        assert!(!functions.is_empty() && functions.iter().all(|row| row["is_changed"] == false), "{other:#}");
        let words =
            [word("report"), kept.as_ref(), word("--machine"), word("zen4"), word("--by"), word("type")];
        assert_one_sentence(&run(&words), &["holds samples", "leave out --machine and --by"]);
        for command in ["sim", "dump", "advise", "timeline", "alias"] {
            let refused = run(&[word(command), kept.as_ref()]);
            assert_one_sentence(
                &refused,
                &["holds samples, and this needs every access", "memlode run -- PROGRAM"],
            );
        }
        let again = run(&[word("import"), path.as_ref(), word("-o"), kept.as_ref()]);
        assert_one_sentence(&again, &["exists and is not empty", "--force"]);
    }
}
