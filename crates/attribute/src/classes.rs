//! Classes of objects: what an engineer would call one data structure.

use memlode_trace::sites::{FunctionId, SiteId, StringId, TypeId};
use rustc_hash::FxHashMap;

use crate::paths::PathId;

/// Index of a class in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

impl ClassId {
    /// Memory of which nothing is known.
    pub const UNKNOWN: ClassId = ClassId(0);
}

/// Where the objects of a class live, and what makes them one class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// Allocated outside instrumented code, or before recording.
    Unknown,
    /// Allocated by one call, reached by one call path.
    Heap {
        /// The allocating call.
        site: SiteId,
        /// Functions on the stack, allocating function innermost.
        path: PathId,
    },
    /// A global or static variable.
    Global {
        /// Symbol, as in the image.
        symbol: String,
        /// File name of the image.
        image: String,
    },
    /// A variable on the stack.
    Stack {
        /// Function whose frame holds it.
        function: FunctionId,
        /// The variable, where the access names it.
        variable: Option<StringId>,
    },
}

/// One class of objects.
#[derive(Clone, Debug)]
pub struct Class {
    /// Where its objects live.
    pub home: Home,
    /// Element type as the allocation tells it.
    pub element: Option<TypeId>,
    /// Objects made (1 for a global; 0 for the stack and the unknown, which are not counted).
    pub objects: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// The classes of a profile, each home once.
pub struct Classes {
    classes: Vec<Class>,
    index: FxHashMap<Home, ClassId>,
    heap: FxHashMap<(SiteId, PathId), ClassId>,
}

impl Default for Classes {
    fn default() -> Classes {
        let unknown = Class { home: Home::Unknown, element: None, objects: 0, bytes: 0 };
        Classes {
            classes: vec![unknown],
            index: FxHashMap::from_iter([(Home::Unknown, ClassId::UNKNOWN)]),
            heap: FxHashMap::default(),
        }
    }
}

impl Classes {
    /// The class of a home.
    pub fn of(&mut self, home: Home) -> ClassId {
        if let Some(&class) = self.index.get(&home) {
            return class;
        }
        let class = ClassId(self.classes.len() as u32);
        self.classes.push(Class { home: home.clone(), element: None, objects: 0, bytes: 0 });
        self.index.insert(home, class);
        class
    }

    /// The class of blocks that `site` allocates when called on `path`.
    pub fn of_heap(&mut self, site: SiteId, path: PathId, element: Option<TypeId>) -> ClassId {
        if let Some(&class) = self.heap.get(&(site, path)) {
            return class;
        }
        let class = self.of(Home::Heap { site, path });
        self.classes[class.0 as usize].element = element;
        self.heap.insert((site, path), class);
        class
    }

    /// Counts one more object.
    pub fn count(&mut self, class: ClassId, bytes: u64) {
        let class = &mut self.classes[class.0 as usize];
        class.objects += 1;
        // A damaged trace may claim anything.
        class.bytes = class.bytes.saturating_add(bytes);
    }

    /// All classes, by id.
    pub fn into_vec(self) -> Vec<Class> {
        self.classes
    }
}
