//! Classes of objects: the units that an engineer would call one data structure.

use memlode_trace::sites::{FunctionId, SiteId, StringId, TypeId};
use rustc_hash::FxHashMap;

use crate::objects::paths::PathId;

/// Index of a class in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

impl ClassId {
    /// Memory of which nothing is known.
    pub const UNKNOWN: ClassId = ClassId(0);
}

/// The home of a class's objects, which makes them one class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Home {
    /// Allocated outside instrumented code, or before the recorder was there.
    Unknown,
    /// Allocated by one call, reached by one call path.
    Heap {
        /// The allocating call.
        site: SiteId,
        /// Functions on the stack, allocating function innermost.
        path: PathId,
        /// Allocated while recording was off: nothing is known of who called the allocating
        /// function.
        dormant: bool,
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
        /// Function whose frame has the variable.
        function: FunctionId,
        /// The variable, where the access names it.
        variable: Option<StringId>,
    },
}

/// One class of objects.
#[derive(Clone, Debug)]
pub struct Class {
    /// The home of its objects.
    pub home: Home,
    /// Element type, if it is known.
    pub element: Option<TypeId>,
    /// True if the type comes from accesses to the objects, because the allocation has none.
    pub element_by_use: bool,
    /// Objects made (1 for a global; 0 for the stack and the unknown, which are not counted).
    pub objects: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Class {
    fn new(home: Home) -> Class {
        Class { home, element: None, element_by_use: false, objects: 0, bytes: 0 }
    }
}

/// The classes of a profile, each home once.
pub struct Classes {
    classes: Vec<Class>,
    index: FxHashMap<Home, ClassId>,
    heap: FxHashMap<(SiteId, PathId, bool), ClassId>,
}

impl Default for Classes {
    fn default() -> Classes {
        let unknown = Class::new(Home::Unknown);
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
        self.classes.push(Class::new(home.clone()));
        self.index.insert(home, class);
        class
    }

    /// The class of blocks that `site` allocates when called on `path`.
    pub fn of_heap(&mut self, site: SiteId, path: PathId, dormant: bool, element: Option<TypeId>) -> ClassId {
        if let Some(&class) = self.heap.get(&(site, path, dormant)) {
            return class;
        }
        let class = self.of(Home::Heap { site, path, dormant });
        self.classes[class.0 as usize].element = element;
        self.heap.insert((site, path, dormant), class);
        class
    }

    /// Returns the home of a class's objects, and their element type if the allocation names one.
    pub(crate) fn home(&self, class: ClassId) -> (&Home, Option<TypeId>) {
        let class = &self.classes[class.0 as usize];
        (&class.home, class.element)
    }

    /// Counts one more object. Returns the number of those before it.
    pub fn count(&mut self, class: ClassId, bytes: u64) -> u64 {
        let class = &mut self.classes[class.0 as usize];
        class.objects += 1;
        // A damaged trace may claim anything.
        class.bytes = class.bytes.saturating_add(bytes);
        class.objects - 1
    }

    /// Adds the classes of another shard of the same trace, and returns their numbers here. Both
    /// have counted all objects, so the other's are not added.
    pub fn take_in(&mut self, other: Classes) -> Vec<ClassId> {
        let mut take = |class: Class| {
            let known = self.of(class.home.clone());
            self.classes[known.0 as usize] = class;
            known
        };
        other.classes.into_iter().map(&mut take).collect()
    }

    /// Sorts the classes by their homes; returns the new number of each.
    pub fn sort(&mut self) -> Vec<ClassId> {
        let mut order: Vec<usize> = (0..self.classes.len()).collect();
        order.sort_by(|&a, &b| self.classes[a].home.cmp(&self.classes[b].home));
        let mut numbers = vec![ClassId::UNKNOWN; order.len()];
        for (new, &old) in order.iter().enumerate() {
            numbers[old] = ClassId(new as u32);
        }
        self.classes = order.iter().map(|&old| self.classes[old].clone()).collect();
        self.index
            .values_mut()
            .chain(self.heap.values_mut())
            .for_each(|class| *class = numbers[class.0 as usize]);
        numbers
    }

    /// All classes, by id.
    ///
    /// `uses` are accesses to objects of a class, and the type that they name. Where many data
    /// structures come from one function that returns bytes (`xmalloc`), the allocation has no
    /// type. But on the call path to each of them, one type is used most: more than half of all
    /// accesses to the objects have it.
    pub fn into_vec(mut self, uses: impl Iterator<Item = (ClassId, Option<TypeId>, u64)>) -> Vec<Class> {
        let mut totals = vec![0u64; self.classes.len()];
        let mut by_type: FxHashMap<(ClassId, TypeId), u64> = FxHashMap::default();
        for (class, ty, accesses) in uses {
            let home = &self.classes[class.0 as usize];
            if home.element.is_none() && matches!(home.home, Home::Heap { .. }) {
                totals[class.0 as usize] += accesses;
                if let Some(ty) = ty {
                    *by_type.entry((class, ty)).or_default() += accesses;
                }
            }
        }
        for ((class, ty), accesses) in by_type {
            if accesses > totals[class.0 as usize] / 2 {
                let class = &mut self.classes[class.0 as usize];
                (class.element, class.element_by_use) = (Some(ty), true);
            }
        }
        self.classes
    }
}
