//! `memlode alias` and `memlode bias`: names and laws, never times.

use std::fs;
use std::path::Path;
use std::process::{Command as Process, Output};

use serde_json::Value;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

fn json(arguments: &[&str]) -> Value {
    let output = memlode().args(arguments).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// Returns what memlode prints within a time limit of some seconds. On a busy machine the fewest timings may take longer, which
/// memlode says: then with more time.
fn in_time(seconds: u64, run: impl Fn(&str) -> Output) -> Output {
    let output = run(&format!("{seconds}s"));
    let is_busy = !output.status.success() && stderr(&output).contains("--time-limit");
    if is_busy && seconds < 600 { in_time(8 * seconds, run) } else { output }
}

/// The same as JSON; `LIMIT` among the words is the limit.
fn json_in_time(seconds: u64, words: &[&str]) -> Value {
    let output = in_time(seconds, |limit| {
        let words = words.iter().map(|word| if *word == "LIMIT" { limit } else { word });
        memlode().args(words).output().expect("memlode runs")
    });
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
    let words =
        ["bias", "link", "--relink", &line, "--links", "5", "--time-limit", "LIMIT", "--json", "program"];
    let found = json_in_time(3, &words);
    let links = found["floor"]["links"].as_array().expect("a list");
    assert_eq!(links.len(), 6);
    assert!(found["floor"]["floor"].as_f64().expect("a number") >= 0.0);
    assert!(found["sentence"].as_str().expect("text").contains("inks of the same code"));
    let output =
        memlode().args(["bias", "link", "--relink", "cc x -o {out}", "x"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["nothing in the link line"]);
}

/// `memlode cc` leaves the link line in a program: `bias link` and `bench` need no other, as long as it still makes the same
/// program. Where the data of the looked-at function lie is what the order of the link decides.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_link_line_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    let run = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(folder.path()).args(words);
        command.output().expect("memlode runs")
    };
    let json = |words: &[&str]| -> Value {
        let output = run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    write(
        "main.c",
        "extern volatile char to[], from[];\n__attribute__((noinline)) void work(void) {\n  for (int i = 0; i < 1000; i++)\n    \
         to[i + 1] = from[i];\n}\nint main(void) { work(); return 0; }\n",
    );
    for (name, bytes) in [("to", 4096), ("from", 4096), ("hole", 2048)] {
        write(&format!("{name}.c"), &format!("_Alignas(16) char {name}[{bytes}] = {{1}};\n"));
    }
    write("inputs", "main.c to.c from.c hole.c");
    assert!(run(&["cc", "-O1", "@inputs", "-o", "program"]).status.success());
    fs::remove_file(folder.path().join("inputs")).expect("a file");
    let words = ["bias", "link", "--function", "work", "--links", "12", "--seed", "1", "--json"];
    let output = in_time(8, |limit| {
        run(&[&words[..], &["--time-limit", limit, "--svg", "links.svg", "./program"]].concat())
    });
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let floor = &found["floor"];
    assert!(floor["varied"].as_str().expect("text").contains("order of 4 objects"), "{floor}");
    let counts = floor["aliasing"]["aliases"].as_array().expect("a list");
    // With the hole between them the arrays agree nowhere, and else everywhere.
    assert_eq!(counts.len(), 13);
    assert!(counts.iter().any(|count| *count == 0), "{floor}");
    assert!(counts.iter().any(|count| count.as_u64() > Some(900)), "{floor}");
    let pair = &floor["aliasing"]["pairs"][0];
    assert_eq!(
        (&pair["load"]["data"], &pair["store"]["data"]),
        (&"from+1".into(), &"to+1".into()),
        "{floor}"
    );
    let svg = fs::read_to_string(folder.path().join("links.svg")).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("red: data alias"));
    // Links that would take most of the time are not made: a busy machine gets all that they need.
    let words = ["--rounds", "12", "--links", "6", "--time-limit", "600s", "--json", "./program"];
    let compared = json(&[&["bench"], &words[..]].concat());
    assert!(compared["varied"].as_str().expect("text").contains("order of 4 objects"), "{compared}");

    write("hole.c", "char hole[64] = {2};\n");
    let output = run(&["bias", "link", "./program"]);
    assert_one_sentence(&output, &["program", "makes another program now", "link it again"]);
    let output = run(&["bench", "--rounds", "12", "./program"]);
    assert!(output.status.success() && stderr(&output).contains("code layout is not varied"));
    fs::remove_file(folder.path().join("hole.c")).expect("a file");
    assert_one_sentence(&run(&["bias", "link", "./program"]), &["hole.c"]);
    assert_one_sentence(&run(&["bias", "link", "true"]), &["nothing says how true is linked", "memlode cc"]);
}

