//! Types: their names and sizes, the types that pointers point to, and the member at an offset.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::AttributeValue;

use super::index::EntryId;
use super::{Debug, Entry, name};

/// The most types in a row that stand for others.
const MOST_ALIASES: usize = 32;
/// Records inside each other that are followed.
const DEEPEST: usize = 32;
/// Members of a record that are read.
const MOST_MEMBERS: usize = 1 << 16;

/// A type, without the names that stand for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeFacts {
    /// Its name, or of a record that has none the one that stands for it.
    pub name: Option<String>,
    pub bytes: u64,
    pub shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// To an unknown type: `void *`.
    Pointer(Option<EntryId>),
    Array(EntryId),
    Record(Vec<Member>),
    Plain,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// A base class has none, nor has an anonymous union.
    name: Option<String>,
    offset: u64,
    kind: EntryId,
}

impl TypeFacts {
    /// Returns whether two descriptions are of one type; each unit has its own.
    fn is_like(&self, other: &TypeFacts) -> bool {
        let same_kind = std::mem::discriminant(&self.shape) == std::mem::discriminant(&other.shape);
        same_kind && self.name == other.name && self.bytes == other.bytes
    }
}

fn divides(part: u64, whole: u64) -> bool {
    part > 0 && whole.is_multiple_of(part)
}

/// A step on the way into an object.
struct Step<'a> {
    kind: EntryId,
    rest: u64,
    member: Option<&'a str>,
    is_element: bool,
}

/// Types that have been read.
pub(crate) type KnownTypes = RefCell<HashMap<EntryId, Option<Rc<TypeFacts>>>>;

/// The end of the way from an object to the bytes of an access.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inside {
    /// "pos.x", "slots[].key"; `None` of an object without members, or between these.
    pub member: Option<String>,
    /// The type of the innermost member.
    pub kind: EntryId,
    /// The offset in that.
    pub rest: u64,
}

impl Debug {
    /// A type's facts, behind typedefs and qualifiers. `None` if it is damaged or missing.
    pub(crate) fn type_facts(&self, id: EntryId) -> Option<Rc<TypeFacts>> {
        if let Some(known) = self.types.borrow().get(&id) {
            return known.clone();
        }
        let found = self.read_type(id).map(Rc::new);
        self.types.borrow_mut().insert(id, found.clone());
        found
    }

    fn read_type(&self, id: EntryId) -> Option<TypeFacts> {
        let (mut id, mut alias) = (id, None);
        for _ in 0..MOST_ALIASES {
            let (number, offset) = self.index().place(id)?;
            let unit = self.index().unit(&self.dwarf, number)?;
            let entry = unit.entry(offset).ok()?;
            let own = name(&self.dwarf, unit, &entry).ok().flatten();
            let target =
                entry.attr_value(gimli::DW_AT_type).ok()?.and_then(|of| self.index().reference(number, of));
            let size = entry.attr_value(gimli::DW_AT_byte_size).ok()?.and_then(|bytes| bytes.udata_value());
            match entry.tag() {
                gimli::DW_TAG_typedef => {
                    alias = alias.or(own);
                    id = target?;
                }
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => id = target?,
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => {
                    return Some(TypeFacts { name: None, bytes: 8, shape: Shape::Pointer(target) });
                }
                gimli::DW_TAG_array_type => {
                    let bytes = size.or_else(|| self.array_bytes(number, &entry, target?)).unwrap_or(0);
                    return Some(TypeFacts { name: None, bytes, shape: Shape::Array(target?) });
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let is_declared = entry.attr_value(gimli::DW_AT_declaration).ok()?.is_some();
                    if is_declared || size.is_none() {
                        let complete = self.index().record(&self.dwarf, own.as_deref()?)?;
                        id = (complete != id).then_some(complete)?;
                        continue;
                    }
                    let shape = Shape::Record(self.members(number, &entry));
                    return Some(TypeFacts { name: own.or(alias), bytes: size?, shape });
                }
                _ => return Some(TypeFacts { name: alias.or(own), bytes: size?, shape: Shape::Plain }),
            }
        }
        None
    }

