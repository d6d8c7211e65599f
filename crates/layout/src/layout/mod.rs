//! A layout: where each byte of an element lies, before an edit and after it.
//!
//! ```text
//!   structure         units              parts (each an array of its own)
//!   ┌──────────┐      members that       ┌──────────────┐ part 0: in the old object's place
//!   │ a  b:3 c:5│ ──►  share bytes  ──►   │ slot │ slot  │
//!   │ d        │      move together      ├──────────────┤ part 1: cold members, or one array
//!   └──────────┘                         │ slot         │ of a structure of arrays
//!                                        └──────────────┘
//! ```
//!
//! Offsets inside a part follow the rules of C: members in order, each at the next multiple of its
//! alignment, the whole a multiple of the largest (ISO C 6.7.2.1, System V ABI for x86-64 §3.1.2).
//! A part whose members were not touched keeps the offsets that the compiler chose.

mod around;
mod arrange;
mod pieces;
mod refusal;

pub use pieces::{PartPiece, PlacedByte};
pub use refusal::Refusal;

use crate::edit::{Edit, Link, Scope};
use crate::structure::{AddressUse, Role, Structure};

use arrange::units;

/// The layout of one type: as compiled, or after edits.
#[derive(Clone, Debug)]
pub struct Layout {
    structure: Structure,
    /// Groups of members that move together, in the order of their first bytes.
    units: Vec<Unit>,
    parts: Vec<Part>,
    link: Option<LayoutLink>,
    /// For each unit its part and slot, none if it was removed.
    places: Vec<Option<(usize, usize)>>,
}

/// Members that share bytes and so move together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unit {
    /// Indices into the structure's members.
    members: Vec<usize>,
    /// Bytes in the structure as compiled.
    offset: u64,
    bytes: u64,
    align: u64,
}

/// A contiguous array that holds some members of each element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The members of an element, in the order of their offsets.
    pub slots: Vec<Slot>,
    /// Elements in a block: 1 for an array of structures; in larger blocks each member is an array.
    pub block: u32,
    /// Bytes from one block to the next.
    pub stride: u64,
    /// Alignment of the part's first byte.
    pub align: u64,
    /// The requested divisor of the size and the requested least alignment, beyond those of the
    /// members.
    asked: Asked,
}

/// The divisor of a part's size, and its least alignment, beyond those of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    multiple: u64,
    align: u64,
}

/// The place of a member, or of members that share bytes, in a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Names of the members.
    pub names: Vec<String>,
    /// Offset in the structure as compiled; none for a link that an edit adds.
    pub was: Option<u64>,
    /// Size as compiled.
    pub was_bytes: u64,
    /// Offset from the beginning of the block.
    pub offset: u64,
    /// Size of one element's value now; in a block of n elements, the slot has n of them.
    pub bytes: u64,
    /// Alignment now.
    pub align: u64,
    /// Remainder of the offset by the alignment: 0, except for members that share bytes, the first
    /// of which may begin anywhere.
    pub phase: u64,
}

/// An array behind an element whose length the type does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayBehind<'l> {
    /// Its name.
    pub name: &'l str,
    /// Offset of its beginning in the structure as compiled.
    pub was: u64,
    /// Offset of its beginning now.
    pub now: u64,
}

/// The link that an access of the cold part loads first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutLink {
    /// Slot of part 0 that holds the link.
    pub slot: usize,
    /// The part it leads to.
    pub to: usize,
}

impl Layout {
    /// The layout that the compiler chose.
    ///
    /// # Errors
    /// A structure whose members do not fit it, or that has no size, is refused.
    pub fn compiled(structure: Structure) -> Result<Layout, Refusal> {
        let units = units(&structure)?;
        let slot = |unit: &Unit| Slot {
            names: unit.members.iter().map(|at| structure.members[*at].name.clone()).collect(),
            was: Some(unit.offset),
            was_bytes: unit.bytes,
            offset: unit.offset,
            bytes: unit.bytes,
            align: unit.align,
            phase: unit.offset % unit.align,
        };
        let part = Part {
            slots: units.iter().map(slot).collect(),
            block: 1,
            stride: structure.bytes,
            align: structure.align,
            asked: Asked { multiple: 1, align: structure.align_floor() },
        };
        let places = (0..units.len()).map(|slot| Some((0, slot))).collect();
        Ok(Layout { structure, units, parts: vec![part], link: None, places })
    }

    /// The structure as compiled.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The arrays that hold an element; the first one lies where the object lay.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the pointer or index that is loaded before the cold part of an element can be
    /// accessed.
    pub fn link(&self) -> Option<LayoutLink> {
        self.link
    }

