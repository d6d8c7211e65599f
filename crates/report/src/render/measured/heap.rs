//! A buffer of a function that is moved.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Table, presets};
use memlode_measure::bias::heap::Heap;
use memlode_measure::bias::sweep::{Candidate, SweepVerdict};
use memlode_measure::inside::Facts;

use super::environment::pairs;
use super::picture::{Drawing, Labels};
use super::{beyond, ended_lines, swept_picture};

/// Splits explain a sweep if its times correlate with them so far.
const FOLLOWS: f64 = 0.9;
/// Contexts that differ less are not worth a word about what explains them.
const SPREAD: f64 = 1.02;

/// Returns the line of progress before a buffer is moved.
pub fn progress(runs: usize, seconds: f64, limit: f64) -> String {
    format!("{runs} timings, about {:.0} s; {limit:.0} s in all", runs as f64 * seconds)
}

/// Draws times by distance.
pub fn picture(found: &Heap) -> Drawing {
    let labels = Labels {
        title: found.function.clone(),
        across: format!("bytes by which {} is moved", found.moved),
        up: "time over the median",
    };
    swept_picture(labels, &found.swept, found.distance.iter().map(|distance| *distance as f64))
}

/// Returns all of it in a few sentences.
pub fn sentence(found: &Heap) -> String {
    let (function, moved) = (&found.function, &found.moved);
    let place =
        |one: &Candidate| format!("{} bytes ({})", found.distance[one.context], beyond(one.effect.ratio));
    let places = |all: &[Candidate]| all.iter().map(place).collect::<Vec<_>>().join(", ");
    let spikes = found.swept.of(SweepVerdict::Spike);
    let unclear = found.swept.of(SweepVerdict::Inconclusive);
    let mut said = match (spikes.first(), unclear.is_empty()) {
        (Some(first), _) => {
            format!(
                "A call of {function} is slower where {moved} is moved by {}, beside 2 KiB further.{}",
                places(&spikes),
                cause(found, first)
            )
        }
        (None, false) => format!(
            "Inconclusive: {function} is slower where {moved} is moved by {}, but distances that should not matter differ \
             as much.",
            places(&unclear)
        ),
        (None, true) => format!(
            "Moving {moved} slows no call of {function} down beside 2 KiB further; {} would have been seen.",
            beyond(found.swept.detectable())
        ),
    };
    if let Some(r) = found.follows_splits.filter(|r| *r > FOLLOWS && found.swept.spread > SPREAD) {
        said += &format!(
            " Over all distances times follow stores that cross lines (r = {r:.2}): most of their spread of {} is not \
             aliasing.",
            beyond(found.swept.spread)
        );
    }
    said
}

/// Returns the sentence, and a table of the slowest distances, their controls and the fastest one,
/// with what could make them slow.
pub fn text(found: &Heap) -> String {
    let mut table = Table::new();
    let head = ["moved by", "time", "aliases", "split loads", "split stores", "page splits", "set conflicts"];
    table.load_preset(presets::NOTHING).set_header(head);
    let ratio = |context: &usize| found.swept.ratio[*context];
    let fastest = (0..found.distance.len()).min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let shown = found.swept.candidates.iter().flat_map(|one| [one.context, one.control]).chain(fastest);
    for context in shown.collect::<BTreeSet<usize>>() {
        let counts = match &found.facts[context] {
            Some(Facts { aliases, split_loads, split_stores, page_splits, set_conflicts, .. }) => {
                [aliases, split_loads, split_stores, page_splits, set_conflicts].map(ToString::to_string)
            }
            None => std::array::from_fn(|_| "?".into()),
        };
        let first = [found.distance[context].to_string(), format!("{:.3}", ratio(&context))];
        table.add_row(first.into_iter().chain(counts));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let cut = match found.cut {
        true => "note: a call takes more instructions than were looked at; counts are of the first of them\n",
        false => "",
    };
    let steps = found.steps;
    format!(
        "{}\nOne call takes {steps:.0} steps of the calibrating chain (about three cycles each).\n{}{cut}",
        sentence(found),
        ended_lines(&table)
    )
}

/// Returns what differs between a spike and its control.
fn cause(found: &Heap, spike: &Candidate) -> String {
    let (Some(slow), Some(control)) = (&found.facts[spike.context], &found.facts[spike.control]) else {
        return String::new();
    };
    let mut others = Vec::new();
    for (what, there, here) in [
        ("stores that cross lines", slow.split_stores, control.split_stores),
        ("accesses that cross pages", slow.page_splits, control.page_splits),
        ("set conflicts", slow.set_conflicts, control.set_conflicts),
    ] {
        if there > here + here / 10 {
            others.push(format!("{what} ({there}, and {here} there)"));
        }
    }
    let at = found.swept.candidates.iter().position(|one| one.context == spike.context);
    let alike = pairs(at.map_or(&[][..], |at| &found.pairs[at]), 2);
    match (alike, others.is_empty()) {
        (Some(pairs), true) => format!(
            " Loads agree there in their low 12 bits with stores shortly before ({} times a call, and {} there): {pairs}; \
             nothing else differs.",
            slow.aliases, control.aliases
        ),
        (Some(pairs), false) => format!(
            " Loads agree there in their low 12 bits with stores shortly before ({pairs}), but it also has more {}: which \
             it is cannot be told.",
            others.join(", ")
        ),
        (None, false) => format!(" It is no aliasing: there are more {}.", others.join(", ")),
        (None, true) => " No load agrees there with a store: it is no aliasing of 12 bits.".into(),
    }
}
