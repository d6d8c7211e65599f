//! Budgets: limits of the misses of accesses to a type, in figures that are the same on every
//! machine.
//!
//! A trace is replayed with all of its memory in fixed places ([`Plan::in_fixed_places`]), on a
//! named machine. Then its misses depend only on the program and its input, and not on the kernel's
//! randomisation of addresses or on the allocator.

use std::ops::ControlFlow;

use memlode_attribute::Profile;
use memlode_attribute::inside::alternatives;
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_replay::{Piece, Replayed};
use memlode_trace::Trace;
use memlode_trace::event::Mark;
use memlode_trace::sites::SiteTable;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::allocator::AllocatorModel;
use crate::heat::first_component;
use crate::named::records_named;
use crate::plan::Plan;
use crate::predict::{Predictor, Unpredictable};
use crate::structures::structure;

/// The number of calls for which a figure is given.
const CALLS: f64 = 1000.0;
/// A figure that differs by less is the same: it was a sum in another order.
const SAME: f64 = 1e-9;

/// The use that a recording makes of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeUse {
    /// Name.
    pub name: String,
    /// Bytes of an object.
    pub bytes: u64,
    /// Lines of memory that accesses to the type were the first to touch.
    pub lines_touched: u64,
    /// Misses by level, innermost first.
    pub misses: Vec<u64>,
    /// Members in the order in which they lie, without unnamed ones.
    pub members: Vec<MemberUse>,
}

/// The use that a recording makes of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberUse {
    /// Name.
    pub name: String,
    /// Offset in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Misses by level, innermost first.
    pub misses: Vec<u64>,
}

/// The use that a recording makes of its types.
pub struct Usage {
    /// Calls that figures are given for.
    pub calls: u64,
    /// Threads that accessed memory.
    pub threads: usize,
    /// Records that were accessed, those with most misses of the first level first.
    pub types: Vec<TypeUse>,
    /// The chunks that were decoded, and those that could not be.
    pub replayed: Replayed,
}

/// The budget of a program: the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Version of the file's format: 1.
    pub version: u32,
    /// The machine: its name, or its file.
    pub machine: String,
    /// The function whose calls count; all calls if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    /// The part by which a figure may be larger.
    #[serde(default)]
    pub tolerance: f64,
    /// The caches that were simulated.
    pub level: Vec<LevelShape>,
    /// The types.
    #[serde(rename = "type")]
    pub types: Vec<TypeBudget>,
}

/// The facts about a cache on which misses depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelShape {
    /// Name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Ways.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
}

/// The limits of a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeBudget {
    /// Name.
    pub name: String,
    /// Bytes of an object when it was recorded.
    pub bytes: u64,
    /// Lines of memory.
    pub lines_touched: Range,
    /// Misses in 1,000 calls, by level.
    pub misses: Vec<Range>,
    /// Members when it was recorded, in the order in which they lay.
    #[serde(default)]
    pub member: Vec<MemberBudget>,
}

/// A member when the budget was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberBudget {
    /// Name.
    pub name: String,
    /// Offset in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Misses of the first level in 1,000 calls, at most.
    pub misses: f64,
}

/// The least and the most of some recordings. If both are equal, the file has one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Range {
    /// The same in all.
    One(f64),
    /// The least and the most.
    Between(f64, f64),
}

impl Range {
    fn and(self, other: f64) -> Range {
        let (least, most) = (self.least().min(other), self.most().max(other));
        if least == most { Range::One(most) } else { Range::Between(least, most) }
    }

    /// The least.
    pub fn least(self) -> f64 {
        match self {
            Range::One(least) | Range::Between(least, _) => least,
        }
    }

    /// The most.
    pub fn most(self) -> f64 {
        match self {
            Range::One(most) | Range::Between(_, most) => most,
        }
    }
}

/// Why there is no budget.
#[derive(Debug, thiserror::Error)]
pub enum NoBudget {
    /// The machine or the allocator.
    #[error(transparent)]
    Unpredictable(#[from] Unpredictable),
    /// The function was not called.
    #[error(
        "no function `{name}` was called in {trace}: it may have been inlined everywhere (`__attribute__((noinline))` keeps its calls){}",
        nearest(known)
    )]
    NotCalled {
        /// The function.
        name: String,
        /// The trace's directory.
        trace: String,
        /// Functions that are called.
        known: Vec<String>,
    },
    /// Nothing was called at all.
    #[error("no calls were recorded in {0}: its figures cannot be given for 1,000 of them")]
    NoCalls(String),
}

