//! A part of a trace, which is replayed under many edits: stretches that are spread over the run.
//!
//! A line that a stretch touches first was touched before, in what is left out, and some cache may
//! have kept it. So it counts as the misses of its site do in the whole run: as many are served by
//! each level, and as many are first touches of fresh memory.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use memlode_attribute::{
    CostModel, Counts, HeapCall, Parallelism, Profile, Source, UnderEdit, has_gaps, heap_calls, heap_calls_in,
};
use memlode_replay::{Excerpt, stretches};
use memlode_simulate::MAX_LEVELS;
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::allocator::{AllocatorModel, MAPPED};
use crate::cost::Cycles;
use crate::fresh::FreshMemory;
use crate::moved::Moved;
use crate::placement::{Footprint, place_calls};
use crate::plan::Plan;
use crate::predict::{Predictor, Unpredictable};

/// Seeds that are looked through for a place in a line.
const SEEDS: u64 = 64;

/// A part of a trace, and what was counted of it.
pub struct TracePart {
    stretches: Stretches,
    /// Number of its accesses, about.
    pub accesses: u64,
    /// True if it is all of the trace.
    pub is_whole: bool,
    /// Allocation calls up to its end.
    calls: Vec<HeapCall>,
    /// Its cycles as it is.
    pub cycles: Cycles,
    /// Its cycles when its blocks are placed by the model, once they are known.
    placed: OnceLock<Cycles>,
    /// Fresh memory as it is: that of all of the trace where stretches are spread over it.
    fresh: FreshMemory,
    /// The part of the kernel's work for it that is charged to this many accesses.
    fresh_share: f64,
    /// The parallelism of misses as it is.
    parallelism: Parallelism,
    /// Bytes that all of the trace touches, where stretches are spread over it.
    touched: Option<u64>,
}

/// The chunks of a part.
struct Stretches {
    source: Source,
    /// The number of chunks that end with it, and of those that are replayed.
    chunks: usize,
    replayed: usize,
    /// The misses of the whole run, if it has more chunks.
    between: Option<Untold>,
}

