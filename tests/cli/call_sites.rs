//! Objects by the lines that called for them: each program knows its own call paths, and says them by the sizes of what
//! it allocates.

use std::fmt::Write;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Sizes are this and a remainder.
const LEAST: u64 = 16;
const MODULUS: u64 = 65_521;

/// A path's number behind a call at a line.
fn behind(path: u64, line: u64) -> u64 {
    (path * 31 + line) % MODULUS
}

/// Numbers from a seed (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// Functions that call later ones, directly or through a table, one after the other and under
/// conditions, and allocate in between. A call passes its path on; nothing is stored on the way.
fn program(seed: u64) -> String {
    const FUNCTIONS: u64 = 7;
    let mut numbers = Numbers(seed);
    let mut text = String::from(
        "#include <stdio.h>\n\
         #include <stdlib.h>\n\
         typedef void function(unsigned long path, unsigned long bits);\n\
         static function f0, f1, f2, f3, f4, f5, f6;\n\
         static function *const volatile table[] = {f0, f1, f2, f3, f4, f5, f6};\n\
         static void keep(volatile char *block) { *block = 1; free((void *)block); }\n",
    );
    let _ = writeln!(text, "#define NEXT ((path * 31 + __LINE__) % {MODULUS})");
    for function in (0..FUNCTIONS).rev() {
        let _ = writeln!(
            text,
            "__attribute__((noinline)) static void f{function}(unsigned long path, unsigned long bits) {{"
        );
        for _ in 0..3 + numbers.below(4) {
            if numbers.below(3) == 0 {
                let _ = write!(text, "  if (bits & {})", 1u64 << numbers.below(6));
            }
            let callee = function + 1 + numbers.below(FUNCTIONS);
            let _ = match (callee < FUNCTIONS, numbers.below(4)) {
                (true, 0) => writeln!(text, "  table[{callee}](NEXT, bits >> 1);"),
                (true, _) => writeln!(text, "  f{callee}(NEXT, bits >> 1);"),
                (false, 0) => writeln!(text, "  putchar(46);"),
                (false, _) => writeln!(text, "  keep(malloc({LEAST} + NEXT));"),
            };
        }
        text.push_str("}\n");
    }
    text.push_str(
        "int main(void) {\n  unsigned long path = 0;\n  for (unsigned long bits = 0; bits < 400; bits++) {\n    \
         f0(NEXT, bits);\n    f1(NEXT, bits);\n    f0(NEXT, ~bits);\n    table[1](NEXT, bits);\n  }\n}\n",
    );
    text
}

/// The sizes of blocks that an object's lines stand for, and that it has.
fn sizes(object: &Value) -> (u64, u64) {
    let line = |position: &Value| position["line"].as_u64().unwrap_or_else(|| panic!("no line: {object}"));
    let callers = object["called_at"].as_array().expect("lines of calls");
    let mut path = 0;
    for (at, call) in callers.iter().enumerate().rev() {
        let lines = call.as_array().expect("lines of a call");
        if at > 0 {
            assert_eq!(lines.len(), 1, "one line of each caller: {object}");
            path = behind(path, line(&lines[0]));
        }
    }
    let [bytes, count] = ["bytes", "count"].map(|key| object[key].as_u64().expect("a number"));
    assert_eq!(bytes % count, 0, "blocks of one size: {object}");
    (LEAST + behind(path, line(&object["allocated_at"])), bytes / count)
}

#[test]
fn each_object_is_of_the_lines_that_called_for_it() {
    let mut objects = 0;
    for (seed, level) in [(1, "-O2"), (2, "-O2"), (3, "-O1"), (4, "-O0")] {
        let directory = TempDir::new().expect("a temporary folder");
        fs::write(directory.path().join("program.c"), program(seed)).expect("a file");
        let run = |words: &[&str]| {
            let mut command = memlode();
            command.env("MEMLODE_HOME", installation()).current_dir(directory.path());
            let output = command.args(words).output().expect("memlode runs");
            assert!(output.status.success(), "{words:?}: {}", stderr(&output));
            stdout(&output)
        };
        let options = ["-fno-optimize-sibling-calls", "-g", "program.c", "-o", "program"];
        run(&[&["cc", level], &options[..]].concat());
        run(&["record", "-o", "trace", "--", "./program"]);
        let report: Value =
            serde_json::from_str(&run(&["report", "trace", "-m", "generic", "--json"])).expect("JSON");
        for object in report["objects"].as_array().expect("objects") {
            if object["kind"] == "heap" {
                let (expected, found) = sizes(object);
                assert_eq!(found, expected, "seed {seed}, {level}: {object}\n{}", program(seed));
                objects += 1;
            }
        }
    }
    assert!(objects > 200, "{objects} objects are too few");
}
