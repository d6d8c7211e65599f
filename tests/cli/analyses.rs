//! Findings of analyses of every access: `memlode replay --analyse` and `memlode timeline`.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, evidence, installation, memlode, stderr, stdout};

/// Two threads share one counter, one line of cache without a common word, and a table that they
/// only read. Data of one thread are not reported, nor data that it hands over once.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
struct slot { long hits; };
static volatile struct slot slots[2] __attribute__((aligned(64)));
static _Alignas(64) _Atomic long turns;
static _Alignas(64) volatile long own[2][8];
static _Alignas(64) volatile long table[64];
static _Alignas(64) volatile long handed;
static void *work(void *argument) {
  long me = (long)argument;
  handed += me;
  for (int i = 0; i < 3000; i++) {
    slots[me].hits++;
    own[me][0] += table[i % 64];
    if (i % 4 == 0) atomic_fetch_add(&turns, 1);
  }
  return 0;
}
int main(void) {
  pthread_t other;
  for (int i = 0; i < 64; i++) table[i] = i;
  for (int i = 0; i < 1000; i++) handed = i;
  pthread_create(&other, 0, work, (void *)1);
  work((void *)0);
  return pthread_join(other, 0);
}
"#;

pub struct Recorded(pub TempDir);

impl Recorded {
    fn new() -> Recorded {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("work.c"), PROGRAM).expect("a file");
        let recorded = Recorded(folder);
        recorded.run(&["cc", "-O1", "work.c", "-o", "work", "-lpthread"]);
        recorded.run(&["record", "-o", "trace", "--", "./work"]);
        recorded
    }

    fn try_run(&self, words: &[&str]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "100").current_dir(self.0.path());
        command.args(words).output().expect("memlode runs")
    }

    pub fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    pub fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[words, &["-m", "generic", "--json"]].concat())).expect("JSON")
    }
}

