//! Data that threads share, as reports and advice have them: edits that keep what the program means, elements of arrays, locks, waiting loops.

use std::fs;

use serde_json::Value;

use crate::whatif::Folder;
use crate::{installation, memlode, stderr, stdout};

/// A pool of spin locks of one byte, sums under them, a sum that both threads add to, and a number that each takes.
const MEANINGS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
static pthread_barrier_t both;
struct lock { atomic_flag held; };
static struct lock *pool;
static long count[41 * 8];
static _Alignas(64) atomic_long added;
static _Alignas(64) atomic_long ticket;
static void *work(void *p) {
  long sold = 0;
  pthread_barrier_wait(&both);
  for (unsigned i = 0; i < 20000; i++) {
    if (i % 8 == 0) sched_yield(); // so they take turns on one core, too
    unsigned at = (i + (unsigned)(long)p * 20) % 41;
    while (atomic_flag_test_and_set_explicit(&pool[at].held, memory_order_acquire))
      sched_yield(); // or all that is lost would be little beside a wait for one that does not run
    count[at * 8]++;
    atomic_flag_clear_explicit(&pool[at].held, memory_order_release);
    atomic_fetch_add_explicit(&added, 1, memory_order_relaxed);
    sold += atomic_fetch_add_explicit(&ticket, 1, memory_order_relaxed);
  }
  return (void *)sold;
}
int main(void) {
  pthread_t t[2];
  pool = calloc(41, sizeof *pool);
  pthread_barrier_init(&both, 0, 2);
  for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return added != 40000;
}
"#;

/// Two threads write every other int of a block; or ints with lines of their own, or that lie together by thread.
const ELEMENTS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static int *cell;
static void *work(void *p) {
  for (int i = 0; i < 20000; i++) {
    for (int k = 0; k < 4; k++) {
      volatile int *c = &cell[PLACE((long)p, k)];
      int value = *c;
      value = i % 3 ? value + 1 : 0;
      *c = value;
    }
  }
  return 0;
}
int main(int argc, char **argv) {
  (void)argv;
  pthread_t t[2];
  // As many bytes as nobody knows beforehand, or it would be no block.
  cell = aligned_alloc(64, BYTES * argc);
  for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return 0;
}
"#;

/// The ends of a queue, of a thread each, in a record with a name or without one; or on lines of
/// their own.
const ENDS: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#ifdef NAMED
_Alignas(64) struct queue { atomic_long head, APART tail; long limit; } q;
#else
_Alignas(64) struct { atomic_long head, APART tail; long limit; } q;
#endif
static void *work(void *p) {
  atomic_long *end = p ? &q.head : &q.tail;
  for (int i = 0; i < 200000; i++) atomic_fetch_xor_explicit(end, i, memory_order_relaxed);
  return 0;
}
int main(void) {
  pthread_t t[2];
  for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, work, (void *)i);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return 0;
}
"#;

/// Four threads add to one number under one lock: one that spins, or of another kind.
const ONE_LOCK: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
static struct { atomic_int lock, next; long value; } m;
#if defined TICKET
#define TAKE() int mine = atomic_fetch_add(&m.next, 1); while (atomic_load(&m.lock) != mine) sched_yield()
#define GIVE() atomic_store(&m.lock, mine + 1)
#elif defined MUTEX
// As in Rust: a library waits, which is not recorded.
__attribute__((noinline, disable_sanitizer_instrumentation)) static void wait_for_it(void) {
  do sched_yield(); while (atomic_exchange(&m.lock, 2));
}
#define TAKE() int is_free = 0; \
  if (!atomic_compare_exchange_strong_explicit(&m.lock, &is_free, 1, memory_order_acquire, memory_order_relaxed)) wait_for_it()
