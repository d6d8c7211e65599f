//! Types: their names and sizes, their members, and the types that pointers point to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{AttributeValue, Operation};

use super::index::EntryId;
use super::names::plain;
use super::{Debug, Entry, Unit, name};

/// The most types in a row that stand for others.
const MOST_ALIASES: usize = 32;
/// Templates of libstdc++ whose bytes are an object of their argument.
const STORAGE: [&str; 2] = ["__aligned_membuf<", "__aligned_buffer<"];
/// Members of a record that are read.
const MOST_MEMBERS: usize = 1 << 16;
/// Bytes of the largest descriptor.
const MOST_OFFSET: u64 = 1 << 16;
/// Dimensions of an array that are read; Fortran has 15.
const MOST_DIMENSIONS: usize = 64;

/// A type, without the names that stand for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TypeFacts {
    /// The entry that describes it: behind all names, unless one of these is the only name.
    pub id: EntryId,
    /// Its name, or of a record that has none the one that stands for it.
    pub name: Option<String>,
    pub bytes: u64,
    pub shape: Shape,
    /// The elements of one of Rust's vectors, whose buffer is declared as bytes.
    pub element: Option<EntryId>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// To an unknown type: `void *`.
    Pointer(Option<EntryId>),
    Array(EntryId),
    /// A description of an array whose elements lie elsewhere, as Fortran's allocatable ones.
    Descriptor(Descriptor),
    Record(Vec<Member>),
    Plain,
}

/// A description of where the elements of an array are, and how many: parts of eight bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub elements: EntryId,
    /// Offsets and names of the parts.
    pub parts: Vec<(u64, &'static str)>,
}

impl Descriptor {
    /// The part that is the elements' address.
    pub const DATA: &'static str = "{data}";
    /// The parts of each dimension, by the attributes that say where they are.
    const BOUNDS: [(gimli::DwAt, &'static str); 4] = [
        (gimli::DW_AT_lower_bound, "{lower bound}"),
        (gimli::DW_AT_upper_bound, "{upper bound}"),
        (gimli::DW_AT_count, "{extent}"),
        (gimli::DW_AT_byte_stride, "{stride}"),
    ];

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|(offset, _)| offset.saturating_add(8)).max().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// A base class has none, nor has an anonymous union.
    pub name: Option<String>,
    pub offset: u64,
    pub kind: EntryId,
    pub is_base: bool,
    /// True if the member distinguishes the variants of one of Rust's enumerations.
    pub is_discriminant: bool,
}

impl TypeFacts {
    /// Returns whether two descriptions are of one type; each unit has its own.
    pub fn is_like(&self, other: &TypeFacts) -> bool {
        let same_kind = std::mem::discriminant(&self.shape) == std::mem::discriminant(&other.shape);
        same_kind && self.name == other.name && self.bytes == other.bytes
    }
}

