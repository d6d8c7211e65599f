//! Damaged traces: intact parts are read, damaged parts are named, and no number is silently wrong.

mod support;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use memlode_replay::Replay;
use memlode_replay::check::check;
use memlode_trace::format::version;
use memlode_trace::manifest::Manifest;
use memlode_trace::{Error, Trace};
use proptest::prelude::*;
use support::*;

const CHUNKS: usize = 5;

/// A program with two threads and all kinds of events.
fn write(directory: &Path) {
    let plan = Plan {
        functions: 2,
        site_bytes: vec![8, 4, 16],
        segments: vec![
            Seg { function: 0, steps: vec![Step::Enter, Step::Alloc(0)] },
            Seg {
                function: 1,
                steps: vec![Step::Access(0, Operand::Word), Step::Access(1, Operand::Back(1, 24))],
            },
            Seg { function: 1, steps: vec![Step::Masked(2, 4, Operand::Word), Step::Gather(1, 2)] },
            Seg { function: 0, steps: vec![Step::Free(0), Step::Exit] },
        ],
    };
    let chunk = |number: u64| {
        let mut executions = vec![(0, vec![0x7fff_0000 - 64 * number, 0x1_0000 * number, 4096])];
        executions.extend((0..20).map(|i| (1, vec![0x1000 + 64 * i * number])));
        executions.push((2, vec![0x9000 + number, 0b1011, 1, 0x8000 * number, 0b11]));
        if number % 2 == 1 {
            executions.push((3, vec![0x1_0000]));
        }
        executions
    };
    let thread: Vec<_> = (1..=CHUNKS as u64).map(chunk).collect();
    write_trace(directory, &plan, &[thread.clone(), thread]);
}

/// Everything a reader can learn from a trace, and whether the trace reported that something is
/// missing.
fn learn(directory: &Path) -> Result<(String, bool), Error> {
    let trace = Trace::open(directory)?;
    let mut text = format!("{:?}\n{:?}\n{:?}\n", trace.processes(), trace.threads(), trace.images());
    text += &format!("{:?}\n{:?}\n", trace.manifest(), trace.modules());
    let replayed = trace.replay(0, |batch| {
        text += &format!("{:?} {:?} {:?}\n", batch.stamps, batch.stack, happened(&trace, batch));
        ControlFlow::Continue(())
    });
    Ok((text, !trace.damage().is_empty() || !replayed.damaged.is_empty()))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A trace in a directory of its own, and its file for thread 0.
fn fresh() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(&path);
    let thread = path.join("threads/p0000-t0000.mlt");
    (directory, path, thread)
}

#[test]
fn a_whole_trace_is_sound() {
    let (_guard, path, _) = fresh();
    let report = check(&path, 2).unwrap();
    assert_eq!(report.problems, []);
    assert!(report.complete);
    assert_eq!((report.processes, report.threads, report.modules, report.chunks), (1, 2, 1, 10));
    // Per chunk 40 plain accesses, 3 lanes of the masked one, 2 of the gather.
    assert_eq!(report.accesses, 10 * 45);
    // Per chunk enter and alloc; free and exit in chunks 1, 3 and 5.
    assert_eq!(report.marks, 2 * (5 * 2 + 3 * 2));
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let (_guard, path, _) = fresh();
    let (whole, _) = learn(&path).unwrap();
    for file in files(&path) {
        let bytes = fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&file, &damaged).unwrap();
            if let Ok((text, told)) = learn(&path) {
                assert!(told || text == whole, "{} byte {at}: a silent difference", file.display());
            }
        }
        fs::write(&file, &bytes).unwrap();
    }
}

