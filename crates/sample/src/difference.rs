//! Two recordings beside each other: what takes another part of the time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::SampleReport;
use crate::share::SampleShare;

/// A name, and its part of two recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShareChange {
    /// The name of the data, or of the function.
    pub name: String,
    /// Its part of the first.
    pub before: SampleShare,
    /// Its part of the second.
    pub after: SampleShare,
    /// The parts are farther apart than chance explains in 95 of 100 pairs of recordings.
    pub is_changed: bool,
}

/// Two recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleDifference {
    /// The first.
    pub before: SampleReport,
    /// The second.
    pub after: SampleReport,
    /// Data, that of which the part changed most first.
    pub data: Vec<ShareChange>,
    /// Functions, as `data`.
    pub functions: Vec<ShareChange>,
}

impl SampleDifference {
    /// Compares two reports, by the names of data and functions.
    pub fn of(before: SampleReport, after: SampleReport) -> SampleDifference {
        let data =
            |report: &SampleReport| named(report, report.data.iter().map(|row| (row.name(), row.time)));
        let functions = |report: &SampleReport| {
            named(report, report.functions.iter().map(|row| (row.function.clone(), row.time)))
        };
        let data = changes(data(&before), data(&after), [&before, &after]);
        let functions = changes(functions(&before), functions(&after), [&before, &after]);
        SampleDifference { before, after, data, functions }
    }
}

/// Shares by name. Rows of one name are one.
fn named(
    report: &SampleReport,
    rows: impl Iterator<Item = (String, SampleShare)>,
) -> BTreeMap<String, SampleShare> {
    let mut all: BTreeMap<String, SampleShare> = BTreeMap::new();
    for (name, row) in rows {
        let sum = all.entry(name).or_default();
        *sum = SampleShare::estimated(sum.samples + row.samples, sum.share + row.share, report.effective);
    }
    all
}

fn changes(
    before: BTreeMap<String, SampleShare>,
    mut after: BTreeMap<String, SampleShare>,
    reports: [&SampleReport; 2],
) -> Vec<ShareChange> {
    let [none_before, none_after] = reports.map(|report| SampleShare::estimated(0, 0.0, report.effective));
    let mut pairs: Vec<(String, SampleShare, SampleShare)> = Vec::new();
    for (name, before) in before {
        let after = after.remove(&name).unwrap_or(none_after);
        pairs.push((name, before, after));
    }
    pairs.extend(after.into_iter().map(|(name, after)| (name, none_before, after)));
    let mut rows: Vec<ShareChange> = pairs.into_iter().map(ShareChange::of).collect();
    rows.sort_by(|a, b| b.apart().total_cmp(&a.apart()));
    rows
}

impl ShareChange {
    fn of((name, before, after): (String, SampleShare, SampleShare)) -> ShareChange {
        let mut row = ShareChange { name, before, after, is_changed: false };
        row.is_changed = row.apart() > before.error.hypot(after.error);
        row
    }

    fn apart(&self) -> f64 {
        (self.after.share - self.before.share).abs()
    }
}
