//! Choices of what is recorded, made when the program is compiled: the whole road, from the option to the report.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct hot { long key; };
struct cold { long key; };

__attribute__((noinline)) static long hot(const struct hot *h, int n) {
  long total = 0;
  for (int i = 0; i < n; i++)
    total += h[i].key;
  return total;
}

__attribute__((noinline)) static long cold(const struct cold *c, int n) {
  long total = 0;
  for (int i = 0; i < n; i++)
    total += c[i].key;
  return total;
}

int main(void) {
  struct hot *h = calloc(1000, sizeof *h);
  struct cold *c = calloc(500, sizeof *c);
  printf("%ld\n", hot(h, 1000) + cold(c, 500));
  return 0;
}
"#;

/// Compiles the program above with these options of ours.
fn compile(folder: &Path, options: &[&str], level: &str) -> Output {
    fs::write(folder.join("prog.c"), PROGRAM).expect("a file");
    memlode()
        .env("MEMLODE_HOME", installation())
        .current_dir(folder)
        .arg("cc")
        .args(options)
        .args([level, "prog.c", "-o", "prog"])
        .output()
        .expect("memlode runs")
}

/// Records it and returns its report.
fn report(folder: &Path) -> Value {
    let record = memlode().current_dir(folder).args(["record", "--force", "-o", "t", "./prog"]).output();
    let record = record.expect("memlode runs");
    assert!(record.status.success(), "{}", stderr(&record));
    assert_eq!(stdout(&record), "0\n");
    let output = memlode().current_dir(folder).args(["report", "t", "--json", "-m", "generic"]).output();
    serde_json::from_str(&stdout(&output.expect("memlode runs"))).expect("JSON")
}

fn accesses_of(report: &Value, ty: &str) -> u64 {
    let rows = report["types"].as_array().expect("types");
    rows.iter().find(|row| row["type"] == ty).map_or(0, |row| row["accesses"].as_u64().expect("a number"))
}

#[test]
fn a_filter_leaves_out_what_it_says_and_the_report_says_so() {
    let folder = TempDir::new().expect("a temporary folder");
    let is_told = |report: &Value| report["trace"]["notes"].to_string().contains("compiled with a filter");

    assert!(compile(folder.path(), &[], "-O1").status.success());
    let whole = report(folder.path());
    assert_eq!((accesses_of(&whole, "hot"), accesses_of(&whole, "cold")), (1000, 500));
    assert!(!is_told(&whole));

    fs::write(folder.path().join("rules"), "exclude\ninclude type=hot\n").expect("a file");
    let output = compile(folder.path(), &["--filter", "rules"], "-O1");
    assert!(output.status.success(), "{}", stderr(&output));
    let part = report(folder.path());
    assert_eq!((accesses_of(&part, "hot"), accesses_of(&part, "cold")), (1000, 0));
    assert_eq!(part["total"]["accesses"], 1000);
    assert!(is_told(&part));
    assert_eq!(part["trace"]["complete"], true, "all that was to be recorded was");
    // Allocations stay, and tell where the accesses went.
    assert_eq!(part["objects"][0]["allocated_at"]["function"], "main");
}

#[test]
fn rules_and_names_that_match_nothing_are_told() {
    let folder = TempDir::new().expect("a temporary folder");
    let unmatched = |report: &Value| {
        let notes = report["trace"]["notes"].as_array().expect("notes").iter();
        notes.map(|note| note.to_string()).find(|note| note.contains("matched nothing")).unwrap_or_default()
    };
    // A rule that a later one overrules did match.
    fs::write(folder.path().join("rules"), "exclude\ninclude type=hot\ninclude type=hoot\n").expect("a file");
    fs::write(folder.path().join("pools"), "calloc 0 1 -1\npool_take -1 0 -1\n").expect("a file");
    let output = compile(folder.path(), &["--filter", "rules", "--allocators", "pools"], "-O1");
    assert!(output.status.success(), "{}", stderr(&output));
    let told = unmatched(&report(folder.path()));
    assert!(told.contains("rules:3: include type=hoot") && told.contains("pools: pool_take"), "{told}");
    assert!(
        !told.contains("rules:1") && !told.contains("rules:2") && !told.contains("pools: calloc"),
        "{told}"
    );

    fs::write(folder.path().join("rules"), "exclude\ninclude type=hot\n").expect("a file");
    assert!(compile(folder.path(), &["--filter", "rules"], "-O1").status.success());
    assert_eq!(unmatched(&report(folder.path())), "");
}

