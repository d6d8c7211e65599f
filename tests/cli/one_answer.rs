//! One adviser: the arrow of a finding, the closing line of a run, and what `advise` finds first.

use std::fs;
use std::process::Output;

use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Items with a title that is written and never read.
const ITEM: &str = include_str!("../corpus/remedies/item.c");

fn run(folder: &TempDir, words: &[&str]) -> Output {
    let mut command = memlode();
    command.current_dir(folder.path()).env("MEMLODE_HOME", installation()).args(words);
    let output = command.output().expect("memlode runs");
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    output
}

#[test]
fn arrow_closing_line_and_advice_are_one_edit_with_one_number() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("item.c"), ITEM).expect("a file");
    run(&folder, &["cc", "-O2", "-g", "item.c", "-o", "item"]);
    let said = stderr(&run(&folder, &["run", "-m", "generic", "-o", "trace", "--", "./item"]));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let advice = run(&folder, &["advise", "trace", "-m", "generic", "--json"]);
    let advice: serde_json::Value = serde_json::from_slice(&advice.stdout).expect("JSON");
    let first = &advice["worth_it"][0];
    assert_eq!(first["edits"], serde_json::json!(["remove item: title"]));
    let percent = format!("{:.0}% fewer cycles", first["gain"].as_f64().expect("a share") * 100.0);
    let why = "as no code reads title of item";
    assert!(said.contains(&format!("→ remove item: title: {percent}, {why}")), "{percent}: {said}");
    assert!(
        said.contains(&format!("what if: remove item: title: {percent} in the run")),
        "{percent}: {said}"
    );
    let report = stdout(&run(&folder, &["report", "trace", "-m", "generic"]));
    assert!(report.contains(&format!("→ remove item: title: {percent}")), "{percent}: {report}");
}

#[test]
fn what_is_found_is_told_at_once() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("item.c"), ITEM).expect("a file");
    run(&folder, &["cc", "-O2", "-g", "item.c", "-o", "item"]);
    run(&folder, &["record", "-o", "trace", "--", "./item"]);
    let advice = run(&folder, &["advise", "trace", "-m", "generic"]);
    assert!(stderr(&advice).contains("memlode: found: remove item: title: "), "{}", stderr(&advice));
    assert!(stdout(&advice).contains("no code reads title of item"), "{}", stdout(&advice));
}
