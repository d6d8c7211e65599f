//! `memlode run --live`: the figures of a stored trace, without one.

use std::fs;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// Threads that meet at a lock, one that waits for all of them, and a child that goes on by itself. With an argument it reads its
/// list for so many ms of processor time, long enough for bursts to be there whatever else the machine does.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct node { long key; struct node *next; long rest[6]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *all;

static void *work(void *argument) {
  long sum = (long)argument;
  for (int i = 0; i < 3000; i++) {
    struct node *node = malloc(sizeof *node);
    node->key = i;
    pthread_mutex_lock(&lock);
    node->next = all;
    all = node;
    for (struct node *other = all; other && other->key > i - 50; other = other->next) sum += other->key;
    pthread_mutex_unlock(&lock);
  }
  return (void *)sum;
}

int main(int count, char **words) {
  pthread_t threads[3];
  if (fork() == 0) _exit((long)work((void *)1) == 0);
  for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  wait(0);
  usleep(50000);
  long sum = 0;
  do {
    for (struct node *node = all; node; node = node->next) sum += node->key;
  } while (count > 1 && clock() < atol(words[1]) * (CLOCKS_PER_SEC / 1000));
  return sum == 0;
}
"#;

struct Built(TempDir);

impl Built {
    fn new() -> Built {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("threads.c"), PROGRAM).expect("a file");
        let built = Built(folder);
        built.run(&["cc", "-O1", "-pthread", "threads.c", "-o", "threads"]);
        built
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn try_run(&self, words: &[&str]) -> Output {
        let ran =
            memlode().args(words).current_dir(self.folder()).env("MEMLODE_HOME", installation()).output();
        ran.expect("it starts")
    }

    fn run(&self, words: &[&str]) -> Output {
        let output = self.try_run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        output
    }
}

/// What is simulated while the program runs is, to the letter, what is simulated of the trace that it leaves.
#[test]
fn live_reports_are_those_of_the_stored_trace() {
    let built = Built::new();
    for (options, program) in
        [(&[][..], &["./threads"][..]), (&["--burst", "5ms/10ms"], &["./threads", "300"])]
    {
        let live =
            ["run", "--live", "-o", "trace", "--force", "-m", "zen4", "--json", "--report-to", "live.json"];
        built.run(&[&live[..], options, &["--wait", "--"], program].concat());
        let live = fs::read_to_string(built.folder().join("live.json")).expect("a report");
        let stored = stdout(&built.run(&["report", "trace", "-m", "zen4", "--json"]));
        assert!(live.contains("\"node\""), "{live}");
        assert_eq!(live, stored, "{options:?}");
    }
}

#[test]
fn live_leaves_nothing_behind() {
    let built = Built::new();
    let output = built.run(&["run", "--live", "-m", "zen4", "--", "./threads"]);
    assert!(stderr(&output).contains("node.key") && stderr(&output).contains("simulated as they came"));
    let mut left: Vec<_> = fs::read_dir(built.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["threads", "threads.c"]);
}

#[test]
fn what_cannot_be_simulated_is_told_before_the_program_runs() {
    let built = Built::new();
    let output = built.try_run(&["run", "--live", "-m", "pdp11", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(125));
    assert_one_sentence(&output, &["pdp11"]);
    for option in [&["--to", "ram"][..], &["--discard"], &["--no-report"]] {
        let output = built.try_run(&[&["run", "--live"][..], option, &["--", "touch", "ran"]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    assert!(!built.folder().join("ran").exists());
}
