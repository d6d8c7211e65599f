//! Variables of a function, and where they are while its code runs.

use std::collections::HashMap;

use gimli::{AttributeValue, Expression, Operation, UnitOffset};

use super::index::EntryId;
use super::{Debug, Entry, Slice, Unit};
use crate::instruction::Register;

/// The most variables of a function that are read.
const MOST_VARIABLES: usize = 1 << 14;
/// The most places of a variable that are read.
const MOST_PLACES: usize = 1 << 12;

/// The most operations of a place that are read, and the most pieces of a variable.
const MOST_OPERATIONS: usize = 64;
/// Bytes of the largest variable that is in pieces.
const MOST_OFFSET: u64 = 1 << 32;

/// The place of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the value of a register plus a number.
    Value(Register, i64),
    /// It lies at a register's value plus a number.
    At(Register, i64),
    /// It lies in the frame, at an offset from the frame's base.
    Frame(i64),
    /// A pointer that is kept at a register's value plus a number leads to it.
    Behind(Register, i64),
}

/// A variable, or a member of one that is in a register of its own, at some addresses of code.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    /// Parameters of functions that the compiler made have none.
    pub name: Option<std::rc::Rc<str>>,
    pub kind: EntryId,
    /// The type that it points to, where its own does not say it.
    pub pointee: Option<EntryId>,
    /// Code from the first address up to the second.
    pub code: (u64, u64),
    pub place: Place,
}

/// The base that places in a frame are counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameBase {
    /// The end of the caller's frame.
    Canonical,
    Register(Register),
    #[default]
    Unknown,
}

/// A function's variables.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    pub base: FrameBase,
    /// Ranges of the function's code.
    pub code: Vec<(u64, u64)>,
    pub located: Vec<Located>,
    /// Functions that are called, by the addresses that they return to.
    pub calls: HashMap<u64, EntryId>,
}

impl Debug {
    /// The variables of the function with code at an address, of functions inlined into it too.
    pub(crate) fn variables_at(&self, address: u64) -> Option<Variables> {
        if self.too_deep {
            return None;
        }
        let (number, offset) = self.index().function_at(&self.dwarf, address)?;
        self.variables(number, offset).ok().flatten()
    }

    /// The type of the value that the function which begins at an address returns.
    pub(crate) fn returned(&self, address: u64) -> Option<EntryId> {
        if self.too_deep {
            return None;
        }
        let (number, offset) = self.index().function_at(&self.dwarf, address)?;
        self.result(self.index().id(number, offset))
    }

    /// The type of the value that a function returns.
    pub(crate) fn result(&self, function: EntryId) -> Option<EntryId> {
        let mut id = function;
        // An instance of a declaration's definition, at most.
        for _ in 0..4 {
            let (number, offset) = self.index().place(id)?;
            let entry = self.index().unit(&self.dwarf, number)?.entry(offset).ok()?;
            if let Some(kind) = entry.attr_value(gimli::DW_AT_type).ok()? {
                return self.index().reference(number, kind);
            }
            id = self.index().origin(number, &entry)?;
        }
        None
    }

