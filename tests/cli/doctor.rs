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
