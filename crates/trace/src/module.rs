//! One image (executable or shared library) of a trace: its sections, its global symbols, and the
//! file that holds them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use memlode_files::Folder;
use rustc_hash::FxHashSet;

use crate::bytes::{Malformed, Reader, put_blob, put_svarint, put_varint};
use crate::error::Error;
use crate::foreign_code::{self, ForeignCode};
use crate::format::{Anchor, ModuleHeader, limit, magic, version};
use crate::pack::{Packer, Part, Unpacker};
use crate::sampled::{self, SampledCode};
use crate::sections::{Sections, put_sections};
use crate::table::{Segment, Source, Table, TableError};

/// Index of a module over the whole trace: `modules/NNNN.mlm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// An image as the collector knows it and a module file holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleImage {
    /// The file it was loaded from.
    pub path: String,
    /// GNU build id; empty if it has none.
    pub build_id: Vec<u8>,
    /// `memlode_seg`
    pub anchors: Section,
    /// `memlode_tab`
    pub tables: Section,
    /// Data objects with static storage.
    pub globals: Vec<Global>,
    /// Functions that memlode did not compile.
    pub foreign: ForeignCode,
    /// Facts of its instructions, if it was sampled and not recorded.
    pub sampled: Option<SampledCode>,
}

/// A section: link-time address and contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Link-time address of the first byte.
    pub address: u64,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// A data object with static storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Global {
    /// Symbol, mangled.
    pub name: String,
    /// Link-time address.
    pub address: u64,
    /// Size.
    pub bytes: u64,
}

/// An image with its tables parsed, which maps header words to segments.
pub struct Module {
    pub(crate) image: ModuleImage,
    pub(crate) tables: Vec<Table>,
    /// For each anchor the table and the segment in it; `None` for a hole between anchors.
    anchors: Vec<Option<(u32, u32)>>,
    /// For each anchor whether other segments refer to its words.
    is_source: Vec<bool>,
    /// Index of each table's first function, were all functions of the module numbered.
    function_base: Vec<u32>,
}

/// Why a module was refused.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The anchors are not a whole number.
    #[error("section memlode_seg has {0} bytes, which is not a multiple of 8")]
    AnchorBytes(usize),
    /// An anchor's relative offset leads elsewhere.
    #[error("anchor {anchor} leads to address {address:#x}, outside section memlode_tab")]
    Astray {
        /// Index of the anchor.
        anchor: usize,
        /// Its target.
        address: u64,
    },
    /// A segment its table does not have.
    #[error("anchor {anchor} names segment {segment}, its site table has {segments}")]
    NoSuchSegment {
        /// Index of the anchor.
        anchor: usize,
        /// The segment.
        segment: u32,
        /// Segments in the table.
        segments: usize,
    },
    /// A segment that an earlier anchor stands for.
    #[error("anchor {anchor} names segment {segment} of its site table, as another one before it does")]
    NamedTwice {
        /// Index of the anchor.
        anchor: usize,
        /// The segment.
        segment: u32,
    },
    /// A site table that does not follow the format.
    #[error("{0}")]
    Table(String),
}

impl From<TableError> for ModuleError {
    fn from(error: TableError) -> Self {
        ModuleError::Table(error.to_string())
    }
}

/// Extents of the site tables of a section. They do not overlap: otherwise many small anchors could
/// make their reader parse the same bytes again and again.
#[derive(Default)]
struct Extents(BTreeMap<usize, usize>);

impl Extents {
    fn claim(&mut self, extent: Range<usize>) -> Result<(), TableError> {
        let before = self.0.range(..extent.end).next_back();
        if before.is_some_and(|(_, &end)| end > extent.start) {
            return Err(TableError::Nested(extent.start));
        }
        self.0.insert(extent.start, extent.end);
        Ok(())
    }
}

