//! Blocks that libraries make for a program are objects of the line that called them.

use std::fs;

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
