//! Calls that led to samples of a program without frame pointers: the source states them, and perf unwinds the same
//! recording by a library of its own.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memlode_sample::perf_data::{Imported, import};
use memlode_sample::tiers::{LinuxSampling, TierKind, copy_stacks, events};
use memlode_sample::{Error, FilePlace, SampleSource, Sampled, resolve, sample_events};
use memlode_symbols::ProgramFile;
use memlode_trace::sampled::{SampledRecording, StoredSample};

/// Bytes of stacks that are copied.
const STACK: u32 = 2048;

fn built(folder: &Path, compiler: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/call_stacks/program.c");
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-fomit-frame-pointer"]).arg(source).arg("-o").arg(&program);
    assert!(command.status().expect("a compiler").success());
    program
}

/// Names of the functions of a sample, the innermost first.
fn chain(recording: &SampledRecording, sample: &StoredSample) -> Vec<String> {
    let name = |at: memlode_trace::sampled::InstructionId| {
        recording.modules[at.module as usize].instructions[at.instruction as usize]
            .symbol
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut found = vec![name(sample.at)];
    let mut path = sample.path;
    while let Some(number) = path {
        let call = &recording.paths[number as usize];
        found.push(name(call.call));
        path = call.parent;
    }
    found
}

/// All ways that the source has into `walk`, up to `main`; between them stand functions of the C library alone.
const WAYS: [&[&str]; 4] = [
    &["walk", "middle", "outer", "outer", "outer", "outer", "main"],
    &["walk", "sized", "main"],
    &["walk", "aligned", "main"],
    &["walk", "compared", "sorted", "main"],
];

/// Checks that samples in `walk` were reached in the ways of the source, and returns these.
fn ways(sampled: &Sampled, source: &SampleSource) -> BTreeSet<usize> {
    const OWN: [&str; 8] = ["walk", "middle", "outer", "sized", "aligned", "compared", "sorted", "main"];
    let recording = resolve(sampled, source);
    let chains = recording.samples.iter().map(|sample| chain(&recording, sample));
    let in_walk = chains.filter(|chain| chain[0] == "walk").map(|chain| {
        let own: Vec<&str> = chain.iter().map(String::as_str).filter(|name| OWN.contains(name)).collect();
        let way = WAYS.iter().position(|way| *way == own);
        way.unwrap_or_else(|| panic!("no way of the source: {chain:?}"))
    });
    in_walk.collect()
}

/// Samples of a program, with copies of the upper bytes of its stack.
fn sampled(program: &Path, stack: u32) -> Sampled {
    let mut clock = events(&LinuxSampling, TierKind::Clock, 20_000).expect("a clock");
    copy_stacks(&mut clock, stack);
    let run = || -> Result<bool, Error> { Ok(Command::new(program).status().expect("it runs").success()) };
    let (succeeded, sampled) = sample_events(&clock, None, run).expect("samples");
    assert!(
        succeeded && sampled.unwound == sampled.samples(),
        "{} of {}",
        sampled.unwound,
        sampled.samples()
    );
    sampled
}

#[test]
fn the_sampler_finds_the_calls_of_the_source() {
    for compiler in ["gcc", "clang-22"] {
        let folder = tempfile::tempdir().expect("a folder");
        let sampled = sampled(&built(folder.path(), compiler), STACK);
        let found = ways(&sampled, &SampleSource { skid: 1, ..SampleSource::default() });
        assert!(!found.is_empty(), "{compiler}: no samples");
    }
}

/// Nearly all of the program's time is far below the words that are copied.
#[test]
fn callers_below_the_copy_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let sampled = sampled(&built(folder.path(), "gcc"), 64);
    assert!(10 * sampled.cut > 9 * sampled.unwound, "{} of {}", sampled.cut, sampled.unwound);
}

/// This machine's perf, which says nothing.
fn perf() -> Command {
    let mut perf = Command::new("perf");
    perf.stdin(Stdio::null()).stderr(Stdio::null());
    perf
}

/// Addresses of a sample and of its calls as perf prints them, the innermost first.
fn unwound_by_perf(recording: &Path) -> Vec<Vec<u64>> {
    let script = ["script", "--no-inline", "-F", "ip,sym", "-i"];
    let output = perf().args(script).arg(recording).output().expect("perf of linux-perf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        u64::from_str_radix(first, 16).unwrap_or_else(|_| panic!("an address: {line}"))
    };
    let samples = text.split("\n\n").map(|one| {
        let mut lines: Vec<&str> = one.lines().filter(|line| !line.trim().is_empty()).collect();
        lines.pop_if(|line| line.trim().starts_with("ffffffffffffffff"));
        lines.into_iter().map(address).collect::<Vec<u64>>()
    });
    samples.filter(|one| !one.is_empty()).collect()
}

/// The same of an imported recording.
fn unwound_by_us(sampled: &Sampled) -> Vec<Vec<u64>> {
    let kept = &sampled.kept;
    let programs: Vec<Option<ProgramFile>> =
        kept.files.iter().map(|path| ProgramFile::read(Path::new(path)).ok()).collect();
    let address = |at: FilePlace| {
        let program = programs[at.file as usize].as_ref()?;
        program.address_of(at.offset)
    };
    let of = |sample: &memlode_sample::KeptSample| {
        let mut found: Vec<u64> = sample.at.and_then(address).into_iter().collect();
        let mut next = sample.call;
        while let Some(call) = next {
            found.extend(address(kept.calls[call as usize].at));
            next = kept.calls[call as usize].parent;
        }
        found
    };
    kept.samples.iter().map(of).collect()
}

/// With signals, whose handlers are called anywhere. Where the copy of the stack ends, perf has another address that no
/// file has.
#[test]
fn a_recording_has_the_calls_that_perf_unwinds() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), "gcc");
    let path = folder.path().join("recording");
    let mut record = perf();
    record
        .args(["record", "-q", "-e", "cpu-clock:u", "-c", "500009", "--call-graph"])
        .arg(format!("dwarf,{STACK}"))
        .arg("-o")
        .arg(&path)
        .arg("--")
        .arg(&program)
        .arg("signals");
    assert!(record.stdout(Stdio::null()).status().expect("perf of linux-perf").success());
    let Imported { sampled, .. } = import(&path, None, None).expect("a recording");
    let (theirs, ours) = (unwound_by_perf(&path), unwound_by_us(&sampled));
    assert_eq!(theirs.len(), ours.len());
    let differing: Vec<_> = theirs.iter().zip(&ours).filter(|(theirs, ours)| theirs != ours).collect();
    assert!(20 * differing.len() <= ours.len(), "{} of {}: {differing:x?}", differing.len(), ours.len());
}
