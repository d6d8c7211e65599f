//! `memlode bench`: which program is faster, in words that the data allow.

use std::path::Path;
use std::process::Command as Process;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{assert_one_sentence, memlode, stderr, stdout};

const SEED: [&str; 4] = ["--rounds", "12", "--seed", "7"];

fn json(arguments: &[&str]) -> Value {
    let output =
        memlode().arg("bench").args(SEED).arg("--json").args(arguments).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn every_program_runs_at_the_layout_given_and_at_random_ones() {
    let result = json(&["true", "--", "sh", "-c", "exit 0"]);
    assert_eq!(result["programs"][1]["command"], "sh -c 'exit 0'");
    let runs = result["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 12 * 2 * 3);
    for program in 0..2 {
        let of = |slot: u64| {
            let wanted =
                move |run: &&Value| run["place"]["program"] == program && run["place"]["slot"] == slot;
            runs.iter().filter(wanted)
        };
        assert!(of(0).all(|run| run["place"]["layout"]["padding"] == 0));
        assert!(of(0).all(|run| run["place"]["layout"]["randomised"] == false));
        let paddings: std::collections::HashSet<u64> =
            of(1).chain(of(2)).filter_map(|run| run["place"]["layout"]["padding"].as_u64()).collect();
        assert!(paddings.len() > 12, "{paddings:?}");
        assert!(paddings.iter().all(|padding| padding % 16 == 0));
    }
    // The order within a round is not that of the programs.
    let firsts: Vec<_> = runs.chunks(6).map(|round| &round[0]["place"]["program"]).collect();
    assert!(firsts.iter().any(|program| *program != firsts[0]), "{firsts:?}");
    let again = json(&["true", "--", "sh", "-c", "exit 0"]);
    let places = |result: &Value| -> Vec<Value> {
        result["runs"].as_array().expect("a list").iter().map(|run| run["place"].clone()).collect()
    };
    assert_eq!(places(&result), places(&again), "a seed decides everything");
}

/// The program itself says where its stack is: at the layout given always at one place, else at many.
#[test]
fn the_stack_moves_as_it_is_said_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = folder.path().join("said");
    let script =
        format!("grep -F '[stack]' /proc/self/maps | cut -d- -f2 | cut -d' ' -f1 >>{}", said.display());
    let result = json(&["sh", "-c", &script]);
    let runs = result["runs"].as_array().expect("a list");
    let said = std::fs::read_to_string(said).expect("the script wrote");
    // Warm-up and pilots came first, at the layout given.
    let ends: Vec<&str> = said.lines().skip(3).collect();
    assert_eq!(ends.len(), runs.len());
    let at = |given: bool| -> std::collections::HashSet<&str> {
        let of = |(run, _): &(&Value, &&str)| (run["place"]["slot"] == 0) == given;
        runs.iter().zip(&ends).filter(of).map(|(_, end)| *end).collect()
    };
    assert!(at(false).len() > 12, "{:?}", at(false));
    let fixed = !result["notes"].to_string().contains("forbids fixed addresses");
    assert!(!fixed || at(true).len() == 1, "{:?}", at(true));
}

#[test]
fn what_takes_twice_as_long_is_found_in_every_form() {
    let work = |n: u32| format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done");
    let (short, long) = (work(3000), work(9000));
    let programs = ["sh", "-c", &short, "--", "sh", "-c", &long];
    let run = |form: &[&str]| {
        let output =
            memlode().arg("bench").args(SEED).args(form).args(programs).output().expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("12 rounds of 6 runs"), "{}", stderr(&output));
        stdout(&output)
    };
    let text = run(&["--metric", "cpu"]);
    assert!(text.contains("slower than sh -c"), "{text}");
    assert!(text.contains("code layout was not varied"), "{text}");
    assert!(text.contains("< 0.001"), "{text}");
    assert!(run(&["--markdown"]).starts_with("| "), "a table of Markdown");
    let rows = run(&["--csv"]);
    assert_eq!(rows.lines().count(), 1 + 12 * 6);
    assert!(rows.starts_with("program,round,layout,"), "{rows}");
}

#[test]
fn parameters_make_many_programs_of_one() {
    let result = json(&["-L", "word", "a,b", "-P", "n", "1", "2", "echo {word} {n}"]);
    let commands: Vec<_> =
        result["programs"].as_array().expect("a list").iter().map(|one| &one["command"]).collect();
    assert_eq!(commands, ["echo a 1", "echo a 2", "echo b 1", "echo b 2"]);
    assert_eq!(result["comparisons"].as_array().expect("a list").len(), 3);
    let output = memlode().args(["bench", "-L", "x", "1,2", "true"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["{x}"]);
}

#[test]
fn prepare_runs_before_each_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let line = format!("echo x >>{}", count.display());
    json(&["--prepare", &line, "true"]);
    let lines = std::fs::read_to_string(count).expect("it ran").lines().count();
    assert_eq!(lines, 3 + 12 * 3);
}

