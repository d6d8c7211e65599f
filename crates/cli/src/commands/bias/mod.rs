//! `memlode bias`: what moves times although no program changed.

mod env;
mod fix;
mod heap;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memlode_measure::bias::{allocators, counters, links, pages};
use memlode_measure::link::LinkLine;
use memlode_measure::picture::Picture;
use memlode_measure::process::{Launch, Output};
use serde_json::json;

use super::bench::{fresh_seed, stop_on_signals};
use super::{OK, print, print_json};
use crate::args::times::parse_duration;
use crate::term;

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
    Env(env::Env),
    Heap(heap::Heap),
    Block(fix::Block),
    Fix(fix::Fix),
    Link(Link),
    Counters(Counters),
    #[command(hide = true)]
    Call(heap::Call),
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

/// Run links of the same code in other orders, and say how far they differ
#[derive(Debug, Parser)]
struct Link {
    /// Command that links the program, as in `cc a.o b.o -o {out}`: its objects are permuted
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
    /// File that the program reads on standard input [default: nothing]
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
            environment: Vec::new(),
        }
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.what {
        What::Pages(args) => probe_pages(&args)?,
        What::Alloc(args) => compare_allocators(&args)?,
        What::Env(args) => env::run(&args)?,
        What::Heap(args) => heap::run(&args)?,
        What::Block(args) => fix::sweep(&args)?,
        What::Fix(args) => fix::run(&args)?,
        What::Call(args) => heap::call(&args)?,
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
        known.push(allocators::AllocatorLibrary { name, library: Some(library.clone()), huge: None });
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

fn relink(args: &Link) -> Result<()> {
    let stop = stop_on_signals()?;
    let program = &args.program;
    let plan = links::LinksPlan {
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
    let table =
        counters::CounterTable::parse(&text, args.context.as_deref(), &args.cycles).with_context(named)?;
    let found = table.correlate(args.spikes);
    if args.json {
        return print_json(&found);
    }
    print(&counters::text(&found, args.top))
}

/// Writes a picture to a file.
fn draw(file: &Path, picture: &Picture<'_>) -> Result<()> {
    std::fs::write(file, picture.svg()?).with_context(|| format!("cannot write {}", file.display()))
}
