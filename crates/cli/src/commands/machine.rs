//! `memlode machine`: what memlode knows of a processor, and measuring this one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memlode_machine::{HostSources, Machine, measured_file};
use memlode_measure::machine::calibrate;
use memlode_report::render::measured::machine as words;
use serde_json::json;

use crate::print::{print, print_json};
use crate::status::OK;

/// Show a machine's description, or measure this machine
#[derive(Debug, Parser)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Measure latencies, overlap, bandwidth and sharing of this machine, in half a minute at most; from then on `host`
    /// means what was measured
    Calibrate {
        /// Write the machine file here instead: `host` stays what it is
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print what was measured as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a machine as the machine file that describes it
    Show {
        /// `host`, a name that `memlode sim --list-machines` shows, or a file
        #[arg(default_value = "host")]
        machine: String,
    },
}

pub fn run(args: Args) -> Result<ExitCode> {
    match args.action {
        Action::Calibrate { output, json } => measure(output, json)?,
        Action::Show { machine } => print(&Machine::find(&machine)?.to_toml())?,
    }
    Ok(ExitCode::from(OK))
}

fn measure(output: Option<PathBuf>, json: bool) -> Result<()> {
    let Some(path) = output.or_else(measured_file) else {
        bail!("neither HOME nor XDG_CONFIG_HOME says where to keep the machine file: name one with --output");
    };
    // What the system says, not an older file: every calibration begins with the same assumptions.
    let described = HostSources { measured: None, kept: None, ..HostSources::default() }.detect();
    if described.identities.is_empty() {
        bail!(
            "the kernel does not name this processor, so what is measured could not be told from another's"
        );
    }
    let calibration = calibrate(&described)?;
    let written = calibration.machine.to_toml();
    // What is written must be readable: a machine that contradicts itself was measured under too much load.
    let read = Machine::from_toml(&written, &path.display().to_string())
        .context("the measurements contradict each other; try again when the machine is less busy")?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    std::fs::write(&path, written).with_context(|| format!("cannot write {}", path.display()))?;
    if json {
        return print_json(&json!({
            "file": path,
            "file_hash": read.file_hash,
            "constants": calibration.constants,
            "notes": calibration.notes.iter().map(words::note).collect::<Vec<_>>(),
        }));
    }
    let hash = read.file_hash.unwrap_or_default();
    print(&words::written(&calibration, &path, &hash))
}
