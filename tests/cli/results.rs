//! Answers that are kept beside a trace: they equal what is computed, to the byte, and are used only where they are right.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::{executables, installation, memlode, shared_folder, stderr, stdout};

/// Records with cold members, a list, and counters of two threads in one line; there is something to advise.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>

struct item { long key; char payload[40]; int kind; struct item *next; };
struct counter { volatile long hits; };
static struct counter counters[2];

static void *count(void *of) {
  struct counter *counter = of;
  for (int i = 0; i < ROUNDS; i++) counter->hits++;
  return NULL;
}

int main(void) {
  enum { ITEMS = 20000 };
  struct item *items = calloc(ITEMS, sizeof *items);
  for (int i = 0; i < ITEMS; i++) items[i].next = &items[(i * 7919L + 1) % ITEMS];
  long sum = 0;
  for (int round = 0; round < 6; round++)
    for (int i = 0; i < ITEMS; i++) sum += items[i].key + items[i].kind;
  for (struct item *at = items; at && sum < ITEMS; at = at->next) sum++;
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, count, &counters[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  free(items);
  return sum == 0;
}
"#;

/// The sentence by which a kept answer is distinguished from a computed one.
const KEPT: &str = "--again computes it anew";

/// Each command that keeps its answer, with options of its own. `@` is a trace, `%` another one.
const COMMANDS: [&[&str]; 18] = [
    &["report", "@"],
    &["report", "@", "--by", "all", "--context", "2", "--top", "3"],
    &["report", "@", "--threads", "recorded"],
    &["report", "@", "--function", "main", "--between", "1000..90000"],
    &["sim", "@"],
    &["sim", "@", "-m", "zen4", "--by", "all", "--threads", "parallel"],
    &["sim", "@", "--pages", "2MiB@heap,4KiB@nowhere", "--rules", "lru"],
    &["sim", "@", "--time", "--by", "all"],
    &["timeline", "@", "--every", "20k"],
    &["replay", "@", "--analyse", "shared", "--analyse", "reuse"],
    &["replay", "@", "--analyse", "strides", "--analyse", "working-set:every=10000"],
    &["alias", "@", "--least", "1"],
    &["advise", "@", "--context", "1"],
    &["whatif", "@", "--edit", "split item: hot=key,kind by=index", "--by", "all"],
    &["whatif", "@", "--search", "item", "--sim"],
    &["whatif", "@", "--edits", "edits.txt"],
    &["diff", "@", "%", "--by", "all"],
    &["diff", "@", "--other-machine", "zen4"],
];

/// A folder with the program, two traces of it, and a file of edits.
fn recorded() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = shared_folder("results");
        fs::write(folder.join("program.c"), PROGRAM).expect("a file");
        fs::write(folder.join("edits.txt"), "pad counter to 64\nreorder item: key, kind\n").expect("a file");
        for (rounds, trace) in [("2000", "one"), ("3000", "other")] {
            let rounds = format!("-DROUNDS={rounds}");
            succeed(&folder, &["cc", "-O2", "-pthread", &rounds, "program.c", "-o", "program"]);
            succeed(&folder, &["record", "-o", trace, "--", "./program"]);
        }
        folder
    })
}

/// memlode as users have it, who keep answers; on a machine that is the same everywhere.
fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = memlode();
    command.env_remove("MEMLODE_RESULTS").env("MEMLODE_HOME", installation());
    command.current_dir(folder).args(words);
    let analyses = !["cc", "record", "check", "results", "guide"].contains(&words[0]);
    if analyses && !words.iter().any(|word| ["-m", "--machine"].contains(word)) {
        command.args(["--machine", "generic"]);
    }
    command.output().expect("memlode runs")
}

fn succeed(folder: &Path, words: &[&str]) -> Output {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    output
}

/// A copy of a recorded trace, without answers and with dates of its own.
fn copy(trace: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let to = folder.path().join(trace);
    copy_below(&recorded().join(trace), &to);
    fs::remove_dir_all(to.join("results")).unwrap_or_default();
    (folder, to)
}

fn copy_below(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        match entry.path().is_dir() {
            true => copy_below(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy")),
        }
    }
}

/// Lets everybody read a folder and all in it, and nobody write.
fn make_read_only(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => make_read_only(&path),
            false => fs::set_permissions(&path, Permissions::from_mode(0o555)).expect("a mode"),
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o555)).expect("a mode");
}

