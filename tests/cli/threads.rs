//! Threads are replayed in the order in which they ran.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Two threads take turns; the turn that a slot was written in is the slot's place, so addresses tell the true order.
const PROGRAM: &str = r#"
#include <atomic>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <thread>

constexpr long Turns = 4000;
long Slots[Turns];
static long Turn;
static std::mutex Lock;
static std::atomic<long> Baton;

static void under_lock(long me) {
  for (bool more = true; more;) {
    Lock.lock();
    const long mine = Turn;
    if ((more = mine < Turns) && mine % 2 == me) {
      Slots[mine] = me;
      Turn = mine + 1;
    }
    Lock.unlock();
    if (mine % 2 != me)
      sched_yield();
  }
}

static void by_baton(long me) {
  for (long mine; (mine = Baton.load(std::memory_order_acquire)) < Turns;) {
    if (mine % 2 == me) {
      Slots[mine] = me;
      Baton.store(mine + 1, std::memory_order_release);
    } else {
      sched_yield();
    }
  }
}

int main(int, char **argv) {
  const auto work = strcmp(argv[1], "lock") ? by_baton : under_lock;
  std::thread other(work, 1);
  work(0);
  other.join();
}
"#;

fn build(folder: &Path, stamps: &str) {
    fs::write(folder.join("turns.cpp"), PROGRAM).expect("a file");
    let output = memlode()
        .env("MEMLODE_HOME", installation())
        .env("MEMLODE_STAMPS", stamps)
        .current_dir(folder)
        .args(["c++", "-O2", "turns.cpp", "-o", "turns"])
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Records the program, and returns the turns in the order of the dump.
fn turns(folder: &Path, how: &str) -> Vec<u64> {
    let output = memlode()
        .current_dir(folder)
        .args(["record", "-o", how, "--", "./turns", how])
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let output = memlode().current_dir(folder).args(["dump", how]).output().expect("memlode runs");
    let text = stdout(&output);
    let slots = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let slots = slots.filter(|columns| columns[2] == "store" && columns[7] == "Slots");
    let at = slots.map(|columns| u64::from_str_radix(&columns[3][2..], 16).expect("an address"));
    let at: Vec<u64> = at.collect();
    let first = at.iter().copied().min().expect("turns");
    at.iter().map(|address| (address - first) / 8).collect()
}

#[test]
fn turns_are_replayed_as_they_were_taken() {
    let folder = TempDir::new().expect("a temporary folder");
    build(folder.path(), "1");
    for how in ["lock", "baton"] {
        assert_eq!(turns(folder.path(), how), (0..4000).collect::<Vec<_>>(), "{how}");
    }
}

/// The test above can fail: chunks alone, of many turns each, tell nothing of the order.
#[test]
fn without_stamps_turns_are_out_of_order() {
    let folder = TempDir::new().expect("a temporary folder");
    build(folder.path(), "0");
    assert_ne!(turns(folder.path(), "baton"), (0..4000).collect::<Vec<_>>());
}
