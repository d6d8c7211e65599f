//! Edits, understood for one trace: which types and objects they are about.

use memlode_attribute::{Class, Home, Profile};
use memlode_layout::{Edit, Layout, PagePlacement, Refusal, Scope};
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::{FunctionId, SiteId, SiteKind, SiteTable};
use rustc_hash::FxHashMap;

use crate::embedded::{around, holds_any};
use crate::named::{homes_named, records_named, unknown_object, unknown_type};
use crate::structures::{elements, structure};

/// Why a trace cannot be replayed under an edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing of that name is in the trace.
    #[error("`{edit}`: the trace has no {what} `{name}`{}", among(.known))]
    Unknown {
        /// The edit in its short form.
        edit: String,
        /// `type` or `object`.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// Names that there are.
        known: Vec<String>,
    },
    /// The layout cannot be made.
    #[error("`{edit}`: {refusal}")]
    Refused {
        /// The edit in its short form.
        edit: String,
        /// Why.
        refusal: Refusal,
    },
    /// No object of the type can be moved.
    #[error("`{edit}`: {why}")]
    Impossible {
        /// The edit in its short form.
        edit: String,
        /// Why.
        why: String,
    },
}

fn among(known: &[String]) -> String {
    match known {
        [] => String::new(),
        [one] => format!("; there is {one}"),
        known => format!("; there are {}", known.join(", ")),
    }
}

/// A change of one object as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectEdit {
    /// The number of bytes by which its beginning is shifted.
    pub shift: u64,
    /// Its size becomes a multiple of this, if it is not 0.
    pub pad: u64,
    /// It begins at a multiple of this, if it is not 0.
    pub align: u64,
    /// Each thread has a copy of its own.
    pub per_thread: bool,
    /// Copies of threads, and parts of elements that are dealt, begin at multiples of this
    /// many bytes: at pairs of the machine's lines, as prefetchers fetch pairs.
    pub apart: u64,
    /// The size of its pages, if it is not 0.
    pub pages: u64,
    /// Its pages are on nodes by this policy, and not where they are touched first.
    pub on: Option<PagePlacement>,
    /// It has gaps between its elements.
    pub elements: Option<SpreadElements>,
    /// It is an array whose elements lie in records with those of others: the group, and its number
    /// there.
    pub group: Option<(usize, usize)>,
}

/// The elements of an array with gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpreadElements {
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The way in which they lie.
    pub how: ElementPlaces,
}

/// The way in which elements are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementPlaces {
    /// Each takes this many bytes.
    Padded(u64),
    /// They are dealt to this many parts in turn, and each part has cache lines of its own.
    Dealt(u32),
}

/// Objects of one type by class, and their edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedObjects {
    /// The record that the elements are, and its size.
    pub record: Option<(LayoutId, u64)>,
    /// The changed layout: an index into [`Plan::layouts`].
    pub layout: Option<usize>,
    /// The changes of the object as a whole.
    pub whole: Option<ObjectEdit>,
    /// It lies among others of its type: an index into [`Plan::packs`].
    pub pack: Option<usize>,
}

/// Edits, understood for one trace.
#[derive(Debug, Default)]
pub struct Plan {
    /// The layouts of edited types, and behind them those of types that hold some of these.
    layouts: Vec<Layout>,
    by_record: FxHashMap<LayoutId, usize>,
    /// Types that hold edited ones.
    around: FxHashMap<LayoutId, usize>,
    subjects: FxHashMap<Home, EditedObjects>,
    groups: Vec<Group>,
    packs: Vec<Pack>,
    /// The doubts that concern no object that is moved.
    doubts: Vec<PlanDoubt>,
    /// Bytes of the lines that large blocks begin at, where all memory is placed by our own rules.
    fixed_lines: Option<u64>,
}

/// Objects of a type that lie one behind the other, in the order in which some accesses first use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pack {
    /// The type.
    pub structure: String,
    /// Its size.
    pub bytes: u64,
    /// Its alignment.
    pub align: u64,
    /// The accesses: those of the function that misses most on them.
    pub sites: Vec<SiteId>,
}

/// Arrays that become one array of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The names as given.
    pub names: Vec<String>,
    /// Bytes of an element of each.
    pub element_bytes: Vec<u64>,
}

