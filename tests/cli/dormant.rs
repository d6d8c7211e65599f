//! Names of blocks that are allocated while recording is off, and accessed when it is on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, shared_folder, stderr, stdout};

/// Makes blocks in every way outside of its region, and touches each in it by a different member.
const PROGRAM: &str = r#"
#include <memlode.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct kept { long kept_word; char rest[120]; };
struct gone { long gone_word; char rest[248]; };
struct reused { long reused_word; char rest[248]; };
struct grown { long grown_word; char rest[1 << 20]; };
struct handed { long handed_word; char rest[56]; };
struct taken { long taken_word; char rest[56]; };
struct child { long child_word; char rest[24]; };
struct thrown { long thrown_word; char rest[24]; };

static struct kept *kept;
static struct reused *reused;
static struct grown *grown;
static struct handed *handed;
static struct taken *taken;
static struct child *child;

__attribute__((noinline)) static void *other(void *argument) {
  free(argument);
  taken = malloc(sizeof *taken); // taken
  handed = malloc(sizeof *handed); // handed
  for (int i = 0; i < 100000; i++)
    free(memset(malloc(sizeof(struct thrown)), 1, sizeof(struct thrown)));
  return NULL;
}

__attribute__((noinline)) static void make(void) {
  kept = malloc(sizeof *kept); // kept
  grown = malloc(16);
  struct gone *gone = malloc(sizeof *gone); // gone
  memset(gone, 1, sizeof *gone);
  free(gone);
  reused = malloc(sizeof *reused); // reused
  if ((void *)reused != (void *)gone)
    exit(3);
  grown = realloc(grown, sizeof *grown); // grown
  pthread_t thread;
  pthread_create(&thread, NULL, other, malloc(sizeof *handed));
  pthread_join(thread, NULL);
}

/* Twice, with a pause in which one block takes another's place. */
__attribute__((noinline)) static void touch(void) {
  for (volatile long *end = &kept->kept_word + 2, *at = &kept->kept_word; at < end; at++)
    kept->kept_word++;
  reused->reused_word++;
  grown->grown_word++;
  handed->handed_word++;
  taken->taken_word++;
  if (child)
    child->child_word++;
}

int main(void) {
  make();
  memlode_start("touch");
  touch();
  memlode_stop("touch");
  void *before = reused;
  free(reused);
  reused = malloc(sizeof *reused); // again
  if ((void *)reused != before)
    exit(4);
  pid_t pid = fork();
  if (pid == 0)
    child = malloc(sizeof *child); // child
  memlode_start("touch");
  touch();
  memlode_stop("touch");
  int status = 0;
  if (pid == 0)
    exit(0);
  waitpid(pid, &status, 0);
  return status != 0;
}
"#;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = shared_folder("blocks");
        fs::write(folder.join("blocks.c"), PROGRAM).expect("a file");
        let output = memlode()
            .env("MEMLODE_HOME", installation())
            .current_dir(&folder)
            .args(["cc", "-O1", "-fno-builtin-malloc", "-g", "-pthread", "blocks.c", "-o", "blocks"])
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        folder
    };
    BUILT.get_or_init(build)
}

/// Returns where a block is made, as a report names it.
fn made_at(mark: &str) -> String {
    let line = PROGRAM.lines().position(|line| line.ends_with(&format!("// {mark}"))).expect("a mark");
    format!("blocks.c:{}", line + 1)
}

fn run(trace: &Path, options: &[&str]) {
    let mut record = memlode();
    record.args(["record", "-o"]).arg(trace).args(options).arg("--").arg(program().join("blocks"));
    let output = record.timeout(std::time::Duration::from_secs(600)).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let check = memlode().arg("check").arg(trace).output().expect("memlode runs");
    assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
}

/// For each member, the objects that its accesses go to, one after the other, in each process.
fn objects(trace: &Path) -> BTreeMap<(u64, String), Vec<String>> {
    let output = memlode()
        .args(["replay", "--annotate", "hits", "--format", "ndjson", "-m", "generic"])
        .arg(trace)
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let mut objects: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in stdout(&output).lines() {
        let access: Value = serde_json::from_str(line).expect("JSON");
        let Some(member) = access["member"].as_str() else { continue };
        let object = access["object"].as_str().unwrap_or("unknown").to_owned();
        let all =
            objects.entry((access["process"].as_u64().expect("a process"), member.to_owned())).or_default();
        if all.last() != Some(&object) {
            all.push(object);
        }
    }
    objects
}

#[test]
fn blocks_that_were_made_while_recording_was_off_have_names() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = folder.path().join("trace");
    run(&trace, &["--region", "touch"]);
    let objects = objects(&trace);
    let of = |process: u64, member: &str| {
        objects
            .get(&(process, member.to_owned()))
            .unwrap_or_else(|| panic!("{member} in {objects:?}"))
            .clone()
    };
    let named = |mark: &str, function: &str| format!("{} {function} ← (recording was off)", made_at(mark));
    for (member, mark, function) in [
        ("kept_word", "kept", "make"),
        ("grown_word", "grown", "make"),
        ("taken_word", "taken", "other"),
        ("handed_word", "handed", "other"),
    ] {
        assert_eq!(of(0, member), [named(mark, function)], "{member}");
    }
    // Neither the name of what lay there before, nor, later, its own of before.
    assert_eq!(of(0, "reused_word"), [named("reused", "make"), named("again", "main")]);
    assert_eq!(of(1, "child_word"), [named("child", "main")]);
    assert!(!objects.contains_key(&(0, "gone_word".to_owned())));
}

/// A trace does not grow with objects that no recorded access can meet.
#[test]
fn what_came_and_went_while_recording_was_off_is_left_out() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = folder.path().join("trace");
    run(&trace, &["--region", "touch"]);
    let dump = memlode().arg("dump").arg(&trace).output().expect("memlode runs");
    let text = stdout(&dump);
    let kinds = |kind: &str| text.lines().filter(|line| line.split('\t').nth(2) == Some(kind)).count();
    assert!(kinds("dormant") >= 2, "{text}");
    assert!((6..20_000).contains(&kinds("alloc")), "{} allocations", kinds("alloc"));
}

/// Allocations are recorded in front of the requested stretch, and not behind it.
#[test]
fn a_delay_is_no_loss() {
    let folder = TempDir::new().expect("a temporary folder");
    let trace = folder.path().join("trace");
    run(&trace, &["--allow-empty", "--delay", "100s"]);
    let dump = memlode().arg("dump").arg(&trace).output().expect("memlode runs");
    assert!(stdout(&dump).contains(&made_at("kept")), "{}", stdout(&dump));
    let report = memlode().args(["report", "-m", "generic"]).arg(&trace).output().expect("memlode runs");
    assert_eq!(report.status.code(), Some(1));
    assert_one_sentence(&report, &["holds no accesses: recording began after 100s, and the program ran for"]);
}
