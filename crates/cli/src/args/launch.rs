//! The start of a program that is measured.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use memlode_measure::process::{Launch, Output};

/// Options of commands that run one program many times.
#[derive(Debug, Parser)]
pub struct LaunchArgs {
    /// File that the program reads on standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Let the program print
    #[arg(long)]
    show_output: bool,
    /// Number that all random choices follow from [default: a new one]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl LaunchArgs {
    /// Returns how a command is started.
    pub fn launch(&self, words: &[OsString]) -> Launch {
        Launch {
            words: words.to_vec(),
            input: self.input.clone(),
            output: if self.show_output { Output::Shown } else { Output::Discarded },
            environment: Vec::new(),
        }
    }
}
