//! Recordings of `perf`, read beside `perf script -D`: samples agree in every field that it prints.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memlode_sample::perf_data::{Imported, import};
use memlode_sample::{SampleReport, name};

mod dump;

use dump::{assert_agrees, perf, script};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data")
}

/// A recording of the fixtures, unpacked into a folder.
fn unpacked(folder: &Path, name: &str) -> PathBuf {
    let packed = std::fs::read(fixtures().join(name)).expect("a fixture");
    let path = folder.join("recording");
    let bytes = match name.ends_with(".zst") {
        true => zstd::decode_all(&packed[..]).expect("zstd"),
        false => packed,
    };
    std::fs::write(&path, bytes).expect("room");
    path
}

#[test]
fn recordings_of_other_machines_decode_to_what_perf_says() {
    for (name, expected, samples) in [
        ("loads-stores.data", "loads-stores.txt", 698),
        ("old-kernel.data", "old-kernel.txt", 16),
        ("weight-struct.data.zst", "weight-struct.txt", 14),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = std::fs::read_to_string(fixtures().join(expected)).expect("what perf says");
        assert_agrees(&unpacked(folder.path(), name), &text, samples);
    }
}

/// Levels by the numbers of perf's own report (`perf mem report -s mem`), in samples.
#[test]
fn sources_of_data_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = unpacked(folder.path(), "loads-stores.data");
    let Imported { sampled, source, others } = import(&path, None, None).expect("a recording");
    assert_eq!(source.events, ["cpu/mem-loads,ldlat=30/P", "cpu/mem-stores/P"]);
    assert_eq!((others.len(), source.skid, source.is_time), (0, 0, false));
    assert_eq!(sampled.samples() + sampled.kernel, 698);
    let report: SampleReport = name(&sampled, source);
    let cost = report.cost.expect("sources");
    let timed: u64 = cost.sources.iter().filter(|source| !source.is_store).map(|source| source.samples).sum();
    assert_eq!(timed, cost.timed, "each load has a latency, and no store has");
    assert!(cost.cycles.is_some_and(|cycles| cycles > 30.0), "{cost:?}");
    // Programs of another machine are not here, or are others.
    assert!(report.images.iter().all(|image| image.unread.is_some()), "{:?}", report.images);
    let one = import(&path, Some("cpu/mem-stores/P"), None).expect("stores");
    assert_eq!(one.others, [("cpu/mem-loads,ldlat=30/P".to_owned(), 204)]);
    let none = import(&path, Some("cycles"), None).expect_err("no such event").to_string();
    assert!(none.contains("no event `cycles`") && none.contains("`cpu/mem-stores/P`"), "{none}");
}

/// Records a program by this machine's perf; through a pipe, where the file is `-`.
fn record(folder: &Path, options: &[&str], is_piped: bool) -> PathBuf {
    let path = folder.join("recording");
    let program = folder.join("program");
    let mut command = perf(&["record", "-q", "-o"]);
    command.arg(if is_piped { Path::new("-") } else { &path }).args(options).arg("--").arg(program);
    command.stdout(match is_piped {
        true => std::fs::File::create(&path).expect("room").into(),
        false => Stdio::null(),
    });
    assert!(command.status().expect("perf of linux-perf").success(), "{options:?}");
    path
}

/// A program that prints nothing, so that a recording may go through a pipe.
fn build(folder: &Path) -> PathBuf {
    let source = folder.join("program.c");
    let text = "
        struct node { struct node *next; long key, pad[6]; } nodes[1 << 16];
        long walk(struct node *from, long steps) {
            long sum = 0;
            for (; steps > 0; steps--) { sum += from->key; from = from->next; }
            return sum;
        }
        int main(void) {
            unsigned long at = 0, count = 1 << 16;
            for (long i = 0; i < 1 << 16; i++) {
                unsigned long to = (at + 40503) % count;
                nodes[at].next = &nodes[to]; nodes[at].key = i; at = to;
            }
            return walk(nodes, 8L << 20) == 42;
        }";
    std::fs::write(&source, text).expect("room");
    let program = folder.join("program");
    let built = Command::new("gcc")
        .args(["-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(built.expect("gcc").success());
    program
}

/// All kinds of recordings that this machine's perf makes, also packed and through a pipe.
#[test]
fn recordings_of_this_machine_decode_to_what_perf_says() {
    const CLOCK: [&str; 4] = ["-e", "cpu-clock:u", "-c", "500009"];
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let registers = "--user-regs=ax,bx,cx,dx,si,di,bp,sp,r8,r9,r10,r11,r12,r13,r14,r15";
    for (options, is_piped) in [
        (&["-g", "-d", "-W", "--data-page-size", "--code-page-size", registers][..], false),
        (&["-z", "-g"], false),
        (&["-e", "page-faults:u", "-d", "--all-cgroups"], false),
        (&["-g", "-d"], true),
        (&["-T", "--sample-cpu", "-e", "task-clock:u"], true),
    ] {
        let path = record(folder.path(), &[&CLOCK[..], options].concat(), is_piped);
        assert_agrees(&path, &script(&path), 10);
    }
}

/// The names are those of `memlode sample`: the member that the program waits for, its line and function.
#[test]
fn a_recording_of_the_clock_has_lines_and_members() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let path = record(folder.path(), &["-e", "cpu-clock:u", "-c", "200003", "-g"], false);
    let Imported { sampled, source, .. } = import(&path, None, None).expect("a recording");
    assert_eq!((source.period_ns, source.is_time, source.skid), (200_003, true, 1));
    let report = name(&sampled, source);
    assert_eq!(report.functions[0].function, "walk", "{report:#?}");
    assert!(report.data[0].name().starts_with("node."), "{:#?}", report.data);
    assert_eq!(report.lines[0].line, 5, "{:#?}", report.lines);
    assert!(report.lines[0].time.share > 0.5, "{:#?}", report.lines);
    // The program changes: what was sampled is not what is there now.
    std::fs::write(folder.path().join("program.c"), "int main(void) { return 0; }").expect("room");
    let program = folder.path().join("program");
    let source = folder.path().join("program.c");
    let built = Command::new("gcc").arg(source).arg("-o").arg(&program).status();
    assert!(built.expect("gcc").success());
    let Imported { sampled, source, .. } = import(&path, None, None).expect("a recording");
    let report = name(&sampled, source);
    let image = report.images.iter().find(|image| image.path.ends_with("program")).expect("the program");
    assert!(image.unread.as_deref().is_some_and(|why| why.contains("another build")), "{image:?}");
}
