//! One translation unit's site table (SPEC §2): parsed, every reference checked.

mod kinds;
mod types;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::asked::{self, Asked};
use crate::bytes::{Malformed, Reader};
use crate::calls::{self, TableCall};
use crate::compiled::{self, TableSources};
use crate::event::SyncKind;
use crate::format::{TableHeader, limit, magic, op, stream, table_section, version};
use crate::left_out::{self, LeftOut};
use crate::sections::Sections;
use crate::sites::{NameEvidence, SiteKind};
use crate::unrecorded::{self, TableUnrecorded};
use crate::untyped;

use types::TypesError;
pub(crate) use types::{TableForm, TableType, TableTypes};
use work::TableWork;
pub(crate) use work::{OpFeed, OpFeeds};

/// A site table. Indices are into its own lists.
pub(crate) struct Table {
    /// `table_flag.*` of the format.
    pub flags: u16,
    pub strings: Vec<String>,
    /// Directory, name.
    pub files: Vec<(u32, u32)>,
    pub functions: Vec<TableFunction>,
    pub locations: Vec<TableLocation>,
    /// Name, bytes.
    pub types: Vec<(u32, u64)>,
    pub sites: Vec<TableSite>,
    pub segments: Vec<Segment>,
    /// The ops of all segments.
    pub ops: Vec<Op>,
    /// The sources of all segments.
    pub sources: Vec<Source>,
    /// Descriptions of its types.
    pub descriptions: TableTypes,
    /// Work between its accesses, and the loads that these wait for.
    pub work: TableWork,
    /// Places of the code that are not recorded, by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// The user's wishes, and whether the unit has any of it.
    pub asked: Vec<Asked>,
    /// For each segment, the calls behind it; empty if the table does not have them.
    pub calls: Vec<Vec<TableCall>>,
    /// Places that are not recorded, and functions without segments.
    pub unrecorded: TableUnrecorded,
    /// Files that were compiled, and where.
    pub compiled: TableSources,
    /// Functions that return memory of no type (SPEC §2.9).
    pub untyped: Vec<u32>,
}

pub(crate) struct TableFunction {
    pub name: u32,
    pub linkage_name: u32,
    pub file: Option<u32>,
    pub line: u32,
}

pub(crate) struct TableLocation {
    pub function: u32,
    pub line: u32,
    pub column: u32,
    pub inlined_at: Option<u32>,
}

pub(crate) struct TableSite {
    pub kind: SiteKind,
    pub evidence: NameEvidence,
    pub flags: u32,
    pub bytes: u32,
    pub location: Option<u32>,
    pub variable: Option<u32>,
    pub ty: Option<u32>,
    pub member: Option<u32>,
}

/// The meaning of one header word.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Function whose code holds it.
    pub function: u32,
    /// Words behind the header.
    pub words: u16,
    /// Access, range, masked and gather ops; 0 if it repeats strides.
    pub accesses: u32,
    /// Into the list of ops.
    pub ops: Range<u32>,
    /// Into the list of sources.
    pub sources: Range<u32>,
}

/// An earlier segment whose words a segment refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Number of segments that it stands back.
    pub back: u32,
    /// Number of its words that must be there.
    pub words: u16,
}

/// A word of the segment plus a constant: chains of derived operands are resolved while parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub word: u16,
    pub offset: u64,
}

/// A step of a segment; words are positions behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Access {
        site: u32,
        at: Place,
    },
    /// An access at an offset from a word of one of the segment's sources.
    Derived {
        site: u32,
        source: u16,
        at: Place,
    },
    /// The first op of a segment: the number of iterations of the others, all of them strides.
    Repeat {
        count: u16,
    },
    /// An access whose address goes a constant step in each iteration.
    Stride {
        site: u32,
        at: Place,
        step: u64,
    },
    Range {
        site: u32,
        at: Place,
        length: u16,
    },
    Masked {
        site: u32,
        at: Place,
        lanes: u8,
        mask: u16,
    },
    Gather {
        site: u32,
        lanes: u8,
        first: u16,
        mask: u16,
    },
    Enter {
        frame: u16,
    },
    Exit,
    Resume {
        frame: u16,
    },
    Alloc {
        site: u32,
        first: u16,
    },
    AllocArray {
        site: u32,
        first: u16,
    },
    Realloc {
        site: u32,
        first: u16,
    },
    Free {
        site: u32,
        first: u16,
    },
    Unmap {
        site: u32,
        first: u16,
    },
    /// The value of the access op before: `bytes` for each lane (0: there are no lanes), their
    /// mask, and whether the memory before is followed by the memory after.
    Value {
        first: u16,
        bytes: u32,
        lanes: u8,
        mask: u16,
        both: bool,
    },
    Stamp {
        word: u16,
    },
    /// An operation on an object that orders threads.
    Sync {
        kind: SyncKind,
        at: Place,
        word: u16,
    },
}

