//! Commands that go on where a report ends, ready to be pasted into a shell.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::driver::toolchain::shell_quote;

/// Neighbours of a source line, from the command line.
#[derive(Clone, Copy, Debug, Default, Parser)]
pub struct ContextArgs {
    /// Show N lines above and below the source line of each finding
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=100))]
    pub context: u32,
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
        let mut text = format!("memlode {command} {}", shell_quote(&directory.into_os_string()));
        if self.machine != "host" {
            text += &format!(" --machine {}", shell_quote(&self.machine.clone().into()));
        }
        text
    }

    /// The last line of a report: the reasons of the misses, what a change would buy, and how it went over time.
    pub fn line(&self) -> String {
        format!("why: {} · what if: {} · when: {}", self.of("sim"), self.of("advise"), self.of("timeline"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        let next = NextCommands::new(Path::new("my trace"), "it's.toml");
        assert_eq!(next.of("sim"), r"memlode sim 'my trace' --machine 'it'\''s.toml'");
        assert_eq!(NextCommands::new(Path::new("-t"), "host").of("sim"), "memlode sim ./-t");
    }
}
