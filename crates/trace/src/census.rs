//! Which sites were executed and how often: every claim that the names of a trace make, one a line.

use std::io::{self, Write};

use crate::event::{Batch, Mark};
use crate::format::flag;
use crate::read::Trace;
use crate::sites::{Dependence, Location, NameEvidence, SiteId, SiteTable};
use crate::text::{escape, kind};

/// The columns, as the first line of a list of sites.
///
/// * `events`: how often the site was executed
/// * `kind`: load, store, update, alloc or free
/// * `bytes`: length of one access, 0 if it varies
/// * `evidence`: how the names were found: source, debug, tbaa, partial or none
/// * `place`: directory/file:line:column of the source text; `~` in front when it is a neighbour's
/// * `function`: the function of that source text
/// * `inlined`: the same of the outermost call that the function was inlined into
/// * `variable`, `type`, `member`: the names in the source text
/// * `dependence`: the origin of the address: chased, loaded or computed
/// * `instructions`: about how many are executed from the access before to this one, and behind it
///   to the segment's end
///
/// The head of an export. Anything unknown, or that does not apply, is `-`. Names are escaped as in
/// a dump of events.
pub const HEADER: &str = "#events\tkind\tbytes\tevidence\tplace\tfunction\tinlined\tvariable\ttype\tmember\tdependence\tinstructions";

/// Counts executions by site.
pub struct Census<'t> {
    trace: &'t Trace,
    events: Vec<u64>,
}

impl<'t> Census<'t> {
    /// Nothing has been counted yet.
    pub fn new(trace: &'t Trace) -> Self {
        Census { trace, events: vec![0; trace.sites().sites().len()] }
    }

    /// Counts the accesses, allocations and releases of a batch.
    pub fn add(&mut self, batch: &Batch) {
        for access in &batch.accesses {
            self.events[access.site.0 as usize] += 1;
        }
        for (_, mark) in &batch.marks {
            if let Mark::Alloc { site, .. }
            | Mark::Realloc { site, .. }
            | Mark::Free { site, .. }
            | Mark::Unmap { site, .. } = *mark
            {
                self.events[site.0 as usize] += 1;
            }
        }
    }

    /// Writes the executed sites, most executed first.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let sites = self.trace.sites();
        let mut order: Vec<SiteId> = (0..self.events.len() as u32)
            .map(SiteId)
            .filter(|site| self.events[site.0 as usize] > 0)
            .collect();
        order.sort_by_key(|site| (std::cmp::Reverse(self.events[site.0 as usize]), *site));
        for id in order {
            writeln!(out, "{}\t{}", self.events[id.0 as usize], columns(sites, id))?;
        }
        Ok(())
    }
}

fn columns(sites: &SiteTable, id: SiteId) -> String {
    let site = sites.site(id);
    let chain: Vec<&Location> = site.location.map_or_else(Vec::new, |at| sites.inline_chain(at).collect());
    let place = |at: &Location| match sites.function(at.function).file {
        Some((directory, name)) => {
            let (directory, name) = (sites.string(directory), sites.string(name));
            let file = if name.starts_with('/') || directory.is_empty() {
                escape(name)
            } else {
                escape(&format!("{}/{name}", directory.trim_end_matches('/')))
            };
            format!("{file}:{}:{}", at.line, at.column)
        }
        None => "-".to_owned(),
    };
    let here = match chain.first() {
        Some(at) if site.flags & flag::APPROXIMATE != 0 => format!("~{}", place(at)),
        Some(at) => place(at),
        None => "-".to_owned(),
    };
    let inlined = if chain.len() > 1 { place(chain[chain.len() - 1]) } else { "-".to_owned() };
    let function = chain.first().map_or(site.function, |at| at.function);
    let text = |id| escape(sites.string(id));
    let or_dash = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
    [
        kind(sites, id).to_owned(),
        site.bytes.to_string(),
        evidence(site.evidence).to_owned(),
        here,
        escape(sites.string(sites.function(function).name)),
        inlined,
        or_dash(site.variable.map(text)),
        or_dash(site.ty.map(|ty| text(sites.ty(ty).name))),
        or_dash(site.member.map(text)),
        site.dependence().map_or("-", Dependence::word).to_owned(),
        or_dash(sites.work(id).map(|work| format!("{:.1}", work.before + work.after))),
    ]
    .join("\t")
}

fn evidence(evidence: NameEvidence) -> &'static str {
    match evidence {
        NameEvidence::Source => "source",
        NameEvidence::Debug => "debug",
        NameEvidence::Tbaa => "tbaa",
        NameEvidence::Partial => "partial",
        NameEvidence::None => "none",
    }
}
