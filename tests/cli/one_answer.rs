//! The adviser tells of edits as it finds them, and why they gain.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
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

fn recorded() -> TempDir {
    recording_of("item.c", ITEM)
}

fn recording_of(name: &str, text: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join(name), text).expect("a file");
    run(&folder, &["cc", "-O2", "-g", name, "-o", "program"]);
    run(&folder, &["record", "-o", "trace", "--", "./program"]);
    folder
}

#[test]
fn edits_are_told_as_they_are_found_with_what_they_gain_and_why() {
    let folder = recorded();
    let advice = run(&folder, &["advise", "trace", "-m", "generic"]);
    assert!(stderr(&advice).contains("memlode: found: remove item: title: "), "{}", stderr(&advice));
    assert!(stdout(&advice).contains("no code reads title of item"), "{}", stdout(&advice));
    let search = run(&folder, &["whatif", "trace", "-m", "generic", "--search", "item"]);
    assert!(stderr(&search).contains("memlode: found: split item: hot=key,price "), "{}", stderr(&search));
}

/// Three types like `item`, each in a program part of its own, so that their edits are tried one
/// after the other.
fn three_types() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let part =
        |name: &str| ITEM.replace("item", name).replace("int main(void)", &format!("int {name}_main(void)"));
    let headers = |text: String| text.replace("enum { ITEMS = 50000, ROUNDS = 5 };", "");
    let names = ["item", "order", "quote"];
    let mut text: String = names.iter().map(|name| headers(part(name))).collect();
    text.insert_str(0, "enum { ITEMS = 50000, ROUNDS = 5 };\n");
    text += "int main(void) { return item_main() || order_main() || quote_main(); }\n";
    fs::write(folder.path().join("three.c"), text).expect("a file");
    run(&folder, &["cc", "-O2", "-g", "three.c", "-o", "three"]);
    run(&folder, &["record", "-o", "trace", "--", "./three"]);
    folder
}

#[test]
fn a_budget_ends_the_search_and_the_best_within_it_is_printed() {
    let folder = three_types();
    let edits = |output: &Output| stderr(output).matches("memlode: found: ").count();
    // The first type's edits take as much as a report.
    let one = run(&folder, &["advise", "trace", "-m", "generic", "--budget", "1"]);
    assert_eq!(edits(&one), 1, "{}", stderr(&one));
    assert!(stdout(&one).contains("this is the best within the budget"), "{}", stdout(&one));
    assert!(stdout(&one).contains("remove "), "{}", stdout(&one));
    let all = run(&folder, &["advise", "trace", "-m", "generic", "--budget", "10k"]);
    assert!(edits(&all) >= 3 && !stdout(&all).contains("best within"), "{}{}", stderr(&all), stdout(&all));
    let usual = run(&folder, &["advise", "trace", "-m", "generic"]);
    assert_eq!(stdout(&usual), stdout(&all));
}