    fn variables(&self, number: usize, offset: UnitOffset) -> Result<Option<Variables>, gimli::Error> {
        let Some(unit) = self.index().unit(&self.dwarf, number) else { return Ok(None) };
        let mut entries = unit.entries_at_offset(offset)?;
        let mut found = Variables::default();
        // The ranges of code of each scope that is open.
        let mut scopes: Vec<Vec<(u64, u64)>> = Vec::new();
        let mut depth = 0;
        while let Some((step, entry)) = entries.next_dfs()? {
            depth += step;
            if (depth <= 0 && !scopes.is_empty()) || found.located.len() >= MOST_VARIABLES {
                break;
            }
            scopes.truncate(depth.max(0) as usize);
            let outer = scopes.last().cloned().unwrap_or_default();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    // One that cannot be read leaves the others.
                    let _ = self.locate(number, unit, entry, &outer, &mut found);
                }
                gimli::DW_TAG_call_site => {
                    let next = entry.attr_value(gimli::DW_AT_call_return_pc)?;
                    let next = next.and_then(|next| self.dwarf.attr_address(unit, next).ok().flatten());
                    let function = entry.attr_value(gimli::DW_AT_call_origin)?;
                    let function = function.and_then(|function| self.index().reference(number, function));
                    found.calls.extend(next.zip(function));
                }
                _ if depth == 0 => {
                    found.base = frame_base(unit, entry).unwrap_or_default();
                    found.code = self.code_of(unit, entry)?;
                }
                _ => {}
            }
            let own = if entry.tag() == gimli::DW_TAG_subprogram && depth > 0 {
                // A function that is defined inside this one has code of its own.
                Vec::new()
            } else {
                let own = self.code_of(unit, entry)?;
                let has_own = matches!(
                    entry.tag(),
                    gimli::DW_TAG_subprogram | gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                );
                if has_own && !own.is_empty() { own } else { outer }
            };
            scopes.push(own);
        }
        Ok(Some(found))
    }

    fn code_of(&self, unit: &Unit, entry: &Entry<'_, '_>) -> Result<Vec<(u64, u64)>, gimli::Error> {
        let mut ranges = self.dwarf.die_ranges(unit, entry)?;
        let mut found = Vec::new();
        while let Some(range) = ranges.next()? {
            if found.len() < MOST_PLACES && range.begin < range.end {
                found.push((range.begin, range.end));
            }
        }
        Ok(found)
    }

    fn locate(
        &self,
        number: usize,
        unit: &Unit,
        entry: &Entry<'_, '_>,
        scope: &[(u64, u64)],
        found: &mut Variables,
    ) -> Result<(), gimli::Error> {
        let Some(location) = entry.attr_value(gimli::DW_AT_location)? else { return Ok(()) };
        let Some((name, kind)) = self.index().name_and_type(&self.dwarf, number, entry) else {
            return Ok(());
        };
        let name: Option<std::rc::Rc<str>> = name.map(Into::into);
        let mut add = |code: (u64, u64), expression: Expression<Slice>| -> Result<(), gimli::Error> {
            // Compilers have operations of their own.
            for Piece { place, offset, bytes } in pieces(unit, expression).unwrap_or_default() {
                let name = name.clone();
                match bytes {
                    None => found.located.push(Located { name, kind, pointee: None, code, place }),
                    Some(bytes) => {
                        let inside = self.inside(kind, offset as i64, 0, bytes);
                        let Some(inside) = inside.filter(|inside| inside.rest == 0) else { continue };
                        let (kind, pointee) = (inside.kind, inside.element);
                        found.located.push(Located { name, kind, pointee, code, place });
                    }
                }
            }
            Ok(())
        };
        if let AttributeValue::Exprloc(expression) = location {
            return scope.iter().try_for_each(|code| add(*code, expression.clone()));
        }
        let Some(mut places) = self.dwarf.attr_locations(unit, location)? else { return Ok(()) };
        let mut count = 0;
        while let Some(entry) = places.next()? {
            count += 1;
            if count > MOST_PLACES {
                break;
            }
            add((entry.range.begin, entry.range.end), entry.data)?;
        }
        Ok(())
    }
}

fn register(number: gimli::Register) -> Option<Register> {
    u8::try_from(number.0).ok().filter(|number| *number < 16).map(Register)
}

/// A part of a variable, and its place.
struct Piece {
    place: Place,
    /// Its first byte, of the variable's.
    offset: u64,
    /// `None` of a variable that is in one place.
    bytes: Option<u64>,
}

/// The places that an expression gives, those of the simple kinds that compilers write.
fn pieces(unit: &Unit, expression: Expression<Slice>) -> Result<Vec<Piece>, gimli::Error> {
    let mut operations = expression.operations(unit.encoding());
    let (mut found, mut own, mut offset) = (Vec::new(), Vec::new(), 0_u64);
    while let Some(operation) = operations.next()? {
        let Operation::Piece { size_in_bits, bit_offset } = operation else {
            own.push(operation);
            if own.len() > MOST_OPERATIONS {
                return Ok(Vec::new());
            }
            continue;
        };
        let bytes = size_in_bits / 8;
        if let (Some(place), None) = (place(&own), bit_offset) {
            found.push(Piece { place, offset, bytes: Some(bytes) });
        }
        own.clear();
        offset = offset.saturating_add(bytes).min(MOST_OFFSET);
        if found.len() > MOST_OPERATIONS {
            break;
        }
    }
    found.extend(place(&own).map(|place| Piece { place, offset: 0, bytes: None }));
    Ok(found)
}

/// The place that operations give.
fn place(operations: &[Operation<Slice>]) -> Option<Place> {
    match *operations {
        [Operation::Register { register: number }] => register(number).map(|number| Place::Value(number, 0)),
        [Operation::RegisterOffset { register: number, offset, .. }, Operation::StackValue] => {
            register(number).map(|number| Place::Value(number, offset))
        }
        [Operation::RegisterOffset { register: number, offset, .. }, Operation::Deref { .. }] => {
            register(number).map(|number| Place::Behind(number, offset))
        }
        [Operation::RegisterOffset { register: number, offset, .. }] => {
            register(number).map(|number| Place::At(number, offset))
        }
        [Operation::FrameOffset { offset }] => Some(Place::Frame(offset)),
        _ => None,
    }
}

fn frame_base(unit: &Unit, entry: &Entry<'_, '_>) -> Result<FrameBase, gimli::Error> {
    let Some(AttributeValue::Exprloc(base)) = entry.attr_value(gimli::DW_AT_frame_base)? else {
        return Ok(FrameBase::Unknown);
    };
    Ok(match base.operations(unit.encoding()).next()? {
        Some(Operation::CallFrameCFA) => FrameBase::Canonical,
        Some(Operation::Register { register: number }) => {
            register(number).map_or(FrameBase::Unknown, FrameBase::Register)
        }
        _ => FrameBase::Unknown,
    })
}