#define GIVE() atomic_exchange_explicit(&m.lock, 0, memory_order_release)
#elif defined SEMAPHORE
static sem_t one;
#define TAKE() sem_wait(&one)
#define GIVE() sem_post(&one)
#else
#define TAKE() while (atomic_exchange_explicit(&m.lock, 1, memory_order_acquire))
#define GIVE() atomic_store_explicit(&m.lock, 0, memory_order_release)
#endif
static void *work(void *x) {
  for (int i = 0; i < 5000; i++) {
    TAKE();
    m.value++;
    GIVE();
  }
  return x;
}
int main(void) {
  pthread_t t[4];
#ifdef SEMAPHORE
  sem_init(&one, 0, 1);
#endif
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  return m.value != 20000;
}
"#;

/// A ring of few slots between two threads, each of which waits for the other; one way or both ways keep what they saw.
const RING: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
enum { N = 20000, CAP = 4 };
static struct {
  _Alignas(64) atomic_size_t w; _Alignas(64) size_t seen_r; _Alignas(64) atomic_size_t r; _Alignas(64) size_t seen_w;
  _Alignas(64) int slot[CAP];
} q;
static long total;
static void *consume(void *x) {
  long s = 0;
  for (size_t i = 0; i < N; i++) {
#ifdef KEEP
    while (q.seen_w == i) { q.seen_w = atomic_load_explicit(&q.w, memory_order_acquire); sched_yield(); }
#else
    while (atomic_load_explicit(&q.w, memory_order_acquire) == i) ;
#endif
    s += q.slot[i % CAP];
    atomic_store_explicit(&q.r, i + 1, memory_order_release);
  }
  total = s;
  return x;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, consume, 0);
  for (size_t i = 0; i < N; i++) {
#ifdef KEEP
    while (i - q.seen_r == CAP) { q.seen_r = atomic_load_explicit(&q.r, memory_order_acquire); sched_yield(); }
#else
    while (i - atomic_load_explicit(&q.r, memory_order_acquire) == CAP) ;
#endif
    q.slot[i % CAP] = (int)i;
    atomic_store_explicit(&q.w, i + 1, memory_order_release);
  }
  return pthread_join(t, 0);
}
"#;

/// Each of four threads counts in a structure of its own while it walks over particles.
const TALLY: &str = r#"
#include <pthread.h>
#include <stdlib.h>
typedef struct { long seen, odd; double sum; } tally;
typedef struct { double x, y, z; int kind; double mass, charge; char name[24]; } particle;
enum { PARTICLES = 4000, ROUNDS = 10 };
static particle *p;
static tally *t;
static void *walk(void *mine) {
  volatile tally *m = mine;
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < PARTICLES; i++) {
      m->seen++;
      if (p[i].kind & 1) m->odd++;
      m->sum += p[i].x;
    }
  return 0;
}
int main(void) {
  pthread_t threads[4];
  p = calloc(PARTICLES, sizeof *p);
  t = calloc(4, sizeof *t);
  for (int i = 0; i < PARTICLES; i++) { p[i].kind = i >> 4; p[i].x = i; }
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, walk, &t[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return 0;
}
"#;

fn record(folder: &Folder, name: &str, source: &str, options: &[&str]) -> String {
    fs::write(folder.0.path().join("shared.c"), source).expect("a file");
    let trace = format!("{name}.trace");
    folder.run(&[&["cc", "-O2", "-g", "-pthread"], options, &["shared.c", "-o", name]].concat());
    folder.run(&["record", "-o", &trace, "--", &format!("./{name}")]);
    trace
}

fn text(found: &Value) -> String {
    found
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| format!("{}{}\n", item["edits"], item["edit"]))
        .collect()
}

/// Copies of a lock exclude nobody, and copies of a ticket's number sell each twice; only a sum can be kept in parts.
#[test]
fn only_what_is_merely_added_to_gets_a_copy_for_each_thread() {
    let folder = Folder::new();
    let trace = record(&folder, "meanings", MEANINGS, &[]);
    let found = folder.json(&["advise", &trace]);
    let tried = text(&found["worth_it"]) + &text(&found["rejected"]);
    assert!(!tried.contains("per-thread \\\"shared.c") && !tried.contains("per-thread shared.c"), "{tried}");
    assert!(!tried.contains("per-thread ticket"), "{tried}");
    // What it gains depends on how often they came to it at once.
    assert!(tried.contains("per-thread count") || tried.contains("per-thread added"), "{tried}{found:#}");
}