/// The answers beside a trace.
fn kept(trace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace.join("results")).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn is_kept(output: &Output) -> bool {
    stderr(output).contains(KEPT)
}

/// Standard error without the sentence about the kept answer, and without what a search says on its
/// way: it is progress.
fn said(output: &Output) -> String {
    let progress = ["memlode: found: ", "memlode: trying edits: "];
    let is_answer =
        |line: &&str| !line.contains(KEPT) && !progress.iter().any(|beginning| line.starts_with(beginning));
    stderr(output).lines().filter(is_answer).map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_is_kept_equals_what_is_computed() {
    let (folder, trace) = copy("one");
    let (_other, other) = copy("other");
    fs::copy(recorded().join("edits.txt"), folder.path().join("edits.txt")).expect("a file");
    for command in COMMANDS {
        let words = command.iter().map(|&word| match word {
            "@" => trace.to_str().expect("a name"),
            "%" => other.to_str().expect("a name"),
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let with = |more: &[&'static str]| succeed(folder.path(), &[&words[..], more].concat());
        let computed = with(&["--again", "--no-keep"]);
        let computed_json = with(&["--json", "--again"]);
        let (kept, kept_json) = (with(&[]), with(&["--json"]));
        for (computed, kept) in [(&computed, &kept), (&computed_json, &kept_json)] {
            assert!(!is_kept(computed) && is_kept(kept), "{words:?}: {}", stderr(kept));
            assert!(stdout(computed) == stdout(kept), "{words:?}:\n{}\n{}", stdout(computed), stdout(kept));
            assert_eq!(said(computed), said(kept), "{words:?}");
            assert!(!kept.stdout.is_empty(), "{words:?}");
        }
        serde_json::from_str::<Value>(&stdout(&kept_json)).expect("JSON");
    }
    let advice = succeed(folder.path(), &["advise", trace.to_str().expect("a name"), "--json"]);
    let advice: Value = serde_json::from_str(&stdout(&advice)).expect("JSON");
    assert_ne!(advice["worth_it"].as_array().map(Vec::len), Some(0), "something is advised: {advice}");
    assert_ne!(advice["rejected"].as_array().map(Vec::len), Some(0), "something is not: {advice}");
    let whole = succeed(folder.path(), &["check", trace.to_str().expect("a name")]);
    assert!(stdout(&whole).starts_with("whole"), "{}", stdout(&whole));
}

#[test]
fn a_copy_brings_its_answers_along_until_it_is_changed() {
    let (folder, trace) = copy("one");
    assert!(!is_kept(&succeed(folder.path(), &["report", "one"])));
    let elsewhere = folder.path().join("elsewhere");
    copy_below(&trace, &elsewhere);
    let there = succeed(folder.path(), &["report", "elsewhere", "--json"]);
    assert!(is_kept(&there), "{}", stderr(&there));
    let computed = succeed(folder.path(), &["report", "elsewhere", "--json", "--again"]);
    assert_eq!(stdout(&there), stdout(&computed), "it names the trace where it is now");
    // The length stays; a byte of the packed accesses does not.
    let thread = elsewhere.join("threads/p0000-t0000.mlt");
    let mut bytes = fs::read(&thread).expect("a file");
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&thread, bytes).expect("a file");
    let changed = run(folder.path(), &["report", "elsewhere", "--json"]);
    assert!(!is_kept(&changed) && stderr(&changed).contains("this one was changed"), "{}", stderr(&changed));
}

/// If nobody may write to the folder of the trace, the answer is printed all the same, and nothing is kept.
#[test]
fn a_trace_that_cannot_be_written_to_is_no_error() {
    let (folder, trace) = copy("one");
    let program = folder.path().join("memlode");
    executables::copy(memlode().get_program(), &program);
    let computed = stdout(&succeed(folder.path(), &["report", "one", "--no-keep"]));
    make_read_only(folder.path());
    let mut command = Command::new(&program);
    // Modes do not hold the superuser.
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command.env_remove("MEMLODE_RESULTS").current_dir(folder.path());
    let output = command.args(["report", "one", "--machine", "generic"]).output().expect("memlode runs");
    // So that the folders can be removed by others than the superuser.
    for path in [folder.path(), &trace, &trace.join("threads")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    }
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((stdout(&output), kept(&trace)), (computed, Vec::new()));
    assert!(!stderr(&output).contains("error"), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_no_answer_of_this_question_is_reported_and_not_used() {
    let (folder, trace) = copy("one");
    let right = stdout(&succeed(folder.path(), &["report", "one", "--json"]));
    let [file] = &kept(&trace)[..] else { panic!("one answer is kept") };
    let text = fs::read_to_string(file).expect("text");
    let unsealed = |text: &str| format!("{}}}", text.rsplit_once(",\"crc32\"").expect("a seal").0);
    let sealed = |text: String| memlode_trace::log::seal(&unsealed(&text));
    assert_eq!(sealed(text.clone()), text);
    let foreign = copy("other");
    succeed(foreign.0.path(), &["report", "other"]);
    let foreign = fs::read_to_string(&kept(&foreign.1)[0]).expect("text");
    let own = env!("CARGO_PKG_VERSION");
    for (planted, why) in [
        (text[..text.len() / 2].to_string(), "it is damaged"),
        (text.replacen("\"reads\":", "\"reads\":1", 1), "it is damaged"),
        (String::new(), "it is damaged"),
        ("{}".to_string(), "it is damaged"),
        (sealed(text.replacen("\"report\":{", "\"advice\":{", 1)), "it is damaged"),
        (
            sealed(text.replacen(&format!("\"memlode\":\"{own}+"), "\"memlode\":\"0.0.9+", 1)),
            "memlode 0.0.9+",
        ),
        (sealed(text.replacen("\"version\":1", "\"version\":2", 1)), "was made by other code"),
        (
            sealed(text.replacen("\"command\":\"report\"", "\"command\":\"sim\"", 1)),
            "answers another question",
        ),
        (foreign, "it is about another trace"),
    ] {
        assert_ne!(planted, text, "{why}");
        fs::write(file, planted).expect("a file");
        let answer = succeed(folder.path(), &["report", "one", "--json"]);
        let told = stderr(&answer);
        assert!(told.contains(why) && told.contains("computed anew") && !is_kept(&answer), "{why}: {told}");
        assert_eq!(told.lines().filter(|line| line.contains("is not used")).count(), 1, "{told}");
        assert_eq!(stdout(&answer), right, "{why}");
        // What was computed took its place.
        assert!(is_kept(&succeed(folder.path(), &["report", "one", "--json"])), "{why}");
    }
    let listed = succeed(folder.path(), &["results", "one"]);
    assert!(stdout(&listed).starts_with("report --machine generic  "), "{}", stdout(&listed));
}

#[test]
fn no_link_is_followed_and_nothing_is_waited_for() {
    let (folder, trace) = copy("one");
    let right = stdout(&succeed(folder.path(), &["report", "one", "--json"]));
    let file = kept(&trace).remove(0);
    let name = file.file_name().expect("a name").to_owned();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::rename(&file, outside.join(&name)).expect("a file");
    let answer = |why: &str| {
        let answer = succeed(folder.path(), &["report", "one", "--json"]);
        assert_eq!(stdout(&answer), right);
        assert!(!is_kept(&answer) && stderr(&answer).contains(why), "{}", stderr(&answer));
    };
    symlink(outside.join(&name), &file).expect("a link");
    answer("is a symbolic link, not a regular file");
    assert!(fs::symlink_metadata(&file).expect("a file").is_file(), "a fresh file took the link's place");
    fs::remove_file(&file).expect("a file");
    let fifo = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo runs");
    assert!(fifo.success());
    answer("is a FIFO, not a regular file");
    // The whole folder is a link, or no folder: nothing can be written, and that is no error.
    fs::remove_dir_all(trace.join("results")).expect("a folder");
    symlink(&outside, trace.join("results")).expect("a link");
    let before = fs::read(outside.join(&name)).expect("a file");
    answer("results is a symbolic link, not a directory");
    assert_eq!(fs::read(outside.join(&name)).expect("a file"), before);
    fs::remove_file(trace.join("results")).expect("a link");
    fs::write(trace.join("results"), "mine").expect("a file");
    answer("results is a regular file, not a directory");
    assert_eq!(fs::read_to_string(trace.join("results")).expect("a file"), "mine");
}

#[test]
fn whatever_changes_an_answer_is_part_of_the_question() {
    let (folder, trace) = copy("one");
    fs::write(folder.path().join("m.toml"), machine(32)).expect("a file");
    fs::write(folder.path().join("edits.txt"), "pad counter to 64").expect("a file");
    let report = ["report", "one", "-m", "m.toml"];
    let what_if = ["whatif", "one", "--edits", "edits.txt"];
    for command in [&report, &what_if] {
        assert!(!is_kept(&succeed(folder.path(), command)));
        assert!(is_kept(&succeed(folder.path(), command)));
    }
    fs::write(folder.path().join("m.toml"), machine(64)).expect("a file");
    fs::write(folder.path().join("edits.txt"), "pad counter to 128").expect("a file");
    for command in [&report, &what_if] {
        assert!(!is_kept(&succeed(folder.path(), command)), "{command:?}");
    }
    for more in [["--threads", "recorded"], ["--file", "program.c"], ["--thread", "1"]] {
        assert!(!is_kept(&succeed(folder.path(), &[&report[..], &more].concat())), "{more:?}");
    }
    for more in [["--top", "1"], ["--by", "type"], ["--context", "3"]] {
        assert!(is_kept(&succeed(folder.path(), &[&report[..], &more].concat())), "{more:?}");
    }
    // A patch is made of what is computed, not of what is kept.
    let patch = folder.path().join("patch");
    let [trace_name, patch_name] = [&trace, &patch].map(|path| path.to_str().expect("a name"));
    let edit = ["whatif", trace_name, "--edit", "pad counter to 64"];
    assert!([&edit, &edit].map(|edit| is_kept(&succeed(recorded(), edit))) == [false, true]);
    let patched = succeed(recorded(), &[&edit[..], &["--patch", patch_name]].concat());
    assert!(!is_kept(&patched) && patch.exists(), "{}", stderr(&patched));
    let count = kept(&trace).len();
    succeed(folder.path(), &["report", "one", "-m", "zen4", "--no-keep"]);
    assert_eq!(kept(&trace).len(), count);
    let mut off = memlode();
    off.env("MEMLODE_RESULTS", "off").current_dir(folder.path()).args(report);
    assert!(!is_kept(&off.output().expect("memlode runs")), "nothing is looked up");
}

/// Commands at once write one file, or several; each reader finds whole ones.
#[test]
fn commands_at_once_never_mix() {
    let (folder, trace) = copy("one");
    let right = stdout(&succeed(folder.path(), &["report", "one", "--json", "--no-keep"]));
    std::thread::scope(|scope| {
        let asked = [&["--json"][..], &["--json", "--again"]].repeat(3);
        let threads: Vec<_> = asked
            .into_iter()
            .map(|more| {
                let folder = folder.path();
                scope.spawn(move || succeed(folder, &[&["report", "one"], more].concat()))
            })
            .collect();
        for thread in threads {
            let answer = thread.join().expect("it ends");
            assert_eq!(stdout(&answer), right);
            assert!(!stderr(&answer).contains("is not used"), "{}", stderr(&answer));
        }
    });
    let [file] = &kept(&trace)[..] else { panic!("one file: {:?}", kept(&trace)) };
    assert!(memlode_trace::log::is_sealed(&fs::read_to_string(file).expect("text")));
}

fn machine(size: u32) -> String {
    format!(
        "name = \"m\"\ndescription = \"d\"\nsources = [\"made up\"]\ncores = 2\nline_bytes = 64\n\
         memory_latency_cycles = 100\n[[level]]\nname = \"L1d\"\nsize = \"{size} KiB\"\nways = 8\nlatency_cycles = 4\n"
    )
}

/// The guide's examples are members of what the commands print, each with a value of its kind.
#[test]
fn the_guide_shows_what_commands_print() {
    let (folder, _trace) = copy("one");
    std::fs::rename(folder.path().join("one"), folder.path().join("trace")).expect("a new name");
    let guide = stdout(&succeed(folder.path(), &["guide"]));
    let examples: Vec<(&str, &str)> = guide
        .split("\n`memlode ")
        .filter_map(|part| {
            let (command, rest) = part.split_once("`\n\n```json\n")?;
            Some((command, rest.split_once("\n```")?.0))
        })
        .collect();
    assert!(examples.len() >= 6, "{}", examples.len());
    for (command, example) in examples {
        let words: Vec<String> = shell_words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let printed = stdout(&succeed(folder.path(), &words));
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        let example: Value = serde_json::from_str(example).expect("JSON");
        let missing = missing(&example, &printed, String::new());
        assert!(missing.is_empty(), "memlode {command}: {missing:?} of the guide's example");
    }
}

/// Words between blanks; quotes hold some together.
fn shell_words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.flat_map(|words: Vec<String>| words).collect()
}

/// Paths of members that `there` does not have, or has with a value of another kind. Of a list, some element has them.
fn missing(example: &Value, there: &Value, path: String) -> Vec<String> {
    match (example, there) {
        (Value::Object(members), Value::Object(others)) => members
            .iter()
            .flat_map(|(name, value)| match others.get(name) {
                Some(other) => missing(value, other, format!("{path}.{name}")),
                None => vec![format!("{path}.{name}")],
            })
            .collect(),
        (Value::Array(some), Value::Array(all)) => some
            .iter()
            .filter(|value| !all.iter().any(|other| missing(value, other, path.clone()).is_empty()))
            .map(|_| format!("{path}[]"))
            .collect(),
        (Value::Null, _) | (Value::String(_), Value::String(_)) | (Value::Bool(_), Value::Bool(_)) => {
            Vec::new()
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() == other.is_f64() => Vec::new(),
        _ => vec![path],
    }
}

/// All text of a page, which holds its data packed.
fn unpacked(page: &str) -> String {
    let script = "import base64, re, sys, zlib\n\
                  page = open(sys.argv[1]).read()\n\
                  packed = re.search(r'id=\"data\">([^<]*)<', page).group(1)\n\
                  print(page, zlib.decompress(base64.b64decode(packed)).decode())";
    let output = std::process::Command::new("python3").args(["-c", script, page]).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// Source lines of a file that is confidential are in nothing that a command prints or writes.
#[test]
fn confidential_sources_are_nowhere() {
    let (folder, trace) = copy("one");
    let name = trace.to_str().expect("a name");
    let told = |words: &[&str]| {
        let output = succeed(folder.path(), words);
        stdout(&output) + &stderr(&output)
    };
    // Lines of the program that findings, listings and pages show.
    let secret =
        |text: &str| ["sum += items[i].key", "counter->hits++"].iter().any(|line| text.contains(line));
    assert!(secret(&told(&["report", name])) && secret(&told(&["annotate", name])), "lines are shown");
    let source = recorded().join("program.c");
    let [source, below] = [&source, recorded()].map(|path| path.to_str().expect("a name"));
    for hidden in ["program.c", source, below] {
        for command in ["report", "annotate", "advise"] {
            for form in [&["--confidential", hidden][..], &["--confidential", hidden, "--json"]] {
                let text = told(&[&[command, name], form].concat());
                assert!(!secret(&text) && text.contains("it is confidential"), "{command} {hidden}: {text}");
            }
        }
    }
    let page = folder.path().join("page.html");
    let page = page.to_str().expect("a name");
    for (hidden, shows) in [(&[][..], true), (&["--confidential", "program.c"], false)] {
        told(&[&["html", name, "-o", page], hidden].concat());
        // Words are coloured one by one there.
        assert_eq!(unpacked(page).contains("ITEMS"), shows, "{hidden:?}");
    }
    let patch = folder.path().join("patch");
    let patch = patch.to_str().expect("a name");
    let edit = ["whatif", name, "--edit", "pad counter to 64", "--patch", patch];
    let refused = run(recorded(), &[&edit[..], &["--confidential", "program.c"]].concat());
    assert!(!refused.status.success() && stderr(&refused).contains("confidential"), "{}", stderr(&refused));
    assert!(!Path::new(patch).exists());
    // Nothing that is kept or exported has source lines at all.
    for ending in ["sarif", "csv", "folded", "callgrind", "firefox.json"] {
        let file = folder.path().join(format!("x.{ending}"));
        told(&["export", name, "--to", file.to_str().expect("a name")]);
        assert!(!secret(&fs::read_to_string(&file).expect("a file")), "{ending}");
    }
    for file in kept(&trace) {
        assert!(!secret(&fs::read_to_string(&file).expect("a file")), "{}", file.display());
    }
    // A name that hides nothing may be mistyped.
    let mistyped = run(folder.path(), &["report", name, "--confidential", "porgram.c"]);
    assert!(!mistyped.status.success() && stderr(&mistyped).contains("no source of the program is called"));
}
