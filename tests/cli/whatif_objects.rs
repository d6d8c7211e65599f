//! `memlode whatif` under edits of objects against the edited program: an order of nodes, lines of threads, sizes of pages.

use std::fs;

use serde_json::Value;

use crate::reported::Reported;
use crate::sim::Recorded;
use crate::waiting::MACHINE;
use crate::whatif::{Folder, misses};
use crate::{assert_one_sentence, stderr, stdout};

/// Nodes, linked at random, that lie where malloc puts them, or in the order of the walk.
const NODES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 30000, WALKS = 6 };
struct node { struct node *next; long value, weight, spare; };
int main(void) {
  int *order = malloc(NODES * sizeof(int));
  struct node **nodes = malloc(NODES * sizeof(struct node *));
  struct node *all = aligned_alloc(64, NODES * sizeof *all);
  for (int i = 0; i < NODES; i++) order[i] = i;
  unsigned seed = 7;
  for (int i = NODES - 1; i > 0; i--) {
    seed = seed * 1664525 + 1013904223;
    const int other = (seed >> 8) % (i + 1), at = order[i];
    order[i] = order[other];
    order[other] = at;
  }
  if (!PACKED)
    for (int i = 0; i < NODES; i++) {
      nodes[i] = malloc(sizeof(struct node));
      nodes[i]->value = i;
    }
  else
    for (int i = 0; i < NODES; i++) {
      nodes[order[i]] = &all[i];
      all[i].value = order[i];
    }
  for (int i = 0; i < NODES; i++)
    nodes[order[i]]->next = i + 1 < NODES ? nodes[order[i + 1]] : NULL;
  long sum = 0;
  for (int walk = 0; walk < WALKS; walk++)
    for (struct node *node = nodes[order[0]]; node; node = node->next) sum += node->value;
  printf("%ld\n", sum);
}
"#;

/// Four threads that add to a structure each; all lie in two lines, or each in its own.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#ifndef ALIGNED
#define ALIGNED
#endif
struct ALIGNED sums { volatile long count, total; int thread; };
static struct sums sums[4];
static void *add(void *argument) {
  struct sums *mine = argument;
  for (int i = 0; i < 30000; i++) { mine->count++; mine->total += i; }
  return NULL;
}
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) { sums[i].thread = i; pthread_create(&threads[i], NULL, add, &sums[i]); }
  long total = 0;
  for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); total += sums[i].total; }
  printf("%ld\n", total);
}
"#;

/// Sweeps over vectors that a cache holds, or that are far from each other.
const SWEEPS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#ifndef ALIGNED
#define ALIGNED
#endif
enum { VECTORS = 8000, SWEEPS = 20 };
struct ALIGNED vector { double x, y, dx, dy; };
__attribute__((noinline)) static void fill(struct vector *vectors) {
  for (int i = 0; i < VECTORS; i++) { vectors[i].x = i; vectors[i].y = -i; vectors[i].dx = 1; vectors[i].dy = 2; }
}
__attribute__((noinline)) static void sweep(struct vector *vectors) {
  for (int i = 0; i < VECTORS; i++) { vectors[i].x += vectors[i].dx; vectors[i].y += vectors[i].dy; }
}
int main(void) {
  struct vector *vectors = aligned_alloc(4096, VECTORS * sizeof *vectors);
  fill(vectors);
  for (int i = 0; i < SWEEPS; i++) sweep(vectors);
  printf("%f\n", vectors[17].x + vectors[19].y);
}
"#;

/// Jumps about in 64 MiB.
const TABLE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int small[64];
int main(void) {
  int *table = calloc(1 << 24, sizeof *table);
  unsigned seed = 3;
  long sum = 0;
  for (int i = 0; i < 400000; i++) {
    if (i % 100000 == 0) seed = 3;
    seed = seed * 1664525 + 1013904223;
    sum += table[seed >> 8] + small[i % 64]++;
  }
  printf("%ld %p\n", sum, (void *)table);
}
"#;