/// Elements that are no records can have lines of their own, or lie together by thread, and lose what those of programs do that
/// place them so.
#[test]
fn elements_lie_apart_as_those_of_the_edited_program_do() {
    let folder = Folder::new();
    let lost = |found: &Value| found["lost_cycles"].as_f64().expect("a number");
    let place = |place: &str, bytes: &str| [format!("-DPLACE(p,k)={place}"), format!("-DBYTES={bytes}")];
    let built = |name: &str, [place, bytes]: [String; 2]| {
        let trace = record(&folder, name, ELEMENTS, &[&place, &bytes]);
        let lost = folder.json(&["report", &trace])["sharing"]["cycles"].as_f64().expect("a number");
        (trace, lost)
    };
    let (beside, was) = built("beside", place("(p)+2*(k)", "64"));
    let (_, padded) = built("padded", place("16*((p)+2*(k))", "512"));
    let (_, dealt) = built("dealt", place("32*(p)+(k)", "256"));
    assert!(was > 100_000.0 && padded < was / 20.0 && dealt < was / 20.0, "{was} {padded} {dealt}");
    let line = ELEMENTS.lines().position(|line| line.contains("aligned_alloc")).expect("the line") + 1;
    for (edit, actual) in [
        (format!("align shared.c:{line} to 64 of=element"), padded),
        (format!("deal shared.c:{line} by 2"), dealt),
    ] {
        let found = folder.json(&["whatif", &beside, "-e", &edit]);
        let predicted = lost(&found["comparison"]["after"]);
        assert!((predicted - actual).abs() < was * 0.05, "{edit}: {was}, {predicted} for {actual}");
        assert_eq!(found["verdict"], "worth_it", "{edit}");
    }
    let advised = folder.json(&["advise", &beside]);
    let first = advised["worth_it"][0]["edits"][0].as_str().expect("an edit");
    assert!(first.contains("of=element") || first.starts_with("deal "), "{first}");
}

/// The schedule decides the order in which threads get a lock: its cost has a range, and no layout
/// is rejected for a small gain.
#[test]
fn a_lock_that_several_threads_take_is_told_with_a_range() {
    let folder = Folder::new();
    // A look in vain that ends a chunk may count. Whoever waits for the mutex gets it unseen.
    for (name, options, least) in [
        ("locked", &[][..], 20_000.0),
        ("ticket", &["-DTICKET"][..], 20_000.0),
        ("semaphore", &["-DSEMAPHORE"][..], 20_000.0),
        ("mutex", &["-DMUTEX"][..], 2000.0),
    ] {
        let trace = record(&folder, name, ONE_LOCK, options);
        let report = folder.json(&["report", &trace]);
        let [lock] = &report["sharing"]["locks"].as_array().expect("locks")[..] else {
            panic!("{name}: {report:#}")
        };
        let number = |key: &str| lock[key].as_f64().expect(key);
        assert!((least..20_200.0).contains(&number("takes")), "{name}: {lock}");
        assert_eq!(lock["threads"].as_array().map(Vec::len), Some(4), "{name}: {lock}");
        assert!(number("changes") <= number("most_changes") && number("ms") <= number("most_ms"), "{lock}");
        if options.is_empty() {
            assert_eq!(number("most_changes"), number("takes") - 1.0, "{lock}");
            // A transfer to the one who takes it, and one back to the one who gives it: 118 cycles
            // of 3 GHz each.
            let transfers = number("most_changes") * 2.0;
            assert!((number("most_ms") - transfers * 118.0 / 3e6).abs() < 0.1, "{lock}");
        }
        for command in ["report", "advise"] {
            let text = folder
                .run(&[command, &trace, "-m", "./small.toml"])
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            assert!(text.contains("if threads took turns"), "{text}");
            assert!(!text.contains("would gain little") && !text.contains("nothing to gain"), "{text}");
        }
    }
}

