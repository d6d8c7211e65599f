//! `memlode machine`: this machine is measured, and from then on it is the host.

use crate::{memlode, stdout};

#[test]
fn what_is_measured_is_the_host_from_then_on() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = memlode()
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", home.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        stdout(&output)
    };
    let before = run(&["machine", "show"]);
    assert!(!before.contains("memlode machine calibrate"));
    let measured: serde_json::Value =
        serde_json::from_str(&run(&["machine", "calibrate", "--json"])).unwrap();
    let file = home.path().join(".config/memlode/host.toml");
    assert_eq!(measured["file"], file.to_str().unwrap());
    assert!(measured["constants"].as_array().unwrap().iter().any(|constant| constant["name"] == "memory"));
    let host = run(&["machine", "show"]);
    assert!(host.contains("memlode machine calibrate"), "{host}");
    // A file with another name is not the host's.
    let other = home.path().join("other.toml");
    run(&["machine", "calibrate", "--output", other.to_str().unwrap()]);
    assert_eq!(run(&["machine", "show"]), host);
    assert!(run(&["machine", "show", other.to_str().unwrap()]).contains("[cost]"));
}
