//! Large objects that a program jumps about in, whose pages are more than translations are kept of: in large pages, a translation reaches
//! over hundreds of them.

use memlode_layout::Edit;
use memlode_machine::Machine;

use super::{Proposal, Uses};

/// The large page of the processors that there are descriptions of, and of `madvise(MADV_HUGEPAGE)`.
const LARGE: u64 = 2 << 20;

/// The part of an object's waiting that is for jumps, at least: streams go to the next page seldom.
const JUMPING: f64 = 0.5;

pub(super) fn proposals(machine: &Machine, uses: &[Uses]) -> Vec<Proposal> {
    let kept = machine.tlbs.iter().any(|tlb| tlb.page_bytes.contains(&LARGE));
    if !kept || machine.page_bytes >= LARGE {
        return Vec::new();
    }
    let reach = machine.tlbs.iter().filter(|tlb| tlb.page_bytes.contains(&machine.page_bytes));
    let reach = reach.map(|tlb| u64::from(tlb.entries) * machine.page_bytes).max().unwrap_or(u64::MAX);
    let is_spread = |used: &&Uses| {
        used.bytes > reach
            && used.bytes / used.objects.max(1) >= LARGE
            && used.by_function.values().map(|waits| waits.jumping).sum::<f64>() >= JUMPING * used.wait()
    };
    let edit = |used: &Uses| Proposal {
        subject: used.name.clone(),
        edits: vec![Edit::Pages { object: used.name.clone(), to: LARGE }],
    };
    uses.iter().filter(is_spread).map(edit).collect()
}