impl Module {
    /// Parses the tables of an image.
    pub fn parse(image: ModuleImage) -> Result<Module, ModuleError> {
        let (whole, rest) = image.anchors.bytes.as_chunks::<{ Anchor::BYTES }>();
        if !rest.is_empty() {
            return Err(ModuleError::AnchorBytes(image.anchors.bytes.len()));
        }
        let mut tables: Vec<Table> = Vec::new();
        let mut table_at = rustc_hash::FxHashMap::default();
        let mut tables_at = Extents::default();
        let mut named = FxHashSet::default();
        let mut anchors = Vec::with_capacity(whole.len());
        for (index, bytes) in whole.iter().enumerate() {
            let anchor = Anchor::from_bytes(bytes);
            if anchor.table_rel == 0 {
                anchors.push(None);
                continue;
            }
            let here = image.anchors.address.wrapping_add((index * Anchor::BYTES) as u64);
            let address = here.wrapping_add_signed(anchor.table_rel.into());
            let offset = address.wrapping_sub(image.tables.address);
            if offset >= image.tables.bytes.len() as u64 {
                return Err(ModuleError::Astray { anchor: index, address });
            }
            let table = match table_at.get(&offset) {
                Some(&table) => table,
                None => {
                    tables_at.claim(Table::extent(&image.tables.bytes, offset as usize)?)?;
                    tables.push(Table::parse(&image.tables.bytes, offset as usize)?);
                    *table_at.entry(offset).or_insert(tables.len() as u32 - 1)
                }
            };
            let segments = tables[table as usize].segments.len();
            if anchor.segment as usize >= segments {
                return Err(ModuleError::NoSuchSegment { anchor: index, segment: anchor.segment, segments });
            }
            if !named.insert((table, anchor.segment)) {
                return Err(ModuleError::NamedTwice { anchor: index, segment: anchor.segment });
            }
            anchors.push(Some((table, anchor.segment)));
        }
        let function_base = tables
            .iter()
            .scan(0, |next, table| {
                let base = *next;
                *next += table.functions.len() as u32;
                Some(base)
            })
            .collect();
        let mut module =
            Module { image, tables, is_source: vec![false; anchors.len()], anchors, function_base };
        for anchor in 0..module.anchors.len() {
            let Some(segment) = module.segment(anchor as u32) else { continue };
            let sources = module.sources_of(segment).iter();
            let sources: Vec<usize> =
                sources.map(|source| anchor.saturating_sub(source.back as usize)).collect();
            sources.into_iter().for_each(|source| module.is_source[source] = true);
        }
        Ok(module)
    }

    /// The image.
    pub fn image(&self) -> &ModuleImage {
        &self.image
    }

    /// Anchors, holes included.
    pub fn anchor_count(&self) -> usize {
        self.anchors.len()
    }

    /// Table and index in it of the segment an anchor stands for.
    pub(crate) fn segment(&self, anchor: u32) -> Option<(usize, usize)> {
        let (table, segment) = (*self.anchors.get(anchor as usize)?)?;
        Some((table as usize, segment as usize))
    }

    /// The segments whose words a segment refers to.
    pub(crate) fn sources_of(&self, (table, segment): (usize, usize)) -> &[Source] {
        let sources = &self.tables[table].segments[segment].sources;
        &self.tables[table].sources[sources.start as usize..sources.end as usize]
    }

    /// Returns whether other segments refer to the words of an anchor's.
    pub(crate) fn is_source(&self, anchor: u32) -> bool {
        self.is_source[anchor as usize]
    }

    pub(crate) fn segment_of(&self, (table, segment): (usize, usize)) -> &Segment {
        &self.tables[table].segments[segment]
    }

    /// Number of the function that holds a segment, among all functions of the module.
    pub(crate) fn function_number(&self, segment: (usize, usize)) -> u32 {
        self.function_base[segment.0] + self.segment_of(segment).function
    }

    /// Reads a module file.
    pub(crate) fn read(folder: &Folder, name: &str) -> Result<Module, Error> {
        let path = &folder.path().join(name);
        let bytes = folder.read(name.as_ref(), limit::MODULE_FILE_BYTES).map_err(Error::io(path))?;
        Module::from_file(path, &bytes)
    }

