//! The way in which the system starts a program.

use std::path::Path;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, elf};

use crate::{Error, image};

/// The way in which the system starts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// A loader loads its libraries, and those that the environment adds.
    Dynamic,
    /// The program has all of its libraries in it.
    Static,
    /// The file is a script, or made for another kind of machine.
    Unknown,
}

/// Returns how the system starts a program.
///
/// # Errors
/// If the file cannot be read.
pub fn loading(path: &Path) -> Result<Loading, Error> {
    let file = memlode_files::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let data = ReadCache::new(file);
    let Ok(file) = image(&data, path) else { return Ok(Loading::Unknown) };
    let headers = file.elf_header().program_headers(Endianness::Little, &data).unwrap_or_default();
    let has_loader = headers.iter().any(|header| header.p_type(Endianness::Little) == elf::PT_INTERP);
    Ok(if has_loader { Loading::Dynamic } else { Loading::Static })
}
