use std::fs;
use std::process::Command;

use proptest::prelude::*;

use super::*;

const PROGRAM: &str = r#"
__attribute__((section("memlode_seg"), used)) static const int anchors[] = {1, 2, 3, 4};
__attribute__((section("memlode_tab"), used)) static const char tables[] = "tables";
int counter[25] = {1};
static double hidden = 1.5;
int main(void) { return counter[0] + (int)hidden; }
"#;

/// Links a small program and hands over its bytes.
fn build(source: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("p.c"), directory.path().join("p"));
    fs::write(&input, source).unwrap();
    let status = Command::new("cc").arg(&input).arg("-o").arg(&output).args(options).status().unwrap();
    assert!(status.success());
    fs::read(output).unwrap()
}

fn parse(bytes: &[u8]) -> Result<ElfImage, Error> {
    ElfImage::parse(bytes, Path::new("p"))
}

#[test]
fn an_instrumented_program_is_read() {
    let image = parse(&build(PROGRAM, &["-Wl,--build-id=sha1", "-pie", "-fPIE"])).unwrap();
    assert!(image.relocatable);
    let module = &image.module;
    assert_eq!((module.build_id.len(), module.anchors.bytes.len()), (20, 16));
    assert_eq!(module.tables.bytes, b"tables\0");
    assert_ne!(module.anchors.address, 0);
    let sizes = ["counter", "hidden"]
        .map(|name| module.globals.iter().find(|global| global.name == name).unwrap().bytes);
    assert_eq!(sizes, [100, 8]);
    assert!(module.globals.is_sorted_by_key(|global| global.address));
}

#[test]
fn fixed_and_stripped_programs_are_read() {
    let fixed = parse(&build(PROGRAM, &["-no-pie", "-fno-pie", "-Wl,--build-id=none"])).unwrap();
    assert!(!fixed.relocatable && fixed.module.build_id.is_empty());
    let stripped = parse(&build(PROGRAM, &["-shared", "-fPIC", "-s"])).unwrap();
    assert!(stripped.module.globals.iter().any(|global| global.name == "counter"), "from .dynsym");
}

/// A program with the entries that the pass would write of `known`, and of `far` in other code
/// models.
const MIXED: &str = r#"
__attribute__((section("memlode_seg"), used)) static const int anchors[] = {1, 2, 3, 4};
__attribute__((section("memlode_tab"), used)) static const char tables[] = "tables";
__attribute__((noinline)) int known(int n) { return n * 3; }
__attribute__((noinline)) int far(int n) { return n * 5; }
__attribute__((noinline)) static int hidden(int n) { return n * 7 % 31; }
int strange(int n) { return hidden(n) + known(n) + far(n); }
extern int other_name(int) __attribute__((alias("known")));
int main(void) { return strange(1); }
asm(".pushsection memlode_fun,\"aw\"\n"
    "1: .long known-1b, 1\n 1: .long main-1b, 100\n 2: .popsection\n"
    ".pushsection memlode_fun_far,\"aw\"\n 1: .quad far-1b\n .long 1\n .popsection");
"#;

#[test]
fn functions_that_no_entry_covers_are_foreign() {
    let code = parse(&build(MIXED, &["-O1", "-fno-toplevel-reorder"])).unwrap().module.foreign;
    let names: Vec<_> = code.functions.iter().map(|of| (of.name.as_str(), of.is_local)).collect();
    assert!(names.contains(&("strange", false)) && names.contains(&("hidden", true)), "{names:?}");
    for known in ["known", "other_name", "far", "main", "_start"] {
        assert!(!names.iter().any(|(name, _)| *name == known), "{known}: {names:?}");
    }
    assert!(code.functions.is_sorted_by_key(|of| std::cmp::Reverse(of.bytes)) && !code.has_libraries);
    // Where nothing tells what was compiled, nothing is said.
    assert_eq!(parse(&build(PROGRAM, &[])).unwrap().module.foreign, ForeignCode::default());
}

#[test]
fn other_files_are_refused_with_a_reason() {
    let plain = parse(&build("int main(void) { return 0; }", &[])).unwrap_err();
    assert!(matches!(plain, Error::NotInstrumented { .. }), "{plain}");
    assert!(plain.to_string().contains("memlode cc"), "{plain}");
    assert!(matches!(parse(b"#!/bin/sh\n").unwrap_err(), Error::NotElf { .. }));
    assert!(matches!(parse(b"").unwrap_err(), Error::NotElf { .. }));
    assert!(matches!(parse(b"\x7fELF\x01\x01").unwrap_err(), Error::OtherMachine { .. }));
    assert!(matches!(parse(b"\x7fELF\x02\x01").unwrap_err(), Error::Damaged { .. }));
    let object = parse(&build(PROGRAM, &["-c"])).unwrap_err();
    assert!(matches!(object, Error::NotElf { .. }), "{object}");
    assert!(matches!(ElfImage::read(Path::new("/nowhere/at/all")).unwrap_err(), Error::Io { .. }));
}

#[test]
fn damaged_files_never_panic() {
    let program = build(MIXED, &[]);
    let mut runner = proptest::test_runner::TestRunner::default();
    let damage = (0..program.len(), prop::collection::vec((0..program.len(), any::<u8>()), 0..20));
    runner
        .run(&damage, |(length, flips)| {
            let mut bytes = program.clone();
            // The header and the section table are where offsets are.
            for (at, value) in flips {
                let at = if at % 2 == 0 { at % 64 } else { bytes.len() - 1 - at % 2048 };
                bytes[at] = value;
            }
            let _ = parse(&bytes);
            let _ = parse(&bytes[..length]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_path_to_something_else_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for path in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/")] {
            tell.send(ElfImage::read(path).unwrap_err().to_string()).unwrap();
        }
    });
    for kind in ["a FIFO", "a device", "a directory"] {
        let error = told.recv_timeout(std::time::Duration::from_secs(600)).expect("it waits");
        assert!(error.ends_with(&format!("is {kind}, not a regular file")), "{error}");
    }
}

#[test]
fn of_a_file_only_what_is_needed_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p");
    let bytes = build(PROGRAM, &["-pie", "-fPIE"]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(ElfImage::read(&path).unwrap(), ElfImage::parse(&bytes, &path).unwrap());
    // A terabyte of nothing behind it, as debug information may be.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(ElfImage::read(&path).unwrap(), ElfImage::parse(&bytes, &path).unwrap());
}
