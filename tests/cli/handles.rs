//! Handles: recordings of one program give a finding one name, and commands know what it stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{installation, memlode, shared_folder, stderr, stdout};

/// Two types of which a function each waits for, counters of several threads in one line, and a lock that all take.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>

struct item { long key; char payload[40]; int kind; struct item *next; };
struct slot { struct slot *next; long rest[7]; };
struct counter { volatile long hits; };
static struct counter counters[8];
static struct slot slots[1 << 14];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long total;
static pthread_barrier_t step_of_all;

static void *count(void *of) {
  struct counter *counter = of;
  // In step, so that threads take lines from each other whatever else the machine does.
  for (int step = 0; step < 400; step++) {
    for (int i = 0; i < 20; i++) counter->hits++;
    pthread_barrier_wait(&step_of_all);
  }
  for (int i = 0; i < 2000; i++) {
    pthread_mutex_lock(&lock);
    total++;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

__attribute__((noinline)) static long walk(int steps) {
  for (int i = 0; i < 1 << 14; i++) slots[i].next = &slots[(i * 7919 + 1) % (1 << 14)];
  struct slot *at = slots;
  while (steps-- > 0) at = at->next;
  return at->rest[0];
}

int main(int count_of, char **words) {
  enum { ITEMS = 20000 };
  int number = atoi(words[1]);
  struct item *items = calloc(ITEMS, sizeof *items);
  for (int i = 0; i < ITEMS; i++) items[i].next = &items[(i * 7919L + 1) % ITEMS];
  long sum = walk(200000);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < ITEMS; i++) sum += items[i].key + items[i].kind;
  pthread_t threads[8];
  pthread_barrier_init(&step_of_all, NULL, number);
  for (int i = 0; i < number; i++) pthread_create(&threads[i], NULL, count, &counters[i]);
  for (int i = 0; i < number; i++) pthread_join(threads[i], NULL);
  free(items);
  return sum == count_of;
}
"#;

/// Two threads in one folder, four in another that was moved, and two of a source whose lines lie elsewhere.
fn recorded() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = shared_folder("handles");
        let moved = format!("// A line more,\n\n// and another one.\n{PROGRAM}");
        for (name, text) in [("one", PROGRAM), ("two", &moved)] {
            fs::create_dir(folder.join(name)).expect("a folder");
            fs::write(folder.join(name).join("program.c"), text).expect("a file");
            let source = format!("{name}/program.c");
            let program = format!("{name}/program");
            succeed(&folder, &["cc", "-O2", "-pthread", &source, "-o", &program]);
        }
        for (trace, program, threads) in
            [("two-threads", "one", "2"), ("four-threads", "one", "4"), ("moved-lines", "two", "2")]
        {
            let program = format!("./{program}/program");
            succeed(&folder, &["record", "-o", trace, "--", &program, threads]);
        }
        fs::create_dir(folder.join("elsewhere")).expect("a folder");
        fs::rename(folder.join("four-threads"), folder.join("elsewhere/four")).expect("a new name");
        folder
    })
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = memlode();
    command.env_remove("MEMLODE_RESULTS").env("MEMLODE_HOME", installation());
    command.current_dir(folder).args(words).output().expect("memlode runs")
}

fn succeed(folder: &Path, words: &[&str]) -> Output {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    output
}

fn json(words: &[&str]) -> Value {
    let output = succeed(recorded(), &[words, &["--json"]].concat());
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn report(trace: &str, machine: &str) -> Value {
    json(&["report", trace, "-m", machine])
}

fn rows<'r>(of: &'r Value, list: &str) -> &'r [Value] {
    of[list].as_array().map_or(&[], |rows| &rows[..])
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_default().to_string()
}

/// The lists of a report whose rows have handles.
fn lists(report: &Value) -> Vec<(&'static str, &[Value])> {
    let sharing = &report["sharing"];
    let of_sharing = ["objects", "locks", "false_sharing", "true_sharing", "handed_over"];
    let lists = of_sharing.into_iter().map(|list| (list, rows(sharing, list)));
    [("findings", rows(report, "findings"))].into_iter().chain(lists).collect()
}