#[test]
fn shared_memory_is_named() {
    let recorded = Recorded::new();
    let found = recorded.json(&["replay", "trace", "--analyse", "shared"]);
    let [words, lines] = &found["tables"].as_array().expect("tables")[..] else { panic!("{found}") };
    // Not the table, which is only read, nor what was handed over: 1001 accesses against one.
    let [turns] = &words["rows"].as_array().expect("rows")[..] else { panic!("{words}") };
    assert_eq!(turns["data"]["variable"], "turns");
    assert_eq!(turns["line"]["line"], 16);
    assert_eq!((&turns["accesses"], &turns["writes"]), (&1500.into(), &1500.into()));
    assert_eq!((&turns["words"], &turns["threads"]), (&1.into(), &2.into()));
    assert_eq!(turns["by_thread"], serde_json::json!([[0, 750], [1, 750]]));
    let [slots] = &lines["rows"].as_array().expect("rows")[..] else { panic!("{lines}") };
    assert_eq!((&slots["data"]["member"], &slots["with"]["member"]), (&"hits".into(), &"hits".into()));
    assert_eq!((&slots["lines"], &slots["accesses"]), (&1.into(), &12_000.into()));

    let few = recorded.json(&["replay", "trace", "--analyse", "shared:least=1501"]);
    assert_eq!(few["tables"][0]["rows"], serde_json::json!([]));
    let uneven = recorded.json(&["replay", "trace", "--analyse", "shared:ratio=1e9,least=1002"]);
    let with_handed = uneven["tables"][0]["rows"].as_array().expect("rows");
    assert!(with_handed.iter().any(|row| row["data"]["variable"] == "handed"), "{uneven}");

    let text = recorded.run(&["replay", "trace", "--analyse", "shared", "-m", "generic"]);
    assert!(text.contains("0: 50%, 1: 50%"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    for (wanted, part) in [
        ("shard", "shared (memory"),
        ("shared:most=1", "no argument `most`; it has least, ratio, rule"),
        ("shared:least=x", "`x` is no value for least"),
        ("shared:least", "expected name=value"),
    ] {
        assert_one_sentence(&recorded.try_run(&["replay", "trace", "--analyse", wanted]), &[wanted, part]);
    }
    let output = recorded.try_run(&["replay", "trace"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Sixty-four kilobytes, ten times over; one word all the time; and jumps.
const WALKS: &str = r#"
struct line { volatile long word; char rest[56]; };
static struct line lines[1024] __attribute__((aligned(4096)));
static _Alignas(4096) volatile long stays;
static _Alignas(4096) volatile char wide[1 << 20];
int main(void) {
  unsigned seed = 1;
  for (int round = 0; round < 10; round++)
    for (int i = 0; i < 1024; i++) lines[i].word++;
  for (int i = 0; i < 5000; i++) stays = i;
  for (int i = 0; i < 5000; i++) { seed = seed * 1103515245 + 12345; wide[seed >> 12] = 1; }
  return 0;
}
"#;

#[test]
fn locality_is_what_was_programmed() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("walks.c"), WALKS).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "walks.c", "-o", "walks"]);
    recorded.run(&["record", "-o", "trace", "--", "./walks"]);
    let all = ["reuse", "strides", "working-set:every=20480"].map(|name| ["--analyse", name]).concat();
    let found = recorded.json(&[&["replay", "trace"], &all[..]].concat());
    let table = |id: &str| {
        let tables = found["tables"].as_array().expect("tables");
        let table =
            tables.iter().find(|table| table["table"] == id).unwrap_or_else(|| panic!("{id} in {found}"));
        table["rows"].as_array().expect("rows").clone()
    };
    let of = |rows: &[Value], name: &str| {
        let named = |row: &&Value| row["data"]["member"] == name || row["data"]["variable"] == name;
        rows.iter().find(named).unwrap_or_else(|| panic!("{name} in {rows:?}")).clone()
    };

    // Each line is loaded and stored: the store finds it, the load after 1023 others, the first time not at all.
    let reuse = table("reuse_by_data");
    let word = of(&reuse, "word");
    assert_eq!((&word["accesses"], &word["first_touches"]), (&20_480.into(), &1024.into()));
    assert_eq!((&word["misses_32KiB"], &word["misses_1MiB"]), (&0.5.into(), &0.05.into()));
    let distances = word["distances"].as_array().expect("buckets");
    assert_eq!(distances[0], serde_json::json!([0, 10_240]));
    let (from, n) = (&distances[1][0], &distances[1][1]);
    assert!((60 * 1024..64 * 1024).contains(&from.as_u64().expect("bytes")) && *n == 9216, "{word}");
    let curve = table("miss_ratio_curve");
    let misses = |bytes: u64| {
        let row = curve.iter().find(|row| row["cache_bytes"] == bytes).expect("a size");
        row["misses"].as_u64().expect("a number")
    };
    let only_walk = misses(32 << 10) - misses(64 << 10);
    assert!(
        (9216..9216 + 300).contains(&only_walk),
        "the walk fits into 64 KiB and not into 32, as do a few jumps: {curve:?}"
    );
    assert!(curve.windows(2).all(|pair| pair[0]["misses"].as_u64() >= pair[1]["misses"].as_u64()));

    let strides = table("strides");
    let word = of(&strides, "word");
    assert_eq!((&word["pattern"], &word["usual_step"]), (&"strided".into(), &64.into()));
    assert_eq!((&word["accesses"], &word["by_thread"]), (&10_240.into(), &serde_json::json!([[0, 10_240]])));
    assert_eq!(of(&strides, "stays")["pattern"], "constant");
    assert_eq!(of(&strides, "wide")["pattern"], "random");

    // The first interval is the walk; the rest is one word, and five thousand bytes all over a megabyte.
    let set = table("working_set");
    assert_eq!((&set[0]["lines_bytes"], &set[0]["pages_bytes"]), (&65_536.into(), &65_536.into()));
    assert_eq!(set[0]["new_bytes"], 65_536);
    assert_eq!(set[1]["pages_bytes"], (1 << 20) + 4096);
    let text = recorded.run(&[&["replay", "trace", "-m", "generic"], &all[..]].concat());
    assert!(text.contains("strided") && text.contains('█') && text.contains("64 KiB"), "{text}");
    let wrong = recorded.try_run(&["replay", "trace", "--analyse", "working-set:every=0"]);
    assert_one_sentence(&wrong, &["every=0"]);
}

/// The same jumps three times: from node to node of a list, by an array of indices, and by a random number.
const JUMPS: &str = r#"
enum { N = 1 << 14 };
struct node { struct node *next; volatile long key; char rest[48]; };
struct cell { volatile long value; char rest[56]; };
struct slot { volatile long entry; char rest[56]; };
static struct node nodes[N];
static struct cell cells[N];
static struct slot slots[N];
static unsigned order[N], seed = 1;
static unsigned below(unsigned n) { seed = seed * 1103515245 + 12345; return (seed >> 8) % n; }
__attribute__((noinline)) static long walk(const struct node *n) {
  long sum = 0;
  for (; n; n = n->next) sum += n->key;
  return sum;
}
int main(void) {
  for (unsigned i = 0; i < N; i++) {
    unsigned j = below(i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  for (int i = 1; i < N; i++) nodes[order[i - 1]].next = &nodes[order[i]];
  long sum = walk(&nodes[order[0]]);
  for (int i = 0; i < N; i++) sum += cells[order[i]].value;
  for (int i = 0; i < N; i++) {
    seed = seed * 1103515245 + 12345;
    sum += slots[seed >> 8 & (N - 1)].entry;
  }
  return sum != 0;
}
"#;

#[test]
fn jumps_are_told_apart_by_where_their_addresses_come_from() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("jumps.c"), JUMPS).expect("a file");
    let recorded = Recorded(folder);
    for options in [&["-O2"][..], &["-O0"], &["--fidelity", "source", "-O2"]] {
        recorded.run(&[&["cc"], options, &["jumps.c", "-o", "jumps"]].concat());
        let trace = &format!("trace{}", options.join(""));
        recorded.run(&["record", "-o", trace, "--", "./jumps"]);
        let found = recorded.json(&["replay", trace, "--analyse", "strides"]);
        let rows = found["tables"][0]["rows"].as_array().expect("rows");
        let report = recorded.json(&["report", trace]);
        let findings = report["findings"].as_array().expect("findings");
        assert!(!findings.is_empty(), "{report}");
        let sites = recorded.run(&["dump", "--sites", trace]);
        for (member, pattern, dependence) in
            [("key", "chasing", "chased"), ("value", "gather", "loaded"), ("entry", "random", "computed")]
        {
            let row = rows.iter().find(|row| row["data"]["member"] == member);
            let row = row.unwrap_or_else(|| panic!("{member} in {rows:?}"));
            assert_eq!(row["pattern"], pattern, "{options:?} {row}");
            // What waits little is no finding.
            for finding in findings.iter().filter(|finding| finding["member"] == member) {
                assert_eq!(evidence(finding, "addresses")["from"], dependence, "{options:?} {finding}");
            }
            let columns = format!("\t{member}\t{dependence}\t");
            assert!(sites.lines().any(|site| site.contains(&columns)), "{sites}");
        }
    }
    let text = recorded.run(&["report", "trace-O2", "-m", "generic"]);
    assert!(text.contains("pointer chasing: each miss must finish before the next can start"), "{text}");
}

/// One function allocates and one walks, for two callers: a table of 16 KiB ten times over, and one of 128 KiB twice.
const OBJECTS: &str = r#"
#include <stdlib.h>
struct line { volatile long word; char rest[56]; };
__attribute__((noinline)) static struct line *make(long lines) { return aligned_alloc(64, lines * sizeof(struct line)); }
__attribute__((noinline)) static void walk(struct line *table, long lines, int rounds) {
  for (int round = 0; round < rounds; round++)
    for (long i = 0; i < lines; i++) table[i].word = i;
}
__attribute__((noinline)) static struct line *small(void) { struct line *t = make(256); walk(t, 256, 10); return t; }
__attribute__((noinline)) static struct line *large(void) { struct line *t = make(2048); walk(t, 2048, 2); return t; }
int main(void) { return small() == large(); }
"#;

#[test]
fn objects_that_the_same_code_walks_are_told_apart() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("objects.c"), OBJECTS).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "objects.c", "-o", "objects"]);
    recorded.run(&["record", "-o", "trace", "--", "./objects"]);
    let found = recorded.json(&["replay", "trace", "--analyse", "reuse"]);
    let table = |id: &str| {
        let mut tables = found["tables"].as_array().expect("tables").iter();
        let table = tables.find(|table| table["table"] == id).unwrap_or_else(|| panic!("{id} in {found}"));
        table["rows"].as_array().expect("rows").clone()
    };
    let [walked] = &table("reuse_by_data")[..] else { panic!("{found}") };
    assert_eq!((&walked["data"]["member"], &walked["accesses"]), (&"word".into(), &6656.into()));
    let [large, small] = &table("reuse_by_object")[..] else { panic!("{found}") };
    for (row, caller, accesses, lines, misses) in
        [(large, "large", 4096, 2048, (1.0, 0.5)), (small, "small", 2560, 256, (0.1, 0.1))]
    {
        assert_eq!((&row["object"]["kind"], &row["object"]["path"][1]), (&"heap".into(), &caller.into()));
        assert_eq!((&row["accesses"], &row["first_touches"]), (&accesses.into(), &lines.into()));
        assert_eq!((&row["misses_32KiB"], &row["misses_1MiB"]), (&misses.0.into(), &misses.1.into()));
    }
    let text = recorded.run(&["replay", "trace", "--analyse", "reuse", "-m", "generic"]);
    assert!(text.contains("make ← objects.c:9 small ← objects.c:11 main"), "{text}");
}

