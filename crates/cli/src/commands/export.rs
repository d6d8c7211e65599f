//! `memlode export`: what was found, in the formats of other programs.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use memlode_export::formats;
use memlode_export::ipc::{StreamWriter, write_file};
use memlode_export::over_time::OverTime;
use memlode_export::stacks::Stacks;
use memlode_export::tables::ExportedTable;
use memlode_report::{Advice, build};
use memlode_trace::Trace;
use memlode_whatif::advise::{Budget, Effort, advise};

use crate::args::machine::MachineArgs;
use crate::args::only::OnlyArgs;
use crate::args::order::OrderArgs;
use crate::args::traces::TraceArgs;
use crate::baseline;
use crate::destination::is_stdout;
use crate::door::{Door, Form};
use crate::exported::{Reported, Wishes, counters};
use crate::host;
use crate::python::{become_python, option};
use crate::sampled;
use crate::status::OK;

/// Write what was found in the formats of other programs: tables, profiles, findings
#[derive(Debug, Parser)]
#[command(after_help = "\
Exit status: 0 success, 1 the trace or the machine cannot be used or the file cannot be written, 2 wrong usage.
docs/export.md says which program opens what, and lists the columns of the tables.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Destination: a file, a folder for several tables, or - for standard output
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Format [default: by the file's name]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Tables to write as csv, arrow, arrows or parquet; several, or `all` of the report, go to a folder
    /// [default: lines; of parquet, every access]
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    table: Vec<String>,
    /// Metric of folded stacks and of Firefox profiles, and the one that pprof shows first [default: wait_cycles]
    #[arg(long, value_name = "METRIC", conflicts_with = "table")]
    metric: Option<String>,
    /// Try layouts as `memlode advise` does, and add those that are worth it to what SARIF says
    #[arg(long)]
    advise: bool,
    #[command(flatten)]
    only: OnlyArgs,
    #[command(flatten)]
    machine: MachineArgs,
    #[command(flatten)]
    order: OrderArgs,
}

/// A format of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table as comma-separated values (FILE.csv)
    Csv,
    /// A table as an Arrow IPC file, also known as Feather (FILE.arrow)
    Arrow,
    /// A table as an Arrow IPC stream (FILE.arrows)
    Arrows,
    /// Every access, or a table, as Parquet (FILE.parquet); written by memlode's Python package
    Parquet,
    /// A profile for KCachegrind and callgrind_annotate (callgrind.out.NAME)
    Callgrind,
    /// Stacks of one metric for flame graphs (FILE.folded)
    Folded,
    /// A profile for pprof (FILE.pb.gz)
    Pprof,
    /// A profile for profiler.firefox.com (FILE.firefox.json)
    Firefox,
    /// Findings for code review, editors and CI, as SARIF 2.1.0 (FILE.sarif)
    Sarif,
}

