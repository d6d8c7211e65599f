//! # Cache offenders
//!
//! **What it finds.** The data and the source line that cost the most cache misses. Each finding
//! names the structure field or the variable, the line, and where the objects were allocated.
//!
//! **Why it costs.** A miss in the first level costs some ten cycles when the second answers, and
//! hundreds when memory has to. A program that waits for memory usually waits at very few lines: in
//! 429.mcf one field at one line had four times the misses of the next one.
//!
//! **What to do.** Look at how much of each fetched line is used. If the code around the line
//! touches 8 bytes of a 64-byte structure, seven eighths of the memory traffic is waste: keep the
//! touched members together in an array of their own, or move the others out. If all of it is used,
//! the remedy is fewer passes over the data (tiling) or less data.
//!
//! Where a finding says that each miss must finish before the next can start, it is the chain that
//! has to change: fewer and larger nodes, or several chains followed in turn. Where the access is
//! indirect, prefetching some iterations ahead helps, too.
//!
//! **When it is wrong.** The cache model has no prefetcher and no overlap of misses, so a
//! sequential scan looks worse here than it is, next to a pointer chase with as many misses. The
//! order of findings is by modelled cycles, an upper bound.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance
//! profiling (2016), which ranks (variable, file, line) by misses.

use std::cmp::Reverse;

use memlode_attribute::tables::{Place, Row, Tables, What};
use memlode_attribute::{Cell, ClassId};
use memlode_trace::sites::{SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::{
    Analysis, Arguments, BadArgument, Cost, Density, Edit, Evidence, Finding, Found, Line, Meta, Reads,
    Splits, Subject, View,
};

/// A line counts from this part of the program's modelled stall cycles on.
const LEAST_SHARE: f64 = 0.01;

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
        after: &[],
        // Counts add up, whatever they are counted from.
        splits: Splits { address: Some(1), thread: true, time: true },
        arguments: &[],
        tables: &[],
    };

    /// Counts are added before an analysis sees them.
    type State = ();

    fn new(_arguments: &Arguments) -> Result<Offenders, BadArgument> {
        Ok(Offenders)
    }

    fn start(&self) {}

    fn merge(&self, _state: &mut (), _later: ()) {}

    fn finish(&self, _state: (), view: &View<'_>) -> Found {
        let findings =
            view.counted.map(|tables| findings(&Counted { tables, names: view.names })).unwrap_or_default();
        Found { findings, tables: Vec::new() }
    }
}

/// Counts and the names that they refer to.
struct Counted<'a> {
    tables: &'a Tables<'a>,
    names: &'a SiteTable,
}

/// The costliest lines, each with those that the same change would serve.
struct Group {
    row: Row<(What, Place)>,
    together: Vec<Line>,
    stall_cycles: u64,
}

fn findings(counted: &Counted<'_>) -> Vec<Finding> {
    let total = counted.tables.stall_cycles(&counted.tables.total());
    if total == 0 {
        return Vec::new();
    }
    let mut groups: Vec<Group> = Vec::new();
    for row in counted.tables.lines() {
        let stall_cycles = counted.tables.stall_cycles(&row.counts);
        if (stall_cycles as f64 / total as f64) < LEAST_SHARE {
            break;
        }
        let (what, place) = row.key;
        if let Some(group) = groups.iter_mut().find(|group| is_one_change(&group.row.key, &what, &place)) {
            let Row { counts, errors, .. } = row;
            group.together.push(Line { what, place, counts, errors });
            group.stall_cycles += stall_cycles;
        } else if groups.len() < MOST {
            groups.push(Group { row, together: Vec::new(), stall_cycles });
        }
    }
    groups.into_iter().map(|group| finding(counted, group, total)).collect()
}

/// Whether a change of layout that a finding asks for would serve this line, too: same type, same function.
fn is_one_change((first, at): &(What, Place), what: &What, place: &Place) -> bool {
    what.ty.is_some()
        && what.ty == first.ty
        && what.member.is_some() == first.member.is_some()
        && place.line.function == at.line.function
        && place.inlined_into.map(|l| l.function) == at.inlined_into.map(|l| l.function)
}

fn finding(counted: &Counted<'_>, group: Group, total: u64) -> Finding {
    let Group { row, together, stall_cycles } = group;
    let (what, place) = row.key;
    let tables = counted.tables;
    let here = |cell: &Cell| tables.key_of(cell) == (what, place);
    let objects: Vec<Row<ClassId>> = tables.roll(|cell| here(cell).then_some(cell.class));
    let dependences = tables.roll(|cell| here(cell).then(|| counted.names.site(cell.site).dependence()));
    let density = what.ty.and_then(|ty| density(counted, ty, &place, row.counts.accesses()));
    let edit = density
        .as_ref()
        .filter(|density| is_sparse(density))
        .map(|density| Edit::Split { ty: density.ty, members: density.members.clone() });
    let mut evidence = Vec::new();
    evidence.extend((!together.is_empty()).then_some(Evidence::Together(together)));
    evidence.push(Evidence::Objects(objects));
    evidence.extend(dependences.first().and_then(|costliest| costliest.key).map(Evidence::Addresses));
    evidence.extend(density.map(Evidence::Density));
    Finding {
        analysis: Offenders::META.id,
        subject: Subject::Line { what, place },
        counts: row.counts,
        errors: row.errors,
        cost: Cost { stall_cycles, stall_share: stall_cycles as f64 / total as f64, standard_error: None },
        evidence,
        edit,
        doubt: Vec::new(),
    }
}

/// Whether enough of the type is left alone to be worth a change: half of it, and at least 16 bytes.
fn is_sparse(density: &Density) -> bool {
    let unused = density.type_bytes - density.used_bytes;
    unused >= 16 && unused * 2 >= density.type_bytes
}

/// The members of `ty` that the function of `place` touches in at least a tenth as many accesses as the finding has.
fn density(counted: &Counted<'_>, ty: StringId, place: &Place, accesses: u64) -> Option<Density> {
    let mut members: FxHashMap<StringId, (u64, u64)> = FxHashMap::default();
    let mut type_bytes = 0;
    for cell in counted.tables.cells() {
        let site = counted.names.site(cell.site);
        let Some((site_ty, member)) = site.ty.zip(site.member) else { continue };
        if counted.names.ty(site_ty).name != ty
            || counted.tables.key_of(cell).1.line.function != place.line.function
        {
            continue;
        }
        type_bytes = type_bytes.max(counted.names.ty(site_ty).bytes);
        let member = members.entry(member).or_default();
        member.0 += cell.counts.accesses();
        member.1 = member.1.max(u64::from(site.bytes));
    }
    let mut members: Vec<_> = members.into_iter().filter(|(_, (n, _))| n * 10 >= accesses).collect();
    members.sort_by_key(|&(member, (n, _))| (Reverse(n), member));
    let used_bytes = members.iter().map(|(_, (_, bytes))| bytes).sum::<u64>().min(type_bytes);
    let members: Vec<_> = members.into_iter().map(|(member, _)| member).collect();
    (type_bytes > 0 && !members.is_empty()).then_some(Density { ty, type_bytes, used_bytes, members })
}