#[test]
fn a_time_line_adds_up() {
    let recorded = Recorded::new();
    let report = recorded.json(&["report", "trace"]);
    let total = &report["total"];
    for every in ["1000", "7k", "1M", "20us", "1s"] {
        let line = recorded.json(&["timeline", "trace", "--every", every]);
        let rows = line["tables"][0]["rows"].as_array().expect("rows");
        let sum = |name: &str| rows.iter().map(|row| row[name].as_u64().expect(name)).sum::<u64>();
        assert_eq!(total["accesses"], sum("accesses"), "{every}");
        for level in ["L1d", "L2", "L3"] {
            assert_eq!(total["misses"][level], sum(&format!("{level}_misses")), "{every}");
        }
        assert_eq!(total["stall_cycles"], sum("wait_cycles"), "{every}");
        let mut next = 0;
        for row in rows {
            assert_eq!(row["access"], next, "{every}");
            next += row["accesses"].as_u64().expect("accesses");
        }
        let times: Vec<f64> = rows.iter().map(|row| row["seconds"].as_f64().expect("seconds")).collect();
        // Stretches of two threads that ran at the same time come one after the other, and time goes back between them.
        let back = times.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(back <= 2 && times[0] >= 0.0 && times[0] <= times[times.len() - 1], "{times:?}");
        match every {
            "1000" => assert!(rows[..rows.len() - 1].iter().all(|row| row["accesses"] == 1000)),
            "20us" => {
                let number = |time: f64| (time * 1e9).round() as u64 / 20_000;
                assert!(times.windows(2).all(|pair| number(pair[0]) != number(pair[1])), "{times:?}");
            }
            _ => {}
        }
    }
    // An interval in which nothing waits names nothing; the first one waits for what it touches first.
    let line = recorded.json(&["timeline", "trace", "--every", "50"]);
    assert_eq!(line["tables"][0]["rows"][0]["data"]["variable"], "table");
    let text = recorded.run(&["timeline", "trace", "--every", "1000", "-m", "generic"]);
    assert!(text.contains("L1d misses") && text.contains("1.00 k"), "{text}");

    for wrong in ["0", "0ms", "ten", "10 parsecs", "99999999999999999999G"] {
        let output = recorded.try_run(&["timeline", "trace", "--every", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains("such as 500k or 10M"), "{}", stderr(&output));
    }
}

/// One function copies its argument each time, another has a buffer of its own; a list lives as
/// long as it is used, and grows by blocks that take each other's place.
const CALLERS: &str = r#"
#include <stdlib.h>
enum { NUMBERS = 1 << 16, ROUNDS = 4000 };
struct node { struct node *next; volatile long value; };
static inline long scaled(const volatile long *value) { return *value * 3; }
__attribute__((noinline)) static long look_up(const volatile long *numbers, unsigned place) {
  return scaled(&numbers[place % NUMBERS]);
}
__attribute__((noinline)) static long in_order(const volatile long *numbers) {
  long sum = 0;
  for (unsigned i = 0; i < ROUNDS; i++) sum += look_up(numbers, i);
  return sum;
}
__attribute__((noinline)) static long all_over(const volatile long *numbers) {
  long sum = 0;
  for (unsigned i = 0; i < ROUNDS; i++) sum += look_up(numbers, i * 40503u);
  return sum;
}
__attribute__((noinline)) static long walk(const struct node *node) {
  return node->next ? node->value + walk(node->next) * 3 : 0;
}
int main(void) {
  volatile long *numbers = calloc(NUMBERS, sizeof *numbers);
  struct node *nodes = calloc(200, sizeof *nodes);
  for (int i = 0; i < 199; i++) nodes[i].next = &nodes[i + 1];
  long sum = in_order(numbers) + all_over(numbers);
  return sum + walk(nodes) != 0;
}
"#;

/// The functions of a path, each with its line.
pub fn steps(row: &Value) -> Vec<(String, u64)> {
    let steps = row["path"].as_array().expect("lines").iter();
    steps
        .map(|line| (line["function"].as_str().unwrap_or("").into(), line["line"].as_u64().unwrap_or(0)))
        .collect()
}

#[test]
fn call_paths_have_their_lines_and_the_sums_of_the_report() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("callers.c"), CALLERS).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "callers.c", "-o", "callers"]);
    recorded.run(&["record", "-o", "trace", "--", "./callers"]);
    let found = recorded.json(&["replay", "trace", "--analyse", "contexts"]);
    let rows = found["tables"][0]["rows"].as_array().expect("rows");
    let total = &recorded.json(&["report", "trace"])["total"];
    let sum = |column: &str| rows.iter().map(|row| row[column].as_u64().expect("a count")).sum::<u64>();
    for column in ["accesses", "reads", "writes", "stall_cycles"] {
        assert_eq!(total[column], sum(column), "{column}");
    }
    for (level, misses) in total["misses"].as_object().expect("misses by level") {
        assert_eq!(*misses, sum(&format!("{level}_misses")), "{level}");
    }
    let row = |path: &[(&str, u64)]| {
        let path: Vec<_> = path.iter().map(|&(function, line)| (function.to_string(), line)).collect();
        let row = rows.iter().find(|row| steps(row) == path);
        row.unwrap_or_else(|| panic!("{path:?} is none of {:?}", rows.iter().map(steps).collect::<Vec<_>>()))
    };
    let in_order = row(&[("scaled", 5), ("look_up", 7), ("in_order", 11), ("main", 26)]);
    let all_over = row(&[("scaled", 5), ("look_up", 7), ("all_over", 16), ("main", 26)]);
    assert_eq!([&in_order["accesses"], &all_over["accesses"]], [4000, 4000].map(Value::from).each_ref());
    let inlined: Vec<_> =
        in_order["path"].as_array().expect("lines").iter().map(|at| &at["inlined"]).collect();
    assert_eq!(inlined, [true, false, false, false].map(Value::from).each_ref());
    // What one caller misses the other does not.
    let misses = |row: &Value| row["L1d_misses"].as_u64().expect("a count");
    assert!(misses(all_over) > 5 * misses(in_order), "{all_over} {in_order}");
    // Each level of the recursion stands where the first does.
    let walked = rows.iter().filter(|row| steps(row)[0].0 == "walk");
    assert!(walked.clone().all(|row| steps(row)[1..] == [("main".to_string(), 27)]), "{found}");
    assert_eq!(walked.map(|row| row["accesses"].as_u64().expect("a count")).sum::<u64>(), 200 + 199);
    let functions = found["tables"][1]["rows"].as_array().expect("rows");
    let main = functions.iter().find(|row| row["function"]["function"] == "main").expect("a row");
    assert_eq!((&main["accesses"], &main["stall_cycles"]), (&total["accesses"], &total["stall_cycles"]));
}

