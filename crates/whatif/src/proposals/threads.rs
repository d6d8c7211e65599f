//! Data that threads take from each other although none needs what another one wrote, or needs only the sum.
//!
//! Elements of an array of records, one for each thread, that begin in the middle of lines: each gets lines of its own, and so do
//! elements that are no records, or those that a thread uses together. Variables that share a line get one each. Counters that threads
//! merely add to, and that nobody reads while they run, have a copy for each thread; who reads them afterwards adds up the copies.

use memlode_attribute::sharing::{OwnMember, SharedPair, Sharer, Shares, SharingProfile};
use memlode_attribute::{ClassId, Home};
use memlode_layout::{Edit, Scope};
use memlode_trace::format::flag;
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use super::Proposal;
use crate::named::{name_of, records_named};
use crate::plan::{PlanInputs, element_of, record_of};

/// Data that cost less of a run are left alone.
const LEAST_SHARE: f64 = 0.02;

/// So many objects are looked at, those that cost most.
const MOST: usize = 3;

/// Elements are dealt to so many threads at most.
const MOST_PARTS: usize = 1 << 16;

/// Fewer writes of a second thread are no work.
const LEAST_WRITES: u64 = 1000;

/// An object that threads take from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contended {
    /// The class of the object.
    pub class: ClassId,
    /// The site that loses most.
    pub site: SiteId,
    /// The member that it touches, where the site names one of a library's type.
    pub member: Option<OwnMember>,
    /// Edits to try, of which one is advised at most.
    pub proposals: Vec<Proposal>,
}

/// Finds edits to try on what threads lose most for.
pub fn proposals(known: &PlanInputs<'_>, sharing: &SharingProfile, run_cycles: f64) -> Vec<Contended> {
    let mut lost: FxHashMap<ClassId, (f64, f64)> = FxHashMap::default();
    for pair in &sharing.pairs {
        let sum = lost.entry(pair.missed.class).or_default();
        match pair.shares {
            Shares::Falsely => sum.0 += pair.cycles,
            Shares::Truly => sum.1 += pair.cycles,
            // It comes once, wherever the data are.
            Shares::HandedOver => {}
        }
    }
    let mut lost: Vec<(ClassId, (f64, f64))> = lost.into_iter().collect();
    lost.retain(|(_, (falsely, truly))| falsely + truly >= run_cycles * LEAST_SHARE);
    lost.sort_by(|(a, x), (b, y)| (y.0 + y.1).total_cmp(&(x.0 + x.1)).then(a.cmp(b)));
    let mut found: Vec<Contended> = Vec::new();
    for (class, (falsely, _)) in lost.into_iter().take(MOST) {
        let mut edits = Vec::new();
        if falsely >= run_cycles * LEAST_SHARE {
            edits.extend(apart(known, sharing, class));
        }
        edits.extend(copied(known, sharing, class));
        let proposal =
            |edits: Vec<Edit>| Some(Proposal { subject: edits.first()?.subject().to_string(), edits });
        let proposals: Vec<Proposal> = edits.into_iter().filter_map(proposal).collect();
        // Pairs are ranked.
        let costliest = sharing.pairs.iter().find(|pair| pair.missed.class == class);
        if let (Some(pair), false) =
            (costliest, proposals.is_empty() || found.iter().any(|known| known.proposals == proposals))
        {
            let Sharer { site, member, .. } = pair.missed;
            found.push(Contended { class, site, member, proposals });
        }
    }
    found
}

/// An array of records that several threads write, each at lines of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The array.
    pub object: String,
    /// The records.
    pub structure: String,
    /// Bytes of a line that threads take from each other.
    pub line_bytes: u64,
}

impl Apart {
    /// The edit that has records begin at lines, wherever the array begins.
    pub fn at_lines(&self) -> Edit {
        self.aligned(self.line_bytes)
    }

    /// The edit that has records begin at pairs of lines, which some processors fetch together.
    pub fn at_pairs(&self) -> Edit {
        self.aligned(2 * self.line_bytes)
    }

    fn aligned(&self, to: u64) -> Edit {
        Edit::Align { subject: self.structure.clone(), of: None, to }
    }
}

