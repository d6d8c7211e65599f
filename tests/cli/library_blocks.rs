//! Blocks that libraries make for a program are objects of the line that called them.

use std::fs;
use std::process::Command;

use crate::stderr;
use crate::whatif::Folder;

/// Strings and lists that libc makes, and blocks that it makes longer.
const LIBC: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 4000 };
int main(void) {
  char **value = calloc(N, sizeof *value);
  long sum = 0;
  for (int i = 0; i < N; i++)
    if (asprintf(&value[i], "value %d", i) < 0) abort(); // <-- value
  for (int i = 0; i < N; i++) sum += value[i * 7919L % N][6];
  char *text, *line = NULL;
  size_t size, room = 0;
  FILE *file = open_memstream(&text, &size); // <-- text
  for (int i = 0; i < N; i++) fprintf(file, "%d\n", i);
  fclose(file);
  for (size_t i = 0; i < size; i++) sum += text[i];
  file = fmemopen(text, size, "r");
  while (getline(&line, &room, file) > 0) sum += line[0]; // <-- line
  struct dirent **entry;
  int count = scandir("/usr", &entry, NULL, alphasort); // <-- entry
  for (int i = 0; i < count; i++) sum += entry[i]->d_name[0];
  glob_t found;
  if (glob("/usr/*", 0, NULL, &found) == 0) // <-- found
    for (size_t i = 0; i < found.gl_pathc; i++) sum += found.gl_pathv[i][5];
  return sum == 42;
}
"#;

/// Returns the line of a program that a mark is at.
fn line(program: &str, mark: &str) -> usize {
    let at = program.lines().position(|line| line.ends_with(&format!("// <-- {mark}")));
    at.expect("a mark") + 1
}

#[test]
fn what_libc_hands_out_is_of_the_line_that_calls() {
    for linked in ["-rdynamic", "-static"] {
        let folder = Folder::new();
        fs::write(folder.0.path().join("text.c"), LIBC).expect("a file");
        folder.run(&["cc", "-O2", "-g", linked, "text.c", "-o", "text"]);
        folder.run(&["record", "-o", "trace", "--", "./text"]);
        let objects = folder.run(&["report", "trace", "-m", "./small.toml", "--by", "object"]);
        for mark in ["value", "text", "line", "entry", "found"] {
            let at = format!("text.c:{} main", line(LIBC, mark));
            assert!(objects.contains(&at), "{linked}: {at} is missing\n{objects}");
        }
        assert!(!objects.contains("unknown origin"), "{linked}\n{objects}");
    }
}

/// Code of another compiler, as a library and as an object: it makes a structure of two blocks, jumps
/// to the allocator, makes a block longer and ends one. All keep an account of what they did.
const FOREIGN: &str = r#"
#include <stdlib.h>
struct item { struct item *next; long *values; };
void taken(const void *, size_t), freed(const void *);
struct item *NAME(_new)(struct item *next) {
  struct item *made = malloc(sizeof *made);
  taken(made, sizeof *made);
  made->next = next;
  made->values = calloc(9, sizeof *made->values);
  taken(made->values, 9 * sizeof *made->values);
  return made;
}
void *NAME(_raw)(size_t bytes) { return malloc(bytes); }
void *NAME(_longer)(void *block, size_t bytes) {
  freed(block);
  block = realloc(block, bytes);
  taken(block, bytes);
  return block;
}
void NAME(_drop)(void *block) { freed(block); free(block); }
"#;

