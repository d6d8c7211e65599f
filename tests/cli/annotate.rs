//! Source lines with what their accesses did: counted by hand for a small program, and held against the report's rows.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::reported::Reported;
use crate::{installation, memlode, stderr, stdout};

/// `read_all` reads a line of its own for each item, four times; more than the caches but the last hold.
const PROGRAM: &str = "\
#include <stdio.h>
#include <stdlib.h>
struct item { long key; char payload[120]; };
static volatile long total;
__attribute__((noinline)) static void fill(struct item *items, long n) {
  for (long i = 0; i < n; i++)
    items[i].key = i;
}
__attribute__((noinline)) static long read_all(const struct item *items, long n, long round) {
  long sum = 0;
  for (long i = 0; i < n; i++)
    sum += items[i].key ^ round; // \x1b[31mred
  return sum;
}
int main(void) {
  enum { ITEMS = 50000 };
  struct item *items = malloc(ITEMS * sizeof *items);
  fill(items, ITEMS);
  for (long round = 0; round < 4; round++)
    total += read_all(items, ITEMS, round);
  printf(\"%ld\\n\", total);
  free(items);
}
";

fn program() -> &'static Reported {
    static PROGRAM_OF_ALL: OnceLock<Reported> = OnceLock::new();
    PROGRAM_OF_ALL.get_or_init(|| Reported::new(PROGRAM))
}

/// Prints a listing with answers that are kept, so that causes are found.
fn annotate(words: &[&str]) -> Output {
    let mut command = memlode();
    command.env("MEMLODE_HOME", installation()).env("MEMLODE_RESULTS", "on").env("COLUMNS", "120");
    command.current_dir(program().path()).args(["annotate", "-m", "generic"]).args(words);
    command.output().expect("memlode runs")
}

