//! `memlode advise`: which change of layout is worth it, and which is not.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_machine::Machine;
use memlode_report::render::{json, svg, terminal};
use memlode_report::{Sources, build};
use memlode_whatif::advise::{Advised, Baseline, advise};
use memlode_whatif::plan::Plan;

use super::OK;
use super::report::{MachineArgs, OrderArgs};
use crate::args::numbers;
use crate::args::setup::SimArgs;
use crate::args::traces::TraceArgs;
use crate::baseline;
use crate::next::ContextArgs;
use crate::patch::patch;
use crate::show::Out;
use crate::term;

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
    #[command(flatten)]
    sim: SimArgs,
    #[command(flatten)]
    order: OrderArgs,
    /// Types to try layouts of, those that the program waits for most
    #[arg(long, value_name = "N", default_value = "3", value_parser = numbers::small_count)]
    types: usize,
    /// Rejected edits and structures to show
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count)]
    top: usize,
    #[command(flatten)]
    sources: ContextArgs,
    /// Write a chart of each live structure to this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// Write the structures of the edits that are worth it as a patch of the program's sources
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let machine = Machine::find(&args.machine.machine)?;
    let setup = args.sim.of(&machine)?;
    let baseline = baseline::count(args.trace.open()?, machine, setup, args.order.order())?;
    let advised = advise(&baseline, args.types)?;
    let mut sources = Sources::new(&baseline.trace, args.sources.context);
    let noise = baseline.noise()?.range();
    let found = build::what_if::advice(&baseline, &advised, noise, &mut sources);
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
    if let Some(file) = &args.patch {
        let patch = patch_of(&baseline, &advised)?;
        fs::write(file, patch).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let text = match args.json {
        true => json::advice(&found)?,
        false => terminal::advice(&found, Out::Stdout.style(args.top)),
    };
    Out::Stdout.write(&text, args.json)?;
    Ok(ExitCode::from(OK))
}

/// The patch of all edits that are worth it and that sources allow.
fn patch_of(baseline: &Baseline, found: &Advised) -> Result<String> {
    let plans = found.worth_it.iter().map(|winner| &winner.outcome.plan);
    let plans: Vec<&Plan> = plans.filter(|plan| !plan.layouts().is_empty()).collect();
    if found.worth_it.is_empty() {
        bail!("--patch: no edit that was tried is worth it");
    }
    let (patch, refused) = patch(&baseline.trace, &plans)?;
    for why in &refused {
        if patch.is_empty() {
            bail!("--patch: {why}");
        }
        term::note(&format!("--patch: {why}"));
    }
    Ok(crate::patch::by_hand(&refused) + &patch)
}
