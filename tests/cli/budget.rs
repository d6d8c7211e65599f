//! `memlode budget`: the same figures in every run, and what a failed check says.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Nodes on the heap among other blocks, a table, and a buffer on the stack that is reached through a pointer.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 4000, ROUNDS = 12 };

#ifdef MOVED
struct node { struct node *next; char name[88]; long key; };
#else
struct node { struct node *next; long key; char name[88]; };
#endif
struct entry { int key, uses; };
static struct entry table[9000];
static unsigned seed = 7;
static unsigned number(void) { return (seed = seed * 1103515245 + 12345) >> 8; }

__attribute__((noinline)) static long find(struct node *list, long *found) {
  long sum = 0;
  for (struct node *node = list; node; node = node->next) {
    if (node->key % 97 == 3) found[node->key % 700]++;
    sum += node->key;
  }
  for (int i = 0; i < 3000; i++) sum += table[number() % 9000].uses++;
  return sum;
}

static void *worker(void *list) {
  long found[700] = {0};
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++) sum += find(list, found);
  return (void *)(sum + found[5]);
}

int main(void) {
  struct node *list = NULL;
  for (int i = 0; i < NODES; i++) {
    struct node *node = malloc(sizeof *node);
    char *between = malloc(number() % 3000);
    node->key = number();
    node->next = list;
    list = node;
    if (i % 3 == 0) free(between);
  }
#ifdef THREADS
  pthread_t other;
  pthread_create(&other, NULL, worker, list);
  pthread_join(other, NULL);
#endif
  printf("%d\n", worker(list) != NULL);
}
"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("program.c"), PROGRAM).expect("a file");
        Folder(folder)
    }

    fn try_run(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(self.0.path());
        command.envs(variables.iter().copied()).args(words).output().expect("memlode runs")
    }

    fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words, &[]);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }

    fn compile(&self, program: &str, define: &str) {
        self.run(&["cc", "-O2", "-g", "-pthread", define, "program.c", "-o", program]);
    }

    /// Records a program with these variables besides.
    fn record(&self, program: &str, trace: &str, variables: &[(&str, &str)]) {
        let program = format!("./{program}");
        let output = self.try_run(&["record", "-o", trace, "--", &program], variables);
        assert!(output.status.success(), "{}", stderr(&output));
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file")
    }
}

#[test]
fn two_runs_have_the_same_figures_and_a_moved_member_is_named() {
    let folder = Folder::new();
    folder.compile("program", "-DSAME");
    folder.record("program", "one", &[]);
    // The stack begins elsewhere, and so do blocks.
    let long = "x".repeat(1234);
    let other = [("PADDING", &long[..]), ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=2000")];
    folder.record("program", "two", &other);
    for trace in ["one", "two"] {
        folder.run(&["budget", "record", &format!("{trace}.toml"), trace, "--per", "find"]);
    }
    assert_eq!(folder.file("one.toml"), folder.file("two.toml"));
    assert!(folder.file("one.toml").contains("name = \"node\""), "{}", folder.file("one.toml"));
    let text = folder.run(&["budget", "check", "one.toml", "two"]);
    assert!(text.contains("node: within its budget"), "{text}");

    folder.compile("moved", "-DMOVED");
    folder.record("moved", "after", &[]);
    let output = folder.try_run(&["budget", "check", "one.toml", "after", "--json"], &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let types = found["types"].as_array().expect("types");
    let node = types.iter().find(|ty| ty["type"] == "node").expect("it is over its budget");
    assert_eq!(node["moved"][0]["name"], "key", "{node}");
    assert_eq!((&node["moved"][0]["offset_before"], &node["moved"][0]["offset"]), (&8.into(), &96.into()));
    assert_eq!(node["restoring"]["edit"], "reorder node: next,key,name");
    assert_eq!(node["restoring"]["within"], true, "the replay shows that it does: {node}");
    assert!(types.iter().all(|ty| ty["type"] != "entry" || ty["within"] == true), "{types:?}");
    let text = stdout(&folder.try_run(&["budget", "check", "one.toml", "after"], &[]));
    assert!(text.contains("node.key moved: offset 8 → offset 96"), "{text}");
    // What is allowed is not over.
    let generous = folder.file("one.toml").replace("tolerance = 0.0", "tolerance = 9.0");
    fs::write(folder.0.path().join("one.toml"), generous).expect("a file");
    folder.run(&["budget", "check", "one.toml", "after"]);
}

#[test]
fn what_hangs_on_the_schedule_or_the_machine_is_refused() {
    let folder = Folder::new();
    folder.compile("threads", "-DTHREADS");
    folder.record("threads", "one", &[]);
    folder.record("threads", "two", &[]);
    let refused = |words: &[&str], parts: &[&str]| {
        let output = folder.try_run(words, &[]);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", stdout(&output));
        assert_one_sentence(&output, parts);
    };
    refused(&["budget", "record", "file.toml", "one"], &["2 threads", "two or more recordings"]);
    refused(&["budget", "record", "file.toml", "one", "-m", "host"], &["--machine"]);
    refused(&["budget", "record", "file.toml", "one", "two", "--per", "fin"], &["`fin`", "find"]);
    refused(&["budget", "record", "file.toml", "one", "two", "--type", "nod"], &["`nod`", "node"]);
    folder.run(&["budget", "record", "file.toml", "one", "two", "--tolerance", "2%"]);
    for trace in ["one", "two"] {
        folder.run(&["budget", "check", "file.toml", trace]);
    }
    let other = folder.file("file.toml").replace("ways = 8", "ways = 4");
    fs::write(folder.0.path().join("other.toml"), other).expect("a file");
    refused(&["budget", "check", "other.toml", "one"], &["generic", "record it again"]);
    fs::write(folder.0.path().join("other.toml"), "version = 1\n").expect("a file");
    refused(&["budget", "check", "other.toml", "one"], &["other.toml is no budget"]);
}
