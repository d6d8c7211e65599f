//! `memlode bench`: which of these programs is faster, and how much of that is layout?

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use memlode_measure::bench::{BenchPlan, Metric, Parameter, Progress, csv, expand, measure};
use memlode_measure::link::LinkLine;
use memlode_measure::process::{Launch, Output};
use memlode_report::render::measured::bench as words;

use crate::args::times::parse_duration;
use crate::driver::toolchain::search_path;
use crate::print::{print, print_json};
use crate::status::OK;
use crate::stop::{INTERRUPTED, stop_on_signals};
use crate::term;

/// Compare programs, and say how much of the difference is memory layout
#[derive(Debug, Parser)]
#[command(override_usage = "memlode bench [OPTIONS] [--] PROGRAM ARGS… [-- PROGRAM ARGS…]…", after_help = AFTER_HELP)]
pub struct Args {
    /// Run this by sh before each run, untimed; once for all programs, or once for each
    #[arg(long, value_name = "LINE")]
    prepare: Vec<String>,
    /// Runs of each program before anything is measured
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time_limit: Duration,
    /// Rounds to make, whatever time they take: in each a program runs three times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Time to compare [default: cpu for programs that only compute, on one processor; else wall]
    #[arg(long, value_enum)]
    metric: Option<MetricName>,
    /// Replace {NAME} in the programs by each of the VALUES, which commas divide
    #[arg(short = 'L', long, num_args = 2, value_names = ["NAME", "VALUES"])]
    parameter_list: Vec<String>,
    /// Replace {NAME} by the numbers FROM to TO
    #[arg(short = 'P', long, num_args = 3, value_names = ["NAME", "FROM", "TO"], allow_negative_numbers = true)]
    parameter_scan: Vec<String>,
    /// Step of --parameter-scan
    #[arg(short = 'D', long, value_name = "STEP", requires = "parameter_scan")]
    parameter_step_size: Option<String>,
    /// Link a program anew for random layouts, as in `cc a.o b.o -o {out}`: its objects are permuted. Once for each
    /// program, in their order; `-` for none [default: as `memlode cc` linked it, if it did]
    #[arg(long, value_name = "LINE")]
    relink: Vec<String>,
    /// Links to make of each program
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    links: u32,
    /// File that programs read on standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Let programs print
    #[arg(long)]
    show_output: bool,
    /// Number that all random choices follow from [default: a new one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long, group = "form")]
    json: bool,
    /// Print every run as a line of CSV
    #[arg(long, group = "form")]
    csv: bool,
    /// Print Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// The programs, divided by --. One word with blanks is split as a shell would
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    programs: Vec<OsString>,
}

const AFTER_HELP: &str = "\
  memlode bench ./before input -- ./after input
  memlode bench --relink 'cc a.o b.o -o {out}' --relink 'cc a.o c.o -o {out}' ./b -- ./c
  memlode bench -L level 1,2,3 'zstd -{level} -c file'

How it measures, and what its sentences mean: docs/bias.md.
Exit status: 0 success, 1 a program cannot be run or fails, 2 wrong usage, 130 interrupted.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MetricName {
    /// Seconds of processors
    Cpu,
    /// Seconds from start to end
    Wall,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let plan = plan(&args)?;
    let stop = stop_on_signals()?;
    let bar = std::cell::OnceCell::new();
    let measured = measure(&plan, &stop, &mut |progress| {
        words::progress(&progress).iter().for_each(|text| term::line(text));
        match progress {
            Progress::Linking(..) => {}
            Progress::Planned { rounds, .. } => {
                let _ = bar.set(term::progress(rounds as u64, "measuring"));
            }
            Progress::Round(_) => term::advance(bar.get_or_init(|| term::progress(0, "measuring")), 1),
        }
    })?;
    if let Some(bar) = bar.get() {
        bar.finish_and_clear();
    }
    let interrupted = measured.interrupted;
    let result = measured.result(&plan);
    if args.json {
        print_json(&words::document(&result))?;
    } else if args.csv {
        print(&csv(&result))?;
    } else if args.markdown {
        print(&words::markdown(&result))?;
    } else {
        let shown = words::text(&result, term::width(&std::io::stdout()));
        print(&shown.lines().map(|line| memlode_report::text::printable(line) + "\n").collect::<String>())?;
    }
    Ok(ExitCode::from(if interrupted { INTERRUPTED } else { OK }))
}

