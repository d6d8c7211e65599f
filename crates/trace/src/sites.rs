//! The names behind the events: one flat table over all modules of a trace.
//!
//! Several translation units may describe the same thing, such as an inline function of a header;
//! it has one entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::calls::Call;
use crate::compiled::CompiledSources;
use crate::format::{evidence, flag, kind, table_flag};
use crate::layouts::Layouts;
use crate::work::Work;
use crate::{LeftOut, Unrecorded};

/// Index of a site over the whole trace, dense from 0.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// Index of a function over the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// Index of a source location over the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// Index of a type over the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// Index of an interned string: equal strings have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(pub u32);

/// The kind of access that a site makes (`kind.*` of the format).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one atomic step.
    Update,
    /// Allocates.
    Alloc,
    /// Frees.
    Free,
}

impl SiteKind {
    /// From `kind.*` of the format.
    pub fn from_format(value: u8) -> Option<SiteKind> {
        Some(match value {
            kind::LOAD => SiteKind::Load,
            kind::STORE => SiteKind::Store,
            kind::UPDATE => SiteKind::Update,
            kind::ALLOC => SiteKind::Alloc,
            kind::FREE => SiteKind::Free,
            _ => return None,
        })
    }
}

/// The evidence for the names of a site (`evidence.*` of the format), best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameEvidence {
    /// Remembered from the module before optimisation.
    Source,
    /// Debug records of the optimised module.
    Debug,
    /// Alias tag alone.
    Tbaa,
    /// A type, a variable or a line only.
    Partial,
    /// Nothing.
    None,
}

impl NameEvidence {
    /// From `evidence.*` of the format.
    pub fn from_format(value: u8) -> Option<NameEvidence> {
        Some(match value {
            evidence::NONE => NameEvidence::None,
            evidence::SOURCE => NameEvidence::Source,
            evidence::DEBUG => NameEvidence::Debug,
            evidence::TBAA => NameEvidence::Tbaa,
            evidence::PARTIAL => NameEvidence::Partial,
            _ => return None,
        })
    }
}

/// The source of an address, as the compiler saw it (`flag.*` of the format).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// Arithmetic that does more than count, and no load: a hash, a random number.
    Computed,
    /// A loaded index or pointer. Loads of this kind do not wait for each other.
    Loaded,
    /// A pointer or index that was loaded from where the one before led to: each load waits for the
    /// one before.
    Chased,
}

impl Dependence {
    /// In a word, stable.
    pub fn word(self) -> &'static str {
        match self {
            Dependence::Computed => "computed",
            Dependence::Loaded => "loaded",
            Dependence::Chased => "chased",
        }
    }
}

/// One access in the source program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Load, store, …
    pub kind: SiteKind,
    /// The evidence for its names.
    pub evidence: NameEvidence,
    /// `flag.*` of the format.
    pub flags: u32,
    /// Bytes of one access; 0 for ranges and allocations, whose events have their own length.
    pub bytes: u32,
    /// The function whose machine code holds the site (the outermost of an inlined chain).
    pub function: FunctionId,
    /// Innermost source location.
    pub location: Option<LocationId>,
    /// Variable through which the memory is reached.
    pub variable: Option<StringId>,
    /// Type holding the member, or of the object.
    pub ty: Option<TypeId>,
    /// Member path without the leading variable, e.g. `grid[].z`.
    pub member: Option<StringId>,
}

impl Site {
    /// Returns whether it only requests a line, for which no instruction waits.
    pub fn is_prefetch(&self) -> bool {
        self.flags & flag::PREFETCH != 0
    }

    /// Returns whether it stores past the caches: the lines go to memory, and are in no cache
    /// because of it.
    pub fn is_past_caches(&self) -> bool {
        self.kind == SiteKind::Store && self.flags & flag::NON_TEMPORAL != 0
    }

    /// Returns the origin of its address. `None` if the address goes by steps, comes from another
    /// function, or the program was compiled before origins were recorded.
    pub fn dependence(&self) -> Option<Dependence> {
        let is = |flag: u32| self.flags & flag != 0;
        match () {
            () if is(flag::CHASED) => Some(Dependence::Chased),
            () if is(flag::LOADED_ADDRESS) => Some(Dependence::Loaded),
            () if is(flag::COMPUTED_ADDRESS) => Some(Dependence::Computed),
            () => None,
        }
    }
}

impl SiteKind {
    /// Returns whether it writes.
    pub fn is_write(self) -> bool {
        matches!(self, SiteKind::Store | SiteKind::Update)
    }
}

/// A source position; `inlined_at` leads to the enclosing function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Function whose text holds the line.
    pub function: FunctionId,
    /// Line, 0 when unknown.
    pub line: u32,
    /// Column, 0 when unknown.
    pub column: u32,
    /// The call where that function was inlined.
    pub inlined_at: Option<LocationId>,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name as in the source.
    pub name: StringId,
    /// Mangled name.
    pub linkage_name: StringId,
    /// Directory and file name.
    pub file: Option<(StringId, StringId)>,
    /// Line of the definition.
    pub line: u32,
}

