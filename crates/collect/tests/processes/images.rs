//! Images come and go, and their identity is checked.

use std::path::PathBuf;

use crate::build::{Build, build, runtime};
use crate::record::record;

fn plugin(name: &'static str, function: &'static str) -> PathBuf {
    build(name, Build { sources: &["plugin"], function, flags: &["-shared", "-fPIC"], plain: false })
}

fn host(plain: bool) -> PathBuf {
    let name = if plain { "plain-host" } else { "host" };
    let flags: &[&str] = if plain { &["-DPLAIN"] } else { &[] };
    build(name, Build { sources: &["host"], function: "host", flags, plain })
}

/// The functions that accesses of thread 0 are attributed to, with the plug-in's number and how
/// many.
fn functions(trace: &memlode_trace::Trace) -> Vec<(u64, String, usize)> {
    let mut found: Vec<(u64, String, usize)> = Vec::new();
    let mut batch = Default::default();
    for chunk in trace.chunks() {
        trace.decode(chunk, &mut batch).unwrap();
        for access in &batch.accesses {
            let function = trace.sites().site(access.site).function;
            let name = trace.sites().string(trace.sites().function(function).name).to_owned();
            let number = (access.address >> 32) & 0xff;
            match found.last_mut() {
                Some((last, same, count)) if *last == number && *same == name => *count += 1,
                _ => found.push((number, name, 1)),
            }
        }
    }
    found
}

#[test]
fn a_plain_program_with_an_instrumented_plugin() {
    let plugin = plugin("alone.so", "alone");
    let recording = record(&host(true), &[plugin.to_str().unwrap()]);
    assert_eq!(recording.stderr, "");
    recording.assert_whole();
    assert_eq!(functions(&recording.trace), [(1, "alone".to_owned(), 100)]);
}

#[test]
fn libraries_that_take_each_others_place() {
    let (a, b) = (plugin("a.so", "from_a"), plugin("b.so", "from_b"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let recording = record(&host(false), &[a, b, a, a, b]);
    recording.assert_whole();
    let from_plugins: Vec<_> =
        functions(&recording.trace).into_iter().filter(|(_, name, _)| name != "host").collect();
    let expected = ["from_a", "from_b", "from_a", "from_a", "from_b"];
    let expected: Vec<_> =
        expected.iter().enumerate().map(|(i, name)| (i as u64 + 1, name.to_string(), 100)).collect();
    assert_eq!(from_plugins, expected);
    // One file each, however often it was loaded.
    assert_eq!(recording.trace.modules().len(), 3);
    assert_eq!(recording.trace.images().iter().filter(|image| image.unloaded.is_some()).count(), 6);
}

#[test]
fn a_static_program() {
    let name = runtime().join("libmemlode_record.a");
    let archive: &'static str = Box::leak(name.to_str().unwrap().to_owned().into_boxed_str());
    let flags: &'static [&'static str] = Box::leak(Box::new(["-static", archive]));
    let program =
        build("static-endings", Build { sources: &["endings"], function: "work", flags, plain: false });
    for way in ["return", "_exit", "kill"] {
        let recording = record(&program, &[way, "1000"]);
        assert!(recording.only().into_iter().eq(1..=1000));
        recording.assert_whole();
    }
}

#[test]
fn a_program_at_a_fixed_address() {
    let flags: &'static [&'static str] = &["-no-pie"];
    let program =
        build("fixed-endings", Build { sources: &["endings"], function: "work", flags, plain: false });
    let recording = record(&program, &["return", "1000"]);
    recording.assert_whole();
    assert_eq!(recording.trace.images()[0].load_bias, 0);
}

#[test]
fn a_library_that_is_replaced_while_it_is_loaded_is_known_by_its_build_id() {
    let directory = tempfile::tempdir().unwrap();
    let flags: &[&str] = &["-shared", "-fPIC", "-DSWAP", "-Wl,--build-id=0x1111111111111111"];
    let one = build("one.so", Build { sources: &["plugin"], function: "one", flags, plain: false });
    let flags: &[&str] = &["-shared", "-fPIC", "-Wl,--build-id=0x2222222222222222"];
    let other = build("other.so", Build { sources: &["plugin"], function: "other", flags, plain: false });
    let path = directory.path().join("swapped.so");
    std::fs::copy(&one, &path).unwrap();
    std::fs::copy(&other, directory.path().join("swapped.so.new")).unwrap();
    let recording = record(&host(true), &[path.to_str().unwrap()]);
    assert_eq!(recording.status.code(), Some(0));
    assert!(!recording.summary.is_whole());
    assert!(recording.summary.notes.iter().any(|note| note.contains("build id")), "{:?}", recording.summary);
    assert_eq!(recording.summary.unknown_words, 200);
    assert!(recording.only().is_empty());
}

#[test]
fn code_that_runs_before_its_image_was_announced() {
    let how = Build { sources: &["endings"], function: "work", flags: &["-DUNANNOUNCED"], plain: false };
    let recording = record(&build("unannounced-endings", how), &["return", "1000"]);
    assert!(recording.only().into_iter().eq(1..=1000));
    recording.assert_whole();
}
