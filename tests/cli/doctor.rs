//! `memlode doctor`.

use serde_json::Value;

use crate::{installation, memlode, stdout};

#[test]
fn a_sound_machine() {
    let output = memlode().env("MEMLODE_HOME", installation()).arg("doctor").output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("can be compiled, recorded and reported"));
}

#[test]
fn what_is_missing_has_a_remedy() {
    let empty = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::create_dir(empty.path().join("lib")).expect("a folder");
    let output = memlode()
        .env("MEMLODE_HOME", empty.path())
        .env("PATH", empty.path())
        .args(["doctor", "--json"])
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["ok"], false);
    let items = report["items"].as_array().expect("items");
    let missing: Vec<&Value> = items.iter().filter(|item| item["ok"] == false).collect();
    for name in ["clang 22", "pass plug-in 22", "run-time library"] {
        assert!(missing.iter().any(|item| item["name"] == name && item["required"] == true), "{name}");
    }
    assert!(missing.iter().all(|item| item["remedy"].is_string()));
    assert!(report.to_string().contains("apt-get install clang-22 lld-22"));
}

/// A container that programs are only run in.
#[test]
fn without_a_compiler_it_says_what_works() {
    let empty = tempfile::TempDir::new().expect("a temporary folder");
    std::fs::create_dir(empty.path().join("lib")).expect("a folder");
    let run = |options: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", empty.path()).env("PATH", empty.path()).arg("doctor").args(options);
        command.output().expect("memlode runs")
    };
    let text = stdout(&run(&[]));
    assert!(text.contains("compiled elsewhere can be recorded and reported on this machine"), "{text}");
    let report: Value = serde_json::from_str(&stdout(&run(&["--json"]))).expect("JSON");
    let works = &report["works"];
    assert_eq!((&works["compile"], &works["record"]), (&false.into(), &true.into()), "{works}");
}

#[test]
fn what_is_used_is_looked_at() {
    let output =
        memlode().env("MEMLODE_HOME", installation()).args(["doctor", "--json"]).output().expect("runs");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let found = |name: &str| {
        let items = report["items"].as_array().expect("items");
        let item =
            items.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
        item["found"].as_str().expect("text").to_owned()
    };
    // The toolchain that has built this test is there.
    assert!(found("rustc").contains("LLVM 22"), "{}", found("rustc"));
    assert!(found("cargo").starts_with("cargo 1."), "{}", found("cargo"));
    for name in ["flang 22", "sockets", "traces", "memory for --to ram", "Rust's linker"] {
        assert!(!found(name).is_empty());
    }
    // A directory that is too deep for sockets is told with what to do.
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let deep = folder.path().join("x".repeat(150));
    std::fs::create_dir(&deep).expect("a folder");
    let output = memlode()
        .env("MEMLODE_HOME", installation())
        .env("XDG_RUNTIME_DIR", &deep)
        .env("TMPDIR", &deep)
        .arg("doctor")
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(text.contains("can be compiled on this machine, and traces reported"), "{text}");
    assert!(text.contains("→ set TMPDIR or XDG_RUNTIME_DIR"), "{text}");
}

/// Each way to sample is tried, and a missing one has its reason and what comes next.
#[test]
fn ways_to_sample_are_tried() {
    let output = memlode().args(["doctor", "--json"]).output().expect("runs");
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let items = report["items"].as_array().expect("items");
    let item = |name: &str| items.iter().find(|item| item["name"] == name).expect("an item");
    assert_eq!(item("timer samples")["ok"], true, "{}", item("timer samples"));
    for name in ["counters", "address samples"] {
        let item = item(name);
        match item["ok"] == true {
            true => assert!(item["found"].as_str().expect("text").contains("memlode import"), "{item}"),
            false => assert!(item["remedy"].as_str().expect("text").contains("memlode sample"), "{item}"),
        }
    }
}