/// Why a table was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TableError {
    #[error("the site table at offset {0:#x} does not begin with its magic number")]
    Magic(usize),
    #[error(
        "the site table at offset {at:#x} has version {found}, this memlode reads up to version {supported}"
    )]
    Version { at: usize, found: u16, supported: u16 },
    #[error("the site table at offset {0:#x} reaches beyond its section")]
    Beyond(usize),
    #[error("the site table at offset {0:#x} lies in another one")]
    Nested(usize),
    #[error("the site table at offset {0:#x} fails its checksum")]
    Checksum(usize),
    #[error("in the site table at offset {at:#x}, {list}: {why}")]
    Malformed { at: usize, list: &'static str, why: Malformed },
    #[error("in the site table at offset {at:#x}, {list}, entry {entry}: {what}")]
    Invalid { at: usize, list: &'static str, entry: usize, what: &'static str },
    #[error("the site table at offset {at:#x} has {left} bytes left over")]
    LeftOver { at: usize, left: usize },
}

impl Table {
    /// Returns the extent of the table at an offset of the `memlode_tab` section, by its header.
    pub fn extent(section: &[u8], at: usize) -> Result<Range<usize>, TableError> {
        let (header, _) = Table::header(section, at)?;
        let end = at.checked_add(TableHeader::BYTES + header.payload_bytes as usize);
        end.filter(|&end| end <= section.len()).map(|end| at..end).ok_or(TableError::Beyond(at))
    }

    fn header(section: &[u8], at: usize) -> Result<(TableHeader, &[u8]), TableError> {
        let rest = section.get(at..).ok_or(TableError::Beyond(at))?;
        let (header, rest) =
            rest.split_first_chunk::<{ TableHeader::BYTES }>().ok_or(TableError::Beyond(at))?;
        Ok((TableHeader::from_bytes(header), rest))
    }

    /// Parses the table at an offset of the `memlode_tab` section.
    pub fn parse(section: &[u8], at: usize) -> Result<Table, TableError> {
        let (header, rest) = Table::header(section, at)?;
        if header.magic != magic::TABLE {
            return Err(TableError::Magic(at));
        }
        if !(1..=version::TABLE).contains(&header.version) {
            return Err(TableError::Version { at, found: header.version, supported: version::TABLE });
        }
        let payload = rest.get(..header.payload_bytes as usize).ok_or(TableError::Beyond(at))?;
        if crc32fast::hash(payload) != header.crc32 {
            return Err(TableError::Checksum(at));
        }
        Parser { at, list: "strings", entry: 0, reader: Reader::new(payload) }.table(header)
    }
}

/// A parser that knows its position, for error messages.
struct Parser<'a> {
    at: usize,
    list: &'static str,
    entry: usize,
    reader: Reader<'a>,
}