/// A thing that a prediction leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanDoubt {
    /// Objects of other types hold the edited one by value in a way that is not followed, and were
    /// left as they are.
    HeldByValue {
        /// The edited type.
        inner: String,
        /// The types that hold it.
        outer: Vec<String>,
    },
}

/// The facts about a trace that a plan needs.
pub struct PlanInputs<'a> {
    /// Its names.
    pub names: &'a SiteTable,
    /// The counts of the unedited trace: its classes know the contents of blocks.
    pub profile: &'a Profile,
    /// A symbol as people write it.
    pub written: &'a dyn Fn(&str) -> String,
    /// The machine's memory nodes, if the replay has any.
    pub nodes: Option<u32>,
    /// Bytes of the machine's lines.
    pub line_bytes: u64,
}

impl Plan {
    /// Understands edits. None at all move nothing, but every block is placed anew.
    ///
    /// # Errors
    /// The first edit that is about nothing in the trace, or that cannot be made.
    pub fn new(known: &PlanInputs<'_>, edits: &[Edit]) -> Result<Plan, PlanError> {
        let mut plan = Plan::default();
        for class in &known.profile.classes {
            let record = record_of(known.names, class);
            plan.subjects.insert(class.home.clone(), EditedObjects { record, ..EditedObjects::default() });
        }
        for edit in edits {
            plan.add(known, edit)?;
        }
        plan.go_around(known);
        for subject in plan.subjects.values_mut() {
            subject.whole.iter_mut().for_each(|whole| whole.apart = 2 * known.line_bytes);
            let layout = |(record, _)| plan.by_record.get(&record).or_else(|| plan.around.get(&record));
            subject.layout = subject.record.and_then(layout).copied();
        }
        let is_twice = |subject: &&EditedObjects| {
            subject.pack.is_some() && (subject.layout.is_some() || subject.whole.is_some())
        };
        if let Some(pack) = plan.subjects.values().find(is_twice).and_then(|subject| subject.pack) {
            let structure = plan.packs[pack].structure.clone();
            return Err(PlanError::Impossible {
                edit: Edit::Pack { structure }.to_string(),
                why: "another edit is about the same objects; try one after the other".to_string(),
            });
        }
        plan.doubt(known);
        Ok(plan)
    }

    /// Places all memory by our own rules: global variables, stacks and memory of no object, too.
    /// Then no figure depends on where the kernel or the program's allocator put anything.
    /// Large blocks begin at lines of `line_bytes` bytes.
    #[must_use]
    pub fn in_fixed_places(self, line_bytes: u64) -> Plan {
        Plan { fixed_lines: Some(line_bytes), ..self }
    }

    /// Returns the bytes of the lines that large blocks begin at, if all memory is in fixed places.
    pub fn fixed_lines(&self) -> Option<u64> {
        self.fixed_lines
    }

