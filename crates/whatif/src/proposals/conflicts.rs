//! Data that fall into the same sets of a cache, because their distances are large powers of two.
//!
//! Rows of such a size, walked down a column, use a few sets, whatever the cache could hold: a line more to each row spreads them.
//! Arrays that begin at the same place of a page, read side by side, compete for one set after the other: each begins some lines
//! later than the one before.

use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_trace::sites::FunctionId;

use super::{Proposal, Uses};

/// The smallest row of which few sets are used.
const ROW: u64 = 256;

/// Bytes behind which a first level has the same set again, at most: those of a page.
const PAGE: u64 = 4096;

pub(super) fn proposals(machine: &Machine, uses: &[Uses]) -> Vec<Proposal> {
    let Some(first) = machine.levels.first() else { return Vec::new() };
    let line = u64::from(first.line_bytes);
    let mut found: Vec<Proposal> = Vec::new();
    for used in uses {
        let Some(record) = &used.record else { continue };
        let bytes = used.element_bytes;
        if bytes < ROW || !bytes.is_multiple_of(ROW) || found.iter().any(|known| known.subject == *record) {
            continue;
        }
        let edit = Edit::Pad { subject: record.clone(), of: None, to: bytes + line };
        found.push(Proposal { subject: record.clone(), edits: vec![edit] });
    }
    let mut functions: Vec<FunctionId> =
        uses.iter().flat_map(|used| used.by_function.keys().copied()).collect();
    functions.sort_by_key(|function| function.0);
    functions.dedup();
    for function in functions {
        let arrays: Vec<&Uses> = uses
            .iter()
            .filter(|used| {
                used.objects == 1 && used.bytes >= PAGE && used.by_function.contains_key(&function)
            })
            .collect();
        // Fewer than the ways of a set never drive each other out.
        if arrays.len() * 2 <= first.ways as usize {
            continue;
        }
        let apart = (PAGE / arrays.len() as u64 / line * line).max(line);
        let shift =
            |(number, used): (u64, &&Uses)| Edit::Shift { object: used.name.clone(), by: number * apart };
        let edits: Vec<Edit> = (1..).zip(&arrays[1..]).map(shift).collect();
        let names: Vec<&str> = arrays.iter().map(|used| used.name.as_str()).collect();
        found.push(Proposal { subject: names.join(", "), edits });
    }
    found
}