    /// The array behind an element, if the structure ends with one whose length it does not tell.
    pub fn tail(&self) -> Option<ArrayBehind<'_>> {
        let member = self.structure.members.iter().find(|member| member.role == Role::FlexibleArray)?;
        let end = |ends: &mut dyn Iterator<Item = u64>| ends.max().unwrap_or(0);
        let was = end(&mut self.units.iter().map(|unit| unit.offset + unit.bytes));
        let now = end(&mut self.parts[0].slots.iter().map(|slot| slot.offset + slot.bytes));
        // It may be aligned to more than its type is.
        let aligns = std::iter::successors(Some(member.align.max(1)), |align| align.checked_mul(2));
        let align = aligns.into_iter().find(|&align| was.next_multiple_of(align) >= member.offset)?;
        Some(ArrayBehind { name: &member.name, was: member.offset, now: now.next_multiple_of(align) })
    }

    /// Changes the layout.
    ///
    /// # Errors
    /// A [`Refusal`] with the reason why the edit cannot be made; the layout is then unchanged.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), Refusal> {
        let mut next = self.clone();
        match edit {
            Edit::Reorder { members, .. } => next.reorder(members)?,
            Edit::Split { hot, by, .. } => next.split(hot, *by)?,
            Edit::Soa { members, .. } => next.arrays(members)?,
            Edit::Aosoa { block, .. } => next.blocks(*block)?,
            Edit::Pad { of: None | Some(Scope::Type | Scope::Element), to, .. } => next.grow(*to, false)?,
            Edit::Align { of: None | Some(Scope::Type | Scope::Element), to, .. } => next.grow(*to, true)?,
            Edit::AlignMembers { members, to, .. } => next.align(members, *to)?,
            Edit::Index { members, .. } => next.index(members)?,
            Edit::Narrow { member, to, .. } => next.narrow(member, *to)?,
            Edit::Remove { members, .. } => next.remove(members)?,
            Edit::Pad { .. }
            | Edit::Align { .. }
            | Edit::Group { .. }
            | Edit::Shift { .. }
            | Edit::PerThread { .. }
            | Edit::Deal { .. }
            | Edit::Pack { .. }
            | Edit::Pages { .. }
            | Edit::Place { .. } => return Err(Refusal::NotOfAType { edit: edit.to_string() }),
        }
        next.note_places();
        *self = next;
        Ok(())
    }

    fn reorder(&mut self, members: &[String]) -> Result<(), Refusal> {
        self.movable()?;
        let front = self.units_of(members)?;
        self.in_one_part()?;
        let order = |part: &Part, front: &[usize], places: &[Option<(usize, usize)>]| {
            let first: Vec<_> = front.iter().filter_map(|unit| places[*unit]).map(|(_, slot)| slot).collect();
            let rest = (0..part.slots.len()).filter(|slot| !first.contains(slot));
            first.iter().copied().chain(rest).collect::<Vec<_>>()
        };
        let order = order(&self.parts[0], &front, &self.places);
        // What the language puts first stays first.
        let fixed = (0..self.parts[0].slots.len()).filter(|slot| self.is_fixed(0, *slot));
        for (at, slot) in fixed.enumerate() {
            if order[at] != slot {
                let names = &self.parts[0].slots[slot].names;
                return Err(Refusal::Fixed { member: names.join(", ") });
            }
        }
        let slots = order.iter().map(|slot| self.parts[0].slots[*slot].clone()).collect();
        self.parts[0].slots = slots;
        self.parts[0].arrange();
        Ok(())
    }

    fn split(&mut self, hot: &[String], by: Link) -> Result<(), Refusal> {
        self.sized()?;
        self.movable()?;
        let hot = self.units_of(hot)?;
        self.in_one_part()?;
        let is_hot = |slot: usize| {
            hot.iter().any(|unit| self.places[*unit] == Some((0, slot))) || self.is_fixed(0, slot)
        };
        let (hot, cold): (Vec<_>, Vec<_>) = (0..self.parts[0].slots.len()).partition(|slot| is_hot(*slot));
        if cold.is_empty() {
            return Err(Refusal::NothingCold { structure: self.structure.name.clone() });
        }
        let pick = |list: &[usize]| list.iter().map(|slot| self.parts[0].slots[*slot].clone()).collect();
        let mut hot_slots: Vec<Slot> = pick(&hot);
        let cold_slots: Vec<Slot> = pick(&cold);
        let link_bytes = match by {
            Link::Pointer => Some(8),
            Link::Index => Some(4),
            Link::Parallel => None,
        };
        if let Some(bytes) = link_bytes {
            let names = vec!["cold".to_string()];
            let link = Slot { names, was: None, was_bytes: 0, offset: 0, bytes, align: bytes, phase: 0 };
            self.link = Some(LayoutLink { slot: hot_slots.len(), to: 1 });
            hot_slots.push(link);
        }
        // An alignment that the source asks for stays with the hot part, and so does padding.
        let asked = self.parts[0].asked;
        self.parts = vec![Part::of(hot_slots, 1, asked), Part::of(cold_slots, 1, Asked::NOTHING)];
        Ok(())
    }

    /// An array for each of these members, or for all; the others stay together.
    fn arrays(&mut self, members: &[String]) -> Result<(), Refusal> {
        self.divisible()?;
        let units = self.units_of(members)?;
        let is_apart = |slot: usize| {
            members.is_empty() || units.iter().any(|unit| self.places[*unit] == Some((0, slot)))
        };
        let slots = self.parts[0].slots.iter().cloned().enumerate();
        let (apart, rest): (Vec<_>, Vec<_>) = slots.partition(|(slot, _)| is_apart(*slot));
        let rest: Vec<Slot> = rest.into_iter().map(|(_, slot)| slot).collect();
        let rest = (!rest.is_empty()).then(|| Part::of(rest, 1, Asked::NOTHING));
        let apart = apart.into_iter().map(|(_, slot)| Part::of(vec![slot], 1, Asked::NOTHING));
        self.parts = rest.into_iter().chain(apart).collect();
        Ok(())
    }

    /// Blocks of `block` elements, each an array for each member.
    fn blocks(&mut self, block: u32) -> Result<(), Refusal> {
        self.divisible()?;
        let slots = std::mem::take(&mut self.parts[0].slots);
        self.parts = vec![Part::of(slots, block, Asked::NOTHING)];
        Ok(())
    }

    /// Refuses structures that must stay in one piece.
    fn divisible(&self) -> Result<(), Refusal> {
        self.sized()?;
        self.movable()?;
        self.in_one_part()?;
        match (0..self.parts[0].slots.len()).find(|slot| self.is_fixed(0, *slot)) {
            Some(slot) => Err(Refusal::Fixed { member: self.parts[0].slots[slot].names.join(", ") }),
            None => Ok(()),
        }
    }

    fn grow(&mut self, to: u64, align: bool) -> Result<(), Refusal> {
        self.sized()?;
        self.in_one_part()?;
        let asked = &mut self.parts[0].asked;
        asked.multiple = least_common_multiple(asked.multiple, to);
        if align {
            asked.align = asked.align.max(to);
        }
        let end = self.parts[0].stride;
        self.parts[0].finish(end);
        Ok(())
    }

    /// Begins members at multiples, as `alignas` in front of them does.
    fn align(&mut self, members: &[String], to: u64) -> Result<(), Refusal> {
        self.movable()?;
        let units = self.units_of(members)?;
        self.in_one_part()?;
        for unit in units {
            // A class aligns its bases, and none of them alone.
            let Some((0, slot)) = self.places[unit].filter(|&(part, slot)| !self.is_fixed(part, slot)) else {
                return Err(Refusal::Fixed { member: members.join(", ") });
            };
            let slot = &mut self.parts[0].slots[slot];
            (slot.align, slot.phase) = (slot.align.max(to), 0);
        }
        self.parts[0].arrange();
        Ok(())
    }

    fn index(&mut self, members: &[String]) -> Result<(), Refusal> {
        for (unit, name) in self.units_of(members)?.into_iter().zip(members) {
            let member = self.structure.members.iter().find(|member| member.name == *name);
            if member.is_none_or(|member| member.role != Role::Pointer || member.bytes != 8) {
                return Err(Refusal::NoPointer { member: name.clone() });
            }
            self.shrink(unit, name, 4)?;
        }
        Ok(())
    }

    fn narrow(&mut self, member: &str, to: u64) -> Result<(), Refusal> {
        let unit = self.units_of(&[member.to_string()])?[0];
        let found = self.structure.members.iter().find(|found| found.name == member);
        if let Some(found) = found
            && found.role != Role::Value
        {
            return Err(Refusal::NoValue { member: member.to_string() });
        }
        self.shrink(unit, member, to)
    }

    /// Gives a member a smaller size, which is its alignment, too.
    fn shrink(&mut self, unit: usize, name: &str, bytes: u64) -> Result<(), Refusal> {
        self.movable()?;
        if self.units[unit].members.len() > 1 {
            return Err(self.shared(unit));
        }
        let Some((part, slot)) = self.places[unit] else {
            return Err(Refusal::Removed { member: name.to_string() });
        };
        let slot = &mut self.parts[part].slots[slot];
        if slot.bytes <= bytes {
            return Err(Refusal::NotSmaller { member: name.to_string(), bytes: slot.bytes, to: bytes });
        }
        (slot.bytes, slot.align) = (bytes, bytes);
        self.parts[part].arrange();
        Ok(())
    }

    fn remove(&mut self, members: &[String]) -> Result<(), Refusal> {
        self.movable()?;
        let units = self.units_of(members)?;
        for unit in &units {
            let all = &self.units[*unit].members;
            if all.iter().any(|at| !members.contains(&self.structure.members[*at].name)) {
                return Err(self.shared(*unit));
            }
            let Some((part, slot)) = self.places[*unit] else { continue };
            if self.is_fixed(part, slot) {
                return Err(Refusal::Fixed { member: self.parts[part].slots[slot].names.join(", ") });
            }
        }
        let gone: Vec<_> = units.iter().filter_map(|unit| self.places[*unit]).collect();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let mut slot = 0..;
            part.slots.retain(|_| !gone.contains(&(at, slot.next().unwrap_or(0))));
            if part.slots.is_empty() {
                return Err(Refusal::NothingLeft { structure: self.structure.name.clone() });
            }
            if gone.iter().any(|(part, _)| *part == at) {
                part.arrange();
            }
        }
        if let Some(link) = &mut self.link {
            link.slot = self.parts[0].slots.iter().position(|slot| slot.was.is_none()).unwrap_or(0);
        }
        Ok(())
    }
}

