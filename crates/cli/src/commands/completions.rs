//! `memlode completions` and `memlode man`: what shells complete, and pages for `man`, made of the command line itself.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, Parser};
use clap_complete::Shell;

use crate::print::print;
use crate::status::OK;

/// Print what a shell needs to complete memlode's commands and options
#[derive(Debug, Parser)]
#[command(after_help = "\
`make install` puts them, and the manual pages, where bash, zsh, fish and man look below the prefix. By hand:
  memlode completions bash >~/.local/share/bash-completion/completions/memlode
Exit status: 0 success, 2 wrong usage.")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write a manual page of each command
#[derive(Debug, Parser)]
#[command(hide = true, after_help = "Exit status: 0 success, 1 the folder cannot be written, 2 wrong usage.")]
pub struct ManArgs {
    /// The folder: memlode.1, memlode-report.1 and so on
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// `command` is the whole command line.
pub fn run(args: Args, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "memlode", &mut script);
    print(&String::from_utf8(script).context("the script is no text")?)?;
    Ok(ExitCode::from(OK))
}

/// `command` is the whole command line.
pub fn man(args: ManArgs, command: Command) -> Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    Ok(ExitCode::from(OK))
}
