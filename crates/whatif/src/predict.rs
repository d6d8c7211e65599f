//! A trace as it is, and as it would be.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memlode_attribute::setup::{NamedMemory, NamedPages, RuleChoice, Setup};
use memlode_attribute::sharing::{Order, Relocation, SharingProfile, sharing_moved};
use memlode_attribute::simulators::ImpossibleMachine;
use memlode_attribute::{
    AddressMap, AliasRow, CallCollector, CostModel, HeapCall, Home, Parallelism, Profile, Simulation, Source,
    UnderEdit, has_gaps,
};
use memlode_machine::Machine;
use memlode_replay::{Piece, Replayed};
use memlode_trace::Trace;
use rustc_hash::FxHashMap;

use crate::cost::Cycles;
use crate::fresh::FreshMemory;
use crate::host::Host;
use crate::moved::Moved;
use crate::noise::{Look, Noise, Pairs};
use crate::part::TracePart;
use crate::placement::{Allocators, Footprint, place, place_calls};
use crate::plan::Plan;
use crate::side_by_side::SideBySide;

/// Placements of the same objects that are tried to see what placement alone changes: two for each
/// quarter of a line at which the heap may begin, as others of the same quarter hardly differ.
const PLACEMENTS: u64 = 8;

/// Allocation calls that are kept at most, in some 150 MB: those of programs with more are read again.
const MOST_CALLS: usize = 1 << 20;

/// A trace, and how it is simulated.
pub struct Predictor<'a> {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: &'a Machine,
    /// The set-up of the machine, if its rules are simulated; else it is simulated as `report` does.
    pub setup: Option<&'a Setup>,
    /// The order of the program's threads when they take lines from each other; `None`: side by
    /// side if the creation of all was recorded.
    pub order: Option<Order>,
    /// The program's allocation calls, if they were collected; else they are read again whenever
    /// blocks are placed.
    pub calls: Option<&'a [HeapCall]>,
    /// Threads to use.
    pub threads: usize,
    /// The program that may stop it.
    pub host: &'a dyn Host,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
