//! `memlode stat`: what is counted here, what is simulated, and what says that it is neither.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

use crate::{assert_one_sentence, installation, memlode, shared_folder, stderr, stdout};

const EACH: [&str; 4] = ["--rounds", "5", "--seed", "3"];

fn json(arguments: &[&str]) -> Value {
    let output =
        memlode().arg("stat").args(EACH).arg("--json").args(arguments).output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn of<'a>(found: &'a Value, table: &str, key: &str, name: &str) -> &'a Value {
    let rows = found[table].as_array().expect("a table");
    rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

/// The kernel counts faults of user space for everybody: a program that writes to 800 fresh
/// pages more has 800 more of them.
#[test]
fn page_faults_are_counted_to_the_page() {
    let faults = |pages: u32| {
        let script = format!(
            "import mmap; m = mmap.mmap(-1, 4096 * 1024); m.madvise(mmap.MADV_NOHUGEPAGE)\n\
             for i in range({pages}): m[4096 * i] = 1"
        );
        let found = json(&["--", "python3", "-S", "-c", &script]);
        let row = of(&found, "software", "event", "minor-faults").clone();
        assert_eq!(row["source"], "measured", "{row}");
        assert_eq!(
            row["values"].as_array().expect("by run").len(),
            found["seconds"].as_array().unwrap().len()
        );
        row["interval"]["middle"].as_f64().expect("a number")
    };
    let more = faults(900) - faults(100);
    assert!((790.0..=810.0).contains(&more), "{more} faults more");
}

const REGIONS: &str = r#"
#include <memlode.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static void touch(long pages) {
  char *fresh = mmap(0, 4096 * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(fresh, 4096 * pages, MADV_NOHUGEPAGE);
  for (long i = 0; i < pages; i++) ((volatile char *)fresh)[4096 * i] = 1;
}
static void *work(void *pages) {
  touch((long)pages);
  return 0;
}
int main(int count, char **words) {
  pthread_t other;
  touch(3000);
  for (int i = 0; i < 4; i++) {
    memlode_start("part");
    memlode_start("part");
    touch(100);
    memlode_stop("part");
    pthread_create(&other, 0, work, (void *)25L);
    pthread_join(other, 0);
    memlode_stop("part");
    memlode_start("another");
    touch(500);
    memlode_stop("another");
  }
  return count > 1 && !strcmp(words[1], "fail");
}
"#;

/// The pages that a region touches for the first time are its faults, of all threads; also in a program that another compiler
/// made. A thread's stack takes some, too.
#[test]
fn a_region_has_its_own_counts() {
    let folder = shared_folder("stat-regions");
    fs::write(folder.join("regions.c"), REGIONS).expect("a source");
    let include = format!("-I{}", installation().join("include").display());
    let built = memlode()
        .env("MEMLODE_HOME", installation())
        .current_dir(&folder)
        .args(["cc", "-O1", "-pthread", "regions.c", "-o", "built"])
        .output()
        .expect("memlode runs");
    assert!(built.status.success(), "{}", stderr(&built));
    let plain = std::process::Command::new("cc")
        .current_dir(&folder)
        .args(["-O1", "-pthread", &include, "regions.c", "-o", "plain"])
        .status();
    assert!(plain.expect("a compiler").success());
    let stat = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(&folder).arg("stat");
        command.args(["--rounds", "2", "--no-simulation"]).args(words).output().expect("memlode runs")
    };
    for program in ["./built", "./plain"] {
        let count = |region: &[&str], event: &str| {
            let output = stat(&[region, &["--json", "--", program]].concat());
            assert!(output.status.success(), "{}", stderr(&output));
            let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
            assert_eq!(found["region"].as_str(), region.last().copied());
            let row = of(&found, "software", "event", event);
            row["interval"]["middle"].as_f64().unwrap_or_else(|| panic!("{row}"))
        };
        let part = count(&["--region", "part"], "minor-faults");
        assert!((500.0..600.0).contains(&part), "{program}: {part} faults");
        let another = count(&["--region", "another"], "minor-faults");
        assert!((2000.0..2040.0).contains(&another), "{program}: {another} faults");
        assert!(count(&[], "minor-faults") > 5400.0, "{program}");
        let clocks = [&["--region", "part"][..], &[]].map(|region| count(region, "task-clock"));
        assert!(0.0 < clocks[0] && clocks[0] < clocks[1], "{program}: {clocks:?}");
    }
    let never = stat(&["--region", "nowhere", "--", "./plain"]);
    assert_one_sentence(&never, &["never was between memlode_start(\"nowhere\")"]);
    let failed = stat(&["--region", "part", "--", "./plain", "fail"]);
    assert_one_sentence(&failed, &["exited with status 1"]);
}

