//! A type whose objects hold some of an edited type by value.
//!
//! ```text
//!   as compiled   ┌ key ┬── an element ──┬ hash ┐        as `reorder` or `split` has it inside
//!   edited        ┌ key ┬ element ┬ hash ┐              what stood behind it moves up
//! ```

use super::arrange::units;
use super::{Asked, Layout, LayoutLink, Part, Slot, Unit};
use crate::structure::{AddressUse, Role, Structure, StructureMember};

impl Layout {
    /// The layout of a type that holds elements of edited ones: at each of these offsets one, laid
    /// out like this, under this name. Everything else of it keeps its order.
    ///
    /// Returns none if they overlap or lie outside; if an element is divided into blocks, or has
    /// parts that no link leads to, which are no arrays here; and if one of several has a second
    /// part, as there is one link.
    pub fn around(outer: Structure, held: &[(u64, &Layout, &str)]) -> Option<Layout> {
        let mut held = held.to_vec();
        held.sort_by_key(|(at, ..)| *at);
        let ends = held.iter().map(|(at, inner, _)| at + inner.structure.bytes);
        let nexts = held.iter().skip(1).map(|(at, ..)| *at).chain([outer.bytes]);
        let are_apart = ends.zip(nexts).all(|(end, next)| end <= next);
        let whole = |layout: &Layout| {
            let is_reached = layout.parts.len() == 1 || layout.link.is_some();
            is_reached && layout.parts.iter().all(|part| part.block == 1)
        };
        let is_linked_once = held.len() == 1 || held.iter().all(|(_, inner, _)| inner.parts.len() == 1);
        if held.is_empty() || !are_apart || !is_linked_once || !held.iter().all(|(_, inner, _)| whole(inner))
        {
            return None;
        }
        let asked = Asked { multiple: 1, align: outer.align_floor() };
        let mut building = Building {
            layout: Layout {
                structure: Structure { members: Vec::new(), ..outer.clone() },
                units: Vec::new(),
                parts: vec![Part { slots: Vec::new(), block: 1, stride: 0, align: 1, asked }],
                link: None,
                places: Vec::new(),
            },
            end: 0,
        };
        let mut next = held.iter().peekable();
        for unit in units(&outer).ok()? {
            let (mut from, end) = (unit.offset, unit.offset + unit.bytes);
            while let Some((at, inner, name)) = next.next_if(|(at, ..)| *at < end) {
                if *at < from || at + inner.structure.bytes > end {
                    return None;
                }
                building.rest(&outer, &unit, from, *at);
                building.element(*at, inner, name);
                from = at + inner.structure.bytes;
            }
            building.rest(&outer, &unit, from, end);
        }
        // One in bytes of no member, such as a hole.
        next.next().is_none().then(|| building.finish())
    }
}

/// The layout while its members are added, in the order of their offsets.
struct Building {
    layout: Layout,
    /// The end of the first part so far.
    end: u64,
}

impl Building {
    /// Adds the bytes of a unit of the outer type from one offset to another.
    fn rest(&mut self, outer: &Structure, unit: &Unit, from: u64, end: u64) {
        if from >= end {
            return;
        }
        let is_whole = (from, end) == (unit.offset, unit.offset + unit.bytes);
        let members = unit.members.iter().map(|at| outer.members[*at].clone());
        let (members, align): (Vec<StructureMember>, u64) = match is_whole {
            true => (members.collect(), unit.align),
            false => {
                let align = outer.align.min(1 << from.trailing_zeros().min(6));
                (vec![nameless(from, end - from, align)], align)
            }
        };
        let names = members.iter().map(|member| member.name.clone()).collect();
        let offset = self.end + ((from % align).wrapping_sub(self.end) & (align - 1));
        let bytes = end - from;
        let phase = from % align;
        self.unit(members, Unit { members: Vec::new(), offset: from, bytes, align });
        let part = &mut self.layout.parts[0];
        part.slots.push(Slot { names, was: Some(from), was_bytes: bytes, offset, bytes, align, phase });
        part.align = part.align.max(align);
        self.end = offset + bytes;
    }

    fn unit(&mut self, members: Vec<StructureMember>, unit: Unit) {
        let first = self.layout.structure.members.len();
        self.layout.structure.members.extend(members);
        let members = (first..self.layout.structure.members.len()).collect();
        self.layout.units.push(Unit { members, ..unit });
    }

    /// Adds an element at an offset as compiled.
    fn element(&mut self, at: u64, inner: &Layout, name: &str) {
        for unit in &inner.units {
            let members = unit.members.iter().map(|&member| {
                let member = &inner.structure.members[member];
                let name = format!("{name}.{}", member.name);
                StructureMember { name, offset: at + member.offset, ..member.clone() }
            });
            self.unit(members.collect(), Unit { offset: at + unit.offset, ..unit.clone() });
        }
        let begin = self.end.next_multiple_of(inner.parts[0].align);
        let moved = |slot: &Slot, by: u64| Slot {
            was: slot.was.map(|was| at + was),
            offset: by + slot.offset,
            ..slot.clone()
        };
        let [first, others @ ..] = &mut self.layout.parts[..] else { return };
        debug_assert!(others.is_empty());
        let slots = first.slots.len();
        first.slots.extend(inner.parts[0].slots.iter().map(|slot| moved(slot, begin)));
        first.align = first.align.max(inner.parts[0].align);
        self.end = begin + inner.parts[0].stride;
        let parts = inner.parts[1..].iter().map(|part| Part {
            slots: part.slots.iter().map(|slot| moved(slot, 0)).collect(),
            ..part.clone()
        });
        self.layout.parts.extend(parts);
        let link = inner.link.map(|link| LayoutLink { slot: slots + link.slot, ..link });
        self.layout.link = link.or(self.layout.link);
    }

    fn finish(mut self) -> Layout {
        let end = self.end.max(1);
        self.layout.parts[0].finish(end);
        self.layout.note_places();
        self.layout
    }
}

/// Bytes beside an element, such as a discriminant.
fn nameless(offset: u64, bytes: u64, align: u64) -> StructureMember {
    let (name, role, address) = (String::new(), Role::Value, AddressUse::Kept);
    StructureMember { name, offset, bytes, align, role, address }
}
