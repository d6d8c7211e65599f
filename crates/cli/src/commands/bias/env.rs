//! `memlode bias env`: the length of the environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use memlode_measure::bias::environment::{self, EnvironmentPlan, Sweep};
use memlode_measure::process::StopFlag;
use memlode_report::render::measured::environment as words;
use serde_json::json;

use super::{Program, draw, fresh_seed, stop_on_signals};
use crate::args::times::parse_duration;
use crate::print::{print, print_json};
use crate::term;

/// Run a program at every length of the environment, and say which slow it down
#[derive(Debug, Parser)]
pub struct Env {
    /// Time one function, called again and again where the program first calls it, with its stack moved
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Write what a call does at each length (aliases, splits, conflicts) beside its time: a table for `bias counters`
    #[arg(long, value_name = "FILE", requires = "function")]
    predict: Option<PathBuf>,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Write the sweep as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

pub fn run(args: &Env) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = &args.program;
    let plan = EnvironmentPlan {
        program: program.launch(),
        time: args.time_limit,
        seed: program.how.seed.unwrap_or_else(fresh_seed),
    };
    let found = sweep(args, &plan, &stop)?;
    if let Some(file) = &args.predict {
        predict(args, &plan, &found, &stop, file)?;
    }
    if let Some(file) = &args.svg {
        draw(file, &words::picture(&found, &plan.program.text()))?;
    }
    if program.how.json {
        return print_json(
            &json!({ "sentence": words::sentence(&found), "seed": plan.seed, "sweep": found }),
        );
    }
    print(&words::text(&found, plan.seed))
}

fn sweep(args: &Env, plan: &EnvironmentPlan, stop: &Arc<StopFlag>) -> Result<Sweep> {
    let mut tell = |runs: usize, seconds: f64| {
        let limit = args.time_limit.as_secs_f64();
        term::line(&words::progress(args.function.is_some(), runs, seconds, limit));
    };
    match &args.function {
        None => Ok(environment::sweep_program(plan, stop, &mut tell)?),
        #[cfg(target_arch = "x86_64")]
        Some(function) => {
            Ok(memlode_measure::bias::function::sweep_function(plan, function, stop, &mut tell)?)
        }
        #[cfg(not(target_arch = "x86_64"))]
        Some(_) => anyhow::bail!("--function calls functions by the registers of x86-64, and this is none"),
    }
}

#[cfg(target_arch = "x86_64")]
fn predict(
    args: &Env,
    plan: &EnvironmentPlan,
    found: &Sweep,
    stop: &Arc<StopFlag>,
    file: &Path,
) -> Result<()> {
    let function = args.function.as_deref().unwrap_or_default();
    let facts = memlode_measure::bias::function::facts_by_context(plan, function, stop)?;
    let table = memlode_measure::bias::counters::predicted(found, &facts);
    std::fs::write(file, table).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(not(target_arch = "x86_64"))]
fn predict(_: &Env, _: &EnvironmentPlan, _: &Sweep, _: &Arc<StopFlag>, _: &Path) -> Result<()> {
    anyhow::bail!("--predict looks at instructions of x86-64, and this is none")
}
