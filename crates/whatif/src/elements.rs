//! Arrays whose elements are no records, and whose lines threads take from each other.

use memlode_attribute::ClassId;
use memlode_attribute::sharing::{SharedPair, SharingProfile};

use crate::contended::{array_of_records, is_between};
use crate::named::name_of;
use crate::plan::{PlanInputs, element_of};

/// An array of which threads take lines from each other.
pub(crate) struct SharedElements {
    /// The array, as edits name it.
    pub object: String,
    /// The number of the threads.
    pub threads: usize,
}

/// Finds out whether a class is such an array.
pub(crate) fn shared_elements(
    known: &PlanInputs<'_>,
    sharing: &SharingProfile,
    class: ClassId,
) -> Option<SharedElements> {
    if array_of_records(known, class).is_some() {
        return None;
    }
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
    let object = name_of(known, &of.home)?;
    (is_array && threads.len() > 1).then_some(SharedElements { object, threads: threads.len() })
}