const CALLER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { struct item *next; long *values; };
struct item *lib_new(struct item *), *part_new(struct item *);
void *lib_raw(size_t), *lib_longer(void *, size_t), *part_raw(size_t), *part_longer(void *, size_t);
void lib_drop(void *), part_drop(void *);
enum { N = 500 };
__attribute__((disable_sanitizer_instrumentation)) void taken(const void *, size_t);
__attribute__((disable_sanitizer_instrumentation)) void freed(const void *);
static struct { const void *base; size_t bytes; } account[8 * N];
static int entries;
void taken(const void *base, size_t bytes) {
  account[entries].base = base;
  account[entries++].bytes = bytes;
}
void freed(const void *base) { account[entries++].base = base; }
static long sum(struct item *first) {
  long found = 0;
  for (struct item *at = first; at; at = at->next) found += at->values[3];
  return found;
}
int main(void) {
  struct item *libs = NULL, *parts = NULL;
  long found = 0;
  for (int i = 0; i < N; i++) libs = lib_new(libs); // <-- lib
  for (int i = 0; i < N; i++) parts = part_new(parts); // <-- part
  found += sum(libs) + sum(parts);
  char *own = malloc(100); // <-- own
  taken(own, 100);
  memset(own, 1, 100);
  own = lib_longer(own, 5000); // <-- longer
  for (int i = 0; i < 100; i++) found += own[i];
  char *raw = lib_raw(3000); // <-- raw
  taken(raw, 3000);
  raw[5] = 1;
  found += raw[5];
  part_drop(raw);
  lib_drop(own);
  for (int i = 0; i < entries; i++)
    printf(account[i].bytes ? "taken %p %zu\n" : "freed %p\n", account[i].base, account[i].bytes);
  return found != 101 || getenv("LD_PRELOAD") || getenv("MEMLODE_BLOCKS");
}
"#;

/// Makes the program of [`CALLER`] with the code of another compiler.
fn with_foreign_code(folder: &Folder) {
    let path = folder.0.path();
    fs::write(path.join("foreign.c"), FOREIGN).expect("a file");
    fs::write(path.join("caller.c"), CALLER).expect("a file");
    for (name, options, file) in [("lib", "-shared", "libforeign.so"), ("part", "-c", "part.o")] {
        let named = format!("-DNAME(end)={name}##end");
        let words = [&named, options, "-fPIC", "-O2", "foreign.c", "-o", file];
        let done = Command::new("gcc").args(words).current_dir(path).status().expect("gcc runs");
        assert!(done.success(), "{file}");
    }
    let words = ["cc", "-O2", "-g", "-rdynamic", "caller.c", "part.o", "-o", "caller", "-L.", "-lforeign"];
    folder.run(&[&words[..], &["-Wl,-rpath,$ORIGIN"]].concat());
}

#[test]
fn what_other_code_makes_is_recorded_once_and_of_the_line_that_calls() {
    let folder = Folder::new();
    with_foreign_code(&folder);
    let account = folder.run(&["record", "--library-blocks", "-o", "trace", "--", "./caller"]);
    let account: Vec<&str> = account.lines().collect();
    let dump = folder.run(&["dump", "trace"]);
    let recorded = dump.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let recorded = recorded.filter_map(|columns| match columns[2] {
        "alloc" => Some(format!("taken {} {}", columns[3], columns[4])),
        "free" => Some(format!("freed {}", columns[3])),
        _ => None,
    });
    // At last libc makes the buffer of what is printed.
    let recorded: Vec<String> = recorded.take(account.len()).collect();
    assert_eq!(recorded, account);
    let words = |words: &[&str]| folder.run(words).split_whitespace().collect::<Vec<_>>().join(" ");
    let objects = words(&["report", "trace", "-m", "./small.toml", "--by", "object"]);
    for mark in ["lib", "part", "own", "longer", "raw"] {
        let at = format!("caller.c:{} main", line(CALLER, mark));
        assert!(objects.contains(&at), "{mark}: {at} is missing\n{objects}");
    }
    assert!(!objects.contains("unknown origin"), "{objects}");
    let report = words(&["report", "trace", "-m", "./small.toml"]);
    assert!(!report.contains("libmemlode"), "{report}");
}

#[test]
fn what_other_code_makes_is_of_unknown_origin_until_it_is_asked_for() {
    let folder = Folder::new();
    with_foreign_code(&folder);
    folder.run(&["record", "-o", "trace", "--", "./caller"]);
    let report = folder.run(&["report", "trace", "-m", "./small.toml"]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("unknown origin; if a library made it, `memlode run --library-blocks` tells"),
        "{report}"
    );
}

#[test]
fn a_static_program_has_no_blocks_of_libraries() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("text.c"), LIBC).expect("a file");
    folder.run(&["cc", "-O2", "-g", "-static", "text.c", "-o", "text"]);
    let output = folder.try_run(&["record", "--library-blocks", "-o", "trace", "--", "./text"]);
    assert!(output.status.success());
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("blocks that libraries make have no names") && said.contains("linked statically"),
        "{said}"
    );
}
