//! Programs as files: sections, build id and global objects of an ELF image, and its code of other
//! compilers; symbols, debug information and instructions of any program.
//!
//! ```
//! let program = memlode_symbols::ProgramFile::read(&std::env::current_exe()?)?;
//! let entry = program.function_at(program.entry()).ok_or("a stripped program")?;
//! assert_eq!(entry.name, "_start");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file may be anything a user names: every offset in it is checked, and nothing in it can make
//! this crate panic.

pub mod call_stack;
pub mod code;
mod code_sites;
pub mod debug;
mod foreign;
pub mod instruction;
mod loading;
pub mod objects;
pub mod program;
mod sides;
mod system;
#[cfg(test)]
mod tests;
pub mod typing;
mod unwind;

pub use code_sites::CodeSites;
pub use instruction::{Flow, GeneralRegisters, Instruction, Operand};
pub use loading::{Loading, loading};
pub use program::{ProgramFile, ProgramSymbol};

use std::io;
use std::path::{Path, PathBuf};

use memlode_trace::ForeignCode;
use memlode_trace::format::section;
use memlode_trace::module::{Global, ModuleImage, Section};
use object::elf;
use object::read::elf::{ElfFile, ElfSymbol, FileHeader};
use object::{Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

/// Facts that are read from an ELF image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfImage {
    /// Path, build id, the two sections of an instrumented image, and the data objects with static
    /// storage by address.
    pub module: ModuleImage,
    /// Loaded at an address of the system's choice: a shared library or a position-independent
    /// executable.
    pub relocatable: bool,
}

/// Why an image could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Not an ELF file at all.
    #[error("{path} is not an ELF executable or shared library", path = .path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
    },
    /// ELF, but for a kind of machine that is not supported.
    #[error("{path} is an ELF file for another kind of machine; memlode reads 64-bit little-endian ones", path = .path.display())]
    OtherMachine {
        /// The file.
        path: PathBuf,
    },
    /// ELF, but not built with memlode.
    #[error("{path} has no section {section}: it was not built with `memlode cc` or `memlode c++`", path = .path.display())]
    NotInstrumented {
        /// The file.
        path: PathBuf,
        /// The section looked for.
        section: String,
    },
    /// Not a program in any format that is known.
    #[error("{path} is no program: {what}", path = .path.display())]
    NotProgram {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// Nothing that a linker reads.
    #[error("{path} is no object file: {what}", path = .path.display())]
    NotObject {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// Debug information with contradictions.
    #[error("{path}: its debug information is damaged: {what}", path = .path.display())]
    DamagedDebug {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// ELF with contradictions.
    #[error("{path} is a damaged ELF file: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
}

/// An anchor reaches its site table by a signed offset of 32 bits.
const SECTION_BYTES: u64 = 1 << 31;

impl ElfImage {
    /// Reads the needed parts of an image from a regular file: debug information is often most of
    /// it.
    pub fn read(path: &Path) -> Result<ElfImage, Error> {
        let file = memlode_files::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        ElfImage::from(&ReadCache::new(file), path)
    }

    /// Reads an image from bytes; the path is for errors only.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<ElfImage, Error> {
        ElfImage::from(bytes, path)
    }

    fn from<'data>(data: impl ReadRef<'data>, path: &Path) -> Result<ElfImage, Error> {
        let file = image(data, path)?;
        let damaged = |what: object::Error| Error::Damaged { path: path.to_owned(), what: what.to_string() };
        let section = |name: &str| {
            let section = file
                .section_by_name(name)
                .ok_or_else(|| Error::NotInstrumented { path: path.to_owned(), section: name.to_owned() })?;
            if section.size() > SECTION_BYTES {
                let what = format!("section {name} has {} bytes, more than it can", section.size());
                return Err(Error::Damaged { path: path.to_owned(), what });
            }
            let bytes = section.data().map_err(damaged)?.to_vec();
            Ok(Section { address: section.address(), bytes })
        };
        let module = ModuleImage {
            path: path.to_string_lossy().into_owned(),
            build_id: file.build_id().map_err(damaged)?.unwrap_or_default().to_vec(),
            anchors: section(section::ANCHORS)?,
            tables: section(section::TABLES)?,
            globals: globals(&file),
            foreign: foreign::code(&file).unwrap_or_default(),
            sampled: None,
        };
        let relocatable = file.elf_header().e_type(Endianness::Little) == elf::ET_DYN;
        Ok(ElfImage { module, relocatable })
    }
}

