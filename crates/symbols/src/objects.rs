//! Files that linkers read and write, as far as links are compared.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

use crate::Error;

/// Names of the functions that an object file defines, in the order of its symbols. The path is for
/// errors only.
///
/// # Errors
/// If the bytes are no object file.
pub fn defined_functions(bytes: &[u8], path: &Path) -> Result<Vec<String>, Error> {
    let file = object::File::parse(bytes)
        .map_err(|why| Error::NotObject { path: path.to_owned(), what: why.to_string() })?;
    let defined = file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let names = defined.filter_map(|symbol| Some(symbol.name().ok()?.to_owned()));
    Ok(names.filter(|name| !name.is_empty()).collect())
}

/// Returns whether two files are loaded as the same program. The name of a file may determine the
/// place of its debug information, and that the build id.
pub fn load_alike(one: &[u8], other: &[u8]) -> bool {
    one == other || loaded(one).is_some_and(|sections| loaded(other) == Some(sections))
}

/// Name, address, size and bytes of a section.
type LoadedSection<'a> = (String, u64, u64, &'a [u8]);

/// The sections that are loaded, but for the bytes of the build id.
fn loaded(file: &[u8]) -> Option<Vec<LoadedSection<'_>>> {
    let file = object::File::parse(file).ok()?;
    let is_loaded =
        |flags| matches!(flags, SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_ALLOC) != 0);
    let sections = file.sections().filter(|section| is_loaded(section.flags()));
    let facts = sections.map(|section| {
        let name = section.name().ok()?.to_owned();
        let bytes = if name == ".note.gnu.build-id" { &[][..] } else { section.data().ok()? };
        Some((name, section.address(), section.size(), bytes))
    });
    facts.collect()
}
