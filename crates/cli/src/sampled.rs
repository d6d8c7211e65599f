//! Traces of samples: written by `sample` and `import`, and read where a trace of every access would be simulated.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{ArgMatches, CommandFactory};
use memlode_report::render::terminal::{Style, sample_difference, sampled};
use memlode_report::text::printable;
use memlode_sample::{SampleDifference, SampleReport, report};
use memlode_trace::Trace;
use memlode_trace::manifest::Manifest;
use memlode_trace::sampled::SampledRecording;
use serde::Serialize;

use crate::args::passed_on::was_given;
use crate::print::{print, print_json};
use crate::status::OK;
use crate::term;

/// Returns whether a trace holds samples; not if it cannot be read.
pub fn is_sampled(directory: &Path) -> bool {
    Manifest::read(directory).is_ok_and(|manifest| manifest.info.sampled.is_some())
}

/// Arguments that mean of samples what they mean of accesses.
const OF_SAMPLES: [&str; 7] = ["trace", "before", "after", "top", "json", "confidential", "no_keep"];

/// Refuses options that a trace of samples gives no answer to, unless the command has taken them.
pub fn refuse_others<A: CommandFactory>(
    directory: &Path,
    given: Option<&ArgMatches>,
    taken: &[&str],
) -> Result<()> {
    let command = A::command();
    let is_other = |option: &&clap::Arg| {
        let id = option.get_id().as_str();
        ![&OF_SAMPLES, taken].iter().any(|known| known.contains(&id))
            && given.is_some_and(|given| was_given(option, given))
    };
    let others = command.get_arguments().filter(is_other).filter_map(|option| option.get_long());
    let others: Vec<String> = others.map(|name| format!("--{name}")).collect();
    if others.is_empty() {
        return Ok(());
    }
    bail!(
        "{} holds samples, of which nothing is simulated and no table is chosen: leave out {}, or record every access \
         with `memlode run -- PROGRAM`",
        directory.display(),
        others.join(" and ")
    )
}

/// Reads a trace of samples. What is damaged is said.
pub fn open(directory: &Path) -> Result<(Trace, SampledRecording)> {
    let trace = Trace::open_sampled(directory)?;
    let (recording, problems) = trace.recording()?;
    let damage = trace.damage().iter().map(|damage| damage.to_string());
    for problem in damage.chain(problems.iter().map(|problem| problem.to_string())) {
        term::note(&format!("{}; what is whole is reported", printable(&problem)));
    }
    if recording.samples.is_empty() {
        bail!("{} has no samples that can be read", directory.display());
    }
    Ok((trace, recording))
}

/// Prints a report on samples, with at most `top` rows of each table.
pub fn show(report: &SampleReport, top: usize, as_json: bool) -> Result<()> {
    if as_json {
        return print_document("memlode sample", report);
    }
    print(&sampled(report, style(top)))
}

/// Reports a trace of samples.
pub fn show_trace(directory: &Path, top: usize, as_json: bool) -> Result<ExitCode> {
    let (_, recording) = open(directory)?;
    show(&report(&recording), top, as_json)?;
    Ok(ExitCode::from(OK))
}

/// Compares two traces of samples.
pub fn compare(before: &Path, after: &Path, top: usize, as_json: bool) -> Result<ExitCode> {
    for (this, other) in [(before, after), (after, before)] {
        if !is_sampled(this) {
            bail!(
                "{} holds samples and {} does not: shares of time and counts of accesses cannot be compared",
                other.display(),
                this.display()
            );
        }
    }
    let [before, after] =
        [before, after].map(|directory| Ok::<_, anyhow::Error>(report(&open(directory)?.1)));
    let found = SampleDifference::of(before?, after?);
    match as_json {
        true => print_document("memlode sample diff", &found)?,
        false => print(&sample_difference(&found, style(top)))?,
    }
    Ok(ExitCode::from(OK))
}

fn style(top: usize) -> Style {
    let stdout = std::io::stdout();
    Style { colours: term::colours(&stdout), width: term::width(&stdout), top }
}

/// Prints JSON with the name of its format.
pub fn print_document(format: &'static str, report: &impl Serialize) -> Result<()> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        format: &'static str,
        version: u32,
        #[serde(flatten)]
        report: &'a T,
    }
    print_json(&Document { format, version: 1, report })
}
