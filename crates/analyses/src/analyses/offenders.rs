//! # Cache offenders
//!
//! **What it finds.** The data and the source line that the program waits for most. Each finding
//! names the structure field or the variable, the line, and where the objects were allocated.
//!
//! **Why it costs.** A miss in the first level costs some ten cycles when the second answers, and
//! hundreds when memory has to. A program that waits for memory usually waits at very few lines: in
//! 429.mcf one field at one line had four times the misses of the next one.
//!
//! **How it is ranked.** By cycles of waiting, which are not the same as misses. A miss costs its
//! whole latency only where the next one needs what it brings: *pointer chasing*. *Overlapping*
//! misses share their latency with as many others as the processor has in flight, *streaming* ones
//! were fetched ahead and cost the bandwidth that they take, and stores wait only where the buffer
//! behind the core is full. The kind was observed while the program ran: the distances between the
//! lines of an access, and how often its address came from the load before in a chain. The costs of
//! an overlap and of a line are the machine's ([machines](../machines.md)). First touches of memory
//! that the program has just got are in no finding: the kernel has zeroed it, so it is near. The
//! report has their sum separately.
//!
//! **What to do.** Look at how much of each fetched line is used. If the program touches 8 bytes of
//! a 64-byte structure, seven eighths of the memory traffic is waste: keep the touched members
//! together in an array of their own, or move the others out. If all of it is used, the remedy is
//! fewer passes over the data (tiling) or less data. The use is measured: some lines are followed
//! through the whole run, from fetch to fetch, in the level whose misses of the type cost most, and
//! all touches meanwhile are recorded. The time from one fetch to the next is a *residency*. A
//! member counts as used if it was touched in a tenth of the residencies of lines that have some of
//! it; arrays count whole. Loops that touch one member each, one loop after the other, use less of
//! every line than all members have: the finding has the mean use of a line of an array. An arrow
//! keeps the members together that were touched in at least half of the residencies in which the
//! line's own member was; the others go to another array. If too few lines of a type could be
//! followed (in a sample, say), counts are used instead, and the finding says *at most*: a member
//! with fewer accesses than a tenth of the fetched lines cannot have been used in most of them.
//! `memlode sim` follows every line, in each level, and reports the part that was not touched
//! (*unused*).
//!
//! Lines of one function that touch the members of a type are one finding, as one change would
//! improve all of them. Lines of several functions are joined if each has too little to be a
//! finding.
//!
//! A line of a small inlined function means little by itself: the finding lists the calls where it
//! was inlined, with their parts of its wait.
//!
//! If a finding says pointer chasing, it is the chain that has to change: fewer and larger nodes,
//! nodes in the order of the walk, or several chains followed in turn. Where misses overlap and
//! addresses come from indices that were loaded before, prefetching can help, if the program knows
//! these early enough. The finding says how many accesses ahead: the latency of memory, or of the
//! outermost level that answers a tenth of the misses, divided by the cycles of instructions that
//! the function executes for each access.
//!
//! **When it is wrong.** Costs are a formula on counts without time: it does not know that a stream
//! was late, or that two loops of one function run one after the other. Walks are observed in a
//! part of the trace. A page walk is added where an object is larger than the machine's
//! translations reach. `memlode sim` has the machine's own rules instead of exact LRU. A software
//! prefetch counts as a use of the byte that it names.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016), which ranks (variable, file, line) by misses.