fn nearest(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; called were {}", known.join(", ")) }
}

/// A figure of a type that exceeds its budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Excess {
    /// The cache level; none for the lines touched.
    pub level: Option<String>,
    /// The limit.
    pub budget: f64,
    /// The value that was counted.
    pub now: f64,
}

/// A member that lies elsewhere than when the budget was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedMember {
    /// Name.
    pub name: String,
    /// Its offset then; none if it is new.
    pub offset_before: Option<u64>,
    /// Its offset now; none if it is gone.
    pub offset: Option<u64>,
    /// Misses of the first level in 1,000 calls then.
    pub misses_before: f64,
    /// Now.
    pub misses: f64,
}

impl Usage {
    /// Counts the use that a trace makes of its types under a plan, in 1,000 calls of a function or of all.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the function was not called.
    pub fn of(
        predictor: &Predictor<'_>,
        plan: &Plan,
        per: Option<&str>,
        written: &dyn Fn(&str) -> String,
        watch: impl Fn(usize) + Sync,
    ) -> Result<Usage, NoBudget> {
        let calls = calls(&predictor.trace, predictor.threads, per, written)?;
        let mut model = |_| Ok(Box::new(AllocatorModel::new(None)) as Box<_>);
        let found = predictor.under(plan, &mut model, watch)?;
        let mut threads: Vec<u32> = found.profile.cells.iter().map(|cell| cell.thread.0).collect();
        threads.sort_unstable();
        threads.dedup();
        let types = types(predictor.trace.sites(), &found.profile, predictor.machine);
        Ok(Usage { calls, threads: threads.len(), types, replayed: found.replayed })
    }

    /// A number in 1,000 calls.
    pub fn per_calls(&self, number: u64) -> f64 {
        number as f64 * CALLS / self.calls.max(1) as f64
    }

    /// The type of a name.
    pub fn of_type(&self, name: &str) -> Option<&TypeUse> {
        self.types.iter().find(|ty| ty.name == name)
    }
}

/// Calls of a function, or of all.
fn calls(
    trace: &Trace,
    threads: usize,
    per: Option<&str>,
    written: &dyn Fn(&str) -> String,
) -> Result<u64, NoBudget> {
    let mut by_function: FxHashMap<u32, u64> = FxHashMap::default();
    let count = |piece: &Piece<'_>| {
        for (_, mark) in piece.marks() {
            if let Mark::Enter { function, .. } = mark {
                *by_function.entry(function.0).or_default() += 1;
            }
        }
        ControlFlow::Continue(())
    };
    let shards = memlode_replay::Shards::one();
    memlode_replay::Replay::interleave_shards(trace, &shards, threads.saturating_sub(1), vec![count]);
    let names = trace.sites();
    let name = |function: u32| names.string(names.functions()[function as usize].name);
    let directory = || trace.directory().display().to_string();
    let Some(per) = per else {
        return match by_function.values().sum() {
            0 => Err(NoBudget::NoCalls(directory())),
            calls => Ok(calls),
        };
    };
    let is_it = |function: u32| name(function) == per || written(name(function)) == per;
    let called: u64 =
        by_function.iter().filter(|(function, _)| is_it(**function)).map(|(_, calls)| calls).sum();
    if called > 0 {
        return Ok(called);
    }
    let mut known: Vec<(u64, String)> =
        by_function.into_iter().map(|(function, calls)| (calls, written(name(function)))).collect();
    known.sort_by(|a, b| b.cmp(a));
    let known = known.into_iter().take(6).map(|(_, name)| name).collect();
    Err(NoBudget::NotCalled { name: per.to_string(), trace: directory(), known })
}

