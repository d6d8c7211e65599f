//! `memlode guide`: which command answers which question, for scripts and assistants.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::print::print;
use crate::status::OK;

/// Print which command answers which question, and what its JSON looks like
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 success, 2 wrong usage.")]
pub struct Args {}

pub fn run(Args {}: Args) -> Result<ExitCode> {
    print(include_str!("../../../../docs/guide.md"))?;
    Ok(ExitCode::from(OK))
}
