//! `memlode whatif` and `advise` of edits that gain less than placements differ by, and late in the
//! run.

use std::fs;

use serde_json::Value;

use crate::whatif::Folder;

/// Twelve arrays that begin at one offset of a page are read side by side, behind a long phase that
/// does something else: eight ways of a set do not hold a line of each.
const COLUMNS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { ELEMENTS = 40000, COLUMNS = 12, FIRST = 6000000, ROUNDS = 6 };
__attribute__((noinline)) static double side_by_side(double *a, double *b, double *c, double *d, double *e, double *f,
                                                     double *g, double *h, double *i, double *j, double *k, double *l) {
  double sum = 0;
  for (int n = 0; n < ELEMENTS; n++) {
    l[n] = a[n] + b[n] * c[n] + d[n] * e[n] + f[n] * g[n] + h[n] * i[n] + j[n] * k[n];
    sum += l[n];
  }
  return sum;
}
__attribute__((noinline)) static long first_phase(long *table) {
  long sum = 0;
  for (long n = 0; n < FIRST; n++) sum += table[n * 7 & 1023];
  return sum;
}
int main(void) {
  double *v[COLUMNS];
  v[0] = malloc(ELEMENTS * 8);
  v[1] = malloc(ELEMENTS * 8);
  v[2] = malloc(ELEMENTS * 8);
  v[3] = malloc(ELEMENTS * 8);
  v[4] = malloc(ELEMENTS * 8);
  v[5] = malloc(ELEMENTS * 8);
  v[6] = malloc(ELEMENTS * 8);
  v[7] = malloc(ELEMENTS * 8);
  v[8] = malloc(ELEMENTS * 8);
  v[9] = malloc(ELEMENTS * 8);
  v[10] = malloc(ELEMENTS * 8);
  v[11] = malloc(ELEMENTS * 8);
  long *table = calloc(1024, sizeof *table);
  for (int x = 0; x < COLUMNS; x++)
    for (int n = 0; n < ELEMENTS; n++) v[x][n] = x + n;
  long sum = first_phase(table);
  double all = 0;
  for (int round = 0; round < ROUNDS; round++)
    all += side_by_side(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
  printf("%g %ld\n", all, sum);
}
"#;

#[test]
fn an_edit_that_each_placement_gains_by_is_worth_it_also_late_in_the_run() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("columns.c"), COLUMNS).expect("a file");
    let json = |words: &[&str]| -> Value {
        let rest = ["-m", "generic", "--json"];
        serde_json::from_str(&folder.run(&[words, &rest].concat())).expect("JSON")
    };
    folder.run(&["cc", "-O2", "-g", "columns.c", "-o", "columns"]);
    folder.run(&["record", "-o", "trace", "--", "./columns"]);
    let first = COLUMNS.lines().position(|line| line.contains("v[0] = malloc")).expect("a line") + 1;
    let shift = |column: usize| format!("shift \"columns.c:{}\" by {}", first + column, column * 320);
    let edits: Vec<String> = (1..12).map(shift).collect();
    // Placements of twelve arrays differ by as much as the edit gains.
    let found = json(&["whatif", "trace", "-e", &edits.join("; ")]);
    assert_eq!(found["verdict"], "worth_it", "{} {}", found["gain"], found["noise"]);
    let advised = json(&["advise", "trace"]);
    let first = &advised["worth_it"][0]["edits"][0];
    assert!(first.as_str().is_some_and(|edit| edit.starts_with("shift ")), "{}", advised["worth_it"]);
}