/// Loads that agree with stores to another page are counted and tried where they are: which of them collide is up to the
/// processor and the kernel's choice of pages, what is tried and that the program's data survive is not. The stack is at
/// the beginning of a page, so that no return address agrees with a store by chance.
#[test]
#[cfg(target_arch = "x86_64")]
fn pages_of_a_program_are_tried_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("work.c");
    fs::write(
        &source,
        "static _Alignas(4096) volatile long from[512], to[520], far[512];\n\
         __attribute__((noinline)) void work(void) {\n  for (int i = 0; i < 500; i++)\n    to[i + 1] = from[i];\n}\n\
         __attribute__((noinline)) void quiet(void) {\n  for (int i = 0; i < 200; i++)\n    to[i + 256] = far[i];\n}\n\
         int main(void) {\n  _Alignas(4096) volatile char page[4096];\n  page[0] = 1;\n  work();\n  quiet();\n  \
         return page[0] - 1;\n}\n",
    )
    .expect("a file");
    let program = folder.path().join("work").display().to_string();
    let status = Process::new("clang-22").args(["-O1", "-g", "-o", &program]).arg(&source).status();
    assert!(status.expect("clang-22 runs").success());
    let found = json(&["bias", "pages", "--function", "work", "--json", "--", &program]);
    let named = &found["named"];
    assert_eq!((&named["loads"], &named["pairs"], &named["tried"]), (&499.into(), &1.into(), &1.into()));
    // Colliding or not, all of it is one pair.
    for pair in named["names"].as_array().expect("a list") {
        assert_eq!((&pair["load"]["data"], &pair["count"]), (&"from+8".into(), &499.into()), "{found}");
        assert!(pair["measured"].as_f64() >= Some(2.0), "{found}");
    }
    let found = json(&["bias", "pages", "--function", "quiet", "--json", "--", &program]);
    assert_eq!(found["named"]["loads"], 0);
    assert!(found["sentence"].as_str().expect("text").contains("no pages can collide"), "{found}");
    let output = memlode().args(["bias", "pages", "--function", "wrok", "--", &program]).output();
    assert_one_sentence(&output.expect("memlode runs"), &["no function `wrok`"]);
}

#[test]
fn tables_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let draw = |words: &[&str], shows: &str| {
        let file = folder.path().join("picture.svg");
        let output = memlode().args(words).arg("--svg").arg(&file).output().expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let svg = fs::read_to_string(&file).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.contains(shows), "{svg}");
    };
    draw(&["bias", "alloc"], "jemalloc 64 KiB");
    draw(&["bias", "pages", "--pages", "40"], "of 780 pairs of pages");
    let output = memlode().args(["bias", "alloc", "--svg", "/nonexistent/x.svg"]).output();
    assert_one_sentence(&output.expect("memlode runs"), &["cannot write /nonexistent/x.svg"]);
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

/// A program of tests/bias/programs, compiled into the folder.
fn compiled(folder: &Path, source: &str, options: &[&str], to: &str) -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bias/programs");
    let to = folder.join(to);
    let mut compiler = Process::new("clang-22");
    let status = compiler.args(options).arg("-g").arg(programs.join(source)).arg("-o").arg(&to).status();
    assert!(status.expect("clang-22 runs").success());
    to.display().to_string()
}