/// The least common multiple of two numbers that are not 0.
fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).saturating_mul(b)
}

/// Requests of edits to the layout.
impl Layout {
    /// The units of members by name, each once, in the order of the names.
    fn units_of(&self, names: &[String]) -> Result<Vec<usize>, Refusal> {
        let mut found = Vec::new();
        for name in names {
            let of = |unit: &Unit| unit.members.iter().any(|at| self.structure.members[*at].name == *name);
            let Some(unit) = self.units.iter().position(of) else {
                if let Some(tail) = self.tail().filter(|tail| tail.name == name) {
                    return Err(Refusal::Last { member: tail.name.to_string() });
                }
                let names = self.structure.members.iter().map(|member| member.name.clone());
                return Err(Refusal::NoSuchMember {
                    structure: self.structure.name.clone(),
                    member: name.clone(),
                    members: names.filter(|name| !name.is_empty()).collect(),
                });
            };
            if self.places[unit].is_none() {
                return Err(Refusal::Removed { member: name.clone() });
            }
            if !found.contains(&unit) {
                found.push(unit);
            }
        }
        Ok(found)
    }

    /// Refuses to move members if that would break the program's uses of their addresses.
    fn movable(&self) -> Result<(), Refusal> {
        let cast = self.structure.members.iter().find(|member| member.address == AddressUse::Cast);
        match cast {
            Some(member) => Err(Refusal::Cast { member: member.name.clone() }),
            None => Ok(()),
        }
    }

