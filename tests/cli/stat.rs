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

/// Whatever this machine has, every ratio is measured, or says why it is not.
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