const HANDED: &str = r#"
#include <pthread.h>
#include <semaphore.h>
struct table { pthread_mutex_t lock; _Alignas(64) volatile long sums[24]; };
static struct table table = { PTHREAD_MUTEX_INITIALIZER }, mine = { PTHREAD_MUTEX_INITIALIZER };
static sem_t turns[2];
__attribute__((noinline)) static void add(struct table *to, int by) {
  pthread_mutex_lock(&to->lock);
  for (int i = 0; i < 24; i += 8) to->sums[i] += by;
  pthread_mutex_unlock(&to->lock);
}
static void *work(void *number) {
  long me = (long)number;
  for (int i = 0; i < 300; i++) {
    sem_wait(&turns[me]);
    add(&table, i);
    if (!me) add(&mine, i);
    sem_post(&turns[1 - me]);
  }
  return 0;
}
int main(void) {
  pthread_t other;
  sem_init(&turns[0], 0, 1);
  sem_init(&turns[1], 0, 0);
  pthread_create(&other, 0, work, (void *)1);
  work((void *)0);
  return pthread_join(other, 0);
}
"#;

/// The threads take turns, so that nothing depends on the schedule.
#[test]
fn locks_have_what_is_done_while_they_are_held() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("handed.c"), HANDED).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "handed.c", "-o", "handed", "-lpthread"]);
    recorded.run(&["record", "-o", "trace", "--", "./handed"]);
    let found = recorded.json(&["replay", "trace", "--analyse", "locks"]);
    // The lock that one thread alone takes is none of several.
    let [lock] = &found["tables"][0]["rows"].as_array().expect("rows")[..] else { panic!("{found}") };
    assert_eq!(lock["lock"]["symbol"], "table", "{lock}");
    let counts = ["locks", "takes", "changes_of_hands", "accesses_held", "lines_came"].map(|key| &lock[key]);
    // Each change brings three lines of sums, of which three are read and written each time.
    assert_eq!(counts, [1, 600, 599, 600 * 6, 599 * 3].map(Value::from).each_ref(), "{lock}");
    assert_eq!(lock["takes_by_thread"], serde_json::json!([[0, 300], [1, 300]]));
    let lines = found["tables"][1]["rows"].as_array().expect("rows");
    let came: Vec<_> = lines.iter().map(|row| (&row["data"]["member"], &row["line"]["line"])).collect();
    assert_eq!(came, [(&Value::from("sums[]"), &Value::from(9))], "{found}");
    assert_eq!(lines[0]["lines_came"], 599 * 3);
}

