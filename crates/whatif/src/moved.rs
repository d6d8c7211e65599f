//! The places of the bytes of moved objects.

use memlode_attribute::{AddressMap, ElementTable, MappedPiece, ObjectRef, PlaceHint, TableByte, TablePart};
use memlode_layout::{Layout, PagePlacement, Part, PartPiece, PlacedByte};
use memlode_trace::event::ProcessId;
use rustc_hash::FxHashMap;

use crate::side_by_side::EditedRanges;

/// The places of all blocks of a trace under a plan.
#[derive(Debug, Default)]
pub struct Moved {
    pub(crate) layouts: Vec<Layout>,
    /// The places of the bytes of each layout's elements; empty ones where elements are too large.
    pub(crate) tables: Vec<ElementTable>,
    pub(crate) heaps: FxHashMap<ProcessId, Heap>,
    /// Objects by their process and address.
    pub(crate) globals: FxHashMap<(ProcessId, u64), MovedObject>,
    /// The objects that edits are about, by the addresses that they had.
    pub(crate) edited: EditedRanges,
    /// Objects whose pages a plan puts on memory nodes.
    pub(crate) on_nodes: Vec<OnNodes>,
    /// Stacks and memory that no object has get fixed places, too.
    pub(crate) is_fixed: bool,
}

/// An object whose pages are on memory nodes by a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnNodes {
    pub base: u64,
    pub bytes: u64,
    pub on: PagePlacement,
}

impl OnNodes {
    /// Adds the address ranges of its pages, and the node of each: the policy has all of a page that the object has a part of, as
    /// `mbind` does.
    fn ranges(&self, nodes: u32, page_bytes: u64, out: &mut Vec<(u64, u64, u32)>) {
        let first = self.base / page_bytes;
        let pages = self.base.saturating_add(self.bytes.max(1) - 1) / page_bytes - first + 1;
        let mut range = |from: u64, to: u64, node: u32| {
            out.push(((first + from) * page_bytes, (first + to) * page_bytes, node));
        };
        match self.on {
            PagePlacement::FirstTouch => {}
            PagePlacement::Node(node) => range(0, pages, node),
            PagePlacement::Interleave => {
                (0..pages).for_each(|page| range(page, page + 1, ((first + page) % u64::from(nodes)) as u32));
            }
            PagePlacement::Blockwise => {
                let begin = |node: u32| pages * u64::from(node) / u64::from(nodes);
                (0..nodes).for_each(|node| range(begin(node), begin(node + 1), node));
            }
        }
    }
}

/// The blocks of a process.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Objects by their number; 0 for unmoved ones, and [`EDITED`] with a place in `edited` for
    /// those that changed in other ways.
    pub bases: Vec<u64>,
    /// Blocks of which more changed than where they begin.
    pub edited: Vec<MovedObject>,
}

impl Heap {
    /// Adds a block that changed in other ways; returns the number that stands for its base.
    pub fn edit(&mut self, object: MovedObject) -> u64 {
        self.edited.push(object);
        EDITED | (self.edited.len() as u64 - 1)
    }
}

/// An object of which more changed than where it begins.
#[derive(Clone, Debug)]
pub(crate) enum MovedObject {
    /// It has another layout, whose parts begin here.
    Parts {
        /// An index into [`Moved::layouts`].
        layout: usize,
        bases: Box<[u64]>,
        /// The number of elements of the parts behind the first that lie before this object's.
        elements_before: u64,
    },
    /// It is one element with another layout, with other data behind it.
    Headed {
        /// An index into [`Moved::layouts`].
        layout: usize,
        base: u64,
        /// Offsets at which the data behind it began, and begins now.
        behind: (u64, u64),
    },
    /// There are gaps between its elements.
    Spread { base: u64, element_bytes: u64, stride: u64 },
    /// Its elements are dealt in turn to parts at this distance.
    Dealt { base: u64, element_bytes: u64, parts: u64, part_bytes: u64 },
    /// Each thread has a copy.
    Copies { base: u64, stride: u64 },
    /// It begins elsewhere.
    Whole { base: u64 },
}

/// The place of an object.
enum Place<'m> {
    At(u64),
    Edited(&'m MovedObject),
}

impl Moved {
    /// The places of nothing yet, of a plan with these layouts.
    pub(crate) fn under(layouts: Vec<Layout>) -> Moved {
        let tables = layouts.iter().map(table).collect();
        Moved { layouts, tables, ..Moved::default() }
    }

    /// The address ranges whose pages are on given memory nodes: first address, the one behind the
    /// last, node.
    pub(crate) fn node_ranges(&self, nodes: u32, page_bytes: u64) -> Vec<(u64, u64, u32)> {
        let mut ranges = Vec::new();
        self.on_nodes.iter().for_each(|object| object.ranges(nodes, page_bytes, &mut ranges));
        ranges
    }