/// On any machine, every ratio is measured, or has a reason why not.
#[test]
fn no_ratio_is_a_silent_zero() {
    let found = json(&["--", "true"]);
    let ratios = found["ratios"].as_array().expect("a table");
    assert_eq!(ratios.len(), 11);
    for ratio in ratios {
        match ratio["source"].as_str().expect("a source") {
            "measured" => assert!(!ratio["values"].as_array().expect("by run").is_empty(), "{ratio}"),
            "missing" => assert!(ratio["refusal"]["why"].is_string() && ratio["value"].is_null(), "{ratio}"),
            other => panic!("{other} without a trace: {ratio}"),
        }
    }
}

/// A walk down columns and one along rows, built by memlode.
static WALKS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let folder = shared_folder("stat");
    let home = installation();
    ["[j][i]", "[i][j]"].map(|index| {
        let name = if index == "[j][i]" { "columns" } else { "rows" };
        let source = folder.join(name).with_extension("c");
        let text = format!(
            "double m[1024][1024]; volatile double sum;\n\
             int main(void) {{ double s = 0; for (int i = 0; i < 1024; i++) for (int j = 0; j < 1024; j++) s += m{index};\n\
             sum = s; }}\n"
        );
        fs::write(&source, text).expect("a source");
        let program = folder.join(name);
        let built = std::process::Command::new(home.join("bin/memlode"))
            .args(["cc", "-O2", "-g"])
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .output()
            .expect("memlode runs");
        assert!(built.status.success(), "{}", stderr(&built));
        program
    })
});

fn file(program: &Path) -> PathBuf {
    let out = program.with_extension("stat");
    let output = memlode()
        .args(["stat", "--rounds", "1", "--machine", "skylake-sp", "-o"])
        .arg(&out)
        .arg("--")
        .arg(program)
        .output()
        .expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Formulas"), "{}", stdout(&output));
    out
}

/// A program that memlode built is recorded, and what nothing counts here is simulated: a column touches a line and a page for
/// each element, a row one line for eight.
#[test]
fn what_is_not_counted_is_simulated_and_compared() {
    let [columns, rows] = WALKS.each_ref().map(|program| file(program));
    let read =
        |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).expect("JSON") };
    let (before, after) = (read(&columns), read(&rows));
    let value = |of_file: &Value, name: &str| {
        let row = of(of_file, "ratios", "ratio", name);
        (row["source"] == "simulated").then(|| row["value"].as_f64().expect("a number"))
    };
    let (Some(a), Some(b)) = (value(&before, "l1d-miss-rate"), value(&after, "l1d-miss-rate")) else {
        return assert_eq!(of(&before, "ratios", "ratio", "l1d-miss-rate")["source"], "measured");
    };
    assert!(a > 6.0 * b && b > 0.0, "{a} {b}");
    let missing = of(&before, "ratios", "ratio", "virtual-calls");
    assert_eq!(missing["refusal"]["why"], "no-unit");
    assert!(before["simulated"]["accesses"].as_u64() >= Some(1 << 20), "{before}");
    let output = memlode().arg("diff").args([&columns, &rows]).output().expect("memlode runs");
    let text = stdout(&output);
    let line = text.lines().find(|line| line.contains("L1d miss rate")).expect("a line");
    assert!(line.contains(&format!("{:+.1}%", 100.0 * (a - b) / a)) && line.ends_with("simulated"), "{text}");
    assert!(text.contains("needs a PMU"), "{text}");
}

#[test]
fn a_process_that_runs_is_counted_until_it_ends() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let pid = child.id().to_string();
    let found = json(&["--for", "10ms", "-p", &pid]);
    let _ = (child.kill(), child.wait());
    assert_eq!(found["pid"].as_u64(), pid.parse().ok());
    assert_eq!(of(&found, "software", "event", "major-faults")["source"], "measured");
    let gone = memlode().args(["stat", "-p", &pid]).output().expect("memlode runs");
    assert!(!gone.status.success());
    assert_one_sentence(&gone, &["there is no process"]);
}

