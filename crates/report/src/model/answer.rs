//! The answer of a command about traces, as it is shown and stored.

use serde::{Deserialize, Serialize};

use super::{Advice, Analysis, Comparison, Note, Report, Simulation, Table, TimeReport, WhatIf};

/// The answer of a command that analyses stored traces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandAnswer {
    /// Notes that a reader must know and that the findings do not have themselves.
    pub notes: Vec<Note>,
    /// Names of `--pages` that nothing is called that was accessed.
    pub unmet_pages: Vec<String>,
    /// The findings.
    pub found: CommandFindings,
}

/// Findings of a command. Source lines are not among them before they are shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandFindings {
    /// Findings of `report`.
    Report(Box<Report>),
    /// Findings of `sim`.
    Simulation(Box<Simulation>),
    /// Findings of `sim --time`.
    Timing(Box<TimeReport>),
    /// Tables of analyses of every access.
    Analysis(Analysis),
    /// Changes that `diff` finds.
    Comparison(Box<Comparison>),
    /// Effect of the edits of `whatif`.
    WhatIf(Box<WhatIf>),
    /// Edits that `advise` tried.
    Advice(Box<Advice>),
}

impl From<CommandFindings> for CommandAnswer {
    fn from(found: CommandFindings) -> CommandAnswer {
        CommandAnswer { notes: Vec::new(), unmet_pages: Vec::new(), found }
    }
}

impl CommandAnswer {
    /// Returns whether it can be shown, as one that was read from a file may not.
    pub fn is_sound(&self) -> bool {
        match &self.found {
            CommandFindings::Analysis(analysis) => analysis.tables.iter().all(Table::is_sound),
            _ => true,
        }
    }

    /// Sets where the traces lie now: `before`, and `after` for the second one of a comparison.
    pub fn locate(&mut self, before: &str, after: &str) {
        let compared = |comparison: &mut Comparison| {
            comparison.before.trace = before.to_string();
            comparison.after.trace = after.to_string();
        };
        match &mut self.found {
            CommandFindings::Report(report) => report.trace.directory = before.to_string(),
            CommandFindings::Simulation(simulation) => simulation.report.trace.directory = before.to_string(),
            CommandFindings::Timing(timing) => timing.trace.directory = before.to_string(),
            CommandFindings::Analysis(analysis) => analysis.trace = before.to_string(),
            CommandFindings::Comparison(comparison) => compared(comparison),
            CommandFindings::WhatIf(found) => compared(&mut found.comparison),
            CommandFindings::Advice(advice) => {
                advice.trace = before.to_string();
                advice.worth_it.iter_mut().for_each(|found| compared(&mut found.comparison));
            }
        }
    }
}
