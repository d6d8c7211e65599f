//! `memlode bias heap`: a buffer of a function, moved.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use memlode_measure::bias::calls::{self, Ready, Spec};
use serde_json::json;

use super::{draw, fresh_seed, stop_on_signals};
use crate::args::times::parse_duration;
use crate::print::{print, print_json};
use crate::term;

/// Move a buffer of a function by every distance, and say where that slows it down, and whether aliasing is to blame
#[derive(Debug, Parser)]
#[command(after_help = "\
The file describes a function of a shared library, its arguments and its buffers: docs/bias.md.")]
pub struct Heap {
    /// The description (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bytes from one distance to the next; divides 1024
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    step: usize,
    /// A library to preload, such as an allocator
    #[arg(long, value_name = "LIBRARY")]
    preload: Option<PathBuf>,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Write the sweep as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Number that all random choices follow from [default: a new one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Call a function of a library: what `bias heap` runs in another process
#[derive(Debug, Parser)]
pub struct Call {
    file: PathBuf,
    /// Stop before each of these calls, for a process that looks
    #[arg(long, value_delimiter = ',')]
    show: Vec<usize>,
}

pub fn call(args: &Call) -> Result<()> {
    let spec = Spec::read(&args.file)?;
    if args.show.is_empty() {
        // SAFETY: that the description is true is for whoever wrote it; this process is for nothing else.
        return Ok(unsafe { calls::serve(&spec) }?);
    }
    let mut ready = Ready::new(&spec)?;
    for moved in &args.show {
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            ready.show(*moved);
        }
    }
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
pub fn run(_: &Heap) -> Result<()> {
    anyhow::bail!("bias heap looks at instructions of x86-64, and this is none")
}

#[cfg(target_arch = "x86_64")]
pub fn run(args: &Heap) -> Result<()> {
    use memlode_measure::bias::heap::{HeapPlan, sweep_buffer};
    use memlode_report::render::measured::heap as words;
    let stop = stop_on_signals()?;
    let own = std::env::current_exe().context("the path of the memlode executable is unknown")?;
    let plan = HeapPlan {
        spec: Spec::read(&args.file)?,
        file: args.file.clone(),
        step: args.step,
        server: vec![own.into(), "bias".into(), "call".into()],
        preload: args.preload.clone(),
        time: args.time_limit,
        seed: args.seed.unwrap_or_else(fresh_seed),
    };
    let found = sweep_buffer(&plan, &stop, &mut |runs, seconds| {
        term::line(&words::progress(runs, seconds, args.time_limit.as_secs_f64()));
    })?;
    if let Some(file) = &args.svg {
        draw(file, &words::picture(&found))?;
    }
    if args.json {
        return print_json(&json!({ "sentence": words::sentence(&found), "seed": plan.seed, "heap": found }));
    }
    print(&words::text(&found))
}
