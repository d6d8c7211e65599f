//! Samples whose callers frame pointers cannot lead to.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use memlode_symbols::ProgramFile;

use crate::resolve::below;
use crate::tally::Sampled;

/// The part of the samples that a file must have to be read for this.
const LEAST_SHARE: f64 = 0.01;

/// Samples in functions that keep no frame pointer, where callers are found by these.
#[derive(Clone, Debug, PartialEq)]
pub struct Frameless {
    /// Their part of all samples, from 0 to 1.
    pub share: f64,
    /// The file with most of them.
    pub file: String,
}

/// Finds the samples in functions that keep no frame pointer, by the unwind tables of their files. `None`
/// if there are none, or if stacks were copied.
pub fn frameless(sampled: &Sampled, root: Option<&Path>) -> Option<Frameless> {
    if sampled.unwound > 0 {
        return None;
    }
    let all = sampled.samples() as f64;
    let mut files: BTreeMap<&OsStr, Vec<(u64, u64)>> = BTreeMap::new();
    for place in &sampled.at {
        files.entry(&place.image).or_default().push((place.offset, place.count));
    }
    let sum = |places: &[(u64, u64)]| places.iter().map(|(_, count)| count).sum::<u64>();
    let mut found: Vec<(u64, &OsStr)> = Vec::new();
    for (file, places) in files.into_iter().filter(|(_, places)| sum(places) as f64 >= LEAST_SHARE * all) {
        let Ok(program) = ProgramFile::read_below(&below(root, file), root) else { continue };
        let is_frameless = |offset: u64| {
            let address = program.address_of(offset)?;
            program.keeps_frame_pointer(address).map(|keeps| !keeps)
        };
        let own = places.iter().filter(|(offset, _)| is_frameless(*offset) == Some(true));
        found.push((own.map(|(_, count)| count).sum(), file));
    }
    let (most, file) = found.iter().max()?;
    let share = found.iter().map(|(count, _)| count).sum::<u64>() as f64 / all;
    (*most > 0).then(|| Frameless { share, file: file.to_string_lossy().into_owned() })
}