    /// The changed layouts of edited types.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts[..self.layouts.len() - self.around.len()]
    }

    /// These, and those of types that hold edited ones.
    pub fn all_layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// Returns the changes of the objects of a home.
    pub fn subject(&self, home: &Home) -> Option<&EditedObjects> {
        self.subjects.get(home)
    }

    /// Records that are edited.
    pub fn records(&self) -> impl Iterator<Item = LayoutId> {
        self.by_record.keys().copied()
    }

    /// Groups of arrays.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Types whose objects are packed.
    pub fn packs(&self) -> &[Pack] {
        &self.packs
    }

    /// The homes of objects that lie in pages of another size, and that size in bytes.
    pub fn pages(&self) -> FxHashMap<Home, u64> {
        let of = |(home, subject): (&Home, &EditedObjects)| {
            let bytes = subject.whole?.pages;
            (bytes > 0).then(|| (home.clone(), bytes))
        };
        self.subjects.iter().filter_map(of).collect()
    }

    /// Returns the things that the prediction leaves out.
    pub fn doubts(&self) -> &[PlanDoubt] {
        &self.doubts
    }

    fn add(&mut self, known: &PlanInputs<'_>, edit: &Edit) -> Result<(), PlanError> {
        let impossible = |why: &str| PlanError::Impossible { edit: edit.to_string(), why: why.to_string() };
        match edit {
            Edit::Reorder { structure, .. }
            | Edit::Split { structure, .. }
            | Edit::Soa { structure, .. }
            | Edit::Aosoa { structure, .. }
            | Edit::AlignMembers { structure, .. }
            | Edit::Index { structure, .. }
            | Edit::Narrow { structure, .. }
            | Edit::Remove { structure, .. } => {
                let records = records_named(known.names, structure);
                if records.is_empty() {
                    return Err(unknown_type(known.names, edit, structure));
                }
                self.change(known, edit, &records)
            }
            Edit::Pad { subject, of, .. } | Edit::Align { subject, of, .. } => {
                let records = records_named(known.names, subject);
                if *of == Some(Scope::Element) && records.is_empty() {
                    return self.spread(known, edit, subject);
                }
                if *of == Some(Scope::Object) || (of.is_none() && records.is_empty()) {
                    return self.change_objects(known, edit, subject);
                }
                if records.is_empty() {
                    return Err(unknown_type(known.names, edit, subject));
                }
                self.change(known, edit, &records)
            }
            Edit::Shift { object, .. } | Edit::PerThread { object } => {
                self.change_objects(known, edit, object)
            }
            Edit::Deal { object, .. } => self.spread(known, edit, object),
            Edit::Group { objects } => self.group(known, edit, objects),
            Edit::Pack { structure } => self.pack(known, edit, structure),
            Edit::Pages { object, to } => {
                let homes = homes_named(known, object);
                let classes = known.profile.classes.iter().filter(|class| homes.contains(&class.home));
                let largest = classes.map(|class| class.bytes / class.objects.max(1)).max();
                if largest.is_some_and(|bytes| bytes < *to) {
                    return Err(impossible("it is smaller than such a page"));
                }
                self.change_objects(known, edit, object)
            }
            Edit::Place { object, on } => match (known.nodes, on) {
                (None, _) => Err(impossible("memory nodes are only simulated with --sim")),
                (Some(0 | 1), _) => Err(impossible(
                    "the machine has one memory node; give a machine file with `nodes` and \
                     `remote_memory_latency_cycles`",
                )),
                (Some(nodes), &PagePlacement::Node(node)) if node >= nodes => {
                    Err(impossible(&format!("the machine has nodes 0 to {}", nodes - 1)))
                }
                _ => self.change_objects(known, edit, object),
            },
        }
    }

    /// Changes the layout of a type, under all definitions that go by its name.
    fn change(&mut self, known: &PlanInputs<'_>, edit: &Edit, records: &[LayoutId]) -> Result<(), PlanError> {
        let refused = |refusal| PlanError::Refused { edit: edit.to_string(), refusal };
        for &record in records {
            let at = match self.by_record.get(&record) {
                Some(&at) => at,
                None => {
                    let Some(structure) = structure(known.names, record) else { continue };
                    self.layouts.push(Layout::compiled(structure).map_err(refused)?);
                    self.by_record.insert(record, self.layouts.len() - 1);
                    self.layouts.len() - 1
                }
            };
            self.layouts[at].apply(edit).map_err(refused)?;
        }
        if let Some(why) = self.without_objects(known, edit, records) {
            return Err(PlanError::Impossible { edit: edit.to_string(), why });
        }
        Ok(())
    }

    /// Lays out the objects that hold elements of edited types.
    fn go_around(&mut self, known: &PlanInputs<'_>) {
        if self.by_record.is_empty() {
            return;
        }
        let records = self.subjects.values().filter_map(|subject| subject.record).map(|(record, _)| record);
        let mut outer: Vec<LayoutId> =
            records.filter(|record| !self.by_record.contains_key(record)).collect();
        outer.sort_unstable();
        outer.dedup();
        for record in outer {
            if let Some(layout) = self.laid_around(known, record) {
                self.around.insert(record, self.layouts.len());
                self.layouts.push(layout);
            }
        }
    }

    /// The layout of a type that holds elements of edited types.
    fn laid_around(&self, known: &PlanInputs<'_>, record: LayoutId) -> Option<Layout> {
        around(known.names, record, |inner| Some(&self.layouts[*self.by_record.get(&inner)?]))
    }

    /// Why no object would move.
    fn without_objects(&self, known: &PlanInputs<'_>, edit: &Edit, records: &[LayoutId]) -> Option<String> {
        let of_type =
            |subject: &&EditedObjects| subject.record.is_some_and(|(record, _)| records.contains(&record));
        let holds = |subject: &EditedObjects| {
            subject.record.is_some_and(|(record, _)| self.laid_around(known, record).is_some())
        };
        if self.subjects.values().any(|subject| of_type(&subject) || holds(subject)) {
            return None;
        }
        let outer = self.holding(known, records);
        let name = edit.subject();
        Some(match &outer[..] {
            [] => format!("no object of the trace is known to be a `{name}` or an array of it"),
            outer => format!("`{name}` lies only inside {}, where this cannot be done", outer.join(", ")),
        })
    }

    /// Names of records among the objects that hold one of these by value.
    fn holding(&self, known: &PlanInputs<'_>, records: &[LayoutId]) -> Vec<String> {
        let layouts = known.names.layouts();
        let is_outer = |outer: LayoutId| {
            !self.around.contains_key(&outer) && holds_any(known.names, outer, &|id| records.contains(&id))
        };
        let outer = self.subjects.values().filter_map(|subject| subject.record).map(|(record, _)| record);
        let mut names: Vec<String> = outer
            .filter(|&outer| is_outer(outer))
            .filter_map(|outer| layouts.layout(outer).name)
            .map(|name| known.names.string(name).to_string())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn doubt(&mut self, known: &PlanInputs<'_>) {
        for (&record, &at) in &self.by_record {
            let outer = self.holding(known, &[record]);
            if !outer.is_empty() {
                let inner = self.layouts[at].structure().name.clone();
                self.doubts.push(PlanDoubt::HeldByValue { inner, outer });
            }
        }
    }

    fn change_objects(&mut self, known: &PlanInputs<'_>, edit: &Edit, name: &str) -> Result<(), PlanError> {
        let homes = homes_named(known, name);
        if homes.is_empty() {
            return Err(unknown_object(known, edit, name));
        }
        for home in homes {
            let subject = self.subjects.entry(home).or_default();
            let whole = subject.whole.get_or_insert_default();
            match edit {
                Edit::Shift { by, .. } => whole.shift += by,
                Edit::Pad { to, .. } => whole.pad = *to,
                Edit::Align { to, .. } => (whole.pad, whole.align) = (*to, *to),
                Edit::PerThread { .. } => whole.per_thread = true,
                Edit::Pages { to, .. } => (whole.pages, whole.align) = (*to, whole.align.max(*to)),
                Edit::Place { on, .. } => whole.on = Some(*on),
                _ => {}
            }
        }
        Ok(())
    }

    /// Spreads the elements of objects.
    fn spread(&mut self, known: &PlanInputs<'_>, edit: &Edit, name: &str) -> Result<(), PlanError> {
        let impossible = |why: String| PlanError::Impossible { edit: edit.to_string(), why };
        let homes = homes_named(known, name);
        if homes.is_empty() {
            return Err(unknown_object(known, edit, name));
        }
        for home in homes {
            let Some(element_bytes) = element_of(known, &home).filter(|&bytes| bytes > 0) else {
                return Err(impossible(format!("it is not known what the elements of `{name}` are")));
            };
            let whole = self.subjects.entry(home).or_default().whole.get_or_insert_default();
            let padded = |to: u64| ElementPlaces::Padded(element_bytes.next_multiple_of(to));
            let how = match edit {
                Edit::Deal { parts, .. } => ElementPlaces::Dealt(*parts),
                Edit::Pad { to, .. } => padded(*to),
                Edit::Align { to, .. } => {
                    whole.align = *to;
                    padded(*to)
                }
                _ => continue,
            };
            whole.elements = Some(SpreadElements { element_bytes, how });
        }
        Ok(())
    }

    fn pack(&mut self, known: &PlanInputs<'_>, edit: &Edit, name: &str) -> Result<(), PlanError> {
        let impossible = |why: String| PlanError::Impossible { edit: edit.to_string(), why };
        let records = records_named(known.names, name);
        if records.is_empty() {
            return Err(unknown_type(known.names, edit, name));
        }
        let is_node = |class: &&Class| {
            let record = record_of(known.names, class);
            matches!(class.home, Home::Heap { .. })
                && record.is_some_and(|(record, bytes)| {
                    records.contains(&record) && class.bytes == class.objects * bytes
                })
        };
        let nodes: Vec<&Class> = known.profile.classes.iter().filter(is_node).collect();
        let Some((record, bytes)) = nodes.first().and_then(|class| record_of(known.names, class)) else {
            return Err(impossible(format!("no block of the trace is known to be one `{name}`")));
        };
        let sites = first_users(known, &nodes);
        if sites.is_empty() {
            return Err(impossible("nothing reads its objects".into()));
        }
        for class in nodes {
            self.subjects.entry(class.home.clone()).or_default().pack = Some(self.packs.len());
        }
        let align = structure(known.names, record).map_or(8, |shape| shape.align).max(1);
        self.packs.push(Pack { structure: name.to_string(), bytes, align, sites });
        Ok(())
    }

    fn group(&mut self, known: &PlanInputs<'_>, edit: &Edit, objects: &[String]) -> Result<(), PlanError> {
        let impossible = |why: String| PlanError::Impossible { edit: edit.to_string(), why };
        let mut element_bytes = Vec::new();
        for (at, name) in objects.iter().enumerate() {
            let homes = homes_named(known, name);
            if homes.is_empty() {
                return Err(unknown_object(known, edit, name));
            }
            let mut sizes: Vec<u64> =
                homes.iter().filter_map(|home| element_of(known, home)).filter(|&bytes| bytes > 0).collect();
            sizes.dedup();
            let [bytes] = sizes[..] else {
                return Err(impossible(format!("it is not known what the elements of `{name}` are")));
            };
            element_bytes.push(bytes);
            for home in homes {
                let subject = self.subjects.entry(home).or_default();
                subject.whole.get_or_insert_default().group = Some((self.groups.len(), at));
            }
        }
        self.groups.push(Group { names: objects.to_vec(), element_bytes });
        Ok(())
    }
}