const MOMENTS: &str = r#"
#include <stdlib.h>
struct node { struct node *next; volatile long key; };
__attribute__((noinline)) static long copied(void) {
  volatile long *copy = malloc(16 * sizeof(long));
  long sum = 0;
  for (int i = 0; i < 16; i++) copy[i] = i;
  for (int i = 0; i < 16; i++) sum += copy[i];
  free((void *)copy);
  return sum;
}
__attribute__((noinline)) static long kept(volatile long *buffer) {
  long sum = 0;
  for (int i = 0; i < 16; i++) buffer[i] = i;
  for (int i = 0; i < 16; i++) sum += buffer[i];
  return sum;
}
int main(void) {
  long sum = 0;
  volatile long *buffer = malloc(16 * sizeof(long));
  struct node *list = 0;
  for (int i = 0; i < 500; i++) {
    struct node *node = malloc(sizeof *node);
    node->next = list, node->key = i, list = node;
    sum += copied() + kept(buffer);
  }
  while (list) {
    struct node *next = list->next;
    sum += list->key;
    free(list);
    list = next;
  }
  free((void *)buffer);
  return sum == 0;
}
"#;

#[test]
fn blocks_that_live_for_a_moment_are_told_with_their_lives() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("moments.c"), MOMENTS).expect("a file");
    let recorded = Recorded(folder);
    recorded.run(&["cc", "-O1", "-fno-builtin", "moments.c", "-o", "moments"]);
    recorded.run(&["record", "-o", "trace", "--", "./moments"]);
    let rows = |wanted: &str| {
        let found = recorded.json(&["replay", "trace", "--analyse", wanted]);
        found["tables"][0]["rows"].as_array().expect("rows").clone()
    };
    let [copies] = &rows("temporaries")[..] else { panic!("{:?}", rows("temporaries")) };
    assert_eq!(copies["object"]["path"][0], "copied", "{copies}");
    let counts = ["blocks", "mean_bytes", "mean_life", "most_alive", "accesses"].map(|key| &copies[key]);
    assert_eq!(counts, [500, 128, 32, 1, 16_000].map(Value::from).each_ref(), "{copies}");
    // Nodes live for half of the first loop and half of the second, on average.
    let all = rows("temporaries:life=1000000");
    let nodes = all.iter().find(|row| row["object"]["path"][0] == "main").expect("a row");
    assert_eq!((&nodes["blocks"], &nodes["most_alive"]), (&500.into(), &500.into()), "{nodes}");
    let life = nodes["mean_life"].as_u64().expect("accesses");
    assert!((16_000..18_000).contains(&life), "{nodes}");
    assert_eq!(rows("temporaries:least=501"), [Value::Null; 0]);
    let text = recorded.run(&["replay", "trace", "--analyse", "temporaries", "-m", "generic"]);
    assert!(text.contains("moments.c:5 copied"), "{text}");
}
