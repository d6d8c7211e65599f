//! `memlode bias fix`: large blocks that do not begin alike, and what that buys.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_measure::bench::Progress;
use memlode_measure::bias::blocks::BlocksPlan;
use memlode_report::render::measured::bench::document;
use memlode_report::render::measured::blocks as words;
use serde_json::json;

use super::{Program, draw, fresh_seed, stop_on_signals};
use crate::args::times::parse_duration;
use crate::install::Install;
use crate::print::{print, print_json};
use crate::term;

/// Say what a program gains if its large blocks do not begin alike, or if one of them is moved
#[derive(Debug, Parser)]
#[command(after_help = "\
The library that moves blocks is for any program that is linked dynamically with glibc:
LD_PRELOAD=…/lib/libmemlode_stagger.so ./program. See docs/bias.md.")]
pub struct Fix {
    /// Try places of single blocks, and confirm the best one
    #[arg(long)]
    search: bool,
    /// Blocks to move, by number [default: the largest but the first]
    #[arg(long, value_name = "N", requires = "search")]
    block: Vec<usize>,
    /// Show the large blocks with their numbers, and do nothing else
    #[arg(long, conflicts_with = "search")]
    list: bool,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    #[command(flatten)]
    program: Program,
}

/// Time a program with one of its large blocks at every place of a page
#[derive(Debug, Parser)]
pub struct Block {
    /// The block, by its number in `bias fix --list`
    #[arg(long, value_name = "N", default_value_t = 1)]
    block: usize,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Write the sweep as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

fn plan(program: &Program, time: Duration) -> Result<BlocksPlan> {
    let library = Install::find()?.stagger();
    if !library.exists() {
        bail!("{} is not there: build memlode with `make build`, or set MEMLODE_HOME", library.display());
    }
    Ok(BlocksPlan {
        program: program.launch(),
        library,
        time,
        seed: program.how.seed.unwrap_or_else(fresh_seed),
    })
}

pub fn run(args: &Fix) -> Result<()> {
    let stop = stop_on_signals()?;
    let plan = plan(&args.program, args.time_limit)?;
    if args.list {
        let blocks = plan.blocks(&stop)?;
        if args.program.how.json {
            return print_json(&json!({ "blocks": blocks }));
        }
        return print(&words::list(&blocks));
    }
    let mut tell = |progress: Progress| {
        words::progress(&progress).iter().for_each(|text| term::line(text));
    };
    if args.search {
        let found = plan.search(&args.block, &stop, &mut tell)?;
        let sentence = words::fix_sentence(&found, &plan.program.text());
        let fix = words::fix_document(&found, &sentence);
        return match args.program.how.json {
            true => print_json(&json!({ "sentence": sentence, "seed": plan.seed, "fix": fix })),
            false => print(&(sentence + "\n")),
        };
    }
    let found = plan.stagger(&stop, &mut tell)?;
    let sentence = words::stagger_sentence(&found, &plan.program.text());
    match args.program.how.json {
        true => print_json(&json!({ "sentence": sentence, "seed": plan.seed, "bench": document(&found) })),
        false => print(&(sentence + "\n")),
    }
}

pub fn sweep(args: &Block) -> Result<()> {
    let stop = stop_on_signals()?;
    let plan = plan(&args.program, args.time_limit)?;
    let (block, swept) = plan.sweep(args.block, &stop, &mut |runs, seconds| {
        term::line(&words::sweep_progress(runs, seconds));
    })?;
    if let Some(file) = &args.svg {
        draw(file, &words::sweep_picture(&block, &swept))?;
    }
    let sentence = words::sweep_sentence(&block, &swept);
    match args.program.how.json {
        true => {
            print_json(&json!({ "sentence": sentence, "seed": plan.seed, "block": block, "sweep": swept }))
        }
        false => print(&(sentence + "\n")),
    }
}
