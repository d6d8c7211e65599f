//! The tasks of a plan, each in a process of its own.
//!
//! ```text
//!   plan ─► tasks ──► memlode part: a task on standard input, bytes on standard output ──► finish
//!                     as many at a time as are wanted
//! ```

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context, Result, bail};
use memlode_analyses::parts::Task;

/// Runs tasks in processes, at most `at_a_time` of them at once. Calls `done` after each, and returns
/// their results in the order in which they ended.
///
/// # Errors
/// If one fails, at once: the others end with this process.
pub fn run(tasks: Vec<Task>, at_a_time: usize, done: impl Fn()) -> Result<Vec<Vec<u8>>> {
    let workers = at_a_time.min(tasks.len());
    let (tasks, next) = (Arc::new(tasks), Arc::new(AtomicUsize::new(0)));
    let (sender, results) = mpsc::channel();
    for _ in 0..workers {
        let (tasks, next, sender) = (tasks.clone(), next.clone(), sender.clone());
        thread::spawn(move || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if sender.send(run_one(task)).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let mut found = Vec::new();
    for result in results {
        found.push(result?);
        done();
    }
    Ok(found)
}

/// Runs a task in a process, which ends with the thread that waits for it.
fn run_one(task: &Task) -> Result<Vec<u8>> {
    let Output { status, stdout, stderr } = answer_of(task).context("memlode cannot be started")?;
    if status.success() {
        return Ok(stdout);
    }
    let why = String::from_utf8_lossy(&stderr);
    let why = why.trim().trim_start_matches("memlode: error: ");
    let why = if why.is_empty() { status.to_string() } else { why.to_owned() };
    bail!("part {} of {} by {}: {why}", task.part, task.parts, task.cut.word())
}

fn answer_of(task: &Task) -> Result<Output> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("part").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // If it reads nothing, its status says why.
        let _ = input.write_all(&serde_json::to_vec(task)?);
    }
    Ok(child.wait_with_output()?)
}
