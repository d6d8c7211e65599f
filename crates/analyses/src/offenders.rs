//! # Cache offenders
//!
//! **What it finds.** The data and the source line that cost the most cache misses. Each finding names the structure field or
//! the variable, the line, and where the objects were allocated.
//!
//! **Why it costs.** A miss in the first level costs some ten cycles when the second answers, and hundreds when memory has to. A
//! program that waits for memory usually waits at very few lines: in 429.mcf one field at one line had four times
//! the misses of the next one.
//!
//! **What to do.** Look at how much of each fetched line is used. If the code around the line touches 8 bytes of a 64-byte
//! structure, seven eighths of the memory traffic is waste: keep the touched members together in an array of
//! their own, or move the others out. If all of it is used, the remedy is fewer passes over the data (tiling) or less data.
//!
//! Where a finding says that misses wait for each other, it is the chain that has to change: fewer and larger nodes, or several chains followed
//! by turns. Where its addresses are loaded or computed otherwise, prefetching some turns ahead helps, too.
//!
//! **When it is wrong.** The cache model has no prefetcher and no overlap of misses, so a sequential scan looks worse here than it
//! is, next to a pointer chase with as many misses. The order of findings is by modelled cycles, an upper bound.
//!
//! **Reference.** Miucin, Brady, Fedorova: DINAMITE, a modern approach to memory performance profiling (2016), which ranks
//! (variable, file, line) by misses.

use memlode_attribute::tables::{Place, Row, What};
use memlode_attribute::{Cell, ClassId};
use memlode_trace::sites::StringId;
use rustc_hash::FxHashMap;

use crate::{Also, Context, Density, Finder, Finding, Meta, Suggestion};

/// See the module's page.
#[derive(Clone, Copy, Debug)]
pub struct Offenders {
    /// A line counts from this part of the program's modelled stall cycles on.
    pub least_share: f64,
    /// Findings at most.
    pub most: usize,
}

impl Default for Offenders {
    fn default() -> Offenders {
        Offenders { least_share: 0.01, most: 20 }
    }
}

impl Finder for Offenders {
    const META: Meta = Meta { id: "offenders", title: "cache offenders" };

    fn findings(&self, cx: &Context) -> Vec<Finding> {
        let total = cx.tables.stall_cycles(&cx.tables.total());
        if total == 0 {
            return Vec::new();
        }
        let mut findings: Vec<Finding> = Vec::new();
        for row in cx.tables.lines() {
            let stall_share = cx.tables.stall_cycles(&row.counts) as f64 / total as f64;
            if stall_share < self.least_share {
                break;
            }
            let (what, place) = row.key;
            let same = findings.iter_mut().find(|f| is_one_change(f, &what, &place));
            if let Some(finding) = same {
                let Row { counts, errors, .. } = row;
                finding.also.push(Also { what, place, counts, errors, stall_share });
            } else if findings.len() < self.most {
                findings.push(finding(cx, row, total));
            }
        }
        findings
    }
}

/// Whether a change of layout that a finding asks for would serve this line, too: same type, same function.
fn is_one_change(finding: &Finding, what: &What, place: &Place) -> bool {
    what.ty.is_some()
        && what.ty == finding.what.ty
        && what.member.is_some() == finding.what.member.is_some()
        && place.line.function == finding.place.line.function
        && place.inlined_into.map(|l| l.function) == finding.place.inlined_into.map(|l| l.function)
}

fn finding(cx: &Context, row: Row<(What, Place)>, total: u64) -> Finding {
    let (what, place) = row.key;
    let here = |cell: &Cell| cx.tables.key_of(cell) == (what, place);
    let objects: Vec<Row<ClassId>> = cx.tables.roll(|cell| here(cell).then_some(cell.class));
    let dependences = cx.tables.roll(|cell| here(cell).then(|| cx.names.site(cell.site).dependence()));
    let density = what.ty.and_then(|ty| density(cx, ty, &place, row.counts.accesses()));
    let suggestion = density
        .as_ref()
        .filter(|d| is_sparse(d))
        .map(|d| Suggestion::Separate { ty: d.ty, members: d.members.clone() });
    let stall_cycles = cx.tables.stall_cycles(&row.counts);
    Finding {
        analysis: Offenders::META,
        what,
        place,
        counts: row.counts,
        errors: row.errors,
        stall_cycles,
        stall_share: stall_cycles as f64 / total as f64,
        also: Vec::new(),
        whole: None,
        lead: None,
        objects,
        dependence: dependences.first().and_then(|costliest| costliest.key),
        density,
        suggestion,
    }
}

/// Whether enough of the type is left alone to be worth a change: half of it, and at least 16 bytes.
fn is_sparse(density: &Density) -> bool {
    let unused = density.type_bytes - density.used_bytes;
    unused >= 16 && unused * 2 >= density.type_bytes
}

/// The members of `ty` that the function of `place` touches in at least a tenth as many accesses as the finding has.
fn density(cx: &Context, ty: StringId, place: &Place, accesses: u64) -> Option<Density> {
    let mut members: FxHashMap<StringId, (u64, u64)> = FxHashMap::default();
    let mut type_bytes = 0;
    for cell in cx.tables.cells() {
        let site = cx.names.site(cell.site);
        let Some((site_ty, member)) = site.ty.zip(site.member) else { continue };
        if cx.names.ty(site_ty).name != ty || cx.tables.key_of(cell).1.line.function != place.line.function {
            continue;
        }
        type_bytes = type_bytes.max(cx.names.ty(site_ty).bytes);
        let member = members.entry(member).or_default();
        member.0 += cell.counts.accesses();
        member.1 = member.1.max(u64::from(site.bytes));
    }
    let mut members: Vec<_> = members.into_iter().filter(|(_, (n, _))| n * 10 >= accesses).collect();
    members.sort_by_key(|&(member, (n, _))| (std::cmp::Reverse(n), member));
    let used_bytes = members.iter().map(|(_, (_, bytes))| bytes).sum::<u64>().min(type_bytes);
    let members: Vec<_> = members.into_iter().map(|(member, _)| member).collect();
    (type_bytes > 0 && !members.is_empty()).then_some(Density { ty, type_bytes, used_bytes, members })
}
