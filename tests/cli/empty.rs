//! A recording without an access is an error that says why, and what to do.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::record::program;
use crate::{assert_one_sentence, installation, memlode, stderr};

fn record(folder: &Path, ours: &[&str], command: &Path) -> Output {
    memlode().current_dir(folder).args(ours).arg("--").arg(command).output().expect("memlode runs")
}

#[test]
fn a_region_that_never_comes() {
    let folder = TempDir::new().expect("a temporary folder");
    for ours in
        [&["record"][..], &["run", "-m", "generic"], &["record", "-o", "t"], &["record", "--to", "text"]]
    {
        let output = record(folder.path(), &[ours, &["--region", "nowhere"]].concat(), program());
        assert_eq!(output.status.code(), Some(125), "{ours:?}");
        let words = [
            "holds no accesses: only what was done in these regions was recorded: nowhere",
            "`memlode run -- ",
        ];
        assert_one_sentence(&output, &words);
    }
    let output = record(folder.path(), &["run", "--live", "--region", "nowhere"], program());
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(&output, &["no access was recorded", "memlode cc"]);
    // And no directory is left that would be in the way, or be taken for a trace.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn nothing_but_allocations() {
    let folder = TempDir::new().expect("a temporary folder");
    let source = "#include <stdlib.h>\nvoid *volatile_free(void *p) { free(p); return 0; }\n\
                  int main(void) { return volatile_free(malloc(100)) != 0; }\n";
    fs::write(folder.path().join("blocks.c"), source).expect("a file");
    let output = memlode()
        .env("MEMLODE_HOME", installation())
        .current_dir(folder.path())
        .args(["cc", "-O1", "-fno-builtin-malloc", "-fno-builtin-free", "blocks.c", "-o", "blocks"])
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let output = record(folder.path(), &["record", "-o", "t"], &folder.path().join("blocks"));
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    let words = [
        "holds allocations and calls, but no accesses",
        "`memlode cc` or `memlode c++`, too",
        "`memlode run -- ",
    ];
    assert_one_sentence(&output, &words);
    assert!(!folder.path().join("t").exists());
}

/// Older traces, and traces of others, get the same message.
#[test]
fn a_stored_trace_without_accesses() {
    use memlode_trace::log::Event;
    use memlode_trace::manifest::ManifestInfo;
    use memlode_trace::write::TraceWriter;
    let folder = TempDir::new().expect("a temporary folder");
    let directory = folder.path().join("t");
    let info = ManifestInfo { command: vec!["./prog".into(), "a b".into()], ..ManifestInfo::default() };
    let mut writer = TraceWriter::create(&directory, info, false).expect("a trace");
    writer
        .event(&Event::ProcessStart { process: 0, pid: 7, parent: None, command: vec![], stamp: 1 })
        .expect("an event");
    writer.finish(Default::default()).expect("a trace");
    for command in [&["report"][..], &["sim"], &["timeline"], &["replay", "--analyse", "shared"]] {
        let output = memlode().args(command).arg(&directory).args(["-m", "generic"]).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_one_sentence(&output, &["holds no accesses", "`memlode run -- ./prog 'a b'`"]);
    }
}
