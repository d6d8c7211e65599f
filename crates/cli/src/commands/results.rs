//! `memlode results`: the answers that are kept beside a trace.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::HumanDuration;
use memlode_files::Folder;
use memlode_report::text::{bytes, printable};
use memlode_results::{FOLDER, Listed, Question, list};
use serde_json::{Value, json};

use crate::args::traces::TraceArgs;
use crate::print::{print, print_json};
use crate::status::OK;
use crate::term;

/// List the answers that are kept beside a trace
#[derive(Debug, Parser)]
#[command(after_help = "\
Commands that analyse a trace keep their answers in DIR/results, and answer from there when they are asked again:
docs/results.md. To be rid of them, remove that folder.
Exit status: 0 success, 1 the folder cannot be read, 2 wrong usage.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let directory = args.trace.find()?;
    let cannot = || format!("cannot read {}", directory.join(FOLDER).display());
    let folder = Folder::open(&directory).with_context(cannot)?;
    let found = list(&folder).with_context(cannot)?;
    if args.json {
        let results: Vec<Value> = found.iter().map(value).collect();
        print_json(&json!({ "format": "memlode results", "version": 1, "results": results }))?;
    } else if found.is_empty() {
        term::line(&format!("no answer is kept beside {}", directory.display()));
    } else {
        let lines: Vec<String> =
            found.iter().map(|listed| format!("{}\n", printable(&line(listed)))).collect();
        print(&lines.concat())?;
    }
    Ok(ExitCode::from(OK))
}

/// A file in a line: the question, the answer's age and size, and the file's name; or the reason
/// why it is not used.
fn line(listed: &Listed) -> String {
    match &listed.head {
        Err(unusable) => unusable.to_string(),
        Ok((question, answered)) => {
            let age = SystemTime::now().duration_since(*answered).unwrap_or_default();
            let age = HumanDuration(age).to_string();
            let size = bytes(listed.bytes);
            format!("{}  {age} ago, {size}, {}", asked(question), listed.path.display())
        }
    }
}

/// The question as a command line: `sim --machine zen4 --rules lru`.
fn asked(question: &Question) -> String {
    let mut words = question.command.clone();
    for (at, machine) in question.machines.iter().enumerate() {
        let option = if at == 0 { "--machine" } else { "--other-machine" };
        words += &format!(" {option} {}", machine.name);
    }
    for (name, values) in &question.options {
        let option = name.replace('_', "-");
        match &values[..] {
            [] => words += &format!(" --{option}"),
            values => values.iter().for_each(|value| words += &format!(" --{option} {value}")),
        }
    }
    words
}

fn value(listed: &Listed) -> Value {
    let file = listed.path.to_string_lossy();
    match &listed.head {
        Err(unusable) => json!({ "file": file, "bytes": listed.bytes, "unusable": unusable.to_string() }),
        Ok((question, answered)) => {
            let since: Duration = answered.duration_since(UNIX_EPOCH).unwrap_or_default();
            json!({
                "file": file,
                "bytes": listed.bytes,
                "command": question.command,
                "options": question.options,
                "machines": question.machines,
                "answered_unix_ms": since.as_millis() as u64,
            })
        }
    }
}
