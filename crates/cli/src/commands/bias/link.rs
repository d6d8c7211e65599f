//! `memlode bias link`: links of the same code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_measure::bias::links::{self, Floor, LinksPlan};
use memlode_measure::link::LinkLine;
use memlode_measure::picture::Picture;
use serde_json::json;

use super::{Program, draw, fresh_seed, print, print_json, stop_on_signals};
use crate::args::times::parse_duration;
use crate::driver::toolchain::search_path;
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
        let time = rounds as f64 * seconds;
        term::line(&format!("{rounds} rounds of {} links, about {time:.0} s", args.links + 1));
    })?;
    if let Some(file) = &args.svg {
        picture(file, &plan.program.text(), &found)?;
    }
    if program.how.json {
        return print_json(&json!({ "sentence": found.sentence(), "seed": plan.seed, "floor": found }));
    }
    print(&(found.sentence() + "\n"))
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

/// Links from the fastest to the slowest; those with more aliases than the middle of the range are marked.
fn picture(file: &Path, title: &str, found: &Floor) -> Result<()> {
    let aliases = found.aliasing.as_ref().map(|aliasing| &aliasing.aliases);
    let number = |link: usize| aliases.map_or(0, |aliases| aliases[link]);
    let mut links: Vec<(f64, usize)> =
        found.links.iter().enumerate().map(|(link, ratio)| (*ratio, number(link))).collect();
    links.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = |of: fn(usize, usize) -> usize| links.iter().map(|link| link.1).reduce(of).unwrap_or(0);
    let middle = usize::midpoint(ends(usize::min), ends(usize::max));
    let points: Vec<(f64, f64)> =
        links.iter().enumerate().map(|(at, (ratio, _))| ((at + 1) as f64, *ratio)).collect();
    let marked = points.iter().zip(&links).filter(|(_, (_, aliases))| *aliases > middle);
    let marked: Vec<(f64, f64)> = marked.map(|(point, _)| *point).collect();
    let across = if aliases.is_some() {
        "links, the fastest first (red: data alias)"
    } else {
        "links, the fastest first"
    };
    draw(
        file,
        &Picture {
            title,
            across,
            up: "time over the median link's",
            points: &points,
            marked: &marked,
            names: &[],
        },
    )
}
