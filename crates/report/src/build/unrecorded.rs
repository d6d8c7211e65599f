//! Places that were executed, touch memory and are not recorded.

use std::collections::{BTreeMap, BTreeSet};

use memlode_attribute::place::{Line, Place};
use memlode_replay::Replayed;
use memlode_trace::sites::SiteTable;
use memlode_trace::{LeftOut, Unrecorded};

use crate::model::{Evidence, NotRecorded, Note};
use crate::names::demangle_short;

/// Returns the code that the chunks of a replay executed without a record of it, most executed
/// first. Where a table does not count executions, the places in the code. Filters have a separate
/// note.
pub fn note(sites: &SiteTable, replayed: Option<&Replayed>) -> Option<Note> {
    let mut places = replayed.map_or_else(Vec::new, |replayed| executed(sites, replayed, |_| true));
    places.extend(untold(sites, replayed.is_some()));
    (!places.is_empty()).then_some(Note::NotRecorded { places })
}

/// Returns a reason as a name; none of a filter.
fn name(reason: LeftOut) -> Option<&'static str> {
    Some(match reason {
        LeftOut::Assembly => "inline assembly",
        LeftOut::ByValue => "by-value copies",
        LeftOut::AddressSpace => "segment registers",
        LeftOut::Vector => "wide or scalable vectors",
        LeftOut::Intrinsic => "unknown operations",
        LeftOut::AssemblyJump => "assembly with jumps",
        LeftOut::TailCall => "library calls in tail position",
        LeftOut::Function => "whole functions",
        LeftOut::Call => "calls",
        LeftOut::Filter => return None,
    })
}

/// Returns the code that was executed without a record of it at the line of a finding: at the line
/// that can be changed, including inlined functions there.
pub fn beside(sites: &SiteTable, replayed: &Replayed, place: &Place) -> Option<Evidence> {
    let line = place.inlined_into.unwrap_or(place.line);
    let is_there = |place: &Unrecorded| {
        let chain = place.location.into_iter().flat_map(|location| sites.inline_chain(location));
        line.line > 0 && chain.into_iter().any(|at| Line::of(sites, at.function, at.line) == line)
    };
    let places = executed(sites, replayed, is_there);
    (!places.is_empty()).then_some(Evidence::Unrecorded { places })
}

/// Returns each kind of place that was executed, of the `wanted` kinds.
fn executed(
    sites: &SiteTable,
    replayed: &Replayed,
    wanted: impl Fn(&Unrecorded) -> bool,
) -> Vec<NotRecorded> {
    let mut kinds: BTreeMap<_, (u64, BTreeSet<&Unrecorded>)> = BTreeMap::new();
    for (&id, &times) in &replayed.unrecorded {
        for place in sites.unrecorded(id).filter(|place| wanted(place)) {
            let callee = place.callee.map(|name| demangle_short(sites.string(name)));
            let (sum, places) = kinds.entry((place.reason, callee)).or_default();
            *sum = sum.saturating_add(times);
            places.insert(place);
        }
    }
    let mut found: Vec<NotRecorded> = kinds
        .into_iter()
        .filter_map(|((reason, function), (times, places))| {
            Some(NotRecorded {
                reason: name(reason)?.into(),
                function,
                places: places.len() as u64,
                executed: Some(times),
            })
        })
        .collect();
    found.sort_by_key(|kind| std::cmp::Reverse(kind.executed));
    found
}

/// Returns reasons that have places in the code whose executions are not counted.
fn untold(sites: &SiteTable, is_replayed: bool) -> Vec<NotRecorded> {
    let told: BTreeSet<LeftOut> = sites.counted().collect();
    let is_untold = |reason: &LeftOut| !is_replayed || !told.contains(reason);
    let reasons = sites.left_out().iter().filter(|(reason, _)| is_untold(reason));
    reasons
        .filter_map(|(&reason, &places)| {
            Some(NotRecorded { reason: name(reason)?.into(), function: None, places, executed: None })
        })
        .collect()
}