/// Types that have been read.
pub(crate) type KnownTypes = RefCell<HashMap<EntryId, Option<Rc<TypeFacts>>>>;

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
            let described = if own.is_some() { id } else { alias.unwrap_or(id) };
            let facts = |bytes, shape| TypeFacts { id: described, name: None, bytes, shape, element: None };
            let size = entry.attr_value(gimli::DW_AT_byte_size).ok()?.and_then(|bytes| bytes.udata_value());
            match entry.tag() {
                gimli::DW_TAG_typedef => {
                    alias = alias.or(Some(id));
                    id = target?;
                }
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => id = target?,
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => {
                    return Some(facts(8, Shape::Pointer(target)));
                }
                gimli::DW_TAG_array_type => {
                    if let Some(descriptor) = self.descriptor(number, &entry, target?) {
                        let elements = self.type_name(descriptor.elements)?;
                        let rank = self.dimensions(number, &entry, |_| ());
                        return Some(TypeFacts {
                            name: Some(format!("{elements}{}", "[]".repeat(rank.len()))),
                            ..facts(descriptor.bytes(), Shape::Descriptor(descriptor))
                        });
                    }
                    let bytes = size.or_else(|| self.array_bytes(number, &entry, target?)).unwrap_or(0);
                    return Some(facts(bytes, Shape::Array(target?)));
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                    let is_declared = entry.attr_value(gimli::DW_AT_declaration).ok()?.is_some();
                    if is_declared || size.is_none() {
                        let signature = entry.attr_value(gimli::DW_AT_signature).ok()?;
                        let signed = signature.and_then(|of| self.index().reference(number, of));
                        let named = || self.index().record(&self.dwarf, &self.qualified_name(id, None)?);
                        let complete = signed.or_else(named)?;
                        id = (complete != id).then_some(complete)?;
                        continue;
                    }
                    // Bytes for an object of the type that it is a template of.
                    let is_storage =
                        own.as_deref().is_some_and(|own| STORAGE.iter().any(|of| own.starts_with(of)));
                    if let Some(stored) = is_storage.then(|| self.argument(number, &entry)).flatten() {
                        id = stored;
                        continue;
                    }
                    let is_vector = own.as_deref().is_some_and(|own| own.starts_with("RawVec<"));
                    let element = is_vector.then(|| self.argument(number, &entry)).flatten();
                    let (members, alignment) = self.members(number, &entry);
                    return Some(TypeFacts {
                        name: self.qualified_name(id, alias),
                        element,
                        // flang leaves out what fills the last member up.
                        ..facts(size?.checked_next_multiple_of(alignment)?, Shape::Record(members))
                    });
                }
                gimli::DW_TAG_enumeration_type => {
                    let name = self.qualified_name(id, alias);
                    return Some(TypeFacts { name, ..facts(size?, Shape::Plain) });
                }
                _ => return Some(TypeFacts { name: own.map(plain), ..facts(size?, Shape::Plain) }),
            }
        }
        None
    }

    fn array_bytes(&self, number: usize, entry: &Entry<'_, '_>, element: EntryId) -> Option<u64> {
        let counts = self.dimensions(number, entry, |dimension| {
            let number =
                |attribute| dimension.attr_value(attribute).ok().flatten().and_then(|of| of.udata_value());
            number(gimli::DW_AT_count)
                .or_else(|| number(gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1)))
        });
        let count = counts.into_iter().try_fold(1_u64, |count, elements| count.checked_mul(elements?))?;
        count.checked_mul(self.type_facts(element)?.bytes)
    }

    /// Facts of each dimension of an array.
    fn dimensions<T>(
        &self,
        number: usize,
        entry: &Entry<'_, '_>,
        fact: impl Fn(&Entry<'_, '_>) -> T,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let Some(unit) = self.index().unit(&self.dwarf, number) else { return found };
        let Ok(mut children) = unit.entries_at_offset(entry.offset()) else { return found };
        let _ = children.next_dfs();
        let mut depth = 0;
        while let Ok(Some((step, child))) = children.next_dfs() {
            depth += step;
            if depth <= 0 || found.len() == MOST_DIMENSIONS {
                break;
            }
            if child.tag() == gimli::DW_TAG_subrange_type {
                found.push(fact(child));
            }
        }
        found
    }

    /// The descriptor of an array whose elements are where its first word says (DWARF 5, 5.18.1).
    fn descriptor(&self, number: usize, entry: &Entry<'_, '_>, elements: EntryId) -> Option<Descriptor> {
        let unit = self.index().unit(&self.dwarf, number)?;
        let mut parts = vec![(word_at(unit, entry, gimli::DW_AT_data_location)?, Descriptor::DATA)];
        let bounds = self.dimensions(number, entry, |dimension| {
            Descriptor::BOUNDS.map(|(attribute, name)| Some((word_at(unit, dimension, attribute)?, name)))
        });
        parts.extend(bounds.into_iter().flatten().flatten());
        Some(Descriptor { elements, parts })
    }

    /// The first argument of a template that is a type.
    fn argument(&self, number: usize, entry: &Entry<'_, '_>) -> Option<EntryId> {
        let unit = self.index().unit(&self.dwarf, number)?;
        let mut children = unit.entries_at_offset(entry.offset()).ok()?;
        children.next_dfs().ok()??;
        let mut depth = 0;
        while let Some((step, child)) = children.next_dfs().ok()? {
            depth += step;
            if depth <= 0 {
                break;
            }
            if depth == 1 && child.tag() == gimli::DW_TAG_template_type_parameter {
                return self.index().reference(number, child.attr_value(gimli::DW_AT_type).ok()??);
            }
        }
        None
    }

    /// The members of a record, and the largest alignment that one of them says, or 1.
    fn members(&self, number: usize, entry: &Entry<'_, '_>) -> (Vec<Member>, u64) {
        let (mut found, mut alignment) = (Vec::new(), 1);
        let Some(unit) = self.index().unit(&self.dwarf, number) else { return (found, alignment) };
        let Ok(mut children) = unit.entries_at_offset(entry.offset()) else { return (found, alignment) };
        let _ = children.next_dfs();
        let mut depth = 0;
        // The depth of members: those of variants lie deeper.
        let mut own = 1;
        while let Ok(Some((step, child))) = children.next_dfs() {
            depth += step;
            if depth <= 0 || found.len() == MOST_MEMBERS {
                break;
            }
            own = own.min(depth);
            match child.tag() {
                gimli::DW_TAG_variant_part | gimli::DW_TAG_variant if depth == own => own += 1,
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance if depth == own => {
                    let is_discriminant = own == 2;
                    found.extend(self.member(number, unit, child, is_discriminant));
                    let said = child.attr_value(gimli::DW_AT_alignment).ok().flatten();
                    alignment = said.and_then(|said| said.udata_value()).unwrap_or(1).max(alignment);
                }
                _ => {}
            }
        }
        (found, alignment)
    }

    fn member(
        &self,
        number: usize,
        unit: &Unit,
        entry: &Entry<'_, '_>,
        is_discriminant: bool,
    ) -> Option<Member> {
        let attribute = |which| entry.attr_value(which).ok().flatten();
        if attribute(gimli::DW_AT_external).is_some() {
            return None;
        }
        let kind = attribute(gimli::DW_AT_type).and_then(|of| self.index().reference(number, of))?;
        let bits = || attribute(gimli::DW_AT_data_bit_offset)?.udata_value().map(|bits| bits / 8);
        let offset = match attribute(gimli::DW_AT_data_member_location) {
            Some(AttributeValue::Exprloc(_)) => return None,
            Some(offset) => offset.udata_value().unwrap_or(0),
            // A member of a union begins where the union does.
            None => bits().unwrap_or(0),
        };
        let name = match is_discriminant {
            true => Some("{discriminant}".to_owned()),
            false => name(&self.dwarf, unit, entry).ok().flatten(),
        };
        // clang and gcc add the class to its name, each in its way.
        let name = name.map(|name| if name.starts_with("_vptr") { "_vptr".to_owned() } else { name });
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        Some(Member { name, offset, kind, is_base, is_discriminant })
    }
}

/// The offset in the object of the word that an attribute says: the object's address, perhaps a number
/// added, and what lies there.
fn word_at(unit: &Unit, entry: &Entry<'_, '_>, attribute: gimli::DwAt) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(attribute).ok()?? else { return None };
    let mut operations = expression.operations(unit.encoding());
    let mut next = || operations.next().ok().flatten();
    let Operation::PushObjectAddress = next()? else { return None };
    let (offset, deref) = match next()? {
        Operation::PlusConstant { value } => (value, next()?),
        other => (0, other),
    };
    let is_word = matches!(deref, Operation::Deref { size: 8, space: false, .. });
    (is_word && next().is_none() && offset < MOST_OFFSET).then_some(offset)
}
