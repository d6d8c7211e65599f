//! `memlode bench` and `memlode bias` on machines that are not as one would wish: busy, small, or with fewer rights.

use std::ffi::OsStr;
use std::process::{Child, Command as Process, Stdio};

use serde_json::Value;

/// Runs memlode below a command that takes something away from it; `None` if that command is refused itself.
fn below(before: &[&str], words: &[&str]) -> Option<Value> {
    let memlode = assert_cmd::cargo::cargo_bin!("memlode");
    let mut command = Process::new(before[0]);
    command.args(&before[1..]).arg(memlode).args(words);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.starts_with(before[0]) {
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn one_core_is_enough() {
    let first = std::fs::read_to_string("/proc/self/status").expect("a status");
    let list = first.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    let first = list.trim().split([',', '-']).next().expect("a processor");
    let before = ["taskset", "-c", first];
    let found = below(&before, &["bench", "--rounds", "12", "--json", "true", "--", "true"]);
    let found = found.expect("taskset works");
    assert_eq!((&found["rounds"], found["runs"].as_array().map(Vec::len)), (&12.into(), Some(72)));
    let found = below(&before, &["bias", "pages", "--pages", "40", "--json"]).expect("taskset works");
    assert_eq!(found["pages"]["pairs"], 780);
}

/// Without the right to read them, the kernel's numbers of physical pages are all zeros: they are
/// not used, and the probe needs none.
#[test]
fn pages_are_probed_without_rights() {
    let without = ["setpriv", "--bounding-set", "-sys_admin"];
    let words = ["bias", "pages", "--pages", "60", "--json"];
    // Whoever may not drop rights has none.
    let found = below(&without, &words).or_else(|| below(&["env"], &words)).expect("JSON");
    assert!(found["pages"]["pagemap"].is_null(), "{found}");
    assert_eq!(found["pages"]["pairs"], 60 * 59 / 2);
    assert!(!found["sentence"].as_str().expect("text").contains("the kernel"), "{found}");
}

/// Ended with the test, however that goes.
struct Busy(Vec<Child>);

impl Busy {
    fn new(count: usize) -> Busy {
        let line: [&OsStr; 2] = ["-c".as_ref(), "while :; do :; done".as_ref()];
        let one = || Process::new("sh").args(line).stdout(Stdio::null()).spawn().expect("sh runs");
        Busy((0..count).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Programs that wait for a processor most of the time: a note says so, and whether the figures
/// include it.
#[test]
fn a_busy_machine_is_told() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _busy = Busy::new(4 * processors);
    let count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let words = ["bench", "--rounds", "12", "--json", "sh", "-c", count];
    let found = below(&["env"], &words).expect("JSON");
    assert!(found["trust"]["queued"].as_f64() > Some(0.05), "{}", found["trust"]);
    assert!(found["notes"].to_string().contains("the machine was busy"), "{}", found["notes"]);
}