    fn array_bytes(&self, number: usize, entry: &Entry<'_, '_>, element: EntryId) -> Option<u64> {
        let unit = self.index().unit(&self.dwarf, number)?;
        let mut children = unit.entries_at_offset(entry.offset()).ok()?;
        children.next_dfs().ok()??;
        let mut count: u64 = 1;
        let mut depth = 0;
        while let Some((step, child)) = children.next_dfs().ok()? {
            depth += step;
            if depth <= 0 {
                break;
            }
            if child.tag() == gimli::DW_TAG_subrange_type {
                let number =
                    |attribute| child.attr_value(attribute).ok().flatten().and_then(|of| of.udata_value());
                let elements = number(gimli::DW_AT_count)
                    .or_else(|| number(gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1)))?;
                count = count.checked_mul(elements)?;
            }
        }
        count.checked_mul(self.type_facts(element)?.bytes)
    }

    fn members(&self, number: usize, entry: &Entry<'_, '_>) -> Vec<Member> {
        let mut found = Vec::new();
        let Some(unit) = self.index().unit(&self.dwarf, number) else { return found };
        let Ok(mut children) = unit.entries_at_offset(entry.offset()) else { return found };
        let _ = children.next_dfs();
        let mut depth = 0;
        while let Ok(Some((step, child))) = children.next_dfs() {
            depth += step;
            if depth <= 0 || found.len() == MOST_MEMBERS {
                break;
            }
            let is_member = matches!(child.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
            if depth > 1 || !is_member || child.attr_value(gimli::DW_AT_external).ok().flatten().is_some() {
                continue;
            }
            let attribute = |which| child.attr_value(which).ok().flatten();
            let Some(kind) = attribute(gimli::DW_AT_type).and_then(|of| self.index().reference(number, of))
            else {
                continue;
            };
            let bits = || attribute(gimli::DW_AT_data_bit_offset)?.udata_value().map(|bits| bits / 8);
            let offset = match attribute(gimli::DW_AT_data_member_location) {
                Some(AttributeValue::Exprloc(_)) => continue,
                Some(offset) => offset.udata_value().unwrap_or(0),
                // A member of a union begins where the union does.
                None => bits().unwrap_or(0),
            };
            let name = name(&self.dwarf, unit, child).ok().flatten();
            found.push(Member { name, offset, kind });
        }
        found
    }

    /// Follows members from the beginning of an object to the byte at `offset`. Beyond the object's
    /// end lie more objects of its type, as in an array. Where an unknown multiple of `stride` is
    /// added, there must be an array of parts whose size divides it, or the member is not known; 0
    /// adds nothing.
    pub(crate) fn inside(&self, kind: EntryId, offset: i64, stride: u64, bytes: u64) -> Option<Inside> {
        let mut path = String::new();
        let mut end = (kind, 0);
        let parts = |kind| stride == 0 || self.type_facts(kind).is_some_and(|of| divides(of.bytes, stride));
        let mut is_known = parts(kind);
        self.descend(kind, offset, bytes, &mut |step| {
            is_known |= step.is_element && parts(step.kind);
            match step.member {
                Some(name) => {
                    path += if path.is_empty() { "" } else { "." };
                    path += name;
                }
                None if step.is_element && !path.is_empty() => path += "[]",
                None => {}
            }
            end = (step.kind, step.rest);
        })?;
        if !is_known {
            return Some(Inside { member: None, kind, rest: 1 });
        }
        Some(Inside { member: Some(path).filter(|path| !path.is_empty()), kind: end.0, rest: end.1 })
    }

    /// Returns whether an object of one type has one of another type at an offset, or is one.
    pub(crate) fn holds(&self, kind: EntryId, offset: i64, other: EntryId) -> bool {
        let Some(wanted) = self.type_facts(other) else { return false };
        let mut found = false;
        let whole = self.descend(kind, offset, wanted.bytes, &mut |step| {
            found |= step.rest == 0 && self.type_facts(step.kind).is_some_and(|facts| facts.is_like(&wanted));
        });
        whole.is_some() && found
    }

    /// The type that all pointers among a record's members point to which lie an unknown multiple of
    /// `stride` from an offset. `None` if they differ, or there are none.
    pub(crate) fn only_pointee(&self, kind: EntryId, offset: i64, stride: u64) -> Option<EntryId> {
        let facts = self.type_facts(kind)?;
        let Shape::Record(members) = &facts.shape else { return None };
        let stride = i64::try_from(stride).ok().filter(|stride| *stride > 0)?;
        let is_there = |member: &&Member| {
            i64::try_from(member.offset).is_ok_and(|at| at.wrapping_sub(offset).rem_euclid(stride) == 0)
        };
        let mut found = None;
        for member in members.iter().filter(is_there) {
            let Shape::Pointer(to) = self.type_facts(member.kind)?.shape else { continue };
            let to = to.filter(|to| self.type_facts(*to).is_some())?;
            if found.is_some_and(|found| found != to) {
                return None;
            }
            found = Some(to);
        }
        found
    }

    /// Goes from an object to the byte at `offset`, step by step; the first step is the object
    /// itself.
    fn descend(
        &self,
        mut kind: EntryId,
        offset: i64,
        bytes: u64,
        visit: &mut dyn FnMut(Step<'_>),
    ) -> Option<()> {
        let mut facts = self.type_facts(kind)?;
        let mut rest = match facts.bytes {
            0 => u64::try_from(offset).ok()?,
            whole => offset.rem_euclid(i64::try_from(whole).ok()?) as u64,
        };
        visit(Step { kind, rest, member: None, is_element: false });
        for _ in 0..DEEPEST {
            match &facts.clone().shape {
                Shape::Array(element) => {
                    kind = *element;
                    facts = self.type_facts(kind)?;
                    rest = rest.checked_rem(facts.bytes)?;
                    visit(Step { kind, rest, member: None, is_element: true });
                }
                Shape::Record(members) => {
                    let Some(member) = self.member(members, rest, bytes) else { break };
                    kind = member.kind;
                    rest -= member.offset;
                    facts = self.type_facts(kind)?;
                    visit(Step { kind, rest, member: member.name.as_deref(), is_element: false });
                }
                Shape::Pointer(_) | Shape::Plain => break,
            }
        }
        Some(())
    }

    /// A type's name for readers: "arc", "arc *", "double[]".
    pub(crate) fn type_name(&self, kind: EntryId) -> Option<String> {
        let (mut kind, mut behind) = (kind, String::new());
        for _ in 0..DEEPEST {
            let facts = self.type_facts(kind)?;
            match facts.shape {
                Shape::Pointer(Some(to)) if self.type_facts(to).is_some() => {
                    behind.insert(0, '*');
                    kind = to;
                }
                Shape::Pointer(_) => return Some(format!("void *{behind}")),
                Shape::Array(element) => kind = element,
                Shape::Record(_) | Shape::Plain if behind.is_empty() => return facts.name.clone(),
                Shape::Record(_) | Shape::Plain => {
                    return Some(format!("{} {behind}", facts.name.as_deref()?));
                }
            }
        }
        None
    }

    /// The member that holds a byte: in a union, the one that is as large as the access, or else
    /// the first that holds all of it.
    fn member<'a>(&self, members: &'a [Member], at: u64, bytes: u64) -> Option<&'a Member> {
        let size = |member: &Member| self.type_facts(member.kind).map_or(0, |facts| facts.bytes.max(1));
        let holds = |member: &&Member| at >= member.offset && at - member.offset < size(member);
        let holding = || members.iter().filter(holds);
        let several = holding().nth(1).is_some();
        let fits = |member: &&Member| several && at == member.offset && size(member) == bytes;
        // An empty base class has a byte, which is none of the access's.
        let whole = |member: &&Member| (at - member.offset).saturating_add(bytes) <= size(member);
        holding().find(fits).or_else(|| holding().find(whole)).or_else(|| holding().next())
    }
}
