//! Traces of samples: a golden one that another language wrote, and damaged ones.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memlode_replay::check::check;
use memlode_trace::sampled::{SampledRecording, StoredSample};
use memlode_trace::{Error, Trace};

const FILES: [&str; 6] = [
    "manifest.json",
    "events.ndjson",
    "modules/0000.mlm",
    "modules/0001.mlm",
    "threads/p0000-t0000.mlt",
    "threads/p0000-t0001.mlt",
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format/golden/v5")
}

fn read(directory: &Path) -> SampledRecording {
    let trace = Trace::open_sampled(directory).expect("a trace of samples");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let (recording, problems) = trace.recording().expect("modules");
    assert!(problems.is_empty(), "{problems:?}");
    recording
}

/// A line as the golden trace's writer makes it of what it wrote.
fn line(recording: &SampledRecording, sample: &StoredSample) -> String {
    let at = recording.instruction(sample.at);
    let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let text =
        |value: Option<&String>| value.filter(|text| !text.is_empty()).map_or("-".to_owned(), Clone::clone);
    let function = Some(at.function().to_owned());
    let callers: Vec<&str> = recording.callers(sample).map(|call| call.function()).collect();
    [
        sample.thread.to_string(),
        sample.time.to_string(),
        sample.weight.to_string(),
        number(sample.address),
        number(sample.on_stack.map(u64::from)),
        number(sample.latency),
        number(sample.source),
        number(sample.cpu.map(u64::from)),
        number(sample.page_bytes),
        text(function.as_ref()),
        number(at.frames.first().map(|frame| frame.line.into())),
        number(at.access.map(|access| access.bytes.into())),
        text(at.variable.as_ref()),
        text(at.ty.as_ref()),
        text(at.member.as_ref()),
        text(Some(&callers.join(","))),
    ]
    .join("\t")
}

#[test]
fn the_golden_trace_says_what_its_writer_wrote() {
    let recording = read(&golden());
    let mut found = String::new();
    recording.samples.iter().for_each(|sample| _ = writeln!(found, "{}", line(&recording, sample)));
    assert_eq!(found, fs::read_to_string(golden().join("expected.txt")).unwrap());
    let [program, gone] = &recording.modules[..] else { panic!("{:?}", recording.modules) };
    assert_eq!((program.has_debug, gone.unread.as_deref()), (true, Some("No such file")));
    let [state, count, ..] = &program.instructions[..] else { panic!("{program:?}") };
    assert_eq!(
        (state.frames.len(), state.frames[1].function.as_str(), state.frames[1].line),
        (2, "scan", 12)
    );
    assert_eq!((state.address, count.access.map(|access| access.is_store)), (0x1010, Some(true)));
    assert_eq!((recording.info.skid, recording.info.kernel, recording.info.is_time), (1, 2, false));
    assert_eq!(check(&golden(), 1).unwrap().problems, []);
}

#[test]
fn the_writer_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let writer = golden().join("../write_sampled.py");
    let output = Command::new("python3").arg("-B").arg(writer).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for file in FILES.iter().chain(&["expected.txt"]) {
        let read = |folder: &Path| fs::read(folder.join(file)).unwrap();
        assert!(read(folder.path()) == read(&golden()), "{file} differs");
    }
}

/// Ours, read again, is what was read.
#[test]
fn what_is_written_again_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("again");
    let recording = read(&golden());
    recording.write(&directory, memlode_trace::manifest::ManifestInfo::default(), false).unwrap();
    assert_eq!(read(&directory), recording);
    assert_eq!(check(&directory, 1).unwrap().problems, []);
    // It replaces nothing that it is not told to.
    let again = recording.write(&directory, memlode_trace::manifest::ManifestInfo::default(), false);
    assert!(matches!(again, Err(Error::Occupied { .. })), "{again:?}");
}

/// A reader that needs every access is refused, and so is a manifest that says that there is every access.
#[test]
fn samples_are_never_taken_for_every_access() {
    let refused = Trace::open(&golden()).err().expect("no trace of every access").to_string();
    assert!(refused.contains("holds samples") && refused.contains("memlode run -- PROGRAM"), "{refused}");
    let exact = golden().join("../v4");
    assert!(matches!(Trace::open_sampled(&exact), Err(Error::NotSampled { .. })));
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(), folder.path());
    fs::copy(exact.join("manifest.json"), folder.path().join("manifest.json")).unwrap();
    let told = Trace::open(folder.path()).err().expect("contradictory").to_string();
    assert!(told.contains("its manifest says that it has every access"), "{told}");
}

fn copy(from: &Path, to: &Path) {
    for folder in ["modules", "threads"] {
        fs::create_dir(to.join(folder)).unwrap();
    }
    FILES.iter().for_each(|file| _ = fs::copy(from.join(file), to.join(file)).unwrap());
}

/// Every byte of every file, changed: a clear answer, and never another one than was written.
#[test]
fn a_changed_byte_is_noticed() {
    let expected = read(&golden());
    let folder = tempfile::tempdir().unwrap();
    copy(&golden(), folder.path());
    for file in FILES {
        let path = folder.path().join(file);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            let Ok(trace) = Trace::open_sampled(folder.path()) else { continue };
            let Ok((found, problems)) = trace.recording() else { continue };
            let is_told = !problems.is_empty() || !trace.damage().is_empty();
            assert!(is_told || found == expected, "{file}: byte {at}");
        }
        fs::write(&path, &whole).unwrap();
    }
}