/// Four threads that write both ends of a line each, of lines next to each other or not.
const CELLS: &str = r#"
#include <pthread.h>
#include <stdio.h>
struct ALIGNED cell { volatile long first; long spare[6]; volatile long last; };
static struct cell cells[4] __attribute__((aligned(128)));
static void *add(void *argument) {
  struct cell *mine = argument;
  for (int i = 0; i < 30000; i++) { mine->first++; mine->last += i; }
  return NULL;
}
int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) { cells[i].spare[0] = i; pthread_create(&threads[i], NULL, add, &cells[i]); }
  long total = 0;
  for (int i = 0; i < 4; i++) { pthread_join(threads[i], NULL); total += cells[i].first + cells[i].last; }
  printf("%ld\n", total);
}
"#;

/// Uses the beginning of each record.
const RECORDS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { RECORDS = 200000 };
struct record { long key, rest[REST]; };
int main(void) {
  struct record *all = malloc(RECORDS * sizeof *all);
  for (int i = 0; i < RECORDS; i++) all[i].key = i;
  long sum = 0;
  for (int i = 0; i < RECORDS; i++) sum += all[i].key;
  printf("%ld\n", sum);
}
"#;

/// Pages, each a header and the array behind it in one block; hot members of the header lie on two lines, or on one.
const HEADERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct row { long key; };
#if AFTER
struct page { struct row *row; unsigned entries; char cold[120]; };
#else
struct page { struct row *row; char cold[120]; unsigned entries; };
#endif
enum { PAGES = 20000, VISITS = 100000 };
static struct page *all[PAGES];
int main(void) {
  unsigned long seed = 88172645463325252UL, sum = 0;
  for (int i = 0; i < PAGES; i++) {
    const int rows = 3 + i % 5;
    struct page *page = malloc(sizeof *page + rows * sizeof(struct row));
    page->row = (struct row *)(page + 1), page->entries = rows;
    for (int k = 0; k < rows; k++) page->row[k].key = k;
    all[i] = page;
  }
  for (int i = 0; i < VISITS; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    const struct page *page = all[seed % PAGES];
    sum += page->entries + (unsigned long)page->row + page->row[seed % 3].key;
  }
  printf("%lx\n", sum & 15);
}
"#;

/// Buffers, each a header and bytes behind it, which begin in what would be padding. Hot members
/// lie on two lines, or on one.
const FLEXIBLE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#if AFTER
struct buffer { unsigned length; long hits; char note[117]; char data[]; };
#else
struct buffer { unsigned length; char note[117]; long hits; short kind; char data[]; };
#endif
enum { BUFFERS = 20000, VISITS = 100000 };
static struct buffer *all[BUFFERS];
int main(void) {
  unsigned long seed = 88172645463325252UL, sum = 0;
  for (int i = 0; i < BUFFERS; i++) {
    const unsigned length = 16 + i % 9 * 8;
    struct buffer *one = malloc(sizeof *one + length);
    one->length = length, one->hits = 0, one->note[9] = 1;
    for (unsigned k = 0; k < length; k++) one->data[k] = k;
    all[i] = one;
  }
  for (int i = 0; i < VISITS; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    struct buffer *one = all[seed % BUFFERS];
    one->hits++;
    sum += one->length;
  }
  for (int i = 0; i < BUFFERS; i++) sum += all[i]->hits + all[i]->note[9] + all[i]->data[all[i]->length - 1];
  printf("%lx\n", sum & 15);
}
"#;

fn record(folder: &Folder, name: &str, source: &str, option: &str) -> String {
    fs::write(folder.0.path().join("object.c"), source).expect("a file");
    let trace = format!("{name}.trace");
    folder.run(&["cc", "-O2", "-g", "-pthread", option, "object.c", "-o", name]);
    folder.run(&["record", "-o", &trace, "--", &format!("./{name}")]);
    trace
}

/// The cycles of the second of two runs by those of the first.
fn ratio(found: &Value) -> f64 {
    let [before, after] = ["before", "after"].map(|side| found[side]["run_cycles"].as_f64().expect("cycles"));
    after / before
}

