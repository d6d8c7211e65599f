//! A program or library as a file: where its bytes are loaded, its symbols, its code, its debug
//! information.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memlode_trace::module::ModuleImage;
use object::read::elf::ProgramHeader;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, SymbolKind};

use crate::debug::Debug;
use crate::debug::sections::{section, separate};
use crate::unwind::FrameTables;
use crate::{ElfImage, Error};

/// Bytes of the largest program that is read.
pub const MOST_BYTES: u64 = 8 << 30;

/// A function or an object of the symbol tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSymbol {
    /// The first byte, as the file has it.
    pub address: u64,
    /// Bytes; 0 if the table does not have them.
    pub bytes: u64,
    /// Its name as linkers know it.
    pub name: String,
}

impl ProgramSymbol {
    fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.bytes)
    }
}

/// A part of the file that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

/// The parts of a file that are loaded.
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    pub(crate) fn of(image: &object::File<'_>) -> Segments {
        let segment = |segment: object::Segment<'_, '_>| {
            let (offset, bytes) = segment.file_range();
            Segment { offset, bytes, address: segment.address() }
        };
        Segments(image.segments().map(segment).collect())
    }

    /// The address that a byte of the file is loaded at; `None` if it is not loaded.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let within = |segment: &&Segment| {
            offset.checked_sub(segment.offset).is_some_and(|inside| inside < segment.bytes)
        };
        let segment = self.0.iter().find(within)?;
        Some(segment.address.wrapping_add(offset - segment.offset))
    }
}

/// A program or library, read whole.
pub struct ProgramFile {
    path: PathBuf,
    bytes: Arc<[u8]>,
    entry: u64,
    is_fixed: bool,
    build_id: Option<Vec<u8>>,
    thread_bytes: Option<u64>,
    segments: Segments,
    functions: Symbols,
    data: Symbols,
    /// The file with its debug information, if that is another one.
    separate: Option<Arc<[u8]>>,
    debug: OnceCell<Option<Debug>>,
    frames: OnceCell<Option<FrameTables>>,
    /// Addresses that the loader writes into the global offset table, by their places there.
    linked: OnceCell<HashMap<u64, u64>>,
}

impl ProgramFile {
    /// Reads a regular file. A program without debug information may have a file with it, of its
    /// build id, below `/usr/lib/debug`, or of the name that it has for it.
    ///
    /// # Errors
    /// If it cannot be read, or is no program.
    pub fn read(path: &Path) -> Result<ProgramFile, Error> {
        ProgramFile::read_below(path, None)
    }

    /// Reads a regular file of another machine, or of a container, whose files are below `root`.
    ///
    /// # Errors
    /// If it cannot be read, or is no program.
    pub fn read_below(path: &Path, root: Option<&Path>) -> Result<ProgramFile, Error> {
        let bytes = memlode_files::read_stored(path, MOST_BYTES)
            .map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let mut program = ProgramFile::parse(bytes, path)?;
        program.find_debug(root);
        Ok(program)
    }

    /// Looks for the file with its debug information, if it has none itself; that has its symbols,
    /// too.
    fn find_debug(&mut self, root: Option<&Path>) {
        let Ok(image) = object::File::parse(&*self.bytes) else { return };
        if image.section_by_name(gimli::SectionId::DebugInfo.name()).is_some() {
            return;
        }
        self.separate = separate(&self.path, root, &image);
        let is_stripped = image.symbols().next().is_none();
        let symbols = self.separate.as_ref().filter(|_| is_stripped);
        if let Some(image) = symbols.and_then(|bytes| object::File::parse(&**bytes).ok()) {
            let (functions, data) = symbols_of(&image);
            self.functions = Symbols::new([functions, std::mem::take(&mut self.functions.all)].concat());
            self.data = Symbols::new([data, std::mem::take(&mut self.data.all)].concat());
        }
    }