/// A tenth more work at one place of the stack in 4096 is found in both pages, and nothing else is.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_that_is_slow_at_one_place_of_the_stack_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "planted_call.c", &["-O1"], "planted");
    let words = ["bias", "env", "--function", "work", "--time-limit", "LIMIT", "--json", "--", &program];
    let found = json_in_time(15, &words);
    let places = |one: &Value| {
        found["sweep"]["padding"][one["context"].as_u64().expect("a context") as usize].as_i64()
    };
    let candidates = found["sweep"]["candidates"].as_array().expect("a list");
    let slow = candidates.iter().filter(|one| one["effect"]["ratio"].as_f64() > Some(1.05));
    let mut slow: Vec<i64> = slow.filter_map(places).collect();
    slow.sort_unstable();
    let [first, second] = slow[..] else { panic!("{found}") };
    assert_eq!(second - first, 4096, "{found}");
    assert!(found["sentence"].as_str().expect("text").contains(&first.to_string()), "{found}");
}

/// The table of what calls do at each length is one that `bias counters` reads: of the loop that is called, loads of the variable on
/// the stack agree with stores to a static one at two lengths 4096 bytes apart, whatever that costs here.
#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_predicted_stands_in_for_counters() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "kernel.c", &["-O0", "-fno-pie", "-no-pie"], "kernel");
    let table = folder.path().join("table.csv").display().to_string();
    let words = ["bias", "env", "--function", "work", "--time-limit", "LIMIT", "--json", "--predict", &table];
    json_in_time(16, &[&words[..], &["--", &program]].concat());
    let text = fs::read_to_string(&table).expect("a table");
    let aliases = |line: &str| line.split(',').nth(2).and_then(|word| word.parse::<u64>().ok());
    let aliases: Vec<u64> = text.lines().skip(1).filter_map(aliases).collect();
    assert_eq!(aliases.len(), 512, "{text}");
    let many: Vec<usize> = (0..512).filter(|context| aliases[*context] > 100).collect();
    assert!(!many.is_empty() && many.len() < 16 && many.len().is_multiple_of(2), "{many:?}");
    let (first, second) = many.split_at(many.len() / 2);
    assert!(first.iter().zip(second).all(|(a, b)| b - a == 256), "{many:?}");
    let found = json(&["bias", "counters", &table, "--json"]);
    assert_eq!(found["contexts"], 512);
    assert!(found["rows"].as_array().expect("rows").iter().any(|row| row["event"] == "aliases"), "{found}");
    let output = memlode().args(["bias", "counters"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["counters", "--predict"]);
    let swept = memlode().args(["bias", "counters", "--sweep", "--events", "zen4", "--", "true"]).output();
    let swept = swept.expect("memlode runs");
    if !std::path::Path::new("/sys/bus/event_source/devices/cpu").exists() {
        assert_one_sentence(&swept, &["nothing is counted", "PMU"]);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_that_is_never_called_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "planted_call.c", &["-O1"], "planted");
    let run = |function: &str| {
        let words = ["bias", "env", "--function", function, "--", &program];
        memlode().args(words).output().expect("memlode runs")
    };
    assert_one_sentence(&run("wrok"), &["no function `wrok`"]);
    let shell = ["bias", "env", "--function", "main", "--", "sh", "-c", "exec true"];
    let output = memlode().args(shell).output().expect("memlode runs");
    assert_one_sentence(&output, &["main"]);
}

