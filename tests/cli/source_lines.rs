//! The source line below each finding, and the commands below a report.

use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::reported::Reported;
use crate::stderr;

/// One line misses; its comment holds what a terminal would obey.
const PROGRAM: &str = "\
#include <stdio.h>
#include <stdlib.h>
struct item { long key; char payload[120]; };
int main(void) {
  enum { ITEMS = 100000 };
  struct item *items = malloc(ITEMS * sizeof *items);
  for (int i = 0; i < ITEMS; i++) items[i].key = i;
  long sum = 0;
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < ITEMS; i++)
\t\tsum += items[i].key; // \x1b[31mred
  }
  printf(\"%ld\\n\", sum);
}
";

#[test]
fn a_finding_shows_its_line_and_neighbours_that_are_asked_for() {
    let program = Reported::new(PROGRAM);
    let text = program.report(&[]);
    assert!(text.contains("    11 │ sum += items[i].key; // \\u{1b}[31mred\n"), "{text}");
    let text = program.report(&["--context", "1"]);
    assert!(text.contains("10 │ ") && text.contains("11>│ ") && text.contains("12 │ }"), "{text}");

    let json: Value = serde_json::from_str(&program.report(&["--json", "--context", "1"])).expect("JSON");
    let lines = json["findings"][0]["source"]["lines"].as_array().expect("lines");
    let numbers: Vec<_> = lines.iter().map(|line| line["line"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, [10, 11, 12]);
    assert_eq!(lines[1]["text"], "\t\tsum += items[i].key; // \u{1b}[31mred");
}

#[test]
fn sources_that_changed_or_are_gone_are_told() {
    let program = Reported::new(PROGRAM);
    let source = program.path().join("program.c");
    // A checkout sets other times, and the text is what was compiled all the same.
    let file = fs::File::options().append(true).open(&source).expect("the source");
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).expect("a later time");
    assert!(program.report(&[]).contains("11 │ sum += items[i].key;"));

    fs::write(&source, PROGRAM.replace("sum +=", "sum -=")).expect("another text");
    let text = program.report(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("it is not the text that was compiled)") && !text.contains("sum -="), "{text}");

    fs::remove_file(&source).expect("the source");
    let text = program.report(&[]);
    assert!(text.contains("(no source line: ") && text.contains("it is not there)"), "{text}");

    // A pipe that nobody writes to must not be waited for.
    assert!(Command::new("mkfifo").arg(&source).status().expect("mkfifo").success());
    let text = program.report(&[]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("it is a FIFO, not a regular file)"), "{text}");
}

/// A line directive names any file of the reader's. None was compiled under that name, so no line of it is shown, and none
/// is waited for. Without a checksum, as in DWARF 4, sources below the folder are still shown.
#[test]
fn files_that_were_not_compiled_are_not_shown() {
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "SECRET\n".repeat(20)).expect("the secret");
    let secret = secret.path().display().to_string();
    for name in [secret.as_str(), "/proc/kmsg", "/dev/zero", "../secret.c"] {
        for dwarf in ["-gdwarf-5", "-gdwarf-4"] {
            let program = Reported::with(&format!("#line 1 \"{name}\"\n{PROGRAM}"), &[dwarf]);
            let beside = program.path().parent().expect("a folder above").join("secret.c");
            if name == "../secret.c" {
                fs::write(&beside, "SECRET\n".repeat(20)).expect("the secret");
            }
            let text = program.report(&["--context", "5"]);
            let _ = fs::remove_file(&beside);
            assert!(text.contains("(no source line: ") && !text.contains("SECRET"), "{name} {dwarf}: {text}");
        }
    }
    let text = Reported::with(PROGRAM, &["-gdwarf-4"]).report(&[]);
    assert!(text.contains("11 │ sum += items[i].key;"), "{text}");
}

#[test]
fn the_commands_below_a_report_work_when_pasted() {
    let program = Reported::new(PROGRAM);
    let text = program.report(&[]);
    let next = text.lines().find(|line| line.starts_with("why: ")).expect("a line of commands");
    let commands: Vec<&str> =
        next.split(" · ").filter_map(|part| part.split_once(": ")).map(|(_, command)| command).collect();
    assert_eq!(commands.len(), 3, "{next}");
    let binary = assert_cmd::cargo::cargo_bin!("memlode");
    for command in commands {
        let typed = command.replacen("memlode", &binary.display().to_string(), 1);
        let output =
            Command::new("sh").args(["-c", &typed]).current_dir(program.path()).output().expect("sh");
        assert!(output.status.success(), "{command}: {}", stderr(&output));
    }
}
