//! One JSON object a line. Unknown values are left out.

use std::io::{self, Write};

use memlode_attribute::annotate::{AnnotatedAccesses, Cells, Why};
use serde_json::{Map, Value};

use crate::encoder::{BatchEncoder, CAUSES, TRANSLATIONS, cause, translation};
use crate::names::{HOMES, KINDS, Keys, Names};
use crate::table::Strings;

/// Writes accesses as lines.
pub struct LineWriter<W> {
    out: W,
    encoder: BatchEncoder,
    /// Indexed by level: its name and its latency, as members.
    levels: Vec<String>,
    /// Indexed by site: its names as members, made when first needed.
    sites: Vec<Option<Box<str>>>,
    /// The same by object.
    objects: Vec<Box<str>>,
    line: Vec<u8>,
}

impl<W: Write> LineWriter<W> {
    /// Members have the names of the encoder's columns.
    pub fn new(out: W, encoder: BatchEncoder) -> LineWriter<W> {
        let levels = encoder.levels.iter().zip(&encoder.latencies);
        let levels = levels
            .map(|(name, cycles)| members([("level", name.as_str().into()), ("cycles", (*cycles).into())]));
        LineWriter {
            out,
            levels: levels.collect(),
            sites: Vec::new(),
            objects: Vec::new(),
            line: Vec::new(),
            encoder,
        }
    }

    /// Writes a batch.
    pub fn write(&mut self, events: &AnnotatedAccesses, cells: &Cells) -> io::Result<()> {
        self.encoder.names.learn(cells);
        let names = &self.encoder.names;
        for &(kind, name) in &names.objects[self.objects.len()..] {
            let kind = HOMES.get(kind as usize).map(|&kind| ("object_kind", kind.into()));
            let name = text(&names.object_texts, name).map(|name| ("object", name));
            self.objects.push(members(kind.into_iter().chain(name)).into());
        }
        for row in 0..events.rows() {
            let cell = events.cell[row] as usize;
            let keys = &self.encoder.names.cells[cell];
            self.line.clear();
            self.line.push(b'{');
            number(&mut self.line, "sequence", events.sequence[row]);
            if let Some(clock) = self.encoder.clock {
                number(&mut self.line, "time_ns", clock.ns(events.stamp[row]));
            }
            number(&mut self.line, "process", keys.process.into());
            number(&mut self.line, "thread", keys.thread.into());
            // Not every reader of JSON has integers of 64 bits.
            write!(self.line, "\"address\":\"{:#x}\",", events.address[row])?;
            number(&mut self.line, "bytes", events.bytes[row].into());
            number(&mut self.line, "site", keys.site.into());
            self.line.extend_from_slice(self.levels[usize::from(events.level[row])].as_bytes());
            if let Some(why) = events.why.get(row) {
                self.why(why);
            }
            self.names(cell, cells.cells[cell].object as usize);
            // The comma behind the last member.
            self.line.pop();
            self.line.extend_from_slice(b"}\n");
            self.out.write_all(&self.line)?;
        }
        Ok(())
    }

    /// Returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn names(&mut self, cell: usize, object: usize) {
        let names = &self.encoder.names;
        let keys = &names.cells[cell];
        let site = keys.site as usize;
        if self.sites.len() <= site {
            self.sites.resize(site + 1, None);
        }
        let of_site = self.sites[site].get_or_insert_with(|| site_members(names, keys).into());
        self.line.extend_from_slice(of_site.as_bytes());
        self.line.extend_from_slice(self.objects[object].as_bytes());
    }

    fn why(&mut self, why: &Why) {
        let Some(wanted) = self.encoder.why else { return };
        for (level, known) in self.encoder.levels.iter().zip(why.causes) {
            if let Some(known) = known {
                let text = CAUSES[cause(known) as usize];
                let name = format!("cause_{level}");
                self.line.extend_from_slice(members([(name.as_str(), text.into())]).as_bytes());
            }
        }
        let translation = TRANSLATIONS[translation(why.translation) as usize];
        let translation = wanted.translation.then(|| ("translation", translation.into()));
        let alias = wanted.alias.then(|| ("alias_4k", why.alias.into()));
        let remote = wanted.remote.then(|| ("remote", why.remote.into()));
        let rest = members(translation.into_iter().chain(alias).chain(remote));
        self.line.extend_from_slice(rest.as_bytes());
    }
}

/// A member with a number, and a comma.
fn number(line: &mut Vec<u8>, name: &str, value: u64) {
    line.push(b'"');
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    line.push(b',');
}

/// Members, each with a comma behind it.
fn members<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let member = |(name, value): (&str, Value)| {
        let object = Value::Object(Map::from_iter([(name.to_string(), value)])).to_string();
        object[1..object.len() - 1].to_string() + ","
    };
    members.into_iter().map(member).collect()
}

fn text(strings: &Strings, key: i32) -> Option<Value> {
    (key >= 0).then(|| strings.get(key).into())
}

fn site_members(names: &Names, keys: &Keys) -> String {
    let site = &keys.of_site;
    let known = [
        ("kind", Some(KINDS[site.kind as usize].into())),
        ("function", text(&names.functions, site.function)),
        ("file", text(&names.files, site.file)),
        ("line", (site.line > 0).then(|| site.line.into())),
        ("inlined_into", text(&names.inlined_into, site.inlined_into)),
        ("variable", text(&names.variables, site.variable)),
        ("type", text(&names.types, site.ty)),
        ("member", text(&names.members, site.member)),
    ];
    members(known.into_iter().filter_map(|(name, value)| Some((name, value?))))
}
