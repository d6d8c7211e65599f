//! A trace as it is, and as it would be.

use std::ops::ControlFlow;
use std::sync::Arc;

use memlode_attribute::simulator::{ImpossibleMachine, Setup};
use memlode_attribute::{
    AddressMap, CostModel, HeapCall, Parallelism, Profile, Source, heap_calls, profile_in_detail,
    profile_mapped, profile_mapped_in_detail, profile_trace,
};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;

use crate::allocator::AllocatorModel;
use crate::cost::Cycles;
use crate::moved::Moved;
use crate::noise::Noise;
use crate::placement::{Allocators, Footprint, place, place_calls};
use crate::plan::Plan;

/// Placements of the same objects that are tried to see what placement alone changes.
pub const PLACEMENTS: usize = 20;

/// So many accesses are enough for that.
const PART: u64 = 2_000_000;

/// A trace, and how it is simulated.
pub struct Question<'a> {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: &'a Machine,
    /// How the machine is set up, if its rules are simulated; else it is simulated as `report` does.
    pub setup: Option<&'a Setup>,
    /// Threads to use.
    pub threads: usize,
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
}

/// A trace under a plan.
pub struct Prediction {
    /// What was counted.
    pub profile: Profile,
    /// What could not be decoded.
    pub replayed: Replayed,
    /// The objects that the plan is about.
    pub footprint: Footprint,
}

impl Question<'_> {
    /// What is counted of the trace as it is.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn as_it_is(&self, watch: impl Fn(usize) + Sync) -> Result<(Profile, Replayed), Unpredictable> {
        self.count(None, usize::MAX, watch)
    }

    /// What is counted of the trace under a plan, of which `allocators` place the blocks.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or the blocks not be placed.
    pub fn under(
        &self,
        plan: &Plan,
        allocators: Allocators<'_>,
        watch: impl Fn(usize) + Sync,
    ) -> Result<Prediction, Unpredictable> {
        let placed = place(&self.trace, plan, self.threads.saturating_sub(1), allocators);
        let (moved, footprint) = placed.map_err(Unpredictable::Placement)?;
        let (profile, replayed) = self.count(Some(&moved), usize::MAX, watch)?;
        Ok(Prediction { profile, replayed, footprint })
    }

    /// What a profile of this trace costs; under an edit, if the parallelism is told that it has as it is.
    pub fn costs(&self, profile: &Profile, as_it_is: Option<&Parallelism>) -> CostModel {
        let names = self.trace.sites();
        match as_it_is {
            None => CostModel::new(profile, names, self.machine),
            Some(known) => CostModel::under_edit(profile, names, self.machine, known),
        }
    }

    /// The run's cycles in a profile of this trace as it is.
    pub fn cycles(&self, profile: &Profile) -> Cycles {
        Cycles::of(profile, &self.costs(profile, None), self.machine)
    }

    /// How far a run's cycles differ with the placement of its objects alone, of a part of the trace.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn noise(&self) -> Result<Noise, Unpredictable> {
        let part = self.part(PART)?;
        let plain = Plan::default();
        let mut run = Vec::new();
        for seed in 0..PLACEMENTS as u64 {
            run.push(part.under(self, &plain, Some(seed))?.run / part.cycles.run.max(1.0));
        }
        Ok(Noise { chunks: part.chunks, accesses: part.accesses, run })
    }

    /// The beginning of the trace: so many accesses, and a chunk more at most.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn part(&self, most: u64) -> Result<TraceStart, Unpredictable> {
        let mut accesses = 0_u64;
        let mut chunks = 0;
        for chunk in self.trace.chunks() {
            if accesses >= most {
                break;
            }
            chunks += 1;
            accesses += chunk.accesses();
        }
        let mut calls = Vec::new();
        heap_calls(&self.trace, chunks, self.threads.saturating_sub(1), |call| {
            calls.push(call);
            ControlFlow::Continue(())
        });
        // By the same road as its placements: others may be a few chunks further when they stop.
        let (profile, _) = self.count(Some(&Moved::default()), chunks, |_| {})?;
        let costs = self.costs(&profile, None);
        let mut part = TraceStart {
            chunks,
            accesses,
            calls,
            cycles: Cycles::of(&profile, &costs, self.machine),
            placed: Cycles::default(),
            parallelism: costs.parallelism().clone(),
        };
        part.placed = part.under(self, &Plan::default(), None)?;
        Ok(part)
    }

    /// Counts so many chunks.
    fn count(
        &self,
        map: Option<&dyn AddressMap>,
        chunks: usize,
        watch: impl Fn(usize) + Sync,
    ) -> Result<(Profile, Replayed), Unpredictable> {
        let source = Source::Stored(self.trace.clone());
        let watch = |done: usize| {
            watch(done);
            if done >= chunks { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let (machine, threads) = (self.machine, self.threads);
        Ok(match (self.setup, map) {
            (None, None) => {
                profile_trace(&source, machine, threads, watch).map_err(ImpossibleMachine::from)?
            }
            (None, Some(map)) => {
                profile_mapped(&source, machine, map, threads, watch).map_err(ImpossibleMachine::from)?
            }
            (Some(setup), None) => {
                let (found, replayed) = profile_in_detail(&source, machine, setup, threads, watch)?;
                (found.profile, replayed)
            }
            (Some(setup), map) => {
                let (found, replayed) =
                    profile_mapped_in_detail(&source, machine, setup, map, threads, watch)?;
                (found.profile, replayed)
            }
        })
    }
}

/// The beginning of a trace, and what was counted of it.
pub struct TraceStart {
    /// So many chunks.
    pub chunks: usize,
    /// So many accesses, about.
    pub accesses: u64,
    /// Its allocation calls.
    calls: Vec<HeapCall>,
    /// Its cycles as it is.
    pub cycles: Cycles,
    /// Its cycles when its blocks are placed by the model, as those of candidates are.
    pub placed: Cycles,
    /// How parallel its misses are as it is.
    parallelism: Parallelism,
}

impl TraceStart {
    /// The cycles of the part under a plan, placed by the model of glibc's malloc.
    ///
    /// # Errors
    /// That the machine cannot be simulated.
    pub fn under(
        &self,
        question: &Question<'_>,
        plan: &Plan,
        seed: Option<u64>,
    ) -> Result<Cycles, Unpredictable> {
        let mut model = |_| Ok(Box::new(AllocatorModel::new(seed)) as Box<_>);
        let placed = place_calls(&question.trace, plan, &self.calls, &mut model);
        let (moved, _) = placed.map_err(Unpredictable::Placement)?;
        let (profile, _) = question.count(Some(&moved), self.chunks, |_| {})?;
        let costs = question.costs(&profile, Some(&self.parallelism));
        Ok(Cycles::of(&profile, &costs, question.machine))
    }
}
