//! `memlode budget`: what each type may miss, written down and checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand, ValueHint};
use memlode_machine::Machine;
use memlode_report::names::demangle_short;
use memlode_report::notes::{is_empty, nothing_decoded, nothing_recorded};
use memlode_report::render::budget::{self as words, CheckedType, Restoring};
use memlode_trace::Trace;
use memlode_whatif::budget::{Budget, Range, TypeBudget, Usage, levels};
use memlode_whatif::host::Quiet;
use memlode_whatif::plan::{Plan, PlanInputs};
use memlode_whatif::predict::Predictor;

use crate::analyse::threads;
use crate::host;
use crate::print::{print, print_json};
use crate::status::{OK, PROBLEMS};
use crate::term;

/// Version of the file and of the JSON.
const VERSION: u32 = 1;
/// Types that miss less of all that is missed get no budget unless they are named.
const LEAST_SHARE: f64 = 0.01;

/// Budget of misses of each type: written down once, checked on any machine
#[derive(Debug, Parser)]
#[command(after_help = "\
Exit status: 0 recorded, or within the budget; 1 a trace, the machine or the file cannot be used, 2 wrong usage, \
3 `check`: something is over its budget.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Record(RecordArgs),
    Check(CheckArgs),
}

/// Write down what each type misses and touches
#[derive(Debug, Parser)]
struct RecordArgs {
    /// The budget's file, in TOML
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Traces of the same program and input; of several threads two or more, which give a range
    #[arg(value_name = "DIR", required = true, num_args = 1..)]
    traces: Vec<PathBuf>,
    /// Machine to simulate: one of memlode's, or a .toml file; `host` differs from machine to machine
    #[arg(long, short, value_name = "M", default_value = "generic", value_hint = ValueHint::FilePath)]
    machine: String,
    /// Give misses for 1,000 calls of this function [default: of 1,000 calls of whatever function]
    #[arg(long, value_name = "FUNCTION")]
    per: Option<String>,
    /// A type to write down [default: those with 1% of the misses]
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Let `check` accept figures that are larger by this part, such as 2%
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = part)]
    tolerance: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Hold a trace against what was written down
#[derive(Debug, Parser)]
struct CheckArgs {
    /// The budget's file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The trace
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A part of a whole: `2%`.
fn part(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|percent| (0.0..=1000.0).contains(percent));
    number.map(|percent| percent / 100.0).ok_or_else(|| "a percentage such as 2% is needed".to_string())
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Record(args) => record(&args),
        What::Check(args) => check(&args),
    }
}

/// A trace on the machine of a budget.
struct Held {
    trace: Arc<Trace>,
    machine: Machine,
}

impl Held {
    fn open(trace: &Path, machine: &str) -> Result<Held> {
        if machine == "host" {
            bail!(
                "a budget needs a machine that is the same everywhere: name one with --machine, such as generic or zen4"
            );
        }
        let machine = host::machine(machine)?;
        let trace = Trace::open(trace)?;
        if is_empty(&trace) {
            bail!("{}", nothing_recorded(&trace));
        }
        if memlode_attribute::has_gaps(&trace) {
            bail!(
                "{} has gaps: a sample's misses are estimates, and no budget; record the whole run",
                trace.directory().display()
            );
        }
        Ok(Held { trace: Arc::new(trace), machine })
    }

    fn predictor(&self) -> Predictor<'_> {
        let (trace, machine) = (self.trace.clone(), &self.machine);
        Predictor { trace, machine, setup: None, order: None, calls: None, threads: threads(), host: &Quiet }
    }

    /// Returns the plan with all memory in fixed places.
    fn fixed(&self, plan: Plan) -> Plan {
        plan.in_fixed_places(self.machine.line_bytes.into())
    }

    fn usage(&self, plan: &Plan, per: Option<&str>) -> Result<Usage> {
        let bar = term::Progress::of(&self.trace, "simulating");
        let usage = Usage::of(&self.predictor(), plan, per, &demangle_short, |done| bar.advance_to(done))?;
        bar.finish();
        if let Some(why) = nothing_decoded(&self.trace, &usage.replayed) {
            bail!("{why}");
        }
        Ok(usage)
    }
}