    /// The contents of a module file.
    pub(crate) fn from_file(path: &Path, bytes: &[u8]) -> Result<Module, Error> {
        let damaged = |what: &str| Error::damaged(path, what);
        let (header, payload) = bytes
            .split_first_chunk::<{ ModuleHeader::BYTES }>()
            .ok_or_else(|| damaged("shorter than the header of a module file"))?;
        let header = ModuleHeader::from_bytes(header);
        if header.magic != magic::MODULE {
            return Err(damaged("does not begin like a module file"));
        }
        if header.version > version::SAMPLED_TRACE {
            let (found, supported) = (header.version.into(), version::SAMPLED_TRACE.into());
            return Err(Error::Newer { path: path.to_owned(), found, supported });
        }
        let unsealed = ModuleHeader { header_crc32: 0, ..header };
        if crc32fast::hash(&unsealed.to_bytes()) != header.header_crc32 || header.version == 0 {
            return Err(damaged("the header fails its checksum"));
        }
        if payload.len() as u64 != header.payload_bytes {
            let (found, expected) = (payload.len(), header.payload_bytes);
            return Err(damaged(&format!("has {found} bytes behind its header, which promises {expected}")));
        }
        if header.unpacked_bytes > most_unpacked(header.payload_bytes) {
            let promised = header.unpacked_bytes;
            return Err(damaged(&format!(
                "{} bytes are to unpack to {promised}, more than those of a module can",
                payload.len()
            )));
        }
        if crc32fast::hash(payload) != header.payload_crc32 {
            return Err(damaged("the contents fail their checksum"));
        }
        let mut unpacked = Vec::new();
        Unpacker::new()
            .unpack(header.codec, payload, header.unpacked_bytes, &mut unpacked)
            .map_err(|error| damaged(&error.to_string()))?;
        let image = ModuleImage::from_payload(&unpacked, header.version)
            .map_err(|error| damaged(&error.to_string()))?;
        Module::parse(image).map_err(|error| damaged(&error.to_string()))
    }
}

/// The most bytes to which the packed bytes of a module may unpack. Site tables and names shrink to
/// about a fifth; a file that shrinks to almost nothing was made to fill its reader's memory.
fn most_unpacked(packed: u64) -> u64 {
    packed.saturating_mul(limit::MODULE_UNPACKING).max(limit::MODULE_SMALL_BYTES)
}

impl ModuleImage {
    /// The module file.
    pub(crate) fn to_file(&self) -> Vec<u8> {
        let unpacked = self.to_payload();
        let (codec, payload) = Packer::new().pack(&[Part::Matched(&unpacked)]);
        let (codec, payload) = match unpacked.len() as u64 > most_unpacked(payload.len() as u64) {
            true => Packer::storing().pack(&[Part::Matched(&unpacked)]),
            false => (codec, payload),
        };
        let mut header = ModuleHeader {
            magic: magic::MODULE,
            version: if self.sampled.is_some() { version::SAMPLED_TRACE } else { version::TRACE },
            codec,
            payload_bytes: payload.len() as u64,
            unpacked_bytes: unpacked.len() as u64,
            payload_crc32: crc32fast::hash(&payload),
            ..Default::default()
        };
        header.header_crc32 = crc32fast::hash(&header.to_bytes());
        [&header.to_bytes()[..], &payload].concat()
    }

    fn to_payload(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.anchors.bytes.len() + self.tables.bytes.len() + 4096);
        put_blob(&mut out, self.path.as_bytes());
        put_blob(&mut out, &self.build_id);
        for section in [&self.anchors, &self.tables] {
            put_varint(&mut out, section.address);
            put_blob(&mut out, &section.bytes);
        }
        put_varint(&mut out, self.globals.len() as u64);
        let mut previous = 0u64;
        for global in &self.globals {
            put_blob(&mut out, global.name.as_bytes());
            put_svarint(&mut out, global.address.wrapping_sub(previous) as i64);
            put_varint(&mut out, global.bytes);
            previous = global.address;
        }
        let foreign = foreign_code::section(&self.foreign);
        let sections: Vec<_> =
            foreign.into_iter().chain(self.sampled.as_ref().map(sampled::section)).collect();
        put_sections(&mut out, &sections);
        out
    }

    fn from_payload(payload: &[u8], version: u16) -> Result<ModuleImage, Malformed> {
        let mut reader = Reader::new(payload);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let path = text(reader.blob()?);
        let build_id = reader.blob()?.to_vec();
        let mut section = || Ok(Section { address: reader.varint()?, bytes: reader.blob()?.to_vec() });
        let (anchors, tables) = (section()?, section()?);
        let count = reader.count()?;
        let mut globals = Vec::with_capacity(count);
        let mut address = 0u64;
        for _ in 0..count {
            let name = text(reader.blob()?);
            address = address.wrapping_add_signed(reader.svarint()?);
            globals.push(Global { name, address, bytes: reader.varint()? });
        }
        let sections = if version > 3 { Sections::read(&mut reader)? } else { Sections::default() };
        let (foreign, sampled) = (foreign_code::read(&sections)?, sampled::read(&sections)?);
        match reader.left() {
            0 => Ok(ModuleImage { path, build_id, anchors, tables, globals, foreign, sampled }),
            left => Err(Malformed::Beyond { at: reader.position(), value: left as u64, limit: 0 }),
        }
    }
}