/// Counts the use that the cells of a profile make of types, by type and member.
fn types(names: &SiteTable, profile: &Profile, machine: &Machine) -> Vec<TypeUse> {
    let levels = machine.levels.len();
    let mut found: Vec<TypeUse> = Vec::new();
    let mut place: FxHashMap<u32, Option<usize>> = FxHashMap::default();
    for cell in &profile.cells {
        let site = names.site(cell.site);
        let Some(ty) = site.ty.map(|ty| names.ty(ty).name) else { continue };
        let at = *place.entry(ty.0).or_insert_with(|| {
            let name = names.string(ty);
            let record = records_named(names, name).first().copied()?;
            let structure = structure(names, record)?;
            let members = structure.members.iter().filter(|member| !member.name.is_empty());
            found.push(TypeUse {
                name: name.to_string(),
                bytes: structure.bytes,
                lines_touched: 0,
                misses: vec![0; levels],
                members: members
                    .map(|member| MemberUse {
                        name: member.name.clone(),
                        offset: member.offset,
                        bytes: member.bytes,
                        misses: vec![0; levels],
                    })
                    .collect(),
            });
            Some(found.len() - 1)
        });
        let Some(at) = at else { continue };
        let of_type = &mut found[at];
        of_type.lines_touched += cell.counts.first_touches;
        for level in 0..levels {
            of_type.misses[level] += cell.counts.misses(level);
        }
        // Of several that it may be to, each has its part.
        let paths: Vec<&str> =
            site.member.iter().flat_map(|path| alternatives(names.string(*path))).collect();
        for path in &paths {
            let named = |known: &&mut MemberUse| known.name == first_component(path);
            let Some(member) = of_type.members.iter_mut().find(named) else { continue };
            for level in 0..levels {
                member.misses[level] += cell.counts.misses(level) / paths.len() as u64;
            }
        }
    }
    found.sort_by(|a, b| b.misses.cmp(&a.misses).then_with(|| a.name.cmp(&b.name)));
    found
}

/// The caches of a machine.
pub fn levels(machine: &Machine) -> Vec<LevelShape> {
    let level = |level: &memlode_machine::Level| LevelShape {
        name: level.name.clone(),
        bytes: level.bytes,
        ways: level.ways,
        line_bytes: machine.line_bytes,
    };
    machine.levels.iter().map(level).collect()
}

impl TypeBudget {
    /// Returns the use that some recordings make of a type. `None` if there are none, or one lacks
    /// the type.
    pub fn of(name: &str, usages: &[Usage]) -> Option<TypeBudget> {
        let mut budget: Option<TypeBudget> = None;
        for usage in usages {
            let ty = usage.of_type(name)?;
            let misses = ty.misses.iter().map(|&misses| usage.per_calls(misses));
            let lines = ty.lines_touched as f64;
            match &mut budget {
                None => {
                    let member = |member: &MemberUse| MemberBudget {
                        name: member.name.clone(),
                        offset: member.offset,
                        bytes: member.bytes,
                        misses: usage.per_calls(member.misses[0]),
                    };
                    budget = Some(TypeBudget {
                        name: ty.name.clone(),
                        bytes: ty.bytes,
                        lines_touched: Range::One(lines),
                        misses: misses.map(Range::One).collect(),
                        member: ty.members.iter().map(member).collect(),
                    });
                }
                Some(budget) => {
                    budget.lines_touched = budget.lines_touched.and(lines);
                    for (range, now) in budget.misses.iter_mut().zip(misses) {
                        *range = range.and(now);
                    }
                    for member in &mut budget.member {
                        let now = ty.members.iter().find(|now| now.name == member.name);
                        let now = now.map_or(0.0, |now| usage.per_calls(now.misses[0]));
                        member.misses = member.misses.max(now);
                    }
                }
            }
        }
        budget
    }

    /// Figures that exceed the budget.
    pub fn exceeded(&self, usage: &Usage, levels: &[LevelShape], tolerance: f64) -> Vec<Excess> {
        let Some(ty) = usage.of_type(&self.name) else { return Vec::new() };
        let over = |level: Option<&LevelShape>, budget: f64, now: f64| {
            let most = budget * (1.0 + tolerance);
            (now > most * (1.0 + SAME)).then(|| Excess {
                level: level.map(|level| level.name.clone()),
                budget,
                now,
            })
        };
        let misses = levels.iter().zip(&self.misses).zip(&ty.misses);
        let mut found: Vec<Excess> = misses
            .filter_map(|((level, range), &now)| over(Some(level), range.most(), usage.per_calls(now)))
            .collect();
        found.extend(over(None, self.lines_touched.most(), ty.lines_touched as f64));
        found
    }

    /// Members that were moved since the budget was recorded. The one with most misses, now or
    /// then, comes first: a member that now lies in a separate line has misses that its neighbours
    /// had before, so its own rise means less.
    pub fn moved(&self, usage: &Usage) -> Vec<MovedMember> {
        let mut all = self.members(usage);
        all.retain(|member| member.offset_before != member.offset);
        let most = |member: &MovedMember| member.misses.max(member.misses_before);
        all.sort_by(|a, b| most(b).total_cmp(&most(a)));
        all
    }

