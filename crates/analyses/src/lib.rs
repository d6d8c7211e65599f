//! One file per analysis: tables or accesses to findings.
//!
//! A [`Finder`] looks at the tables of a profile, and what it finds is in every report. An [`events::Analysis`] looks at every access, and
//! is asked for by name.
//!
//! An analysis says what is wrong as data, never as text: numbers, ids of names, and the change it suggests. The
//! doc comment of its file is the user's page on it.

pub mod events;
pub mod offenders;
pub mod reuse;
pub mod shared;
pub mod strides;
pub mod timeline;
pub mod working_set;

use memlode_attribute::tables::{Place, Row, Tables, What};
use memlode_attribute::{Cell, ClassId, Counts, Errors, Estimate};
use memlode_trace::sites::{Dependence, SiteTable, StringId};
use rustc_hash::FxHashMap;

/// What an analysis says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Short name, stable: `offenders`.
    pub id: &'static str,
    /// What it finds, in a few words.
    pub title: &'static str,
}

/// What an analysis may look at.
pub struct Context<'a> {
    /// The roll-ups of the profile.
    pub tables: &'a Tables<'a>,
    /// Names of the trace.
    pub names: &'a SiteTable,
}

/// Finds one kind of trouble.
pub trait Finder {
    /// Its name.
    const META: Meta;

    /// What it finds, the costliest first.
    fn findings(&self, cx: &Context) -> Vec<Finding>;
}

/// One thing found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// By which analysis.
    pub analysis: Meta,
    /// The data.
    pub what: What,
    /// The line that touches it.
    pub place: Place,
    /// The accesses there.
    pub counts: Counts,
    /// How far their figures may be off, if they are a sample's.
    pub errors: Option<Errors>,
    /// Modelled cycles beyond the first level; an upper bound, since misses overlap.
    pub stall_cycles: u64,
    /// Its part of the whole program's modelled stall cycles, 0 to 1.
    pub stall_share: f64,
    /// Other lines of the same function that touch the same type: one change of layout serves them all. The
    /// costliest first; none of them is a finding of its own.
    pub also: Vec<Also>,
    /// [`Finding::whole_share`], if it is a sample's.
    pub whole: Option<Estimate>,
    /// By how much it is larger than that of the next finding, if it is a sample's.
    pub lead: Option<Estimate>,
    /// The object classes touched, the costliest first.
    pub objects: Vec<Row<ClassId>>,
    /// What the addresses come out of, where most of the cost is: it says whether these misses wait for each other.
    pub dependence: Option<Dependence>,
    /// How densely the type is used around the line.
    pub density: Option<Density>,
    /// The change to make, where the evidence is plain.
    pub suggestion: Option<Suggestion>,
}

/// A line that belongs to a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Also {
    /// The data.
    pub what: What,
    /// The line.
    pub place: Place,
    /// The accesses there.
    pub counts: Counts,
    /// How far their figures may be off, if they are a sample's.
    pub errors: Option<Errors>,
    /// Its part of the whole program's modelled stall cycles, 0 to 1.
    pub stall_share: f64,
}

impl Finding {
    /// Part of the whole program's modelled stall cycles, 0 to 1, of the finding's line and the ones that belong to it.
    pub fn whole_share(&self) -> f64 {
        self.stall_share + self.also.iter().map(|also| also.stall_share).sum::<f64>()
    }
}

/// Which part of each object of a type the code around a line uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Density {
    /// The type.
    pub ty: StringId,
    /// Its size in bytes.
    pub type_bytes: u64,
    /// Bytes of the members that are used, at most `type_bytes`.
    pub used_bytes: u64,
    /// Those members, the most used first.
    pub members: Vec<StringId>,
}

/// A change of layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suggestion {
    /// Store these members apart from the rest of the type: in arrays of their own (structure of arrays), or by moving the
    /// rest out behind a pointer (splitting).
    Separate {
        /// The type.
        ty: StringId,
        /// The members that belong together.
        members: Vec<StringId>,
    },
}

/// All analyses, over one profile: findings in the order of their cost.
pub fn all(cx: &Context) -> Vec<Finding> {
    let mut findings = offenders::Offenders::default().findings(cx);
    findings.sort_by(|a, b| b.whole_share().total_cmp(&a.whole_share()));
    tell_apart(cx, &mut findings);
    findings
}

/// In a sample: how far the shares of findings may be off, and the differences from one to the next.
fn tell_apart(cx: &Context, findings: &mut [Finding]) {
    let mut number_of: FxHashMap<(What, Place), usize> = FxHashMap::default();
    for (number, finding) in findings.iter().enumerate() {
        number_of.insert((finding.what, finding.place), number);
        number_of.extend(finding.also.iter().map(|also| ((also.what, also.place), number)));
    }
    let group = |cell: &Cell| number_of.get(&cx.tables.key_of(cell)).copied();
    let Some(shares) = cx.tables.shares(findings.len(), group) else { return };
    let count = findings.len();
    for (number, finding) in findings.iter_mut().enumerate() {
        finding.whole = Some(shares.of(number));
        finding.lead = (number + 1 < count).then(|| shares.difference(number, number + 1));
    }
}
