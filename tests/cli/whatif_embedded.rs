//! `memlode whatif` and `advise` of a type that lies inside another one, such as in a node of a map, against the edited
//! program.

use std::fs;

use serde_json::Value;

use crate::whatif::{Folder, misses};

/// Items in lists, maps, hash tables and pairs of the C++ library; `notes` is never read.
const LIBRARY: &str = r#"
#include <cstdio>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>
struct item {
  long key;
  double price;
#if !AFTER
  long notes[8];
#endif
  bool open;
};
enum { ITEMS = 4000 };
int main() {
  std::unordered_map<long, item> table;
  std::map<long, item> tree;
  std::list<item> list;
  std::vector<std::pair<long, item>> pairs(ITEMS);
  unsigned seed = 1;
  for (long i = 0; i < ITEMS; i++) {
    seed = seed * 1664525u + 1013904223u;
    item one{};
    one.key = i, one.price = 1, one.open = i & 1;
    table[seed >> 8] = one, tree[seed >> 8] = one, pairs[i].second = one;
    list.push_back(one);
  }
  double sum = 0;
  for (int round = 0; round < 5; round++) {
    for (auto &at : table) if (at.second.open) sum += at.second.price;
    for (auto &at : tree) if (at.second.open) sum += at.second.price;
    for (auto &at : list) if (at.open) sum += at.price;
    for (auto &at : pairs) if (at.second.open) sum += at.second.price;
  }
  std::printf("%g\n", sum);
}
"#;

/// Two items in each node, in a union and in an array; a member stands behind each.
const NODES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#if AFTER
struct item { long key; char open; short cold[3]; };
#else
struct item { short cold[3]; long key; char open; };
#endif
struct node { int tag; union { struct item item; int number; } either; char mark; struct item all[2]; char end; };
enum { NODES = 5000 };
static struct node *nodes[NODES];
int main(void) {
  for (int i = 0; i < NODES; i++) {
    struct node *node = calloc(1, sizeof *node);
    node->either.item.key = node->all[1].key = i, node->end = node->mark = 1;
    nodes[i] = node;
  }
  long sum = 0;
  for (int round = 0; round < 5; round++)
    for (int i = 0; i < NODES; i++) {
      const struct node *node = nodes[(unsigned)i * 2654435761u % NODES];
      sum += node->either.item.key + node->either.item.open + node->all[1].key + node->all[0].open + node->end;
    }
  printf("%ld\n", sum);
}
"#;

/// A search of a tree, whose next node is of one member or the other, and a value that is stored in one of two.
const TREE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct node {
  uint64_t key;
#if !AFTER
  char name[40];
#endif
  struct node *left, *right;
  unsigned low, high;
};
enum { NODES = 20000 };
static uint64_t keys[NODES], state = 88172645463325252u;
static uint64_t next(void) { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; }
__attribute__((noinline)) static struct node *find(struct node *node, uint64_t key) {
  while (node && node->key != key) node = key < node->key ? node->left : node->right;
  return node;
}
__attribute__((noinline)) static void mark(struct node *node, int is_low, unsigned value) {
  *(is_low ? &node->low : &node->high) = value;
}
int main(void) {
  struct node *root = NULL;
  for (int i = 0; i < NODES; i++) {
    const uint64_t key = keys[i] = next();
    struct node **at = &root;
    while (*at) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 4 * NODES; i++) {
    const struct node *node = find(root, keys[next() % NODES]);
    sum += node->low + node->high;
  }
  for (int i = 0; i < NODES; i++) mark(find(root, keys[i]), i % 2, 1u << 20);
  printf("%lu\n", sum);
}
"#;

/// Compiles and records the program before and after an edit, and returns the traces' names.
fn record(folder: &Folder, source: &str, (compiler, file): (&str, &str)) -> [String; 2] {
    fs::write(folder.0.path().join(file), source).expect("a file");
    ["-DAFTER=0", "-DAFTER=1"].map(|option| {
        let (name, trace) = (format!("program{option}"), format!("trace{option}"));
        folder.run(&[compiler, "-O1", "-g", option, file, "-o", &name]);
        folder.run(&["record", "-o", &trace, "--", &format!("./{name}")]);
        trace
    })
}

