//! Names of what lies at an address: variables of the stack by debug information, static ones by the symbol table.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use addr2line::Context;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianRcSlice, Operation, Reader, RunTimeEndian, Unit,
};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::accesses::SteppedAccess;
use crate::Error;
use crate::names::Name;

type Slice = EndianRcSlice<RunTimeEndian>;

/// The number of the register that frames are addressed by (rbp), in debug information.
const FRAME_POINTER: u16 = 6;
/// From there to the canonical address: the return address and the old frame pointer.
const ABOVE_FRAME_POINTER: i64 = 16;

/// Suffix of the symbol of a version that records nothing.
const DORMANT: &str = ".dormant";

/// Names of functions in an executable that runs.
pub struct Names {
    file: PathBuf,
    /// The difference between its addresses and those of the file.
    base: u64,
    entry: u64,
    /// The lowest address that is loaded.
    lowest: u64,
    functions: Vec<(u64, u64, String)>,
    data: Vec<(u64, u64, String)>,
    lines: Option<Context<Slice>>,
    debug: Dwarf<Slice>,
}

impl Names {
    /// Reads the symbols and debug information of a file, if it has any.
    ///
    /// # Errors
    /// If it cannot be read or is no program.
    pub fn of(file: &Path) -> Result<Names, Error> {
        let bytes = memlode_files::read(file, crate::IMAGE)
            .map_err(|source| Error::File { path: file.to_owned(), source })?;
        let image = object::File::parse(&*bytes)
            .map_err(|why| Error::Usage(format!("{} is no program: {why}", file.display())))?;
        let mut functions = Vec::new();
        let mut data = Vec::new();
        for symbol in image.symbols().chain(image.dynamic_symbols()).filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            let one = (symbol.address(), symbol.size(), name.to_owned());
            match symbol.kind() {
                SymbolKind::Text => functions.push(one),
                SymbolKind::Data if symbol.size() > 0 => data.push(one),
                _ => {}
            }
        }
        let functions = as_they_run(functions);
        let lowest = image.segments().map(|segment| segment.address()).min().unwrap_or(0) & !0xfff;
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let section = image.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok(EndianRcSlice::new(Rc::from(section.unwrap_or_default()), RunTimeEndian::Little))
        };
        let damaged = |why: gimli::Error| {
            Error::Usage(format!("{} has damaged debug information: {why}", file.display()))
        };
        let lines = Context::from_dwarf(Dwarf::load(load).map_err(damaged)?).ok();
        let debug = Dwarf::load(load).map_err(damaged)?;
        Ok(Names {
            file: file.to_owned(),
            base: 0,
            entry: image.entry(),
            lowest,
            functions,
            data,
            lines,
            debug,
        })
    }

    /// Says where the kernel put the file's first instruction.
    pub fn loaded_at(&mut self, entry: u64) {
        self.base = entry.wrapping_sub(self.entry);
    }

    /// Says where the kernel put a library.
    pub fn loaded_from(&mut self, base: u64) {
        self.base = base;
    }

    /// Says that addresses are counted from the file's lowest one.
    pub fn counted_from_lowest(&mut self) {
        self.base = self.lowest.wrapping_neg();
    }

    /// Returns where a function begins in the program that runs. Where a compiler has kept a specialised version alone
    /// (`smooth.constprop.0`), it goes by the function's name, too.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn function(&self, name: &str) -> Result<u64, Error> {
        let mut versions = self.functions.iter().filter(|(_, _, other)| is_version_of(other, name));
        let only = versions.next().filter(|_| versions.next().is_none());
        let found = self.functions.iter().find(|(_, _, other)| other == name).or(only);
        let found = found.map(|(address, _, _)| address.wrapping_add(self.base));
        found.ok_or_else(|| {
            let few: Vec<&str> = self
                .functions
                .iter()
                .map(|(_, _, name)| name.as_str())
                .filter(|other| other.contains(name) || !other.starts_with('_'))
                .take(8)
                .collect();
            let others = match few.is_empty() {
                true => "its symbol table is empty: link it without -s".to_owned(),
                false => format!("it has {}", few.join(", ")),
            };
            Error::Usage(format!("{} has no function `{name}`: {others}", self.file.display()))
        })
    }

    /// Names an access of it.
    pub fn name(&self, access: &SteppedAccess) -> Name {
        let place = self.place(access.instruction);
        if let Some(frame) = access.frame {
            let variable = self.variable(frame.function.wrapping_sub(self.base), frame.offset);
            let owner = self.symbol(&self.functions, frame.function).map(|(name, _)| name);
            let owner = owner.unwrap_or_else(|| format!("{:#x}", frame.function));
            let data = variable
                .ok()
                .flatten()
                .unwrap_or_else(|| format!("the stack of {owner} at {}", frame.offset));
            return Name { data, is_stack: true, place };
        }
        let data = match self.symbol(&self.data, access.address) {
            Some((name, 0)) => name,
            Some((name, offset)) => format!("{name}+{offset}"),
            None => format!("memory at {:#x}", access.address),
        };
        Name { data, is_stack: false, place }
    }

    /// The name of what lies around an address, without the distance from its beginning.
    pub fn object(&self, access: &SteppedAccess) -> String {
        match (access.frame, self.symbol(&self.data, access.address)) {
            (None, Some((name, _))) => name,
            _ => self.name(access).data,
        }
    }

    /// "work kernel.c:7", as far as it is known.
    pub fn place(&self, instruction: u64) -> String {
        let function = self.symbol(&self.functions, instruction).map(|(name, _)| name);
        let location = self
            .lines
            .as_ref()
            .and_then(|lines| lines.find_location(instruction.wrapping_sub(self.base)).ok().flatten())
            .and_then(|location| {
                let file = Path::new(location.file?).file_name()?.to_string_lossy().into_owned();
                Some(format!("{file}:{}", location.line?))
            });
        let unknown = || format!("{instruction:#x}");
        [function, location].into_iter().flatten().reduce(|a, b| format!("{a} {b}")).unwrap_or_else(unknown)
    }

    fn symbol(&self, among: &[(u64, u64, String)], address: u64) -> Option<(String, u64)> {
        let address = address.wrapping_sub(self.base);
        let found = among.iter().find(|(start, bytes, _)| (*start..start + bytes).contains(&address))?;
        Some((found.2.clone(), address - found.0))
    }

    /// The variable of a function at an offset from its frame's canonical address.
    fn variable(&self, function: u64, offset: i64) -> Result<Option<String>, gimli::Error> {
        let mut units = self.debug.units();
        while let Some(header) = units.next()? {
            let unit = self.debug.unit(header)?;
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
                    (gimli::DW_TAG_subprogram, None) if low(&self.debug, &unit, entry)? == Some(function) => {
                        inside = Some((depth, self.frame_base(&unit, entry)?));
                    }
                    (gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter, Some((_, base))) => {
                        let Some(at) = frame_offset(&unit, entry)?.map(|at| at + base) else { continue };
                        let closer = nearest.as_ref().is_none_or(|(other, _)| at > *other);
                        if at <= offset
                            && closer
                            && let Some(name) = name(&self.debug, &unit, entry)?
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

    /// From the canonical address to the base that a function's variables are told from.
    fn frame_base(
        &self,
        unit: &Unit<Slice>,
        entry: &DebuggingInformationEntry<'_, '_, Slice>,
    ) -> Result<i64, gimli::Error> {
        let Some(AttributeValue::Exprloc(base)) = entry.attr_value(gimli::DW_AT_frame_base)? else {
            return Ok(0);
        };
        Ok(match base.operations(unit.encoding()).next()? {
            Some(Operation::Register { register }) if register.0 == FRAME_POINTER => -ABOVE_FRAME_POINTER,
            _ => 0,
        })
    }
}

/// Programs that memlode built have each function several times. Started by themselves they run the one that records
/// nothing, and it goes by the function's name.
fn as_they_run(functions: Vec<(u64, u64, String)>) -> Vec<(u64, u64, String)> {
    let dormant: HashSet<String> =
        functions.iter().filter_map(|(_, _, name)| Some(name.strip_suffix(DORMANT)?.to_owned())).collect();
    let one = |(address, bytes, name): (u64, u64, String)| match name.strip_suffix(DORMANT) {
        Some(plain) => Some((address, bytes, plain.to_owned())),
        None => (!dormant.contains(&name)).then_some((address, bytes, name)),
    };
    functions.into_iter().filter_map(one).collect()
}

fn low(
    debug: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    entry: &DebuggingInformationEntry<'_, '_, Slice>,
) -> Result<Option<u64>, gimli::Error> {
    match entry.attr_value(gimli::DW_AT_low_pc)? {
        Some(value) => debug.attr_address(unit, value),
        None => Ok(None),
    }
}

fn frame_offset(
    unit: &Unit<Slice>,
    entry: &DebuggingInformationEntry<'_, '_, Slice>,
) -> Result<Option<i64>, gimli::Error> {
    let Some(AttributeValue::Exprloc(place)) = entry.attr_value(gimli::DW_AT_location)? else {
        return Ok(None);
    };
    let mut operations = place.operations(unit.encoding());
    Ok(match (operations.next()?, operations.next()?) {
        (Some(Operation::FrameOffset { offset }), None) => Some(offset),
        _ => None,
    })
}

fn name(
    debug: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    entry: &DebuggingInformationEntry<'_, '_, Slice>,
) -> Result<Option<String>, gimli::Error> {
    let Some(value) = entry.attr_value(gimli::DW_AT_name)? else { return Ok(None) };
    Ok(Some(debug.attr_string(unit, value)?.to_string_lossy()?.into_owned()))
}

/// Returns whether a symbol is a function's version that a compiler made: its name, and the compiler's behind a full stop.
/// The seldom executed part of a function (`.cold`, `.part`) is none.
fn is_version_of(symbol: &str, name: &str) -> bool {
    let made = symbol.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    made.is_some_and(|made| !made.split('.').any(|part| part == "cold" || part == "part"))
}