#[test]
fn packed_nodes_miss_as_those_do_that_lie_in_order() {
    let folder = Folder::new();
    let before = record(&folder, "scattered", NODES, "-DPACKED=0");
    let after = record(&folder, "packed", NODES, "-DPACKED=1");
    let found = folder.json(&["whatif", &before, "-e", "pack node"]);
    assert_eq!(found["verdict"], "worth_it");
    let predicted = misses(&found["comparison"]["after"]["levels"]);
    let actual = misses(&folder.json(&["report", &after])["machine"]["levels"]);
    for (&predicted, &actual) in predicted.iter().zip(&actual) {
        assert!(actual > 10_000, "too few to tell: {actual}");
        assert!((predicted as f64 / actual as f64 - 1.0).abs() < 0.1, "{predicted} for {actual}");
    }
    let advised = folder.json(&["advise", &before]);
    assert_eq!(advised["worth_it"][0]["edits"][0], "pack node", "{}", advised["worth_it"]);
    for both in ["pack node; reorder node: value", "reorder node: value; pack node"] {
        let refused = folder.try_run(&["whatif", &before, "-e", both]);
        assert_one_sentence(&refused, &["pack node", "one after the other"]);
    }
}

#[test]
fn threads_lose_what_those_of_the_edited_program_do() {
    let folder = Folder::new();
    let before = record(&folder, "beside", THREADS, "-DNOTHING");
    let after = record(&folder, "apart", THREADS, "-DALIGNED=__attribute__((aligned(64)))");
    let lost = |found: &Value| found["lost_cycles"].as_f64().expect("a number");
    let actual = folder.json(&["report", &after])["sharing"]["cycles"].as_f64().expect("a number");
    for edit in ["align sums to 64", "per-thread sums"] {
        let found = folder.json(&["whatif", &before, "-e", edit]);
        assert_eq!(found["verdict"], "worth_it", "{edit}");
        let (was, predicted) = (lost(&found["comparison"]["before"]), lost(&found["comparison"]["after"]));
        assert!(was > 100_000.0, "{was}");
        assert!((predicted - actual).abs() < was * 0.05, "{edit}: {was}, {predicted} for {actual}");
    }
    // The same elements, moved by a line.
    let moved = folder.json(&["whatif", &before, "-e", "shift sums by 64", "--threads", "parallel"]);
    let (was, is) = (lost(&moved["comparison"]["before"]), lost(&moved["comparison"]["after"]));
    assert!((is / was - 1.0).abs() < 0.1, "{was} {is}");
    let advised = folder.json(&["advise", &before]);
    assert_eq!(advised["worth_it"][0]["edits"][0], "align sums to 64");
    assert!(advised["worth_it"][0]["at"]["member"].is_string(), "{}", advised["worth_it"][0]["at"]);
    let none = folder.json(&["advise", &after]);
    assert_eq!(none["worth_it"].as_array().map(Vec::len), Some(0), "{}", none["worth_it"]);
    // Between the programs themselves, too.
    let found = folder.json(&["diff", &before, &after]);
    assert!(lost(&found["before"]) > 20.0 * lost(&found["after"]), "{}", found["after"]["lost_cycles"]);
}

#[test]
fn records_of_threads_are_told_that_are_apart_by_chance() {
    let folder = Folder::new();
    let full = record(&folder, "full", CELLS, "-DALIGNED=");
    let found = folder.json(&["advise", &full]);
    assert_eq!(found["worth_it"].as_array().map(Vec::len), Some(0), "{}", found["worth_it"]);
    let [latent, pair] = [&found["latent"][0], &found["pairs"][0]];
    assert_eq!((&latent["object"], &latent["edit"]), (&"cells".into(), &"align cell to 64".into()));
    assert!(latent["lost_share"].as_f64().is_some_and(|share| share > 0.2), "{latent}");
    assert_eq!((&pair["object"], &pair["edit"]), (&"cells".into(), &"align cell to 128".into()));
    let text = folder.run(&["advise", &full, "-m", "./small.toml"]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("fetched in pairs of 128 bytes; apart: align cell to 128"), "{text}");
    let apart = record(&folder, "apart", CELLS, "-DALIGNED=__attribute__((aligned(128)))");
    let found = folder.json(&["advise", &apart]);
    for kind in ["worth_it", "latent", "pairs"] {
        assert_eq!(found[kind].as_array().map(Vec::len), Some(0), "{kind}: {}", found[kind]);
    }
}

