//! Numbers of one replay on their way to another.
//!
//! ```text
//!   state of one replay ──► CellPacker: the cells and objects that it uses, from 0 ──► bytes
//!   bytes ──► Merged: finds each among those of other states, or adds it ──► CellUnpacker: the same, renumbered
//! ```
//! All readers of a trace number its threads, sites, strings and locations alike. Cells, classes of
//! objects and call paths are numbered by each replay as it meets them, so a state that leaves its replay
//! brings with it those that it uses.

use memlode_attribute::annotate::{Cells, EventCell, EventObject, PathStep};
use memlode_attribute::{Home, PathId};
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{FunctionId, LocationId, SiteId, SiteTable, StringId, TypeId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::View;

/// A number in a state that nothing in the trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it speaks of {what} {number}, which the trace has not")]
pub struct BadNumber {
    /// Its kind.
    pub what: &'static str,
    /// The number.
    pub number: u64,
}

impl BadNumber {
    /// Refuses a number that is not below a count.
    pub fn check(what: &'static str, number: u64, count: usize) -> Result<usize, BadNumber> {
        match usize::try_from(number) {
            Ok(index) if index < count => Ok(index),
            _ => Err(BadNumber { what, number }),
        }
    }
}

/// Cells, objects and paths as they travel: by what all readers of a trace number alike.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Carried {
    /// Thread, site and object of each cell.
    cells: Vec<(u32, u32, u32)>,
    objects: Vec<CarriedObject>,
    /// The last step of each path: the number of the path without it, function and call.
    paths: Vec<(u32, u32, Option<u32>)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CarriedObject {
    home: CarriedHome,
    path: Vec<(u32, Option<u32>)>,
    element: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
enum CarriedHome {
    Unknown,
    Heap { site: u32, dormant: bool },
    Global { symbol: String, image: String },
    Stack { function: u32, variable: Option<u32> },
}

impl CarriedObject {
    fn of(object: &EventObject) -> CarriedObject {
        let home = match &object.home {
            Home::Unknown => CarriedHome::Unknown,
            Home::Heap { site, dormant, .. } => CarriedHome::Heap { site: site.0, dormant: *dormant },
            Home::Global { symbol, image } => {
                CarriedHome::Global { symbol: symbol.clone(), image: image.clone() }
            }
            Home::Stack { function, variable } => {
                CarriedHome::Stack { function: function.0, variable: variable.map(|id| id.0) }
            }
        };
        let path = object.path.iter().map(|(function, call)| (function.0, call.map(|id| id.0))).collect();
        CarriedObject { home, path, element: object.element.map(|id| id.0) }
    }

    fn object(self, names: &SiteTable) -> Result<EventObject, BadNumber> {
        let function = |number| known_function(number, names);
        let home = match self.home {
            CarriedHome::Unknown => Home::Unknown,
            CarriedHome::Heap { site, dormant } => {
                Home::Heap { site: known_site(site, names)?, path: PathId::ROOT, dormant }
            }
            CarriedHome::Global { symbol, image } => Home::Global { symbol, image },
            CarriedHome::Stack { function: number, variable } => {
                if let Some(variable) = variable {
                    BadNumber::check("string", variable.into(), names.string_count())?;
                }
                Home::Stack { function: function(number)?, variable: variable.map(StringId) }
            }
        };
        let step = |(number, call): (u32, Option<u32>)| Ok((function(number)?, known_call(call, names)?));
        let path = self.path.into_iter().map(step).collect::<Result<_, BadNumber>>()?;
        if let Some(element) = self.element {
            BadNumber::check("type", element.into(), names.types().len())?;
        }
        Ok(EventObject { home, path, element: self.element.map(TypeId) })
    }
}

fn known_site(number: u32, names: &SiteTable) -> Result<SiteId, BadNumber> {
    BadNumber::check("site", number.into(), names.sites().len())?;
    Ok(SiteId(number))
}

fn known_function(number: u32, names: &SiteTable) -> Result<FunctionId, BadNumber> {
    BadNumber::check("function", number.into(), names.functions().len())?;
    Ok(FunctionId(number))
}

fn known_call(call: Option<u32>, names: &SiteTable) -> Result<Option<LocationId>, BadNumber> {
    if let Some(call) = call {
        BadNumber::check("location", call.into(), names.locations().len())?;
    }
    Ok(call.map(LocationId))
}

/// Gives the cells, objects and paths that a state uses numbers of their own, in the order in which
/// they are looked up.
pub struct CellPacker<'a> {
    cells: &'a Cells,
    cell_numbers: FxHashMap<u32, u32>,
    object_numbers: FxHashMap<u32, u32>,
    path_numbers: FxHashMap<u32, u32>,
    carried: Carried,
}

impl<'a> CellPacker<'a> {
    /// Packs numbers of a replay.
    pub(crate) fn new(cells: &'a Cells) -> CellPacker<'a> {
        CellPacker {
            cells,
            cell_numbers: FxHashMap::default(),
            object_numbers: FxHashMap::default(),
            path_numbers: FxHashMap::default(),
            carried: Carried::default(),
        }
    }

    /// The number on the way of a cell.
    pub fn cell(&mut self, cell: u32) -> u32 {
        if let Some(&number) = self.cell_numbers.get(&cell) {
            return number;
        }
        let EventCell { thread, site, object } = self.cells.cells[cell as usize];
        let object = self.object(object);
        let number = self.carried.cells.len() as u32;
        self.carried.cells.push((thread.0, site.0, object));
        self.cell_numbers.insert(cell, number);
        number
    }

    /// The number on the way of a class of objects.
    pub fn object(&mut self, object: u32) -> u32 {
        let next = self.carried.objects.len() as u32;
        *self.object_numbers.entry(object).or_insert_with(|| {
            self.carried.objects.push(CarriedObject::of(&self.cells.objects[object as usize]));
            next
        })
    }

    /// The number on the way of a call path; 0 stays 0.
    pub fn path(&mut self, path: u32) -> u32 {
        let mut unknown = Vec::new();
        let mut at = path;
        while at > 0 && !self.path_numbers.contains_key(&at) {
            unknown.push(at);
            at = self.cells.paths[at as usize - 1].outer;
        }
        for at in unknown.into_iter().rev() {
            let PathStep { outer, function, call } = self.cells.paths[at as usize - 1];
            let outer = self.path_numbers.get(&outer).copied().unwrap_or(0);
            self.carried.paths.push((outer, function.0, call.map(|id| id.0)));
            self.path_numbers.insert(at, self.carried.paths.len() as u32);
        }
        self.path_numbers.get(&path).copied().unwrap_or(0)
    }

    /// Returns what the state uses.
    pub(crate) fn carried(self) -> Carried {
        self.carried
    }
}

/// The cells, objects and paths of several states, each once.
#[derive(Default)]
pub struct Merged {
    cells: Cells,
    cell_numbers: FxHashMap<EventCell, u32>,
    object_numbers: FxHashMap<EventObject, u32>,
    path_numbers: FxHashMap<PathStep, u32>,
}

impl Merged {
    /// Returns what the numbers of all states mean that were taken in.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Takes in what a state brings.
    pub(crate) fn take<'v>(
        &mut self,
        carried: Carried,
        view: &'v View<'v>,
    ) -> Result<CellUnpacker<'v>, BadNumber> {
        let mut objects = Vec::with_capacity(carried.objects.len());
        for object in carried.objects {
            let object = object.object(view.names)?;
            let next = self.cells.objects.len() as u32;
            let number = *self.object_numbers.entry(object.clone()).or_insert(next);
            if number == next {
                self.cells.objects.push(object);
            }
            objects.push(number);
        }
        let mut cells = Vec::with_capacity(carried.cells.len());
        for (thread, site, object) in carried.cells {
            BadNumber::check("thread", thread.into(), view.threads.len())?;
            let object = objects[BadNumber::check("object", object.into(), objects.len())?];
            let cell = EventCell { thread: ThreadId(thread), site: known_site(site, view.names)?, object };
            let next = self.cells.cells.len() as u32;
            let number = *self.cell_numbers.entry(cell).or_insert(next);
            if number == next {
                self.cells.cells.push(cell);
            }
            cells.push(number);
        }
        let paths = self.take_paths(carried.paths, view.names)?;
        Ok(CellUnpacker { cells, objects, paths, view })
    }

    /// Takes in paths, each behind those that it goes on from. Returns their numbers, that of the root first.
    fn take_paths(
        &mut self,
        carried: Vec<(u32, u32, Option<u32>)>,
        names: &SiteTable,
    ) -> Result<Vec<u32>, BadNumber> {
        let mut paths = vec![0];
        for (outer, function, call) in carried {
            let outer = paths[BadNumber::check("path", outer.into(), paths.len())?];
            let (function, call) = (known_function(function, names)?, known_call(call, names)?);
            let step = PathStep { outer, function, call };
            let next = self.cells.paths.len() as u32 + 1;
            let number = *self.path_numbers.entry(step).or_insert(next);
            if number == next {
                self.cells.paths.push(step);
            }
            paths.push(number);
        }
        Ok(paths)
    }
}

