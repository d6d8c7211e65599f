//! `memlode bias pages`: pages whose physical addresses agree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use memlode_measure::bias::pages::{self, PagePairs};
use memlode_measure::picture::Picture;
use memlode_measure::process::Launch;
use serde_json::json;

use super::{draw, print, print_json, stop_on_signals};
use crate::args::times::parse_duration;

/// Find pairs of pages whose physical addresses make copies between them slow
#[derive(Debug, Parser)]
pub struct Pages {
    /// 4 KiB pages of memlode's own to probe, each against each
    #[arg(long, value_name = "N", default_value_t = 450, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pages: u32,
    /// Write what colliding costs by distance as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Name the data that collide in one call of this function of a program, where it is first called
    #[arg(long, value_name = "NAME", requires = "words")]
    function: Option<String>,
    /// Time for the program to come to the function
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        requires = "function",
        value_name = "PROGRAM"
    )]
    words: Vec<OsString>,
}

pub fn run(args: &Pages) -> Result<()> {
    if let Some(function) = &args.function {
        return name(args, function);
    }
    let found = pages::probe(args.pages as usize)?;
    if let Some(file) = &args.svg {
        picture(file, &found)?;
    }
    if args.json {
        return print_json(&json!({ "sentence": found.sentence(), "pages": found }));
    }
    let mut text = found.sentence() + "\n";
    for cost in found.costs.iter().filter(|_| found.colliding > 0) {
        let pages::PageCost { distance, measured, modelled } = cost;
        let plural = if *distance == 1 { "" } else { "s" };
        text += &format!(
            "  store {distance:2} word{plural} before its load: {measured:5.1} × (the law says {modelled:.1})\n"
        );
    }
    if found.contradictions > 0 {
        text += &format!("note: {} verdicts contradict others; the machine is busy\n", found.contradictions);
    }
    text += &match found.huge {
        Some(huge) => format!(
            "In huge pages {} of {} pairs of pages 1 MiB apart collide, and {} of {} pairs 512 KiB apart.\n",
            huge.equal_colliding, huge.equal, huge.different_colliding, huge.different
        ),
        None => "The kernel gave no huge pages to try.\n".into(),
    };
    print(&text)
}

#[cfg(not(target_arch = "x86_64"))]
fn name(_: &Pages, _: &str) -> Result<()> {
    anyhow::bail!("--function calls functions by the registers of x86-64, and this is none")
}

#[cfg(target_arch = "x86_64")]
fn name(args: &Pages, function: &str) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = Launch { words: args.words.clone(), ..Launch::default() };
    let found = memlode_measure::bias::page_names::named(&program, function, args.time_limit, &stop)?;
    if args.json {
        return print_json(&json!({ "sentence": found.sentence(), "named": found }));
    }
    let mut text = found.sentence() + "\n";
    for pair in &found.names {
        text += &format!(
            "  {:6} loads of {} ({}) after stores to {} ({}): a copy takes {:.1} × as long, {:.1}% of the call\n",
            pair.count,
            pair.load.data,
            pair.load.place,
            pair.store.data,
            pair.store.place,
            pair.measured,
            100.0 * pair.modelled
        );
    }
    print(&text)
}

fn picture(file: &Path, found: &PagePairs) -> Result<()> {
    let points: Vec<(f64, f64)> =
        found.costs.iter().map(|cost| (cost.distance as f64, cost.measured)).collect();
    let law: Vec<(f64, f64)> = found.costs.iter().map(|cost| (cost.distance as f64, cost.modelled)).collect();
    let title = format!("{} of {} pairs of pages collide", found.colliding, found.pairs);
    let picture = Picture {
        title: &title,
        across: "words from a load to the store before it (red: the law)",
        up: "time over that between others",
        points: &points,
        marked: if found.colliding > 0 { &law } else { &[] },
        names: &[],
    };
    draw(file, &picture)
}
