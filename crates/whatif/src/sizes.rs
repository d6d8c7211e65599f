//! Sizes of objects under edits, and how many elements they are.

use memlode_layout::Layout;

use crate::plan::{ElementPlaces, ObjectEdit, SpreadElements};

/// Blocks of more bytes than this that are mostly no header are taken for memory that a program
/// divides itself.
const LARGEST_HEADED: u64 = 4096;

/// Bytes that C++ keeps in front of arrays.
const COOKIES: [u64; 2] = [8, 16];

/// Returns whether a block is one element with data behind it, such as an array whose length is in
/// the element; and the layout keeps an element together.
pub(crate) fn is_header(layout: &Layout, bytes: u64, element: u64) -> bool {
    let [part] = layout.parts() else { return false };
    if let Some(tail) = layout.tail() {
        return bytes >= tail.was;
    }
    let is_whole = part.block == 1;
    let may_be_array = bytes >= 2 * element && COOKIES.contains(&(bytes % element.max(1)));
    let is_small = bytes <= LARGEST_HEADED || bytes < 4 * element;
    is_whole && element > 0 && bytes > element && !bytes.is_multiple_of(element) && !may_be_array && is_small
}

/// Offsets at which the data behind one element began, and begin under its layout.
pub(crate) fn behind(layout: &Layout) -> (u64, u64) {
    match layout.tail() {
        Some(tail) => (tail.was, tail.now),
        None => (layout.structure().bytes, layout.parts()[0].stride),
    }
}

/// Returns the bytes of a block of one element with data behind it.
pub(crate) fn headed_bytes(layout: &Layout, before: u64) -> u64 {
    let (was, now) = behind(layout);
    // Of an element with an array behind it, the end may be what is allocated, or where that begins.
    let grown = before.saturating_sub(layout.structure().bytes) + layout.parts()[0].stride;
    grown.max(now + before.saturating_sub(was))
}

/// Returns the number of elements in this many bytes, if it is whole.
pub(crate) fn whole_elements(bytes: u64, element: u64) -> Option<u64> {
    (element > 0 && bytes > 0 && bytes.is_multiple_of(element)).then(|| bytes / element)
}

/// Bytes of an object that is changed as a whole; of one of its copies, if each thread has one.
pub(crate) fn bytes_of(whole: &ObjectEdit, before: u64) -> u64 {
    let bytes = match whole.elements {
        Some(SpreadElements { element_bytes, how: ElementPlaces::Padded(to) }) => {
            before.div_ceil(element_bytes).saturating_mul(to)
        }
        Some(SpreadElements { how: ElementPlaces::Dealt(parts), .. }) => {
            part_bytes(whole, before).saturating_mul(parts.into())
        }
        None => before,
    };
    let bytes = bytes.saturating_add(whole.shift);
    if whole.pad > 0 { bytes.next_multiple_of(whole.pad) } else { bytes }
}

/// Bytes from a part of an object's elements to the next, if they are dealt; else 0.
pub(crate) fn part_bytes(whole: &ObjectEdit, before: u64) -> u64 {
    match whole.elements {
        Some(SpreadElements { element_bytes, how: ElementPlaces::Dealt(parts) }) => {
            let elements = before.div_ceil(element_bytes).div_ceil(parts.into());
            elements.saturating_mul(element_bytes).next_multiple_of(whole.apart)
        }
        _ => 0,
    }
}

/// The alignment that an object needs that is changed as a whole.
pub(crate) fn alignment_of(whole: &ObjectEdit) -> u64 {
    let is_dealt = whole.elements.is_some_and(|elements| matches!(elements.how, ElementPlaces::Dealt(_)));
    whole.align.max(if is_dealt { whole.apart } else { 0 })
}
