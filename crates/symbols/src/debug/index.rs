//! Units of the debug information: the addresses of their code, their static variables, and
//! complete records.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

use gimli::{AttributeValue, Operation, Reader, UnitOffset};

use super::names::Scopes;
use super::{Dwarf, Entry, Slice, Unit, name};

/// An entry of all units, by its place in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) usize);

/// A unit, read when it is needed.
struct Lazy {
    header: gimli::UnitHeader<Slice>,
    start: usize,
    end: usize,
    unit: OnceCell<Option<Unit>>,
    /// Ranges of code, and the functions that they belong to.
    functions: OnceCell<Vec<(u64, u64, UnitOffset)>>,
}

/// A static variable, or one of the parts that the optimiser made of it.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub name: String,
    pub kind: EntryId,
    /// The part's first byte, of the variable's.
    pub from: u64,
    /// The part's bytes; `None` of a whole variable.
    pub bytes: Option<u64>,
}

/// Facts that need all units together.
#[derive(Default)]
struct Whole {
    /// Keyed by address.
    globals: BTreeMap<u64, Global>,
    /// Variables that each thread has of its own, keyed by the place in what they all begin with.
    of_threads: BTreeMap<u64, Global>,
    /// Complete records by qualified name; `None` where units disagree in their size.
    records: HashMap<String, Option<(EntryId, u64)>>,
    /// Namespaces and classes that types are in, with the colons behind them, of those that are in any.
    scopes: HashMap<EntryId, Rc<str>>,
}

/// All units.
pub(crate) struct Index {
    units: Vec<Lazy>,
    /// Types in units of their own, by the signatures that others know them by.
    signatures: HashMap<u64, EntryId>,
    /// Ranges of code, and their units.
    ranges: Vec<(u64, u64, usize)>,
    whole: OnceCell<Whole>,
}