impl<'a> Parser<'a> {
    fn table(mut self, header: TableHeader) -> Result<Table, TableError> {
        let strings =
            self.list("strings", |p| Ok(String::from_utf8_lossy(p.get(Reader::blob)?).into_owned()))?;
        let string = |p: &mut Self| p.get(|reader| reader.index(strings.len()));
        let maybe_string = |p: &mut Self| p.get(|reader| reader.optional_index(strings.len()));
        let files = self.list("files", |p| Ok((string(p)?, string(p)?)))?;
        let functions = self.list("functions", |p| {
            Ok(TableFunction {
                name: string(p)?,
                linkage_name: string(p)?,
                file: p.get(|reader| reader.optional_index(files.len()))?,
                line: p.get(Reader::u32)?,
            })
        })?;
        let locations = self.list("locations", |p| {
            Ok(TableLocation {
                function: p.get(|reader| reader.index(functions.len()))?,
                line: p.get(Reader::u32)?,
                column: p.get(Reader::u32)?,
                inlined_at: {
                    let earlier = p.entry;
                    p.get(|reader| reader.optional_index(earlier))?
                },
            })
        })?;
        let types = self.list("types", |p| Ok((string(p)?, p.get(Reader::varint)?)))?;
        let sites = self.list("sites", |p| {
            Ok(TableSite {
                kind: SiteKind::from_format(p.get(Reader::u8)?).ok_or_else(|| p.invalid("unknown kind"))?,
                evidence: NameEvidence::from_format(p.get(Reader::u8)?)
                    .ok_or_else(|| p.invalid("unknown evidence"))?,
                flags: p.get(Reader::u32)?,
                bytes: p.get(Reader::u32)?,
                location: p.get(|reader| reader.optional_index(locations.len()))?,
                variable: maybe_string(p)?,
                ty: p.get(|reader| reader.optional_index(types.len()))?,
                member: maybe_string(p)?,
            })
        })?;
        let mut ops = Vec::new();
        let mut sources = Vec::new();
        let mut before: Vec<(u32, u16)> = Vec::new();
        let segments = self.list("segments", |p| {
            let segment = p.segment(functions.len(), &sites, &before, &mut ops, &mut sources)?;
            // What repeats may be split, and then its words are not those of its first iteration.
            let repeats = ops.get(segment.ops.start as usize).is_some_and(|op: &Op| op.is_repeat());
            before.push((segment.function, if repeats { 0 } else { segment.words }));
            Ok(segment)
        })?;
        self.list = "sections";
        let sections = if header.version > 1 { self.get(Sections::read)? } else { Sections::default() };
        let descriptions = self.descriptions(&sections, [strings.len(), types.len()])?;
        let ops_of: Vec<u32> = segments.iter().map(|segment| segment.ops.len() as u32).collect();
        let work = TableWork::read(&sections, &ops_of).map_err(|(list, why)| TableError::Malformed {
            at: self.at,
            list,
            why,
        })?;
        let left_out = self.get(|_| left_out::read(&sections))?;
        let asked = self.get(|_| asked::read(&sections, strings.len()))?;
        let counts = [segments.len(), locations.len(), strings.len()];
        let calls = self.get(|_| calls::read(&sections, counts))?;
        let unrecorded = self.get(|_| unrecorded::read(&sections, counts))?;
        let untyped = self.get(|_| untyped::read(&sections, functions.len()))?;
        let counts = [strings.len(), files.len()];
        let compiled = self.get(|_| compiled::read(&sections, counts))?;
        match self.reader.left() {
            0 => Ok(Table {
                flags: header.flags,
                strings,
                files,
                functions,
                locations,
                types,
                sites,
                segments,
                ops,
                sources,
                descriptions,
                work,
                left_out,
                asked,
                calls,
                unrecorded,
                compiled,
                untyped,
            }),
            left => Err(TableError::LeftOver { at: self.at, left }),
        }
    }

    fn malformed(&self, why: Malformed) -> TableError {
        TableError::Malformed { at: self.at, list: self.list, why }
    }

    /// Returns the layouts of the types, if the table has them.
    fn descriptions(&self, sections: &Sections<'_>, counts: [usize; 2]) -> Result<TableTypes, TableError> {
        let Some(mut reader) = sections.get(table_section::TYPES) else { return Ok(TableTypes::default()) };
        let (at, list) = (self.at, "section types");
        TableTypes::read(&mut reader, counts[0], counts[1]).map_err(|error| match error {
            TypesError::Malformed(why) => TableError::Malformed { at, list, why },
            TypesError::Invalid { entry, what } => TableError::Invalid { at, list, entry, what },
        })
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        mut entry: impl FnMut(&mut Self) -> Result<T, TableError>,
    ) -> Result<Vec<T>, TableError> {
        self.list = name;
        self.entry = 0;
        let count = self.get(Reader::count)?;
        let mut entries = Vec::with_capacity(count);
        for index in 0..count {
            self.entry = index;
            entries.push(entry(self)?);
        }
        Ok(entries)
    }

