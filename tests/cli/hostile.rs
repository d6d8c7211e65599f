//! Strangers' text cannot command a terminal, whichever command prints it.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use memlode_trace::manifest::ManifestInfo;
use memlode_trace::module::Global;
use memlode_trace::text::is_unsafe;
use memlode_trace::write::DirectoryStore;
use tempfile::TempDir;

use crate::record::program;
use crate::{memlode, stderr, stdout};

#[allow(clippy::duplicate_mod, reason = "the trace's own tests use it, too")]
#[path = "../../crates/trace/tests/support/mod.rs"]
mod support;
use support::*;

/// A name that clears the screen, sets the title, hides what follows, turns it around and pretends to be a line of ours.
const NAME: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}8m\u{202e}\r\nEVIL: all is well";

/// A trace whose every name is hostile, and its place, too.
fn trace() -> (TempDir, PathBuf) {
    let plan = Plan {
        functions: 2,
        site_bytes: vec![8, 8, 8],
        segments: vec![
            Seg { function: 0, steps: vec![Step::Enter, Step::Alloc(0)] },
            Seg { function: 1, steps: vec![Step::Access(0, Operand::Word), Step::Access(1, Operand::Word)] },
        ],
    };
    let mut image = image(&plan);
    // Names of the same length, so that the table stays one.
    let replacements: [(&[u8], &[u8]); 7] = [
        (b"/src", b"\x1b[2J"),
        (b"a.c", b"\nEV"),
        (b"struct s", b"\x1b[8m\nEVI"),
        (b"f0", b"\xc2\x9b"),
        (b"f1", b"\x1bc"),
        (b"v0", b"\nE"),
        (b"v1", b"\x7f\r"),
    ];
    let table = &mut image.tables.bytes;
    for (from, to) in replacements {
        let at = table.windows(from.len()).position(|window| window == from).expect("a name");
        table[at..at + to.len()].copy_from_slice(to);
    }
    let crc = crc32fast::hash(&table[16..]);
    table[12..16].copy_from_slice(&crc.to_le_bytes());
    image.path = format!("/usr/bin/{NAME}");
    image.globals = vec![Global { name: NAME.into(), address: 0x2000, bytes: 1 << 20 }];
    let info = ManifestInfo {
        command: vec![format!("./{NAME}"), NAME.into()],
        host: NAME.into(),
        cpu: NAME.into(),
        only: vec![NAME.into()],
        ..ManifestInfo::default()
    };
    let folder = TempDir::new().expect("a temporary folder");
    let directory = folder.path().join(NAME);
    let store = DirectoryStore::create(&directory, false).expect("a directory");
    let heap = 0x10_0000;
    let mut first = vec![(0, vec![0x7fff_0000, heap, 1 << 20])];
    // In a global, in the heap, elsewhere; by two threads in turn.
    let global = LOAD_BIAS + 0x2000;
    first.extend((0..200).map(|i| (1, vec![heap + 4096 * i, global + 64 * i])));
    let second = (0..200).map(|i| (1, vec![0x5000 + 64 * i, global + 64 * i])).collect();
    write_image_to(Box::new(store), image, info, &[vec![first], vec![second]]);
    // And damage, which is told with the names of files.
    let file = directory.join("threads/p0000-t0001.mlt");
    let bytes = fs::read(&file).expect("a file");
    fs::write(&file, [&bytes[..], b"behind"].concat()).expect("a file");
    (folder, directory)
}

fn assert_harmless(output: &Output, what: &str) {
    for text in [stdout(output), stderr(output)] {
        let bad = text.chars().find(|&c| is_unsafe(c) && c != '\n' && c != '\t');
        assert!(bad.is_none(), "{what}: {bad:?} in {text:?}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("EV")), "{what}: {text}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

#[test]
fn names_cannot_command_a_terminal() {
    let (_folder, directory) = trace();
    let commands: [&[&str]; 18] = [
        &["report", "-m", "generic", "--by", "all"],
        &["report", "-m", "generic", "--json"],
        &["sim", "-m", "generic", "--by", "all"],
        &["sim", "-m", "zen4", "--by", "all"],
        &["sim", "-m", "generic", "--json"],
        &["timeline", "-m", "generic", "--every", "50"],
        &["timeline", "-m", "generic", "--json"],
        &["replay", "-m", "generic", "--analyse", "shared"],
        &["replay", "-m", "generic", "--analyse", "reuse"],
        &["replay", "-m", "generic", "--analyse", "strides"],
        &["replay", "-m", "generic", "--analyse", "working-set", "--json"],
        &["replay", "-m", "generic", "--rows", "hits", "--format", "ndjson"],
        &["dump"],
        &["dump", "--json"],
        &["dump", "--sites"],
        &["dump", "--sites", "--json"],
        &["check"],
        &["check", "--json"],
    ];
    for command in commands {
        let output = memlode().arg(command[0]).arg(&directory).args(&command[1..]).output().expect("it runs");
        assert!(matches!(output.status.code(), Some(0 | 3)), "{command:?}: {}", stderr(&output));
        assert!(output.stdout.len() > 20, "{command:?} says something");
        assert_harmless(&output, &command.join(" "));
        if command.contains(&"--json") || command.contains(&"ndjson") {
            // What is escaped means the same.
            let escaped = [r"\u001b[2J", r"\u001b[8m", r"\u009b", r"\nE"];
            assert!(escaped.iter().any(|name| stdout(&output).contains(name)), "{command:?}");
            let values =
                serde_json::Deserializer::from_slice(&output.stdout).into_iter::<serde_json::Value>();
            values.for_each(|value| drop(value.expect("JSON")));
        }
    }
}

#[test]
fn errors_cannot_command_a_terminal() {
    let folder = TempDir::new().expect("a temporary folder");
    let missing = folder.path().join(NAME);
    let machine = folder.path().join("m.toml");
    let text = |name: &str| format!("name = {name:?}\ndescription = \"d\"\nsources = [\"s\"]\ncores = 1\n");
    fs::write(&machine, text("\u{1b}[2J").replace("\\u{1b}", "\\u001b")).expect("a file");
    let machine = machine.to_str().expect("UTF-8");
    let missing = missing.to_str().expect("UTF-8");
    let commands: [&[&str]; 10] = [
        &["report", missing],
        &["check", missing],
        &["report", missing, "-m", NAME],
        &["sim", missing, "-m", machine],
        &["replay", missing, "--analyse", NAME],
        &["report", missing, "--by", NAME],
        &[NAME],
        &["record", "-o", "t", "--", missing],
        &["ctl", "1", NAME],
        &["serve", "-o", missing, "--listen", NAME],
    ];
    for command in commands {
        let output = memlode().current_dir(folder.path()).args(command).output().expect("it runs");
        assert!(output.status.code().is_some_and(|code| code > 0), "{command:?}");
        assert!(!output.stderr.is_empty(), "{command:?}");
        for text in [stdout(&output), stderr(&output)] {
            let bad = text.chars().find(|&c| is_unsafe(c) && c != '\n' && c != '\t');
            assert!(bad.is_none(), "{command:?}: {bad:?} in {text:?}");
        }
    }
}

#[test]
fn a_program_s_own_arguments_cannot_either() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = memlode()
        .current_dir(folder.path())
        .args(["run", "-o", "t", "-m", "generic", "--"])
        .arg(program())
        .arg(NAME)
        .output()
        .expect("memlode runs");
    assert_harmless(&output, "run");
    assert!(stderr(&output).contains("\\u{1b}[2J\\u{1b}]0;t"), "{}", stderr(&output));
}