impl Format {
    /// The format that a file's name stands for.
    fn of_name(to: &Path) -> Option<Format> {
        let name = to.file_name()?.to_str()?.to_ascii_lowercase();
        if name.starts_with("callgrind.out") {
            return Some(Format::Callgrind);
        }
        let endings = [
            (".csv", Format::Csv),
            (".arrow", Format::Arrow),
            (".feather", Format::Arrow),
            (".arrows", Format::Arrows),
            (".parquet", Format::Parquet),
            (".callgrind", Format::Callgrind),
            (".folded", Format::Folded),
            (".collapsed", Format::Folded),
            (".pb.gz", Format::Pprof),
            (".pprof", Format::Pprof),
            (".firefox.json", Format::Firefox),
            (".sarif", Format::Sarif),
            (".sarif.json", Format::Sarif),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
    }

    fn is_table(self) -> bool {
        matches!(self, Format::Csv | Format::Arrow | Format::Arrows)
    }

    fn has_metric(self) -> bool {
        matches!(self, Format::Folded | Format::Pprof | Format::Firefox)
    }

    fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Arrows | Format::Pprof)
    }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let format = format(&args)?;
    let args = Args { trace: TraceArgs::of(Some(args.trace.find()?)), ..args };
    let directory = args.trace.find()?;
    if sampled::is_sampled(&directory) {
        samples(&args, format, &directory)?;
        return Ok(ExitCode::from(OK));
    }
    if format == Format::Parquet {
        return parquet(&args);
    }
    if format.is_table() {
        tables(&args, format)?;
    } else {
        let trace = Arc::new(args.trace.open()?);
        let by_path = format != Format::Sarif;
        let found = Reported::of(&trace, &args.machine.machine, args.order.order(), by_path)?;
        let found = found.only(&args.only)?;
        match format {
            Format::Sarif => {
                let report = found.counted().report;
                let advice = args.advise.then(|| advice(&args, &trace)).transpose()?;
                to_file(&args.to, |out| formats::sarif::write(out, report, advice.as_ref()))?;
            }
            _ => {
                // A finding has its stacks; what else happened meanwhile is not part of it.
                let is_whole = format == Format::Firefox && args.only.only.is_empty();
                let counters = is_whole.then(|| counters(&trace, &args.machine.machine)).transpose()?;
                let stacks = Stacks::of(&found.counted());
                profile(&args, format, &trace, &stacks, &counters.unwrap_or_default())?;
            }
        }
    }
    Ok(ExitCode::from(OK))
}

fn format(args: &Args) -> Result<Format> {
    let format = args.format.or_else(|| Format::of_name(&args.to)).with_context(|| {
        let names: Vec<String> = Format::value_variants().iter().map(|format| format.name()).collect();
        format!(
            "the name {} does not say which format is meant: add --format with one of {}",
            args.to.display(),
            names.join(", ")
        )
    })?;
    if is_stdout(&args.to) && format.is_binary() && io::stdout().is_terminal() {
        bail!("{} is no text for a terminal: name a file with --to, or write to a pipe", format.name());
    }
    if !args.table.is_empty() && !format.is_table() && format != Format::Parquet {
        bail!("--table is for csv, arrow, arrows and parquet, and not for {}", format.name());
    }
    if args.metric.is_some() && !format.has_metric() {
        bail!("--metric is for folded, pprof and firefox, and not for {}, which has all", format.name());
    }
    if args.advise && format != Format::Sarif {
        bail!("--advise is for sarif, and not for {}", format.name());
    }
    Ok(format)
}

/// Writes samples: a table with a row each, or stacks.
fn samples(args: &Args, format: Format, directory: &Path) -> Result<()> {
    const TABLE: &str = "samples";
    if !args.table.iter().all(|table| table == TABLE) {
        bail!("{} holds samples: the table that it has is `{TABLE}`", directory.display());
    }
    if matches!(format, Format::Parquet | Format::Sarif) {
        let name = format.name();
        bail!(
            "{} holds samples, of which {name} is not made: take csv, arrow, arrows, folded, pprof, firefox or callgrind",
            directory.display()
        );
    }
    let (trace, recording) = sampled::open(directory)?;
    if format.is_table() {
        let table = memlode_export::samples::table(&recording);
        return to_file(&args.to, |out| write_table(format, &table, out));
    }
    let command = match &trace.manifest().info.command[..] {
        [] => vec![recording.info.subject.clone()],
        command => command.to_vec(),
    };
    let stacks = memlode_export::samples::stacks(&recording, command);
    profile(args, format, &trace, &stacks, &[])
}