/// A call is examined at each place of its buffer: a loop of single floats crosses no lines, and
/// aliases only where the two buffers begin at nearly the same place of a page.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_buffer_is_moved_and_calls_are_looked_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compiled(folder.path(), "convolve.c", &["-O1", "-shared", "-fPIC"], "libconvolve.so");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bias/programs");
    let text = fs::read_to_string(programs.join("convolve.toml")).expect("a description");
    let file = folder.path().join("convolve.toml");
    fs::write(&file, text.replace("./libconvolve.so", &library).replace("int = 2048", "int = 256"))
        .expect("a file");
    let name = file.display().to_string();
    let words = ["bias", "heap", &name, "--step", "64", "--time-limit", "LIMIT", "--json"];
    let found = json_in_time(8, &words);
    let heap = &found["heap"];
    let facts = heap["facts"].as_array().expect("a list");
    assert_eq!(facts.len(), 64);
    for (distance, facts) in heap["distance"].as_array().expect("a list").iter().zip(facts) {
        if facts.is_null() {
            continue;
        }
        assert_eq!(
            (&facts["stores"], &facts["split_stores"], &facts["page_splits"]),
            (&252.into(), &0.into(), &0.into())
        );
        let near = !(128..=3968).contains(&distance.as_u64().expect("a distance"));
        // The return reads the stack, wherever that lies: its low 12 bits may be those of a last store.
        assert!(near || facts["aliases"].as_u64() <= Some(1), "{distance} {facts}");
    }
    assert!(facts.iter().filter(|facts| !facts.is_null()).count() >= 6);
    let wrong = |from: &str, to: &str, words: &[&str]| {
        let text = fs::read_to_string(&file).expect("a description");
        let other = folder.path().join("wrong.toml");
        fs::write(&other, text.replace(from, to)).expect("a file");
        let output = memlode().args(["bias", "heap"]).arg(&other).output().expect("memlode runs");
        assert_one_sentence(&output, words);
    };
    wrong("\"convolve\"", "\"convole\"", &["no function `convole`"]);
    wrong("int = 256", "int = 99999999", &["convolve", "ended by signal", "long enough"]);
    wrong("move = \"to\"", "move = \"too\"", &["no such buffer"]);
    wrong("libconvolve", "libnothing", &["cannot be loaded"]);
}

/// The blocks of a program are found with who allocated them, and one that is moved is where it is said to be.
#[test]
#[cfg(target_arch = "x86_64")]
fn large_blocks_are_listed_and_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = |words: &[&str]| {
        memlode().env("MEMLODE_HOME", installation()).args(words).output().expect("memlode runs")
    };
    let json = |output: Output| {
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str::<Value>(&stdout(&output)).expect("JSON")
    };
    for options in [&["-O1"][..], &["-O1", "-fno-pie", "-no-pie"]] {
        let program = compiled(folder.path(), "buffers.c", options, "buffers");
        let found = json(started(&["bias", "fix", "--list", "--json", "--", &program, "1"]));
        let blocks = found["blocks"].as_array().expect("a list");
        assert_eq!(blocks.len(), 2, "{found}");
        for (number, block) in blocks.iter().enumerate() {
            assert_eq!((&block["number"], &block["bytes"]), (&number.into(), &160_000.into()));
            assert_eq!(block["place"], "numbers buffers.c:9", "{found}");
        }
    }
    let program = compiled(folder.path(), "buffers.c", &["-O1"], "buffers");
    let output = started(&["bias", "fix", "--search", "--block", "7", "--", &program, "1"]);
    assert_one_sentence(&output, &["has no block 7", "0 to 1"]);
    let found = json(in_time(4, |limit| {
        started(&["bias", "fix", "--time-limit", limit, "--json", "--", &program, "20"])
    }));
    // What it says depends on the machine; that it was measured does not.
    assert!(found["bench"]["rounds"].as_u64() >= Some(12), "{}", found["sentence"]);
    assert!(found["sentence"].as_str().expect("text").ends_with('.'), "{}", found["sentence"]);
}

