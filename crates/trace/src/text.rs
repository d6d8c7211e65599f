//! A trace as text: one line an event, columns separated by tabs.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use crate::event::{Batch, Mark};
use crate::format::flag;
use crate::read::Trace;
use crate::sites::{FunctionId, SiteId, SiteKind, SiteTable};

/// The columns, as the first line of a dump.
///
/// * `thread`: process and thread in it, as in the name of the thread's file
/// * `event`: number of the event in its thread, from 0
/// * `kind`: load, store, update, enter, exit, resume, alloc, realloc, free, unmap, stamp or sync
/// * `address`: of the first byte; of the frame for enter and resume
/// * `bytes`: length
/// * `place`: file:line:column of the source text
/// * `function`: the function of that source text
/// * `variable`, `member`: the names in the source text; the member with its type,
///   `struct arc.cost`
/// * `detail`: `count=…` of an array allocation, `old=…` of a reallocation, the operation of a
///   sync, `stamp=…`, and where values are recorded `value=…` of a load or store,
///   `before=… after=…` of an update: as a number where it is a floating-point one, else in
///   hexadecimal as one little-endian integer
///
/// The head of a dump. Anything unknown, or that does not apply, is `-`. Tabs, line breaks and
/// backslashes in names are written as in C, and other characters that could command a terminal by
/// their number, as in `\u{1b}`.
pub const HEADER: &str = "#thread\tevent\tkind\taddress\tbytes\tplace\tfunction\tvariable\tmember\tdetail";

/// Writes batches as text.
pub struct TextWriter<'t> {
    trace: &'t Trace,
    /// Last columns of each site, made when first needed.
    names: Vec<Option<Box<str>>>,
    /// Events so far, by thread.
    events: Vec<u64>,
    line: String,
}

impl<'t> TextWriter<'t> {
    /// A writer that starts numbering at 0.
    pub fn new(trace: &'t Trace) -> Self {
        TextWriter {
            trace,
            names: vec![None; trace.sites().sites().len()],
            events: vec![0; trace.threads().len()],
            line: String::new(),
        }
    }

    /// Writes the events of a chunk.
    pub fn write(&mut self, batch: &Batch, out: &mut impl Write) -> io::Result<()> {
        self.write_some(batch, 0..batch.accesses.len(), 0..batch.marks.len(), out)
    }