/// A row's subject as a reader would tell it to somebody else: no address, count or thread.
fn subject(row: &Value) -> String {
    let access =
        |of: &Value| ["type", "member", "function", "line"].map(|name| of[name].to_string()).join(" ");
    // The line of a pair is one of the cache: an address.
    let own = if row["missed"].is_null() { access(row) } else { String::new() };
    let object = &row["object"];
    let object = ["kind", "symbol", "variable", "function"].map(|name| object[name].to_string()).join(" ");
    format!("{} | {object} | {} | {}", own, access(&row["missed"]), access(&row["written"]))
}

/// Subjects and handles by list.
fn handles(report: &Value) -> BTreeMap<(&'static str, String), String> {
    let mut found = BTreeMap::new();
    for (list, rows) in lists(report) {
        let handles: BTreeSet<String> = rows.iter().map(|row| text(&row["handle"])).collect();
        assert_eq!(handles.len(), rows.len(), "{list}: no two have one handle");
        assert!(handles.iter().all(|handle| handle.len() == 8), "{list}: {handles:?}");
        found.extend(rows.iter().map(|row| ((list, subject(row)), text(&row["handle"]))));
    }
    found
}

#[test]
fn recordings_of_one_binary_give_a_finding_one_handle() {
    let two = handles(&report("two-threads", "generic"));
    for other in [report("elsewhere/four", "generic"), report("elsewhere/four", "zen4")] {
        let other = handles(&other);
        let common = two.iter().filter(|(subject, _)| other.contains_key(subject));
        let mut lists = BTreeMap::<&str, usize>::new();
        for (subject, handle) in common {
            assert_eq!(handle, &other[subject], "{subject:?}");
            *lists.entry(subject.0).or_default() += 1;
        }
        for list in ["findings", "objects", "locks"] {
            assert!(lists.contains_key(list), "{list} are in both: {lists:?}");
        }
        assert!(lists["findings"] >= 2, "{lists:?}");
        let pairs = lists.get("false_sharing").or(lists.get("true_sharing"));
        assert!(pairs.is_some(), "{lists:?}");
    }
}

#[test]
fn lines_that_move_keep_their_handles() {
    let names = |report: &Value| -> BTreeSet<String> {
        rows(report, "findings").iter().map(|row| text(&row["handle"])).collect()
    };
    let (before, after) = (report("two-threads", "generic"), report("moved-lines", "generic"));
    assert_eq!(names(&before), names(&after));
    assert_ne!(before["findings"][0]["line"], after["findings"][0]["line"]);
}

#[test]
fn a_report_shows_what_is_named() {
    let whole = report("two-threads", "generic");
    let shown = stdout(&succeed(recorded(), &["report", "two-threads", "-m", "generic"]));
    let first = shown.lines().find(|line| line.starts_with("F1 ")).expect("the first finding");
    let handle = first.split_whitespace().last().expect("its handle").to_string();
    let lock = text(&whole["sharing"]["locks"][0]["handle"]);
    assert!(shown.contains(&format!("lock {lock}: ")), "{shown}");
    let only = |name: &str| json(&["report", "two-threads", "-m", "generic", "--only", name]);
    let part = only(&handle);
    assert_eq!(part, only("F1"));
    let kept: Vec<&Value> = lists(&part).into_iter().flat_map(|(_, rows)| rows).collect();
    assert!(kept.iter().any(|row| row["handle"] == handle[..]), "{kept:?}");
    assert_eq!(part["total"], whole["total"]);
    let second = text(&whole["findings"][1]["handle"]);
    let part = only(&second);
    assert_eq!(rows(&part, "findings"), &whole["findings"].as_array().expect("rows")[1..2]);
    assert_eq!(rows(&part["sharing"], "objects").len(), 0);
    let line = &rows(&part, "lines")[0];
    assert_eq!(rows(&part, "lines").len(), 1);
    for name in ["type", "member", "line", "accesses", "misses"] {
        assert_eq!(line[name], whole["findings"][1][name], "{name}");
    }
    let part = only(&lock);
    assert_eq!((rows(&part["sharing"], "locks").len(), rows(&part, "findings").len()), (1, 0));
    let refused = run(recorded(), &["report", "two-threads", "-m", "generic", "--only", "0badcafe"]);
    assert!(!refused.status.success() && stderr(&refused).contains("nothing here is called 0badcafe"));
}