    /// The member whose misses rose most, moved or not.
    pub fn risen(&self, usage: &Usage) -> Option<MovedMember> {
        self.members(usage).into_iter().next()
    }

    fn members(&self, usage: &Usage) -> Vec<MovedMember> {
        let Some(ty) = usage.of_type(&self.name) else { return Vec::new() };
        let known = self.member.iter().map(|before| {
            let now = ty.members.iter().find(|now| now.name == before.name);
            MovedMember {
                name: before.name.clone(),
                offset_before: Some(before.offset),
                offset: now.map(|now| now.offset),
                misses_before: before.misses,
                misses: now.map_or(0.0, |now| usage.per_calls(now.misses[0])),
            }
        });
        let is_new = |now: &&MemberUse| !self.member.iter().any(|before| before.name == now.name);
        let new = ty.members.iter().filter(is_new).map(|now| MovedMember {
            name: now.name.clone(),
            offset_before: None,
            offset: Some(now.offset),
            misses_before: 0.0,
            misses: usage.per_calls(now.misses[0]),
        });
        let mut all: Vec<MovedMember> = known.chain(new).collect();
        all.sort_by(|a, b| (b.misses - b.misses_before).total_cmp(&(a.misses - a.misses_before)));
        all
    }

    /// The order that members had, as an edit of the present type. `None` if they still have it.
    pub fn restoring(&self, usage: &Usage) -> Option<Edit> {
        let ty = usage.of_type(&self.name)?;
        let exists = |name: &&MemberBudget| ty.members.iter().any(|now| now.name == name.name);
        let before: Vec<String> =
            self.member.iter().filter(exists).map(|member| member.name.clone()).collect();
        let now: Vec<&String> = ty.members.iter().map(|now| &now.name).collect();
        // New ones go behind the others.
        let is_there = now.len() >= before.len() && before.iter().zip(&now).all(|(a, b)| a == *b);
        (!is_there).then(|| Edit::Reorder { structure: self.name.clone(), members: before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(order: &[(&str, u64)], misses: u64) -> Usage {
        let mut offset = 0;
        let members = order.iter().map(|&(name, missed)| {
            offset += 8;
            MemberUse { name: name.into(), offset: offset - 8, bytes: 8, misses: vec![missed] }
        });
        let members = members.collect();
        let ty = TypeUse { name: "node".into(), bytes: 24, lines_touched: 3, misses: vec![misses], members };
        Usage { calls: 500, threads: 1, types: vec![ty], replayed: Replayed::default() }
    }

    #[test]
    fn what_moved_and_misses_more_is_named_first_and_its_order_restored() {
        let recorded = usage(&[("a", 10), ("b", 20), ("c", 30)], 60);
        let budget = TypeBudget::of("node", &[recorded]).expect("it is used");
        assert_eq!(budget.misses, [Range::One(120.0)]);
        let levels = [LevelShape { name: "L1d".into(), bytes: 1 << 15, ways: 8, line_bytes: 64 }];
        let later = usage(&[("c", 31), ("b", 20), ("new", 1), ("a", 40)], 92);
        let over = budget.exceeded(&later, &levels, 0.1);
        assert_eq!(over, [Excess { level: Some("L1d".into()), budget: 120.0, now: 184.0 }]);
        assert!(budget.exceeded(&later, &levels, 0.6).is_empty());
        let moved = budget.moved(&later);
        let names: Vec<&str> = moved.iter().map(|member| member.name.as_str()).collect();
        assert_eq!((names[0], names.contains(&"b")), ("a", false));
        assert_eq!(budget.restoring(&later).expect("an edit").to_string(), "reorder node: a,b,c");
        let longer = usage(&[("a", 10), ("b", 20), ("c", 30), ("new", 9)], 69);
        assert_eq!(budget.restoring(&longer), None, "a new member behind the others disturbs no order");
    }

    #[test]
    fn several_recordings_give_a_range_which_the_file_keeps() {
        let two = [usage(&[("a", 10)], 60), usage(&[("a", 12)], 61)];
        let ty = TypeBudget::of("node", &two).expect("it is used");
        assert_eq!(ty.misses, [Range::Between(120.0, 122.0)]);
        assert_eq!(ty.lines_touched, Range::One(3.0));
        assert_eq!(ty.member[0].misses, 24.0);
    }
}