pub enum Unpredictable {
    /// The machine.
    #[error(transparent)]
    Machine(#[from] ImpossibleMachine),
    /// The allocator.
    #[error("the blocks could not be placed: {0}")]
    Placement(String),
    /// The host.
    #[error("stopped")]
    Stopped,
}

/// A trace under a plan.
pub struct Prediction {
    /// The counts.
    pub profile: Profile,
    /// The chunks that were decoded, and those that could not be.
    pub replayed: Replayed,
    /// The places of everything.
    pub moved: Moved,
    /// The objects that the plan is about.
    pub footprint: Footprint,
}

impl Predictor<'_> {
    /// Counts the trace as it is.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn as_it_is(&self, watch: impl Fn(usize) + Sync) -> Result<(Profile, Replayed), Unpredictable> {
        let source = Source::Stored(self.trace.clone());
        self.count_of(self.simulation(&source), self.setup, usize::MAX, watch)
    }

    /// Does so, and collects the allocation calls, unless there are very many.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn as_it_is_with_calls(
        &self,
        watch: impl Fn(usize) + Sync,
    ) -> Result<(Profile, Replayed, Option<Vec<HeapCall>>), Unpredictable> {
        let source = Source::Stored(self.trace.clone());
        let calls = Mutex::new(CallCollector::new(&self.trace, MOST_CALLS));
        let collect = |piece: &Piece<'_>| calls.lock().unwrap_or_else(PoisonError::into_inner).piece(piece);
        let simulation = self.simulation(&source).beside(&collect);
        let (profile, replayed) = self.count_of(simulation, self.setup, usize::MAX, watch)?;
        Ok((profile, replayed, calls.into_inner().unwrap_or_else(PoisonError::into_inner).found()))
    }

    /// The machine's set-up with the pages of a plan, which are on the memory nodes that it says.
    pub(crate) fn setup_under(&self, plan: &Plan, moved: &Moved) -> Option<Setup> {
        let mut setup = self.setup?.clone();
        setup.homes.ranges.extend(moved.node_ranges(self.machine.nodes, setup.pages.page_bytes));
        let pages = plan.pages().into_iter();
        setup.named.extend(
            pages.map(|(home, page_bytes)| NamedPages {
                memory: NamedMemory::Objects(vec![home]),
                page_bytes,
            }),
        );
        Some(setup)
    }

    /// Counts the trace under a plan, whose blocks `allocators` place.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the blocks not be placed.
    pub fn under(
        &self,
        plan: &Plan,
        allocators: Allocators<'_>,
        watch: impl Fn(usize) + Sync,
    ) -> Result<Prediction, Unpredictable> {
        let (moved, footprint) = self.placed(plan, allocators)?;
        let (setup, source) = (self.setup_under(plan, &moved), Source::Stored(self.trace.clone()));
        let simulation = self.simulation(&source).under(Some(&moved));
        let (profile, replayed) = self.count_of(simulation, setup.as_ref(), usize::MAX, watch)?;
        Ok(Prediction { profile, replayed, moved, footprint })
    }

    /// Places all blocks under a plan.
    fn placed(&self, plan: &Plan, allocators: Allocators<'_>) -> Result<(Moved, Footprint), Unpredictable> {
        let workers = self.threads.saturating_sub(1);
        let placed = match self.calls {
            Some(calls) => place_calls(&self.trace, plan, (calls, usize::MAX), workers, allocators),
            None => place(&self.trace, plan, workers, allocators),
        };
        placed.map_err(Unpredictable::Placement)
    }

    /// Finds what the threads lose to lines that they take from each other, as it is or with objects moved. None of a sample, of a program with
    /// one thread, and where the machine's rules are simulated, which have coherence of their own.
    pub fn sharing(&self, profile: &Profile, moved: Option<&Moved>) -> Option<SharingProfile> {
        if self.setup.is_some() || has_gaps(&self.trace) {
            return None;
        }
        let moved = moved.map(SideBySide::new);
        let moved = moved.as_ref().map(|moved| moved as &dyn Relocation);
        sharing_moved(&self.trace, profile, self.machine, self.order, moved, self.threads)
    }

    /// Finds the cycles that the threads lose if objects are moved by a plan, and each thread that
    /// takes a line takes both lines of its pair.
    ///
    /// # Errors
    /// That the blocks cannot be placed.
    pub fn lost_in_pairs(
        &self,
        profile: &Profile,
        plan: &Plan,
        allocators: Allocators<'_>,
    ) -> Result<f64, Unpredictable> {
        let (moved, _) = self.placed(plan, allocators)?;
        let places = SideBySide::new(&moved).in_pairs();
        let lost = sharing_moved(&self.trace, profile, self.machine, self.order, Some(&places), self.threads);
        Ok(lost.as_ref().map_or(0.0, SharingProfile::lost_cycles))
    }

    /// Counts loads of a part of the trace that agree with a store on its way to other memory in the low 12 bits, by what both lie in, as
    /// it is or under a plan. None if the machine does not say what is on its way.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the blocks not be placed.
    pub fn aliases(
        &self,
        part: &TracePart,
        plan: Option<&Plan>,
    ) -> Result<Vec<AliasRow<Home>>, Unpredictable> {
        if self.machine.in_flight.is_none() {
            return Ok(Vec::new());
        }
        let moved = plan.map(|plan| part.placed_under(self, plan, None)).transpose()?;
        let setup = Setup { rules: RuleChoice::Lru, ..Setup::of(self.machine) };
        let (source, chunks) = part.replayed();
        let watch = |done: usize| self.go_on(done, chunks);
        let map = moved.as_ref().map(|(moved, _)| moved as &dyn AddressMap);
        let (found, _) = self.simulation(source).under(map).causes(&setup, watch)?;
        Ok(found.aliases(|cell| found.profile.classes[cell.class.0 as usize].home.clone()))
    }

    /// Returns the costs of a profile of this trace as it is.
    pub fn costs(&self, profile: &Profile) -> CostModel {
        CostModel::new(profile, self.trace.sites(), self.machine)
    }

    /// Returns the costs of a profile of this trace under a plan, if it has this parallelism as it is.
    pub fn costs_under(&self, profile: &Profile, plan: &Plan, parallelism: &Parallelism) -> CostModel {
        let edit = UnderEdit { parallelism: parallelism.clone(), pages: plan.pages(), touched_bytes: None };
        CostModel::under_edit(profile, self.trace.sites(), self.machine, &edit)
    }

    /// Finds the cycles that the threads lose if objects are moved by a plan, whatever the caches do.
    ///
    /// # Errors
    /// That the blocks cannot be placed.
    pub fn lost_under(
        &self,
        profile: &Profile,
        plan: &Plan,
        allocators: Allocators<'_>,
    ) -> Result<f64, Unpredictable> {
        let (moved, _) = self.placed(plan, allocators)?;
        let sharing = self.sharing(profile, Some(&moved));
        Ok(sharing.as_ref().map_or(0.0, SharingProfile::lost_cycles))
    }

    /// The run's cycles in a profile of this trace as it is.
    pub fn cycles(&self, profile: &Profile) -> Cycles {
        Cycles::of_run(profile, &self.costs(profile), self.machine)
    }

    /// The kernel's cycles for the fresh memory of this trace as it is.
    pub(crate) fn fresh_cycles(&self, profile: &Profile) -> f64 {
        FreshMemory::of(profile).cycles(self.machine, &FxHashMap::default())
    }

    /// The run's cycles in a prediction, with these costs; `as_it_is` is the profile without the plan.
    pub fn cycles_under(
        &self,
        plan: &Plan,
        (predicted, costs): (&Prediction, &CostModel),
        as_it_is: &Profile,
    ) -> Cycles {
        let fresh = FreshMemory::of(as_it_is).under(&predicted.profile, plan, predicted.footprint);
        let kernel = fresh.cycles(self.machine, &plan.pages());
        Cycles::of(&predicted.profile, costs, self.machine, kernel)
    }

    /// Finds how far a run's cycles vary with the placement of its objects alone, on a part of the
    /// trace.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn noise(&self, part: &TracePart, look: Look) -> Result<Noise, Unpredictable> {
        let plain = Plan::default();
        let seeds: Vec<u64> = match look {
            Look::First => part.seeds(1..4, self.machine.line_bytes.into()),
            Look::Close => part.seeds(0..PLACEMENTS, self.machine.line_bytes.into()),
        };
        let placed = side_by_side(self, &seeds, |predictor, &seed| part.under(predictor, &plain, Some(seed)));
        let run: Result<Vec<f64>, Unpredictable> =
            placed.into_iter().map(|cycles| Ok(cycles?.run / part.cycles.run.max(1.0))).collect();
        Ok(Noise { chunks: part.chunks(), accesses: part.accesses, run: run? })
    }

    /// Finds what a plan changes on a part of the trace, by placement: `noise` are the runs without it,
    /// looked at closely.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the blocks not be placed.
    pub fn pairs(&self, plan: &Plan, part: &TracePart, noise: &Noise) -> Result<Pairs, Unpredictable> {
        let seeds = part.seeds(0..noise.run.len() as u64, self.machine.line_bytes.into());
        let seeds: Vec<(u64, f64)> = seeds.into_iter().zip(noise.run.iter().copied()).collect();
        let ratios = side_by_side(self, &seeds, |predictor, &(seed, without)| {
            let with = part.under(predictor, plan, Some(seed))?;
            Ok(with.run / f64::max(without * part.cycles.run, 1.0))
        });
        let ratios: Result<Vec<f64>, Unpredictable> = ratios.into_iter().collect();
        Ok(Pairs { ratios: ratios? })
    }

    /// A simulation of a source, with objects where they were.
    pub(crate) fn simulation<'s>(&'s self, source: &'s Source) -> Simulation<'s> {
        Simulation::of(source, self.machine).threads(self.threads)
    }

    /// Counts a number of chunks by a simulation.
    pub(crate) fn count_of(
        &self,
        simulation: Simulation<'_>,
        setup: Option<&Setup>,
        chunks: usize,
        watch: impl Fn(usize) + Sync,
    ) -> Result<(Profile, Replayed), Unpredictable> {
        let watch = |done: usize| {
            watch(done);
            self.go_on(done, chunks)
        };
        let counted = match setup {
            None => simulation.count(watch)?,
            Some(setup) => {
                let (found, replayed) = simulation.causes(setup, watch)?;
                (found.profile, replayed)
            }
        };
        if self.host.is_stopped() { Err(Unpredictable::Stopped) } else { Ok(counted) }
    }

    /// Ends a replay with the last of its chunks, or when it is stopped.
    fn go_on(&self, done: usize, chunks: usize) -> ControlFlow<()> {
        if done >= chunks || self.host.is_stopped() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Makes several predictions, each on a thread of its own, as many at a time as the predictor may use. One thread replays a short
/// part about as fast as several do.
pub fn side_by_side<T: Sync, R: Send>(
    predictor: &Predictor<'_>,
    all: &[T],
    ask: impl Fn(&Predictor<'_>, &T) -> R + Sync,
) -> Vec<R> {
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let alone = || Predictor { trace: predictor.trace.clone(), threads: 1, ..*predictor };
    let work = || {
        let predictor = alone();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(number) else { return };
            let answer = ask(&predictor, one);
            answers.lock().unwrap_or_else(PoisonError::into_inner).push((number, answer));
        }
    };
    std::thread::scope(|scope| {
        (1..predictor.threads.min(all.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
