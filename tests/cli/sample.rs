//! `memlode sample`: programs that were not rebuilt. Names and errors are tested, never times.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, executables, memlode, stderr, stdout};

fn gallery(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery").join(source)
}

/// Builds a program without anything of memlode's.
fn built(folder: &TempDir, compiler: &str, options: &[&str], source: &Path) -> PathBuf {
    let program = folder.path().join("program");
    let status = Process::new(compiler).arg("-O2").args(options).arg(source).arg("-o").arg(&program).status();
    assert!(status.expect("a compiler").success());
    program
}

/// A report has names; that they are the right ones is tested where they are made.
#[test]
fn a_report_names_the_member_the_line_and_the_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-g"], &gallery("pricing-scan/before.c"));
    let output = memlode().args(["sample", "--rate", "20000", "--"]).arg(&program).output().expect("runs");
    let text = stdout(&output).replace("\n         ", " ");
    assert!(output.status.success(), "{}", stderr(&output));
    for word in [
        "arc.state",
        "before.c:",
        "price_block",
        "Lines",
        "Functions",
        "one each 0.050 ms",
        // And what only another recording can say.
        "only every access tells",
        "memlode run -- PROGRAM",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// A program that memlode built has site tables, whose names are exact; it runs unrecorded. The program built plainly says
/// the same of its hot member by debug information alone.
#[test]
fn a_program_built_with_memlode_has_the_names_of_its_sites() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (gallery("pricing-scan/before.c"), folder.path().join("program"));
    let mut cc = memlode();
    let cc =
        cc.args(["cc", "-O2", "-g"]).arg(&source).arg("-o").arg(&program).output().expect("memlode runs");
    assert!(cc.status.success(), "{}", stderr(&cc));
    let sample = |program: &Path| {
        let kept = folder.path().join("kept");
        let mut sample = memlode();
        sample.args(["sample", "--rate", "20000", "--force", "-o"]).arg(&kept).arg("--").arg(program);
        let output = sample.output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let report = memlode().arg("report").arg(&kept).arg("--json").output().expect("runs");
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        (stdout(&output).replace("\n         ", " "), report)
    };
    let (text, report) = sample(&program);
    let coverage = |report: &Value, of: &str| report["coverage"][of]["samples"].as_u64().unwrap_or(0);
    assert!(2 * coverage(&report, "compiled") > coverage(&report, "member"), "{report:#}");
    assert!(text.contains("which are exact") && text.contains("is built with memlode"), "{text}");
    let (plain, by_debug) = sample(&built(&folder, "clang-22", &["-g"], &source));
    assert_eq!(coverage(&by_debug, "compiled"), 0, "{by_debug:#}");
    assert!(!plain.contains("which are exact"), "{plain}");
    let hot =
        |report: &Value| [&report["data"][0]["kind"], &report["data"][0]["member"]].map(Value::to_string);
    assert_eq!(hot(&report), hot(&by_debug));
}

#[test]
fn what_cannot_be_sampled_is_said_in_one_sentence() {
    let sample = |words: &[&str]| memlode().arg("sample").args(words).output().expect("memlode runs");
    let words = |output: &Output| {
        let text = stderr(output);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("memlode: error: ")).collect();
        assert!(lines.len() == 1 && output.status.code() == Some(1), "{text}");
        lines[0].to_owned()
    };
    let none = words(&sample(&["-p", "4194304"]));
    assert!(none.contains("there is no process 4194304"), "{none}");
    assert_one_sentence(&sample(&["--", "/nonexistent"]), &["cannot run /nonexistent"]);
    let short = words(&sample(&["--rate", "1", "--", "true"]));
    assert!(short.contains("`true` ended before it had taken 1000.000 ms"), "{short}");
    // Here, or where there are counters, the way is taken, or told why not with what comes next.
    let memory = sample(&["--by", "memory", "--", "true"]);
    let said = stderr(&memory);
    assert!(said.contains("Next: ") || said.contains("ended before") || memory.status.success(), "{said}");
    for bad in [&["--rate", "0", "--", "true"][..], &[], &["-p", "1", "--", "true"], &["-p", "x"]] {
        assert_eq!(sample(bad).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn a_program_without_debug_information_has_functions_and_a_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &[], &gallery("pricing-scan/before.c"));
    let output = memlode().args(["sample", "--rate", "20000", "--"]).arg(&program).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("price_block") && text.contains("no debug information"), "{text}");
    assert!(text.contains("code without debug information"), "{text}");
    assert!(!text.contains("arc.state"), "{text}");
}

/// Without symbols there are no names; the file is named, and how to get them.
#[test]
fn a_stripped_program_is_said_to_have_no_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-s"], &gallery("pricing-scan/before.c"));
    let output = memlode().args(["sample", "--rate", "20000", "--"]).arg(&program).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("no debug information") && text.contains("/program"), "{text}");
    assert!(!text.contains("price_block"), "{text}");
}