impl TracePart {
    /// The part of a trace with this profile that has about `most` accesses; all of it, if it has
    /// no more. Of a trace with gaps, and where memory lies on the node that touches it first, it is
    /// the beginning.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn of(predictor: &Predictor<'_>, most: u64, whole: &Profile) -> Result<TracePart, Unpredictable> {
        let trace = &predictor.trace;
        let by_chunk: Vec<u64> = trace.chunks().iter().map(|chunk| chunk.accesses()).collect();
        let has_nodes = predictor.setup.is_some() && predictor.machine.nodes > 1;
        let is_beginning = has_gaps(trace) || has_nodes;
        let wanted = if is_beginning { beginning(&by_chunk, most) } else { stretches(&by_chunk, most) };
        let is_whole = wanted.iter().map(Range::len).sum::<usize>() == by_chunk.len();
        let chunks = wanted.last().map_or(0, |range| range.end);
        let workers = predictor.threads.saturating_sub(1);
        let mut calls = Vec::new();
        let stretches = if is_beginning {
            heap_calls(trace, chunks, workers, |call| {
                calls.push(call);
                ControlFlow::Continue(())
            });
            let source = Source::Stored(trace.clone());
            Stretches { source, chunks, replayed: chunks, between: None }
        } else {
            let excerpt = Arc::new(Excerpt::of(trace, workers, &wanted));
            calls.extend(heap_calls_in(trace, &excerpt));
            let between = (!is_whole).then(|| Untold::of(whole));
            let source = Source::Excerpt { trace: trace.clone(), excerpt };
            Stretches { source, chunks, replayed: usize::MAX, between }
        };
        let accesses = wanted.iter().flat_map(|range| &by_chunk[range.clone()]).sum();
        // By the same route as its placements.
        let profile = stretches.count(predictor, &Plan::default(), &Moved::default())?;
        let accesses_of =
            |of: &Profile| of.cells.iter().map(|cell| cell.counts.accesses()).sum::<u64>() as f64;
        let share = accesses_of(&profile) / accesses_of(whole).max(1.0);
        let kernel = predictor.fresh_cycles(whole) * share;
        let is_spread = stretches.between.is_some();
        let costs = predictor.costs(if is_spread { whole } else { &profile });
        // Programs get their memory when they begin, and a beginning stands for the whole.
        let (fresh, fresh_share) = match predictor.fresh_cycles(&profile) {
            _ if is_spread => (FreshMemory::of(whole), share),
            own if own > 0.0 => (FreshMemory::of(&profile), kernel / own),
            _ => (FreshMemory::of(&profile), 0.0),
        };
        let mut part = TracePart {
            stretches,
            accesses,
            is_whole,
            calls,
            cycles: Cycles::default(),
            placed: OnceLock::new(),
            fresh,
            fresh_share,
            parallelism: costs.parallelism().clone(),
            touched: is_spread.then(|| costs.touched_bytes()),
        };
        part.cycles = part.cycles_of(predictor, &profile, &Plan::default(), None);
        Ok(part)
    }

    /// Its cycles when its blocks are placed by the model, as those of candidates are.
    ///
    /// # Errors
    /// If the trace cannot be replayed.
    pub fn placed(&self, predictor: &Predictor<'_>) -> Result<Cycles, Unpredictable> {
        if let Some(&placed) = self.placed.get() {
            return Ok(placed);
        }
        let placed = self.under(predictor, &Plan::default(), None)?;
        Ok(*self.placed.get_or_init(|| placed))
    }

    /// Seeds of placements by their number, as [`seeds`] has them for its first block of the heap.
    pub(crate) fn seeds(&self, numbers: Range<u64>, line_bytes: u64) -> Vec<u64> {
        let first = self.calls.iter().filter_map(|call| call.made.as_ref()).find(|made| made.bytes < MAPPED);
        match first {
            Some(first) => seeds((first.base, first.bytes), numbers, line_bytes),
            None => numbers.collect(),
        }
    }

    /// Its source, and how many chunks of it are replayed.
    pub(crate) fn replayed(&self) -> (&Source, usize) {
        (&self.stretches.source, self.stretches.replayed)
    }

    /// The number of chunks of the trace up to its end.
    pub fn chunks(&self) -> usize {
        self.stretches.chunks
    }

    /// Places its blocks under a plan by the model of glibc's malloc, at addresses that depend on a
    /// seed, if there is one.
    ///
    /// # Errors
    /// That the blocks cannot be placed.
    pub(crate) fn placed_under(
        &self,
        predictor: &Predictor<'_>,
        plan: &Plan,
        seed: Option<u64>,
    ) -> Result<(Moved, Footprint), Unpredictable> {
        let mut model = |_| Ok(Box::new(AllocatorModel::new(seed)) as Box<_>);
        let (calls, workers) =
            ((&self.calls[..], self.stretches.chunks), predictor.threads.saturating_sub(1));
        place_calls(&predictor.trace, plan, calls, workers, &mut model).map_err(Unpredictable::Placement)
    }

    /// Returns its cycles under a plan, placed by the model of glibc's malloc.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the blocks not be placed.
    pub fn under(
        &self,
        predictor: &Predictor<'_>,
        plan: &Plan,
        seed: Option<u64>,
    ) -> Result<Cycles, Unpredictable> {
        let (moved, footprint) = self.placed_under(predictor, plan, seed)?;
        let profile = self.stretches.count(predictor, plan, &moved)?;
        Ok(self.cycles_of(predictor, &profile, plan, Some(footprint)))
    }

    /// Returns its cycles in a profile of it under a plan, by which objects have this footprint.
    fn cycles_of(
        &self,
        predictor: &Predictor<'_>,
        profile: &Profile,
        plan: &Plan,
        footprint: Option<Footprint>,
    ) -> Cycles {
        let edit = UnderEdit {
            parallelism: self.parallelism.clone(),
            pages: plan.pages(),
            touched_bytes: self.touched,
        };
        let costs = CostModel::under_edit(profile, predictor.trace.sites(), predictor.machine, &edit);
        let fresh = match footprint {
            None => self.fresh.clone(),
            Some(footprint) if self.touched.is_some() => self.fresh.grown(plan, footprint),
            Some(footprint) => self.fresh.under(profile, plan, footprint),
        };
        let kernel = fresh.cycles(predictor.machine, &plan.pages()) * self.fresh_share;
        Cycles::of(profile, &costs, predictor.machine, kernel)
    }
}

impl Stretches {
    /// Counts them with objects where a plan puts them.
    fn count(&self, predictor: &Predictor<'_>, plan: &Plan, moved: &Moved) -> Result<Profile, Unpredictable> {
        let setup = predictor.setup_under(plan, moved);
        let simulation = predictor.simulation(&self.source).under(Some(moved));
        let (mut profile, _) = predictor.count_of(simulation, setup.as_ref(), self.replayed, |_| {})?;
        if let Some(between) = &self.between {
            let levels = profile.levels.len();
            profile.cells.iter_mut().for_each(|cell| between.tell(cell.site, &mut cell.counts, levels));
        }
        Ok(profile)
    }
}

