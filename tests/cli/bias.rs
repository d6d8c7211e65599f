//! `memlode alias` and `memlode bias`: names and laws, never times.

use std::fs;
use std::process::Command as Process;

use serde_json::Value;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

fn json(arguments: &[&str]) -> Value {
    let output = memlode().args(arguments).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// One loop reads an array one element before the place, modulo 4 KiB, that it has just written in another; a second loop
/// does the same 2 KiB away, where nothing agrees.
const ALIASING: &str = r#"
static _Alignas(4096) volatile long from[512], to[512];
int main(void) {
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 200; i++) {
      to[i + 1] = from[i];
    }
    for (int i = 0; i < 200; i++) {
      to[i + 257] = from[i];
    }
  }
  return 0;
}
"#;

#[test]
fn the_pair_that_aliases_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("work.c"), ALIASING).expect("a file");
    let run = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(folder.path());
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    run(&["cc", "-O1", "work.c", "-o", "work"]);
    run(&["record", "-o", "trace", "--", "./work"]);
    let found: Value =
        serde_json::from_str(&run(&["alias", "trace", "-m", "generic", "--json"])).expect("JSON");
    let [pair] = &found["tables"][0]["rows"].as_array().expect("rows")[..] else { panic!("{found}") };
    assert_eq!((&pair["load"]["variable"], &pair["store"]["variable"]), (&"from".into(), &"to".into()));
    assert_eq!((&pair["load_line"]["line"], &pair["store_line"]["line"]), (&6.into(), &6.into()));
    // Each load but a round's first meets the store just before it.
    assert_eq!(pair["conflicts"], 1990);
    assert_eq!(pair["least_accesses"], 1);
    assert_eq!(pair["apart_bytes"].as_i64().expect("a distance") % 4096, 0);
    let text = run(&["alias", "trace", "-m", "generic"]);
    assert!(text.contains("from") && text.contains("work.c:6"), "{text}");
    assert!(!run(&["alias", "trace", "-m", "generic", "--least", "2k"]).contains("from"));
}

/// Equal bits are an equivalence: what collides with the same page collides with each other. That holds whether the
/// processor compares them or not.
#[test]
fn pages_that_collide_are_classes() {
    let found = json(&["bias", "pages", "--pages", "120", "--json"]);
    let pages = &found["pages"];
    assert_eq!(pages["pairs"], 120 * 119 / 2);
    let (colliding, contradictions) =
        (pages["colliding"].as_u64().expect("a count"), pages["contradictions"].as_u64().expect("a count"));
    // One in 256 by chance; a neighbour that takes the cache away for a while can cost a verdict.
    assert!(colliding < 200 && contradictions <= 2, "{found}");
}

#[test]
fn allocators_are_asked_in_a_process_of_their_own() {
    let found = json(&["bias", "alloc", "--json"]);
    let rows = found["allocators"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["allocator"] == name).expect("a row");
    let low = |name: &str, size: usize| row(name)["sizes"][size]["low12"].as_u64().expect("a count");
    // What every version of these is known to do: large blocks of glibc and tcmalloc begin alike, jemalloc's do not.
    assert_eq!((low("usual", 0), low("usual", 3)), (0, 3));
    assert_eq!(low("tcmalloc", 2), 3);
    assert_eq!(low("jemalloc", 2), 0);
    let output =
        memlode().args(["bias", "alloc", "--library", "/nonexistent.so"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["/nonexistent.so", "no such file"]);
}

#[test]
fn too_little_time_is_said_before_it_is_spent() {
    for words in [&["bias", "env", "--time-limit", "1s", "sleep", "0.01"][..], &["bias", "env", "false"]] {
        let output = memlode().args(words).output().expect("memlode runs");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert_one_sentence(&output, &[]);
    }
}

/// Links of one program: as many ratios as links, whose median is 1, and a floor that a gate can read.
#[test]
fn links_have_a_floor() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in
        [("a", "int b(void);\nint main(void) { return b(); }\n"), ("b", "int b(void) { return 0; }\n")]
    {
        fs::write(folder.path().join(format!("{name}.c")), text).expect("a file");
        let mut compiler = Process::new("clang-22");
        let status = compiler.arg("-c").arg(format!("{name}.c")).current_dir(folder.path()).status();
        assert!(status.expect("clang-22 runs").success());
    }
    let object = |name: &str| folder.path().join(name).display().to_string();
    let line = format!("clang-22 {} {} -o {{out}}", object("a.o"), object("b.o"));
    let found =
        json(&["bias", "link", "--relink", &line, "--links", "5", "--time-limit", "3s", "--json", "program"]);
    let links = found["floor"]["links"].as_array().expect("a list");
    assert_eq!(links.len(), 6);
    assert!(found["floor"]["floor"].as_f64().expect("a number") >= 0.0);
    assert!(found["sentence"].as_str().expect("text").contains("inks of the same code"));
    let output =
        memlode().args(["bias", "link", "--relink", "cc x -o {out}", "x"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["nothing in the link line"]);
}

#[test]
fn events_are_read_from_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    let rows: String =
        (0..50).map(|at| format!("{},{},{}\n", at * 16, if at == 9 { 200 } else { 100 }, at % 3)).collect();
    fs::write(&file, format!("bytes,cycles,event\n{rows}")).expect("a file");
    let found = json(&["bias", "counters", &file.display().to_string(), "--json"]);
    assert_eq!(found["spikes"], serde_json::json!(["144"]));
    assert_eq!(found["rows"][1]["event"], "event");
    let output = memlode().args(["bias", "counters"]).arg(&file).args(["--cycles", "nothing"]).output();
    assert_one_sentence(
        &output.expect("memlode runs"),
        &["table.csv", "no column `nothing`", "bytes, cycles, event"],
    );
}
