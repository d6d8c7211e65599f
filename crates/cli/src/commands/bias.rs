//! `memlode bias`: what moves times although no program changed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memlode_measure::bias::{allocators, counters, environment, links, pages};
use memlode_measure::link::LinkLine;
use memlode_measure::picture::Picture;
use memlode_measure::process::{Launch, Output};
use serde_json::json;

use super::bench::{fresh_seed, stop_on_signals};
use super::{OK, print, print_json};
use crate::term;
use crate::times::parse_duration;

/// Measure what moves times although no program changed: environment, links, allocators, physical pages
#[derive(Debug, Parser)]
#[command(after_help = "\
What each measures, and how far to trust it: docs/bias.md.
Exit status: 0 success, 1 nothing could be measured, 2 wrong usage.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Pages(Pages),
    Alloc(Alloc),
    Env(Env),
    Link(Link),
    Counters(Counters),
}

/// Find which events of a table of counters move with its cycles, and what they are where cycles spike
#[derive(Debug, Parser)]
struct Counters {
    /// A CSV table: a row for each context, a column for each event
    #[arg(value_name = "FILE")]
    table: PathBuf,
    /// The column of the context; it is no event
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The event that others are compared with
    #[arg(long, value_name = "EVENT", default_value = "cycles")]
    cycles: String,
    /// Spikes to show
    #[arg(long, value_name = "N", default_value_t = 2)]
    spikes: usize,
    /// Events to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Find pairs of pages whose physical addresses make copies between them slow
#[derive(Debug, Parser)]
struct Pages {
    /// 4 KiB pages of memlode's own to probe, each against each
    #[arg(long, value_name = "N", default_value_t = 450, value_parser = clap::value_parser!(u32).range(2..=4096))]
    pages: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show which low address bits of equal buffers agree, by allocator
#[derive(Debug, Parser)]
struct Alloc {
    /// Further allocators: libraries to preload
    #[arg(long, value_name = "LIBRARY")]
    library: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print addresses of this process
    #[arg(long, hide = true)]
    addresses: bool,
}

/// Run a program at every length of the environment, and say which slow it down
#[derive(Debug, Parser)]
struct Env {
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Write the sweep as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}

/// Run links of the same code in other orders, and say how far they differ
#[derive(Debug, Parser)]
struct Link {
    /// How to link the program, as in `cc a.o b.o -o {out}`: its objects are permuted
    #[arg(long, value_name = "LINE")]
    relink: String,
    /// Links beside the order given
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    links: u32,
    /// Time for running them
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    #[command(flatten)]
    program: Program,
}

#[derive(Debug, Parser)]
struct Program {
    /// What the program reads on standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Let the program print
    #[arg(long)]
    show_output: bool,
    /// Number that all random choices follow from [default: a new one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    words: Vec<OsString>,
}

impl Program {
    fn launch(&self) -> Launch {
        Launch {
            words: self.words.clone(),
            input: self.input.clone(),
            output: if self.show_output { Output::Shown } else { Output::Discarded },
        }
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Pages(args) => probe_pages(&args)?,
        What::Alloc(args) => compare_allocators(&args)?,
        What::Env(args) => sweep_environment(&args)?,
        What::Link(args) => relink(&args)?,
        What::Counters(args) => correlate(&args)?,
    }
    Ok(ExitCode::from(OK))
}

fn probe_pages(args: &Pages) -> Result<()> {
    let found = pages::probe(args.pages as usize)?;
    if args.json {
        return print_json(&json!({ "sentence": found.sentence(), "pages": found }));
    }
    let mut text = found.sentence() + "\n";
    for cost in &found.costs {
        let pages::Cost { distance, measured, modelled } = cost;
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

fn compare_allocators(args: &Alloc) -> Result<()> {
    if args.addresses {
        let line = |line: Vec<usize>| line.iter().map(usize::to_string).collect::<Vec<_>>().join(" ") + "\n";
        return print(&allocators::addresses().into_iter().map(line).collect::<String>());
    }
    let own = std::env::current_exe().context("the path of the memlode executable is unknown")?;
    let program = [own.as_os_str(), OsStr::new("bias"), OsStr::new("alloc"), OsStr::new("--addresses")];
    let mut known = allocators::installed();
    for library in &args.library {
        if !library.is_file() {
            bail!("--library {}: there is no such file", library.display());
        }
        let name = library.file_name().unwrap_or(library.as_os_str()).to_string_lossy().into_owned();
        known.push(allocators::Allocator { name, library: Some(library.clone()), huge: None });
    }
    let mut rows = Vec::new();
    for allocator in &known {
        for huge in [false, true] {
            if huge && allocator.huge.is_none() {
                continue;
            }
            rows.push(allocators::ask(allocator, huge, &program)?);
        }
    }
    if args.json {
        return print_json(&json!({ "sizes": allocators::SIZES, "allocators": rows }));
    }
    print(&allocators::text(&rows))
}

fn sweep_environment(args: &Env) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = &args.program;
    let plan = environment::Plan {
        program: program.launch(),
        time: args.time_limit,
        seed: program.seed.unwrap_or_else(fresh_seed),
    };
    let found = environment::sweep(&plan, &stop, &mut |runs, seconds| {
        let (contexts, time) = (environment::CONTEXTS, runs as f64 * seconds);
        term::line(&format!(
            "{runs} runs of {contexts} contexts, about {time:.0} s; then the slowest again, {:.0} s in all",
            args.time_limit.as_secs_f64()
        ));
    })?;
    if let Some(file) = &args.svg {
        let points: Vec<(f64, f64)> =
            found.padding.iter().map(|padding| *padding as f64).zip(found.ratio.iter().copied()).collect();
        let spikes = found.spikes();
        let is_spike = |x: f64| spikes.iter().any(|spike| spike.padding as f64 == x);
        let marked: Vec<_> = points.iter().copied().filter(|(x, _)| is_spike(*x)).collect();
        let title = plan.program.text();
        let picture = Picture {
            title: &title,
            across: "bytes added to the environment",
            up: "time over the median context's",
            points: &points,
            marked: &marked,
        };
        std::fs::write(file, picture.svg()?).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if program.json {
        return print_json(&json!({ "sentence": found.sentence(), "seed": plan.seed, "sweep": found }));
    }
    let mut text = found.sentence() + "\n";
    text += &format!(
        "{} contexts, {} runs of each or more, seed {}; 80% of contexts lie within {:.1}% of each other.\n",
        found.padding.len(),
        found.runs,
        plan.seed,
        100.0 * (found.spread - 1.0)
    );
    print(&text)
}

fn relink(args: &Link) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = &args.program;
    let plan = links::Plan {
        line: LinkLine::parse(&args.relink)?,
        program: program.launch(),
        links: args.links as usize,
        time: args.time_limit,
        seed: program.seed.unwrap_or_else(fresh_seed),
    };
    let found = links::floor(&plan, &stop, &mut |rounds, seconds| {
        let time = rounds as f64 * seconds;
        term::line(&format!("{rounds} rounds of {} links, about {time:.0} s", args.links + 1));
    })?;
    if program.json {
        return print_json(&json!({ "sentence": found.sentence(), "seed": plan.seed, "floor": found }));
    }
    print(&(found.sentence() + "\n"))
}

fn correlate(args: &Counters) -> Result<()> {
    let named = || format!("{} cannot be used", args.table.display());
    let text = std::fs::read_to_string(&args.table).with_context(named)?;
    let table = counters::Table::parse(&text, args.context.as_deref(), &args.cycles).with_context(named)?;
    let found = table.correlate(args.spikes);
    if args.json {
        return print_json(&found);
    }
    print(&counters::text(&found, args.top))
}
