//! A trace as it is, which changes are held against.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use memlode_attribute::setup::Setup;
use memlode_attribute::sharing::{Order, SharingProfile};
use memlode_attribute::values::{Number, SeenValues};
use memlode_attribute::{AliasRow, CostModel, HeapCall, Home, Profile};
use memlode_layout::Edit;
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;
use memlode_trace::layouts::LayoutId;

use super::trial::GLANCE;
use super::{AdviseError, EditOutcome};
use crate::aliased::{AliasedBuffers, aliased};
use crate::apart::{Apart, apart_now};
use crate::contended::{Contended, contended};
use crate::cost::Cycles;
use crate::heat::{RecordNames, heat};
use crate::host::Host;
use crate::hot_cold::Chart;
use crate::noise::{LEAST, Look, Noise, Verdict};
use crate::part::TracePart;
use crate::plan::{Plan, PlanInputs};
use crate::predict::{Predictor, Unpredictable};
use crate::remedies::remove::unread;
use crate::remedy::{Case, CaseSubject, Proposal, proposals};
use crate::uses::uses;
use crate::values::RecordedValues;

/// A first look at placements is at this part of the accesses.
const FIRST_LOOK: u64 = 16;

/// Accesses that it is at least at.
const FIRST_LEAST: u64 = 100_000;

/// A trace on a machine, counted as it is. What is not needed at once is found out when it is.
pub struct Baseline {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: Machine,
    setup: Option<Setup>,
    order: Option<Order>,
    threads: usize,
    host: Box<dyn Host>,
    /// The counts.
    pub profile: Profile,
    /// The chunks that were decoded, and those that could not be.
    pub replayed: Replayed,
    /// Its allocation calls, unless there are very many.
    calls: Option<Vec<HeapCall>>,
    /// A part that is quickly replayed.
    glance: OnceCell<TracePart>,
    /// Effects of placement alone, by a first look, and by a close one.
    first_look: OnceCell<Noise>,
    noise: OnceCell<Noise>,
    sharing: OnceCell<Option<SharingProfile>>,
    values: OnceCell<RecordedValues>,
    /// Accesses that were replayed to try edits.
    spent: Cell<u64>,
}

impl Baseline {
    /// Counts a trace, as `report` does or, with a set-up, by the machine's rules. The program's
    /// threads take lines from each other in
    /// `order`, if one is given; `threads` is how many threads replay.
    ///
    /// # Errors
    /// That the machine cannot be simulated, or that the host stops it.
    pub fn count(
        trace: Arc<Trace>,
        machine: Machine,
        (setup, order): (Option<Setup>, Option<Order>),
        threads: usize,
        host: Box<dyn Host>,
    ) -> Result<Baseline, Unpredictable> {
        let predictor = Predictor {
            trace: trace.clone(),
            machine: &machine,
            setup: setup.as_ref(),
            order,
            calls: None,
            threads,
            host: &*host,
        };
        let (profile, replayed, calls) = predictor.as_it_is_with_calls(host.progress("simulating"))?;
        let (glance, first_look, noise) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let (sharing, values) = (OnceCell::new(), OnceCell::new());
        let spent = Cell::new(0);
        Ok(Baseline {
            trace,
            machine,
            setup,
            order,
            threads,
            host,
            profile,
            replayed,
            calls,
            glance,
            first_look,
            noise,
            sharing,
            values,
            spent,
        })
    }

    /// Losses of its threads to each other.
    pub fn sharing(&self) -> Option<&SharingProfile> {
        self.sharing.get_or_init(|| self.predictor().sharing(&self.profile, None)).as_ref()
    }

    /// Its cycles.
    pub fn cycles(&self) -> Cycles {
        let lost = self.sharing().map_or(0.0, SharingProfile::lost_cycles);
        self.predictor().cycles(&self.profile).with_lost(lost)
    }

