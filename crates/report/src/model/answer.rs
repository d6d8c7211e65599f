//! The answer of a command about traces, as it is shown and kept.

use serde::{Deserialize, Serialize};

use super::{Advice, Analysis, Comparison, Note, Report, Simulation, Table, TimeReport, WhatIf};

/// The answer of a command that analyses stored traces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Notes that a reader must know and that the findings do not have themselves.
    pub notes: Vec<Note>,
    /// Names of `--pages` that nothing is called that was accessed.
    pub unmet_pages: Vec<String>,
    /// The findings.
    pub found: Found,
}

/// Findings of a command. Source lines are not among them before they are shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Of `report`.
    Report(Box<Report>),
    /// Of `sim`.
    Simulation(Box<Simulation>),
    /// Of `sim --time`.
    Timing(Box<TimeReport>),
    /// Of analyses of every access.
    Analysis(Analysis),
    /// Of `diff`.
    Comparison(Box<Comparison>),
    /// Of `whatif`.
    WhatIf(Box<WhatIf>),
    /// Of `advise`.
    Advice(Box<Advice>),
}

impl From<Found> for Answer {
    fn from(found: Found) -> Answer {
        Answer { notes: Vec::new(), unmet_pages: Vec::new(), found }
    }
}

impl Answer {
    /// Returns whether it can be shown, as one that was read from a file may not.
    pub fn is_sound(&self) -> bool {
        match &self.found {
            Found::Analysis(analysis) => analysis.tables.iter().all(Table::is_sound),
            _ => true,
        }
    }

    /// Says where the traces lie now: `before`, and `after` for the second one of a comparison.
    pub fn locate(&mut self, before: &str, after: &str) {
        let compared = |comparison: &mut Comparison| {
            comparison.before.trace = before.to_string();
            comparison.after.trace = after.to_string();
        };
        match &mut self.found {
            Found::Report(report) => report.trace.directory = before.to_string(),
            Found::Simulation(simulation) => simulation.report.trace.directory = before.to_string(),
            Found::Timing(timing) => timing.trace.directory = before.to_string(),
            Found::Analysis(analysis) => analysis.trace = before.to_string(),
            Found::Comparison(comparison) => compared(comparison),
            Found::WhatIf(found) => compared(&mut found.comparison),
            Found::Advice(advice) => {
                advice.trace = before.to_string();
                advice.worth_it.iter_mut().for_each(|found| compared(&mut found.comparison));
            }
        }
    }
}
