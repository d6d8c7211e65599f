//! `memlode sim`: what each cache of a machine would have answered.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use memlode_report::terminal::{By, Style, header, tables};
use serde_json::json;

use super::report::{MachineArgs, make};
use super::{OK, print, print_json};
use crate::term;

/// Simulate a machine's caches on a trace: counters of each level and each thread
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    /// The trace directory that `run` or `record` made
    #[arg(value_name = "DIR", required_unless_present = "list")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// List the machines known by name
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let Some(trace) = args.trace.filter(|_| !args.list) else {
        list(args.json)?;
        return Ok(ExitCode::from(OK));
    };
    let report = make(&trace, &args.machine.machine)?;
    if args.json {
        print_json(&json!({
            "format": "memlode sim",
            "version": report.version,
            "trace": report.trace,
            "machine": report.machine,
            "total": report.total,
            "threads": report.threads,
        }))?;
    } else {
        let stdout = std::io::stdout();
        let style = Style { colours: term::colours(&stdout), width: term::width(&stdout), top: usize::MAX };
        let mut text = header(&report, style);
        text += &tables(&report, &[By::Thread], style);
        print(&text)?;
    }
    Ok(ExitCode::from(OK))
}

fn list(json: bool) -> Result<()> {
    let machines: Vec<_> = std::iter::once("host")
        .chain(memlode_machine::names())
        .map(memlode_machine::Machine::find)
        .collect::<Result<_, _>>()?;
    if json {
        let machines: Vec<_> = machines
            .iter()
            .map(|m| json!({ "name": m.name, "description": m.description, "sources": m.sources }))
            .collect();
        return print_json(&machines);
    }
    let width = machines.iter().map(|machine| machine.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        machines.iter().map(|m| format!("{:width$}  {}\n", m.name, m.description)).collect();
    print(&lines.concat())
}
