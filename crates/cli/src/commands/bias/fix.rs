//! `memlode bias fix`: large blocks that do not begin alike, and what that buys.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_measure::bench::Progress;
use memlode_measure::bias::blocks::{BlocksPlan, size};
use memlode_measure::bias::sweep::SweepVerdict;
use memlode_measure::picture::Picture;
use serde_json::json;

use super::{Program, draw, fresh_seed, print, print_json, stop_on_signals};
use crate::args::times::parse_duration;
use crate::install::Install;
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
        let line = |block: &memlode_measure::bias::blocks::Block| {
            format!("{:4}  {:>11}  {}\n", block.number, size(block.bytes), block.place)
        };
        return print(&blocks.iter().map(line).collect::<String>());
    }
    let mut tell = |progress: Progress| {
        if let Progress::Planned { rounds, round, .. } = progress {
            term::line(&format!("{rounds} rounds, about {:.0} s", rounds as f64 * round));
        }
    };
    if args.search {
        let found = plan.search(&args.block, &stop, &mut tell)?;
        return match args.program.how.json {
            true => print_json(&json!({ "sentence": found.sentence, "seed": plan.seed, "fix": found })),
            false => print(&(found.sentence + "\n")),
        };
    }
    let (sentence, bench) = plan.stagger(&stop, &mut tell)?;
    match args.program.how.json {
        true => print_json(&json!({ "sentence": sentence, "seed": plan.seed, "bench": bench })),
        false => print(&(sentence + "\n")),
    }
}

pub fn sweep(args: &Block) -> Result<()> {
    let stop = stop_on_signals()?;
    let plan = plan(&args.program, args.time_limit)?;
    let (block, swept) = plan.sweep(args.block, &stop, &mut |runs, seconds| {
        term::line(&format!("{runs} runs, about {:.0} s", runs as f64 * seconds));
    })?;
    let step = 4096 / swept.ratio.len();
    let spikes = swept.of(SweepVerdict::Spike);
    if let Some(file) = &args.svg {
        let points: Vec<(f64, f64)> =
            swept.ratio.iter().enumerate().map(|(at, ratio)| ((at * step) as f64, *ratio)).collect();
        let marked: Vec<_> = spikes.iter().map(|spike| points[spike.context]).collect();
        let across = format!("bytes by which block {} is moved", block.number);
        let up = "time over the median";
        let picture = Picture {
            title: &block.place,
            across: &across,
            up,
            points: &points,
            marked: &marked,
            names: &[],
        };
        draw(file, &picture)?;
    }
    let what = format!("block {} ({}, {})", block.number, size(block.bytes), block.place);
    let percent = |ratio: f64| format!("{:.1}%", 100.0 * (ratio - 1.0));
    let sentence = if spikes.is_empty() {
        format!(
            "No place of {what} slows this program down beside 2 KiB further; {} would have been seen.",
            percent(swept.detectable())
        )
    } else {
        let place = |spike: &memlode_measure::bias::sweep::Candidate| {
            format!("{} bytes ({})", spike.context * step, percent(spike.effect.ratio))
        };
        let places: Vec<String> = spikes.iter().map(place).collect();
        format!(
            "This program is slower where {what} is moved by {}, beside 2 KiB further.",
            places.join(", ")
        )
    };
    match args.program.how.json {
        true => {
            print_json(&json!({ "sentence": sentence, "seed": plan.seed, "block": block, "sweep": swept }))
        }
        false => print(&(sentence + "\n")),
    }
}