fn record(args: &RecordArgs) -> Result<ExitCode> {
    let mut usages = Vec::new();
    let mut shapes = Vec::new();
    for trace in &args.traces {
        let held = Held::open(trace, &args.machine)?;
        let usage = held.usage(&held.fixed(Plan::default()), args.per.as_deref())?;
        if usage.threads > 1 && args.traces.len() == 1 {
            bail!(
                "{} has {} threads, and what they miss depends on how they were scheduled: name two or more recordings of the same run, and the budget is their range",
                trace.display(),
                usage.threads
            );
        }
        shapes = levels(&held.machine);
        usages.push(usage);
    }
    let first = usages.first().context("there is no trace")?;
    let missed: u64 = first.types.iter().map(|ty| ty.misses[0]).sum();
    let is_enough = |misses: u64| misses > 0 && misses as f64 >= missed as f64 * LEAST_SHARE;
    let names: Vec<String> = match &args.types[..] {
        [] => first.types.iter().filter(|ty| is_enough(ty.misses[0])).map(|ty| ty.name.clone()).collect(),
        named => named.to_vec(),
    };
    let mut types = Vec::new();
    for name in names {
        let Some(ty) = TypeBudget::of(&name, &usages) else {
            let known: Vec<&str> = first.types.iter().take(6).map(|ty| ty.name.as_str()).collect();
            bail!("no accesses to a structure `{name}` are in all traces; there are {}", known.join(", "));
        };
        types.push(ty);
    }
    if types.is_empty() {
        bail!("no structure of {} is missed: there is nothing to write down", args.traces[0].display());
    }
    let budget = Budget {
        version: VERSION,
        machine: args.machine.clone(),
        per: args.per.clone(),
        tolerance: args.tolerance,
        level: shapes,
        types,
    };
    let text = toml::to_string(&budget).context("the budget cannot be written as TOML")?;
    fs::write(&args.file, text).with_context(|| format!("cannot write {}", args.file.display()))?;
    if args.json {
        print_json(&words::BudgetRecord {
            format: "memlode budget record",
            version: VERSION,
            budget: &budget,
        })?;
    } else {
        print(&words::recorded(&budget))?;
    }
    Ok(ExitCode::from(OK))
}

fn check(args: &CheckArgs) -> Result<ExitCode> {
    let file = args.file.display();
    let text = memlode_files::read_text(&args.file, memlode_files::SMALL)
        .with_context(|| format!("cannot read {file}"))?;
    let budget: Budget = toml::from_str(&text).with_context(|| format!("{file} is no budget"))?;
    if budget.version != VERSION {
        bail!("{file} has version {} of the format, and this memlode knows {VERSION}", budget.version);
    }
    let held = Held::open(&args.trace, &budget.machine)?;
    if levels(&held.machine) != budget.level {
        bail!(
            "the caches of {} are not those that {file} was recorded with: record it again",
            budget.machine
        );
    }
    if let Some(ty) = budget.types.iter().find(|ty| ty.misses.len() != budget.level.len()) {
        bail!("{file}: `{}` needs one number of misses for each of {} levels", ty.name, budget.level.len());
    }
    if !(budget.tolerance >= 0.0 && budget.tolerance.is_finite()) {
        bail!("{file}: `tolerance` is the part by which a figure may be larger, such as 0.02");
    }
    let usage = held.usage(&held.fixed(Plan::default()), budget.per.as_deref())?;
    let is_range = |range: &Range| matches!(range, Range::Between(..));
    let has_range = budget.types.iter().any(|ty| ty.misses.iter().any(is_range));
    if usage.threads > 1 && !has_range {
        term::line(&words::no_range(usage.threads, &args.file));
    }
    let types =
        budget.types.iter().map(|ty| checked(&held, &budget, ty, &usage)).collect::<Result<Vec<_>>>()?;
    let within = types.iter().all(|ty| ty.within);
    if args.json {
        print_json(&words::BudgetCheck {
            format: "memlode budget check",
            version: VERSION,
            within,
            machine: &budget.machine,
            per: budget.per.as_deref(),
            types: &types,
        })?;
    } else {
        print(&types.iter().map(|ty| words::checked(&budget, ty)).collect::<String>())?;
    }
    Ok(ExitCode::from(if within { OK } else { PROBLEMS }))
}

fn checked(held: &Held, budget: &Budget, ty: &TypeBudget, usage: &Usage) -> Result<CheckedType> {
    let over = ty.exceeded(usage, &budget.level, budget.tolerance);
    let within = over.is_empty();
    let now = usage.of_type(&ty.name);
    let moved = ty.moved(usage);
    let restoring = if within { None } else { restoring(held, budget, ty, usage)? };
    Ok(CheckedType {
        ty: ty.name.clone(),
        within,
        lines_touched: now.map(|now| now.lines_touched),
        misses: now
            .map_or_else(Vec::new, |now| now.misses.iter().map(|&misses| usage.per_calls(misses)).collect()),
        risen: if within || !moved.is_empty() { None } else { ty.risen(usage) },
        over,
        moved,
        restoring,
    })
}

/// Replays the trace with the members in the order that they had.
fn restoring(held: &Held, budget: &Budget, ty: &TypeBudget, usage: &Usage) -> Result<Option<Restoring>> {
    let Some(edit) = ty.restoring(usage) else { return Ok(None) };
    // The plan's types are those of the objects that a profile knows.
    let (profile, _) = held.predictor().as_it_is(|_| {})?;
    let known = PlanInputs {
        names: held.trace.sites(),
        profile: &profile,
        written: &demangle_short,
        nodes: None,
        line_bytes: held.machine.line_bytes.into(),
    };
    let text = edit.to_string();
    Ok(Some(match Plan::new(&known, &[edit]) {
        Ok(plan) => {
            let then = held.usage(&held.fixed(plan), budget.per.as_deref())?;
            let over = ty.exceeded(&then, &budget.level, budget.tolerance);
            let misses = then.of_type(&ty.name).map_or(&[][..], |ty| &ty.misses[..]);
            let misses = misses.iter().map(|&misses| then.per_calls(misses)).collect();
            Restoring { edit: text, within: Some(over.is_empty()), misses, refused: None }
        }
        Err(error) => {
            Restoring { edit: text, within: None, misses: Vec::new(), refused: Some(error.to_string()) }
        }
    }))
}
