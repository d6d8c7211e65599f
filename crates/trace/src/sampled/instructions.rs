//! Instructions as a module file holds them: a site table with a site, a segment and an anchor for each, and a section.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use super::{InstructionAccess, InstructionFrame, SampledInstruction, SampledModule};
use crate::bytes::{Malformed, put_blob, put_svarint, put_varint};
use crate::error::Error;
use crate::format::{
    Anchor, TableHeader, evidence, kind, limit, magic, module_section, op, sampled_flag, untyped, version,
};
use crate::module::{Module, ModuleImage, Section};
use crate::sections::{Sections, put_sections};
use crate::sites::{NameEvidence, SiteKind};
use crate::table::Table;

/// Address of the first anchor: nothing is loaded there, so any would do.
const ANCHORS_AT: u64 = 0x1000;

/// The section `sampled` of a module file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledCode {
    pub(crate) has_debug: bool,
    pub(crate) unread: Option<String>,
    /// Address, and why its data has no type.
    pub(crate) instructions: Vec<(u64, u8)>,
}

/// The section of an image that was sampled.
pub(crate) fn section(code: &SampledCode) -> (u32, Vec<u8>) {
    let mut out = vec![
        if code.has_debug { sampled_flag::DEBUG } else { 0 }
            | if code.unread.is_some() { sampled_flag::UNREAD } else { 0 },
    ];
    if let Some(why) = &code.unread {
        put_blob(&mut out, why.as_bytes());
    }
    put_varint(&mut out, code.instructions.len() as u64);
    let mut before = 0;
    for &(address, untyped) in &code.instructions {
        put_svarint(&mut out, address.wrapping_sub(before) as i64);
        out.push(untyped);
        before = address;
    }
    (module_section::SAMPLED, out)
}

/// Reads the section, if there is one.
pub(crate) fn read(sections: &Sections<'_>) -> Result<Option<SampledCode>, Malformed> {
    let Some(mut section) = sections.get(module_section::SAMPLED) else { return Ok(None) };
    let flags = section.u8()?;
    let unread = match flags & sampled_flag::UNREAD != 0 {
        true => Some(String::from_utf8_lossy(section.blob()?).into_owned()),
        false => None,
    };
    let count = section.count()?;
    let (mut instructions, mut address) = (Vec::new(), 0_u64);
    for _ in 0..count {
        address = address.wrapping_add_signed(section.svarint()?);
        instructions.push((address, section.u8()?));
    }
    Ok(Some(SampledCode { has_debug: flags & sampled_flag::DEBUG != 0, unread, instructions }))
}

/// Numbers values in the order in which they come.
struct Numbered<T>(Vec<T>, HashMap<T, u64>);

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Self {
        Numbered(Vec::new(), HashMap::new())
    }

    fn of(&mut self, value: T) -> u64 {
        let Numbered(all, numbers) = self;
        *numbers.entry(value).or_insert_with_key(|value| {
            all.push(value.clone());
            all.len() as u64 - 1
        })
    }
}

/// The lists of a site table.
struct Lists {
    strings: Numbered<String>,
    /// Name.
    files: Numbered<u64>,
    /// Name, and 1 more than the file's number.
    functions: Numbered<(u64, u64)>,
    /// Function, line, column, and 1 more than the number of the place where it was inlined.
    locations: Numbered<(u64, u32, u32, u64)>,
    types: Numbered<u64>,
}

impl Lists {
    fn function(&mut self, name: &str, file: &str) -> u64 {
        let file = match file {
            "" => 0,
            file => {
                let name = self.strings.of(file.to_owned());
                1 + self.files.of(name)
            }
        };
        let name = self.strings.of(name.to_owned());
        self.functions.of((name, file))
    }