#[test]
fn every_truncation_is_noticed() {
    let (_guard, path, thread) = fresh();
    let whole = fs::read(&thread).unwrap();
    let ends: Vec<u64> = {
        let trace = Trace::open(&path).unwrap();
        let of_thread = trace.chunks().iter().filter(|chunk| chunk.thread.0 == 0);
        of_thread
            .scan(0, |end, chunk| {
                *end += chunk.file_bytes();
                Some(*end)
            })
            .collect()
    };
    assert_eq!(ends.last(), Some(&(whole.len() as u64)));
    for length in 0..whole.len() {
        fs::write(&thread, &whole[..length]).unwrap();
        let trace = Trace::open(&path).unwrap();
        let kept = ends.iter().filter(|end| **end <= length as u64).count();
        assert_eq!(trace.threads()[0].chunks as usize, kept, "whole chunks are read");
        let missing: u32 = trace.damage().iter().map(|damage| damage.chunks).sum();
        assert_eq!(missing as usize, CHUNKS - kept, "at {length}: {:?}", trace.damage());
        let end = if kept == 0 { 0 } else { ends[kept - 1] };
        let bytes: u64 = trace.damage().iter().map(|damage| damage.bytes).sum();
        assert_eq!(bytes, length as u64 - end);
    }
}

#[test]
fn behind_damage_the_next_chunk_is_found() {
    let (_guard, path, thread) = fresh();
    let mut bytes = fs::read(&thread).unwrap();
    let second =
        Trace::open(&path).unwrap().chunks().iter().find(|c| c.thread.0 == 0).unwrap().file_bytes() as usize;
    bytes[second + 4] ^= 0xff;
    fs::write(&thread, &bytes).unwrap();
    // The index has the header that is damaged.
    let report = check(&path, 1).unwrap();
    assert_eq!((report.chunks as usize, report.problems), (2 * CHUNKS, vec![]));
    fs::remove_file(path.join("chunks.mlx")).unwrap();
    let report = check(&path, 1).unwrap();
    assert_eq!(report.chunks as usize, 2 * CHUNKS - 1);
    let lost: (u64, u32) = report.problems.iter().fold((0, 0), |sum, d| (sum.0 + d.bytes, sum.1 + d.chunks));
    assert!(lost.0 > 0 && lost.1 == 1, "{:?}", report.problems);
}

/// Only a check does: nothing is missing.
fn tells_of_the_index(path: &Path) {
    let report = check(path, 1).unwrap();
    let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert!(problem.path.ends_with("chunks.mlx"), "{problem}");
    assert_eq!((report.chunks as usize, problem.chunks), (2 * CHUNKS, 0));
}

#[test]
fn an_index_need_not_be_there_or_whole_or_right() {
    let (_guard, path, thread) = fresh();
    let whole = learn(&path).unwrap();
    let index = path.join("chunks.mlx");
    let entries = fs::read(&index).unwrap();
    let entry = entries.len() / (2 * CHUNKS);
    for length in [0, 1, entry, 3 * entry, 3 * entry + 1, entries.len() - entry] {
        fs::write(&index, &entries[..length]).unwrap();
        assert_eq!(learn(&path).unwrap(), whole, "the rest is found in the files, {length}");
        tells_of_the_index(&path);
    }
    let backwards: Vec<u8> = entries.chunks(entry).rev().flatten().copied().collect();
    for wrong in [backwards, entries.repeat(2), b"no index at all".to_vec()] {
        fs::write(&index, wrong).unwrap();
        assert_eq!(learn(&path).unwrap(), whole);
        tells_of_the_index(&path);
    }
    for at in 0..entries.len() {
        let mut flipped = entries.clone();
        flipped[at] ^= 1;
        fs::write(&index, flipped).unwrap();
        tells_of_the_index(&path);
    }
    // An index of other contents: the last of its chunks is not where it says.
    fs::write(&index, &entries).unwrap();
    let bytes = fs::read(&thread).unwrap();
    let first = Trace::open(&path).unwrap().chunks().iter().find(|c| c.thread.0 == 0).unwrap().file_bytes();
    fs::write(&thread, [&bytes[first as usize..], &bytes[..first as usize]].concat()).unwrap();
    let (_, told) = learn(&path).unwrap();
    assert!(told, "a file whose chunks changed places is no sound one");
}

