//! Call paths as nodes of a tree, with recursion folded.
//!
//! A path is a chain of functions, outermost first, each with the line that called it, if known:
//! two calls of one function are two paths. When a function is entered that is already on the path,
//! the path goes back to that function: `main → walk → walk → walk` is `main → walk`, so a
//! recursive program has as many paths as a flat one.

use memlode_trace::sites::{FunctionId, LocationId};
use rustc_hash::FxHashMap;

/// A call path; [`PathId::ROOT`] is the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

impl PathId {
    /// No function.
    pub const ROOT: PathId = PathId(0);
}

#[derive(Clone, Copy)]
struct Node {
    parent: PathId,
    function: FunctionId,
    /// The call by which the function before it entered it.
    call: Option<LocationId>,
}

/// All call paths met so far.
pub struct Paths {
    nodes: Vec<Node>,
    children: FxHashMap<(PathId, FunctionId, Option<LocationId>), PathId>,
}

impl Default for Paths {
    fn default() -> Paths {
        // The root's function is never read.
        let root = Node { parent: PathId::ROOT, function: FunctionId(u32::MAX), call: None };
        Paths { nodes: vec![root], children: FxHashMap::default() }
    }
}

impl Paths {
    /// The path after entering `function` on `path`, by the call that stands there.
    pub fn enter(&mut self, path: PathId, function: FunctionId, call: Option<LocationId>) -> PathId {
        if let Some(&child) = self.children.get(&(path, function, call)) {
            return child;
        }
        let child = self.earlier(path, function).unwrap_or_else(|| {
            self.nodes.push(Node { parent: path, function, call });
            PathId((self.nodes.len() - 1) as u32)
        });
        self.children.insert((path, function, call), child);
        child
    }

    /// The functions of a path, innermost first.
    pub fn functions(&self, path: PathId) -> impl Iterator<Item = FunctionId> {
        self.steps(path).map(|(function, _)| function)
    }

    /// The functions of a path, innermost first, and where the next one called each.
    pub fn steps(&self, path: PathId) -> impl Iterator<Item = (FunctionId, Option<LocationId>)> {
        std::iter::successors(Some(path), |&p| Some(self.nodes[p.0 as usize].parent))
            .take_while(|&p| p != PathId::ROOT)
            .map(|p| (self.nodes[p.0 as usize].function, self.nodes[p.0 as usize].call))
    }

    /// The path without its innermost function, that function and where it was called; `None` for
    /// the root.
    pub fn last_step(&self, path: PathId) -> Option<(PathId, FunctionId, Option<LocationId>)> {
        let Node { parent, function, call } = self.nodes[path.0 as usize];
        (path != PathId::ROOT).then_some((parent, function, call))
    }

    /// The node on `path` that already stands for `function`.
    fn earlier(&self, path: PathId, function: FunctionId) -> Option<PathId> {
        std::iter::successors(Some(path), |&p| Some(self.nodes[p.0 as usize].parent))
            .take_while(|&p| p != PathId::ROOT)
            .find(|&p| self.nodes[p.0 as usize].function == function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_folds_to_where_the_function_stood() {
        let mut paths = Paths::default();
        let mut enter = |path, f| paths.enter(path, FunctionId(f), None);
        let main = enter(PathId::ROOT, 1);
        let walk = enter(main, 2);
        let visit = enter(walk, 3);
        assert_eq!(enter(walk, 2), walk);
        assert_eq!(enter(visit, 2), walk);
        assert_ne!(enter(main, 3), visit);
        assert_eq!(paths.functions(visit).collect::<Vec<_>>(), [FunctionId(3), FunctionId(2), FunctionId(1)]);
    }

    #[test]
    fn calls_at_two_lines_are_two_paths() {
        let mut paths = Paths::default();
        let main = paths.enter(PathId::ROOT, FunctionId(1), None);
        let [first, second] = [4, 5].map(|line| paths.enter(main, FunctionId(2), Some(LocationId(line))));
        assert_ne!(first, second);
        assert_eq!(paths.enter(second, FunctionId(2), Some(LocationId(6))), second, "recursion");
        let steps: Vec<_> = paths.steps(second).collect();
        assert_eq!(steps, [(FunctionId(2), Some(LocationId(5))), (FunctionId(1), None)]);
    }
}