    fn place(&self, object: &ObjectRef<'_>) -> Place<'_> {
        let Some(number) = object.allocation else {
            let found = self.globals.get(&(object.process, object.base));
            return found.map_or(Place::At(object.base), Place::Edited);
        };
        let Some(heap) = self.heaps.get(&object.process) else { return Place::At(object.base) };
        match heap.bases.get(number as usize) {
            None | Some(0) => Place::At(object.base),
            Some(&base) if base & EDITED == 0 => Place::At(base),
            Some(&place) => {
                heap.edited.get((place ^ EDITED) as usize).map_or(Place::At(object.base), Place::Edited)
            }
        }
    }
}

/// Set in the base of a block that [`Heap::edited`] describes: user space ends below.
pub(crate) const EDITED: u64 = 1 << 63;

impl AddressMap for Moved {
    fn places_the_rest(&self) -> bool {
        self.is_fixed
    }

    fn moves(&self, object: &ObjectRef<'_>) -> bool {
        match self.place(object) {
            Place::At(base) => base != object.base,
            Place::Edited(_) => true,
        }
    }

    fn map(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, pieces: &mut Vec<MappedPiece>) {
        let at = |address: u64| MappedPiece { offset, address, bytes, is_link: false };
        match self.place(object) {
            Place::At(base) | Place::Edited(&MovedObject::Whole { base }) => pieces.push(at(base + offset)),
            Place::Edited(MovedObject::Copies { base, stride }) => {
                pieces.push(at(base + u64::from(object.thread.0) * stride + offset));
            }
            Place::Edited(&MovedObject::Spread { base, element_bytes, stride }) => {
                by_element((offset, bytes), element_bytes, pieces, |element| base + element * stride);
            }
            Place::Edited(&MovedObject::Dealt { base, element_bytes, parts, part_bytes }) => {
                by_element((offset, bytes), element_bytes, pieces, |element| {
                    base + element % parts * part_bytes + element / parts * element_bytes
                });
            }
            Place::Edited(&MovedObject::Headed { layout, base, behind: (was, now) }) => {
                let end = offset + u64::from(bytes);
                let parts = Parts { layout: &self.layouts[layout], bases: &[base], before: 0 };
                if offset < was {
                    parts.map(offset, end.min(was) - offset, pieces);
                }
                if end > was {
                    let from = offset.max(was);
                    let address = base + now + (from - was);
                    let bytes = (end - from) as u32;
                    pieces.push(MappedPiece { offset: from, address, bytes, is_link: false });
                }
            }
            Place::Edited(MovedObject::Parts { layout, bases, elements_before }) => {
                let parts = Parts { layout: &self.layouts[*layout], bases, before: *elements_before };
                parts.map(offset, u64::from(bytes), pieces);
            }
        }
    }