#[test]
fn a_signal_ends_the_search_and_the_best_so_far_is_printed() {
    let folder = three_types();
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memlode"));
        command.current_dir(folder.path()).env("MEMLODE_HOME", installation());
        command.env("MEMLODE_RESULTS", "off").env("MEMLODE_CALIBRATE", "off");
        command.args(["advise", "trace", "-m", "generic"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut search = command.spawn().expect("memlode runs");
        let mut said = BufReader::new(search.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("memlode: found: ") {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "it ended without an edit");
        }
        kill_process(Pid::from_child(&search), signal).expect("it is there");
        let output = search.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", stdout(&output));
        let edit =
            line.trim_start_matches("memlode: found: ").split(' ').take(2).collect::<Vec<_>>().join(" ");
        assert!(stdout(&output).contains("stopped: this is the best so far"), "{}", stdout(&output));
        assert!(stdout(&output).contains(&edit), "{edit}: {}", stdout(&output));
    }
}

#[test]
fn a_report_names_the_edit_that_was_confirmed_or_none() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("item.c"), ITEM).expect("a file");
    run(&folder, &["cc", "-O2", "-g", "item.c", "-o", "item"]);
    let said = |words: &[&str]| {
        let mut command = memlode();
        command.current_dir(folder.path()).env("MEMLODE_HOME", installation()).env("MEMLODE_RESULTS", "on");
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        let text = stderr(&output) + &stdout(&output);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // By the counts, key is used without the title; what another layout gains is not known yet.
    let first = said(&["run", "-m", "generic", "-o", "trace", "--", "./item"]);
    assert!(first.contains("bytes of each item are used while it is in"), "{first}");
    let edits = ["→ ", "what if: split", "what if: remove", "fewer cycles"];
    assert!(!edits.iter().any(|edit| first.contains(edit)), "{first}");
    let advice: serde_json::Value = {
        let mut command = memlode();
        command.current_dir(folder.path()).env("MEMLODE_RESULTS", "on");
        let output =
            command.args(["advise", "trace", "-m", "generic", "--json"]).output().expect("memlode runs");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let best = &advice["worth_it"][0];
    assert_eq!(best["edits"], serde_json::json!(["remove item: title"]));
    let percent = format!("{:.0}%", best["gain"].as_f64().expect("a share") * 100.0);
    let arrow = format!("→ remove item: title: {percent} fewer cycles, as no code reads title of item");
    let report = said(&["report", "trace", "-m", "generic"]);
    assert_eq!(report.matches("→ ").count(), 1, "{report}");
    assert!(report.contains(&arrow), "{arrow}: {report}");
    // Of another machine nothing was asked.
    assert!(!said(&["report", "trace", "-m", "zen4"]).contains("→ "));
}

#[test]
fn a_promise_can_be_found_again_in_the_run_as_a_whole() {
    let folder = recorded();
    let found = run(&folder, &["whatif", "trace", "-m", "generic", "-e", "soa item"]);
    let found = stdout(&found);
    let gain =
        found.split_once("worth it: ").and_then(|(_, rest)| rest.split_once(" fewer")).expect("a gain").0;
    let is_row = |line: &str, name: &str| {
        line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with("  "))
    };
    let row = |name: &str| found.lines().find(|line| is_row(line, name)).expect("a row");
    assert!(row("cycles of the run").ends_with(&format!("−{gain}")), "{found}");
    assert!(row("accesses").ends_with('='), "{found}");
    assert!(row("instructions").ends_with('='), "{found}");
}

#[test]
fn an_array_is_no_number_and_objects_are_named_that_the_program_has() {
    let folder = recorded();
    let refused = |edit: &str| {
        let mut command = memlode();
        command.current_dir(folder.path()).args(["whatif", "trace", "-m", "generic", "-e", edit]);
        let output = command.output().expect("memlode runs");
        assert!(!output.status.success(), "{edit}: {}", stdout(&output));
        stderr(&output)
    };
    let array = refused("narrow item: title to 4");
    assert!(array.contains("`title` is not one plain value"), "{array}");
    let object = refused("shift nothing by 64");
    assert!(object.contains("has no object `nothing`; there is item.c:"), "{object}");
    assert!(!object.contains("_IO_stdin_used"), "{object}");
}

/// Words are compared by pointers to characters, so the finding is about a `char`.
#[test]
fn an_arrow_stands_where_the_edit_gains_whatever_the_data_are_called() {
    let folder = recording_of("dictionary.c", include_str!("../corpus/sick/dictionary.c"));
    let kept = |command: &str| {
        let mut memlode = memlode();
        memlode.current_dir(folder.path()).env("MEMLODE_RESULTS", "on");
        let output = memlode.args([command, "trace", "-m", "skylake-sp"]).output().expect("memlode runs");
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        stdout(&output)
    };
    let advice = kept("advise");
    assert!(advice.contains("split entry: "), "{advice}");
    let report = kept("report");
    let first = report.split("\nF1  ").nth(1).and_then(|text| text.split("\nF2  ").next());
    let first = first.expect("a first finding");
    assert!(first.lines().next().is_some_and(|line| line.contains(" compare")), "{report}");
    assert!(first.contains("→ split entry: "), "{report}");
    assert_eq!(report.matches("→ split entry: ").count(), 1, "{report}");
}
