//! `memlode part`: runs one task of a plan. Memlode starts it itself, as a process for each task.
//!
//! Standard input has the task as JSON, and standard output gets its result.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use memlode_analyses::parts::Task;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::status::OK;

/// Bytes of the longest task.
const LONGEST: u64 = 1 << 20;

/// Run a task of a plan
#[derive(Debug, Parser)]
#[command(hide = true)]
pub struct Args {}

pub fn run(_args: Args) -> Result<ExitCode> {
    // Nobody reads the result of a process that is gone, even if it was killed.
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot end with the process that waits")?;
    let mut text = String::new();
    io::stdin().lock().take(LONGEST).read_to_string(&mut text).context("the task cannot be read")?;
    let task: Task = serde_json::from_str(&text).context("standard input has no task of a plan")?;
    let found = task.run(memlode_results::tables).map_err(|why| anyhow!(why))?;
    io::stdout().lock().write_all(&found).context("the result cannot be written")?;
    Ok(ExitCode::from(OK))
}
