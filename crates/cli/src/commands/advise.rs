//! `memlode advise`: which change of layout is worth it, and which is not.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use memlode_machine::Machine;
use memlode_report::render::{json, svg, terminal};

use super::OK;
use super::report::MachineArgs;
use crate::args::numbers;
use crate::args::traces::TraceArgs;
use crate::search::advise;
use crate::show::Out;
use crate::whatif::AsItIs;

/// Try layouts of the types that a program waits for, and say which are worth it and which are not
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit status: 0 whatever is found, 1 the trace or the machine cannot be used, 2 wrong usage."
)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    machine: MachineArgs,
    /// Simulate the machine's rules, as `memlode sim` does, in the place of `report`'s model
    #[arg(long)]
    sim: bool,
    /// Types to try layouts of, those that the program waits for most
    #[arg(long, value_name = "N", default_value = "3", value_parser = numbers::small_count)]
    types: usize,
    /// Rejected edits and structures to show
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count)]
    top: usize,
    /// Write a chart of each live structure to this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let machine = Machine::find(&args.machine.machine)?;
    let as_it_is = AsItIs::count(args.trace.open()?, machine, args.sim)?;
    let found = advise(&as_it_is, args.types)?;
    if let Some(folder) = &args.svg {
        let cannot = || format!("cannot write to {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        for (number, chart) in (1..).zip(&found.structures) {
            // A type's name may hold what no file's may.
            let name: String =
                chart.ty.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
            fs::write(folder.join(format!("{number:02}-{name}.svg")), svg::chart(chart))
                .with_context(cannot)?;
        }
    }
    let text = match args.json {
        true => json::advice(&found)?,
        false => terminal::advice(&found, Out::Stdout.style(args.top)),
    };
    Out::Stdout.write(&text, args.json)?;
    Ok(ExitCode::from(OK))
}
