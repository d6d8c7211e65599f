//! `memlode whatif` against the truth: the edited program, recorded and simulated; and `memlode diff`.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// The same work under one of several layouts, chosen when it is compiled. Objects: an array, and a list whose nodes are allocated one by
/// one among others.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 60000, NODES = 20000, ROUNDS = 6 };

#if LAYOUT == 0 || LAYOUT == 6
struct item { long key; char payload[40]; int kind; int flags; long hits; };
#define KEY(i) items[i].key
#define KIND(i) items[i].kind
#define HITS(i) items[i].hits
#define PAYLOAD(i) items[i].payload
#elif LAYOUT == 1
struct item { long key; int kind; long hits; char payload[40]; int flags; } __attribute__((aligned(128)));
#define KEY(i) items[i].key
#define KIND(i) items[i].kind
#define HITS(i) items[i].hits
#define PAYLOAD(i) items[i].payload
#elif LAYOUT == 2
struct rest { char payload[40]; int flags; };
struct item { long key; int kind; long hits; };
static struct rest *rests;
#define KEY(i) items[i].key
#define KIND(i) items[i].kind
#define HITS(i) items[i].hits
#define PAYLOAD(i) rests[i].payload
#elif LAYOUT == 3
struct rest { char payload[40]; int flags; long hits; };
struct item { long key; int kind; struct rest *rest; };
static struct rest *rests;
#define KEY(i) items[i].key
#define KIND(i) items[i].kind
#define HITS(i) items[i].rest->hits
#define PAYLOAD(i) items[i].rest->payload
#elif LAYOUT == 4
static long *keys, *hits;
static int *kinds;
struct item { char payload[40]; int flags; };
#define KEY(i) keys[i]
#define KIND(i) kinds[i]
#define HITS(i) hits[i]
#define PAYLOAD(i) items[i].payload
#elif LAYOUT == 5
struct item { long key; int kind; long hits; char payload[40]; int flags; };
#define KEY(i) items[i].key
#define KIND(i) items[i].kind
#define HITS(i) items[i].hits
#define PAYLOAD(i) items[i].payload
#endif
static struct item *items;

#if LAYOUT == 6
struct cold { char name[96]; };
struct node { struct node *next; long value; struct cold *cold; };
#define NAME(n) n->cold->name
#else
struct node { struct node *next; long value; char name[96]; };
#define NAME(n) n->name
#endif

static unsigned seed = 1;
static unsigned number(void) { return (seed = seed * 1103515245 + 12345) >> 8; }

static void *get(size_t count, size_t bytes) {
  void *memory = aligned_alloc(128, (count * bytes + 127) / 128 * 128);
  if (!memory) abort();
  return memory;
}

int main(void) {
  items = get(ITEMS, sizeof *items);
#if LAYOUT == 2 || LAYOUT == 3
  rests = get(ITEMS, sizeof *rests);
#elif LAYOUT == 4
  keys = get(ITEMS, sizeof *keys);
  hits = get(ITEMS, sizeof *hits);
  kinds = get(ITEMS, sizeof *kinds);
#endif
  for (int i = 0; i < ITEMS; i++) {
#if LAYOUT == 3
    items[i].rest = &rests[i];
#endif
    KEY(i) = number();
    KIND(i) = number() % 8;
    HITS(i) = 0;
    memset(PAYLOAD(i), i, 40);
  }
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < ITEMS; i++)
      if (KIND(i) == round) HITS(i)++;
    for (int i = 0; i < ITEMS; i++) {
      int at = number() % ITEMS;
      sum += KEY(at);
      if (i % 16 == 0) sum += PAYLOAD(at)[i % 40];
    }
  }
  struct node *list = NULL;
  static char *between[NODES];
  for (int i = 0; i < NODES; i++) {
    struct node *node = malloc(sizeof *node);
#if LAYOUT == 6
    node->cold = malloc(sizeof *node->cold);
#endif
    node->value = number();
    node->next = list;
    memset(NAME(node), i, 96);
    between[i] = malloc(number() % 100);
    list = node;
  }
  for (int round = 0; round < 20; round++)
    for (struct node *node = list; node; node = node->next) {
      sum += node->value;
      if (node->value % 64 == 0) sum += NAME(node)[round];
    }
  printf("%ld %p\n", sum, (void *)between[NODES - 1]);
}
"#;

