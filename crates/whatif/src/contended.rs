//! Objects that threads take from each other, although none needs the other's values, or needs only
//! the sum.

use memlode_attribute::ClassId;
use memlode_attribute::sharing::{OwnMember, SharedPair, Sharer, Shares, SharingProfile};
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::plan::{PlanInputs, record_of};
use crate::remedy::{Case, CaseSubject, Proposal, proposals};

/// Data that cost less of a run are left alone.
pub(crate) const LEAST_SHARE: f64 = 0.02;

/// The most objects that are examined, the costliest first.
const MOST: usize = 3;

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

/// Finds edits to try on the objects for which threads lose most.
pub fn contended(known: &PlanInputs<'_>, sharing: &SharingProfile, run_cycles: f64) -> Vec<Contended> {
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
        let is_falsely = falsely >= run_cycles * LEAST_SHARE;
        let case = Case { inputs: known, subject: CaseSubject::Contended { class, sharing, is_falsely } };
        let proposals = proposals(&case);
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

/// The name of the record that a class has arrays of, or many.
pub(crate) fn array_of_records<'a>(known: &PlanInputs<'a>, class: ClassId) -> Option<&'a str> {
    let of = &known.profile.classes[class.0 as usize];
    let (record, bytes) = record_of(known.names, of)?;
    let name = known.names.layouts().layout(record).name?;
    (of.objects > 1 || of.bytes > bytes).then(|| known.names.string(name))
}

/// Returns whether a pair takes a line of this class falsely.
pub(crate) fn is_between(pair: &SharedPair, class: ClassId) -> bool {
    pair.shares == Shares::Falsely && pair.missed.class == class && pair.cycles > 0.0
}
