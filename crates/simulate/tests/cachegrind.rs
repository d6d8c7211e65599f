//! The simulator against Cachegrind, to the digit.
//!
//! The same program runs twice under valgrind with address-space randomisation off: under Lackey,
//! which prints every access, and under Cachegrind, which counts misses. The printed accesses, put
//! through our hierarchy, must give Cachegrind's counts. Cachegrind's rules, beyond those that are
//! ours as well:
//!
//! - Instructions have a first level of their own (here: core 1) and share the last level with
//!   data.
//! - A modify (read and write of one location by one instruction) counts once, as a read.
//! - An access that straddles two lines looks up both at every level it reaches
//!   ([`Straddle::Together`]).
//! - An access longer than a line counts as one line long.
//!
//! This test needs valgrind and a C compiler and fails without them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memlode_simulate::{Hierarchy, LevelSpec, MemRef, Straddle};

const LINE_BYTES: u32 = 64;
const DATA: usize = 0;
const INSTRUCTIONS: usize = 1;

/// First level (data and instructions alike), last level.
type Shape = ((u64, u32), (u64, u32));

/// Cachegrind wants powers of two for the number of sets, not for the ways.
const SHAPES: [Shape; 3] =
    [((32 << 10, 8), (256 << 10, 8)), ((16 << 10, 2), (96 << 10, 3)), ((4 << 10, 1), (64 << 10, 16))];

/// In the order of Cachegrind's summary: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw.
type Counts = [u64; 9];

#[test]
fn counts_equal_those_of_cachegrind() {
    let directory = tempfile::tempdir().unwrap();
    for optimisation in ["-O1", "-O2"] {
        let program = compile(directory.path(), optimisation);
        let ours = simulate(&program);
        for (shape, ours) in SHAPES.iter().zip(ours) {
            let theirs = cachegrind(directory.path(), &program, shape);
            assert!(theirs.iter().all(|count| *count > 100), "the program exercises everything: {theirs:?}");
            assert_eq!(
                ours, theirs,
                "ours, Cachegrind's (Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw) for {shape:?} {optimisation}"
            );
        }
    }
}

fn compile(directory: &Path, optimisation: &str) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/mix.c");
    let program = directory.join(format!("mix{optimisation}"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let status = Command::new(&compiler)
        .args([optimisation, "-g", "-Wall", "-Werror", source, "-o"])
        .arg(&program)
        .status()
        .unwrap_or_else(|error| {
            panic!(
                "this test compiles {source}, but `{compiler}` cannot be run ({error}); apt-get install gcc"
            )
        });
    assert!(status.success(), "{compiler} failed on {source}");
    program
}

/// Valgrind on the program, with the same (empty) environment each time so that stacks lie alike.
fn valgrind(tool: &str, options: &[String], program: &Path) -> Command {
    let mut command = Command::new("setarch");
    command.args(["-R", "valgrind", &format!("--tool={tool}")]).args(options).arg(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The error when a tool is missing or fails: the comparison is part of the tests, not an extra.
const NEEDS: &str = "this test compares with Cachegrind and needs valgrind and setarch; \
                     on Debian: apt-get install valgrind util-linux";

fn cachegrind(directory: &Path, program: &Path, ((l1, ways1), (ll, ways_ll)): &Shape) -> Counts {
    let out = directory.join("cachegrind.out");
    let options = [
        "--cache-sim=yes".to_string(),
        format!("--I1={l1},{ways1},{LINE_BYTES}"),
        format!("--D1={l1},{ways1},{LINE_BYTES}"),
        format!("--LL={ll},{ways_ll},{LINE_BYTES}"),
        format!("--cachegrind-out-file={}", out.display()),
    ];
    let output = valgrind("cachegrind", &options, program)
        .output()
        .unwrap_or_else(|error| panic!("cannot run setarch ({error}); {NEEDS}"));
    assert!(output.status.success(), "{NEEDS}\n{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&out).expect("Cachegrind's output file");
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).expect("a known line");
    assert_eq!(field("events:").trim(), "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw");
    let counts: Vec<u64> = field("summary:").split_whitespace().map(|n| n.parse().unwrap()).collect();
    counts.try_into().expect("nine counts")
}

/// Our counts for every shape, from one run under Lackey.
fn simulate(program: &Path) -> Vec<Counts> {
    let spec = |(bytes, ways), shared_by| LevelSpec { bytes, ways, line_bytes: LINE_BYTES, shared_by };
    let hierarchy = |(first, last): &Shape| {
        let levels = [spec(*first, 1), spec(*last, 2)];
        (Hierarchy::new(&levels, 2).unwrap().with_straddle(Straddle::Together), [0; 9])
    };
    let mut runs: Vec<(Hierarchy, Counts)> = SHAPES.iter().map(hierarchy).collect();

    let mut child = valgrind("lackey", &["--trace-mem=yes".to_string()], program)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run setarch ({error}); {NEEDS}"));
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((core, is_write, address, bytes)) = parse(&line) else {
            said.push(line);
            continue;
        };
        let first = if core == INSTRUCTIONS { 0 } else { 3 + 3 * usize::from(is_write) };
        for (hierarchy, counts) in &mut runs {
            let depth =
                hierarchy.access(MemRef::read(core, address, bytes.min(LINE_BYTES)).writing(is_write));
            for count in &mut counts[first..=first + usize::from(depth)] {
                *count += 1;
            }
        }
    }
    assert!(child.wait().unwrap().success(), "{NEEDS}\n{}", said.join("\n"));
    runs.into_iter().map(|(_, counts)| counts).collect()
}

/// `I  04001090,3`, ` L 1ffefffe50,8`, ` S …`, ` M …`.
fn parse(line: &str) -> Option<(usize, bool, u64, u32)> {
    let (kind, rest) = line.split_at_checked(3)?;
    let (core, is_write) = match kind {
        "I  " => (INSTRUCTIONS, false),
        " L " | " M " => (DATA, false),
        " S " => (DATA, true),
        _ => return None,
    };
    let (address, bytes) = rest.split_once(',')?;
    Some((core, is_write, u64::from_str_radix(address, 16).ok()?, bytes.trim().parse().ok()?))
}