#[test]
fn a_unit_without_names_is_told_by_every_report() {
    const TOLD: &str = "compiled without -g, or with -g1";
    let folder = TempDir::new().expect("a temporary folder");
    let is_told = |report: &Value| report["trace"]["notes"].to_string().contains(TOLD);
    assert!(compile(folder.path(), &[], "-O1").status.success());
    assert!(!is_told(&report(folder.path())));
    assert!(compile(folder.path(), &["-g1"], "-O1").status.success());
    assert!(is_told(&report(folder.path())));
    for command in ["report t", "sim t", "sim t --time", "advise t", "timeline t", "alias t", "diff t t"] {
        let words = command.split(' ').chain(["-m", "generic"]);
        let output = memlode().current_dir(folder.path()).args(words).output().expect("memlode runs");
        let said = stdout(&output) + &stderr(&output);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            output.status.success() && said.contains(TOLD) && said.contains("compile it with -g"),
            "{said}"
        );
    }
}

#[test]
fn a_unit_without_names_is_told_if_the_link_joins_it_with_others() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("first.c"), "long get(long *p) { return *p; }").expect("a file");
    fs::write(
        folder.path().join("prog.c"),
        "long get(long *); int main(void) { long one = 0; return get(&one); }",
    )
    .expect("a file");
    let cc = |words: &[&str]| {
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(folder.path())
            .args(["cc", "-O1", "-flto"])
            .args(words)
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    cc(&["-c", "prog.c", "-o", "prog.o"]);
    for (option, is_told) in [("-g", false), ("-g1", true)] {
        cc(&[option, "-c", "first.c", "-o", "first.o"]);
        cc(&["prog.o", "first.o", "-o", "prog"]);
        let record =
            memlode().current_dir(folder.path()).args(["record", "--force", "-o", "t", "./prog"]).output();
        assert!(record.expect("memlode runs").status.success());
        let output =
            memlode().current_dir(folder.path()).args(["report", "t", "--json", "-m", "generic"]).output();
        let report: Value = serde_json::from_str(&stdout(&output.expect("memlode runs"))).expect("JSON");
        let notes = report["trace"]["notes"].to_string();
        assert_eq!(notes.contains("compiled without -g"), is_told, "{notes}");
    }
}

#[test]
fn values_are_recorded_where_they_are_asked_for() {
    let folder = TempDir::new().expect("a temporary folder");
    let values = || {
        report(folder.path());
        let dump = memlode().current_dir(folder.path()).args(["dump", "t"]).output().expect("memlode runs");
        let of = |line: &&str| line.contains(".key\t") && line.ends_with("\tvalue=0x0000000000000000");
        stdout(&dump).lines().filter(of).count()
    };
    assert!(compile(folder.path(), &["--values"], "-O1").status.success());
    assert_eq!(values(), 1500);
    fs::write(folder.path().join("rules"), "include kind=values type=hot\n").expect("a file");
    assert!(compile(folder.path(), &["--filter", "rules"], "-O1").status.success());
    assert_eq!(values(), 1000);
    assert!(compile(folder.path(), &[], "-O1").status.success());
    assert_eq!(values(), 0);
}

#[test]
fn a_program_without_anything_to_record_says_why() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("rules"), "exclude kind=all").expect("a file");
    assert!(compile(folder.path(), &["--filter=rules"], "-O1").status.success());
    let output = memlode().current_dir(folder.path()).args(["record", "./prog"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(
        &output,
        &["holds no accesses", "the filter", "without --filter", "`memlode run -- ./prog`"],
    );
}

#[test]
fn a_mistake_in_a_filter_ends_the_compilation() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("rules"), "exclude\nomit type=hot\n").expect("a file");
    let output = compile(folder.path(), &["--filter", "rules"], "-O1");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("rules:2: a rule begins with 'omit'"), "{}", stderr(&output));
    assert_one_sentence(
        &compile(folder.path(), &["--filter=none"], "-O1"),
        &["--filter none", "no such file"],
    );
}

#[test]
fn a_program_as_written_makes_the_accesses_of_its_source() {
    let folder = TempDir::new().expect("a temporary folder");
    let as_written = |report: &Value| report["trace"]["notes"].to_string().contains("--fidelity=source");
    // Vectors halve the accesses that run.
    assert!(compile(folder.path(), &["--fidelity=source"], "-O2").status.success());
    let written = report(folder.path());
    assert_eq!((accesses_of(&written, "hot"), accesses_of(&written, "cold")), (1000, 500));
    assert!(as_written(&written));

    assert!(compile(folder.path(), &[], "-O2").status.success());
    let optimised = report(folder.path());
    assert!(accesses_of(&optimised, "hot") < 1000);
    assert!(!as_written(&optimised));
}