/// Finds arrays of records that several threads write and of which they lose next to nothing to each other.
pub fn apart_now(known: &PlanInputs<'_>, sharing: &SharingProfile, run_cycles: f64) -> Vec<Apart> {
    let mut writers: FxHashMap<ClassId, FxHashMap<u32, u64>> = FxHashMap::default();
    for cell in &known.profile.cells {
        if known.names.site(cell.site).kind.is_write() {
            *writers.entry(cell.class).or_default().entry(cell.thread.0).or_default() +=
                cell.counts.accesses();
        }
    }
    // Somebody reads what the threads found, in the end.
    let suffers = |class: ClassId| {
        let of_class = sharing.pairs.iter().filter(|pair| pair.missed.class == class);
        of_class.map(|pair| pair.cycles).sum::<f64>() >= run_cycles * LEAST_SHARE
    };
    let mut found: Vec<(u64, Apart)> = Vec::new();
    for (class, threads) in writers {
        // The thread that writes most may be the one that makes them.
        let mut writes: Vec<u64> = threads.into_values().collect();
        writes.sort_unstable();
        let [.., second, _] = writes[..] else { continue };
        if second < LEAST_WRITES || suffers(class) {
            continue;
        }
        let of = &known.profile.classes[class.0 as usize];
        let Some((record, _)) = record_of(known.names, of).filter(|(_, bytes)| of.bytes > *bytes) else {
            continue;
        };
        let structure = known.names.layouts().layout(record).name;
        let structure = structure.map(|name| known.names.string(name).to_string());
        // A record without a name of its own is none that an edit can be about.
        let structure = structure.filter(|name| !records_named(known.names, name).is_empty());
        if let (Some(object), Some(structure), 1) = (name_of(known, &of.home), structure, of.objects) {
            found.push((second, Apart { object, structure, line_bytes: sharing.line_bytes }));
        }
    }
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.object.cmp(&other.object)));
    found.into_iter().take(MOST).map(|(_, apart)| apart).collect()
}

/// Gives what shares lines lines of its own: several ways to do so.
fn apart(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Vec<Vec<Edit>> {
    let of = &known.profile.classes[class.0 as usize];
    if let Some((record, bytes)) = record_of(known.names, of) {
        let layout = known.names.layouts().layout(record);
        let is_array = of.objects > 1 || of.bytes > bytes;
        if let (Some(name), true) = (layout.name, is_array) {
            let subject = known.names.string(name).to_string();
            return vec![vec![Edit::Align { subject, of: None, to: sharing.line_bytes }]];
        }
    }
    let elements = elements_apart(known, sharing, class);
    let variables = variables_apart(known, sharing, class);
    elements.into_iter().chain(variables).collect()
}

/// Gives the elements of an array, which are no records, lines of their own; or those that each thread gets in turn.
fn elements_apart(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Vec<Vec<Edit>> {
    let of = &known.profile.classes[class.0 as usize];
    let element = element_of(known, &of.home).filter(|&bytes| bytes > 0 && bytes < sharing.line_bytes);
    let is_array = element.is_some_and(|element| of.bytes >= 2 * element * of.objects);
    let within =
        |pair: &&SharedPair| is_between(pair, class) && pair.other.is_some_and(|other| other.class == class);
    let pairs = sharing.pairs.iter().filter(within);
    let mut threads: Vec<_> = pairs
        .flat_map(|pair| [Some(pair.missed.thread), pair.other.map(|other| other.thread)])
        .flatten()
        .collect();
    threads.sort_unstable();
    threads.dedup();
    let (Some(object), true, true) = (name_of(known, &of.home), is_array, threads.len() > 1) else {
        return Vec::new();
    };
    let of_its_own =
        Edit::Align { subject: object.clone(), of: Some(Scope::Element), to: sharing.line_bytes };
    let parts = threads.len().min(MOST_PARTS) as u32;
    vec![vec![of_its_own], vec![Edit::Deal { object, parts }]]
}

/// Gives variables that share lines one each.
fn variables_apart(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Option<Vec<Edit>> {
    // One of the two is enough to part them; both also part from whatever stands beside.
    let others = sharing.pairs.iter().filter(|pair| is_between(pair, class));
    let mut classes: Vec<ClassId> = others.filter_map(|pair| Some(pair.other?.class)).collect();
    classes.push(class);
    classes.sort_unstable();
    classes.dedup();
    let is_variable =
        |class: &ClassId| matches!(known.profile.classes[class.0 as usize].home, Home::Global { .. });
    if classes.len() < 2 || !classes.iter().all(is_variable) {
        return None;
    }
    let align = |class: ClassId| {
        let subject = name_of(known, &known.profile.classes[class.0 as usize].home)?;
        Some(Edit::Align { subject, of: Some(Scope::Object), to: sharing.line_bytes })
    };
    classes.into_iter().map(align).collect()
}

fn is_between(pair: &SharedPair, class: ClassId) -> bool {
    pair.shares == Shares::Falsely && pair.missed.class == class && pair.cycles > 0.0
}

/// Gives each thread a copy of what threads merely add to: while several run, nothing else is done to it. Of a lock, a flag, or
/// data that others read, copies would mean something else.
fn copied(known: &PlanInputs<'_>, sharing: &SharingProfile, class: ClassId) -> Option<Vec<Edit>> {
    let beside = known.profile.cells.iter().filter(|cell| cell.class == class);
    let mut beside = beside.filter(|cell| sharing.is_beside_others(cell.thread, cell.site)).peekable();
    beside.peek()?;
    if beside.any(|cell| known.names.site(cell.site).flags & flag::ADDS == 0) {
        return None;
    }
    let object = name_of(known, &known.profile.classes[class.0 as usize].home)?;
    Some(vec![Edit::PerThread { object }])
}