    /// 1 more than the number of the innermost location; 0 if there is none.
    fn location(&mut self, frames: &[InstructionFrame]) -> u64 {
        frames.iter().rev().fold(0, |outer, frame| {
            let function = self.function(&frame.function, &frame.file);
            1 + self.locations.of((function, frame.line, frame.column, outer))
        })
    }

    fn optional(&mut self, text: Option<&String>) -> u64 {
        text.map_or(0, |text| 1 + self.strings.of(text.clone()))
    }
}

impl SampledModule {
    /// The image as a module file holds it.
    pub(super) fn to_image(&self) -> ModuleImage {
        let mut anchors = Vec::with_capacity(self.instructions.len() * Anchor::BYTES);
        let tables_at = ANCHORS_AT + (self.instructions.len() * Anchor::BYTES) as u64;
        for segment in 0..self.instructions.len() as u32 {
            let here = ANCHORS_AT + u64::from(segment) * Anchor::BYTES as u64;
            let table_rel = (tables_at - here) as i32;
            anchors.extend_from_slice(&Anchor { table_rel, segment }.to_bytes());
        }
        let of = |instruction: &SampledInstruction| (instruction.address, instruction.untyped);
        let code = SampledCode {
            has_debug: self.has_debug,
            unread: self.unread.clone(),
            instructions: self.instructions.iter().map(of).collect(),
        };
        ModuleImage {
            path: self.path.clone(),
            build_id: self.build_id.clone(),
            anchors: Section { address: ANCHORS_AT, bytes: anchors },
            tables: Section { address: tables_at, bytes: self.table() },
            sampled: Some(code),
            ..ModuleImage::default()
        }
    }

    /// The site table.
    fn table(&self) -> Vec<u8> {
        let mut lists = Lists {
            strings: Numbered::new(),
            files: Numbered::new(),
            functions: Numbered::new(),
            locations: Numbered::new(),
            types: Numbered::new(),
        };
        // Directories are part of the files' names.
        let no_directory = lists.strings.of(String::new());
        let (mut sites, mut segments) = (Vec::new(), Vec::new());
        for (number, instruction) in (0..).zip(&self.instructions) {
            put_site(&mut sites, instruction, &mut lists);
            put_varint(&mut segments, lists.function(&instruction.symbol, ""));
            let is_access = instruction.access.is_some();
            put_varint(&mut segments, 1 + u64::from(is_access));
            if is_access {
                segments.push(op::ACCESS);
                put_varint(&mut segments, number);
                put_varint(&mut segments, 0);
            }
            segments.push(op::STAMP);
        }
        let mut payload = Vec::new();
        put_list(&mut payload, &lists.strings.0, |out, text| put_blob(out, text.as_bytes()));
        put_list(&mut payload, &lists.files.0, |out, name| put_all(out, &[no_directory, *name]));
        put_list(&mut payload, &lists.functions.0, |out, (name, file)| {
            put_all(out, &[*name, *name, *file, 0])
        });
        put_list(&mut payload, &lists.locations.0, |out, (function, line, column, outer)| {
            put_all(out, &[*function, u64::from(*line), u64::from(*column), *outer]);
        });
        put_list(&mut payload, &lists.types.0, |out, name| put_all(out, &[*name, 0]));
        for list in [&sites, &segments] {
            put_varint(&mut payload, self.instructions.len() as u64);
            payload.extend_from_slice(list);
        }
        put_sections(&mut payload, &[]);
        let header = TableHeader {
            magic: magic::TABLE,
            version: version::TABLE,
            flags: 0,
            payload_bytes: payload.len() as u32,
            crc32: crc32fast::hash(&payload),
        };
        [&header.to_bytes()[..], &payload].concat()
    }

