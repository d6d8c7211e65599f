//! From a place in a file to a source line and function, by debug information.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSegment};

use super::{Skid, SourceLine};
use crate::Error;

/// The place of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The line, of the innermost inlined function.
    pub line: SourceLine,
    /// That function, as linkers know it; empty if it has no name.
    pub function: String,
}

/// Files that samples lie in, each read once.
#[derive(Default)]
pub struct Images {
    /// `None` for a file that cannot be read, or is none of ours to understand.
    by_path: BTreeMap<OsString, Option<Image>>,
}

struct Image {
    loader: Loader,
    /// Offset in the file, bytes, and address as the file has it.
    segments: Vec<(u64, u64, u64)>,
    places: BTreeMap<u64, Option<Place>>,
}

impl Images {
    /// The place of the instruction that waited while a sample named the one at `offset` of a file.
    ///
    /// # Errors
    /// If debug information is damaged.
    pub fn place(&mut self, path: &OsStr, offset: u64, skid: Skid) -> Result<Option<Place>, Error> {
        if !self.by_path.contains_key(path) {
            self.by_path.insert(path.to_owned(), Image::open(path));
        }
        let Some(Some(image)) = self.by_path.get_mut(path) else { return Ok(None) };
        let damaged = |why: Box<dyn std::error::Error>| {
            Error::Usage(format!("{}: its debug information is damaged: {why}", Path::new(path).display()))
        };
        image.place(skid.correct(offset)).map_err(damaged)
    }

    /// All lines that the files have code for.
    pub fn lines(&self) -> BTreeSet<SourceLine> {
        let mut lines = BTreeSet::new();
        for image in self.by_path.values().flatten() {
            let Ok(ranges) = image.loader.find_location_range(0, u64::MAX) else { continue };
            lines.extend(ranges.filter_map(|(_, _, location)| line(&location)));
        }
        lines
    }
}

impl Image {
    fn open(path: &OsStr) -> Option<Image> {
        let bytes = memlode_files::read(Path::new(path), crate::IMAGE).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, bytes, segment.address())
        });
        let segments = segments.collect();
        Some(Image { loader: Loader::new(path).ok()?, segments, places: BTreeMap::new() })
    }

    fn place(&mut self, offset: u64) -> Result<Option<Place>, Box<dyn std::error::Error>> {
        if let Some(place) = self.places.get(&offset) {
            return Ok(place.clone());
        }
        let within = |(start, bytes, _): &&(u64, u64, u64)| offset >= *start && offset - start < *bytes;
        let place = match self.segments.iter().find(within) {
            None => None,
            Some((start, _, address)) => self.find(address + (offset - start))?,
        };
        self.places.insert(offset, place.clone());
        Ok(place)
    }

    fn find(&self, address: u64) -> Result<Option<Place>, Box<dyn std::error::Error>> {
        let Some(frame) = self.loader.find_frames(address)?.next()? else { return Ok(None) };
        let function = frame.function.as_ref().and_then(|name| Some(name.raw_name().ok()?.into_owned()));
        let line = frame.location.as_ref().and_then(line);
        Ok(line.map(|line| Place { line, function: function.unwrap_or_default() }))
    }
}

/// SourceLine 0 is code that belongs to no line.
fn line(location: &addr2line::Location<'_>) -> Option<SourceLine> {
    let (file, line) = (location.file?, location.line.filter(|line| *line > 0)?);
    Some(SourceLine { file: file.to_owned(), line })
}
