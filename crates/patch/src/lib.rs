//! An edited structure as a patch of the program's sources.
//!
//! ```
//! // The words of a command line of a compiler, and the sources among them.
//! let words = memlode_patch::split(r"cc -O2 -c two\ words.c -o a.o");
//! assert_eq!(memlode_patch::inputs(&words), ["two words.c"]);
//! ```
//!
//! ```text
//!   units ──► clang reads each ──► the definition, and all that names it
//!                                        │
//!   layout ──► what forbids it? ─────────┼──► places to edit by hand
//!                                        └──► new text ──► clang reads it ──► same members, same uses,
//!                                                                             offsets of the layout ──► diff
//! ```
//! A patch compiles and keeps the meaning of the source, or there is none. Code that depends on the
//! order of members, or may, as far as clang's tree shows, is listed with its place.

// Constants have the names that libclang gives them.
#![allow(non_upper_case_globals)]

mod by_hand;
pub mod clang;
pub mod command;
mod forbidden;
mod initialisers;
mod meaning;
mod record;
mod rewrite;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use memlode_layout::Layout;

use by_hand::{Reason, of_error};
use clang::{Clang, Tree};
use command::{Unit, is_source};
use forbidden::Change;
use record::{Record, records};

pub use by_hand::PlaceToEdit;
pub use command::{inputs, options, split};

/// Reads a source by its real path, if it is the compiled one; else returns the end of a sentence
/// that begins with its name.
pub type ReadSource = Box<dyn Fn(&Path) -> Result<Vec<u8>, String>>;

/// Why there is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpatched {
    /// A sentence says all.
    #[error("{0}")]
    Sentence(String),
    /// Places have to be edited by hand.
    #[error(
        "`{structure}` has to be edited by hand, for its layout decides what these places mean: {}",
        shown(places)
    )]
    ByHand {
        /// The structure.
        structure: String,
        /// Places, each with its reason and its task.
        places: Vec<PlaceToEdit>,
    },
}

/// Places in an error, at most; a file has room for all.
const MOST_SHOWN: usize = 8;

fn shown(places: &[PlaceToEdit]) -> String {
    let first: Vec<String> = places.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
    let first = first.join("; ");
    match places.len().saturating_sub(MOST_SHOWN) {
        0 => first,
        more => format!("{first}; and {more} more"),
    }
}

/// Edited sources of a program.
pub struct Patch {
    clang: Clang,
    /// The compiler, and where its own headers are.
    compiler: [String; 2],
    units: Vec<Unit>,
    folder: PathBuf,
    source: ReadSource,
    /// Names of files as units spell them, and their new texts.
    overlays: HashMap<PathBuf, String>,
    /// Edited files: the texts before.
    before: BTreeMap<PathBuf, String>,
}

impl Patch {
    /// Begins a patch that is applied in a folder. `compiler` is clang, `resources` the folder of
    /// its headers, and `source` reads the files to be edited.
    ///
    /// # Errors
    /// There is no libclang.
    pub fn new(
        units: Vec<Unit>,
        compiler: &Path,
        resources: &str,
        folder: &Path,
        source: ReadSource,
    ) -> Result<Patch, Unpatched> {
        let compiler = [compiler.display().to_string(), format!("-resource-dir={resources}")];
        let folder = folder.to_owned();
        let (overlays, before) = (HashMap::new(), BTreeMap::new());
        Ok(Patch { clang: Clang::load()?, compiler, units, folder, source, overlays, before })
    }

    /// Returns the patch of all that was added.
    ///
    /// # Errors
    /// A file is not below the folder.
    pub fn diff(&self) -> Result<String, Unpatched> {
        let one = |(file, before): (&PathBuf, &String)| {
            text::unified_diff(file, &self.folder, before, self.overlays.get(file).unwrap_or(before))
        };
        self.before.iter().map(one).collect()
    }

    /// Returns the edited files, absolute, with their new texts.
    pub fn edited(&self) -> Vec<(PathBuf, String)> {
        let text = |file: &PathBuf| self.overlays.get(file).cloned().unwrap_or_default();
        self.before.keys().map(|file| (file.clone(), text(file))).collect()
    }

