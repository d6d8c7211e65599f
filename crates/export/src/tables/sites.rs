//! The table of sites: each place in the code that makes an access, with its names, its lines and its counts.

use memlode_attribute::place::{Line, place, what};
use memlode_report::build::naming::Naming;
use memlode_report::build::rows_by;
use memlode_report::render::terminal;
use memlode_report::{NamedRow, Numbers};
use memlode_trace::sites::{Location, NameEvidence, Site, SiteId};

use super::{Counted, numbers, subjects};
use crate::columns::Columns;
use crate::names::{KINDS, kind};

/// Makes the table of the sites that were executed, the costliest first.
pub fn sites(counted: &Counted<'_>, levels: &[&str]) -> Columns {
    let names = counted.trace.sites();
    let Counted { trace, machine, profile, costs, .. } = counted;
    let rows: Vec<NamedRow<SiteId>> = rows_by(trace, machine, profile, costs, |cell| {
        counted.has(names.site(cell.site)).then_some(cell.site)
    });
    let sites: Vec<&Site> = rows.iter().map(|row| names.site(row.subject)).collect();
    let naming = Naming::new(names);
    let mut out = Columns::new(rows.len());
    out.u64("site", rows.iter().map(|row| row.subject.0.into()));
    out.text("kind", sites.iter().map(|site| KINDS[kind(site) as usize]));
    out.u64("bytes", sites.iter().map(|site| site.bytes.into()));
    let access = |site: &&Site| naming.access(&what(names, site, true), &place(names, site));
    let accesses: Vec<_> = sites.iter().map(access).collect();
    subjects::accesses(&mut out, &accesses.iter().collect::<Vec<_>>());
    out.maybe_u32("column", sites.iter().map(|site| column(counted, site)));
    out.texts("inlined_through", sites.iter().map(|site| chain(counted, naming, site)));
    out.text("compiled_into", sites.iter().map(|site| names.string(names.symbol(site.function))));
    out.text("named_by", sites.iter().map(|site| evidence(site)));
    numbers::numbers(&mut out, levels, &rows.iter().map(|row| &row.numbers).collect::<Vec<&Numbers>>());
    out
}

fn column(counted: &Counted<'_>, site: &Site) -> Option<u32> {
    let location = counted.trace.sites().location(site.location?);
    (location.column > 0).then_some(location.column)
}

/// The calls that the line was inlined at, the innermost first.
fn chain(counted: &Counted<'_>, naming: Naming<'_>, site: &Site) -> Vec<String> {
    let names = counted.trace.sites();
    let lines = site.location.into_iter().flat_map(|location| names.inline_chain(location)).skip(1);
    let line = |at: &Location| naming.line(&Line::of(names, at.function, at.line));
    lines.map(|at| terminal::place(&line(at))).collect()
}

/// The evidence for a site's names, in a word.
fn evidence(site: &Site) -> &'static str {
    match site.evidence {
        NameEvidence::Source => "source",
        NameEvidence::Debug => "debug",
        NameEvidence::Tbaa => "tbaa",
        NameEvidence::Partial => "partial",
        NameEvidence::None => "none",
    }
}
