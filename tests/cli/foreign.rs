//! Code of a program that another compiler made: the link and the report name it, and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Sums a table by functions of five other objects; `shared` is in two of them.
const MAIN: &str = r#"
#include <cstdio>
#include "shared.h"
extern "C" long grind(long *, long), archived(long *), assembled(long *);
long elsewhere(long *);
long table[64];
int main() {
  for (int i = 0; i < 64; i++)
    table[i] += i;
  long sum = shared(table) + grind(table, 64) + archived(table) + assembled(table) + elsewhere(table);
  std::printf("%ld\n", sum);
}
"#;
const SHARED: &str = "__attribute__((noinline)) inline long shared(long *p) { return ++p[3]; }\n";
const ELSEWHERE: &str = "#include \"shared.h\"\nlong elsewhere(long *p) { return shared(p) + 1; }\n";
const GRIND: &str = "static __attribute__((noinline)) long step(long n) { return n * 7 % 31; }\n\
    long grind(long *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += p[i] += step(i); return s; }\n";
/// Uses much of the system's libraries.
const STATIC: &str = r#"
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
extern "C" long grind(long *, long), archived(long *);
int main(int argc, char **) {
  long t[8] = {1};
  std::map<std::string, long> found;
  std::thread thread([&] { found[std::to_string(t[0])] = grind(t, 8); });
  thread.join();
  try {
    if (found.size() == 1) throw std::runtime_error("one");
  } catch (const std::exception &e) {
    std::cout << e.what() << ' ' << std::sin(argc) + std::pow(argc, 0.3) << ' ' << archived(t) << '\n';
  }
  return 0;
}
"#;
const ARCHIVED: &str = "long archived(long *p) { return p[5]++; }\nlong not_linked(long *p) { return *p; }\n";
const ASSEMBLED: &str = ".globl assembled\n.type assembled,@function\nassembled:\n xorl %eax, %eax\n ret\n\
    .size assembled, .-assembled\n.section .note.GNU-stack,\"\",@progbits\n";

/// A folder to build in.
struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Folder {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        Folder(folder)
    }

    /// Runs memlode; returns its standard output and standard error.
    fn memlode(&self, words: &[&str]) -> (String, String) {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "200").current_dir(self.0.path());
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        (stdout(&output), stderr(&output))
    }

    /// Runs another program.
    fn run(&self, line: &str) {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().expect("a program"));
        assert!(command.args(words).current_dir(self.path()).status().expect("it runs").success(), "{line}");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the notes on code of other compilers in the report on a recorded run.
    fn notes(&self, program: &str) -> Vec<Value> {
        self.memlode(&["record", "--force", "-o", "trace", "--", program]);
        let (report, _) = self.memlode(&["report", "trace", "-m", "generic", "--json"]);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let notes = report["trace"]["notes"].as_array().expect("notes");
        notes.iter().filter(|note| note["id"] == "foreign").cloned().collect()
    }
}

fn names(note: &Value) -> Vec<&str> {
    note["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect()
}

/// Objects and an archive of another compiler, assembly, and the copy of an inline function that the linker takes.
#[test]
#[cfg(target_arch = "x86_64")]
fn functions_of_other_compilers_are_named_with_their_bytes() {
    let folder = Folder::with(&[
        ("main.cpp", MAIN),
        ("shared.h", SHARED),
        ("elsewhere.cpp", ELSEWHERE),
        ("grind.c", GRIND),
        ("archived.c", ARCHIVED),
        ("assembled.S", ASSEMBLED),
    ]);
    folder.run("g++ -O2 -c elsewhere.cpp");
    folder.run("cc -O2 -c grind.c");
    folder.run("cc -O2 -ffunction-sections -c archived.c");
    folder.run("ar rc libarchived.a archived.o");
    folder.memlode(&["cc", "-c", "assembled.S"]);
    let link = |inputs: &[&str]| -> String {
        let given = ["c++", "-O2", "-Wl,--gc-sections"];
        let rest = ["grind.o", "assembled.o", "-L.", "-larchived", "-o", "program"];
        folder.memlode(&[&given[..], inputs, &rest].concat()).1
    };
    // The first copy is taken: of `shared`, theirs.
    let said = link(&["elsewhere.o", "main.cpp"]);
    let note = &folder.notes("./program")[..];
    let [note] = note else { panic!("{note:?}") };
    let mut found = names(note);
    let all = u64::try_from(found.len()).expect("few") + 1;
    assert_eq!(note["functions"], all, "five are named: {note}");
    assert_eq!(said, format!("memlode: note: {}\n", note["text"].as_str().expect("a sentence")));
    found.sort_unstable();
    let (grind, shorter) = ("grind", ["archived", "assembled", "elsewhere", "shared", "step"]);
    assert!(found.contains(&grind) && found.iter().all(|name| *name == grind || shorter.contains(name)));

    // nm says how long they are.
    let sizes =
        Command::new("nm").args(["-S", "program"]).current_dir(folder.path()).output().expect("nm runs");
    let theirs = ["grind", "step", "archived", "assembled", "_Z9elsewherePl", "_Z6sharedPl"];
    let sizes = String::from_utf8_lossy(&sizes.stdout).into_owned();
    let length = |line: &str| -> Option<u64> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_theirs = words.len() == 4 && theirs.contains(&words[3]);
        is_theirs.then(|| u64::from_str_radix(words[1], 16).expect("a length"))
    };
    assert_eq!(note["bytes"], sizes.lines().filter_map(length).sum::<u64>(), "{note}: {sizes}");

    // Ours; and then `elsewhere` calls it, and only its own code is not recorded.
    link(&["main.cpp", "elsewhere.o"]);
    let note = &folder.notes("./program")[0];
    assert!(note["functions"] == all - 1 && !names(note).contains(&"shared"), "{note}");
}