use memlode_attribute::libraries::FetchedCrates;
use memlode_attribute::place::{Place, What};
use memlode_attribute::tables::{Row, Tables};
use memlode_attribute::{Cell, ClassId, Counts, Wait, WaitKind};
use memlode_trace::sites::{Dependence, Site, SiteTable, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::callers::callers;
use crate::partition::density;
use crate::{
    Analysis, Arguments, BadArgument, BadNumber, Blocks, CellPacker, CellUnpacker, Cost, Density, Evidence,
    Finding, Findings, Meta, PrefetchDistance, RankedLine, Reads, Splits, Subject, Suggestion, View,
};

/// Lines that belong together are a finding from this part of all waiting on.
const LEAST_SHARE: f64 = 0.01;

/// A finding also needs at least this part of all cycles, where these are known.
const LEAST_OF_ALL: f64 = 0.01;

/// The last lines of a finding that together have no more than this part of its waiting are not mentioned.
const LEAST_MENTIONED: f64 = 0.05;

/// A program that waits for a smaller part of its cycles than this has no findings.
const LEAST_WAIT: f64 = 0.05;

/// Findings at most.
const MOST: usize = 20;

/// See the module's page.
pub struct Offenders;

impl Analysis for Offenders {
    const META: Meta = Meta {
        id: "offenders",
        title: "data and lines with the most cache misses",
        reads: Reads::Cells,
        inlines: true,
        levels: true,
        after: &[],
        // Counts add up, whatever they are counted from.
        splits: Splits { chunks: false, address: Some(Blocks::Bytes), thread: true, time: true },
        arguments: &[],
        tables: &[],
    };

    /// Counts are added before an analysis sees them.
    type State = ();
    type Saved = ();

    fn new(_arguments: &Arguments) -> Result<Offenders, BadArgument> {
        Ok(Offenders)
    }

    fn start(&self) {}

    fn merge(&self, _state: &mut (), _later: ()) {}

    fn save(&self, _state: (), _carried: &mut CellPacker<'_>) {}

    fn load(&self, _saved: (), _carried: &CellUnpacker<'_>) -> Result<(), BadNumber> {
        Ok(())
    }

    fn finish(&self, _state: (), view: &View<'_>) -> Findings {
        let findings = view
            .counted
            .map(|tables| {
                let (names, latencies) = (view.names, view.latencies);
                findings(&Counted { tables, names, latencies, fetched: FetchedCrates::of(names) })
            })
            .unwrap_or_default();
        Findings { findings, tables: Vec::new() }
    }
}

/// Counts and the names that they refer to.
struct Counted<'a> {
    tables: &'a Tables<'a>,
    names: &'a SiteTable,
    latencies: &'a [u32],
    fetched: FetchedCrates,
}

/// The costliest lines, each with those that the same change would serve.
struct Group {
    row: Row<(What, Place)>,
    together: Vec<RankedLine>,
    wait: Wait,
    stall_cycles: u64,
}

impl Group {
    fn of(row: Row<(What, Place)>, stall_cycles: u64) -> Group {
        Group { wait: row.wait, row, together: Vec::new(), stall_cycles }
    }

    /// Adds the lines of another.
    fn add(&mut self, other: Group) {
        let Row { key: (what, place), counts, wait, errors } = other.row;
        self.together.push(RankedLine { what, place, counts, wait, errors });
        self.together.extend(other.together);
        self.wait += &other.wait;
        self.stall_cycles += other.stall_cycles;
    }
}

/// The totals of the run, of which findings have their shares.
struct Whole {
    wait: f64,
    stall_cycles: u64,
}

fn findings(counted: &Counted<'_>) -> Vec<Finding> {
    let Some(costs) = counted.tables.costs() else { return Vec::new() };
    let total = costs.total();
    let whole =
        Whole { wait: total.cycles(), stall_cycles: counted.tables.stall_cycles(&counted.tables.total()) };
    let mut least = LEAST_SHARE * whole.wait;
    if costs.knows_instructions() {
        let all = whole.wait + total.instructions;
        if whole.wait < LEAST_WAIT * all {
            return Vec::new();
        }
        least = least.max(LEAST_OF_ALL * all);
    }
    // Lines belong together before any is too small to be told.
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers: FxHashMap<Change, usize> = FxHashMap::default();
    for row in counted.tables.lines() {
        let stall_cycles = counted.tables.stall_cycles(&row.counts);
        let next = groups.len();
        let number = change(&row.key).map_or(next, |change| *numbers.entry(change).or_insert(next));
        match groups.get_mut(number) {
            Some(group) => group.add(Group::of(row, stall_cycles)),
            None => groups.push(Group::of(row, stall_cycles)),
        }
    }
    let is_told = |group: &Group| group.wait.cycles() > 0.0 && group.wait.cycles() >= least;
    let (mut groups, small): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_told);
    groups.extend(of_types(small, counted).into_iter().filter(is_told));
    // Stable: of equal ones, that whose line comes first in the table.
    groups.sort_by(|a, b| b.wait.cycles().total_cmp(&a.wait.cycles()));
    groups.truncate(MOST);
    let mut findings: Vec<Finding> =
        groups.into_iter().map(|group| finding(counted, group, &whole)).collect();
    // One change of a type is one change, however many lines it would serve.
    let mut changed = FxHashSet::default();
    for finding in &mut findings {
        finding.edit.take_if(|Suggestion::Split { ty, .. }| !changed.insert(*ty));
    }
    findings
}

