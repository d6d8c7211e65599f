//! Builds the C programs of `record/test`, "instrumented" by hand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use memlode_trace::format::{TableHeader, kind, magic, op, version};

/// The project's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns where the programs go.
fn output() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("processes");
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn compiler() -> &'static str {
    static FOUND: OnceLock<&str> = OnceLock::new();
    FOUND.get_or_init(|| {
        let works = |name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        ["clang-22", "cc"].into_iter().find(|name| works(*name)).expect("a C compiler: clang-22 or cc")
    })
}

/// The directory of the runtime's libraries.
pub fn runtime() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let (library, objects) = (output().join("lib"), output().join("objects"));
        run(Command::new("make")
            .arg("-sC")
            .arg(root().join("record"))
            .arg(format!("OUT={}", library.display()))
            .arg(format!("BUILD={}", objects.display()))
            .args(["all", "check"]));
        library
    })
}

/// The build of a program.
#[derive(Clone, Copy, Default)]
pub struct Build {
    /// Sources in `record/test`, without `.c`.
    pub sources: &'static [&'static str],
    /// Name of the function of all segments.
    pub function: &'static str,
    /// More for the compiler.
    pub flags: &'static [&'static str],
    /// Made without anchors, site table and runtime.
    pub plain: bool,
}

/// Builds one of the programs of `record/test`, with the shared runtime.
pub fn program(name: &'static str) -> PathBuf {
    let sources: &'static [&'static str] = Box::leak(Box::new([name]));
    build(name, Build { sources, function: "work", ..Default::default() })
}

/// Builds a program or a library; each name once.
pub fn build(name: &str, how: Build) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|poison| poison.into_inner());
    let (root, path) = (root(), output().join(name));
    let mut command = Command::new(compiler());
    command.args(["-O2", "-g", "-Wall", "-Wextra", "-pthread", "-o"]).arg(&path);
    command.arg("-I").arg(root.join("record/include")).arg("-I").arg(root.join("format/generated"));
    for source in how.sources {
        let c = root.join("record/test").join(source).with_extension("c");
        command.arg(if c.exists() { c } else { c.with_extension("S") });
    }
    if !how.plain {
        let table = output().join(format!("{name}.table.s"));
        std::fs::write(&table, anchors(how.function)).unwrap();
        command.arg(&table);
        command.arg("-L").arg(runtime()).arg(format!("-Wl,-rpath,{}", runtime().display()));
        command.arg("-lmemlode_record");
    }
    run(command.arg("-ldl").args(how.flags));
    path
}

/// Segments as `record/test/emit.h` counts them: their ops.
fn segments() -> Vec<Vec<Vec<u8>>> {
    vec![
        vec![vec![op::ACCESS, 0, 0]],
        vec![vec![op::ENTER]],
        vec![vec![op::EXIT]],
        vec![vec![op::ALLOC, 1]],
        vec![vec![op::FREE, 2]],
        vec![vec![op::ACCESS, 0, 0]; 64],
        vec![vec![op::ACCESS, 0, 0], vec![op::ACCESS, 0, 1, 16]],
        vec![vec![op::RANGE, 0, 0, 0]],
        vec![vec![op::REPEAT], vec![op::STRIDE, 0, 0, 16], vec![op::STRIDE, 0, 0, 16]],
    ]
}

/// An assembler file with a site table and the anchors of its segments.
fn anchors(function: &str) -> String {
    // All numbers here are below 128, so a varint is a byte.
    let mut payload = vec![3];
    for string in [function, "test.c", ""] {
        payload.push(string.len() as u8);
        payload.extend_from_slice(string.as_bytes());
    }
    payload.extend([1, 2, 1]); // a file: no directory, test.c
    payload.extend([1, 0, 0, 1, 7]); // a function of that file, line 7
    payload.extend([1, 0, 8, 3, 0]); // a location: line 8, column 3, not inlined
    payload.push(0); // no types
    payload.push(3);
    for (kind, bytes) in [(kind::LOAD, 8), (kind::ALLOC, 0), (kind::FREE, 0)] {
        payload.extend([kind, 0, 0, bytes, 1, 0, 0, 0]);
    }
    let segments = segments();
    payload.push(segments.len() as u8);
    for ops in &segments {
        payload.extend([0, ops.len() as u8]);
        payload.extend(ops.concat());
    }
    payload.push(0); // no sections
    let header = TableHeader {
        magic: magic::TABLE,
        version: version::TABLE,
        payload_bytes: payload.len() as u32,
        crc32: crc32fast::hash(&payload),
        ..Default::default()
    };
    let mut text = String::from("\t.section memlode_tab,\"a\"\n\t.p2align 3\ntable:\n");
    for byte in header.to_bytes().iter().chain(&payload) {
        writeln!(text, "\t.byte {byte}").unwrap();
    }
    text += "\t.section memlode_seg,\"a\"\n\t.p2align 3\n";
    text += "\t.globl memlode_test_anchors\n\t.hidden memlode_test_anchors\nmemlode_test_anchors:\n";
    for index in 0..segments.len() {
        writeln!(text, "\t.long table - .\n\t.long {index}").unwrap();
    }
    text + "\t.section .note.GNU-stack,\"\",@progbits\n"
}
