//! A trace as it is and as it would be, for the commands that compare.

use std::cell::OnceCell;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use memlode_attribute::setup::Setup;
use memlode_attribute::sharing::{Order, SharingProfile};
use memlode_attribute::{AliasRow, Home, Profile};
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_report::build;
use memlode_report::names::demangle_short;
use memlode_report::notes::{is_empty, nothing_decoded, nothing_recorded, sentences};
use memlode_report::{Confidence, MemoryUse, Narrowed, Report, WhatIf};
use memlode_trace::Trace;
use memlode_whatif::cost::Cycles;
use memlode_whatif::noise::Noise;
use memlode_whatif::placement::Footprint;
use memlode_whatif::plan::{Plan, PlanDoubt, PlanInputs};
use memlode_whatif::predict::Question;
use memlode_whatif::proposals::aliasing::{self, AliasedBuffers};
use memlode_whatif::proposals::threads::{self, Apart, Contended};
use memlode_whatif::proposals::{Proposal, proposals};
use memlode_whatif::values::{RecordedValues, Seen};

use crate::analyse;
use crate::term;

/// A trace on a machine, counted as it is.
pub struct AsItIs {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: Machine,
    setup: Option<Setup>,
    /// The counts.
    pub profile: Profile,
    /// The chunks that were decoded, and those that could not be.
    pub replayed: Replayed,
    noise: OnceCell<Noise>,
    order: Option<Order>,
    sharing: OnceCell<Option<SharingProfile>>,
    values: OnceCell<RecordedValues>,
}

impl AsItIs {
    /// Counts a trace, as `report` does or with a machine's rules.
    pub fn count(
        trace: Trace,
        machine: Machine,
        setup: Option<Setup>,
        order: Option<Order>,
    ) -> Result<AsItIs> {
        if is_empty(&trace) {
            bail!("{}", nothing_recorded(&trace));
        }
        let trace = Arc::new(trace);
        let bar = term::Progress::of(&trace, "simulating");
        let question = Question {
            trace: trace.clone(),
            machine: &machine,
            setup: setup.as_ref(),
            order,
            threads: analyse::threads(),
        };
        let counted = question.as_it_is(|done| bar.advance_to(done));
        let (profile, replayed) =
            counted.with_context(|| format!("the machine {} cannot be simulated", machine.name))?;
        bar.finish();
        if let Some(why) = nothing_decoded(&trace, &replayed) {
            bail!("{why}");
        }
        for note in sentences(&trace, Some(&replayed)) {
            term::note(&note);
        }
        let (noise, sharing, values) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(AsItIs { trace, machine, setup, profile, replayed, noise, order, sharing, values })
    }

    /// Returns what was counted already.
    pub fn of(
        trace: Arc<Trace>,
        machine: Machine,
        profile: Profile,
        sharing: Option<SharingProfile>,
        replayed: Replayed,
    ) -> AsItIs {
        let (noise, sharing, values) = (OnceCell::new(), OnceCell::from(sharing), OnceCell::new());
        AsItIs { trace, machine, setup: None, profile, replayed, noise, order: None, sharing, values }
    }

    /// Losses of its threads to each other.
    pub fn sharing(&self) -> Option<&SharingProfile> {
        self.sharing.get_or_init(|| self.question().sharing(&self.profile, None)).as_ref()
    }

    /// Its cycles.
    pub fn cycles(&self) -> Cycles {
        let lost = self.sharing().map_or(0.0, SharingProfile::lost_cycles);
        self.question().cycles(&self.profile).with_lost(lost)
    }

