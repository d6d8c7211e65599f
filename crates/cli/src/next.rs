//! Commands that go on where a report ends, ready to be pasted into a shell.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, ValueHint};
use memlode_report::Sources;
use memlode_report::text::printable;
use memlode_trace::Trace;

use crate::driver::toolchain::shell_quote;

/// Neighbours of a source line, from the command line.
#[derive(Clone, Debug, Default, Parser)]
pub struct ContextArgs {
    /// Show N lines above and below the source line of each finding
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=100))]
    pub context: u32,
    #[command(flatten)]
    pub confidential: ConfidentialArgs,
}

impl ContextArgs {
    /// The sources of a trace's program, as far as they may be shown.
    pub fn sources(&self, trace: &Trace) -> Result<Sources> {
        self.confidential.sources(trace, self.context)
    }
}

/// Sources whose text is nowhere shown, from the command line.
#[derive(Clone, Debug, Default, Parser)]
pub struct ConfidentialArgs {
    /// Leave out the text of this source file, or of all in this folder: its name, or the last parts of its path
    #[arg(long, value_name = "FILE", value_delimiter = ',', value_hint = ValueHint::AnyPath)]
    pub confidential: Vec<PathBuf>,
}

impl ConfidentialArgs {
    /// The sources of a trace's program; `context` neighbours of a line are shown on each side.
    pub fn sources(&self, trace: &Trace, context: u32) -> Result<Sources> {
        Sources::new(trace, context).hiding(trace, &self.confidential).context("--confidential")
    }
}

/// A trace and a machine, as commands name them.
pub struct NextCommands {
    directory: PathBuf,
    machine: String,
}

impl NextCommands {
    /// Commands about the trace in `directory`, on the machine that `--machine` named.
    pub fn new(directory: &Path, machine: &str) -> NextCommands {
        NextCommands { directory: directory.to_owned(), machine: machine.to_string() }
    }

    /// A command about the trace: `memlode advise DIR`.
    pub fn of(&self, command: &str) -> String {
        let directory = match self.directory.as_os_str().as_encoded_bytes().starts_with(b"-") {
            true => Path::new(".").join(&self.directory),
            false => self.directory.clone(),
        };
        let mut text = format!("memlode {command} {}", word(&directory.into_os_string()));
        if self.machine != "host" {
            text += &format!(" --machine {}", word(&self.machine.clone().into()));
        }
        text
    }

    /// An argument, as a shell reads it.
    pub fn quoted(text: &str) -> String {
        word(&text.into())
    }

    /// The last line of a report: commands for the reasons of misses, the gain of changes, and the
    /// course over time.
    pub fn line(&self) -> String {
        format!("why: {} · what if: {} · when: {}", self.of("sim"), self.of("advise"), self.of("timeline"))
    }
}

/// Writes a word so that a shell reads it back, and a terminal nothing but characters: `"$(printf 'a\\033b')"`.
fn word(word: &OsString) -> String {
    let is_plain = word.to_str().is_some_and(|text| printable(text) == text && !text.contains(['\n', '\t']));
    if is_plain {
        return shell_quote(word);
    }
    let byte = |&byte: &u8| match byte {
        b' '..=b'~' if !b"'\\%".contains(&byte) => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"$(printf '{}')\"", word.as_bytes().iter().map(byte).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_in_digits() {
        let name = "it's\u{1b}[2J 100%\n\\x\u{9b}";
        let quoted = word(&name.into());
        assert!(quoted.chars().all(|c| (' '..='~').contains(&c)), "{quoted}");
        let script = format!("printf %s {quoted}");
        let out = Command::new("sh").arg("-c").arg(script).output().expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&out.stdout), name);
    }

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        let next = NextCommands::new(Path::new("my trace"), "it's.toml");
        assert_eq!(next.of("sim"), r"memlode sim 'my trace' --machine 'it'\''s.toml'");
        assert_eq!(NextCommands::new(Path::new("-t"), "host").of("sim"), "memlode sim ./-t");
    }
}
