//! Programs of the gallery, built without anything of memlode's: the member that they wait for comes first.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use memlode_sample::tiers::{LinuxSampling, SampledEvent, TierKind, events};
use memlode_sample::{Error, SampleReport, SampleSource, Sampled, attach, name, sample_events};

/// Nanoseconds between samples.
const PERIOD: u64 = 50_001;

/// The clock, 20000 times a second.
fn clock() -> Vec<Vec<SampledEvent>> {
    events(&LinuxSampling, TierKind::Clock, 20_000).expect("a clock")
}

/// A source of the gallery, the member that it waits for, and compilers.
const PROGRAMS: [(&str, &str, [&str; 2]); 2] = [
    ("pricing-scan/before.c", "arc.state", ["clang-22", "gcc"]),
    ("grid-walk/before.cpp", "Cell.next", ["clang++-22", "g++"]),
];

fn gallery(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery").join(source)
}

fn built(folder: &Path, compiler: &str, options: &[&str], source: &Path) -> PathBuf {
    let program = folder.join("program");
    let status = Command::new(compiler).arg("-O2").args(options).arg(source).arg("-o").arg(&program).status();
    assert!(status.expect("a compiler").success());
    program
}

fn named(sampled: &Sampled) -> SampleReport {
    name(
        sampled,
        SampleSource { subject: "program".into(), period_ns: PERIOD, skid: 1, ..SampleSource::default() },
    )
}

fn started(program: &Path) -> SampleReport {
    let run = || -> Result<bool, Error> {
        let status = Command::new(program).stdout(Stdio::null()).status();
        Ok(status.expect("it runs").success())
    };
    let (succeeded, sampled) = sample_events(&clock(), None, run).expect("samples");
    assert!(succeeded);
    named(&sampled)
}

/// The hot member comes first, at the line that the gallery marks.
fn assert_hot(report: &SampleReport, source: &Path, member: &str, compiler: &str) {
    let text = std::fs::read_to_string(source).expect("a source");
    let hot = 1 + text.lines().position(|line| line.contains("// <-- hot")).expect("a hot line") as u32;
    let first = &report.data[0];
    assert_eq!((first.name().as_str(), first.lines[0].1), (member, hot), "{compiler}: {report:#?}");
    let of = &report.coverage;
    assert!(of.line.share > 0.5 && of.typed.share > 0.8 * of.memory.share, "{compiler}: {of:#?}");
}

#[test]
fn the_hot_member_comes_first_whatever_the_compiler() {
    for (source, member, compilers) in PROGRAMS {
        for compiler in compilers {
            let folder = tempfile::tempdir().expect("a folder");
            let source = gallery(source);
            let report = started(&built(folder.path(), compiler, &["-g"], &source));
            assert_hot(&report, &source, member, compiler);
        }
    }
}

/// A tree whose keys are compared in front of a jump: to the processor the two are one, behind
/// which it is found.
const TREE: &str = r#"
#include <stdlib.h>
struct leaf { struct leaf *child[2]; long key; long rest[4]; };
static struct leaf *root;
__attribute__((noinline)) static long find(long key) {
    struct leaf *leaf = root;
    while (leaf && leaf->key != key) // <-- hot
        leaf = leaf->child[key > leaf->key];
    return leaf ? leaf->rest[0] + 1 : 0;
}
int main(void) {
    unsigned seed = 1;
    for (int i = 0; i < 200000; i++, seed = seed * 1103515245u + 12345) {
        struct leaf **at = &root;
        while (*at)
            at = &(*at)->child[seed >> 2 > (*at)->key];
        *at = calloc(1, sizeof **at);
        (*at)->key = seed >> 2;
    }
    long found = 0;
    for (int i = 0; i < 400000; i++, seed = seed * 1103515245u + 12345)
        found += find(seed >> 2);
    return found == 1;
}
"#;

#[test]
fn a_comparison_is_waited_for_behind_its_jump() {
    for compiler in ["clang-22", "gcc"] {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("tree.c");
        std::fs::write(&source, TREE).expect("a source");
        let report = started(&built(folder.path(), compiler, &["-g"], &source));
        assert_hot(&report, &source, "leaf.key", compiler);
    }
}

/// A shell that starts the program again and again, and is ended at the end.
struct Forever(Child);

impl Forever {
    fn start(program: &Path) -> Forever {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do \"$0\" || exit; done"]).arg(program).stdout(Stdio::null());
        Forever(shell.spawn().expect("a shell"))
    }
}

impl Drop for Forever {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process is the shell; the programs that it starts are followed.
#[test]
fn a_process_that_runs_is_sampled_with_all_that_it_starts() {
    let (source, member, [_, compiler]) = PROGRAMS[0];
    let folder = tempfile::tempdir().expect("a folder");
    let source = gallery(source);
    let shell = Forever::start(&built(folder.path(), compiler, &["-g"], &source));
    let stop = AtomicBool::new(false);
    let sampled = attach(shell.0.id(), &clock(), None, Some(Duration::from_secs(4)), &stop).expect("samples");
    assert_hot(&named(&sampled), &source, member, "attached");
}

#[test]
fn a_program_without_debug_information_has_functions_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = started(&built(folder.path(), "gcc", &[], &gallery("pricing-scan/before.c")));
    assert!(report.functions.iter().any(|row| row.function == "price_block"), "{report:#?}");
    // The system's libraries may have debug information in files of their own.
    assert!(!report.lines.iter().any(|row| row.file.ends_with("before.c")), "{report:#?}");
    assert!(!report.data.iter().any(|row| row.kind.as_deref() == Some("arc")), "{report:#?}");
    let own = report.images.iter().find(|image| image.path.ends_with("/program")).expect("the program");
    assert!(!own.has_debug && own.unread.is_none(), "{own:#?}");
    assert_eq!(report.untyped[0].why, "NoDebugInformation");
}