/// An ELF file of the kind that memlode reads.
type Elf<'data, R> = ElfFile<'data, elf::FileHeader64<Endianness>, R>;

/// Returns an executable or shared library of 64 bits.
fn image<'data, R: ReadRef<'data>>(data: R, path: &Path) -> Result<Elf<'data, R>, Error> {
    let Ok(&ident) = data.read_at::<[u8; 6]>(0) else {
        return Err(Error::NotElf { path: path.to_owned() });
    };
    if ident[..4] != elf::ELFMAG {
        return Err(Error::NotElf { path: path.to_owned() });
    }
    if ident[4..] != [elf::ELFCLASS64, elf::ELFDATA2LSB] {
        return Err(Error::OtherMachine { path: path.to_owned() });
    }
    let damaged = |what: object::Error| Error::Damaged { path: path.to_owned(), what: what.to_string() };
    let file = Elf::parse(data).map_err(damaged)?;
    if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
        return Err(Error::NotElf { path: path.to_owned() });
    }
    Ok(file)
}

/// Functions of an image that memlode did not compile. `None` if it compiled nothing of it, or the
/// image is of a memlode that did not list compiled code.
///
/// # Errors
/// The file cannot be read, or is no ELF image.
pub fn foreign_code(path: &Path) -> Result<Option<ForeignCode>, Error> {
    let file = memlode_files::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    Ok(foreign::code(&image(&ReadCache::new(file), path)?))
}

/// Bytes of compile commands that are read of an image, at most.
const MOST_COMMANDS: u64 = 64 << 20;

/// Commands that compiled the units of an image, as clang writes them with `-frecord-command-line`.
///
/// # Errors
/// The file cannot be read, or is no ELF file.
pub fn compile_commands(path: &Path) -> Result<Vec<String>, Error> {
    let file = memlode_files::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let damaged = |what: object::Error| Error::Damaged { path: path.to_owned(), what: what.to_string() };
    let data = ReadCache::new(file);
    let file = object::File::parse(&data).map_err(damaged)?;
    let Some(section) =
        file.section_by_name(".GCC.command.line").filter(|found| found.size() <= MOST_COMMANDS)
    else {
        return Ok(Vec::new());
    };
    let bytes = section.data().map_err(damaged)?;
    let lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    Ok(lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect())
}

/// Data objects of `.symtab`, or of `.dynsym` in a stripped image. Several names of one object
/// leave one global.
fn globals<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Vec<Global> {
    let data = |symbol: &ElfSymbol<'data, '_, elf::FileHeader64<Endianness>, R>| {
        let (address, bytes) = (symbol.address(), symbol.size());
        // A section that is not loaded has no address.
        if symbol.kind() != SymbolKind::Data || !symbol.is_definition() || bytes == 0 || address == 0 {
            return None;
        }
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
        // What memlode added is not the user's.
        let is_theirs = !name.is_empty() && !name.starts_with("__memlode_");
        is_theirs.then(|| (symbol.is_global(), Global { name, address, bytes }))
    };
    let mut found: Vec<_> = file.symbols().filter_map(|symbol| data(&symbol)).collect();
    if found.is_empty() {
        found = file.dynamic_symbols().filter_map(|symbol| data(&symbol)).collect();
    }
    found.sort_by(|(a_global, a), (b_global, b)| {
        (a.address, b.bytes, b_global, &a.name).cmp(&(b.address, a.bytes, a_global, &b.name))
    });
    found.dedup_by_key(|(_, global)| global.address);
    found.into_iter().map(|(_, global)| global).collect()
}