/// Two levels that the data do not fit.
const MACHINE: &str = r#"
name = "small"
description = "smaller than the data"
sources = ["made up"]
cores = 1
line_bytes = 64
memory_latency_cycles = 200

[[level]]
name = "L1d"
size = "32 KiB"
ways = 8
latency_cycles = 4

[[level]]
name = "L2"
size = "512 KiB"
ways = 8
latency_cycles = 14
"#;

/// The edit that makes the first layout the one of this number.
const EDITS: [(u32, &str); 6] = [
    (1, "reorder item: key, kind, hits; align item to 128"),
    (2, "split item: hot=key,kind,hits by=parallel"),
    (3, "split item: hot=key,kind by=pointer"),
    (4, "soa item: key, kind, hits"),
    (5, "reorder item: key, kind, hits"),
    (6, "split node: hot=next,value by=pointer"),
];

pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("program.c"), PROGRAM).expect("a file");
        fs::write(folder.path().join("small.toml"), MACHINE).expect("a file");
        Folder(folder)
    }

    pub(crate) fn try_run(&self, words: &[&str]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "120").current_dir(self.0.path());
        command.args(words).output().expect("memlode runs")
    }

    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let rest = ["-m", "./small.toml", "--json"];
        serde_json::from_str(&self.run(&[words, &rest].concat())).expect("JSON")
    }

    /// Compiles and records the program under a layout.
    fn record(&self, layout: u32) -> String {
        let (program, trace) = (format!("program{layout}"), format!("trace{layout}"));
        let chosen = format!("-DLAYOUT={layout}");
        // What is vectorised depends on the layout.
        let scalar = ["-fno-vectorize", "-fno-slp-vectorize"];
        self.run(&["cc", "-O2", "-g", scalar[0], scalar[1], &chosen, "program.c", "-o", &program]);
        self.run(&["record", "-o", &trace, "--", &format!("./{program}")]);
        trace
    }
}

pub(crate) fn misses(levels: &Value) -> Vec<u64> {
    let missed = |level: &Value| level["read_misses"].as_u64().zip(level["write_misses"].as_u64());
    let levels = levels.as_array().expect("levels").iter();
    levels.map(|level| missed(level).map_or(0, |(reads, writes)| reads + writes)).collect()
}