/// A change of layout, as lines that it would serve name it: a type, whether it is its members, the function and what that is inlined into.
type Change = (StringId, bool, StringId, Option<StringId>);

fn change((what, place): &(What, Place)) -> Option<Change> {
    let ty = what.ty?;
    Some((ty, what.member.is_some(), place.line.function, place.inlined_into.map(|line| line.function)))
}

/// Joins groups that touch members of one type, in any functions: its layout is one change, too.
/// Types of libraries are left out, since the user cannot change them.
fn of_types(mut groups: Vec<Group>, counted: &Counted<'_>) -> Vec<Group> {
    groups.sort_by(|a, b| b.wait.cycles().total_cmp(&a.wait.cycles()));
    let mut merged: Vec<Group> = Vec::new();
    let mut numbers: FxHashMap<StringId, usize> = FxHashMap::default();
    for group in groups {
        let (what, _) = &group.row.key;
        let Some(ty) = what.member.and(what.ty) else { continue };
        if counted.fetched.has_type(counted.names.string(ty)) {
            continue;
        }
        match numbers.get(&ty) {
            Some(&number) => merged[number].add(group),
            None => {
                numbers.insert(ty, merged.len());
                merged.push(group);
            }
        }
    }
    merged
}

fn finding(counted: &Counted<'_>, group: Group, whole: &Whole) -> Finding {
    let Group { row, mut together, wait, stall_cycles } = group;
    let (what, place) = row.key;
    together.sort_by(|a, b| b.wait.cycles().total_cmp(&a.wait.cycles()));
    // Lines that all together are next to nothing beside the rest need no mention.
    let mut rest = LEAST_MENTIONED * wait.cycles();
    while let Some(line) = together.pop_if(|line| line.wait.cycles() <= rest) {
        rest -= line.wait.cycles();
    }
    let tables = counted.tables;
    let here = |cell: &Cell| tables.key_of(cell) == (what, place);
    let objects: Vec<Row<ClassId>> = tables.roll(|cell| here(cell).then_some(cell.class));
    let dependences = tables.roll(|cell| here(cell).then(|| counted.names.site(cell.site).dependence()));
    let density = what.ty.and_then(|ty| density(tables, counted.names, &counted.fetched, ty, what.member));
    let kind = row.wait.main_kind();
    let edit = density
        .as_ref()
        .filter(|density| is_sparse(density) && kind != Some(WaitKind::Chained))
        .filter(|density| what.member.is_some_and(|member| density.members.contains(&member)))
        .filter(|density| are_arrays(counted, &objects, density.type_bytes))
        .map(|density| Suggestion::Split { ty: density.ty, members: density.used_with.clone() });
    let mut evidence = Vec::new();
    evidence.extend((!together.is_empty()).then_some(Evidence::Together(together)));
    evidence.extend(callers(tables, counted.names, &place, here).map(Evidence::Callers));
    evidence.push(Evidence::Objects(objects));
    evidence.extend(kind.map(Evidence::Waits));
    let are_all = |is: fn(&Site) -> bool| {
        tables.cells().iter().filter(|cell| here(cell)).all(|cell| is(counted.names.site(cell.site)))
    };
    evidence.extend(are_all(Site::is_past_caches).then_some(Evidence::PastCaches));
    evidence.extend(are_all(Site::is_prefetch).then_some(Evidence::SoftwarePrefetch));
    let addresses = dependences.first().and_then(|costliest| costliest.key);
    evidence.extend(addresses.map(Evidence::Addresses));
    if (kind, addresses) == (Some(WaitKind::Overlapping), Some(Dependence::Loaded)) {
        evidence.extend(prefetch(counted, &row.counts, here).map(Evidence::Prefetch));
    }
    evidence.extend(density.map(Evidence::Density));
    Finding {
        analysis: Offenders::META.id,
        subject: Subject::Line { what, place },
        counts: row.counts,
        wait: row.wait,
        errors: row.errors,
        cost: Cost {
            wait,
            wait_share: wait.cycles() / whole.wait,
            stall_cycles,
            stall_share: stall_cycles as f64 / whole.stall_cycles.max(1) as f64,
            standard_error: None,
        },
        evidence,
        edit,
        doubt: Vec::new(),
    }
}