/// The loads of some objects in the function that misses most on them.
fn first_users(known: &PlanInputs<'_>, nodes: &[&Class]) -> Vec<SiteId> {
    let is_node = |class: &Class| nodes.iter().any(|node| node.home == class.home);
    let loads = || {
        known.profile.cells.iter().filter(|cell| {
            is_node(&known.profile.classes[cell.class.0 as usize])
                && known.names.site(cell.site).kind == SiteKind::Load
        })
    };
    let mut by_function: FxHashMap<FunctionId, (u64, u64)> = FxHashMap::default();
    for cell in loads() {
        let sum = by_function.entry(known.names.site(cell.site).function).or_default();
        *sum = (sum.0 + cell.counts.misses(0), sum.1 + cell.counts.accesses());
    }
    let most = by_function.into_iter().max_by_key(|(function, sum)| (*sum, std::cmp::Reverse(function.0)));
    let Some((function, _)) = most else { return Vec::new() };
    let mut sites: Vec<SiteId> = loads().map(|cell| cell.site).collect();
    sites.retain(|site| known.names.site(*site).function == function);
    sites.sort_unstable_by_key(|site| site.0);
    sites.dedup();
    sites
}

/// Bytes of an element of a home's objects: by its type, else by the accesses to it, if all have one size.
pub(crate) fn element_of(known: &PlanInputs<'_>, home: &Home) -> Option<u64> {
    let at = known.profile.classes.iter().position(|class| class.home == *home)?;
    let class = &known.profile.classes[at];
    if let Some((_, bytes)) = record_of(known.names, class) {
        return Some(bytes);
    }
    if let Some(ty) = class.element {
        return Some(known.names.ty(ty).bytes);
    }
    let cells = known.profile.cells.iter().filter(|cell| cell.class.0 as usize == at);
    let mut sizes: Vec<u64> = cells.map(|cell| u64::from(known.names.site(cell.site).bytes)).collect();
    sizes.retain(|&bytes| bytes > 0);
    sizes.iter().copied().min()
}

/// The record in the objects of a class, and its size.
pub(crate) fn record_of(names: &SiteTable, class: &Class) -> Option<(LayoutId, u64)> {
    let layouts = names.layouts();
    let id = match &class.home {
        Home::Global { symbol, .. } => layouts.of_global(symbol)?,
        _ => layouts.of_type(class.element?)?,
    };
    let (record, _) = elements(layouts, id);
    let layout = layouts.layout(record);
    (layout.is_record() && layout.bytes > 0).then_some((record, layout.bytes))
}