/// All processes end with memlode, and an unfinished measurement claims nothing.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_interrupted_sweep_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "planted_call.c", &["-O1"], "leftover-of-a-sweep");
    for function in [&["--function", "work"][..], &[]] {
        let mut command = Process::new(assert_cmd::cargo::cargo_bin!("memlode"));
        command.args(["bias", "env", "--time-limit", "50s"]).args(function).args(["--", &program]);
        let child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn();
        let mut child = child.expect("memlode runs");
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let pid = child.id().to_string();
        assert!(Process::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
        let status = child.wait().expect("an end");
        assert!(!status.success());
        let name = |entry: &std::path::PathBuf| fs::read_link(entry.join("exe")).unwrap_or_default();
        let left = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok).map(|entry| entry.path());
        let left: Vec<_> = left.filter(|entry| name(entry) == Path::new(&program)).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A program that forks is measured with its children, and children that it leaves behind delay
/// nothing.
#[test]
fn programs_that_fork_are_measured() {
    let found =
        json(&["bench", "--rounds", "12", "--json", "sh -c 'sleep 0.01 & sh -c :'", "--", "sh -c 'sh -c :'"]);
    assert!(found["notes"].to_string().contains("went on after its end"), "{found}");
}

/// A program that reads its input and prints is stopped where its first thread calls the function, although a child and
/// another thread call it before; how long that takes is said before it begins, and memlode's output has nothing of the
/// program's.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_that_reads_prints_and_forks_is_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("talker.c");
    fs::write(
        &source,
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         static volatile int sum;\n\
         __attribute__((noinline)) void work(void) {\n  for (int i = 0; i < 500; i++)\n    sum += i;\n}\n\
         static void *other(void *unused) {\n  work();\n  return unused;\n}\n\
         int main(void) {\n  int number = 0;\n  if (scanf(\"%d\", &number) != 1 || number != 42)\n    return 3;\n  \
         for (int i = 0; i < 100000; i++)\n    puts(\"talk\");\n  fflush(stdout);\n  if (fork() == 0) {\n    \
         work();\n    _exit(7);\n  }\n  int status = 0;\n  wait(&status);\n  \
         if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)\n    return 4;\n  \
         pthread_t thread;\n  pthread_create(&thread, NULL, other, NULL);\n  pthread_join(thread, NULL);\n  \
         work();\n  return 0;\n}\n",
    )
    .expect("a file");
    let input = folder.path().join("input");
    fs::write(&input, "42\n").expect("a file");
    let program = folder.path().join("talker").display().to_string();
    let status = Process::new("clang-22").args(["-O1", "-g", "-o", &program]).arg(&source).status();
    assert!(status.expect("clang-22 runs").success());
    let sweep = |more: &[&str]| {
        in_time(6, |limit| {
            let words = ["bias", "env", "--function", "work", "--time-limit", limit, "--json"];
            memlode().args(words).args(more).args(["--", &program]).output().expect("memlode runs")
        })
    };
    let output = sweep(&["--input", &input.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(found["sweep"]["padding"].as_array().map(Vec::len), Some(512));
    let said = stderr(&output);
    assert!(said.contains("timings of 512 contexts, about ") && !said.contains("talk"), "{said}");
    // Without its input it ends before.
    assert_one_sentence(&sweep(&[]), &["talker", "ended and never called work"]);
}

/// Ten minutes do not pass before a program that takes ten minutes is refused.
#[test]
#[cfg(target_arch = "x86_64")]
fn programs_that_take_too_long_are_ended() {
    let started = std::time::Instant::now();
    let output = memlode().args(["bias", "env", "--time-limit", "1s", "sleep", "600"]).output();
    assert_one_sentence(
        &output.expect("memlode runs"),
        &["`sleep 600` had not ended after 1", "--time-limit"],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("late.c");
    let text = "#include <unistd.h>\n__attribute__((noinline)) void work(void) { __asm__(\"\"); }\n\
                int main(void) { sleep(600); work(); return 0; }\n";
    fs::write(&source, text).expect("a file");
    let program = folder.path().join("late").display().to_string();
    let status = Process::new("clang-22").args(["-O1", "-o", &program]).arg(&source).status();
    assert!(status.expect("clang-22 runs").success());
    for words in [&["bias", "env", "--time-limit", "1s"][..], &["bias", "pages", "--time-limit", "1s"]] {
        let output = memlode().args(words).args(["--function", "work", "--", &program]).output();
        assert_one_sentence(&output.expect("memlode runs"), &["had not called work", "--time-limit"]);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(500));
}
