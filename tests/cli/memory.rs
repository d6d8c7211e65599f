//! `--memory`: the peak memory of a command, beside what the kernel tells the process that waits for it.

use crate::{memlode, stderr, stdout};

/// Runs the words behind it and prints the peak memory of these and of all processes that they waited for, in KiB. Python is small,
/// so it is not its own size that the kernel tells.
const WAIT: &str = "\
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
print(os.wait4(child.pid, 0)[2].ru_maxrss)";

/// Share by which the two may differ: each rounds counts of pages in its own way.
const SLACK: f64 = 0.1;

fn trace() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../analyses/fixtures/shared/trace").into()
}

/// The figures that were told, in MiB: the command's own, and that of the largest part.
fn told(text: &str) -> (f64, Option<f64>) {
    let line = text.lines().last().expect("a last line");
    let line = line.strip_prefix("memlode: peak memory: ").unwrap_or_else(|| panic!("{text}"));
    let figure = |words: &str| -> f64 {
        let (number, unit) = words.split_once(' ').expect("a number and a unit");
        assert_eq!(unit, "MiB", "{text}");
        number.parse().expect("a number")
    };
    match line.split_once(", and ") {
        None => (figure(line), None),
        Some((own, part)) => {
            let part = part.strip_suffix(" in the largest process that looked at a part");
            (figure(own), Some(figure(part.unwrap_or_else(|| panic!("{text}")))))
        }
    }
}

/// Runs memlode with these words below the oracle; returns what memlode wrote on standard error, and the oracle's figure in MiB.
fn waited_for(words: &[&str], input: &str) -> (String, f64) {
    let output = assert_cmd::Command::new("python3")
        .args(["-S", "-c", WAIT])
        .arg(memlode().get_program())
        .args(words)
        .env("MEMLODE_RESULTS", "off")
        .write_stdin(input)
        .output()
        .expect("python3 runs");
    let kibibytes: f64 = stdout(&output).trim().parse().expect("a number");
    (stderr(&output), kibibytes / 1024.0)
}

fn assert_near(told: f64, counted: f64) {
    assert!((told / counted - 1.0).abs() < SLACK, "{told} MiB are told, and the kernel counts {counted}");
}

#[test]
fn a_command_tells_the_memory_that_the_kernel_counts() {
    let trace = trace();
    let (text, counted) = waited_for(&["report", "--memory", "-m", "generic", &trace], "");
    let (own, part) = told(&text);
    assert_eq!(part, None);
    assert_near(own, counted);
}

#[test]
fn a_command_tells_the_memory_of_its_largest_part() {
    let trace = trace();
    let words = ["--memory", "replay", "-m", "generic", "--analyse", "reuse", "--processes", "2", &trace];
    let (text, counted) = waited_for(&words, "");
    let (own, part) = told(&text);
    let part = part.expect("a figure of parts");
    assert_near(own.max(part), counted);
    let parts = (0..2).map(|part| {
        let task = serde_json::json!({
            "trace": trace, "machine": "generic", "cut": "Stretches", "part": part, "parts": 2,
            "questions": [[0, "reuse"]], "asked": 1,
        });
        waited_for(&["part"], &task.to_string()).1
    });
    assert_near(part, parts.fold(0.0, f64::max));
}

#[test]
fn errors_come_before_it_and_nothing_is_told_unasked() {
    let output = memlode().args(["report", "nowhere", "--memory"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("memlode: error: "), "{}", stderr(&output));
    told(&stderr(&output));
    let output = memlode().args(["report", &trace()]).output().expect("memlode runs");
    assert!(output.status.success() && !stderr(&output).contains("peak memory"), "{}", stderr(&output));
}
