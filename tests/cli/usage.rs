//! Help, versions and wrong usage.

use crate::{memlode, stderr, stdout};

#[test]
fn help_names_every_subcommand_and_the_exit_status() {
    let output = memlode().arg("--help").output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    for word in [
        "cc",
        "c++",
        "fc",
        "run",
        "record",
        "report",
        "sim",
        "bench",
        "dump",
        "check",
        "doctor",
        "Exit status",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    for command in ["run", "record", "report", "sim", "bench", "dump", "check", "doctor"] {
        let output = memlode().args([command, "--help"]).output().expect("memlode runs");
        assert!(stdout(&output).contains("Exit status"), "{command} --help");
    }
    let output = memlode().args(["help", "cc"]).output().expect("memlode runs");
    assert!(stdout(&output).contains("--allocators FILE"));
}

#[test]
fn wrong_usage_is_2() {
    for args in [&["run"][..], &["nonsense"], &["report", "x", "--by", "colour"], &[]] {
        let output = memlode().args(args).output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("--help"), "{args:?}");
    }
}

#[test]
fn machines_are_listed() {
    let output = memlode().args(["sim", "--list"]).output().expect("memlode runs");
    let text = stdout(&output);
    for machine in ["host", "generic", "zen4"] {
        assert!(text.lines().any(|line| line.starts_with(machine)), "{machine} is not in:\n{text}");
    }
    let output = memlode().args(["sim", "--list", "--json"]).output().expect("memlode runs");
    let machines: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(machines.as_array().expect("a list").iter().any(|machine| machine["name"] == "generic"));
}

#[test]
fn the_guide_names_every_command() {
    let page = include_str!("../../docs/commands.md");
    let output = memlode().arg("--help").output().expect("memlode runs");
    let text = stdout(&output);
    let (commands, _) = text.split_once("\nOptions:\n").expect("an end of the list");
    let mut sections = page.split("\n## ");
    let (mut section, mut seen) = ("", Vec::new());
    for line in commands.lines().skip_while(|line| *line != "Build:") {
        if let Some(heading) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            // The page has the groups of the list, in its order.
            let is_it = |section: &&str| section.starts_with(&format!("{heading}\n"));
            section = sections.find(is_it).unwrap_or_else(|| panic!("docs/commands.md lacks {heading}"));
        }
        // A line that continues an explanation is indented further.
        let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) else { continue };
        let name = name.split(' ').next().expect("a word");
        assert!(
            section.contains(&format!("`memlode {name}")),
            "docs/commands.md lacks {name} here:{section}"
        );
        seen.push(name);
    }
    assert!(seen.len() > 30, "{seen:?}");
    assert!(!text.contains("Others:"), "a command has no group:\n{text}");
}