#[test]
fn a_comparison_and_exports_are_of_what_is_named() {
    let whole = report("two-threads", "generic");
    let finding = &whole["findings"][0];
    let handle = text(&finding["handle"]);
    let words = ["diff", "two-threads", "elsewhere/four", "-m", "generic", "--only", &handle];
    let changes = json(&words);
    for list in ["data", "lines", "types"] {
        assert!(!rows(&changes, list).is_empty(), "{list}");
        for row in rows(&changes, list) {
            assert!(rows(row, "findings").contains(&Value::from(&handle[..])), "{row}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let export = |name: &str, more: &[&str]| {
        let file = folder.path().join(name);
        let to = file.to_str().expect("a name");
        let words = ["export", "two-threads", "-m", "generic", "--to", to];
        succeed(recorded(), &[&words[..], more].concat());
        fs::read_to_string(&file).expect("a file")
    };
    let sarif = |more: &[&str]| -> Value { serde_json::from_str(&export("x.sarif", more)).expect("JSON") };
    let fingerprint = |of: &Value| text(&of["partialFingerprints"]["memlodeHandle/v1"]);
    let all = sarif(&[]);
    let results = rows(&all["runs"][0], "results");
    let named: Vec<String> = rows(&whole, "findings").iter().map(|row| text(&row["handle"])).collect();
    assert_eq!(results.iter().map(fingerprint).collect::<Vec<_>>(), named);
    let one = sarif(&["--only", &handle]);
    assert_eq!(rows(&one["runs"][0], "results").iter().map(fingerprint).collect::<Vec<_>>(), [&handle[..]]);
    // A profile of one finding sums up to its accesses.
    let stacks = export("x.folded", &["--only", &handle, "--metric", "accesses"]);
    let values =
        stacks.lines().map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()));
    assert_eq!(values.map(Option::unwrap).sum::<u64>(), finding["accesses"].as_u64().expect("a count"));
    let csv = export("x.csv", &["--only", &handle, "--table", "findings"]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(csv.contains(&handle), "{csv}");
}

#[test]
fn an_edit_goes_by_its_handle() {
    let advice = json(&["advise", "two-threads", "-m", "generic"]);
    let best = &advice["worth_it"][0];
    let handle = text(&best["handle"]);
    assert!(rows(&advice, "rejected").iter().all(|row| text(&row["handle"]).len() == 8), "{advice}");
    let found = json(&["whatif", "two-threads", "-m", "generic", "--edit", &handle]);
    assert_eq!((&found["edits"], &found["gain"]), (&best["edits"], &best["gain"]));
    // What the edit does to a finding is known by the finding's handle, in advice, too.
    let whole = report("two-threads", "generic");
    let named: BTreeSet<String> = rows(&whole, "findings").iter().map(|row| text(&row["handle"])).collect();
    for outcome in [&found, best] {
        let changes = rows(&outcome["comparison"], "lines").iter().flat_map(|row| rows(row, "findings"));
        let found: BTreeSet<String> = changes.map(text).collect();
        assert!(!named.is_empty() && found.is_superset(&named), "{found:?} {named:?}");
        // What else they have is about what threads share.
        let whole = whole.to_string();
        assert!(found.iter().all(|handle| whole.contains(&format!("\"{handle}\""))), "{found:?}");
    }
    // The same edit of another recording, on another machine.
    let edits: Vec<String> = rows(best, "edits").iter().map(text).collect();
    let options: Vec<&str> = edits.iter().flat_map(|edit| ["--edit", edit]).collect();
    let elsewhere = json(&[&["whatif", "elsewhere/four", "-m", "zen4"], &options[..]].concat());
    assert_eq!(text(&elsewhere["handle"]), handle);
    let refused = run(recorded(), &["whatif", "elsewhere/four", "-m", "generic", "--edit", "0badcafe"]);
    let told = stderr(&refused);
    assert!(!refused.status.success() && told.contains("no finding and no advice"), "{told}");
}