    fn get<T>(
        &mut self,
        value: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<T, TableError> {
        value(&mut self.reader).map_err(|why| self.malformed(why))
    }

    fn invalid(&self, what: &'static str) -> TableError {
        TableError::Invalid { at: self.at, list: self.list, entry: self.entry, what }
    }

    fn segment(
        &mut self,
        functions: usize,
        sites: &[TableSite],
        segments: &[(u32, u16)],
        ops: &mut Vec<Op>,
        sources: &mut Vec<Source>,
    ) -> Result<Segment, TableError> {
        let function = self.get(|reader| reader.index(functions))?;
        let count = self.get(Reader::count)?;
        let (first, first_source) = (ops.len(), sources.len());
        let mut words = 0;
        let mut accesses = 0;
        for _ in 0..count {
            let op = match self.get(Reader::u8)? {
                op::DERIVED => self.derived(function, sites, segments, sources, first_source)?,
                code => self.op(code, sites, &ops[first..], &mut words)?,
            };
            accesses += u32::from(op.is_access());
            let repeats = matches!(ops.get(first), Some(Op::Repeat { .. }));
            if matches!(op, Op::Stride { .. }) != repeats || (op.is_repeat() && ops.len() > first) {
                return Err(self.invalid("strides are all that follows a repeat, and nothing else does"));
            }
            ops.push(op);
        }
        if matches!(ops[first..], [Op::Repeat { .. }]) {
            return Err(self.invalid("a repeat of nothing"));
        }
        let (ops, sources) = (first as u32..ops.len() as u32, first_source as u32..sources.len() as u32);
        Ok(Segment { function, words, accesses, ops, sources })
    }

    /// An access derived from a word of an earlier segment of the same function.
    fn derived(
        &mut self,
        function: u32,
        sites: &[TableSite],
        segments: &[(u32, u16)],
        sources: &mut Vec<Source>,
        first: usize,
    ) -> Result<Op, TableError> {
        let site = self.get(|reader| reader.index(sites.len()))?;
        let back = self.get(|reader| reader.up_to(segments.len() as u64))? as usize;
        let word = self.get(Reader::varint)?;
        let offset = self.get(Reader::svarint)? as u64;
        if sites[site as usize].bytes == 0 {
            return Err(self.invalid("an access of no bytes"));
        }
        let Some(&(holder, words)) = segments.len().checked_sub(back).and_then(|at| segments.get(at)) else {
            return Err(self.invalid("an address is derived from the segment itself"));
        };
        if holder != function {
            return Err(self.invalid("an address is derived from another function's segment"));
        }
        if word >= words.into() {
            return Err(self.invalid("an address is derived from a word that its segment does not have"));
        }
        let word = word as u16;
        let known = sources[first..].iter().position(|source| source.back == back as u32);
        let source = known.unwrap_or_else(|| {
            sources.push(Source { back: back as u32, words: 0 });
            sources.len() - 1 - first
        });
        let Some(number) = u16::try_from(source).ok().filter(|&number| number < u16::MAX) else {
            return Err(self.invalid("addresses are derived from too many segments"));
        };
        let words = &mut sources[first + source].words;
        *words = (*words).max(word + 1);
        Ok(Op::Derived { site, source: number, at: Place { word, offset } })
    }

    fn op(
        &mut self,
        code: u8,
        sites: &[TableSite],
        before: &[Op],
        words: &mut u16,
    ) -> Result<Op, TableError> {
        let site = match code {
            op::REPEAT | op::ENTER | op::EXIT | op::RESUME | op::VALUE | op::STAMP | op::SYNC => 0,
            _ => self.get(|reader| reader.index(sites.len()))?,
        };
        if matches!(code, op::ACCESS | op::STRIDE | op::MASKED | op::GATHER)
            && sites[site as usize].bytes == 0
        {
            return Err(self.invalid("an access of no bytes"));
        }
        Ok(match code {
            op::ACCESS => Op::Access { site, at: self.address(before, words)? },
            op::REPEAT => Op::Repeat { count: self.words(words, 1)? },
            op::STRIDE => self.stride(site, before, words)?,
            op::RANGE => {
                Op::Range { site, at: self.address(before, words)?, length: self.length(before, words)? }
            }
            op::MASKED => {
                let lanes = self.lanes()?;
                Op::Masked { site, lanes, at: self.address(before, words)?, mask: self.words(words, 1)? }
            }
            op::GATHER => {
                let lanes = self.lanes()?;
                let first = self.words(words, lanes.into())?;
                Op::Gather { site, lanes, first, mask: self.words(words, 1)? }
            }
            op::ENTER => Op::Enter { frame: self.words(words, 1)? },
            op::EXIT => Op::Exit,
            op::RESUME => Op::Resume { frame: self.words(words, 1)? },
            op::ALLOC => Op::Alloc { site, first: self.words(words, 2)? },
            op::ALLOC_ARRAY => Op::AllocArray { site, first: self.words(words, 3)? },
            op::REALLOC => Op::Realloc { site, first: self.words(words, 3)? },
            op::FREE => Op::Free { site, first: self.words(words, 1)? },
            op::UNMAP => Op::Unmap { site, first: self.words(words, 2)? },
            op::VALUE => self.value(sites, before.last(), words)?,
            op::STAMP => Op::Stamp { word: self.words(words, 1)? },
            op::SYNC => {
                let kind = SyncKind::from_format(self.get(Reader::u8)?);
                let kind = kind.ok_or_else(|| self.invalid("unknown order of threads"))?;
                Op::Sync { kind, at: self.address(before, words)?, word: self.words(words, 1)? }
            }
            _ => return Err(self.invalid("unknown op")),
        })
    }

    /// Claims the next words of the segment.
    fn words(&self, words: &mut u16, count: u16) -> Result<u16, TableError> {
        let first = *words;
        if u32::from(first) + u32::from(count) > stream::MAX_SEGMENT_WORDS {
            return Err(self.invalid("more words than a segment may have"));
        }
        *words += count;
        Ok(first)
    }

    /// The value of the op before it.
    fn value(&self, sites: &[TableSite], before: Option<&Op>, words: &mut u16) -> Result<Op, TableError> {
        let (site, lanes, mask) = match before {
            Some(&(Op::Access { site, .. } | Op::Derived { site, .. })) => (site, 0, 0),
            Some(&Op::Masked { site, lanes, mask, .. } | &Op::Gather { site, lanes, mask, .. }) => {
                (site, lanes, mask)
            }
            _ => return Err(self.invalid("a value of an op that has none")),
        };
        let TableSite { kind, bytes, .. } = sites[site as usize];
        let both = kind == SiteKind::Update;
        let one = (u64::from(bytes) * u64::from(lanes.max(1))).div_ceil(8);
        // More than 16 bits are too many for a segment in any case.
        let count = u16::try_from(one << u8::from(both)).unwrap_or(u16::MAX);
        Ok(Op::Value { first: self.words(words, count)?, bytes, lanes, mask, both })
    }

    fn lanes(&mut self) -> Result<u8, TableError> {
        match self.get(|reader| reader.up_to(limit::LANES))? {
            0 => Err(self.invalid("no lanes")),
            lanes => Ok(lanes as u8),
        }
    }

    fn address(&mut self, before: &[Op], words: &mut u16) -> Result<Place, TableError> {
        let Some(back) = self.back(before)? else {
            return Ok(Place { word: self.words(words, 1)?, offset: 0 });
        };
        let distance = self.get(Reader::svarint)?;
        match back {
            Op::Access { at, .. }
            | Op::Stride { at, .. }
            | Op::Range { at, .. }
            | Op::Masked { at, .. }
            | Op::Sync { at, .. } => {
                Ok(Place { word: at.word, offset: at.offset.wrapping_add(distance as u64) })
            }
            _ => Err(self.invalid("an address is derived from an op that has none")),
        }
    }

    fn stride(&mut self, site: u32, before: &[Op], words: &mut u16) -> Result<Op, TableError> {
        let at = self.address(before, words)?;
        let step = self.get(Reader::svarint)? as u64;
        // Executions are told apart by their words: one word cannot take two steps.
        let other = before.iter().any(
            |op| matches!(*op, Op::Stride { at: there, step: its, .. } if there.word == at.word && its != step),
        );
        match other {
            true => Err(self.invalid("strides from one word differ in their steps")),
            false => Ok(Op::Stride { site, at, step }),
        }
    }

    fn length(&mut self, before: &[Op], words: &mut u16) -> Result<u16, TableError> {
        match self.back(before)? {
            None => self.words(words, 1),
            Some(Op::Range { length, .. }) => Ok(length),
            Some(_) => Err(self.invalid("a length is derived from an op that has none")),
        }
    }

    /// The op an operand is derived from; `None` if it is the next word.
    fn back(&mut self, before: &[Op]) -> Result<Option<Op>, TableError> {
        let back = self.get(|reader| reader.up_to(before.len() as u64))? as usize;
        Ok(if back == 0 { None } else { Some(before[before.len() - back]) })
    }
}
