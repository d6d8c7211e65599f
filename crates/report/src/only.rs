//! A report of some of its findings.

use std::fmt;

use crate::about::{self, About, Subject};
use crate::model::{Advice, Comparison, Report, Row, Transfers};
use crate::ranked::ranked;

/// A name that no finding has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFinding {
    name: String,
    known: Vec<String>,
}

impl fmt::Display for UnknownFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing here is called {}", crate::text::printable(&self.name))?;
        match &self.known[..] {
            [] => f.write_str(": there are no findings"),
            known => write!(f, "; findings are {}", known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownFinding {}

/// Leaves the findings, pairs and locks that are named by handle or rank (F3), and the rows of tables that
/// they are about. What is about the whole run stays.
///
/// # Errors
/// The first name that nothing has.
pub fn only(report: &mut Report, names: &[String]) -> Result<(), UnknownFinding> {
    if names.is_empty() {
        return Ok(());
    }
    let source = report.clone();
    let by_rank: Vec<&str> = ranked(&source).into_iter().map(|finding| finding.handle()).collect();
    let all = about::all(&source);
    let mut kept: Vec<&About<'_>> = Vec::new();
    for name in names {
        let rank = name.strip_prefix('F').and_then(|rank| rank.parse::<usize>().ok());
        let ranked = rank.and_then(|rank| by_rank.get(rank.checked_sub(1)?).copied());
        let handle = ranked.unwrap_or(name);
        let found = all.iter().find(|about| about.handle == handle);
        let known = || by_rank.iter().map(|handle| handle.to_string()).collect();
        kept.push(found.ok_or_else(|| UnknownFinding { name: name.clone(), known: known() })?);
    }
    let is_named = |handle: &str| kept.iter().any(|about| about.handle == handle);
    report.findings.retain(|finding| is_named(&finding.handle));
    keep_rows(&mut report.lines, &kept);
    keep_rows(&mut report.data, &kept);
    keep_rows(&mut report.fields, &kept);
    keep_rows(&mut report.types, &kept);
    keep_rows(&mut report.objects, &kept);
    keep_rows(&mut report.functions, &kept);
    if let Some(sharing) = &mut report.sharing {
        keep_shared(sharing, &is_named);
    }
    Ok(())
}

/// Leaves the rows of a comparison that these findings of either side are about.
///
/// # Errors
/// The first handle that no row has.
pub fn only_changes(found: &mut Comparison, names: &[String]) -> Result<(), UnknownFinding> {
    if names.is_empty() {
        return Ok(());
    }
    let mut known: Vec<String> = found.lines.iter().flat_map(|row| row.findings.clone()).collect();
    known.extend(found.objects.iter().flat_map(|row| row.findings.clone()));
    known.sort();
    known.dedup();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(UnknownFinding { name: name.clone(), known });
    }
    let is_kept = |findings: &[String]| names.iter().any(|name| findings.contains(name));
    found.data.retain(|row| is_kept(&row.findings));
    found.lines.retain(|row| is_kept(&row.findings));
    found.objects.retain(|row| is_kept(&row.findings));
    found.types.retain(|row| is_kept(&row.findings));
    Ok(())
}

/// The edits that a handle of advice stands for, worth it or not.
pub fn edits_called(advice: &Advice, handle: &str) -> Option<Vec<String>> {
    let worth_it = advice.worth_it.iter().find(|found| found.handle == handle);
    let rejected = advice.rejected.iter().find(|found| found.handle == handle);
    let texts = |edits: &[memlode_layout::Edit]| edits.iter().map(ToString::to_string).collect();
    worth_it.map(|found| found.edits.clone()).or_else(|| rejected.map(|found| texts(&found.rejected.edits)))
}

fn keep_rows<S: Subject>(rows: &mut Vec<Row<S>>, kept: &[&About<'_>]) {
    rows.retain(|row| kept.iter().any(|about| row.subject.is_of(about)));
}

/// Leaves what is named, and the pairs of objects that are.
fn keep_shared(sharing: &mut Transfers, is_named: &impl Fn(&str) -> bool) {
    let objects = sharing.objects.clone();
    let named = || objects.iter().filter(|object| is_named(&object.handle));
    let falsely: Vec<usize> = named().flat_map(|object| object.false_rows.clone()).collect();
    let truly: Vec<usize> = named().flat_map(|object| object.true_rows.clone()).collect();
    sharing.objects.retain(|object| is_named(&object.handle));
    sharing.locks.retain(|lock| is_named(&lock.handle));
    sharing.handed_over.retain(|pair| is_named(&pair.handle));
    sharing.cache_lines.retain(|line| named().any(|object| object.object.home == line.object.home));
    for (pairs, rows_of_objects, is_false) in
        [(&mut sharing.false_sharing, falsely, true), (&mut sharing.true_sharing, truly, false)]
    {
        let mut moved = vec![None; pairs.len()];
        let mut rows = Vec::new();
        for (at, pair) in std::mem::take(pairs).into_iter().enumerate() {
            if rows_of_objects.contains(&at) || is_named(&pair.handle) {
                moved[at] = Some(rows.len());
                rows.push(pair);
            }
        }
        *pairs = rows;
        for object in &mut sharing.objects {
            let rows = if is_false { &mut object.false_rows } else { &mut object.true_rows };
            *rows = rows.iter().filter_map(|&at| moved.get(at).copied().flatten()).collect();
        }
    }
}
