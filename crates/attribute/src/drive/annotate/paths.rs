//! Call paths of rows, and cells whose accesses are on several of them.

use memlode_trace::sites::{FunctionId, LocationId};
use rustc_hash::FxHashMap;

use crate::drive::annotate::{Cells, EventCell};
use crate::objects::paths::{PathId, Paths};

/// The last step of a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// The path without it, as [`Cells::paths`] numbers them.
    pub outer: u32,
    /// The function that was entered.
    pub function: FunctionId,
    /// The call that entered it, as far as that is known.
    pub call: Option<LocationId>,
}

impl Cells {
    /// The functions of a path, the innermost first, and where the next one called each.
    pub fn path(&self, path: u32) -> impl Iterator<Item = (FunctionId, Option<LocationId>)> {
        let step = |path: u32| self.paths.get((path as usize).checked_sub(1)?);
        std::iter::successors(step(path), move |inner| step(inner.outer)).map(|at| (at.function, at.call))
    }
}

/// The cell and the path of each tag of the simulation, where paths are distinguished.
#[derive(Default)]
pub(super) struct TagMeanings {
    /// Indexed by tag: cell and path.
    by_tag: Vec<(u32, u32)>,
    cells: FxHashMap<EventCell, u32>,
    paths: FxHashMap<PathId, u32>,
}

impl TagMeanings {
    /// The cell and the path of a tag.
    #[inline(always)]
    pub fn of(&self, tag: u32) -> (u32, u32) {
        self.by_tag[tag as usize]
    }

    /// Adds the next tag. `news` gets the cells and objects that are new.
    pub fn introduce(&mut self, cell: EventCell, path: PathId, paths: &Paths, news: &mut Cells) {
        let next = self.cells.len() as u32;
        let number = *self.cells.entry(cell).or_insert(next);
        if number == next {
            news.cells.push(cell);
        }
        let path = self.path(path, paths, news);
        self.by_tag.push((number, path));
    }

    /// The number of a path, 0 for the root.
    fn path(&mut self, path: PathId, paths: &Paths, news: &mut Cells) -> u32 {
        let unknown = std::iter::successors(Some(path), |path| Some(paths.last_step(*path)?.0));
        let unknown = unknown.take_while(|path| !self.paths.contains_key(path));
        let unknown: Vec<PathId> = unknown.filter(|path| *path != PathId::ROOT).collect();
        for path in unknown.into_iter().rev() {
            let Some((outer, function, call)) = paths.last_step(path) else { continue };
            news.paths.push(PathStep { outer: self.number(outer), function, call });
            self.paths.insert(path, self.paths.len() as u32 + 1);
        }
        self.number(path)
    }

    fn number(&self, path: PathId) -> u32 {
        self.paths.get(&path).copied().unwrap_or(0)
    }
}