    /// Reads a program from bytes; the path is for errors only.
    ///
    /// # Errors
    /// If they are no program.
    pub fn parse(bytes: Vec<u8>, path: &Path) -> Result<ProgramFile, Error> {
        let bytes: Arc<[u8]> = bytes.into();
        let image = object::File::parse(&*bytes)
            .map_err(|why| Error::NotProgram { path: path.to_owned(), what: why.to_string() })?;
        let (functions, data) = symbols_of(&image);
        let segments = Segments::of(&image);
        let entry = image.entry();
        let is_fixed = image.kind() == object::ObjectKind::Executable;
        let build_id = image.build_id().ok().flatten().map(<[u8]>::to_vec);
        let (functions, data) = (Symbols::new(functions), Symbols::new(data));
        let thread_bytes = thread_bytes(&image);
        Ok(ProgramFile {
            path: path.to_owned(),
            bytes,
            entry,
            is_fixed,
            build_id,
            thread_bytes,
            segments,
            functions,
            data,
            separate: None,
            debug: OnceCell::new(),
            frames: OnceCell::new(),
            linked: OnceCell::new(),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The image with memlode's site tables; `None` if it was not built with memlode, or is damaged.
    pub fn site_tables(&self) -> Option<ModuleImage> {
        ElfImage::parse(&self.bytes, &self.path).ok().map(|image| image.module)
    }

    /// The address of the first instruction, as the file has it.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// It runs at the addresses that the file has, so these stand in its instructions.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// The number that its link gave it, if it did.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// The page of the lowest address that is loaded.
    pub fn lowest(&self) -> u64 {
        self.segments.0.iter().map(|segment| segment.address).min().unwrap_or(0) & !0xfff
    }

    /// The address that a byte of the file is loaded at; `None` if it is not loaded.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// The bytes that are loaded at an address, at most `most`; none if the file has none.
    pub fn bytes_at(&self, address: u64, most: usize) -> &[u8] {
        let one = |segment: &Segment| {
            let inside = address.checked_sub(segment.address).filter(|inside| *inside < segment.bytes)?;
            let length = (segment.bytes - inside).min(most as u64);
            let from = segment.offset.checked_add(inside)?;
            self.bytes.get(usize::try_from(from).ok()?..usize::try_from(from.checked_add(length)?).ok()?)
        };
        self.segments.0.iter().find_map(one).unwrap_or_default()
    }

    /// Functions of the symbol tables, in the order of these.
    pub fn functions(&self) -> &[ProgramSymbol] {
        &self.functions.all
    }

    /// Keeps the functions that `keep` gives back.
    pub fn map_functions(&mut self, keep: impl FnOnce(Vec<ProgramSymbol>) -> Vec<ProgramSymbol>) {
        self.functions = Symbols::new(keep(std::mem::take(&mut self.functions.all)));
    }

    /// The function whose code holds an address.
    pub fn function_at(&self, address: u64) -> Option<&ProgramSymbol> {
        self.functions.at(address)
    }

    /// The object with static storage that holds an address.
    pub fn data_at(&self, address: u64) -> Option<&ProgramSymbol> {
        self.data.at(address)
    }

    /// Debug information; `None` if there is none, or none that can be read.
    pub fn debug(&self) -> Option<&Debug> {
        self.debug.get_or_init(|| self.read_debug()).as_ref()
    }

    /// Returns whether the function at an address keeps its frame's address in rbp; `None` if the file has
    /// no unwind table for it.
    pub fn keeps_frame_pointer(&self, address: u64) -> Option<bool> {
        self.frames()?.keeps_frame_pointer(address)
    }

    /// The tables of frames; `None` if there are none.
    pub(crate) fn frames(&self) -> Option<&FrameTables> {
        let read = || FrameTables::of(&self.bytes, &object::File::parse(&*self.bytes).ok()?);
        self.frames.get_or_init(read).as_ref()
    }

    /// The address in this file that the loader writes to a place of the global offset table, where
    /// libraries load the addresses of their variables from; `None` if it is of another file.
    pub(crate) fn linked(&self, place: u64) -> Option<u64> {
        let read = || object::File::parse(&*self.bytes).ok().and_then(|image| linked(&image));
        self.linked.get_or_init(|| read().unwrap_or_default()).get(&place).copied()
    }

    /// Bytes of the memory that each thread has of its own, up to the address that the thread knows:
    /// of a program, not of a library (System V ABI, thread-local storage).
    pub(crate) fn thread_bytes(&self) -> Option<u64> {
        self.thread_bytes
    }

    fn read_debug(&self) -> Option<Debug> {
        let bytes = self.separate.as_ref().unwrap_or(&self.bytes);
        let image = object::File::parse(&**bytes).ok()?;
        Debug::load(&self.path, &|name| section(bytes, &image, name))
    }
}

fn thread_bytes(image: &object::File<'_>) -> Option<u64> {
    let object::File::Elf64(image) = image else { return None };
    let endian = image.endian();
    let headers = image.elf_program_headers();
    let own = headers.iter().find(|header| header.p_type(endian) == object::elf::PT_TLS)?;
    own.p_memsz(endian).checked_next_multiple_of(own.p_align(endian).max(1))
}

/// Relocations of the global offset table (System V ABI, AMD64 supplement, 4.4.1).
fn linked(image: &object::File<'_>) -> Option<HashMap<u64, u64>> {
    let table = image.section_by_name(".got")?;
    let places = table.address()..table.address().checked_add(table.size())?;
    let symbols = image.dynamic_symbol_table();
    let target = |relocation: &object::Relocation| {
        let object::RelocationFlags::Elf { r_type } = relocation.flags() else { return None };
        match (r_type, relocation.target()) {
            (object::elf::R_X86_64_RELATIVE, _) => u64::try_from(relocation.addend()).ok(),
            (object::elf::R_X86_64_GLOB_DAT, object::RelocationTarget::Symbol(symbol)) => {
                let symbol = symbols.as_ref()?.symbol_by_index(symbol).ok()?;
                symbol.is_definition().then(|| symbol.address())
            }
            _ => None,
        }
    };
    let relocations = image.dynamic_relocations()?.filter(|(place, _)| places.contains(place));
    Some(relocations.filter_map(|(place, relocation)| Some((place, target(&relocation)?))).collect())
}

/// Functions and objects of the symbol tables.
fn symbols_of(image: &object::File<'_>) -> (Vec<ProgramSymbol>, Vec<ProgramSymbol>) {
    let (mut functions, mut data) = (Vec::new(), Vec::new());
    for symbol in image.symbols().chain(image.dynamic_symbols()).filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        let one = ProgramSymbol { address: symbol.address(), bytes: symbol.size(), name: name.to_owned() };
        match symbol.kind() {
            SymbolKind::Text => functions.push(one),
            SymbolKind::Data if symbol.size() > 0 => data.push(one),
            _ => {}
        }
    }
    (functions, data)
}

/// Symbols that can be looked up by address.
#[derive(Default)]
struct Symbols {
    /// In the order of the tables.
    all: Vec<ProgramSymbol>,
    /// Indices into `all` by address, and the furthest end of these up to each.
    by_address: Vec<(usize, u64)>,
}

impl Symbols {
    fn new(all: Vec<ProgramSymbol>) -> Symbols {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|at| all[*at].address);
        let mut furthest = 0;
        let with_end = |at: usize| {
            furthest = all[at].address.saturating_add(all[at].bytes).max(furthest);
            (at, furthest)
        };
        let by_address = order.into_iter().map(with_end).collect();
        Symbols { all, by_address }
    }

    /// The symbol that holds an address; of several the first of the tables.
    fn at(&self, address: u64) -> Option<&ProgramSymbol> {
        let behind = self.by_address.partition_point(|(at, _)| self.all[*at].address <= address);
        let before = self.by_address[..behind].iter().rev();
        let near = before.take_while(|(_, furthest)| *furthest > address).map(|(at, _)| *at);
        near.filter(|at| self.all[*at].holds(address)).min().map(|at| &self.all[at])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_symbol_is_found_as_by_looking_at_all(
            symbols in prop::collection::vec((0..60_u64, 0..12_u64), 0..30),
            address in 0..80_u64,
        ) {
            let one = |(at, (address, bytes)): (usize, (u64, u64))| {
                ProgramSymbol { address, bytes, name: at.to_string() }
            };
            let all: Vec<ProgramSymbol> = symbols.into_iter().enumerate().map(one).collect();
            let expected = all.iter().find(|symbol| symbol.holds(address)).cloned();
            prop_assert_eq!(Symbols::new(all).at(address).cloned(), expected);
        }
    }
}
