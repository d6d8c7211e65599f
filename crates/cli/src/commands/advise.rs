//! `memlode advise`: which change of layout is worth it, and which is not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Parser};
use memlode_report::render::svg;
use memlode_report::{CommandAnswer, CommandFindings, StructureChart, build};
use memlode_whatif::advise::{Advised, Baseline, Budget, Effort, advise};
use memlode_whatif::plan::Plan;

use crate::args::machine::MachineArgs;
use crate::args::numbers;
use crate::args::order::OrderArgs;
use crate::args::setup::SimArgs;
use crate::args::traces::TraceArgs;
use crate::baseline;
use crate::host;
use crate::kept::{KeepArgs, question};
use crate::next::ContextArgs;
use crate::patch::{PatchArgs, patch};
use crate::show::{Out, ShapeArgs, show};
use crate::{stop, term};

/// Try layouts of the types that a program waits for, and say which are worth it and which are not
#[derive(Debug, Parser)]
#[command(
    after_help = "Edits that are worth it are reported on standard error as they are found. Ctrl-C or SIGTERM ends the search: the best \
                  so far are printed; the second signal ends memlode at once.\n\n\
                  Exit status: 0 whatever is found, 1 the trace or the machine cannot be used, 2 wrong usage, 130 if a signal ended the search."
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
    /// Work to spend on edits, in reports of the trace [default: 10, and more for short traces]
    #[arg(long, value_name = "N", value_parser = numbers::small_count)]
    budget: Option<usize>,
    /// Rejected edits and structures to show
    #[arg(long, value_name = "N", default_value = "10", value_parser = numbers::small_count)]
    top: usize,
    #[command(flatten)]
    sources: ContextArgs,
    /// Write a chart of each live structure to this folder, as SVG
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    patch: PatchArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let machine = host::machine(&args.machine.machine)?;
    let setup = args.sim.of(&machine)?;
    let trace = Arc::new(args.trace.open()?);
    let question = question::<Args>("advise", given, &[&machine]);
    let compute = || {
        let baseline = baseline::count(trace.clone(), machine, setup, args.order.order())?;
        let budget = args.budget.map_or(Budget::Usual, |reports| Budget::Reports(reports as u64));
        let effort = Effort { types: args.types, budget };
        let advised = advise(&baseline, effort)?;
        if let Some(file) = &args.patch.patch {
            let patch = patch_of(&baseline, &advised, &args)?;
            fs::write(file, patch).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let found = build::what_if::advice(
            &baseline,
            &baseline::as_it_is(&baseline),
            &advised,
            baseline.noise()?.range(),
        );
        Ok(CommandAnswer {
            notes: baseline::notes(&baseline),
            ..CommandFindings::Advice(Box::new(found)).into()
        })
    };
    stop::end_search_on_signals()?;
    let answer = args.keep.unless(args.patch.patch.is_some()).answer(question, &[&trace], compute);
    let Some(mut answer) = stop::unless_search_ended(answer)? else {
        return Ok(ExitCode::from(stop::INTERRUPTED));
    };
    args.sources.sources(&trace)?.add_to(&mut answer);
    if let (Some(folder), CommandFindings::Advice(found)) = (&args.svg, &answer.found) {
        draw(&found.structures, folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    }
    show(&answer, &ShapeArgs::rows(args.top), None, args.json, Out::Stdout)?;
    Ok(stop::searched())
}

/// Draws a chart of each structure into a folder.
fn draw(structures: &[StructureChart], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, chart) in (1..).zip(structures) {
        // A type's name may hold what no file's may.
        let name: String =
            chart.ty.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
        fs::write(folder.join(format!("{number:02}-{name}.svg")), svg::chart(chart))?;
    }
    Ok(())
}

/// The patch of all edits that are worth it and that sources allow.
fn patch_of(baseline: &Baseline, found: &Advised, args: &Args) -> Result<String> {
    let plans = found.worth_it.iter().map(|winner| &winner.outcome.plan);
    let plans: Vec<&Plan> = plans.filter(|plan| !plan.layouts().is_empty()).collect();
    if found.worth_it.is_empty() {
        bail!("--patch: no edit that was tried is worth it");
    }
    let patched = patch(&baseline.trace, &plans, &args.sources.confidential)?;
    for why in &patched.refused {
        if patched.text.is_empty() {
            bail!("--patch: {why}");
        }
        term::note(&format!("--patch: {why}"));
    }
    args.patch.judge(&patched, &baseline.trace)?;
    let edits = crate::patch::by_hand(&patched.refused);
    Ok(crate::patch::comments(&edits) + &patched.text)
}
