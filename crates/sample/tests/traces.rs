//! Samples as a trace: what was taken is what is read, sample by sample, and nobody takes it for every access.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memlode_sample::perf_data::{Imported, PerfData, import};
use memlode_sample::records::RecordEvent;
use memlode_sample::tiers::{LinuxSampling, SampledEvent, TierKind, events};
use memlode_sample::{Error, SampleSource, report, resolve, sample_events};
use memlode_trace::manifest::ManifestInfo;
use memlode_trace::sampled::{SampledRecording, StoredSample};
use memlode_trace::{Error as TraceError, Trace};

/// Recordings of other machines, as they lie beside this test.
const FIXTURES: [&str; 3] = ["loads-stores.data", "old-kernel.data", "weight-struct.data.zst"];

fn unpacked(folder: &Path, name: &str) -> PathBuf {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data").join(name);
    let packed = std::fs::read(fixture).expect("a fixture");
    let bytes = if name.ends_with(".zst") { zstd::decode_all(&packed[..]).expect("zstd") } else { packed };
    let path = folder.join("recording");
    std::fs::write(&path, bytes).expect("room");
    path
}

/// Writes a recording, and reads what was written.
fn through_a_trace(recording: &SampledRecording, folder: &Path) -> SampledRecording {
    let directory = folder.join("trace");
    recording.write(&directory, ManifestInfo::default(), false).expect("room");
    assert!(matches!(Trace::open(&directory), Err(TraceError::Sampled { .. })), "not every access");
    let trace = Trace::open_sampled(&directory).expect("a trace of samples");
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let (read, problems) = trace.recording().expect("modules");
    assert!(problems.is_empty(), "{problems:?}");
    read
}

#[test]
fn recordings_of_perf_come_back_in_each_sample() {
    for name in FIXTURES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = unpacked(folder.path(), name);
        let Imported { sampled, source, .. } = import(&path, None, None).expect("a recording");
        let taken = resolve(&sampled, &source);
        assert_eq!(taken.samples.len() as u64, sampled.samples(), "{name}");
        let is_whole = |sample: &StoredSample| sample.source.is_some() && sample.address.is_some();
        assert!(taken.samples.iter().any(is_whole), "{name}");
        let read = through_a_trace(&taken, folder.path());
        assert_eq!(read, taken, "{name}");
        assert_eq!(report(&read), report(&taken), "{name}");
    }
}

/// The sum of what samples stand for is that of the file.
#[test]
fn weights_are_the_periods_of_the_recording() {
    for name in FIXTURES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = unpacked(folder.path(), name);
        let data = PerfData::open(&path).expect("a recording");
        for event in data.events() {
            let mut expected = Vec::new();
            data.replay(&mut |at, record| match record.event {
                RecordEvent::Sample(sample) if !sample.is_kernel && data.events()[at].name == event.name => {
                    expected.push(sample.period.unwrap_or(event.attributes.period));
                }
                _ => {}
            })
            .expect("whole");
            let Ok(Imported { sampled, source, .. }) = import(&path, Some(&event.name), None) else {
                continue;
            };
            let mut found: Vec<u64> =
                resolve(&sampled, &source).samples.iter().map(|one| one.weight).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}: {}", event.name);
        }
    }
}

/// A program whose hot function has a frame, as it may call another, and one caller.
const PROGRAM: &str = "
    struct node { struct node *next; long key, pad[6]; } nodes[1 << 16];
    long calls;
    __attribute__((noinline)) void never(long i) { calls += i; __asm__ volatile (\"\"); }
    __attribute__((noinline)) long hot(struct node *from, long steps) {
        long sum = 0;
        for (; steps > 0; steps--) {
            sum += from->key;
            from = from->next;
            if (!from) never(steps);
        }
        return sum;
    }
    __attribute__((noinline)) long middle(long turns) { long sum = hot(nodes, turns); calls = sum; return sum + 1; }
    int main(void) {
        unsigned long at = 0, count = 1 << 16;
        for (long i = 0; i < 1 << 16; i++) {
            unsigned long to = (at + 40503) % count;
            nodes[at].next = &nodes[to]; nodes[at].key = i; at = to;
        }
        return middle(8L << 20) == 99;
    }";

/// The clock, 20000 times a second.
fn clock() -> Vec<Vec<SampledEvent>> {
    events(&LinuxSampling, TierKind::Clock, 20_000).expect("a clock")
}

#[test]
fn samples_of_this_machine_come_back_with_their_callers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&source, PROGRAM).expect("room");
    let options = [
        "-O2",
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-shrink-wrap",
        "-fno-optimize-sibling-calls",
        "-fno-ipa-cp",
        "-fno-ipa-vrp",
    ];
    let built = Command::new("gcc").args(options).arg(&source).arg("-o").arg(&program).status();
    assert!(built.expect("gcc").success());
    let run = || -> Result<bool, Error> {
        Ok(Command::new(&program).stdout(Stdio::null()).status().expect("it runs").success())
    };
    let (succeeded, sampled) = sample_events(&clock(), None, run).expect("samples");
    assert!(succeeded);
    let source =
        SampleSource { subject: "program".into(), period_ns: 50_001, skid: 1, ..SampleSource::default() };
    let taken = resolve(&sampled, &source);
    assert_eq!(through_a_trace(&taken, folder.path()), taken);
    let found = report(&taken);
    let line = found.lines.iter().find(|line| line.function == "hot").expect("the hot line");
    let way = &line.callers.first().expect("callers").functions;
    assert_eq!(way[..2], ["middle", "main"], "{:#?}", line.callers);
    // Addresses are those of the data that the line names.
    let is_node = |at| taken.instruction(at).ty.as_deref() == Some("node");
    let of_nodes = taken.samples.iter().filter(|sample| is_node(sample.at));
    let addresses: Vec<u64> = of_nodes.filter_map(|sample| sample.address).collect();
    assert!(found.data.iter().any(|data| data.name().starts_with("node.")), "{:#?}", found.data);
    if let (Some(least), Some(most)) = (addresses.iter().min(), addresses.iter().max()) {
        assert!(most - least < 4 << 20, "{least:#x} to {most:#x} in an array of 4 MiB");
    }
}