#[test]
fn predictions_are_what_the_edited_program_does() {
    let folder = Folder::new();
    let before = folder.record(0);
    let mut errors = Vec::new();
    for (layout, edit) in EDITS {
        let after = folder.record(layout);
        let predicted = folder.json(&["whatif", &before, "--edit", edit]);
        let actual = folder.json(&["report", &after]);
        let as_it_is = misses(&predicted["comparison"]["before"]["levels"]);
        let predicted = misses(&predicted["comparison"]["after"]["levels"]);
        let actual = misses(&actual["machine"]["levels"]);
        for (level, (&predicted, &actual)) in predicted.iter().zip(&actual).enumerate() {
            assert!(actual >= 10_000, "{edit}: the program misses too little to tell anything");
            let error = (predicted as f64 - actual as f64) / actual as f64;
            assert!(
                error.abs() < 0.1,
                "{edit}: level {level} had {}, {predicted} predicted, {actual} are",
                as_it_is[level]
            );
            errors.push(error.abs());
        }
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(mean < 0.05, "the mean error is {mean}: {errors:?}");
}

#[test]
fn an_edit_that_changes_nothing_is_neutral_and_impossible_ones_say_why() {
    let folder = Folder::new();
    let trace = folder.record(0);
    let same = folder.json(&["whatif", &trace, "-e", "reorder item: key, payload, kind, flags, hits"]);
    assert_eq!(same["confidence"]["placed_by"], "the C library's malloc");
    // Where the C library lays the blocks is worth up to two per cent here; beyond that the verdict would have to be another.
    assert_ne!(same["verdict"], "worth_it");
    assert!(same["gain"].as_f64().is_some_and(|gain| gain.abs() < 0.04), "{same}");
    assert_eq!(same["footprint"]["bytes_before"], same["footprint"]["bytes_after"]);
    let grown = || folder.json(&["whatif", &trace, "-e", "pad node to 48"]);
    // A container may forbid it.
    if std::process::Command::new("setarch")
        .args(["-R", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        assert_eq!(grown(), grown(), "blocks lie where they lay before");
    }
    let far = folder.json(&["whatif", &trace, "-e", "pad item to 4096"]);
    assert_eq!(far["verdict"], "worse");
    // What is read most would be behind a link.
    let wrong = folder.json(&["whatif", &trace, "-e", "split item: hot=flags by=pointer"]);
    assert_ne!(wrong["verdict"], "worth_it");

    let refused = |edit: &str, parts: &[&str]| {
        let output = folder.try_run(&["whatif", &trace, "-e", edit]);
        assert_eq!(output.status.code(), Some(1), "{edit}");
        assert_one_sentence(&output, parts);
    };
    refused("soa itm", &["no type `itm`", "item"]);
    refused("reorder item: sum", &["has no member `sum`", "payload"]);
    refused("shift nowhere by 64", &["no object `nowhere`"]);
    refused("soa cold; soa item", &["no type `cold`"]);
    let marked = folder.try_run(&["whatif", &trace, "-e", "splt item: hot=key by=index"]);
    assert!(stderr(&marked).contains("did you mean `split`?"), "{}", stderr(&marked));
}

/// Asserts that an edit is worth it, is one of items, and gains as much as arrays of their members do. Which of two edits that gain
/// about as much is named depends on where the program's memory happens to lie.
fn assert_as_good_as_arrays(folder: &Folder, trace: &str, found: &Value) {
    let arrays = folder.json(&["whatif", trace, "--edit", "soa item"]);
    assert_eq!((&arrays["verdict"], &found["verdict"]), (&"worth_it".into(), &"worth_it".into()));
    let edit = found["edits"][0].as_str().expect("an edit");
    assert!(edit.contains("item"), "{edit}");
    let gain = |found: &Value| found["gain"].as_f64().expect("a share");
    assert!(gain(found) >= gain(&arrays) - 0.03, "{edit}: {} beside {}", gain(found), gain(&arrays));
}

#[test]
fn a_search_finds_a_layout_and_confirms_it() {
    let folder = Folder::new();
    let trace = folder.record(0);
    let found = folder.json(&["whatif", &trace, "--search", "item"]);
    assert_as_good_as_arrays(&folder, &trace, &found);
    assert!(found["tried"].as_array().expect("a list").len() >= 5);
}

#[test]
fn advice_is_what_was_tried_and_a_clean_program_gets_none() {
    let folder = Folder::new();
    let trace = folder.record(0);
    let found = folder.json(&["advise", &trace]);
    assert_as_good_as_arrays(&folder, &trace, &found["worth_it"][0]);
    let rejected = found["rejected"].as_array().expect("a list");
    assert!(rejected.iter().any(|edit| edit["edit"].as_str().is_some_and(|text| text.contains("node"))));
    let charts = found["structures"].as_array().expect("a list");
    assert!(charts.iter().any(|chart| chart["type"] == "item"));
    folder.run(&["advise", &trace, "-m", "./small.toml", "--svg", "charts"]);
    assert!(fs::read_dir(folder.0.path().join("charts")).expect("a folder").count() >= 1);

    // All of each structure is used, in the order in which it lies.
    let clean = "struct pair { long a, b; };\nstatic struct pair pairs[1 << 16];\nint main(void) {\n  long sum = 0;\n\
                 for (int n = 0; n < 8; n++) for (int i = 0; i < 1 << 16; i++) {\n    pairs[i].a += i;\n\
                 pairs[i].b ^= pairs[i].a; sum += pairs[i].b; }\n  return sum == 1;\n}\n";
    fs::write(folder.0.path().join("clean.c"), clean).expect("a file");
    folder.run(&["cc", "-O2", "-g", "clean.c", "-o", "clean"]);
    folder.run(&["record", "-o", "clean.trace", "--", "./clean"]);
    let found = folder.json(&["advise", "clean.trace"]);
    assert_eq!(found["worth_it"].as_array().map(Vec::len), Some(0), "{}", found["worth_it"]);
    let text = folder.run(&["advise", "clean.trace", "-m", "./small.toml"]);
    assert!(text.contains("nothing to gain from layout here"), "{text}");
}

#[test]
fn a_patch_applies_where_the_user_stands_and_compiles_without_warnings() {
    let folder = Folder::new();
    let source = "#include <stdio.h>\n\n/* One of many. */\nstruct thing {\n  char flag; // seldom\n  \
                  double *first, *second;\n  char name[20];\n  /* read by each pass */\n  int rank;\n};\n\n\
                  struct thing things[5000];\n\nint main(void) {\n  int sum = 0;\n  \
                  for (int n = 0; n < 9; n++)\n    for (int i = 0; i < 5000; i++)\n      \
                  sum += things[i].rank + things[i].flag;\n  printf(\"%d %p\\n\", sum, (void *)things[sum].first);\n  \
                  return 0;\n}\n";
    fs::write(folder.0.path().join("thing.c"), source).expect("a file");
    folder.run(&["cc", "-O2", "-g", "thing.c", "-o", "thing"]);
    folder.run(&["record", "-o", "thing.trace", "--", "./thing"]);
    folder.run(&["whatif", "thing.trace", "-e", "reorder thing: rank, flag", "--patch", "thing.patch"]);
    let shell = |line: &str| {
        let output =
            std::process::Command::new("sh").args(["-c", line]).current_dir(folder.0.path()).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{line}: {}{}", stdout(&output), stderr(&output));
    };
    // A patch that a command tells from the source is not written.
    let checked = |check: &str, file: &str| {
        let words =
            ["whatif", "thing.trace", "-e", "reorder thing: rank, flag", "--patch", file, "--check", check];
        folder.try_run(&words)
    };
    let output = checked("cat thing.c", "not.patch");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_one_sentence(&output, &["--check: with the patch, `cat thing.c` prints", "no patch is written"]);
    assert!(!folder.0.path().join("not.patch").exists());
    let output = checked("clang-22 -O2 thing.c -o again && ./again", "checked.patch");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("prints the same and exits with the same status"),
        "{}",
        stderr(&output)
    );
    shell("test ! -e again && cmp checked.patch thing.patch && patch -p1 < thing.patch");
    let compile = "clang-22 -std=c11 -Wall -Wextra -pedantic -Werror -O2 thing.c -o after";
    shell(compile);
    shell("./thing > one; ./after > other; cmp one other");
    let patched = fs::read_to_string(folder.0.path().join("thing.c")).expect("a file");
    let rank =
        patched.find("/* read by each pass */\n  int rank;\n  char flag; // seldom").expect("both moved");
    assert!(rank < patched.find("double *first").expect("the others follow"), "{patched}");
    // A source that is not the one that was compiled is not patched.
    let output = folder.try_run(&["whatif", "thing.trace", "-e", "reorder thing: rank", "--patch", "none"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["--patch", "thing.c was changed"]);
    // Nor is one with a date of before the build, and another text.
    shell("touch -d '1 hour ago' thing.c");
    let output = folder.try_run(&["whatif", "thing.trace", "-e", "reorder thing: rank", "--patch", "none"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["--patch", "thing.c", "not the text that was compiled"]);
    fs::write(folder.0.path().join("thing.c"), source).expect("a file");
    shell("touch -d '1 hour ago' thing.c");

    // What a split needs besides is listed, all of it in the file, and nothing there is applied.
    let output = folder.try_run(&[
        "whatif",
        "thing.trace",
        "-e",
        "split thing: hot=rank by=index",
        "--patch",
        "split.patch",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(
        &output,
        &["--patch", "by hand", "thing.c:4: the definition", "thing.c:18: flag is used"],
    );
    let split = fs::read_to_string(folder.0.path().join("split.patch")).expect("a file");
    let task = "go to the cold part by the index that the hot one holds";
    assert!(split.contains(&format!("# thing.c:18: flag is used → {task}\n")), "{split}");
    assert!(split.lines().all(|line| line.starts_with("# ")), "{split}");
    // So it is below the prediction, and in JSON.
    assert!(stdout(&output).contains(&format!("thing.c:18: flag is used → {task}")), "{}", stdout(&output));
    for (edit, why, task) in [
        ("soa thing", "rank is used", "take it from the array that has it, at the same index"),
        ("aosoa thing by 4", "flag is used", "take element i as `flag[i % 4]` of block i / 4"),
        ("narrow thing: rank to 2", "rank is used", "see that every value fits 2 of 4 bytes"),
        (
            "split thing: hot=rank by=pointer",
            "flag is used",
            "go to the cold part by the pointer that the hot one holds",
        ),
    ] {
        let words = ["whatif", "thing.trace", "-m", "generic", "-e", edit, "--patch", "by-hand", "--json"];
        let output = folder.try_run(&words);
        assert_eq!(output.status.code(), Some(1), "{edit}");
        let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let places = found["by_hand"].as_array().expect("a list");
        let comments = fs::read_to_string(folder.0.path().join("by-hand")).expect("a file");
        assert_eq!(places.len(), comments.lines().count(), "{edit}: {comments}");
        let wanted = serde_json::json!({"place": "thing.c:18", "why": why, "task": task});
        assert!(places.contains(&wanted), "{edit}: {found}");
    }
    // A FIFO in the place of the source is not waited for.
    fs::remove_file(folder.0.path().join("thing.c")).expect("a file");
    shell("mkfifo thing.c");
    let output = folder.try_run(&["whatif", "thing.trace", "-e", "reorder thing: rank", "--patch", "none"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["--patch", "thing.c is no regular file"]);
    // What is not the structure's source is told.
    fs::remove_file(folder.0.path().join("thing.c")).expect("a file");
    let output = folder.try_run(&["whatif", "thing.trace", "-e", "reorder thing: rank", "--patch", "none"]);
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["--patch", "thing"]);
}

#[test]
fn two_traces_are_aligned_by_name() {
    let folder = Folder::new();
    let (before, after) = (folder.record(0), folder.record(2));
    let status = |found: &Value, member: &str| {
        let rows = found["data"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["type"] == "item" && row["member"] == member).expect(member);
        (row["status"].as_str().expect("a word").to_string(), row["wait_cycles_change"].as_f64())
    };
    let same = folder.json(&["diff", &before, &before]);
    assert_eq!(status(&same, "kind"), ("within_noise".to_string(), Some(0.0)));
    // Its structure is smaller now.
    let found = folder.json(&["diff", &before, &after]);
    let (word, change) = status(&found, "kind");
    assert!(word == "better" && change.is_some_and(|change| change < 0.0), "{word} {change:?}");
    // Lines have moved, functions have not.
    let lines = found["lines"].as_array().expect("rows");
    assert!(lines.iter().filter(|row| row["before"].is_object() && row["after"].is_object()).count() > 5);

    let text = folder.run(&["diff", &before, &after, "-m", "./small.toml", "--by", "data,line,object,type"]);
    assert!(text.contains("Data and line, what changed most first"), "{text}");
    let other = folder.json(&["diff", &before, "--other-machine", "generic"]);
    assert_eq!(other["after"]["machine"], "generic");
}