    /// Writes some events of a chunk, of which none is in a loop: accesses and the marks between
    /// them, by their places in the chunk.
    pub fn write_some(
        &mut self,
        batch: &Batch,
        accesses: Range<usize>,
        marks: Range<usize>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let is_first = accesses.start == 0 && marks.start == 0;
        let mut marks = batch.marks[marks].iter().peekable();
        let mut values = batch.values.between(accesses.start, accesses.end).peekable();
        if (batch.after_gap || batch.dormant) && is_first {
            self.begin(batch, if batch.dormant { "dormant" } else { "gap" });
            self.line.push_str("\t-\t-\t-\t-\t-\t-\t-\n");
            out.write_all(self.line.as_bytes())?;
        }
        for at in accesses.start..=accesses.end {
            while let Some((_, mark)) =
                marks.next_if(|(before, _)| *before as usize <= at || at == accesses.end)
            {
                self.mark(batch, mark);
                out.write_all(self.line.as_bytes())?;
            }
            if let Some(access) = batch.accesses[..accesses.end].get(at) {
                self.begin(batch, kind(self.trace.sites(), access.site));
                let _ = write!(self.line, "\t{:#x}\t{}\t", access.address, access.bytes);
                self.site(access.site);
                self.line.push('\t');
                match values.next_if(|&(of, _)| of == at) {
                    Some((_, bytes)) => {
                        let site = self.trace.sites().site(access.site);
                        value(&mut self.line, site.kind, site.flags & flag::FLOAT != 0, bytes);
                    }
                    None => self.line.push('-'),
                }
                self.line.push('\n');
                out.write_all(self.line.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Starts a line: thread, number, kind.
    fn begin(&mut self, batch: &Batch, kind: &str) {
        let thread = batch.thread.map_or(0, |thread| thread.0) as usize;
        let name = &self.trace.threads()[thread];
        self.line.clear();
        let _ = write!(self.line, "{}.{}\t{}\t{kind}", name.process.0, name.index, self.events[thread]);
        self.events[thread] += 1;
    }

    fn mark(&mut self, batch: &Batch, mark: &Mark) {
        let (kind, address, bytes, detail) = match *mark {
            Mark::Enter { frame, .. } => ("enter", Some(frame), None, String::new()),
            Mark::Exit { .. } => ("exit", None, None, String::new()),
            Mark::Resume { frame, .. } => ("resume", Some(frame), None, String::new()),
            Mark::Alloc { base, count: 1, element_bytes, .. } => {
                ("alloc", Some(base), Some(element_bytes), String::new())
            }
            Mark::Alloc { base, count, element_bytes, .. } => {
                ("alloc", Some(base), Some(count.wrapping_mul(element_bytes)), format!("count={count}"))
            }
            Mark::Realloc { base, bytes, old, .. } => {
                ("realloc", Some(base), Some(bytes), format!("old={old:#x}"))
            }
            Mark::Free { base, .. } => ("free", Some(base), None, String::new()),
            Mark::Unmap { base, bytes, .. } => ("unmap", Some(base), Some(bytes), String::new()),
            Mark::Stamp { stamp } => ("stamp", None, None, format!("stamp={stamp}")),
            Mark::Sync { kind, object, stamp } => {
                ("sync", Some(object), None, format!("{} stamp={stamp}", kind.name()))
            }
        };
        self.begin(batch, kind);
        let address = address.map_or("-".to_owned(), |address| format!("{address:#x}"));
        let bytes = bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let _ = write!(self.line, "\t{address}\t{bytes}\t");
        match *mark {
            Mark::Enter { function, .. } | Mark::Exit { function } | Mark::Resume { function, .. } => {
                let text = function_columns(self.trace.sites(), function);
                self.line.push_str(&text);
            }
            Mark::Alloc { site, .. }
            | Mark::Realloc { site, .. }
            | Mark::Free { site, .. }
            | Mark::Unmap { site, .. } => self.site(site),
            Mark::Stamp { .. } | Mark::Sync { .. } => self.line.push_str("-\t-\t-\t-"),
        }
        let _ = writeln!(self.line, "\t{}", if detail.is_empty() { "-" } else { &detail });
    }

    fn site(&mut self, site: SiteId) {
        let sites = self.trace.sites();
        let names = self.names[site.0 as usize].get_or_insert_with(|| site_columns(sites, site).into());
        self.line.push_str(names);
    }
}

pub(crate) fn kind(sites: &SiteTable, site: SiteId) -> &'static str {
    let site = sites.site(site);
    match site.kind {
        SiteKind::Load if site.is_prefetch() => "prefetch",
        SiteKind::Load => "load",
        SiteKind::Store => "store",
        SiteKind::Update => "update",
        SiteKind::Alloc => "alloc",
        SiteKind::Free => "free",
    }
}

/// Adds the value that an access moved.
fn value(line: &mut String, kind: SiteKind, is_float: bool, bytes: &[u8]) {
    if kind == SiteKind::Update {
        let (before, after) = bytes.split_at(bytes.len() / 2);
        line.push_str("before=");
        number(line, is_float, before);
        line.push_str(" after=");
        number(line, is_float, after);
    } else {
        line.push_str("value=");
        number(line, is_float, bytes);
    }
}

fn number(line: &mut String, is_float: bool, bytes: &[u8]) {
    // Writing to a string cannot fail.
    if let (true, Ok(four)) = (is_float, bytes.try_into()) {
        let _ = write!(line, "{:?}", f32::from_le_bytes(four));
    } else if let (true, Ok(eight)) = (is_float, bytes.try_into()) {
        let _ = write!(line, "{:?}", f64::from_le_bytes(eight));
    } else {
        line.push_str("0x");
        bytes.iter().rev().for_each(|byte| _ = write!(line, "{byte:02x}"));
    }
}

/// Place, function, variable, member.
fn site_columns(sites: &SiteTable, id: SiteId) -> String {
    let site = sites.site(id);
    let location = site.location.map(|location| sites.location(location));
    let function = location.map_or(site.function, |location| location.function);
    let file = sites.function(function).file.map(|(_, name)| escape(sites.string(name)));
    let place = match (location, file) {
        (Some(at), Some(file)) => format!("{file}:{}:{}", at.line, at.column),
        _ => "-".to_owned(),
    };
    let text = |id| escape(sites.string(id));
    let variable = site.variable.map_or("-".to_owned(), text);
    let ty = site.ty.map(|ty| text(sites.ty(ty).name));
    let member = match (ty, site.member.map(text)) {
        (Some(ty), Some(member)) => format!("{ty}.{member}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "-".to_owned(),
    };
    format!("{place}\t{}\t{variable}\t{member}", escape(sites.string(sites.function(function).name)))
}

fn function_columns(sites: &SiteTable, id: FunctionId) -> String {
    let function = sites.function(id);
    let place = match function.file {
        Some((_, name)) => format!("{}:{}", escape(sites.string(name)), function.line),
        None => "-".to_owned(),
    };
    format!("{place}\t{}\t-\t-", escape(sites.string(function.name)))
}

/// Keeps a name within its column.
pub(crate) fn escape(name: &str) -> String {
    if name.is_empty() {
        return "-".to_owned();
    }
    if !name.contains(|c| c == '\\' || is_unsafe(c)) {
        return name.to_owned();
    }
    name.chars()
        .map(|c| if c == '\\' || is_unsafe(c) { c.escape_default().to_string() } else { c.into() })
        .collect()
}

/// Returns whether a character of a name may do more in a terminal than be seen: control
/// characters, those that change the direction of text, and invisible ones.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