/// A loop that is written into memory, as a just-in-time compiler does: load, count down, jump.
const MADE: &str = r#"
#include <string.h>
#include <sys/mman.h>
int main(void) {
  const unsigned char code[] = {0x48, 0x8b, 0x07, 0x48, 0xff, 0xce, 0x75, 0xf8, 0xc3};
  void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(made, code, sizeof code);
  long one = 1;
  return ((long (*)(long *, long))made)(&one, 300000000) != 1;
}
"#;

#[test]
fn code_that_is_made_as_a_program_runs_is_said_to_be_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("made.c");
    fs::write(&source, MADE).expect("a file");
    let program = built(&folder, "gcc", &["-g"], &source);
    let output = memlode().args(["sample", "--rate", "5000", "--"]).arg(&program).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "is in //anon: code that was made while the program ran, so no file has its names";
    assert!(text.contains(note), "{text}");
    assert!(!text.contains("cannot read"), "{text}");
}

/// Both of a program's processes are sampled, and so is the one that it becomes.
#[test]
fn programs_that_fork_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-g"], &gallery("pricing-scan/before.c"));
    let mut sample = memlode();
    sample.args([
        "sample",
        "--rate",
        "20000",
        "--json",
        "--",
        "sh",
        "-c",
        "\"$0\" & \"$0\" & wait; exec \"$0\"",
    ]);
    let output = sample.arg(&program).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert!(report["threads"].as_u64() >= Some(3), "{report:#}");
    let first = report["functions"][0]["function"].as_str().expect("a function");
    assert_eq!(first, "price_block", "{report:#}");
}

/// Tests that callers are right stand where these are found.
#[test]
fn stacks_are_copied_where_a_program_keeps_no_frame_pointers() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = gallery("pricing-scan/before.c");
    let said = |how: &[&str], option: &str| {
        let program = built(&folder, "gcc", &["-g", option], &source);
        let mut sample = memlode();
        sample.arg("sample").args(how).arg("--").arg(&program);
        let output = sample.output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let is_copied = stderr(&output).contains("keeps no frame pointers: callers by unwind tables");
        assert!(!is_copied || stdout(&output).contains("called by main"), "{}", stdout(&output));
        is_copied
    };
    assert!(said(&[], "-fomit-frame-pointer"));
    assert!(!said(&[], "-fno-omit-frame-pointer"));
    assert!(!said(&["--rate", "5000"], "-fomit-frame-pointer"), "a ring would be full");
    assert!(!said(&["--call-graph", "dwarf,1K"], "-fomit-frame-pointer"), "it was chosen");
    for bad in ["dwarf,33K", "dwarf,100", "fp,2K", "lbr", ""] {
        let output = memlode().args(["sample", "--call-graph", bad, "--", "true"]).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}

/// A program with frame pointers spends its time in a library without any.
#[test]
fn callers_that_frame_pointers_do_not_lead_to_are_said_to_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("work.c"), "long work(long n) { volatile long sum = 0; while (n--) sum += n; return sum; }")
        .expect("written");
    fs::write(at("main.c"), "long work(long); int main(void) { return work(200000000) == 1; }")
        .expect("written");
    for (option, is_missing) in [("-fomit-frame-pointer", true), ("-fno-omit-frame-pointer", false)] {
        let compile = |words: &[&str]| {
            let mut gcc = Process::new("gcc");
            gcc.current_dir(folder.path()).args(["-g", "-O1"]).args(words);
            assert!(gcc.status().expect("gcc runs").success());
        };
        compile(&[option, "-shared", "-fPIC", "work.c", "-o", "libwork.so"]);
        compile(&["-fno-omit-frame-pointer", "main.c", "./libwork.so", "-o", "main"]);
        let said = |how: &str| {
            let mut sample = memlode();
            sample.current_dir(folder.path()).args(["sample", "--call-graph", how, "--", "./main"]);
            let output = sample.output().expect("runs");
            assert!(output.status.success(), "{}", stderr(&output));
            let note = "of the samples are in functions that keep no frame pointer, most of them in ";
            stderr(&output).contains(note) && stderr(&output).contains("libwork.so: ")
        };
        assert_eq!(said("auto"), is_missing, "{option}");
        assert!(!said("dwarf"), "{option}");
    }
}

/// A process that runs until the end of a test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn anothers_process_is_said_to_be_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_root = rustix::process::geteuid().is_root();
    // Root may sample anybody: so nobody tries, with a copy that nobody may run.
    let copy = folder.path().join("memlode");
    let mut command = memlode();
    if is_root {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
        executables::copy(memlode().get_program(), &copy);
        command = assert_cmd::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    }
    let output = command.args(["sample", "-p", "1"]).output().expect("setpriv of util-linux");
    let said = stderr(&output);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("memlode: error: ")).collect();
    assert!(errors.len() == 1 && output.status.code() == Some(1), "{said}");
    // Where the kernel lets nobody sample, that is what is said.
    let is_said =
        errors[0].contains("process 1 belongs to user 0") || errors[0].contains("does not let this user");
    assert!(is_said, "{said}");
}

