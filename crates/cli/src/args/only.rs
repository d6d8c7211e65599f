//! Findings that are meant.

use anyhow::{Context, Result};
use clap::Parser;
use memlode_report::{CommandAnswer, CommandFindings, only, only_changes};

/// Which findings are meant.
#[derive(Debug, Default, Parser)]
pub struct OnlyArgs {
    /// Findings, pairs and locks to show, with the rows that they are about: by handle, or by rank in this report (F3)
    #[arg(long, value_name = "HANDLE", value_delimiter = ',')]
    pub only: Vec<String>,
}

impl OnlyArgs {
    /// Leaves what is meant of a report.
    pub fn keep(&self, answer: &mut CommandAnswer) -> Result<()> {
        match &mut answer.found {
            CommandFindings::Report(report) => only(report, &self.only).context("--only")?,
            CommandFindings::Comparison(found) => only_changes(found, &self.only).context("--only")?,
            _ => {}
        }
        Ok(())
    }
}
