//! `memlode ctl`: recording switched on and off while the program runs.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use memlode_report::text::printable;

use crate::args::times::{burst_text, parse_burst};
use crate::control::send;
use crate::print::print;
use crate::status::OK;

/// Stop and start the recording of a program that runs, or have it sampled
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 done, 1 the process is not recorded, 2 wrong usage.")]
pub struct Args {
    /// A recorded process, or the memlode that records it
    #[arg(value_name = "PID")]
    pid: u32,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Go on recording
    Start,
    /// Stop recording; the program goes on
    Stop,
    /// Stop, or go on
    Toggle,
    /// Record in bursts from now on, as --burst does; `off`: without a break
    Burst {
        /// `1%`, `5ms/500ms` or `off`
        #[arg(value_name = "CYCLE", value_parser = cycle)]
        cycle: String,
    },
    /// Say what is recorded
    Status,
}

fn cycle(text: &str) -> Result<String, String> {
    if text == "off" { Ok(text.to_owned()) } else { parse_burst(text).map(|burst| burst_text(&burst)) }
}

pub fn run(args: Args) -> Result<ExitCode> {
    let command: Vec<String> = match args.command {
        Command::Start => vec!["start".into()],
        Command::Stop => vec!["stop".into()],
        Command::Toggle => vec!["toggle".into()],
        Command::Burst { cycle } => vec!["burst".into(), cycle],
        Command::Status => vec!["status".into()],
    };
    let sentence = send(args.pid, &command)?;
    print(&format!("{}\n", printable(&sentence)))?;
    Ok(ExitCode::from(OK))
}
