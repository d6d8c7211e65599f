//! A program in a folder of its own, compiled, recorded and reported on.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// The folder, with `program.c`, `program` and its trace.
pub struct Reported(TempDir);

impl Reported {
    /// Compiles and records a program. The name of the trace has to be quoted for a shell.
    pub fn new(program: &str) -> Reported {
        Reported::with(program, &[])
    }

    /// Does so with more options of the compiler.
    pub fn with(program: &str, options: &[&str]) -> Reported {
        let reported = Reported(TempDir::new().expect("a temporary folder"));
        fs::write(reported.path().join("program.c"), program).expect("a file");
        reported.run(&[&["cc", "-O1", "-g", "program.c", "-o", "program"], options].concat());
        reported.run(&["record", "-o", "a trace", "--", "./program"]);
        reported
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Prints its report.
    pub fn report(&self, more: &[&str]) -> String {
        self.run(&[&["report", "a trace", "-m", "generic"], more].concat())
    }

    /// Returns the findings of its report.
    pub fn findings(&self) -> Vec<Value> {
        let report: Value = serde_json::from_str(&self.report(&["--json"])).expect("JSON");
        report["findings"].as_array().expect("findings").clone()
    }

    /// Runs memlode in its folder.
    pub fn run(&self, words: &[&str]) -> String {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "100").current_dir(self.path());
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }
}