#[test]
fn files_of_another_kind_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.stat");
    for (text, why) in [
        ("{}", "not a file that `memlode stat -o` wrote"),
        ("no json", "not a file that `memlode stat -o` wrote"),
        (r#"{"format": "memlode stat", "version": 9}"#, "version 9"),
        (r#"{"format": "memlode stat", "version": 1}"#, "missing field"),
    ] {
        fs::write(&other, text).expect("a file");
        let output = memlode().arg("diff").args([&other, &other]).output().expect("memlode runs");
        assert!(!output.status.success());
        assert_one_sentence(&output, &[why]);
    }
    let output = memlode().arg("diff").arg(&other).arg(folder.path()).output().expect("memlode runs");
    assert!(!output.status.success());
    let unknown = memlode().args(["stat", "--events", "z80", "--", "true"]).output().expect("memlode runs");
    assert_one_sentence(&unknown, &["no events of `z80`", "skylake-sp"]);
}

/// It says so before the program is run, which may take long.
#[test]
fn ratios_are_not_simulated_of_what_has_gaps() {
    let folder = shared_folder("stat-gaps");
    let text = "#include <memlode.h>\n\
        static volatile long cells[4096];\n\
        __attribute__((noinline)) static void work(void) { for (int i = 0; i < 4096; i++) cells[i] += i; }\n\
        int main(void) {\n\
          for (int i = 0; i < 3; i++) { memlode_start(\"part\"); work(); memlode_stop(\"part\"); work(); }\n\
        }\n";
    fs::write(folder.join("parts.c"), text).expect("a source");
    for words in [
        &["cc", "-O1", "-g", "parts.c", "-o", "parts"][..],
        &["record", "--region", "part", "-o", "trace", "--", "./parts"],
    ] {
        let done = memlode().env("MEMLODE_HOME", installation()).current_dir(&folder).args(words).output();
        let done = done.expect("memlode runs");
        assert!(done.status.success(), "{}", stderr(&done));
    }
    let output = memlode()
        .current_dir(&folder)
        .args(["stat", "--rounds", "1", "--trace", "trace", "--", "touch", "ran"])
        .output()
        .expect("memlode runs");
    assert_one_sentence(&output, &["trace: recorded in bursts", "whole traces only"]);
    assert!(!folder.join("ran").exists());
}

/// A region is entered four times and reads 8,192 lines each time, after which others are
/// read: all of them miss a first level of 32 KiB, and the second level of 1 MiB the first time, or
/// never, or each time, whatever it held.
#[test]
fn ratios_of_a_region_are_simulated_of_it_alone() {
    let folder = shared_folder("stat-simulated-region");
    let text = "#include <memlode.h>\n\
        enum { LINES = 8192 };\n\
        static volatile long ours[8 * LINES], others[64 * LINES];\n\
        __attribute__((noinline)) static long walk(volatile long *p, long n)\n\
        { long s = 0; for (long i = 0; i < n; i += 8) s += p[i]; return s; }\n\
        int main(void) {\n\
          long s = 0;\n\
          for (int i = 0; i < 4; i++) {\n\
            memlode_start(\"part\"); s += walk(ours, 8 * LINES); memlode_stop(\"part\");\n\
            s += walk(others, 64 * LINES);\n\
          }\n\
          return s != 0;\n\
        }\n";
    fs::write(folder.join("region.c"), text).expect("a source");
    let run = |words: &[&str]| {
        let mut command = memlode();
        let done = command.env("MEMLODE_HOME", installation()).current_dir(&folder).args(words).output();
        let done = done.expect("memlode runs");
        assert!(done.status.success(), "{}", stderr(&done));
        stdout(&done)
    };
    run(&["cc", "-O1", "-g", "region.c", "-o", "region"]);
    let stat = ["stat", "--rounds", "1", "--machine", "skylake-sp", "--rules", "lru", "--region", "part"];
    let found: Value =
        serde_json::from_str(&run(&[&stat[..], &["--json", "--", "./region"]].concat())).expect("JSON");
    let simulated = &found["simulated"];
    let instructions = simulated["instructions"].as_f64().expect("instructions");
    let misses = |ratio: &str| {
        let row = of(&found, "ratios", "ratio", ratio);
        assert_eq!(row["source"], "simulated", "{row}");
        row["value"].as_f64().expect("a value") * instructions
    };
    let near = |found: f64, wanted: f64| (found - wanted).abs() < wanted / 100.0 + 20.0;
    assert!(near(misses("l1d-miss-rate"), 32768.0), "{}", misses("l1d-miss-rate"));
    assert!(near(misses("l2-miss-rate"), 8192.0), "{}", misses("l2-miss-rate"));
    let region = &simulated["region"];
    assert_eq!(region["stretches"], 4, "{region}");
    let bound = |level: usize, end: &str| region["misses"][level][end].as_f64().expect("a bound");
    assert!(near(bound(1, "least"), 0.0) && near(bound(1, "most"), 32768.0), "{region}");
    assert!(near(bound(0, "least"), 4.0 * (8192.0 - 512.0)) && near(bound(0, "most"), 32768.0), "{region}");
    let shown = run(&[&stat[..], &["--", "./region"]].concat());
    assert!(shown.contains("recorded alone, in 4 stretches"), "{shown}");
}

/// A list that is walked all over, an array that is read in order, and who writes both for the first time.
static FUNCTIONS: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = shared_folder("stat-functions");
    let source = folder.join("functions.c");
    let text = "#include <sys/mman.h>\n\
        struct node { struct node *next; long value[7]; };\n\
        enum { NODES = 1 << 15 };\n\
        __attribute__((noinline)) long walk(struct node *p)\n\
        { long s = 0; for (; p; p = p->next) s += p->value[0]; return s; }\n\
        __attribute__((noinline)) long sum(volatile long *a)\n\
        { long s = 0; for (long i = 0; i < 8L * NODES; i++) s += a[i]; return s; }\n\
        __attribute__((noinline)) void touch(volatile char *p, long pages)\n\
        { for (long i = 0; i < pages; i++) p[4096 * i] = 1; }\n\
        static struct node nodes[NODES];\n\
        int main(void) {\n\
          for (long i = 0; i < NODES; i++)\n\
            nodes[i * 20011 % NODES].next = i + 1 < NODES ? &nodes[(i + 1) * 20011 % NODES] : 0;\n\
          char *fresh = mmap(0, 4096 * 900, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
          madvise(fresh, 4096 * 900, MADV_NOHUGEPAGE);\n\
          touch(fresh, 900);\n\
          return (walk(nodes) + sum((long *)nodes)) == 1;\n\
        }\n";
    fs::write(&source, text).expect("a source");
    let program = folder.join("functions");
    let command = |words: &[&str]| {
        let mut command = std::process::Command::new(installation().join("bin/memlode"));
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let (source, built) = (source.to_str().expect("UTF-8"), program.to_str().expect("UTF-8"));
    command(&["cc", "-O1", "-g", source, "-o", built]);
    command(&["record", "--force", "-o", &format!("{built}.trace"), "--", built]);
    program
});

