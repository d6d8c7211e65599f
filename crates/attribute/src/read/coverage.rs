//! Coverage: the share of the accesses that has a name.

use memlode_trace::sites::{NameEvidence, Site};
use serde::Serialize;

use crate::objects::classes::Home;
use crate::profile::Profile;

/// Executed accesses, and objects, by what is known about them. Fields are numbers of accesses
/// unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// All of them.
    pub accesses: u64,
    /// Accesses with a source line.
    pub line: u64,
    /// Accesses whose line is that of a neighbouring instruction (contained in `line`).
    pub approximate_line: u64,
    /// Accesses with a variable or a type.
    pub variable_or_type: u64,
    /// Accesses with a member path. Scalars and plain arrays rightly have none.
    pub member: u64,
    /// Accesses to an object whose allocation, symbol or stack frame is known.
    pub object: u64,
    /// Objects allocated on the heap.
    pub allocations: u64,
    /// Objects whose allocation names their type.
    pub typed_allocations: u64,
    /// Objects whose type only their accesses show (not contained in `typed_allocations`).
    pub typed_by_use: u64,
    /// Accesses by the evidence for their names.
    pub evidence: ByEvidence,
}

/// Accesses by evidence, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByEvidence {
    /// Remembered from the unoptimised module.
    pub source: u64,
    /// Debug records of the optimised module.
    pub debug: u64,
    /// Alias tag alone.
    pub tbaa: u64,
    /// A type, a variable or a line only.
    pub partial: u64,
    /// Nothing.
    pub none: u64,
}

impl Coverage {
    /// The coverage of a profile; `has_line` returns whether a site's location has a line.
    pub fn of(profile: &Profile, sites: &[Site], has_line: impl Fn(&Site) -> bool) -> Coverage {
        let mut sum = Coverage::default();
        for class in profile.classes.iter().filter(|class| matches!(class.home, Home::Heap { .. })) {
            sum.allocations += class.objects;
            if class.element_by_use {
                sum.typed_by_use += class.objects;
            } else if class.element.is_some() {
                sum.typed_allocations += class.objects;
            }
        }
        for cell in &profile.cells {
            let site = &sites[cell.site.0 as usize];
            let n = cell.counts.accesses();
            let when = |yes: bool| if yes { n } else { 0 };
            let line = has_line(site);
            sum.accesses += n;
            sum.line += when(line);
            sum.approximate_line += when(line && site.flags & memlode_trace::format::flag::APPROXIMATE != 0);
            sum.variable_or_type += when(site.variable.is_some() || site.ty.is_some());
            sum.member += when(site.member.is_some());
            sum.object += when(cell.class != crate::ClassId::UNKNOWN);
            *match site.evidence {
                NameEvidence::Source => &mut sum.evidence.source,
                NameEvidence::Debug => &mut sum.evidence.debug,
                NameEvidence::Tbaa => &mut sum.evidence.tbaa,
                NameEvidence::Partial => &mut sum.evidence.partial,
                NameEvidence::None => &mut sum.evidence.none,
            } += n;
        }
        sum
    }
}