    /// Reads an image as a module file held it.
    pub(super) fn of_image(image: &ModuleImage) -> Result<SampledModule, Error> {
        let damaged = |what: &str| Error::damaged(Path::new(&image.path), what);
        let Some(code) = &image.sampled else { return Ok(SampledModule::default()) };
        let module = Module::parse(image.clone()).map_err(|error| damaged(&error.to_string()))?;
        let count = code.instructions.len();
        let is_whole = module.anchor_count() == count
            && (0..count).all(|at| module.segment(at as u32) == Some((0, at)))
            && module.tables.len() == usize::from(count > 0)
            && module.tables.iter().all(|table| table.sites.len() == count);
        if !is_whole {
            return Err(damaged("its instructions, segments and sites are not as many"));
        }
        let of = |(at, &(address, untyped))| instruction(&module.tables[0], at, address, untyped);
        Ok(SampledModule {
            path: image.path.clone(),
            build_id: image.build_id.clone(),
            has_debug: code.has_debug,
            unread: code.unread.clone(),
            instructions: code.instructions.iter().enumerate().map(of).collect(),
        })
    }

    /// Refuses what a module file cannot hold.
    pub(super) fn refuse_huge(&self) -> Result<(), Error> {
        // Names are some hundred bytes; tables and their anchors have to lie within two gigabytes.
        const MOST: u64 = limit::MODULE_FILE_BYTES / 64;
        match self.instructions.len() as u64 > MOST {
            true => Err(Error::damaged(
                Path::new(&self.path),
                format!("more than {MOST} of its instructions were sampled"),
            )),
            false => Ok(()),
        }
    }
}

fn put_all(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| put_varint(out, *value));
}

fn put_list<T>(out: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(out, list.len() as u64);
    list.iter().for_each(|entry| put(out, entry));
}

fn put_site(out: &mut Vec<u8>, instruction: &SampledInstruction, lists: &mut Lists) {
    let SampledInstruction { access, variable, ty, member, .. } = instruction;
    let kind = access.map_or(kind::LOAD, |access| if access.is_store { kind::STORE } else { kind::LOAD });
    let is_named = variable.is_some() || ty.is_some() || member.is_some();
    let evidence = match is_named {
        true if instruction.is_compiled => evidence::SOURCE,
        true => evidence::DEBUG,
        false => evidence::NONE,
    };
    out.extend([kind, evidence]);
    let ty = ty.as_ref().map_or(0, |ty| {
        let name = lists.strings.of(ty.clone());
        1 + lists.types.of(name)
    });
    let location = lists.location(&instruction.frames);
    let (variable, member) = (lists.optional(variable.as_ref()), lists.optional(member.as_ref()));
    let bytes = access.map_or(0, |access| u64::from(access.bytes.max(1)));
    put_all(out, &[0, bytes, location, variable, ty, member]);
}

fn instruction(table: &Table, at: usize, address: u64, why: u8) -> SampledInstruction {
    let (site, segment) = (&table.sites[at], &table.segments[at]);
    let text = |id: u32| table.strings[id as usize].clone();
    let frame = |location: &crate::table::TableLocation| {
        let function = &table.functions[location.function as usize];
        let file = function.file.map(|file| text(table.files[file as usize].1));
        InstructionFrame {
            function: text(function.linkage_name),
            file: file.unwrap_or_default(),
            line: location.line,
            column: location.column,
        }
    };
    let first = site.location.map(|id| &table.locations[id as usize]);
    let outwards =
        |location: &&crate::table::TableLocation| location.inlined_at.map(|id| &table.locations[id as usize]);
    let is_store = matches!(site.kind, SiteKind::Store | SiteKind::Update);
    SampledInstruction {
        address,
        symbol: text(table.functions[segment.function as usize].linkage_name),
        frames: std::iter::successors(first, outwards).map(frame).collect(),
        access: (segment.accesses > 0).then_some(InstructionAccess { is_store, bytes: site.bytes }),
        untyped: why.min(untyped::STACK),
        variable: site.variable.map(text),
        ty: site.ty.map(|id| text(table.types[id as usize].0)),
        member: site.member.map(text),
        is_compiled: site.evidence == NameEvidence::Source,
    }
}