fn listing(words: &[&str]) -> Value {
    let output = annotate(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The lines of all parts by number, without those that have no accesses.
fn by_line(listing: &Value) -> BTreeMap<u64, Value> {
    let parts = listing["parts"].as_array().expect("parts").iter();
    let lines = parts.flat_map(|part| part["lines"].as_array().expect("lines"));
    let accessed = lines.filter(|line| !line["numbers"].is_null());
    accessed.map(|line| (line["line"].as_u64().unwrap_or(0), line.clone())).collect()
}

#[test]
fn lines_have_the_accesses_that_are_counted_by_hand() {
    let lines = by_line(&listing(&["a trace", "program.c"]));
    let counts = |line: u64, what: &str| lines[&line]["numbers"][what].as_u64().expect("a number");
    // Stores of `fill`, loads of `read_all`, and those of the volatile variable.
    for (line, reads, writes) in [(7, 0, 50_000), (12, 200_000, 0), (20, 4, 4), (21, 1, 0)] {
        assert_eq!((counts(line, "reads"), counts(line, "writes")), (reads, writes), "line {line}");
    }
    assert_eq!(lines.keys().copied().collect::<Vec<_>>(), [7, 12, 20, 21]);
    // Each read is the first of its line since all the others were read.
    let misses = &lines[&12]["numbers"]["misses"];
    assert_eq!((&misses["L1d"], &misses["L2"]), (&200_000.into(), &200_000.into()));
    assert_eq!(lines[&12]["data"][0]["member"], "key");
    assert_eq!(lines[&12]["text"], "    sum += items[i].key ^ round; // \x1b[31mred");

    let text =
        stdout(&annotate(&["a trace", "program.c:12", "--events", "accesses,L1d,data", "--context", "1"]));
    let row = text.lines().find(|line| line.contains("sum +=")).expect("the line");
    assert_eq!(
        row.trim_start(),
        "200 k  200 k  item.key │12    sum += items[i].key ^ round; // \\u{1b}[31mred"
    );
    assert!(text.contains("│13") && !text.contains("│10") && !text.contains("│20"), "{text}");
}

#[test]
fn sums_of_lines_are_the_reports() {
    let report: Value = serde_json::from_str(&program().report(&["--json"])).expect("JSON");
    let rows = report["lines"].as_array().expect("rows");
    let all = |rows: &[&Value], of: &dyn Fn(&Value) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
    let sums: [&dyn Fn(&Value) -> f64; 4] = [
        &|row| row["accesses"].as_f64().expect("a number"),
        &|row| row["misses"]["L1d"].as_f64().expect("a number"),
        &|row| row["stall_cycles"].as_f64().expect("a number"),
        &|row| row["wait"]["cycles"].as_f64().expect("a number"),
    ];
    for (words, column, value) in [
        (&["a trace", "program.c"][..], "file", None),
        (&["a trace", "--function", "fill"], "function", Some("fill")),
        (&["a trace", "--function", "main"], "function", Some("main")),
    ] {
        let listing = listing(words);
        let of_report: Vec<&Value> =
            rows.iter().filter(|row| value.is_none_or(|value| row[column] == value)).collect();
        let part = &listing["parts"][0]["numbers"];
        let lines = by_line(&listing);
        assert!(!of_report.is_empty(), "{words:?}");
        let lines: Vec<&Value> = lines.values().map(|line| &line["numbers"]).collect();
        for of in sums {
            let expected = all(&of_report, of);
            assert!((of(part) - expected).abs() < 0.5, "{words:?}: {part} is not {expected}");
            assert!((all(&lines, of) - expected).abs() < 0.5, "{words:?}");
        }
    }
}

#[test]
fn causes_are_those_that_sim_found() {
    let before = annotate(&["a trace", "--function", "read_all"]);
    // Another test of the same trace may have asked already.
    assert!(stdout(&before).contains("read_all"), "{}", stderr(&before));
    let mut sim = memlode();
    sim.env("MEMLODE_RESULTS", "on").current_dir(program().path()).args(["sim", "a trace", "-m", "generic"]);
    assert!(sim.output().expect("memlode runs").status.success());
    let lines = by_line(&listing(&["a trace", "--function", "read_all"]));
    let level = &lines[&12]["causes"][0];
    let count = |what: &str| level[what].as_u64().expect("a number");
    assert_eq!(count("cold") + count("capacity") + count("conflict"), 200_000);
    // Of each line of 64 bytes one key of 8 is read.
    assert_eq!(count("unused_bytes"), count("fetched_bytes") / 64 * 56);
    let text = stdout(&annotate(&["a trace", "--function", "read_all"]));
    let row = text.lines().find(|line| line.contains("sum +=")).expect("the line");
    assert!(row.contains("MiB 88%") && row.contains("L2 c"), "{text}");
}

#[test]
fn hot_functions_come_without_a_question_and_what_is_not_there_is_told() {
    let text = stdout(&annotate(&["a trace"]));
    let heads: Vec<&str> = text.lines().filter(|line| line.contains("of the modelled cycles, ")).collect();
    assert!(heads[0].starts_with("read_all ") && heads[1].starts_with("fill "), "{text}");
    assert!(text.contains("not shown one function that has less than 1%"), "{text}");
    for (words, parts) in [
        (&["a trace", "program.c:13"][..], &["nothing is accessed at line 13 of program.c", "12, 7"][..]),
        (&["a trace", "other.c"], &["nothing is accessed in a file other.c", "program.c"]),
        (&["a trace", "--function", "free"], &["nothing is accessed in a function free", "read_all"]),
        (&["a trace", "--events", "L9"], &["no event is called L9", "L1d, L2"]),
        (&["a trace", "program.c", "--function", "fill"], &["two questions"]),
    ] {
        let output = annotate(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let text = stderr(&output);
        let mut errors = text.lines().filter(|line| !line.starts_with("memlode: computed "));
        let error = errors.next().expect("an error");
        assert!(error.starts_with("memlode: error: ") && errors.next().is_none(), "{text}");
        parts.iter().for_each(|part| assert!(error.contains(part), "`{part}` is not in: {error}"));
    }
}

/// The instructions are those that LLVM's disassembler prints at these addresses, and their counts
/// are those worked out by hand. The recording side has the same accesses, and none of it is shown.
#[test]
fn instructions_stand_beneath_their_lines() {
    let path = program().path();
    for native in [false, true] {
        let mut plain = Command::new("clang-22");
        plain.current_dir(path).args(["-O1", "-g", "program.c", "-o", "plain"]);
        assert!(plain.status().expect("clang-22 runs").success());
        let binary = if native { "plain" } else { "program" };
        let words: &[&str] = if native { &["--native", "plain"] } else { &[] };
        let words = [&["a trace", "program.c", "--asm"], words].concat();
        let listing = listing(&words);
        let lines = by_line(&listing);
        let disassembled = Command::new("llvm-objdump-22")
            .args(["-d", "--no-show-raw-insn", "--no-leading-headers", "--x86-asm-syntax=intel", binary])
            .current_dir(path)
            .output();
        let disassembled = stdout(&disassembled.expect("llvm-objdump-22 runs"));
        let real: BTreeMap<u64, &str> = disassembled.lines().filter_map(instruction).collect();
        for (line, of_line) in &lines {
            let all = of_line["instructions"].as_array().expect("instructions");
            let exact: Vec<&Value> = all.iter().filter(|one| one["counted"] == "exact").collect();
            let count = |numbers: &Value| numbers["accesses"].as_u64().expect("a number");
            let sum: u64 = exact.iter().map(|one| count(&one["numbers"])).sum();
            assert!(sum <= count(&of_line["numbers"]), "native {native}, line {line}: {all:#?}");
            // One store; and in a plain build a sum in memory that one instruction reads and writes.
            if *line == 7 || native && *line == 20 {
                assert_eq!((exact.len(), sum), (1, count(&of_line["numbers"])), "{native} {line}: {all:#?}");
            }
            for one in all {
                let text = one["text"].as_str().expect("text");
                let address = one["address"].as_u64().expect("an address");
                let mnemonic = text.split_whitespace().next();
                assert_eq!(mnemonic, real.get(&address).copied(), "{address:x} {text}");
            }
        }
        let version = listing["parts"][0]["code"][0]["version"].as_str();
        assert_eq!(version, Some(if native { "plain" } else { "dormant" }));
        let text = stdout(&annotate(&words));
        assert!(text.contains("instructions: of ") && text.contains("[rdi"), "{text}");
    }
}

/// `  1f3c:       mov rdx, qword ptr fs:[r8]`: the address and the first word.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, text) = line.split_once(':')?;
    Some((u64::from_str_radix(address.trim(), 16).ok()?, text.split_whitespace().next()?))
}