impl Index {
    /// Reads the heads of all units. Damaged ones are left out.
    pub fn read(dwarf: &Dwarf) -> Index {
        let (mut units, mut signatures) = (Vec::new(), HashMap::new());
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.offset().as_debug_info_offset() else { continue };
            if let gimli::UnitType::Type { type_signature, type_offset } = header.type_() {
                signatures.insert(type_signature.0, EntryId(start.0.saturating_add(type_offset.0)));
            }
            let end = start.0.saturating_add(header.length_including_self());
            units.push(Lazy {
                header,
                start: start.0,
                end,
                unit: OnceCell::new(),
                functions: OnceCell::new(),
            });
        }
        let mut index = Index { units, signatures, ranges: Vec::new(), whole: OnceCell::new() };
        let mut found = Vec::new();
        for number in 0..index.units.len() {
            let Some(unit) = index.unit(dwarf, number) else { continue };
            let Ok(mut ranges) = dwarf.unit_ranges(unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                found.push((range.begin, range.end, number));
            }
        }
        found.sort_unstable();
        index.ranges = found;
        index
    }

    pub fn directories(&self, dwarf: &Dwarf) -> BTreeSet<PathBuf> {
        let units = (0..self.units.len()).filter_map(|number| self.unit(dwarf, number));
        let directories = units.filter_map(|unit| unit.comp_dir.as_ref()?.to_string_lossy().ok());
        directories.map(|directory| PathBuf::from(&*directory)).collect()
    }

    pub fn unit(&self, dwarf: &Dwarf, number: usize) -> Option<&Unit> {
        let lazy = &self.units[number];
        lazy.unit.get_or_init(|| dwarf.unit(lazy.header.clone()).ok()).as_ref()
    }

    /// The unit that an entry lies in, and the entry's place in it.
    pub fn place(&self, id: EntryId) -> Option<(usize, UnitOffset)> {
        let number = self.units.partition_point(|unit| unit.start <= id.0).checked_sub(1)?;
        let unit = &self.units[number];
        (id.0 < unit.end).then(|| (number, UnitOffset(id.0 - unit.start)))
    }

    pub fn id(&self, number: usize, offset: UnitOffset) -> EntryId {
        EntryId(self.units[number].start + offset.0)
    }

    /// The entry that an attribute refers to.
    pub fn reference(&self, number: usize, value: AttributeValue<Slice>) -> Option<EntryId> {
        match value {
            AttributeValue::UnitRef(offset) => Some(self.id(number, offset)),
            AttributeValue::DebugInfoRef(offset) => Some(EntryId(offset.0)),
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// The function with code at an address: its unit and entry.
    pub fn function_at(&self, dwarf: &Dwarf, address: u64) -> Option<(usize, UnitOffset)> {
        let behind = self.ranges.partition_point(|(from, _, _)| *from <= address);
        // Ranges of units do not overlap in whole files; of those that do, some are looked at.
        let near = self.ranges[..behind].iter().rev().take(16).filter(|(_, to, _)| address < *to);
        near.filter_map(|(_, _, number)| {
            let functions = self.functions(dwarf, *number);
            let holds = |(from, to, _): &&(u64, u64, UnitOffset)| (*from..*to).contains(&address);
            functions.iter().find(holds).map(|(_, _, entry)| (*number, *entry))
        })
        .next()
    }

    fn functions(&self, dwarf: &Dwarf, number: usize) -> &[(u64, u64, UnitOffset)] {
        self.units[number].functions.get_or_init(|| {
            let mut found = Vec::new();
            let Some(unit) = self.unit(dwarf, number) else { return found };
            let mut entries = unit.entries();
            while let Ok(Some((_, entry))) = entries.next_dfs() {
                if entry.tag() != gimli::DW_TAG_subprogram {
                    continue;
                }
                let Ok(mut ranges) = dwarf.die_ranges(unit, entry) else { continue };
                while let Ok(Some(range)) = ranges.next() {
                    found.push((range.begin, range.end, entry.offset()));
                }
            }
            found
        })
    }

    /// The static variable that begins at an address, or the nearest before it.
    pub fn global_before(&self, dwarf: &Dwarf, address: u64) -> Option<(u64, &Global)> {
        let globals = &self.whole(dwarf).globals;
        globals.range(..=address).next_back().map(|(at, global)| (*at, global))
    }

    /// The variable of each thread's own that begins at a place, or the nearest before it.
    pub fn thread_local_before(&self, dwarf: &Dwarf, place: u64) -> Option<(u64, &Global)> {
        let known = &self.whole(dwarf).of_threads;
        known.range(..=place).next_back().map(|(at, global)| (*at, global))
    }

    /// The namespaces and classes that a type is in: "std::", or nothing.
    pub fn scope(&self, dwarf: &Dwarf, id: EntryId) -> &str {
        self.whole(dwarf).scopes.get(&id).map_or("", |scope| scope)
    }

    /// The record of a qualified name, where it is complete.
    pub fn record(&self, dwarf: &Dwarf, name: &str) -> Option<EntryId> {
        self.whole(dwarf).records.get(name).copied().flatten().map(|(id, _)| id)
    }

    fn whole(&self, dwarf: &Dwarf) -> &Whole {
        self.whole.get_or_init(|| {
            let mut whole = Whole::default();
            for number in 0..self.units.len() {
                let Some(unit) = self.unit(dwarf, number) else { continue };
                let mut entries = unit.entries();
                let (mut scopes, mut depth) = (Scopes::default(), 0);
                while let Ok(Some((step, entry))) = entries.next_dfs() {
                    depth += step;
                    self.note(dwarf, number, unit, entry, &scopes.at(depth), &mut whole);
                    scopes.enter(depth, dwarf, unit, entry);
                }
            }
            whole
        })
    }

    fn note(
        &self,
        dwarf: &Dwarf,
        number: usize,
        unit: &Unit,
        entry: &Entry<'_, '_>,
        scope: &Rc<str>,
        whole: &mut Whole,
    ) {
        let is_type = matches!(
            entry.tag(),
            gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_typedef
        );
        if is_type && !scope.is_empty() {
            whole.scopes.insert(self.id(number, entry.offset()), scope.clone());
        }
        match entry.tag() {
            gimli::DW_TAG_variable => {
                let Some(parts) = static_parts(dwarf, unit, entry).filter(|parts| !parts.is_empty()) else {
                    return;
                };
                let Some((Some(name), kind)) = self.name_and_type(dwarf, number, entry) else { return };
                let global =
                    |part: Part| Global { name: name.clone(), kind, from: part.from, bytes: part.bytes };
                for part in parts {
                    let all = if part.is_of_thread { &mut whole.of_threads } else { &mut whole.globals };
                    all.insert(part.address, global(part));
                }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let bytes = entry.attr_value(gimli::DW_AT_byte_size).ok().flatten();
                let Some(bytes) = bytes.and_then(|bytes| bytes.udata_value()) else { return };
                let Ok(Some(name)) = name(dwarf, unit, entry) else { return };
                let id = self.id(number, entry.offset());
                let known = whole.records.entry(format!("{scope}{name}")).or_insert(Some((id, bytes)));
                if known.is_some_and(|(_, other)| other != bytes) {
                    *known = None;
                }
            }
            _ => {}
        }
    }

    /// The name and type of a variable or parameter, perhaps from the entry of which it is an
    /// instance.
    pub fn name_and_type(
        &self,
        dwarf: &Dwarf,
        number: usize,
        entry: &Entry<'_, '_>,
    ) -> Option<(Option<String>, EntryId)> {
        let unit = self.unit(dwarf, number)?;
        let mut text = name(dwarf, unit, entry).ok().flatten();
        let mut kind =
            entry.attr_value(gimli::DW_AT_type).ok()?.and_then(|value| self.reference(number, value));
        let mut origin = self.origin(number, entry);
        // An instance of a declaration's definition, at most.
        for _ in 0..4 {
            if text.is_some() && kind.is_some() {
                break;
            }
            let Some(instance_of) = origin else { break };
            let (number, offset) = self.place(instance_of)?;
            let unit = self.unit(dwarf, number)?;
            let entry = unit.entry(offset).ok()?;
            text = text.or_else(|| name(dwarf, unit, &entry).ok().flatten());
            let other = entry.attr_value(gimli::DW_AT_type).ok()?;
            kind = kind.or_else(|| self.reference(number, other?));
            origin = self.origin(number, &entry);
        }
        Some((text, kind?))
    }

    /// The declaration of a definition, or the function that an entry is an instance of.
    pub fn origin(&self, number: usize, entry: &Entry<'_, '_>) -> Option<EntryId> {
        let of = |attribute| self.reference(number, entry.attr_value(attribute).ok()??);
        of(gimli::DW_AT_abstract_origin).or_else(|| of(gimli::DW_AT_specification))
    }
}

/// A place where a static variable lies, or a part of it.
struct Part {
    address: u64,
    from: u64,
    bytes: Option<u64>,
    is_of_thread: bool,
}

/// Parts of a variable that are read.
const MOST_PARTS: usize = 64;

/// Places of a static variable: an address, or several with the bytes that are there. Empty if it is
/// elsewhere.
fn static_parts(dwarf: &Dwarf, unit: &Unit, entry: &Entry<'_, '_>) -> Option<Vec<Part>> {
    let AttributeValue::Exprloc(place) = entry.attr_value(gimli::DW_AT_location).ok()?? else { return None };
    let mut operations = place.operations(unit.encoding());
    let (mut found, mut from, mut address) = (Vec::new(), 0_u64, None);
    let (mut number, mut is_of_thread) = (None, false);
    while let Some(operation) = operations.next().ok()? {
        match operation {
            Operation::Address { address: at } if address.is_none() => address = Some(at),
            Operation::AddressIndex { index } if address.is_none() => {
                address = Some(dwarf.address(unit, index).ok()?);
            }
            Operation::UnsignedConstant { value } if address.is_none() => number = Some(value),
            Operation::TLS if number.is_some() => {
                (address, is_of_thread) = (number.take(), true);
            }
            Operation::Piece { size_in_bits, bit_offset: None } if found.len() < MOST_PARTS => {
                let bytes = size_in_bits / 8;
                let part = |address| Part { address, from, bytes: Some(bytes), is_of_thread };
                found.extend(address.take().map(part));
                from = from.checked_add(bytes)?;
            }
            _ => return None,
        }
    }
    found.extend(address.map(|address| Part { address, from: 0, bytes: None, is_of_thread }));
    found.retain(|part| part.address != 0 || part.is_of_thread);
    Some(found)
}
