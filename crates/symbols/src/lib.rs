//! What an ELF image tells: sections, build id, global objects.
//!
//! The file may be anything a user names: every offset in it is checked, and nothing in it can make this crate panic.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memlode_trace::format::section;
use memlode_trace::module::{Global, ModuleImage, Section};
use object::elf;
use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};

/// What is read from an ELF image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Path, build id, the two sections of an instrumented image, and the data objects with static storage by address.
    pub module: ModuleImage,
    /// Loaded at an address of the system's choice: a shared library or a position-independent executable.
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
        /// What the system said.
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
    /// ELF with contradictions.
    #[error("{path} is a damaged ELF file: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Image {
    /// Reads an image from a file.
    pub fn read(path: &Path) -> Result<Image, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Image::parse(&bytes, path)
    }

    /// Reads an image from bytes; the path is for errors only.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Image, Error> {
        if bytes.get(..4) != Some(&elf::ELFMAG[..]) {
            return Err(Error::NotElf { path: path.to_owned() });
        }
        if bytes.get(4..6) != Some(&[elf::ELFCLASS64, elf::ELFDATA2LSB]) {
            return Err(Error::OtherMachine { path: path.to_owned() });
        }
        let damaged = |what: object::Error| Error::Damaged { path: path.to_owned(), what: what.to_string() };
        let file = ElfFile::<elf::FileHeader64<Endianness>>::parse(bytes).map_err(damaged)?;
        if !matches!(file.kind(), ObjectKind::Executable | ObjectKind::Dynamic) {
            return Err(Error::NotElf { path: path.to_owned() });
        }
        let section = |name: &str| {
            let section = file
                .section_by_name(name)
                .ok_or_else(|| Error::NotInstrumented { path: path.to_owned(), section: name.to_owned() })?;
            let bytes = section.data().map_err(damaged)?.to_vec();
            Ok(Section { address: section.address(), bytes })
        };
        let module = ModuleImage {
            path: path.to_string_lossy().into_owned(),
            build_id: file.build_id().map_err(damaged)?.unwrap_or_default().to_vec(),
            anchors: section(section::ANCHORS)?,
            tables: section(section::TABLES)?,
            globals: globals(&file),
        };
        let relocatable = file.elf_header().e_type(Endianness::Little) == elf::ET_DYN;
        Ok(Image { module, relocatable })
    }
}

/// Data objects of `.symtab`, or of `.dynsym` in a stripped image. Several names of one object leave one global.
fn globals(file: &ElfFile<'_, elf::FileHeader64<Endianness>>) -> Vec<Global> {
    let data = |symbol: &object::read::elf::ElfSymbol<'_, '_, elf::FileHeader64<Endianness>>| {
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
        let is_object = symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0;
        // A section that is not loaded has no address; one memlode added is not the user's.
        (is_object && symbol.address() != 0 && !name.is_empty() && !name.starts_with("__memlode_")).then(
            || {
                let (address, bytes) = (symbol.address(), symbol.size());
                (symbol.is_global(), Global { name, address, bytes })
            },
        )
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
