//! Small things that a newcomer meets: no directory named, sizes in words, a report on standard output, a paused start.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::record::{program, trace};
use crate::{assert_one_sentence, memlode, stderr, stdout};

fn in_folder(folder: &Path, words: &[&str]) -> Output {
    memlode().current_dir(folder).args(words).output().expect("memlode runs")
}

/// Runs the test program, with these words before it.
fn run(folder: &Path, words: &[&str]) -> Output {
    memlode().current_dir(folder).args(words).arg("--").arg(program()).output().expect("memlode runs")
}

#[test]
fn without_a_directory_the_newest_trace_is_meant() {
    let folder = TempDir::new().expect("a temporary folder");
    let commands: [&[&str]; 6] = [
        &["report", "-m", "generic"],
        &["sim", "-m", "generic"],
        &["timeline", "-m", "generic"],
        &["dump", "-n", "3"],
        &["check"],
        &["replay", "-m", "generic", "--rows", "hits", "--format", "ndjson", "-n", "3"],
    ];
    for command in commands {
        let output = in_folder(folder.path(), command);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_one_sentence(&output, &["there is no trace in this directory", "memlode run -- PROGRAM"]);
    }
    // What is no trace may have a file of that name, too, and be younger.
    for name in ["old", "young"] {
        assert!(run(folder.path(), &["record", "-o", name]).status.success());
    }
    fs::create_dir(folder.path().join("other")).expect("a folder");
    fs::write(folder.path().join("other/manifest.json"), "{ \"name\": \"of a web page\" }").expect("a file");
    fs::create_dir(folder.path().join("other/manifest.json.d")).expect("a folder");
    for command in commands {
        let [implied, named] =
            [command.to_vec(), [command, &["young"]].concat()].map(|words| in_folder(folder.path(), &words));
        assert!(implied.status.success(), "{command:?}: {}", stderr(&implied));
        assert!(stderr(&implied).starts_with("memlode: young is the newest trace here\n"), "{command:?}");
        assert_eq!(stdout(&implied), stdout(&named), "{command:?}");
    }
}

#[test]
fn json_is_never_mixed_with_text() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = run(folder.path(), &["run", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--report-to <FILE>"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing ran");

    for options in [&["--json"][..], &["--json", "--live"], &["--json", "--sim"], &["--json", "--to", "ram"]]
    {
        let words = [&["run", "-m", "generic", "--report-to", "-"], options].concat();
        let output = run(folder.path(), &words);
        let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON and nothing else");
        assert!(report["total"]["accesses"].as_u64() > Some(300_000), "{options:?}");
        assert!(stderr(&output).starts_with("0\n"), "the program's output is there: {}", stderr(&output));
    }
    let text = run(folder.path(), &["run", "-m", "generic", "--report-to", "-"]);
    assert!(stdout(&text).starts_with("program "), "{}", stdout(&text));
    let mixed = run(folder.path(), &["run", "--report-to", "-", "--to", "text"]);
    assert_eq!(mixed.status.code(), Some(125));
    assert_one_sentence(&mixed, &["--report-to - and --to text would both write to standard output"]);
}

#[test]
fn force_needs_no_name() {
    let folder = TempDir::new().expect("a temporary folder");
    for _ in 0..2 {
        let output = run(folder.path(), &["record", "--force"]);
        assert!(stderr(&output).contains("`memlode report memlode-prog-trace`"), "{}", stderr(&output));
    }
}

/// Each option that takes a number takes it in the same words.
#[test]
fn numbers_are_written_in_one_way() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = trace().to_str().expect("UTF-8");
    let said = |words: &[&str]| {
        let output = in_folder(folder.path(), words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let replay = ["replay", trace, "-m", "generic", "--rows", "hits", "--format", "ndjson", "--limit"];
    for (words, digits) in [
        (&["dump", trace, "-n", "0.1k"][..], &["dump", trace, "-n", "100"][..]),
        (&[&replay[..], &["1k"]].concat(), &[&replay[..], &["1000"]].concat()),
        (
            &["timeline", trace, "-m", "generic", "--every", "0.1M"],
            &["timeline", trace, "-m", "generic", "--every", "100k"],
        ),
        (
            &["replay", trace, "-m", "generic", "--analyse", "working-set:every=100k", "--top", "1k"],
            &["replay", trace, "-m", "generic", "--analyse", "working-set:every=100000", "--top", "1000"],
        ),
        (
            &["report", trace, "-m", "generic", "--top", "1k"],
            &["report", trace, "-m", "generic", "--top", "1000"],
        ),
        (
            &["sim", trace, "-m", "generic", "--pages", "2M"],
            &["sim", trace, "-m", "generic", "--pages", "2MiB"],
        ),
    ] {
        assert_eq!(said(words), said(digits), "{words:?}");
    }
    let output = run(folder.path(), &["record", "-o", "t", "--stop-after", "100k"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = run(folder.path(), &["record", "-o", "u", "--to", "ram", "--ram-limit", "64MiB"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let wrong = run(folder.path(), &["record", "--stop-after", "many"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("as in 100k"), "{}", stderr(&wrong));
}