#[test]
fn programs_that_cannot_be_measured_are_errors() {
    let error = |arguments: &[&str], parts: &[&str]| {
        let output = memlode().arg("bench").args(arguments).output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_one_sentence(&output, parts);
    };
    error(&["false"], &["`false` exited with status 1", "--show-output"]);
    error(&["sh", "-c", "kill -9 $$"], &["was ended by signal 9"]);
    error(&["/nonexistent/program"], &["cannot run /nonexistent/program", "No such file"]);
    error(&["/"], &["cannot run /", "denied"]);
    error(&["--time-limit", "200ms", "sleep", "10"], &["had not ended after 0.2 s", "--time-limit"]);
    error(&["--time-limit", "1s", "--warmup", "0", "sleep", "0.1"], &["a claim needs 12 of them"]);
    error(&["true", "--"], &["after the last one"]);
    error(&["--input", "/nonexistent/file", "cat"], &["/nonexistent/file"]);
    error(&["--prepare", "exit 3", "true"], &["--prepare `exit 3` failed"]);
    error(&["--relink", "cc x.o", "true"], &["has no {out}"]);
    error(&["--relink", "cc x.o -o {out}", "true"], &["nothing in the link line"]);
    error(&["'true x"], &["a quote that does not end"]);
    error(&["--relink", "-", "--relink", "-", "true"], &["--relink is given 2 times for 1 programs"]);
}

#[test]
fn a_program_reads_its_input_and_nothing_else() {
    // Nothing to read is an end, not a wait.
    json(&["cat"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    std::fs::write(&file, "42\n").expect("a file");
    json(&["--input", &file.display().to_string(), "sh", "-c", "read x; test $x = 42"]);
}

/// Ctrl-C early is an error; the program that runs ends too, at once.
#[test]
fn an_interrupt_ends_the_program_too() {
    let mut memlode = Process::new(assert_cmd::cargo::cargo_bin!("memlode"))
        .args(["bench", "sleep", "1234"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("memlode runs");
    let started = Instant::now();
    let child = loop {
        let children = format!("/proc/{0}/task/{0}/children", memlode.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let is_sleep = |pid: &&str| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
        };
        if let Some(child) = children.split_whitespace().find(is_sleep) {
            break child.to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(300), "no child appears");
        std::thread::sleep(Duration::from_millis(10));
    };
    let pid = rustix::process::Pid::from_child(&memlode);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let status = memlode.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    assert!(!Path::new(&format!("/proc/{child}")).exists(), "the program goes on");
}

/// The same objects in another order: random links differ from the one given, and are cleaned up.
#[test]
fn random_layouts_are_linked() {
    let folder = tempfile::tempdir().expect("a folder");
    let compile = |name: &str, text: &str| {
        let source = folder.path().join(format!("{name}.c"));
        std::fs::write(&source, text).expect("a file");
        let object = folder.path().join(format!("{name}.o"));
        let status = Process::new("clang-22").arg("-c").args([&source]).arg("-o").arg(&object).status();
        assert!(status.expect("clang-22 runs").success());
        object.display().to_string()
    };
    let main = "#include <stdio.h>\nextern char a[], b[];\nint main(void) {\n  FILE *file = fopen(FILE_NAME, \"a\");\n  \
                fprintf(file, \"%d\\n\", a < b);\n  return fclose(file);\n}\n";
    let said = folder.path().join("said");
    let main = compile("main", &main.replace("FILE_NAME", &format!("\"{}\"", said.display())));
    let (a, b) = (compile("a", "char a[64] = {1};\n"), compile("b", "char b[64] = {1};\n"));
    let program = folder.path().join("program").display().to_string();
    let status = Process::new("clang-22").args([&main, &a, &b, "-o", &program]).status();
    assert!(status.expect("clang-22 runs").success());
    let line = format!("clang-22 {main} {a} {b} -o {{out}}");
    let result = json(&["--relink", &line, "--links", "8", &program]);
    assert!(result["varied"].as_str().expect("text").contains("the order of 3 objects"));
    let said = std::fs::read_to_string(said).expect("the program wrote");
    let runs = result["runs"].as_array().expect("a list");
    let orders: Vec<(bool, &str)> =
        runs.iter().map(|run| run["place"]["variant"] == 0).zip(said.lines().skip(3)).collect();
    assert!(orders.iter().filter(|(given, _)| *given).all(|(_, order)| *order == "1"));
    assert!(orders.iter().any(|(given, order)| !given && *order == "0"), "{orders:?}");
}
