//! `memlode sim`: what each cache of a machine would have answered.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use memlode_attribute::simulator::Setup;
use memlode_report::causes::{aliases, causes};
use memlode_report::rules::{prefetch_text, rules_text};
use memlode_report::sharing::sharing_text;
use memlode_report::terminal::{By, Style, header, tables};
use serde_json::json;

use super::report::MachineArgs;
use super::{OK, print, print_json};
use crate::analyse::{self, Analysed};
use crate::setup::{self, PageSize};
use crate::term;

/// Simulate a machine's caches on a trace: what missed, why, and what of the fetched lines was used
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 1 the trace or the machine cannot be used, 2 wrong usage.")]
pub struct Args {
    /// The trace directory that `run` or `record` made
    #[arg(value_name = "DIR", required_unless_present = "list")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Size of all pages, such as 4KiB, 2MiB or 1GiB, and of some: 4KiB,2MiB@START-END, in hexadecimal digits [default: the
    /// machine's ordinary pages]
    #[arg(long, value_name = "SIZE[@RANGE]", value_delimiter = ',')]
    pages: Vec<PageSize>,
    /// Cores that threads run on: the first thread on the first one, and so on [default: thread t on core t]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Which node's memory pages lie in, on a machine with `nodes`: first-touch, interleave, node:N, or a file of lines
    /// START-END NODE [default: first-touch]
    #[arg(long, value_name = "HOW")]
    placement: Option<String>,
    /// Which rules the caches have
    #[arg(long, value_enum, value_name = "RULES", default_value_t)]
    rules: Rules,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Tables to show
    #[arg(long, value_enum, value_name = "TABLE", value_delimiter = ',', default_value = "field")]
    by: Vec<TableName>,
    /// List the machines known by name
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The rules of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Rules {
    /// The machine's: replacement, inclusion, writes, sectors, prefetchers, coherence
    #[default]
    Machine,
    /// Exact LRU, non-inclusive, no prefetchers, no coherence: several times as fast, and what `report` simulates
    Lru,
}

/// A table of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// Data and the line that touches it
    Line,
    /// Members of types
    Field,
    /// Types
    Type,
    /// Objects: by allocating call, global variable or stack variable
    Object,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let Some(trace) = args.trace.filter(|_| !args.list) else {
        list(args.json)?;
        return Ok(ExitCode::from(OK));
    };
    let analysed = analyse::in_detail(&trace, &args.machine.machine, |machine| {
        Ok(Setup {
            rules: match args.rules {
                Rules::Machine => memlode_attribute::simulator::Rules::Machine,
                Rules::Lru => memlode_attribute::simulator::Rules::Lru,
            },
            pages: setup::pages(&args.pages, machine)?,
            cores: setup::cores(&args.cores, machine)?,
            homes: setup::homes(args.placement.as_deref(), machine)?,
        })
    })?;
    let Analysed { trace, machine, profile, replayed } = &analysed;
    let simulation = memlode_report::simulation(trace, machine, profile, replayed);
    if args.json {
        print_json(&simulation)?;
    } else {
        let stdout = std::io::stdout();
        let style = Style { colours: term::colours(&stdout), width: term::width(&stdout), top: args.top };
        let mut text = header(&simulation.report, style);
        text += &rules_text(&simulation.rules, style);
        for table in args.by {
            let by = match table {
                TableName::Line => By::Line,
                TableName::Field => By::Field,
                TableName::Type => By::Type,
                TableName::Object => By::Object,
            };
            text += &causes(&simulation, by, style);
        }
        text += &sharing_text(&simulation, style);
        text += &prefetch_text(&simulation.besides, style);
        text += &aliases(&simulation, style);
        text += &tables(&simulation.report, &[By::Thread], Style { top: usize::MAX, ..style });
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
