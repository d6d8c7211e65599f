//! Variables of a function, and where they are while its code runs.

use gimli::{AttributeValue, Expression, Operation, UnitOffset};

use super::index::EntryId;
use super::{Debug, Entry, Slice, Unit};
use crate::instruction::Register;

/// The most variables of a function that are read.
const MOST_VARIABLES: usize = 1 << 14;
/// The most places of a variable that are read.
const MOST_PLACES: usize = 1 << 12;

/// The place of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the value of a register plus a number.
    Value(Register, i64),
    /// It lies at a register's value plus a number.
    At(Register, i64),
    /// It lies in the frame, at an offset from the frame's base.
    Frame(i64),
}

/// A variable at some addresses of code.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub name: std::rc::Rc<str>,
    pub kind: EntryId,
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
                    self.locate(number, unit, entry, &outer, &mut found)?;
                }
                _ if depth == 0 => {
                    found.base = frame_base(unit, entry)?;
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
        let name: std::rc::Rc<str> = name.into();
        let mut add = |code: (u64, u64), expression: Expression<Slice>| -> Result<(), gimli::Error> {
            if let Some(place) = place(unit, expression)? {
                found.located.push(Located { name: name.clone(), kind, code, place });
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

/// The place that an expression gives, if it is one of the simple kinds that compilers write.
fn place(unit: &Unit, expression: Expression<Slice>) -> Result<Option<Place>, gimli::Error> {
    let mut operations = expression.operations(unit.encoding());
    let (first, second) = (operations.next()?, operations.next()?);
    let third = if second.is_some() { operations.next()? } else { None };
    Ok(match (first, second, third) {
        (Some(Operation::Register { register: number }), None, _) => {
            register(number).map(|number| Place::Value(number, 0))
        }
        (
            Some(Operation::RegisterOffset { register: number, offset, .. }),
            Some(Operation::StackValue),
            None,
        ) => register(number).map(|number| Place::Value(number, offset)),
        (Some(Operation::RegisterOffset { register: number, offset, .. }), None, _) => {
            register(number).map(|number| Place::At(number, offset))
        }
        (Some(Operation::FrameOffset { offset }), None, _) => Some(Place::Frame(offset)),
        _ => None,
    })
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