    fn in_one_part(&self) -> Result<(), Refusal> {
        match &self.parts[..] {
            [part] if part.block == 1 => Ok(()),
            _ => Err(Refusal::Divided { structure: self.structure.name.clone() }),
        }
    }

    /// Refuses structures with an array behind them: their objects lie in no array, and their end is
    /// not known.
    fn sized(&self) -> Result<(), Refusal> {
        match self.tail() {
            Some(_) => Err(Refusal::Flexible { structure: self.structure.name.clone() }),
            None => Ok(()),
        }
    }

    /// Returns whether the language puts a slot where it is: bases, and the pointer to virtual
    /// functions.
    fn is_fixed(&self, part: usize, slot: usize) -> bool {
        let here = self.places.iter().position(|place| *place == Some((part, slot)));
        here.is_some_and(|unit| {
            let roles = self.units[unit].members.iter().map(|at| self.structure.members[*at].role);
            roles.into_iter().any(|role| matches!(role, Role::Base | Role::VirtualTable))
        })
    }

    fn shared(&self, unit: usize) -> Refusal {
        let names = self.units[unit].members.iter().map(|at| self.structure.members[*at].name.clone());
        Refusal::Shared { members: names.collect() }
    }

    fn note_places(&mut self) {
        let find = |unit: &Unit| {
            self.parts.iter().enumerate().find_map(|(at, part)| {
                let slot = part.slots.iter().position(|slot| slot.was == Some(unit.offset))?;
                Some((at, slot))
            })
        };
        self.places = self.units.iter().map(find).collect();
    }
}