    /// Returns what predicts how it is under a plan.
    pub fn predictor(&self) -> Predictor<'_> {
        Predictor {
            trace: self.trace.clone(),
            machine: &self.machine,
            setup: self.setup.as_ref(),
            order: self.order,
            calls: self.calls.as_deref(),
            threads: self.threads,
            host: &*self.host,
        }
    }

    /// The name of the allocator that places its blocks under an edit; none if it has no blocks.
    pub fn placed_by(&self) -> Option<&str> {
        let has_heap = self.profile.classes.iter().any(|class| matches!(class.home, Home::Heap { .. }));
        has_heap.then(|| self.host.allocator_name())
    }

    /// All accesses of the trace.
    pub fn accesses(&self) -> u64 {
        self.trace.chunks().iter().map(|chunk| chunk.accesses()).sum()
    }

    /// Counts accesses that are replayed to try edits.
    pub(super) fn spend(&self, accesses: u64) {
        self.spent.set(self.spent.get().saturating_add(accesses));
    }

    /// Accesses that were replayed to try edits.
    pub(super) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Reports to the host the number of the type or group whose edits are tried now, and the
    /// number of all.
    pub(super) fn host_tries(&self, number: usize, of: usize) {
        self.host.tries(number, of);
    }

    /// Reports worthwhile edits to the host.
    pub(super) fn tell(&self, outcome: &EditOutcome) {
        self.host.found(&outcome.edits, outcome.gain());
    }

    /// A part of it that is quickly replayed, spread over all of it.
    ///
    /// # Errors
    /// If the trace cannot be replayed.
    pub(super) fn glance(&self) -> Result<&TracePart, Unpredictable> {
        if let Some(part) = self.glance.get() {
            return Ok(part);
        }
        let part = TracePart::of(&self.predictor(), GLANCE, &self.profile)?;
        Ok(self.glance.get_or_init(|| part))
    }

    /// Returns what placement alone changes: as it was found out before, or now.
    ///
    /// # Errors
    /// If the trace cannot be replayed.
    pub fn noise(&self) -> Result<&Noise, Unpredictable> {
        if let Some(noise) = self.noise.get() {
            return Ok(noise);
        }
        let noise = self.looked(Look::Close)?;
        Ok(self.noise.get_or_init(|| noise))
    }

    /// Returns what a first look says that placement alone changes.
    fn first_look(&self) -> Result<&Noise, Unpredictable> {
        if let Some(noise) = self.first_look.get() {
            return Ok(noise);
        }
        let noise = self.looked(Look::First)?;
        Ok(self.first_look.get_or_init(|| noise))
    }

    /// Looks at placements, or reads what was kept of that.
    fn looked(&self, look: Look) -> Result<Noise, Unpredictable> {
        let rules = match &self.setup {
            None => "report".to_string(),
            Some(setup) if setup.cores.is_empty() => "sim".to_string(),
            Some(Setup { cores, .. }) => format!("sim on cores {cores:?}"),
        };
        let folder = self.trace.folder();
        if let Some(noise) = folder.and_then(|folder| Noise::kept(folder, look, &self.machine, &rules)) {
            return Ok(noise);
        }
        let predictor = self.predictor();
        let noise = match look {
            Look::First => {
                let most = (self.accesses() / FIRST_LOOK).clamp(FIRST_LEAST, GLANCE);
                predictor.noise(&TracePart::of(&predictor, most, &self.profile)?, look)?
            }
            Look::Close => predictor.noise(self.glance()?, look)?,
        };
        if let Some(folder) = folder {
            noise.keep(folder, look, &self.machine, &rules);
        }
        Ok(noise)
    }

    /// Understands edits.
    ///
    /// # Errors
    /// The edit that cannot be made, and why.
    pub fn plan(&self, edits: &[Edit]) -> Result<Plan, AdviseError> {
        let plan = self.with_inputs(|inputs| Plan::new(inputs, edits))?;
        for edit in edits {
            if let Edit::Narrow { structure, member, to } = edit
                && let Some(seen) = self.seen(structure, member).filter(|seen| !seen.fits(*to))
            {
                return Err(AdviseError::Value {
                    edit: edit.to_string(),
                    value: seen.widest().to_string(),
                    to: *to,
                });
            }
        }
        Ok(plan)
    }

    /// Values of a member, if they were recorded.
    pub fn seen(&self, structure: &str, member: &str) -> Option<SeenValues> {
        self.values().of_member(self.trace.sites(), structure, member)
    }

    /// Returns the one value that a member had, and how often it was recorded. `None` if it had
    /// others, and for a member that no code reads.
    pub fn constant(&self, structure: &str, member: &str) -> Option<(Number, u64)> {
        let found = self.values().constant(self.trace.sites(), structure, member)?;
        let unread = self.with_inputs(|inputs| unread(inputs, structure)).unwrap_or_default();
        (!unread.iter().any(|other| other == member)).then_some(found)
    }

    fn values(&self) -> &RecordedValues {
        self.values.get_or_init(|| RecordedValues::of(&self.trace, self.threads.saturating_sub(1)))
    }

    /// Finds edits of a record that may be worth it; `chart` has its members marked, if it is live.
    pub fn of_record(&self, record: LayoutId, chart: Option<&Chart>) -> Vec<Proposal> {
        let names = self.trace.sites();
        let records = RecordNames::of(names, &self.profile);
        let heat = heat(names, &self.profile, (record, &records));
        // One member has no other place.
        let Some(heat) = heat.filter(|heat| heat.hottest_first().len() > 1) else { return Vec::new() };
        let line_bytes = self.machine.line_bytes.into();
        let subject = CaseSubject::Record { heat: &heat, chart, line_bytes };
        self.with_inputs(|inputs| proposals(&Case { inputs, subject }))
    }

    /// Finds edits of objects that may be worth it.
    pub fn proposals(&self) -> Vec<Proposal> {
        let (run, machine, values) = (self.cycles().run, &self.machine, self.values());
        self.with_inputs(|inputs| {
            let costs = CostModel::new(inputs.profile, inputs.names, machine);
            let uses = uses(inputs, &costs, run);
            proposals(&Case { inputs, subject: CaseSubject::Objects { uses: &uses, values, machine } })
        })
    }

    /// Finds objects that threads take from each other, with edits that may be worth it.
    pub fn contended(&self) -> Vec<Contended> {
        let run = self.cycles().run;
        let Some(found) = self.sharing() else { return Vec::new() };
        self.with_inputs(|inputs| contended(inputs, found, run))
    }

    /// Finds arrays of which threads lose next to nothing to each other as they lie now.
    pub fn apart_now(&self) -> Vec<Apart> {
        let run = self.cycles().run;
        let Some(found) = self.sharing() else { return Vec::new() };
        self.with_inputs(|inputs| apart_now(inputs, found, run))
    }

    /// Finds buffers whose loads agree with stores to another one in the low 12 bits.
    pub fn aliased(&self, rows: &[AliasRow<Home>], accesses: u64) -> Vec<AliasedBuffers> {
        self.with_inputs(|inputs| aliased(inputs, rows, accesses))
    }

    /// Finds the cycles that its threads lose to each other under edits, if lines are taken in
    /// pairs.
    ///
    /// # Errors
    /// An edit that cannot be made, or blocks that cannot be placed.
    pub fn lost_in_pairs(&self, edits: &[Edit]) -> Result<f64, AdviseError> {
        let plan = self.plan(edits)?;
        Ok(self.predictor().lost_in_pairs(&self.profile, &plan, &mut self.host.allocators())?)
    }

    /// Finds the cycles that its threads lose to each other under edits.
    ///
    /// # Errors
    /// An edit that cannot be made, or blocks that cannot be placed.
    pub fn lost_under(&self, edits: &[Edit]) -> Result<f64, AdviseError> {
        let plan = self.plan(edits)?;
        Ok(self.predictor().lost_under(&self.profile, &plan, &mut self.host.allocators())?)
    }

    fn with_inputs<R>(&self, work: impl FnOnce(&PlanInputs<'_>) -> R) -> R {
        let nodes = self.setup.as_ref().map(|_| self.machine.nodes);
        let written = |linkage: &str| self.host.written(linkage);
        let line_bytes = self.machine.line_bytes.into();
        let (names, profile) = (self.trace.sites(), &self.profile);
        work(&PlanInputs { names, profile, written: &written, nodes, line_bytes })
    }

    /// Replays all of it under edits.
    ///
    /// # Errors
    /// An edit that cannot be made, and those of a replay.
    pub fn outcome(&self, edits: &[Edit]) -> Result<EditOutcome, AdviseError> {
        let (plan, predictor) = (self.plan(edits)?, self.predictor());
        self.spend(self.accesses());
        let progress = self.host.progress("replaying");
        let predicted = predictor.under(&plan, &mut self.host.allocators(), progress)?;
        let before = self.cycles();
        let parallelism = predictor.costs(&self.profile).parallelism().clone();
        let costs = predictor.costs_under(&predicted.profile, &plan, &parallelism);
        let sharing = predictor.sharing(&predicted.profile, Some(&predicted.moved));
        let lost = sharing.as_ref().map_or(0.0, SharingProfile::lost_cycles);
        let after = predictor.cycles_under(&plan, (&predicted, &costs), &self.profile).with_lost(lost);
        let (verdict, range) = self.judged(&plan, before.run, after.run)?;
        Ok(EditOutcome {
            edits: edits.to_vec(),
            plan,
            predicted,
            costs,
            sharing,
            before,
            after,
            verdict,
            range,
        })
    }

    /// Judges a change of the run's cycles, and what it had to exceed. Placements are looked at closely
    /// where they decide, and a change that some of them could make is looked at in pairs.
    fn judged(&self, plan: &Plan, before: f64, after: f64) -> Result<(Verdict, Option<f64>), AdviseError> {
        let is_none = (after - before).abs() < LEAST * before;
        if self.noise.get().is_none() {
            if is_none {
                return Ok((Verdict::Neutral, None));
            }
            let look = self.first_look()?;
            if let Some(verdict) = look.first_verdict(before, after) {
                return Ok((verdict, Some(look.at_most())));
            }
        }
        let noise = self.noise()?;
        let verdict = noise.verdict(before, after);
        if verdict != Verdict::Neutral || is_none {
            return Ok((verdict, Some(noise.range())));
        }
        match self.predictor().pairs(plan, self.glance()?, noise) {
            Ok(pairs) => Ok((pairs.verdict(before, after), Some(pairs.range()))),
            Err(Unpredictable::Placement(_)) => Ok((verdict, Some(noise.range()))),
            Err(why) => Err(why.into()),
        }
    }

    /// The part of the accesses to memory of unknown origin or content.
    pub fn unknown_objects(&self) -> f64 {
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