    /// Returns what is asked of it.
    pub fn question(&self) -> Question<'_> {
        Question {
            trace: self.trace.clone(),
            machine: &self.machine,
            setup: self.setup.as_ref(),
            order: self.order,
            threads: analyse::threads(),
        }
    }

    /// Its report.
    pub fn report(&self) -> Report {
        build::report(&self.trace, &self.machine, &self.profile, &self.replayed, self.sharing())
    }

    /// Returns what placement alone changes: as it was found out before, or now.
    pub fn noise(&self) -> Result<&Noise> {
        if let Some(noise) = self.noise.get() {
            return Ok(noise);
        }
        let rules = match &self.setup {
            None => "report".to_string(),
            Some(setup) if setup.cores.is_empty() => "sim".to_string(),
            Some(Setup { cores, .. }) => format!("sim on cores {cores:?}"),
        };
        let folder = self.trace.folder();
        let noise = match folder.and_then(|folder| Noise::kept(folder, &self.machine, &rules)) {
            Some(noise) => noise,
            None => {
                let noise = self.question().noise(&self.profile)?;
                if let Some(folder) = folder {
                    noise.keep(folder, &self.machine, &rules);
                }
                noise
            }
        };
        Ok(self.noise.get_or_init(|| noise))
    }

    /// Edits, understood.
    pub fn plan(&self, edits: &[Edit]) -> Result<Plan> {
        let plan = Plan::new(&self.inputs(), edits)?;
        for edit in edits {
            if let Edit::Narrow { structure, member, to } = edit
                && let Some(seen) = self.seen(structure, member).filter(|seen| !seen.fits(*to))
            {
                bail!("`{edit}`: it had the value {}, which {to} bytes cannot hold", seen.widest());
            }
        }
        Ok(plan)
    }

    /// Values of a member, if they were recorded.
    fn seen(&self, structure: &str, member: &str) -> Option<Seen> {
        self.values().of_member(self.trace.sites(), structure, member)
    }

    fn values(&self) -> &RecordedValues {
        self.values.get_or_init(|| RecordedValues::of(&self.trace, analyse::threads().saturating_sub(1)))
    }

    /// Edits of objects that may be worth it.
    pub fn proposals(&self) -> Vec<Proposal> {
        proposals(&self.inputs(), self.values(), &self.machine, self.cycles().run)
    }

    /// Objects that threads take from each other, with edits that may be worth it.
    pub fn contended(&self) -> Vec<Contended> {
        let run = self.cycles().run;
        self.sharing().map_or(Vec::new(), |found| threads::proposals(&self.inputs(), found, run))
    }

    /// Arrays of which threads lose next to nothing to each other as they lie now.
    pub fn apart_now(&self) -> Vec<Apart> {
        let run = self.cycles().run;
        self.sharing().map_or(Vec::new(), |found| threads::apart_now(&self.inputs(), found, run))
    }

    /// Buffers whose loads agree with stores to another one in the low 12 bits.
    pub fn aliased(&self, rows: &[AliasRow<Home>], accesses: u64) -> Vec<AliasedBuffers> {
        aliasing::proposals(&self.inputs(), rows, accesses)
    }

    /// Cycles that its threads lose to each other under edits, if lines are taken in pairs.
    pub fn lost_in_pairs(&self, edits: &[Edit]) -> Result<f64> {
        let plan = self.plan(edits)?;
        Ok(self.question().lost_in_pairs(&self.profile, &plan, &mut crate::place::allocators())?)
    }

    /// Cycles that its threads lose to each other under edits.
    pub fn lost_under(&self, edits: &[Edit]) -> Result<f64> {
        let plan = self.plan(edits)?;
        Ok(self.question().lost_under(&self.profile, &plan, &mut crate::place::allocators())?)
    }

    fn inputs(&self) -> PlanInputs<'_> {
        let nodes = self.setup.as_ref().map(|_| self.machine.nodes);
        PlanInputs { names: self.trace.sites(), profile: &self.profile, written: &demangle_short, nodes }
    }

    /// Returns what would become of it under edits.
    pub fn under(&self, edits: &[Edit], plan: &Plan) -> Result<WhatIf> {
        let question = self.question();
        let bar = term::Progress::of(&self.trace, "replaying");
        let mut allocators = crate::place::allocators();
        let predicted = question.under(plan, &mut allocators, |done| bar.advance_to(done))?;
        bar.finish();
        let noise = self.noise()?;
        let before = self.cycles();
        let parallelism = question.costs(&self.profile).parallelism().clone();
        let costs = question.costs_under(&predicted.profile, plan, &parallelism);
        let sharing = question.sharing(&predicted.profile, Some(&predicted.moved));
        let lost = sharing.as_ref().map_or(0.0, SharingProfile::lost_cycles);
        let after = question.cycles_under(plan, (&predicted, &costs), &self.profile).with_lost(lost);
        let as_it_is = self.report();
        let (profile, replayed) = (&predicted.profile, &predicted.replayed);
        let as_it_would_be =
            build::report_costing(&self.trace, &self.machine, profile, replayed, sharing.as_ref(), &costs);
        let comparison =
            build::comparison(&as_it_is, &as_it_would_be, [before.run, after.run], Some(noise.range()));
        Ok(WhatIf {
            edits: edits.iter().map(ToString::to_string).collect(),
            verdict: noise.verdict(before.run, after.run),
            gain: (before.run - after.run) / before.run.max(1.0),
            footprint: footprint(predicted.footprint),
            confidence: self.confidence(edits, plan, &as_it_is),
            comparison,
            at: None,
            tried: Vec::new(),
        })
    }

    fn confidence(&self, edits: &[Edit], plan: &Plan, report: &Report) -> Confidence {
        let shares = &report.coverage.by_evidence;
        let named = ["source", "debug"].iter().filter_map(|kind| shares.get(kind)).sum();
        let mut held_by: Vec<String> =
            plan.doubts().iter().flat_map(|PlanDoubt::HeldByValue { outer, .. }| outer.clone()).collect();
        held_by.sort();
        held_by.dedup();
        let narrowed = |edit: &Edit| {
            let Edit::Narrow { structure, member, to } = edit else { return None };
            let values = self.seen(structure, member).map_or(0, |seen| seen.count);
            Some(Narrowed { member: format!("{structure}.{member}"), to: *to, values })
        };
        let has_heap = self.profile.classes.iter().any(|class| matches!(class.home, Home::Heap { .. }));
        Confidence {
            narrowed: edits.iter().filter_map(narrowed).collect(),
            named,
            unknown_objects: self.unknown_objects(),
            held_by,
            placed_by: has_heap.then(|| crate::place::NAME.to_string()),
        }
    }

    /// The part of the accesses to memory of unknown origin or content.
    fn unknown_objects(&self) -> f64 {
        let (mut all, mut unknown) = (0, 0);
        for cell in &self.profile.cells {
            let accesses = cell.counts.accesses();
            all += accesses;
            let class = &self.profile.classes[cell.class.0 as usize];
            let is_known = match class.home {
                Home::Unknown => false,
                Home::Heap { .. } => class.element.is_some(),
                Home::Global { .. } | Home::Stack { .. } => true,
            };
            unknown += if is_known { 0 } else { accesses };
        }
        unknown as f64 / all.max(1) as f64
    }
}

fn footprint(of: Footprint) -> MemoryUse {
    MemoryUse { objects: of.objects, bytes_before: of.before, bytes_after: of.after, objects_left: of.left }
}