/// Looks in vain do not count, also where its loop keeps what it saw, or lets others run: however
/// long threads wait, they take no more lines than the elements that they hand over.
#[test]
fn waiting_loops_may_keep_what_they_see() {
    let folder = Folder::new();
    let rest = |name: &str, options: &[&str]| {
        let trace = record(&folder, name, RING, options);
        folder.json(&["report", &trace])["sharing"]["rest_ms"].as_f64().expect("a number")
    };
    // Both counters, their copies and the slot, there and back, at 118 cycles of 3 GHz.
    let most = 20_000.0 * 2.0 * 5.0 * 118.0 / 3e6;
    let (plain, keeps) = (rest("plain", &[]), rest("keeps", &["-DKEEP"]));
    assert!(plain <= most && keeps <= most, "{plain} {keeps}, at most {most}");
}

/// One list by time: an object whose lines threads take from each other leads it, once, with its pairs and its edit.
#[test]
fn an_object_that_threads_share_is_one_finding_among_the_others() {
    let folder = Folder::new();
    let trace = record(&folder, "tally", TALLY, &[]);
    let report = folder.json(&["report", &trace]);
    let objects = report["sharing"]["objects"].as_array().expect("objects");
    let first = &objects[0];
    assert_eq!(first["edits"][0], "align tally to 64", "{first}");
    assert!(first["false_rows"].as_array().is_some_and(|rows| rows.len() > 1), "{first}");
    let text = folder.run(&["report", &trace, "-m", "./small.toml"]);
    let list = text.split("\nFindings").nth(1).expect("findings");
    assert_eq!(list.matches("threads take its lines from each other").count(), 1, "{text}");
    let said = list.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("F1 tally."), "{text}");
    assert!(!said.contains("→"), "nobody has replayed an edit: {text}");
    let findings = list.split("\n\n").next().expect("lines");
    assert!(findings.lines().all(|line| line.chars().count() <= 120), "{text}");
    // Its edit is told once it was confirmed.
    let kept = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("MEMLODE_RESULTS", "on");
        let output = command.current_dir(folder.0.path()).args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    kept(&["advise", &trace, "-m", "./small.toml"]);
    let said = kept(&["report", &trace, "-m", "./small.toml"]);
    let arrow = said.split("→ align tally to 64: ").nth(1).expect("an arrow");
    assert!(arrow.split_whitespace().take(3).any(|word| word == "fewer"), "{said}");
}

#[test]
fn members_of_one_record_are_parted_that_threads_take_from_each_other() {
    let folder = Folder::new();
    fs::write(folder.0.path().join("ends.c"), ENDS.replace("APART tail", "tail")).expect("a file");
    fs::write(folder.0.path().join("apart.c"), ENDS.replace("atomic_long head, APART tail", APART))
        .expect("a file");
    let record = |source: &str, option: &str| {
        let trace = format!("{source}{option}.trace");
        folder.run(&["cc", "-O2", "-g", "-pthread", option, &format!("{source}.c"), "-o", source]);
        folder.run(&["record", "-o", &trace, "--", &format!("./{source}")]);
        trace
    };
    let edited = folder.json(&["report", &record("apart", "-DNAMED")])["sharing"]["cycles"].as_f64();
    for option in ["-DNAMED", "-DNAMELESS"] {
        let trace = record("ends", option);
        let advised = folder.json(&["advise", &trace]);
        let best = &advised["worth_it"][0];
        let edit = best["edits"][0].as_str().expect("an edit");
        assert!(edit.starts_with("align ") && edit.ends_with(": tail to 64"), "{edit}");
        let lost = |side: &str| best["comparison"][side]["lost_cycles"].as_f64().expect("a number");
        assert!(lost("before") > 100_000.0 && lost("after") < lost("before") / 50.0, "{best}");
        let actual = edited.unwrap_or_default();
        assert!((lost("after") - actual).abs() < lost("before") / 50.0, "{} for {actual}", lost("after"));
        let report = folder.run(&["report", &trace, "-m", "./small.toml"]);
        assert!(!report.contains("would gain little"), "{report}");
    }
}

/// The ends on lines of their own.
const APART: &str = "atomic_long head; _Alignas(64) atomic_long tail";