    /// Edits the definition of a structure.
    ///
    /// # Errors
    /// It cannot be edited alone; nothing is changed then.
    pub fn add(&mut self, layout: &Layout) -> Result<(), Unpatched> {
        let name = &layout.structure().name;
        let sentence = |why: &str| Err(Unpatched::Sentence(format!("`{name}` is not rewritten: {why}")));
        let mut concerned: Vec<(usize, Tree, Record)> = Vec::new();
        let mut definitions = BTreeSet::new();
        for (number, unit) in self.units.iter().enumerate() {
            let tree = self.read(unit, &self.overlays)?;
            if let Some(error) = tree.errors.first() {
                return sentence(&format!("clang does not understand its unit: {}", error.escape_debug()));
            }
            for found in records(&tree, name) {
                definitions
                    .insert((real(&tree.files[found.spot.file]), tree.place(found.node, &self.folder)));
                if concerned.last().is_none_or(|(last, _, _)| *last != number) {
                    concerned.push((number, tree, found));
                    break;
                }
            }
        }
        // A unit may have several; the loop above keeps the first.
        for (_, tree, _) in &concerned {
            for found in records(tree, name) {
                definitions
                    .insert((real(&tree.files[found.spot.file]), tree.place(found.node, &self.folder)));
            }
        }
        let Some((file, _)) = definitions.first().cloned() else {
            return sentence("no source of the program in C or C++ has its definition");
        };
        if definitions.len() > 1 {
            let places: Vec<String> = definitions.into_iter().map(|(_, place)| place).collect();
            return sentence(&format!("there are several of this name: {}", places.join(", ")));
        }
        let before = self.text(&file)?;
        let (_, tree, record) = &concerned[0];
        let new_order =
            rewrite::order(tree, record, layout).or_else(|why| sentence(why).map(|()| Vec::new()))?;
        let change = Change::of(tree, record, layout, &new_order);
        let mut places = BTreeSet::new();
        for (_, tree, record) in &concerned {
            let mut texts = HashMap::new();
            for (at, path) in tree.files.iter().enumerate() {
                if tree.nodes.iter().any(|node| node.spot.is_some_and(|spot| spot.file == at)) {
                    texts.insert(at, self.text(path).unwrap_or_default());
                }
            }
            for (node, Reason { why, task }) in forbidden::places(tree, record, &change, layout, &texts) {
                places.insert(PlaceToEdit { place: tree.place(node, &self.folder), why, task });
            }
        }
        if !places.is_empty() || change.is_by_hand {
            if change.is_by_hand {
                places.insert(PlaceToEdit {
                    place: tree.place(record.node, &self.folder),
                    why: "the definition".to_string(),
                    task: "write it as the layout has it".to_string(),
                });
            }
            return Err(Unpatched::ByHand { structure: name.clone(), places: places.into_iter().collect() });
        }
        let after = match rewrite::rewritten(tree, record, &before, layout) {
            Ok(after) => after,
            Err(why) => return sentence(&format!("{}: {why}", tree.place(record.node, &self.folder))),
        };
        let mut overlays = self.overlays.clone();
        for (_, tree, record) in &concerned {
            overlays.insert(tree.files[record.spot.file].clone(), after.clone());
        }
        overlays.insert(file.clone(), after);
        for (number, tree, record) in &concerned {
            let now = self.read(&self.units[*number], &overlays)?;
            if let Err(why) = meaning::is_kept(tree, record, &now, layout) {
                return sentence(&format!("{}: {why}", tree.place(record.node, &self.folder)));
            }
            if change.moves
                && let Some((probe, path)) =
                    meaning::probe(tree, record, &before, self.units[*number].is_cxx())
            {
                let mut overlays = self.overlays.clone();
                overlays.insert(path, probe.clone());
                overlays.insert(file.clone(), probe);
                let probed = self.read(&self.units[*number], &overlays)?;
                let depends = probed.errors.iter().filter(|error| !error.contains("static assertion failed"));
                let depends: Vec<PlaceToEdit> = depends.map(|error| of_error(error)).collect();
                if !depends.is_empty() {
                    return Err(Unpatched::ByHand { structure: name.clone(), places: depends });
                }
            }
        }
        self.before.entry(file).or_insert(before);
        self.overlays = overlays;
        Ok(())
    }

    fn read(&self, unit: &Unit, overlays: &HashMap<PathBuf, String>) -> Result<Tree, Unpatched> {
        let mut words = self.compiler.to_vec();
        words.extend(unit.options.iter().cloned());
        words.extend([
            "-Wreorder".into(),
            "-Wno-error".into(),
            "-Wuninitialized".into(),
            "-fsyntax-only".into(),
        ]);
        words.push(unit.file.display().to_string());
        self.clang.read(&words, overlays)
    }

    /// The text of a source, original or edited.
    fn text(&self, file: &Path) -> Result<String, Unpatched> {
        if let Some(text) = self.overlays.get(file) {
            return Ok(text.clone());
        }
        let not =
            |why: &str| Unpatched::Sentence(format!("{} {why}", file.display().to_string().escape_debug()));
        let text = (self.source)(&real(file)).map_err(|why| not(&format!("is not edited: {why}")))?;
        let text = String::from_utf8(text).map_err(|_| not("is not written in UTF-8"))?;
        match text.replace("\r\n", "").contains('\r') {
            true => Err(not("has carriage returns inside of lines")),
            false => Ok(text),
        }
    }
}

/// The real path of a file.
fn real(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// Returns whether a name is that of a source in C or C++.
pub fn is_c_or_cxx(file: &Path) -> bool {
    is_source(file)
}