/// Finds what numbers on the way are called among those of several states.
pub struct CellUnpacker<'a> {
    cells: Vec<u32>,
    objects: Vec<u32>,
    /// Paths, the root's first.
    paths: Vec<u32>,
    view: &'a View<'a>,
}

impl CellUnpacker<'_> {
    /// A cell.
    pub fn cell(&self, number: u32) -> Result<u32, BadNumber> {
        Ok(self.cells[BadNumber::check("cell", number.into(), self.cells.len())?])
    }

    /// A class of objects.
    pub fn object(&self, number: u32) -> Result<u32, BadNumber> {
        Ok(self.objects[BadNumber::check("object", number.into(), self.objects.len())?])
    }

    /// A call path.
    pub fn path(&self, number: u32) -> Result<u32, BadNumber> {
        Ok(self.paths[BadNumber::check("path", number.into(), self.paths.len())?])
    }

    /// A thread of the trace.
    pub fn thread(&self, number: u32) -> Result<ThreadId, BadNumber> {
        BadNumber::check("thread", number.into(), self.view.threads.len())?;
        Ok(ThreadId(number))
    }

    /// A site of the trace.
    pub fn site(&self, number: u32) -> Result<SiteId, BadNumber> {
        known_site(number, self.view.names)
    }

    /// Counts by the level that served: as many as the machine has, memory among them.
    pub fn by_level(&self, counts: Vec<u64>) -> Result<Vec<u64>, BadNumber> {
        match counts.len() == self.view.levels.len() {
            true => Ok(counts),
            false => Err(BadNumber { what: "level", number: counts.len() as u64 }),
        }
    }
}
