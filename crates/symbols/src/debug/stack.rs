//! Variables of a function's frame, of code without optimisation.

use gimli::{AttributeValue, Operation};

use super::{Debug, Dwarf, Entry, Unit, name};

/// The number of the register that frames are addressed by (rbp), in debug information.
const FRAME_POINTER: u16 = 6;
/// From there to the canonical address: the return address and the old frame pointer.
const ABOVE_FRAME_POINTER: i64 = 16;

impl Debug {
    /// The variable of the function that begins at `function`, at an offset from its frame's
    /// canonical address (where the caller's frame ends): "sum", or "point+8".
    pub fn frame_variable(&self, function: u64, offset: i64) -> Option<String> {
        self.find_frame_variable(function, offset).ok().flatten()
    }

    fn find_frame_variable(&self, function: u64, offset: i64) -> Result<Option<String>, gimli::Error> {
        let mut units = self.dwarf.units();
        while let Some(header) = units.next()? {
            let unit = self.dwarf.unit(header)?;
            let mut entries = unit.entries();
            let mut depth = 0;
            // The depth of the function's own entry, and how far its variables' base lies from the canonical address.
            let mut inside: Option<(isize, i64)> = None;
            let mut nearest: Option<(i64, String)> = None;
            while let Some((step, entry)) = entries.next_dfs()? {
                depth += step;
                if inside.is_some_and(|(of, _)| depth <= of) {
                    break;
                }
                match (entry.tag(), inside) {
                    (gimli::DW_TAG_subprogram, None) if low(&self.dwarf, &unit, entry)? == Some(function) => {
                        inside = Some((depth, frame_base(&unit, entry)?));
                    }
                    (gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter, Some((_, base))) => {
                        let Some(at) = frame_offset(&unit, entry)?.map(|at| at + base) else { continue };
                        let closer = nearest.as_ref().is_none_or(|(other, _)| at > *other);
                        if at <= offset
                            && closer
                            && let Some(name) = name(&self.dwarf, &unit, entry)?
                        {
                            nearest = Some((at, name));
                        }
                    }
                    _ => {}
                }
            }
            if inside.is_some() {
                let beyond = |at: i64| if at == offset { String::new() } else { format!("+{}", offset - at) };
                return Ok(nearest.map(|(at, name)| name + &beyond(at)));
            }
        }
        Ok(None)
    }
}

/// The distance from the canonical address to the base from which a function's variables are
/// counted.
fn frame_base(unit: &Unit, entry: &Entry<'_, '_>) -> Result<i64, gimli::Error> {
    let Some(AttributeValue::Exprloc(base)) = entry.attr_value(gimli::DW_AT_frame_base)? else {
        return Ok(0);
    };
    Ok(match base.operations(unit.encoding()).next()? {
        Some(Operation::Register { register }) if register.0 == FRAME_POINTER => -ABOVE_FRAME_POINTER,
        _ => 0,
    })
}

fn low(dwarf: &Dwarf, unit: &Unit, entry: &Entry<'_, '_>) -> Result<Option<u64>, gimli::Error> {
    match entry.attr_value(gimli::DW_AT_low_pc)? {
        Some(value) => dwarf.attr_address(unit, value),
        None => Ok(None),
    }
}

fn frame_offset(unit: &Unit, entry: &Entry<'_, '_>) -> Result<Option<i64>, gimli::Error> {
    let Some(AttributeValue::Exprloc(place)) = entry.attr_value(gimli::DW_AT_location)? else {
        return Ok(None);
    };
    let mut operations = place.operations(unit.encoding());
    Ok(match (operations.next()?, operations.next()?) {
        (Some(Operation::FrameOffset { offset }), None) => Some(offset),
        _ => None,
    })
}
