//! Helpers that several tests have in common.

use memlode_trace::sites::{FunctionId, NameEvidence, Site, SiteKind};

/// A site of eight bytes without names, of the first function.
pub fn site(kind: SiteKind, flags: u32) -> Site {
    Site {
        kind,
        evidence: NameEvidence::Source,
        flags,
        bytes: 8,
        function: FunctionId(0),
        location: None,
        variable: None,
        ty: None,
        member: None,
    }
}