#[test]
fn a_header_is_edited_that_has_an_array_behind_it() {
    let folder = Folder::new();
    let before = record(&folder, "apart", HEADERS, "-DAFTER=0");
    let after = record(&folder, "together", HEADERS, "-DAFTER=1");
    let found = folder.json(&["whatif", &before, "-e", "reorder page: row, entries"]);
    assert_eq!(found["footprint"]["objects"], 20_000, "{}", found["footprint"]);
    assert_eq!(found["footprint"]["bytes_before"], found["footprint"]["bytes_after"]);
    let predicted = misses(&found["comparison"]["after"]["levels"]);
    let [was, is] =
        [&before, &after].map(|trace| misses(&folder.json(&["report", trace])["machine"]["levels"]));
    assert!(is[0] + 15_000 < was[0], "a line less in many visits: {was:?} {is:?}");
    for (&predicted, &actual) in predicted.iter().zip(&is) {
        assert!((predicted as f64 / actual as f64 - 1.0).abs() < 0.01, "{predicted} for {actual}");
    }
    // What moves nothing is not said to be neutral: of a header alone no arrays can be made.
    let none = folder.run(&["whatif", &before, "-e", "soa page", "-m", "./small.toml"]);
    let none = none.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(none.contains("none: the edit moves no object of this trace; 20.0 k of the type stay"), "{none}");
}

#[test]
fn a_header_is_edited_whose_type_ends_with_an_array_of_unknown_length() {
    let folder = Folder::new();
    let before = record(&folder, "apart", &FLEXIBLE.replace(" short kind;", ""), "-DAFTER=0");
    let after = record(&folder, "together", FLEXIBLE, "-DAFTER=1");
    let [was, is] =
        [&before, &after].map(|trace| misses(&folder.json(&["report", trace])["machine"]["levels"]));
    assert!(is[0] + 50_000 < was[0], "a line less in each visit: {was:?} {is:?}");
    let advised = folder.run(&["advise", &before, "-m", "generic", "--json"]);
    let advised: Value = serde_json::from_str(&advised).expect("JSON");
    let best = advised["worth_it"][0]["edits"][0].as_str().expect("an edit");
    assert!(best.starts_with("reorder buffer: "), "{best}");
    for edit in ["reorder buffer: length,hits", best] {
        let found = folder.json(&["whatif", &before, "-e", edit]);
        assert_eq!(found["footprint"]["objects"], 20_000, "{edit}");
        let predicted = misses(&found["comparison"]["after"]["levels"]);
        for (&predicted, &actual) in predicted.iter().zip(&is) {
            assert!(
                (predicted as f64 / actual as f64 - 1.0).abs() < 0.02,
                "{edit}: {predicted} for {actual}"
            );
        }
    }
    // The bytes behind stay behind: they begin where they did if the header ends there.
    let padded = record(&folder, "padded", FLEXIBLE, "-DAFTER=0");
    let found = folder.json(&["whatif", &padded, "-e", "reorder buffer: length,note,hits,kind"]);
    let same = &found["comparison"];
    assert_eq!(misses(&same["before"]["levels"])[0].abs_diff(misses(&same["after"]["levels"])[0]) / 1000, 0);
    let refused = folder.try_run(&["whatif", &before, "-e", "reorder buffer: data"]);
    assert_one_sentence(&refused, &["reorder buffer: data", "it stays behind the other members"]);
}

#[test]
fn memory_that_an_edit_adds_is_not_free() {
    let folder = Folder::new();
    let before = record(&folder, "dense", RECORDS, "-DREST=7");
    let after = record(&folder, "sparse", RECORDS, "-DREST=15");
    let found = folder.json(&["whatif", &before, "-e", "pad record to 128"]);
    let [was, is] = ["before", "after"].map(|side| misses(&found["comparison"][side]["levels"]));
    for (&was, &is) in was.iter().zip(&is) {
        assert!(is.abs_diff(was) < was / 50, "each record has a line as before: {was} {is}");
    }
    assert_eq!(found["verdict"], "worse", "but twice as many pages: {}", found["gain"]);
    let actual = folder.json(&["diff", &before, &after]);
    let [predicted, actual] = [&found["comparison"], &actual].map(ratio);
    assert!((predicted / actual - 1.0).abs() < 0.05, "{predicted} predicted, {actual} in the edited program");
}