/// A type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Name without typedefs.
    pub name: StringId,
    /// Size in bytes.
    pub bytes: u64,
}

/// All facts that a trace's modules have about their sites. Ids are dense: each `0..count`.
#[derive(Clone, Default)]
pub struct SiteTable {
    pub(crate) strings: Vec<Arc<str>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) locations: Vec<Location>,
    pub(crate) types: Vec<Type>,
    pub(crate) sites: Vec<Site>,
    pub(crate) layouts: Layouts,
    /// Indexed by site, as far as anything is known.
    pub(crate) work: Vec<Work>,
    /// `table_flag.*` of the format, of any table.
    pub(crate) table_flags: u16,
    /// Some code records the values that it loads and stores.
    pub(crate) has_values: bool,
    pub(crate) left_out: BTreeMap<LeftOut, u64>,
    pub(crate) unmatched: Vec<Arc<str>>,
    /// The calls behind segments, each list once.
    pub(crate) calls: Vec<Vec<Call>>,
    /// The places beside segments that are not recorded, each list once.
    pub(crate) unrecorded: Vec<Vec<Unrecorded>>,
    /// Linkage names of functions that memlode compiled.
    pub(crate) compiled: FxHashSet<StringId>,
    pub(crate) sources: CompiledSources,
    /// Functions that return memory of no type, with the types that they access.
    pub(crate) untyped: FxHashMap<FunctionId, FxHashSet<StringId>>,
}

impl SiteTable {
    /// The text of a string.
    pub fn string(&self, id: StringId) -> &str {
        &self.strings[id.0 as usize]
    }

    /// A site.
    pub fn site(&self, id: SiteId) -> &Site {
        &self.sites[id.0 as usize]
    }

    /// A function.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Returns a function's mangled name where it has one, else its name.
    pub fn symbol(&self, id: FunctionId) -> StringId {
        let function = self.function(id);
        match self.string(function.linkage_name).is_empty() {
            true => function.name,
            false => function.linkage_name,
        }
    }

    /// A location.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }

    /// A type.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// All sites, in the order of their ids.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// All functions, in the order of their ids.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// All types, in the order of their ids.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// All locations, in the order of their ids.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Returns the work before an access, and the loads that it waits for. `None` if its program
    /// was compiled by a memlode that did not record them, or it is no access.
    pub fn work(&self, id: SiteId) -> Option<&Work> {
        self.work.get(id.0 as usize).filter(|work| work.before > 0.0)
    }

    /// Returns the layouts of the types.
    pub fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Returns whether part of the code was compiled with a filter that left events out.
    pub fn is_filtered(&self) -> bool {
        self.table_flags & table_flag::FILTERED != 0
    }

    /// Returns how many places of the code touch memory and are not recorded, by reason, in the
    /// images that were loaded.
    pub fn left_out(&self) -> &BTreeMap<LeftOut, u64> {
        &self.left_out
    }

    /// Rules of filters and names of allocators that were given when compiling, and matched nothing
    /// in any unit.
    pub fn unmatched(&self) -> &[Arc<str>] {
        &self.unmatched
    }

    /// Returns whether part of the code was compiled without `-g`, or with `-g1`: its variables,
    /// types and members have no names.
    pub fn is_nameless(&self) -> bool {
        self.table_flags & table_flag::NAMELESS != 0
    }

    /// Returns whether part of the code was recorded before it was optimised.
    pub fn is_as_written(&self) -> bool {
        self.table_flags & table_flag::AS_WRITTEN != 0
    }

    /// Returns whether part of the code was compiled to record the values that it loads and stores.
    pub fn has_values(&self) -> bool {
        self.has_values
    }

    /// Number of strings.
    pub fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// A location and the calls it was inlined through, innermost first.
    pub fn inline_chain(&self, id: LocationId) -> impl Iterator<Item = &Location> {
        std::iter::successors(Some(self.location(id)), |location| {
            location.inlined_at.map(|id| self.location(id))
        })
    }

    /// Returns whether a function only passes on a block that an allocating call returns: it returns
    /// memory of no type (`void *`), and does not itself access what the call makes.
    pub fn passes_on(&self, function: FunctionId, allocation: &Site) -> bool {
        let made = allocation.ty.map(|ty| self.ty(ty).name);
        let is_used = |accessed: &FxHashSet<_>| made.is_some_and(|ty| accessed.contains(&ty));
        self.untyped.get(&function).is_some_and(|accessed| !is_used(accessed))
    }

    /// Returns the checksums of the compiled files.
    pub fn sources(&self) -> &CompiledSources {
        &self.sources
    }

    /// Returns the path of a file, given its directory and name.
    pub fn path(&self, (directory, name): (StringId, StringId)) -> String {
        let (directory, name) = (self.string(directory), self.string(name));
        if name.starts_with('/') || directory.is_empty() {
            name.to_string()
        } else {
            format!("{}/{name}", directory.trim_end_matches('/'))
        }
    }

    /// Name of the file that holds a location's line, without its directory.
    pub fn file_name(&self, location: &Location) -> Option<&str> {
        self.function(location.function).file.map(|(_, name)| self.string(name))
    }
}
