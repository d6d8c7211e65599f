//! `memlode bias link`: links of the same code.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_measure::bias::links::{self, LinksPlan};
use memlode_measure::link::LinkLine;
use memlode_report::render::measured::links as words;
use serde_json::json;

use super::{Program, draw, fresh_seed, stop_on_signals};
use crate::args::times::parse_duration;
use crate::driver::toolchain::search_path;
use crate::print::{print, print_json};
use crate::term;

/// Run links of the same code in other orders, and say how far they differ
#[derive(Debug, Parser)]
pub struct Link {
    /// Command that links the program, as in `cc a.o b.o -o {out}`: its objects are permuted [default: as `memlode cc` linked
    /// it, if it did]
    #[arg(long, value_name = "LINE")]
    relink: Option<String>,
    /// Say how far links differ because data of this function alias
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Links beside the order given
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    links: u32,
    /// Time for running them
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Write the links' times as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

pub fn run(args: &Link) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = &args.program;
    let plan = LinksPlan {
        line: line(args)?,
        program: program.launch(),
        function: args.function.clone(),
        links: args.links as usize,
        time: args.time_limit,
        seed: program.how.seed.unwrap_or_else(fresh_seed),
    };
    let found = links::floor(&plan, &stop, &mut |rounds, seconds| {
        term::line(&words::progress(args.links + 1, rounds, seconds));
    })?;
    if let Some(file) = &args.svg {
        draw(file, &words::picture(&found, &plan.program.text()))?;
    }
    if program.how.json {
        let floor = words::document(&found)?;
        return print_json(
            &json!({ "sentence": words::sentence(&found), "seed": plan.seed, "floor": floor }),
        );
    }
    print(&(words::sentence(&found) + "\n"))
}

fn line(args: &Link) -> Result<LinkLine> {
    if let Some(line) = &args.relink {
        return Ok(LinkLine::parse(line)?);
    }
    let name = &args.program.words[0];
    let kept = search_path(name).map(|file| LinkLine::kept(&file)).transpose()?.flatten();
    match kept {
        Some(line) => Ok(line),
        None => bail!(
            "nothing says how {} is linked: give --relink 'cc a.o b.o -o {{out}}', or link it with memlode cc",
            name.display()
        ),
    }
}
