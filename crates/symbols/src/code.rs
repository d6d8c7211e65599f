//! A function's code for a reader: each instruction with the places in the source that it comes
//! from.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Formatter, IntelFormatter};

use crate::debug::DebugFrame;
use crate::instruction::{Instruction, Operand, Operands};
use crate::sides::{Recorder, unrecorded};
use crate::{Error, ProgramFile, ProgramSymbol};

/// Bytes of a function's code that are read, at most.
const MOST_CODE: u64 = 1 << 20;

/// The suffixes of functions that memlode's compiler makes of one (`instrument/src/sides`).
const DORMANT: &str = ".dormant";
const RECORDING: &str = ".recording";

/// The version of a function that its code is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// It was compiled without memlode.
    Plain,
    /// It records nothing: the original code, with tests whether to record.
    Dormant,
    /// It records: memlode's own instructions are among its own.
    Recording,
}

/// Memory that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessedMemory {
    /// Bytes; 0 where the instruction does not have them.
    pub bytes: u32,
    /// It is read.
    pub loads: bool,
    /// It is written.
    pub stores: bool,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct CodeLine {
    /// Its address, as the file has it.
    pub address: u64,
    /// Its text, in Intel's syntax.
    pub text: String,
    /// The functions that it belongs to, the innermost inlined one first; none without a line.
    pub frames: Vec<DebugFrame>,
    /// The memory that it uses, implied operands too.
    pub memory: Vec<AccessedMemory>,
}

/// The code of a function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// Its name as linkers know it.
    pub name: String,
    /// The version of it.
    pub version: Version,
    /// Its instructions, by address. Of a dormant version that shares the function with a recording
    /// one, only its own.
    pub lines: Vec<CodeLine>,
}

/// The code of functions of these names: of each the version that records nothing, where there is
/// one.
///
/// # Errors
/// If the debug information is damaged, or nests its entries too deeply.
pub fn code_of(program: &ProgramFile, names: &BTreeSet<String>) -> Result<Vec<FunctionCode>, Error> {
    let mut found: BTreeMap<&str, BTreeMap<u64, &ProgramSymbol>> = BTreeMap::new();
    for symbol in program.functions().iter().filter(|symbol| symbol.bytes > 0) {
        if names.contains(whole_name(&symbol.name)) {
            found.entry(whole_name(&symbol.name)).or_default().insert(symbol.address, symbol);
        }
    }
    let recorder = Recorder::of(program);
    let mut all = Vec::new();
    for (name, symbols) in found {
        let ending = |ending: &str| symbols.values().any(|symbol| symbol.name.ends_with(ending));
        let (is_apart, is_recording) = (ending(DORMANT), ending(RECORDING));
        for symbol in symbols.values() {
            let version = match () {
                () if is_apart && !symbol.name.ends_with(DORMANT) => continue,
                () if is_apart => Version::Dormant,
                () if is_recording && !symbol.name.ends_with(RECORDING) => continue,
                () if is_recording => Version::Recording,
                () => Version::Plain,
            };
            all.push(function(program, name, symbol, version, recorder.as_ref())?);
        }
    }
    Ok(all)
}

/// Returns the name of the function that a symbol is a version of.
pub fn whole_name(name: &str) -> &str {
    let version = [DORMANT, RECORDING].iter().find_map(|ending| name.strip_suffix(ending));
    version.unwrap_or(name)
}

fn function(
    program: &ProgramFile,
    name: &str,
    symbol: &ProgramSymbol,
    version: Version,
    recorder: Option<&Recorder>,
) -> Result<FunctionCode, Error> {
    let mut code = decoded(program, symbol);
    let mut version = version;
    if let (Version::Plain, Some(recorder)) = (version, recorder)
        && recorder.records(&code)
    {
        let is_runtime = |address| {
            let called = program.function_at(address);
            called.is_some_and(|called| {
                called.name.starts_with("memlode.") || called.name.starts_with("__memlode")
            })
        };
        version = Version::Recording;
        if let Some(kept) = unrecorded(&code, recorder, &is_runtime) {
            version = Version::Dormant;
            let mut kept = kept.into_iter();
            code.retain(|_| kept.next().unwrap_or(false));
        }
    }
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(true);
    options.set_rip_relative_addresses(true);
    options.set_signed_immediate_operands(true);
    options.set_uppercase_hex(false);
    options.set_show_branch_size(false);
    let mut operands = Operands::default();
    let mut lines = Vec::new();
    for instruction in &code {
        let mut text = String::new();
        formatter.format(&instruction.0, &mut text);
        let frames = match program.debug() {
            Some(debug) => debug.frames(instruction.address())?,
            None => Vec::new(),
        };
        // Pushes, pops and calls are no accesses of a source.
        let memory = operands.of(instruction).filter(|_| !instruction.0.is_stack_instruction());
        let memory = memory
            .map(|Operand { bytes, loads, stores, .. }| AccessedMemory { bytes, loads, stores })
            .collect();
        lines.push(CodeLine { address: instruction.address(), text, frames, memory });
    }
    Ok(FunctionCode { name: name.to_string(), version, lines })
}

/// The instructions of a function, up to the first bytes that are none.
fn decoded(program: &ProgramFile, symbol: &ProgramSymbol) -> Vec<Instruction> {
    let bytes = program.bytes_at(symbol.address, symbol.bytes.min(MOST_CODE) as usize);
    let mut code = Vec::new();
    let mut at = 0;
    while let Some(instruction) =
        bytes.get(at..).and_then(|bytes| Instruction::decode(bytes, symbol.address + at as u64))
    {
        at += (instruction.next() - instruction.address()) as usize;
        code.push(instruction);
    }
    code
}