/// Holds the prediction of an edit against the edited program: misses of the first level within a part of them.
fn compare(folder: &Folder, [before, after]: &[String; 2], edit: &str, (objects, within): (u64, f64)) {
    let found = folder.json(&["whatif", before, "-e", edit]);
    assert!(found["footprint"]["objects"].as_u64() >= Some(objects), "{}", found["footprint"]);
    assert_eq!(found["confidence"]["held_by"].as_array().map(Vec::len), Some(0), "{}", found["confidence"]);
    let predicted = misses(&found["comparison"]["after"]["levels"]);
    let [was, is] =
        [before, after].map(|trace| misses(&folder.json(&["report", trace])["machine"]["levels"]));
    // Which lines of larger caches collide is a matter of where the heap begins.
    let (predicted, actual) = (predicted[0] as f64, is[0] as f64);
    assert!((predicted / actual - 1.0).abs() < within, "{predicted} for {actual}, was {was:?}");
    assert!(is[0] < was[0], "the edit changes something: {was:?} {is:?}");
}

#[test]
fn a_type_is_edited_in_the_nodes_of_a_library() {
    let folder = Folder::new();
    let traces = record(&folder, LIBRARY, ("c++", "program.cpp"));
    compare(&folder, &traces, "remove item: notes", (3 * 4000 + 1, 0.01));
    // And proposed, with the accesses to its members there.
    let advised = folder.json(&["advise", &traces[0]]);
    let worth_it = advised["worth_it"].as_array().expect("edits");
    // Which comes first is decided by where the heap lies: to pack the nodes of the table gains as much.
    let is_of_item = |found: &Value| found["edits"][0].as_str().is_some_and(|edit| edit.contains(" item: "));
    assert!(worth_it.iter().take(2).any(is_of_item), "{worth_it:?}");
    let structures = advised["structures"].as_array().expect("structures");
    let chart = structures.iter().find(|chart| chart["type"] == "item").expect("of the type");
    let open =
        chart["members"].as_array().and_then(|members| members.iter().find(|at| at["member"] == "open"));
    let accesses = open.and_then(|open| open["accesses"].as_u64());
    assert!(accesses >= Some(5 * 4 * 4000), "of all four containers: {chart}");
}

#[test]
fn a_type_is_edited_in_unions_and_arrays_of_another() {
    let folder = Folder::new();
    let traces = record(&folder, NODES, ("cc", "nodes.c"));
    compare(&folder, &traces, "reorder item: key, open, cold", (5000, 0.01));
}

/// An access to one of two members is an access to them: they are used, hot, and hold what is stored there.
#[test]
fn what_may_be_one_of_two_members_counts_for_both() {
    let folder = Folder::new();
    let traces = record(&folder, TREE, ("cc", "tree.c"));
    // Which nodes near the root share a set is a matter of where the heap begins, here also in the first level.
    compare(&folder, &traces, "remove node: name", (20000, 0.05));
    let advised = folder.json(&["advise", &traces[0]]);
    let tried = [&advised["worth_it"], &advised["rejected"]].map(|list| list.to_string()).join(" ");
    assert!(tried.contains("remove node: name"), "{tried}");
    let structures = advised["structures"].as_array().expect("structures");
    let chart = structures.iter().find(|chart| chart["type"] == "node").expect("of the type");
    let members = chart["members"].as_array().expect("members");
    let of = |name: &str| members.iter().find(|at| at["member"] == name).expect(name)["accesses"].as_u64();
    let (key, left, right) = (of("key"), of("left"), of("right"));
    let links = left.zip(right).map(|(left, right)| left + right);
    assert!(links.zip(key).is_some_and(|(links, key)| 10 * links > 9 * (key - 100_000)), "{chart}");
    // Both had two values, one of them by way of a pointer to either.
    folder.run(&["cc", "--values", "-O1", "-g", "-DAFTER=0", "tree.c", "-o", "values"]);
    folder.run(&["record", "-o", "values.trace", "--", "./values"]);
    let advised = folder.json(&["advise", "values.trace"]);
    let tried = [&advised["worth_it"], &advised["rejected"]].map(|list| list.to_string()).join(" ");
    assert!(!tried.contains("name,low") && !tried.contains("narrow node: low"), "{tried}");
}
