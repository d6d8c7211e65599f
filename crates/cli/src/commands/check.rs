//! `memlode check`: is a trace whole, and does it agree with itself?

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use memlode_replay::check::{CheckReport, check};
use memlode_report::text::{bytes, count, printable};
use memlode_trace::Damage;
use serde::{Serialize, Serializer};

use crate::args::traces::TraceArgs;
use crate::print::{print, print_json};
use crate::status::{OK, PROBLEMS};

/// Verify a trace: checksums, counts, order, call stacks, and what could be salvaged
#[derive(Debug, Parser)]
#[command(after_help = "\
Exit status: 0 the trace is whole, 1 it cannot be opened, 2 wrong usage, 3 something is damaged or missing.
What is not named is intact: `memlode report` reads it.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    let report = check(&args.trace.find()?, workers)?;
    if args.json {
        print_json(&Told::of(&report))?;
    } else {
        print(&text(&report))?;
    }
    let whole = report.is_sound() && report.complete;
    Ok(ExitCode::from(if whole { OK } else { PROBLEMS }))
}

/// The report as JSON.
#[derive(Serialize)]
struct Told<'a> {
    format: &'static str,
    version: u32,
    sound: bool,
    complete: bool,
    /// Written one by one: there can be as many as a trace has chunks.
    #[serde(serialize_with = "problems")]
    problems: &'a [Damage],
    processes: usize,
    threads: usize,
    modules: usize,
    chunks: u64,
    bytes: u64,
    raw_words: u64,
    accesses: u64,
    marks: u64,
}

impl Told<'_> {
    fn of(report: &CheckReport) -> Told<'_> {
        Told {
            format: "memlode check",
            version: 1,
            sound: report.is_sound(),
            complete: report.complete,
            problems: &report.problems,
            processes: report.processes,
            threads: report.threads,
            modules: report.modules,
            chunks: report.chunks,
            bytes: report.bytes,
            raw_words: report.raw_words,
            accesses: report.accesses,
            marks: report.marks,
        }
    }
}

fn problems<S: Serializer>(problems: &[Damage], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Problem<'a> {
        file: std::borrow::Cow<'a, str>,
        what: &'a str,
        bytes: u64,
        chunks: u32,
    }
    serializer.collect_seq(problems.iter().map(|problem| Problem {
        file: problem.path.to_string_lossy(),
        what: &problem.what,
        bytes: problem.bytes,
        chunks: problem.chunks,
    }))
}

fn text(report: &CheckReport) -> String {
    let mut out = String::new();
    for problem in &report.problems {
        out += &format!("{}\n", printable(&problem.to_string()));
    }
    if !report.complete {
        out += "recording did not finish: what the collector had not yet written is missing\n";
    }
    let verdict = match (report.is_sound(), report.complete, report.problems.len()) {
        (true, true, _) => "whole".to_string(),
        (true, false, _) => "sound as far as it goes".to_string(),
        (false, _, 1) => "1 problem; the rest is intact".to_string(),
        (false, _, n) => format!("{n} problems; the rest is intact"),
    };
    out += &format!(
        "{verdict}: {} accesses and {} other events in {} chunks ({}), {} threads, {} processes, {} modules\n",
        count(report.accesses),
        count(report.marks),
        report.chunks,
        bytes(report.bytes),
        report.threads,
        report.processes,
        report.modules,
    );
    out
}