/// A library has a note of its own, and a program that calls it none.
#[test]
fn a_library_is_told_by_its_own_name() {
    let folder = Folder::with(&[
        ("grind.c", GRIND),
        ("own.c", "long grind(long *, long); long own(long *p) { return grind(p, 8); }"),
        ("main.c", "long own(long *); int main(void) { long t[8] = {1}; return own(t) == 0; }"),
    ]);
    folder.run("cc -O2 -fPIC -c grind.c");
    let (_, said) = folder.memlode(&["cc", "-O2", "-fPIC", "-shared", "own.c", "grind.o", "-o", "libown.so"]);
    assert!(said.contains("in libown.so") && said.contains("grind"), "{said}");
    let (_, said) =
        folder.memlode(&["cc", "-O2", "main.c", "-L.", "-lown", "-Wl,-rpath,$ORIGIN", "-o", "program"]);
    assert_eq!(said, "");
    let notes = folder.notes("./program");
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0]["file"].as_str().expect("a file").ends_with("/libown.so"), "{notes:?}");
}

/// Code that memlode compiled, in every way, is not reported as foreign; nor is code that every
/// program has.
#[test]
fn nothing_is_said_of_ones_own_code() {
    const PROGRAM: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
struct Named { std::string name; long count = 0; Named(const char *n) : name(n) {} virtual ~Named() {} };
static Named first("first");
__attribute__((cold, noinline)) static void refuse(long n) { throw std::runtime_error(std::to_string(n)); }
__attribute__((noinline)) static long check(std::vector<Named> &all, long n) {
  if (n > 5) refuse(n);
  return all[n].count++ + all[n].name.size();
}
int main() {
  std::vector<Named> all(3, first);
  long sum = 0;
  try { for (long i = 0; i < 9; i++) sum += check(all, i % 3 + (i == 8) * 6); } catch (const std::exception &e) { sum += e.what()[0]; }
  std::printf("%ld\n", sum);
}
"#;
    let folder = Folder::with(&[("program.cpp", PROGRAM)]);
    for options in [
        &["-O0"][..],
        &["-O2"],
        &["-O3", "-flto", "-ffunction-sections", "-Wl,--gc-sections"],
        &["-O2", "-flto=thin"],
        &["-O2", "-fsplit-machine-functions", "-fno-plt", "-fPIE", "-pie"],
        &["-Os", "-mllvm", "-enable-machine-outliner"],
        &["-O1", "-fsanitize=undefined"],
        &["-O1", "-fsanitize=address"],
        &["-O1", "-static"],
        &["-O2", "-s"],
        &["-O2", "-ffast-math", "-static-libgcc"],
    ] {
        let (_, said) = folder.memlode(&[&["c++", "program.cpp", "-o", "program"], options].concat());
        assert_eq!(said, "", "{options:?}");
    }
    folder.memlode(&["c++", "-O2", "program.cpp", "-o", "program"]);
    assert_eq!(folder.notes("./program"), [] as [Value; 0]);
    folder.memlode(&["c++", "--fidelity=source", "-O2", "program.cpp", "-o", "program"]);
    assert_eq!(folder.notes("./program"), [] as [Value; 0]);
}

/// In a statically linked program the system's libraries are known by their archives. The user's code
/// is named, be it an object, an archive or a library of others.
#[test]
fn a_static_program_names_what_is_not_the_systems() {
    let folder = Folder::with(&[("grind.c", GRIND), ("archived.c", ARCHIVED), ("main.cpp", STATIC)]);
    folder.run("cc -O2 -c grind.c");
    folder.run("cc -O2 -c archived.c");
    folder.run("ar rc libarchived.a archived.o");
    for options in [&["-static"][..], &["-static-pie"], &["-static", "-O0"]] {
        let inputs = ["main.cpp", "grind.o", "-L.", "-larchived", "-lm", "-o", "program"];
        let (_, said) = folder.memlode(&[&["c++", "-O2"], options, &inputs].concat());
        let notes = folder.notes("./program");
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert_eq!(said, format!("memlode: note: {}\n", note["text"].as_str().expect("a sentence")));
        let mut found = names(note);
        found.sort_unstable();
        assert_eq!(found, ["archived", "grind", "not_linked", "step"], "{options:?} {note}");
        assert!(note["has_libraries"] == false && note["functions"] == 4, "{note}");
    }
}

/// libgcc's objects name no source file, and lld's symbol tables then do not say whose their local functions are.
#[test]
#[cfg(target_arch = "x86_64")]
fn libgccs_own_functions_are_not_told_whichever_linker_is_used() {
    let main = "int main(void) { __builtin_cpu_init(); return !__builtin_cpu_supports(\"sse2\"); }\n";
    let folder = Folder::with(&[("main.c", main)]);
    for option in ["-O2", "-flto", "-flto=thin"] {
        let (_, said) = folder.memlode(&["cc", option, "main.c", "-o", "program"]);
        let symbols = Command::new("nm").arg("program").current_dir(folder.path()).output().expect("nm runs");
        let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
        assert!(symbols.contains(" t get_available_features"), "the test is of these: {symbols}");
        assert_eq!(said, "", "{option}");
    }
}