#[test]
fn what_an_edit_makes_worse_is_as_much_worse_in_the_edited_program() {
    let folder = Folder::new();
    let before = record(&folder, "dense", SWEEPS, "-DNOTHING");
    let after = record(&folder, "sparse", SWEEPS, "-DALIGNED=__attribute__((aligned(4096)))");
    let predicted = folder.json(&["whatif", &before, "-e", "align vector to 4096"]);
    assert_eq!(predicted["verdict"], "worse");
    let actual = folder.json(&["diff", &before, &after]);
    let (predicted, actual) = (ratio(&predicted["comparison"]), ratio(&actual));
    assert!(actual > 1.5, "the edit makes little worse: {actual}");
    assert!((predicted / actual - 1.0).abs() < 0.2, "{predicted} predicted, {actual} in the edited program");
}

#[test]
fn large_pages_save_walks_and_no_misses() {
    let folder = Folder::new();
    let trace = record(&folder, "table", TABLE, "-DNOTHING");
    for more in [&[][..], &["--sim"]] {
        let words = ["whatif", &trace, "-e", "pages object.c:6 to 2MiB", "-m", "generic", "--json"];
        let text = folder.run(&[&words, more].concat());
        let found: Value = serde_json::from_str(&text).expect("JSON");
        // Rules count the walks; reports take one for each miss. In both they overlap as the misses do.
        let least = if more.is_empty() { 0.005 } else { 0.05 };
        assert!(found["gain"].as_f64().is_some_and(|gain| gain > least), "{more:?} {}", found["gain"]);
        let [before, after] = ["before", "after"].map(|side| misses(&found["comparison"][side]["levels"]));
        for (&before, &after) in before.iter().zip(&after) {
            assert!(before.abs_diff(after) < before / 50, "{before} {after}");
        }
    }
    let refused = folder.try_run(&["whatif", &trace, "-e", "pages small to 2MiB"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    assert_one_sentence(&refused, &["pages small to 2MiB", "smaller than such a page"]);
}

/// Values that a member had decide whether it can be narrowed; where they were recorded and fit, that is proposed.
#[test]
fn a_member_is_narrowed_only_to_what_its_values_fit() {
    let program = r#"
#include <stdio.h>
#include <stdlib.h>
enum { ROWS = 60000 };
struct row { long kind; long step; double part; double exact; };
__attribute__((noinline)) static long look(const struct row *rows) {
  long sum = 0;
  unsigned at = 1;
  for (int i = 0; i < 3 * ROWS; i++) {
    at = at * 1664525 + 1013904223;
    const struct row *row = &rows[(at >> 8) % ROWS];
    sum += row->kind + row->step + (long)(row->part + row->exact);
  }
  return sum;
}
int main(void) {
  struct row *rows = calloc(ROWS, sizeof *rows);
  for (int i = 0; i < ROWS; i++) rows[i] = (struct row){i % 200, i % 7 ? -1 : 300, i * 0.1, i * 0.5};
  printf("%ld\n", look(rows));
}
"#;
    let recorded = Recorded::new(program, MACHINE);
    let what_if = |edit: &str| recorded.try_run(&["whatif", "trace", "-m", "./tiny.toml", "--edit", edit]);
    let told = stdout(&what_if("narrow row: kind to 1"));
    let unknown = "whether 1 bytes hold what row.kind has is not known (compile with --values)";
    assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(unknown), "{told}");

    recorded.run(&["cc", "--values", "-O2", "program.c", "-o", "program"]);
    recorded.run(&["record", "--force", "-o", "trace", "--", "./program"]);
    for (edit, value) in [
        ("narrow row: step to 1", "300"),
        ("narrow row: kind to 1", ""),
        ("narrow row: step to 2", ""),
        ("narrow row: part to 4", "."),
        ("narrow row: exact to 4", ""),
    ] {
        let output = what_if(edit);
        if value.is_empty() {
            let told = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(told.contains("had in this run; another may have others"), "{edit}: {told}");
        } else {
            assert_one_sentence(&output, &[&format!("`{edit}`: it had the value "), "cannot hold"]);
            assert!(stderr(&output).contains(value), "{edit}: {}", stderr(&output));
        }
    }
    let advice: Value =
        serde_json::from_str(&recorded.run(&["advise", "trace", "-m", "./tiny.toml", "--json"]))
            .expect("JSON");
    let text = advice.to_string();
    assert!(text.contains("narrow row: kind to 1") && text.contains("narrow row: step to 2"), "{text}");
    assert!(text.contains("narrow row: exact to 4") && !text.contains("narrow row: part"), "{text}");
}

/// A large buffer that is used in part has pages that fault, and translations, for that part alone.
#[test]
fn large_pages_save_nothing_for_memory_that_is_never_touched() {
    let program = r#"
#include <stdio.h>
#include <stdlib.h>
enum { ALL = 64 << 20, USED = 1 << 20 };
int main(void) {
  char *buffer = malloc(ALL);
  for (int i = 0; i < USED; i += 8) *(long *)(buffer + i) = i;
  unsigned at = 1;
  long sum = 0;
  for (int i = 0; i < 4000000; i++) {
    at = at * 1664525 + 1013904223;
    sum += *(long *)(buffer + (at >> 8) % USED / 8 * 8);
  }
  printf("%ld\n", sum);
}
"#;
    let recorded = Recorded::new(program, MACHINE);
    let words = ["whatif", "trace", "-m", "skylake-sp", "--json", "--edit", "pages program.c:6 to 2MiB"];
    let found: Value = serde_json::from_str(&recorded.run(&words)).expect("JSON");
    assert_eq!(found["verdict"], "neutral", "{}", found["gain"]);
}

/// A function that knows but the type of a member uses the member, whatever its name.
#[test]
fn members_that_are_used_by_their_types_alone_are_not_cold() {
    let program = r#"
#include <stdio.h>
#include <stdlib.h>
enum { NODES = 5000 };
struct links { struct node *next, *other; };
struct node { long key, spare[4]; struct links links; };
__attribute__((noinline)) static struct node *next_of(const struct links *links) { return links->next; }
int main(void) {
  struct node *nodes = calloc(NODES, sizeof *nodes);
  for (int i = 0; i + 1 < NODES; i++) nodes[i] = (struct node){i, {0}, {&nodes[i + 1], NULL}};
  long sum = 0;
  for (int walk = 0; walk < 20; walk++)
    for (struct node *node = nodes; node; node = next_of(&node->links)) sum += node->key;
  printf("%ld\n", sum);
}
"#;
    let recorded = Recorded::new(program, MACHINE);
    let words = ["advise", "trace", "-m", "./tiny.toml", "--json"];
    let advice: Value = serde_json::from_str(&recorded.run(&words)).expect("JSON");
    assert!(!advice.to_string().contains("remove node: spare,links"), "{advice}");
    let charts = advice["structures"].as_array().expect("structures");
    let node = charts.iter().find(|chart| chart["type"] == "node").expect("a chart of the nodes");
    let members = node["members"].as_array().expect("members").iter();
    let cold =
        |name: &str| members.clone().find(|member| member["member"] == name).map(|of| of["is_cold"] == true);
    assert_eq!([cold("key"), cold("spare"), cold("links")], [Some(false), Some(true), Some(false)], "{node}");
}

/// A table of functions holds libc's allocator, as in many libraries; what it returns is an array of `item`.
const HOOKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct item { long hot; long cold[15]; };
struct hooks { void *(*get)(size_t); void (*put)(void *); } hooks = { malloc, free };
__attribute__((noinline)) static void *my_alloc(size_t bytes) { return hooks.get(bytes); }
int main(void) {
  long items = 20000, sum = 0;
  struct item *all = my_alloc(items * sizeof *all);
  for (long i = 0; i < items; i++) all[i].hot = all[i].cold[3] = i;
  for (int round = 0; round < 20; round++)
    for (long i = 0; i < items; i++) sum += all[i * 7919 % items].hot;
  printf("%ld\n", sum + all[5].cold[3]);
  hooks.put(all);
}
"#;

#[test]
fn blocks_of_allocators_held_in_pointers_are_moved() {
    let program = Reported::new(HOOKS);
    let text = program.report(&[]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("memory allocated at program.c:9 main through my_alloc (1 block"), "{text}");
    let edit = ["whatif", "a trace", "-m", "generic", "-e", "split item: hot=hot by=index", "--json"];
    let answer: Value = serde_json::from_str(&program.run(&edit)).expect("JSON");
    let moved = &answer["footprint"];
    assert_eq!((&moved["objects"], &moved["bytes_before"]), (&1.into(), &2_560_000.into()), "{moved}");
}