/// The largest distance in accesses that is named: at larger ones, caches lose the first lines
/// before they are used.
const FARTHEST: f64 = 64.0;

/// A level that answers this part of the misses is one that a prefetch has to be in time for.
const ANSWERS_SOME: f64 = 0.1;

/// Returns how far ahead accesses of some cells, which have these counts, have to be prefetched, if it is known how much the
/// function does for each.
fn prefetch(
    counted: &Counted<'_>,
    counts: &Counts,
    here: impl Fn(&Cell) -> bool,
) -> Option<PrefetchDistance> {
    let costs = counted.tables.costs().filter(|costs| costs.knows_instructions())?;
    let cells = || counted.tables.cells().iter().enumerate();
    let functions: FxHashSet<_> = cells()
        .filter(|(_, cell)| here(cell))
        .map(|(_, cell)| counted.names.site(cell.site).function)
        .collect();
    let accesses: u64 = cells().filter(|(_, cell)| here(cell)).map(|(_, cell)| cell.counts.accesses()).sum();
    let of_function = |cell: &Cell| functions.contains(&counted.names.site(cell.site).function);
    let cycles: f64 =
        cells().filter(|(_, cell)| of_function(cell)).map(|(number, _)| costs.of(number).instructions).sum();
    let access_cycles = cycles / accesses.max(1) as f64;
    let needed = ANSWERS_SOME * counts.misses(0) as f64;
    let answers = |level: &usize| counts.misses(level - 1) as f64 >= needed;
    let latency_cycles = counted.latencies[(1..counted.latencies.len()).rev().find(answers)?];
    let ahead = (f64::from(latency_cycles) / access_cycles).ceil();
    (access_cycles > 0.0 && ahead > 1.0).then(|| PrefetchDistance {
        accesses: ahead.min(FARTHEST) as u32,
        latency_cycles,
        access_cycles,
    })
}

/// Returns whether most of the cost is in blocks of several elements: nodes that are allocated one by one cannot be split but by a pointer more.
fn are_arrays(counted: &Counted<'_>, objects: &[Row<ClassId>], type_bytes: u64) -> bool {
    let is_array = |row: &Row<ClassId>| {
        let class = counted.tables.class(row.key);
        class.objects > 0 && class.bytes / class.objects >= 2 * type_bytes
    };
    objects.first().is_some_and(is_array)
}

/// Returns whether enough of the type is left alone, or is used at other times, to be worth a change: half of it, and at least 16
/// bytes.
fn is_sparse(density: &Density) -> bool {
    let unused = density.type_bytes - density.used_with_bytes;
    unused >= 16 && unused * 2 >= density.type_bytes
}