fn plan(args: &Args) -> Result<BenchPlan> {
    let mut parameters = Vec::new();
    for pair in args.parameter_list.chunks(2) {
        parameters.push(Parameter::list(&pair[0], &pair[1])?);
    }
    for scan in args.parameter_scan.chunks(3) {
        let step = args.parameter_step_size.as_deref();
        parameters.push(Parameter::scan(&scan[0], &scan[1], &scan[2], step)?);
    }
    let programs: Vec<Launch> = commands(&args.programs, &parameters)?
        .into_iter()
        .map(|words| Launch {
            words,
            input: args.input.clone(),
            output: if args.show_output { Output::Shown } else { Output::Discarded },
            environment: Vec::new(),
        })
        .collect();
    if args.prepare.len() > 1 && args.prepare.len() != programs.len() {
        bail!("--prepare is given {} times for {} programs", args.prepare.len(), programs.len());
    }
    if !args.relink.is_empty() && args.relink.len() != programs.len() {
        bail!(
            "--relink is given {} times for {} programs: give it once for each, or `-` for none",
            args.relink.len(),
            programs.len()
        );
    }
    let mut links = match args.relink.is_empty() {
        true => programs.iter().map(|program| kept(program, args.links, args.time_limit)).collect(),
        false => vec![None; programs.len()],
    };
    for (link, line) in links.iter_mut().zip(&args.relink).filter(|(_, line)| *line != "-") {
        *link = Some(LinkLine::parse(line)?);
    }
    Ok(BenchPlan {
        programs,
        links,
        variants: args.links as usize,
        prepare: args.prepare.clone(),
        warmup: args.warmup,
        time: args.time_limit,
        rounds: args.rounds.map(|rounds| rounds as usize),
        metric: args.metric.map(|metric| match metric {
            MetricName::Cpu => Metric::Cpu,
            MetricName::Wall => Metric::Wall,
        }),
        seed: args.seed.unwrap_or_else(fresh_seed),
    })
}

/// The link line that `memlode cc` left in a program, if linking it as often as asked takes little of the time.
fn kept(program: &Launch, links: u32, time: Duration) -> Option<LinkLine> {
    let file = search_path(program.words.first()?)?;
    let started = Instant::now();
    let line = LinkLine::kept(&file).unwrap_or_else(|why| {
        term::line(&words::not_linked(&why));
        None
    })?;
    let takes = started.elapsed() * links;
    if takes > time / 3 {
        term::line(&words::too_many_links(links, &file, takes.as_secs_f64()));
        return None;
    }
    Some(line)
}

/// Short enough to be typed again.
pub fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| u64::from(since.subsec_nanos()) ^ since.as_secs()) % 1_000_000
}

/// The commands between `--`, with parameters in their places.
fn commands(words: &[OsString], parameters: &[Parameter]) -> Result<Vec<Vec<OsString>>> {
    let mut commands: Vec<Vec<OsString>> = words.split(|word| word == "--").map(<[_]>::to_vec).collect();
    if commands.iter().any(Vec::is_empty) {
        bail!("there is nothing between two `--`, or after the last one: a program belongs there");
    }
    for command in &mut commands {
        if let [word] = command.as_slice()
            && let Some(text) = word.to_str()
            && text.contains(' ')
            && !std::path::Path::new(text).exists()
        {
            let split = memlode_measure::split(text).with_context(|| format!("cannot split `{text}`"))?;
            *command = split.into_iter().map(OsString::from).collect();
        }
    }
    if parameters.is_empty() {
        return Ok(commands);
    }
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            anyhow::anyhow!("`{}` is no text, and cannot have a parameter in it", word.to_string_lossy())
        })
    };
    let texts: Vec<Vec<String>> = commands
        .into_iter()
        .map(|words| words.into_iter().map(text).collect::<Result<_>>())
        .collect::<Result<_>>()?;
    let expanded = expand(texts, parameters)?;
    Ok(expanded.into_iter().map(|words| words.into_iter().map(OsString::from).collect()).collect())
}