fn rows(found: &Value, source: &str) -> Vec<Value> {
    let tables = found["functions"].as_array().expect("tables of functions");
    let table = tables.iter().find(|table| table["source"] == source).expect("one of this source");
    table["rows"].as_array().expect("rows").clone()
}

fn value(row: &Value, ratio: &str) -> f64 {
    let ratios = row["ratios"].as_array().expect("ratios");
    ratios.iter().find(|found| found["ratio"] == ratio).expect("it is known")["value"]
        .as_f64()
        .expect("a number")
}

/// Instructions of all functions are those of the program, and so are misses: the ratios of functions, weighted, are the
/// program's. Nothing is run for it.
#[test]
fn ratios_of_functions_add_up_to_those_of_the_program() {
    let trace = FUNCTIONS.with_extension("trace");
    let found = json(&["--trace", trace.to_str().expect("UTF-8"), "--per-function", "--machine", "generic"]);
    assert_eq!(found["seconds"].as_array().map(Vec::len), Some(0));
    assert_eq!(of(&found, "software", "event", "task-clock")["refusal"]["why"], "not-run");
    let rows = rows(&found, "simulated");
    let names: Vec<&str> = rows.iter().map(|row| row["function"].as_str().expect("a name")).collect();
    assert!(["walk", "sum", "touch", "main"].iter().all(|name| names.contains(name)), "{names:?}");
    assert_eq!(names[0], "walk", "it misses with each step");
    let clocks = |row: &Value| row["share"].as_f64().expect("a share");
    // Of one clock of the program: the instructions of a function.
    let executed: Vec<f64> =
        rows.iter().map(|row| clocks(row) / value(row, "clocks-per-instruction")).collect();
    let all: f64 = executed.iter().sum();
    for ratio in ["clocks-per-instruction", "l1d-miss-rate", "l2-miss-rate", "dtlb-miss-rate"] {
        let weighted: f64 =
            rows.iter().zip(&executed).map(|(row, part)| value(row, ratio) * part / all).sum();
        let whole = of(&found, "ratios", "ratio", ratio)["value"].as_f64().expect("a number");
        assert!((weighted - whole).abs() < 1e-6 * whole.max(1e-6), "{ratio}: {weighted}, {whole}");
    }
}

/// Each fault of user space is a sample: those of 900 fresh pages are of the function that writes to them.
#[test]
fn faults_are_of_the_function_that_touches_the_pages() {
    let program = FUNCTIONS.to_str().expect("UTF-8");
    let found = json(&["--per-function", "--no-simulation", "--", program]);
    let rows = rows(&found, "sampled");
    let touch = rows.iter().find(|row| row["function"] == "touch").expect("it has a row");
    let faults = touch["minor_faults"].as_f64().expect("a number");
    assert!((890.0..=910.0).contains(&faults), "{faults} faults");
}
