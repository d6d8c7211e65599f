//! Tables of findings, and of lines that threads take from each other.

use memlode_report::{
    Data, NamedDensity, NamedEdit, NamedEvidence, NamedFinding, Position, SharedData, Side, Transfers,
};

use super::{numbers, subjects};
use crate::columns::Columns;

/// Makes the table of findings, the costliest first.
pub fn findings(levels: &[&str], findings: &[NamedFinding]) -> Columns {
    let mut out = Columns::new(findings.len());
    out.u64("rank", (1..).take(findings.len()));
    out.text("handle", findings.iter().map(|finding| &finding.handle));
    out.text("analysis", findings.iter().map(|finding| &finding.analysis));
    subjects::accesses(&mut out, &findings.iter().map(|finding| &finding.subject).collect::<Vec<_>>());
    out.f64("cost_wait_cycles", findings.iter().map(|finding| finding.cost.wait_cycles));
    out.f64("cost_wait_share", findings.iter().map(|finding| finding.cost.wait_share));
    out.u64("cost_stall_cycles", findings.iter().map(|finding| finding.cost.stall_cycles));
    out.f64("cost_stall_share", findings.iter().map(|finding| finding.cost.stall_share));
    out.maybe_text("waits", findings.iter().map(|finding| finding.evidence.iter().find_map(waits)));
    out.maybe_text("addresses", findings.iter().map(|finding| finding.evidence.iter().find_map(addresses)));
    densities(&mut out, findings);
    let split = |finding: &NamedFinding| finding.edit.as_ref().map(|NamedEdit::Split { ty, .. }| ty.clone());
    out.maybe_text("split_type", findings.iter().map(split));
    out.texts(
        "split_members",
        findings.iter().map(|finding| match &finding.edit {
            Some(NamedEdit::Split { members, .. }) => members.clone(),
            None => Vec::new(),
        }),
    );
    numbers::numbers(&mut out, levels, &findings.iter().map(|finding| &finding.numbers).collect::<Vec<_>>());
    out
}

fn waits(fact: &NamedEvidence) -> Option<&'static str> {
    match fact {
        NamedEvidence::Waits { how, .. } => Some(how.word()),
        _ => None,
    }
}

fn addresses(fact: &NamedEvidence) -> Option<&'static str> {
    match fact {
        NamedEvidence::Addresses { from } => Some(from.word()),
        _ => None,
    }
}

/// Adds how much of a type the code around each finding's line uses.
fn densities(out: &mut Columns, findings: &[NamedFinding]) {
    let all: Vec<Option<&NamedDensity>> = findings.iter().map(density).collect();
    out.maybe_u64("type_bytes", all.iter().map(|of| of.map(|of| of.type_bytes)));
    out.maybe_u64("used_bytes", all.iter().map(|of| of.map(|of| of.used_bytes)));
    out.texts("used_members", all.iter().map(|of| of.map_or(Vec::new(), |of| of.members.clone())));
    out.maybe_u64("line_bytes", all.iter().map(|of| of.map(|of| of.line_bytes)));
    out.maybe_u64("line_used_bytes", all.iter().map(|of| of.map(|of| of.line_used_bytes)));
}

fn density(finding: &NamedFinding) -> Option<&NamedDensity> {
    finding.evidence.iter().find_map(|fact| match fact {
        NamedEvidence::Density(density) => Some(density),
        _ => None,
    })
}

/// Makes the table of pairs of accesses that take lines from each other.
pub fn sharing(found: Option<&Transfers>) -> Columns {
    let pairs = |kind, of: fn(&Transfers) -> &Vec<SharedData>| {
        found.into_iter().flat_map(move |found| of(found).iter().map(move |pair| (kind, pair)))
    };
    let rows: Vec<(&str, &SharedData)> = pairs("false sharing", |found| &found.false_sharing)
        .chain(pairs("true sharing", |found| &found.true_sharing))
        .chain(pairs("handed over", |found| &found.handed_over))
        .collect();
    let mut out = Columns::new(rows.len());
    out.text("kind", rows.iter().map(|(kind, _)| kind));
    out.text("handle", rows.iter().map(|(_, pair)| &pair.handle));
    subjects::objects(&mut out, &rows.iter().map(|(_, pair)| &pair.object).collect::<Vec<_>>());
    out.u64("lines", rows.iter().map(|(_, pair)| pair.lines as u64));
    out.u64("transfers", rows.iter().map(|(_, pair)| pair.transfers));
    out.u64("cycles", rows.iter().map(|(_, pair)| pair.cycles));
    out.f64("ms", rows.iter().map(|(_, pair)| pair.ms));
    side(&mut out, "missed", &rows.iter().map(|(_, pair)| Some(&pair.missed)).collect::<Vec<_>>());
    side(&mut out, "written", &rows.iter().map(|(_, pair)| pair.written.as_ref()).collect::<Vec<_>>());
    out
}

/// Adds one of the two accesses of each pair.
fn side(out: &mut Columns, which: &str, sides: &[Option<&Side>]) {
    let none = Data::default();
    let data: Vec<&Data> = sides.iter().map(|side| side.map_or(&none, |side| &side.access.data)).collect();
    subjects::named_data(out, &format!("{which}_"), &data);
    let places: Vec<Option<&Position>> =
        sides.iter().map(|side| side.map(|side| &side.access.position)).collect();
    subjects::positions(out, &format!("{which}_"), &places);
}