/// Seeds of placements by their number, of a heap with this first block: it begins as many quarters of a
/// line behind its own place in one as the number says, modulo 4. What lies across lines changes with
/// that, which is most of what placement changes.
fn seeds((base, bytes): (u64, u64), numbers: Range<u64>, line_bytes: u64) -> Vec<u64> {
    let quarter = |address: u64| address % line_bytes / (line_bytes / 4).max(1);
    let quarters: Vec<u64> =
        (0..SEEDS).map(|seed| quarter(AllocatorModel::new(Some(seed)).first_place(bytes))).collect();
    let seed_of = |number: u64| {
        let wanted = (quarter(base) + number) % 4;
        let mut seeds = (0..SEEDS).zip(&quarters).filter(|&(_, &quarter)| quarter == wanted);
        seeds.nth(number as usize / 4).map_or(number, |(seed, _)| seed)
    };
    numbers.map(seed_of).collect()
}

/// The chunks with which a trace begins, until they have a number of accesses.
fn beginning(accesses: &[u64], most: u64) -> Vec<Range<usize>> {
    let before = accesses.iter().scan(0, |sum: &mut u64, &of_chunk| {
        let before = *sum;
        *sum += of_chunk;
        Some(before)
    });
    std::iter::once(0..before.take_while(|&before| before < most).count()).collect()
}

/// The misses of each site in the whole run, by which level served them.
struct Untold(FxHashMap<SiteId, Misses>);

/// Misses of a site.
#[derive(Clone, Copy, Default)]
struct Misses {
    /// Number of them by the levels that they missed; of those in memory, all but first touches.
    by_depth: [u64; MAX_LEVELS + 1],
    first_touches: u64,
}

impl Untold {
    fn of(whole: &Profile) -> Untold {
        let mut found: FxHashMap<SiteId, Misses> = FxHashMap::default();
        let levels = whole.levels.len();
        for cell in &whole.cells {
            let Counts { reads, writes, first_touches, .. } = cell.counts;
            let misses = found.entry(cell.site).or_default();
            for depth in 1..=levels {
                misses.by_depth[depth] += reads[depth] + writes[depth];
            }
            misses.by_depth[levels] = misses.by_depth[levels].saturating_sub(first_touches);
            misses.first_touches += first_touches;
        }
        Untold(found)
    }

    /// Serves the lines that a site touched first as the whole run did.
    fn tell(&self, site: SiteId, counts: &mut Counts, levels: usize) {
        let Some(misses) = self.0.get(&site) else { return };
        let all = misses.by_depth.iter().sum::<u64>() + misses.first_touches;
        let first = counts.first_touches;
        if all == 0 || first == 0 {
            return;
        }
        let share = |of: u64| (u128::from(first) * u128::from(of) / u128::from(all)) as u64;
        counts.first_touches = share(misses.first_touches);
        // A site reads or writes.
        let side = if counts.reads[levels] > 0 { &mut counts.reads } else { &mut counts.writes };
        // What is nowhere else stays in memory.
        for depth in 1..levels {
            let served = share(misses.by_depth[depth]).min(side[levels].saturating_sub(counts.first_touches));
            side[levels] -= served;
            side[depth] += served;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_part_touches_first_are_served_as_in_the_run() {
        let mut misses = Misses { first_touches: 10, ..Misses::default() };
        misses.by_depth[1..4].copy_from_slice(&[20, 40, 30]);
        let whole = Untold([(SiteId(7), misses)].into_iter().collect());
        // 50 lines that it touched first, 5 that it had not kept, and hits.
        let mut counts = Counts { first_touches: 50, ..Counts::default() };
        counts.reads[..4].copy_from_slice(&[1000, 3, 0, 55]);
        whole.tell(SiteId(7), &mut counts, 3);
        assert_eq!((&counts.reads[..4], counts.first_touches), (&[1000, 13, 20, 25][..], 5));
        // Of a site that was not counted, nothing is known.
        let before = counts;
        whole.tell(SiteId(8), &mut counts, 3);
        assert_eq!(counts, before);
    }

    #[test]
    fn placements_begin_at_each_quarter_of_a_line() {
        for base in [0x1000_02a0, 0x1000_02b0, 0x1000_02c0, 0x1000_02f0] {
            let seeds = seeds((base, 24), 0..8, 64);
            let away = |seed: &u64| (AllocatorModel::new(Some(*seed)).first_place(24) - base) % 64;
            assert_eq!(seeds.iter().map(away).collect::<Vec<_>>(), [0, 16, 32, 48, 0, 16, 32, 48]);
            let distinct: std::collections::BTreeSet<u64> = seeds.into_iter().collect();
            assert_eq!(distinct.len(), 8);
        }
    }

    #[test]
    fn a_beginning_is_as_long_as_it_has_to_be() {
        let end = |accesses: &[u64], most| beginning(accesses, most).last().map(|range| range.end);
        assert_eq!(end(&[10, 10, 10], 15), Some(2));
        assert_eq!(end(&[10, 10, 10], 100), Some(3));
        assert_eq!(end(&[], 100), Some(0));
    }
}
