//! memlode run by itself.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Records a program into a new trace directory, without showing its output. Without a file, its
/// standard input is empty. With a region, only that is recorded.
pub fn record(
    command: &[OsString],
    input: Option<&Path>,
    region: Option<&str>,
    trace: &Path,
) -> Result<ExitStatus> {
    let own = std::env::current_exe().context("the path of the memlode executable is unknown")?;
    let input = match input {
        None => Stdio::null(),
        Some(path) => File::open(path).with_context(|| format!("cannot use {}", path.display()))?.into(),
    };
    let mut recording = Command::new(own);
    recording.arg("record");
    if let Some(region) = region {
        recording.args(["--region", region]);
    }
    recording.arg("-o").arg(trace).arg("--").args(command);
    recording.stdin(input).stdout(Stdio::null()).status().context("memlode cannot run itself")
}
