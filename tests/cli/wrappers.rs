//! Functions that only pass a block on name no object.

use std::fs;

use crate::whatif::Folder;

/// A list and an array, whose memory comes through functions that do not know what it is for. One of
/// them writes to it, one has a single caller. Who returns a total keeps its type to itself, and knows it.
const PROGRAM: &str = r#"
#include <stdlib.h>
typedef struct node { struct node *next; long key, rest[6]; } node;
static void *checked(void *block) { if (!block) abort(); return block; }
__attribute__((noinline)) void *raw(size_t bytes) { return checked(malloc(bytes)); }
__attribute__((noinline)) void *zeroed(size_t bytes) {
  char *block = raw(bytes);
  for (size_t i = 0; i < bytes; i += 8) block[i] = 0;
  return block;
}
__attribute__((noinline)) static node *make_node(long key) {
  node *made = zeroed(sizeof *made); // <-- node
  made->key = key;
  return made;
}
struct total { long sum, count; };
__attribute__((noinline)) static void *make_total(long count) {
  struct total *made = malloc(sizeof *made); // <-- total
  made->sum = 42, made->count = count;
  return made;
}
enum { N = 20000 };
int main(void) {
  node **all = raw(N * sizeof *all); // <-- all
  for (long i = 0; i < N; i++) all[i] = make_node(i); // <-- call
  for (long i = 0; i < N; i++) all[i]->next = all[(i * 7919 + 1) % N];
  struct total *total = make_total(N); // <-- made
  for (long i = 0; i < 10 * N; i++) total->sum += all[i * 7919 % N]->key + all[0]->next->rest[i % 6];
  return total->sum + total->count == 42;
}
"#;

#[test]
fn objects_are_named_where_their_type_is_known() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("list.c"), PROGRAM).expect("a file");
    folder.run(&["cc", "-O2", "-g", "list.c", "-o", "list"]);
    folder.run(&["record", "-o", "trace", "--", "./list"]);
    let line = |mark: &str| {
        let at = PROGRAM.lines().position(|line| line.ends_with(&format!("// <-- {mark}")));
        at.expect("a mark") + 1
    };
    let node = format!("list.c:{} make_node ← list.c:{} main", line("node"), line("call"));
    let all = format!("list.c:{} main", line("all"));
    let total = format!("list.c:{} make_total ← list.c:{} main", line("total"), line("made"));
    let words = |words: &[&str]| folder.run(words).split_whitespace().collect::<Vec<_>>().join(" ");
    let report = words(&["report", "trace", "-m", "./small.toml"]);
    assert!(
        report.contains(&format!("in memory allocated at {node} through raw, zeroed (20.0 k blocks")),
        "{report}"
    );
    let objects = words(&["report", "trace", "-m", "./small.toml", "--by", "object"]);
    assert!([node, all, total].iter().all(|name| objects.contains(name)), "{objects}");
    assert!(!objects.contains("zeroed ←"), "{objects}");
    // The line by which edits know an object is one of these, too.
    let found = folder.json(&["report", "trace"]);
    let rows = found["objects"].as_array().expect("objects");
    let heap: Vec<_> = rows.iter().filter(|row| row["kind"] == "heap").collect();
    let passed_on = heap.iter().filter(|row| row["allocated_at"]["untyped"] == true);
    assert_eq!((heap.len(), passed_on.count()), (3, 2), "{rows:?}");
}

/// A function that calls another one last is left before that one is entered: here an allocator's
/// wrapper, beside a function that might call it, too.
const LAST: &str = r#"
#include <stdlib.h>
#define APART __attribute__((noinline))
APART static void *checked(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  return block;
}
APART static void *innermost(size_t bytes) { return checked(bytes); }
APART static void *inner(size_t bytes) { return innermost(bytes); }
APART static void *outer(size_t bytes) { return inner(bytes); }
APART static void *middle(size_t bytes) { return outer(bytes); }
APART static void *wrapped(size_t bytes) { return middle(bytes + 8); }
static volatile long ended;
APART static void end(long more) { ended += more; }
int main(void) {
  long sum = 0;
  for (int i = 0; i < 7; i++) {
    volatile long *block = wrapped(800); // <-- loop
    block[3] = i;
    sum += block[3];
    free((void *)block);
  }
  end(7);
  end(sum);
  volatile long *block = wrapped(80); // <-- once
  char *path = realpath("/", NULL);
  block[1] = path[0];
  sum += block[1];
  return sum == 42;
}
"#;

#[test]
fn a_wrapper_that_calls_another_one_last_has_its_caller() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("last.c"), LAST).expect("a file");
    folder.run(&["cc", "-O2", "-g", "last.c", "-o", "last"]);
    folder.run(&["record", "-o", "trace", "--", "./last"]);
    let found = folder.json(&["report", "trace"]);
    let rows = found["objects"].as_array().expect("objects");
    for (mark, count) in [("loop", 7), ("once", 1)] {
        let at = LAST.lines().position(|line| line.ends_with(&format!("// <-- {mark}")));
        let at = at.expect("a mark") + 1;
        let called = |row: &&serde_json::Value| {
            row["path"] == serde_json::json!(["checked", "main"]) && row["called_at"][1][0]["line"] == at
        };
        let counts: Vec<_> = rows.iter().filter(called).map(|row| &row["count"]).collect();
        assert_eq!(counts, [count], "{mark}: {rows:?}");
    }
}
