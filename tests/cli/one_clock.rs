//! One definition of a run's modelled cycles and of its waits, in every command that has them.

use std::fs;

use serde_json::Value;

use crate::whatif::Folder;

/// A gallery's program with one thread, and one whose threads take lines from each other.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("list", include_str!("../../gallery/list-payload/before.c"), "pad session to 256"),
    ("totals", include_str!("../../gallery/shared-totals/before.c"), "pad totals to 1024"),
];

#[test]
fn every_command_has_the_same_cycles_or_says_how_many_more() {
    for (name, source, edit) in PROGRAMS {
        let folder = Folder::new();
        let (file, program) = (format!("{name}.c"), format!("./{name}"));
        fs::write(folder.0.path().join(&file), source).expect("a file");
        folder.run(&["cc", "-O2", "-g", "-pthread", &file, "-o", name]);
        folder.run(&["record", "-o", "trace", "--", &program]);
        let json = |words: &[&str]| -> Value {
            let rest = ["-m", "generic", "--json"];
            serde_json::from_str(&folder.run(&[words, &rest].concat())).expect("JSON")
        };
        let number = |of: &Value| of.as_f64().expect("a number");
        let is_same = |a: &Value, b: &Value| (number(a) - number(b)).abs() <= 1e-6 * number(b);
        let report = json(&["report", "trace"]);
        let (run, total) = (&report["run_cycles"], &report["total"]);
        let wait = &total["wait"]["cycles"];
        let edited = json(&["whatif", "trace", "-e", edit])["comparison"].take();
        for found in [json(&["diff", "trace", "trace"]), edited] {
            let before = &found["before"];
            assert!(is_same(&before["run_cycles"], run), "{name}: {} {run}", before["run_cycles"]);
            assert!(is_same(&before["total"]["wait"]["cycles"], wait), "{name}");
        }
        // These have other models, and say what the report's makes of the run.
        let lost = report["sharing"]["cycles"].as_f64().unwrap_or(0.0);
        let time = number(&json(&["sim", "trace", "--time"])["run_cycles"]);
        // Its replay takes apart loops that a report keeps whole, and sees other neighbours overlap.
        assert!((time + lost - number(run)).abs() <= 1e-4 * number(run), "{name}: {time} {lost} {run}");
        let line = json(&["timeline", "trace", "--every", "200k"]);
        let notes = line["notes"].as_array().expect("notes");
        let said = notes.iter().find(|note| note["id"] == "sum_of_latencies").expect("a note");
        assert!((number(&said["report_cycles"]) - number(wait)).abs() <= 1.0, "{name}: {said} {wait}");
        let rows = line["tables"][0]["rows"].as_array().expect("rows");
        let sum: u64 = rows.iter().filter_map(|row| row["wait_cycles"].as_u64()).sum();
        assert_eq!(
            (said["cycles"].as_u64(), total["stall_cycles"].as_u64()),
            (Some(sum), Some(sum)),
            "{name}"
        );
    }
}
