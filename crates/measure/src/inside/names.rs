//! Names of objects at addresses: variables of the stack by debug information, static ones by the
//! symbol table.

use std::collections::HashSet;
use std::path::Path;

use memlode_symbols::{ProgramFile, ProgramSymbol};

use super::accesses::SteppedAccess;
use crate::Error;
use crate::names::Name;

/// Suffix of the symbol of a version that records nothing.
const DORMANT: &str = ".dormant";

/// Names of functions in an executable that runs.
pub struct Names {
    program: ProgramFile,
    /// The difference between its addresses and those of the file.
    base: u64,
}

impl Names {
    /// Reads the symbols and debug information of a file, if it has any.
    ///
    /// # Errors
    /// If it cannot be read or is no program.
    pub fn of(file: &Path) -> Result<Names, Error> {
        let mut program = ProgramFile::read(file)?;
        program.map_functions(as_they_run);
        Ok(Names { program, base: 0 })
    }

    /// Sets the address at which the kernel put the file's first instruction.
    pub fn loaded_at(&mut self, entry: u64) {
        self.base = entry.wrapping_sub(self.program.entry());
    }

    /// Sets the address at which the kernel put a library.
    pub fn loaded_from(&mut self, base: u64) {
        self.base = base;
    }

    /// Makes addresses count from the file's lowest one.
    pub fn counted_from_lowest(&mut self) {
        self.base = self.program.lowest().wrapping_neg();
    }

    /// Returns where a function begins in the program that runs. If a compiler has kept only a
    /// specialised version (`smooth.constprop.0`), that one is found by the function's name, too.
    ///
    /// # Errors
    /// If there is no function of that name.
    pub fn function(&self, name: &str) -> Result<u64, Error> {
        let functions = self.program.functions();
        let mut versions = functions.iter().filter(|other| is_version_of(&other.name, name));
        let only = versions.next().filter(|_| versions.next().is_none());
        let found = functions.iter().find(|other| other.name == name).or(only);
        let found = found.map(|function| function.address.wrapping_add(self.base));
        found.ok_or_else(|| {
            let few: Vec<&str> = functions
                .iter()
                .map(|function| function.name.as_str())
                .filter(|other| other.contains(name) || !other.starts_with('_'))
                .take(8)
                .collect();
            let others = match few.is_empty() {
                true => "its symbol table is empty: link it without -s".to_owned(),
                false => format!("it has {}", few.join(", ")),
            };
            let file = self.program.path().display();
            Error::Usage(format!("{file} has no function `{name}`: {others}"))
        })
    }

    /// Names an access of it.
    pub fn name(&self, access: &SteppedAccess) -> Name {
        let place = self.place(access.instruction);
        if let Some(frame) = access.frame {
            let function = frame.function.wrapping_sub(self.base);
            let debug = self.program.debug();
            let variable = debug.and_then(|debug| debug.frame_variable(function, frame.offset));
            let owner = self.program.function_at(function).map(|owner| owner.name.clone());
            let owner = owner.unwrap_or_else(|| format!("{:#x}", frame.function));
            let data = variable.unwrap_or_else(|| format!("the stack of {owner} at {}", frame.offset));
            return Name { data, is_stack: true, place };
        }
        let data = match self.object_at(access.address) {
            Some((name, 0)) => name.to_owned(),
            Some((name, offset)) => format!("{name}+{offset}"),
            None => format!("memory at {:#x}", access.address),
        };
        Name { data, is_stack: false, place }
    }

    /// The name of the object around an address, without the distance from its beginning.
    pub fn object(&self, access: &SteppedAccess) -> String {
        match (access.frame, self.object_at(access.address)) {
            (None, Some((name, _))) => name.to_owned(),
            _ => self.name(access).data,
        }
    }

    /// "work kernel.c:7", as far as it is known.
    pub fn place(&self, instruction: u64) -> String {
        let address = instruction.wrapping_sub(self.base);
        let function = self.program.function_at(address).map(|function| function.name.clone());
        let position = self.program.debug().and_then(|debug| debug.position(address));
        let location = position.filter(|position| position.line > 0).and_then(|position| {
            let file = Path::new(&position.file).file_name()?.to_string_lossy().into_owned();
            Some(format!("{file}:{}", position.line))
        });
        let unknown = || format!("{instruction:#x}");
        [function, location].into_iter().flatten().reduce(|a, b| format!("{a} {b}")).unwrap_or_else(unknown)
    }

    /// An object with static storage, and how far behind its beginning an address of the running program lies.
    fn object_at(&self, address: u64) -> Option<(&str, u64)> {
        let address = address.wrapping_sub(self.base);
        let object = self.program.data_at(address)?;
        Some((&object.name, address - object.address))
    }
}

/// Programs that memlode built have each function several times. Started by themselves they run the one that records
/// nothing, and it goes by the function's name.
fn as_they_run(functions: Vec<ProgramSymbol>) -> Vec<ProgramSymbol> {
    let plain = |function: &ProgramSymbol| Some(function.name.strip_suffix(DORMANT)?.to_owned());
    let dormant: HashSet<String> = functions.iter().filter_map(plain).collect();
    let one = |function: ProgramSymbol| match plain(&function) {
        Some(name) => Some(ProgramSymbol { name, ..function }),
        None => (!dormant.contains(&function.name)).then_some(function),
    };
    functions.into_iter().filter_map(one).collect()
}

/// Returns whether a symbol is a function's version that a compiler made: its name, and the
/// compiler's behind a full stop. The seldom executed part of a function (`.cold`, `.part`) does
/// not count.
fn is_version_of(symbol: &str, name: &str) -> bool {
    let made = symbol.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    made.is_some_and(|made| !made.split('.').any(|part| part == "cold" || part == "part"))
}