    fn hint(&self, object: &ObjectRef<'_>) -> PlaceHint<'_> {
        match self.place(object) {
            Place::At(base) | Place::Edited(&MovedObject::Whole { base }) => PlaceHint::Whole { base },
            Place::Edited(&MovedObject::Parts { layout, ref bases, .. }) => {
                let is_linked = self.layouts[layout].link().is_some();
                match u32::try_from(layout) {
                    Ok(table) if !self.tables[layout].bytes.is_empty() => {
                        let bases = if is_linked { &bases[..1] } else { bases };
                        PlaceHint::Elements { table, bases }
                    }
                    _ => PlaceHint::Unknown,
                }
            }
            Place::Edited(_) => PlaceHint::Unknown,
        }
    }

    fn tables(&self) -> &[ElementTable] {
        &self.tables
    }

    fn stride(&self, object: &ObjectRef<'_>, offset: u64, bytes: u32, step: u64, last: u64) -> Option<u64> {
        let spread = |element_bytes: u64, stride: u64| {
            let elements = (step as i64).checked_div(element_bytes as i64)?;
            let is_whole = elements.wrapping_mul(element_bytes as i64) == step as i64;
            let is_in_one = offset % element_bytes + u64::from(bytes) <= element_bytes;
            (is_whole && is_in_one).then(|| elements.wrapping_mul(stride as i64) as u64)
        };
        match self.place(object) {
            Place::At(_) | Place::Edited(MovedObject::Whole { .. } | MovedObject::Copies { .. }) => {
                Some(step)
            }
            Place::Edited(&MovedObject::Spread { element_bytes, stride, .. }) => {
                spread(element_bytes, stride)
            }
            // Behind the element nothing changes.
            Place::Edited(&MovedObject::Headed { behind: (was, _), .. }) => {
                (offset.min(last) >= was).then_some(step)
            }
            // Elements of one part are beside each other.
            Place::Edited(&MovedObject::Dealt { element_bytes, parts, .. }) => {
                let bytes_of_all = element_bytes.checked_mul(parts)?;
                let is_in_one = offset % element_bytes + u64::from(bytes) <= element_bytes;
                let rounds = (step as i64).checked_div(bytes_of_all as i64)?;
                let is_whole = rounds.wrapping_mul(bytes_of_all as i64) == step as i64;
                (is_whole && is_in_one).then(|| rounds.wrapping_mul(element_bytes as i64) as u64)
            }
            Place::Edited(MovedObject::Parts { layout, .. }) => {
                let layout = &self.layouts[*layout];
                let within = offset % layout.structure().bytes;
                let piece = layout.piece(0, within, u64::from(bytes))?;
                let is_linked = layout.link().is_some() && piece.part > 0;
                let stride = layout.stride(within).filter(|_| !is_linked)?;
                spread(layout.structure().bytes, stride)
            }
        }
    }
}

/// Bytes of the largest elements that have a table.
const LARGEST: u64 = 64 << 10;

/// The table of a layout, which has no bytes if an element has too many.
fn table(layout: &Layout) -> ElementTable {
    if layout.structure().bytes > LARGEST {
        return ElementTable::default();
    }
    let byte = |placed: PlacedByte| TableByte {
        part: placed.part as u32,
        together: placed.together as u32,
        offset: placed.offset,
        step: placed.step,
    };
    let part = |part: &Part| TablePart { block: part.block.into(), stride: part.stride };
    ElementTable {
        parts: layout.parts().iter().map(part).collect(),
        bytes: layout
            .placed_bytes()
            .into_iter()
            .map(|placed| placed.map_or_else(TableByte::default, byte))
            .collect(),
    }
}

/// Adds the pieces of bytes at an offset of an array with gaps between its elements, each where
/// `place` puts it.
fn by_element(
    (offset, bytes): (u64, u32),
    element_bytes: u64,
    pieces: &mut Vec<MappedPiece>,
    place: impl Fn(u64) -> u64,
) {
    let end = offset + u64::from(bytes);
    let mut from = offset;
    while from < end {
        let (element, within) = (from / element_bytes, from % element_bytes);
        let some = (element_bytes - within).min(end - from);
        let address = place(element) + within;
        pieces.push(MappedPiece { offset: from, address, bytes: some as u32, is_link: false });
        from += some;
    }
}

/// The element of an array that has the byte at an offset, and the byte's offset in it.
fn element_at(layout: &Layout, offset: u64) -> (u64, u64) {
    let size = layout.structure().bytes;
    // Most objects are one element, and a division takes longer than all the rest.
    if offset < size { (0, offset) } else { (offset / size, offset % size) }
}

/// The parts of one object.
struct Parts<'m> {
    layout: &'m Layout,
    bases: &'m [u64],
    before: u64,
}

impl Parts<'_> {
    fn map(&self, offset: u64, bytes: u64, pieces: &mut Vec<MappedPiece>) {
        let size = self.layout.structure().bytes;
        let end = offset + bytes;
        let (element, within) = element_at(self.layout, offset);
        // Almost every access is to one member.
        if let Some(piece) = self.layout.piece(element, within, bytes) {
            self.push(element, piece, &mut false, pieces);
            return;
        }
        let mut found = Vec::new();
        let mut from = offset;
        while from < end {
            let (element, within) = (from / size, from % size);
            let some = (size - within).min(end - from);
            self.layout.pieces(element, within, some, &mut found);
            let mut is_linked = false;
            for piece in found.drain(..) {
                self.push(element, piece, &mut is_linked, pieces);
            }
            from += some;
        }
    }

    /// Adds a piece, and before an element's first cold piece the link that leads there.
    fn push(&self, element: u64, piece: PartPiece, is_linked: &mut bool, pieces: &mut Vec<MappedPiece>) {
        if piece.part > 0
            && !*is_linked
            && let Some(link) = self.layout.link_piece(element)
        {
            *is_linked = true;
            let offset = element * self.layout.structure().bytes + piece.was;
            let address = self.bases[0] + link.offset;
            pieces.push(MappedPiece { offset, address, bytes: link.bytes as u32, is_link: true });
        }
        pieces.push(self.placed(element, piece));
    }

    fn placed(&self, element: u64, piece: PartPiece) -> MappedPiece {
        let before = match piece.part {
            0 => 0,
            part => self.layout.parts()[part].bytes(self.before),
        };
        MappedPiece {
            offset: element * self.layout.structure().bytes + piece.was,
            address: self.bases[piece.part] + before + piece.offset,
            bytes: piece.bytes as u32,
            is_link: false,
        }
    }
}