/// A process whose files lie in a mount namespace of its own, as in a container, has the names that these have.
#[test]
fn a_process_in_a_container_has_the_names_of_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    built(&folder, "gcc", &["-g"], &gallery("pricing-scan/before.c"));
    let script = "mount --bind \"$0\" /mnt && echo mounted && while :; do /mnt/program >/dev/null; done";
    let mut shell = Process::new("unshare");
    shell.args(["-rm", "sh", "-c", script]).arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = Running(shell.spawn().expect("unshare of util-linux"));
    let mut line = String::new();
    BufReader::new(shell.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
    // In containers that may have none of their own there is nothing to look at.
    if line.is_empty() {
        return;
    }
    let pid = shell.0.id().to_string();
    let mut sample = memlode();
    sample.args(["sample", "--rate", "10000", "--json", "--duration", "2s", "-p", &pid]);
    let output = sample.output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let images = report["images"].as_array().expect("images");
    let own = images.iter().find(|image| image["path"] == "/mnt/program").expect("the program");
    assert!(own["unread"].is_null() && own["has_debug"] == true, "{own:#}");
    assert_eq!(report["data"][0]["member"], "state", "{report:#}");
}

/// Each instruction has the samples that were taken there, as the table of all samples has them, and lines and functions
/// have the sums of these.
#[test]
fn lines_and_instructions_have_their_own_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    // Sources below the directory that a compiler works in are shown.
    for file in ["before.c", "network.h"] {
        std::fs::copy(gallery("pricing-scan").join(file), folder.path().join(file)).expect("room");
    }
    let program = folder.path().join("program");
    let mut gcc = Process::new("gcc");
    gcc.args(["-O2", "-g", "before.c", "-o", "program"]).current_dir(folder.path());
    assert!(gcc.status().expect("gcc").success());
    let kept = folder.path().join("kept");
    let mut sample = memlode();
    sample.args(["sample", "--rate", "20000", "-o"]).arg(&kept).arg("--").arg(&program);
    assert!(sample.output().expect("runs").status.success());
    let table = folder.path().join("samples.csv");
    let mut export = memlode();
    export.arg("export").arg(&kept).arg("--to").arg(&table);
    assert!(export.output().expect("runs").status.success());
    let rows = std::fs::read_to_string(&table).expect("a table");
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("names");
    let column =
        |name| names.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    let (line, function) = (column("line"), column("function"));
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    for row in rows.filter(|row| row[function] == "price_block" && !row[line].is_empty()) {
        *expected.entry(row[line].parse().expect("a line")).or_default() += 1;
    }
    let annotate = |words: &[&str]| memlode().arg("annotate").arg(&kept).args(words).output().expect("runs");
    let output = annotate(&["--function", "price_block", "--asm", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let listing: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(listing["format"], "memlode sample listing");
    let samples = |of: &Value| of["samples"]["time"]["samples"].as_u64().unwrap_or(0);
    let part = &listing["parts"][0];
    let lines = part["lines"].as_array().expect("lines");
    assert_eq!(lines.iter().map(samples).sum::<u64>(), samples(part));
    let found: BTreeMap<u64, u64> = lines
        .iter()
        .filter(|line| samples(line) > 0)
        .filter_map(|line| Some((line["line"].as_u64()?, samples(line))))
        .collect();
    assert_eq!(found, expected);
    for line in lines {
        let instructions = line["instructions"].as_array().expect("instructions");
        assert_eq!(instructions.iter().map(samples).sum::<u64>(), samples(line), "{line:#}");
    }
    let text = stdout(&annotate(&["--asm"]));
    for word in ["price_block", "% of the time", "// <-- hot", "share", "samples", "arc.state", "mov "] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_one_sentence(
        &annotate(&["--function", "nowhere"]),
        &["no sample is in a function nowhere", "price_block"],
    );
    assert_one_sentence(&annotate(&["--events", "misses"]), &["samples have no misses: there are share"]);
    assert_one_sentence(&annotate(&["--machine", "zen4"]), &["leave out --machine"]);
}

/// The status is the program's, and its output stays its own.
#[test]
fn the_programs_status_and_output_are_its_own() {
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo out; exit 7";
    let output = memlode().args(["sample", "--json", "--", "sh", "-c", script]).output().expect("runs");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).lines().any(|line| line == "out"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert!(report["samples"].as_u64() > Some(10), "{report:#}");
}
