//! `memlode bias pages`: pages whose physical addresses agree.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use memlode_measure::bias::pages;
use memlode_measure::process::Launch;
use memlode_report::render::measured::pages as words;
use serde_json::json;

use super::{draw, stop_on_signals};
use crate::args::times::parse_duration;
use crate::print::{print, print_json};

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
        draw(file, &words::picture(&found))?;
    }
    if args.json {
        return print_json(&json!({ "sentence": words::sentence(&found), "pages": found }));
    }
    print(&words::text(&found))
}

#[cfg(not(target_arch = "x86_64"))]
fn name(_: &Pages, _: &str) -> Result<()> {
    anyhow::bail!("--function calls functions by the registers of x86-64, and this is none")
}

#[cfg(target_arch = "x86_64")]
fn name(args: &Pages, function: &str) -> Result<()> {
    use memlode_report::render::measured::page_names;
    let stop = stop_on_signals()?;
    let program = Launch { words: args.words.clone(), ..Launch::default() };
    let found = memlode_measure::bias::page_names::named(&program, function, args.time_limit, &stop)?;
    if args.json {
        return print_json(&json!({ "sentence": page_names::sentence(&found), "named": found }));
    }
    print(&page_names::text(&found))
}