/// Writes every access, or tables, by the Python package, which has pyarrow's writer.
fn parquet(args: &Args) -> Result<ExitCode> {
    ensure!(
        !is_stdout(&args.to),
        "Parquet is written to a file, whose end is not known before: name it with --to"
    );
    ensure!(
        args.order.order().is_none(),
        "--threads is for what the command line writes itself: take csv, arrow or arrows"
    );
    ensure!(
        args.only.only.is_empty(),
        "--only is for what the command line writes itself: take csv, arrow or arrows"
    );
    let tables = if args.table.is_empty() { Vec::new() } else { Wishes::of(&args.table)?.names() };
    // A mistyped name is told before Python is looked for.
    host::machine(&args.machine.machine)?;
    let mut words = vec![
        option("machine", args.machine.machine.as_str()),
        option("trace", args.trace.find()?),
        option("to", &args.to),
    ];
    words.extend(tables.into_iter().map(|table| option("table", table)));
    become_python("export", words)
}

/// Tries layouts of the types that the program waits for most.
fn advice(args: &Args, trace: &Arc<Trace>) -> Result<Advice> {
    const TYPES: usize = 3;
    let machine = host::machine(&args.machine.machine)?;
    let baseline = baseline::count(trace.clone(), machine, None, args.order.order())?;
    let advised = advise(&baseline, Effort { types: TYPES, budget: Budget::Endless })?;
    Ok(build::what_if::advice(&baseline, &baseline::as_it_is(&baseline), &advised, baseline.noise()?.range()))
}

/// Writes one table to a file, or several to a folder.
fn tables(args: &Args, format: Format) -> Result<()> {
    let wishes = Wishes::of(&args.table)?;
    ensure!(
        wishes.is_one() || !is_stdout(&args.to),
        "several tables cannot go to standard output: name a folder with --to, or one table with --table"
    );
    let trace = Arc::new(args.trace.open()?);
    let tables = wishes.make(&trace, &args.machine.machine, args.order.order(), &args.only)?;
    if let ([table], true) = (&tables[..], wishes.is_one()) {
        return to_file(&args.to, |out| write_table(format, table, out));
    }
    fs::create_dir_all(&args.to).with_context(|| {
        format!("{} cannot be made a folder, which several tables need", args.to.display())
    })?;
    for table in tables {
        let file = args.to.join(format!("{}.{}", table.name, format.name()));
        to_file(&file, |out| write_table(format, &table, out))?;
    }
    Ok(())
}

fn write_table(format: Format, table: &ExportedTable, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Arrow => write_file(out, &table.fields, &table.table),
        Format::Arrows => {
            let mut writer = StreamWriter::new(out, &table.fields)?;
            writer.write(&table.table)?;
            writer.finish().map(drop)
        }
        _ => formats::csv::write(out, table),
    }
}

/// Writes stacks in one of the formats of profilers.
fn profile(args: &Args, format: Format, trace: &Trace, stacks: &Stacks, counters: &[OverTime]) -> Result<()> {
    let usual = if trace.is_sampled() { "weight" } else { "wait_cycles" };
    let wanted = args.metric.as_deref().unwrap_or(usual);
    let metric = stacks.metric(wanted).with_context(|| {
        let names: Vec<&str> = stacks.metrics.iter().map(|metric| &metric.name[..]).collect();
        format!("--metric {wanted}: there is no such metric; choose from {}", names.join(", "))
    })?;
    to_file(&args.to, |out| match format {
        Format::Folded => formats::folded::write(out, stacks, metric),
        Format::Pprof => formats::pprof::write(out, stacks, metric),
        Format::Firefox => formats::firefox::write(out, trace, stacks, metric, counters),
        _ => formats::callgrind::write(out, stacks),
    })
}

/// Writes to a file, or to standard output.
fn to_file(to: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let write = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        write(&mut out)?;
        out.flush()
    };
    if is_stdout(to) {
        let mut stdout = io::stdout().lock();
        match stdout.is_terminal() {
            true => write(&mut Door::new(stdout, Form::Text { colours: false }))?,
            false => write(&mut stdout)?,
        }
        return Ok(());
    }
    let written = File::create(to).and_then(|mut file| write(&mut file));
    written.with_context(|| format!("{} cannot be written", to.display()))
}
