//! `memlode whatif`: what an edit of the data would buy.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Parser};
use memlode_layout::{Edit, edits_from_text, edits_from_toml};
use memlode_patch::Unpatched;
use memlode_report::{CommandAnswer, CommandFindings, HandEdit, WhatIf, build};
use memlode_whatif::advise::{Baseline, search};
use memlode_whatif::named::check_types;

use crate::args::machine::MachineArgs;
use crate::args::order::OrderArgs;
use crate::args::setup::SimArgs;
use crate::args::traces::TraceArgs;
use crate::handles::{self, is_handle};
use crate::host;
use crate::kept::{KeepArgs, question};
use crate::next::ConfidentialArgs;
use crate::patch::PatchArgs;
use crate::show::{Out, ShapeArgs, show};
use crate::{baseline, stop};

const HELP: &str = "\
Edits, one a line or with `;` between them:
  reorder arc: state, tail            split arc: hot=cost,tail by=index     (by: pointer, index, parallel)
  soa arc                             aosoa arc by 8
  pad worker to 64                    align worker to 64                    (a type, or an object with of=object)
  align queue: tail,slots to 64       (members)
  index node: next                    narrow arc: cost to 4                 remove arc: spare
  group x, y                          shift buffer by 256                   per-thread hits
  align sums to 64 of=element         deal sums by 4                        (elements of an array)
  pack node                           pages table to 2MiB
  place table: blockwise              (with --sim, on machines with several memory nodes)
Objects are global variables, or lines of allocations such as main.c:12.
A handle of `memlode advise`, or of a finding that says what to change, stands for its edit.

Ctrl-C or SIGTERM ends a search: the best layout so far is printed.

Exit status: 0 whatever the verdict, 1 the trace, the machine or an edit cannot be used, 2 wrong usage, 130 if a signal \
ended the search.";

/// Replay a trace as if its data lay elsewhere: the misses and the wait that an edit would save
#[derive(Debug, Parser)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Change to make (see below), or its handle; several are made together
    #[arg(long, short, value_name = "EDIT", required_unless_present_any = ["edits", "search"])]
    edit: Vec<String>,
    /// A file of edits: TOML if it ends with .toml, else one a line
    #[arg(long, value_name = "FILE")]
    edits: Option<PathBuf>,
    /// Try layouts of this type on a part of the trace, and the best ones on all of it
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["edit", "edits", "patch"])]
    search: Option<String>,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    sim: SimArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    patch: PatchArgs,
    #[command(flatten)]
    confidential: ConfidentialArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keep: KeepArgs,
}

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let mut edits = edits(&args)?;
    let machine = host::machine(&args.machine.machine)?;
    let setup = args.sim.of(&machine)?;
    let trace = Arc::new(args.trace.open()?);
    for handle in args.edit.iter().filter(|word| is_handle(word)) {
        edits.extend(handles::edits(handle, &trace, &machine, args.keep)?);
    }
    // Before anything is counted: a slip is told at once.
    check_types(trace.sites(), &edits)?;
    if let Some(structure) = args.search.clone() {
        check_types(trace.sites(), &[Edit::Soa { structure, members: Vec::new() }])?;
    }
    let question = question::<Args>("whatif", given, &[&machine]);
    // The prediction is shown all the same.
    let refusal = OnceCell::new();
    let compute = || {
        let baseline = baseline::count(trace.clone(), machine, setup, args.order.order())?;
        let found = found(&baseline, &edits, &args, &refusal)?;
        Ok(CommandAnswer {
            notes: baseline::notes(&baseline),
            ..CommandFindings::WhatIf(Box::new(found)).into()
        })
    };
    if args.search.is_some() {
        stop::end_search_on_signals()?;
    }
    let answer = args.keep.unless(args.patch.patch.is_some()).answer(question, &[&trace], compute);
    let Some(answer) = stop::unless_search_ended(answer)? else {
        return Ok(ExitCode::from(stop::INTERRUPTED));
    };
    show(&answer, &args.shape, None, args.json, Out::Stdout)?;
    if let Some(why) = refusal.get() {
        bail!("--patch: {why}");
    }
    Ok(stop::searched())
}

/// Computes the effects of the edits, or finds the best ones of a type.
fn found(baseline: &Baseline, edits: &[Edit], args: &Args, refusal: &OnceCell<Unpatched>) -> Result<WhatIf> {
    if let Some(ty) = &args.search {
        let searched = search(baseline, ty)?;
        return Ok(build::what_if::searched(baseline, &baseline::as_it_is(baseline), &searched));
    }
    let by_hand = match &args.patch.patch {
        Some(file) => write_patch(baseline, edits, args, file, refusal)?,
        None => Vec::new(),
    };
    let outcome = baseline.outcome(edits)?;
    let as_it_is = baseline::as_it_is(baseline);
    Ok(WhatIf { by_hand, ..build::what_if::what_if(baseline, &as_it_is, &outcome) })
}

/// Writes the patch of edits, or what of it has to be edited by hand, which it returns; why goes into `refusal`.
fn write_patch(
    baseline: &Baseline,
    edits: &[Edit],
    args: &Args,
    file: &Path,
    refusal: &OnceCell<Unpatched>,
) -> Result<Vec<HandEdit>> {
    let plan = baseline.plan(edits)?;
    let patched = crate::patch::patch(&baseline.trace, &[&plan], &args.confidential)?;
    let by_hand = crate::patch::by_hand(&patched.refused);
    let write =
        |text: String| std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()));
    // A patch of some of the structures would not be the edit that was predicted.
    match patched.refused.first() {
        None => {
            args.patch.judge(&patched, &baseline.trace)?;
            if !patched.text.is_empty() {
                write(patched.text)?;
            }
        }
        Some(why) if by_hand.is_empty() => bail!("--patch: {why}"),
        Some(why) => {
            write(crate::patch::comments(&by_hand))?;
            refusal.set(why.clone()).ok();
        }
    }
    Ok(by_hand)
}

fn edits(args: &Args) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    if let Some(file) = &args.edits {
        let text = memlode_files::read_text(file, memlode_files::SMALL)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let read = match file.extension().is_some_and(|ending| ending == "toml") {
            true => edits_from_toml(&text),
            false => edits_from_text(&text),
        };
        edits.extend(read.with_context(|| format!("{} is not understood", file.display()))?);
    }
    for text in args.edit.iter().filter(|word| !is_handle(word)) {
        edits.extend(edits_from_text(text).context("--edit is not understood")?);
    }
    if edits.is_empty() && args.search.is_none() && !args.edit.iter().any(|word| is_handle(word)) {
        bail!("there is no edit: write one behind --edit, such as `reorder arc: state, cost`");
    }
    Ok(edits)
}