#[test]
fn what_is_not_a_trace_is_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path| Trace::open(path).map(|_| ()).unwrap_err();
    let nowhere = open(&directory.path().join("nowhere"));
    assert!(nowhere.to_string().contains("no such directory"), "{nowhere}");
    assert!(matches!(open(directory.path()), Error::NotATrace { .. }));
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(open(&file).to_string().contains("not a directory"));
    for (contents, expected) in [
        ("", "damaged"),
        ("{}", "not one of memlode's"),
        ("{\"format\":\"memlode trace\",\"version\":1}", "checksum"),
    ] {
        fs::write(directory.path().join("manifest.json"), contents).unwrap();
        let error = open(directory.path()).to_string();
        assert!(error.contains(expected), "{contents:?}: {error}");
    }
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let (_guard, path, _) = fresh();
    let manifest = path.join("manifest.json");
    let text = fs::read_to_string(&manifest)
        .unwrap()
        .replace(&format!("\"version\": {}", version::TRACE), "\"version\": 7");
    let body = &text[..text.rfind(",\"crc32\"").unwrap()];
    fs::write(&manifest, format!("{body},\"crc32\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()))).unwrap();
    let error = Trace::open(&path).map(|_| ()).unwrap_err();
    let newest = u64::from(version::SAMPLED_TRACE);
    assert!(matches!(error, Error::Newer { found: 7, supported, .. } if supported == newest), "{error}");
    let told = error.to_string();
    assert!(told.contains("version 7") && told.contains(&format!("version {newest}")), "{told}");
}

#[test]
fn missing_files_are_named() {
    for file in ["events.ndjson", "modules/0000.mlm", "threads/p0000-t0001.mlt"] {
        let (_guard, path, _) = fresh();
        fs::remove_file(path.join(file)).unwrap();
        let report = check(&path, 0).unwrap();
        assert!(
            report.problems.iter().any(|problem| problem.path.ends_with(file)),
            "{file}: {:?}",
            report.problems
        );
    }
}

#[test]
fn what_the_collector_lost_is_told() {
    use memlode_trace::manifest::Summary;
    use memlode_trace::write::TraceWriter;
    let told = |summary: Summary| {
        let directory = tempfile::tempdir().unwrap();
        TraceWriter::create(directory.path(), Default::default(), false).unwrap().finish(summary).unwrap();
        check(directory.path(), 0)
            .unwrap()
            .problems
            .iter()
            .map(|problem| problem.what.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(told(Summary::default()), [""; 0]);
    let lost =
        told(Summary { unknown_words: 7, notes: vec!["the disk was full".into()], ..Default::default() });
    assert!(lost.len() == 2 && lost[0].starts_with("7 words") && lost[1] == "the disk was full", "{lost:?}");
}

/// The third chunk begins at 20. An acquired event may have an older stamp, but not one older than
/// the acquisition before.
#[test]
fn stamps_go_forwards() {
    let steps = vec![Step::Stamp];
    let plan = Plan { functions: 1, site_bytes: vec![8], segments: vec![Seg { function: 0, steps }] };
    let problems = |stamps: &[u64]| {
        let directory = tempfile::tempdir().unwrap();
        let chunks = stamps.iter().map(|&stamp| vec![(0, vec![stamp])]).collect();
        write_trace(directory.path(), &plan, &[chunks]);
        check(directory.path(), 0).unwrap().problems
    };
    assert_eq!(problems(&[2, 12, 17, 18]), []);
    assert_eq!(problems(&[2, 12, 12, 18]), []);
    let found = problems(&[2, 12, 11, 18]);
    assert!(found.len() == 1 && found[0].what.contains("has stamp 11 after 12"), "{found:?}");
}

#[test]
fn events_about_nothing_are_left_out() {
    use memlode_trace::log::Event;
    use memlode_trace::write::TraceWriter;
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), Default::default(), false).unwrap();
    let start = |process| Event::ProcessStart { process, pid: 1, parent: Some(9), command: vec![], stamp: 1 };
    writer.event(&start(0)).unwrap();
    writer.event(&start(u32::MAX)).unwrap();
    writer.event(&Event::ThreadStart { process: u32::MAX, thread: 0, tid: 1, stamp: 1 }).unwrap();
    writer.event(&Event::ModuleLoad { process: 0, module: u32::MAX, load_bias: 0, stamp: 1 }).unwrap();
    writer.event(&Event::ModuleUnload { process: 3, module: 3, load_bias: 0, stamp: 1 }).unwrap();
    writer.finish(Default::default()).unwrap();
    let trace = Trace::open(directory.path()).unwrap();
    assert_eq!((trace.processes().len(), trace.threads().len(), trace.images().len()), (1, 0, 0));
    assert_eq!(trace.processes()[0].parent, None);
    assert!(!check(directory.path(), 0).unwrap().is_sound());
}

#[test]
fn an_unfinished_trace_is_read() {
    let (_guard, path, _) = fresh();
    let (_other, unfinished, _) = fresh();
    // As the collector leaves it when it is killed: the manifest of the start, a torn line at the end.
    let writer = tempfile::tempdir().unwrap();
    drop(
        memlode_trace::write::TraceWriter::create(&writer.path().join("t"), Default::default(), false)
            .unwrap(),
    );
    fs::copy(writer.path().join("t/manifest.json"), unfinished.join("manifest.json")).unwrap();
    let events = unfinished.join("events.ndjson");
    let text = fs::read(&events).unwrap();
    fs::write(&events, &text[..text.len() - 9]).unwrap();
    assert!(!Manifest::read(&unfinished).unwrap().complete);
    let report = check(&unfinished, 2).unwrap();
    assert!(report.is_sound() && !report.complete, "{:?}", report.problems);
    assert_eq!(report.accesses, check(&path, 2).unwrap().accesses);
}

#[test]
fn only_a_trace_is_replaced() {
    use memlode_trace::write::TraceWriter;
    let (_guard, path, _) = fresh();
    let create = |path: &Path, replace| TraceWriter::create(path, Default::default(), replace).map(|_| ());
    assert!(matches!(create(&path, false), Err(Error::Occupied { .. })));
    fs::write(path.join("notes.txt"), "mine").unwrap();
    create(&path, true).unwrap();
    assert_eq!(Trace::open(&path).unwrap().chunks().len(), 0);
    assert_eq!(fs::read_to_string(path.join("notes.txt")).unwrap(), "mine");

    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("thesis.tex"), "x").unwrap();
    for replace in [false, true] {
        assert!(matches!(create(other.path(), replace), Err(Error::Occupied { .. })));
        assert!(matches!(create(&other.path().join("thesis.tex"), replace), Err(Error::Occupied { .. })));
    }
    assert_eq!(files(other.path()).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Damage whose checksums are repaired: nothing may panic, hang or take much memory.
    #[test]
    fn hostile_chunks_are_harmless(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        use memlode_trace::format::ChunkHeader;
        let (_guard, path, thread) = fresh();
        let mut bytes = fs::read(&thread).unwrap();
        let (header, payload) = bytes.split_first_chunk_mut::<{ ChunkHeader::BYTES }>().unwrap();
        let mut read = ChunkHeader::from_bytes(header);
        let mut unpacked = match read.codec {
            0 => payload[..read.payload_bytes as usize].to_vec(),
            _ => zstd::bulk::decompress(&payload[..read.payload_bytes as usize], 1 << 20).unwrap(),
        };
        for (at, value) in edits {
            let at = at.index(unpacked.len());
            unpacked[at] = value;
        }
        read.codec = 0;
        (read.payload_bytes, read.unpacked_bytes) = (unpacked.len() as u32, unpacked.len() as u32);
        read.payload_crc32 = crc32fast::hash(&unpacked);
        read.header_crc32 = 0;
        read.header_crc32 = crc32fast::hash(&read.to_bytes());
        fs::write(&thread, [&read.to_bytes()[..], &unpacked].concat()).unwrap();
        let report = check(&path, 1).unwrap();
        prop_assert!(report.chunks >= CHUNKS as u64);
    }

    /// The same for site tables.
    #[test]
    fn hostile_tables_are_harmless(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        use memlode_trace::module::Module;
        let plan = Plan {
            functions: 2,
            site_bytes: vec![8, 4],
            segments: vec![
                Seg { function: 1, steps: vec![Step::Range(0, Operand::Word, Operand::Word), Step::Gather(1, 9)] },
                Seg { function: 1, steps: vec![Step::Repeat, Step::Stride(0, Operand::Word, 8)] },
            ],
        };
        let mut image = image(&plan);
        for (at, value) in edits {
            let at = 16 + at.index(image.tables.bytes.len() - 16);
            image.tables.bytes[at] = value;
        }
        let crc = crc32fast::hash(&image.tables.bytes[16..]).to_le_bytes();
        image.tables.bytes[12..16].copy_from_slice(&crc);
        let _ = Module::parse(image);
    }
}
