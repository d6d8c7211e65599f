//! The path from a request about a trace, stored or still being written, to its results, with
//! progress shown.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use memlode_analyses::parts::{Cut, finish, plan};
use memlode_analyses::{BadArgument, Run, Table, findings_of};
use memlode_attribute::setup::Setup;
use memlode_attribute::sharing::{Order, SharingProfile, sharing};
use memlode_attribute::simulators::{caches, detailed};
use memlode_attribute::{CostModel, DetailedProfile, Profile, Simulation, Source, TimedProfile, has_gaps};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_report::notes::{is_empty, nothing_decoded, nothing_recorded};
use memlode_report::{CommandAnswer, CommandFindings, Note, build};
use memlode_trace::Trace;

use crate::accesses;
use crate::args::part::Part;
use crate::processes;
use crate::term;
use crate::{host, memory};

/// The question.
pub enum Wanted {
    /// Which data misses, and the time that threads lose to each other; in this order, if one is
    /// requested.
    Report(Option<Order>),
    /// The same, of a part of the accesses.
    Part(Box<Part>),
    /// Why, with the machine set up this way; and the time that threads lose to each other, in this
    /// order, if one is requested.
    Simulation(Box<Setup>, Option<Order>),
    /// Times of accesses, with the machine set up so.
    Timing(Box<Setup>),
    /// Findings of some analyses of every access.
    Accesses(Run),
}

/// The findings.
pub enum Found {
    /// Counts, their part of the trace if they are a part, and the time that threads lose to each
    /// other.
    Report(Box<Profile>, Option<Note>, Option<Box<SharingProfile>>),
    /// Counts and causes, and the time that threads lose to each other.
    Simulation(Box<DetailedProfile>, Option<Box<SharingProfile>>),
    /// Counts and times.
    Timing(Box<TimedProfile>),
    /// Tables.
    Accesses(Vec<Table>),
}

/// A question, and the machine that it is about.
pub struct Job {
    /// The machine.
    pub machine: Machine,
    /// The question.
    pub wanted: Wanted,
    /// The counts of a report distinguish call paths.
    pub by_path: bool,
}

/// The findings about a trace on a machine.
pub struct Analysed {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The machine.
    pub machine: Machine,
    /// The findings.
    pub found: Found,
    /// The chunks that were decoded, and those that could not be.
    pub replayed: Replayed,
}

impl Job {
    /// Finds the machine. A mistyped name is reported before minutes of work.
    pub fn new(machine: &str, wanted: impl FnOnce(&Machine) -> Result<Wanted>) -> Result<Job> {
        let machine = host::machine(machine)?;
        Ok(Job { wanted: wanted(&machine)?, machine, by_path: false })
    }

    /// Sees whether the machine can be simulated so, for who has no trace yet to try it on.
    pub fn check(&self) -> Result<()> {
        let possible = match &self.wanted {
            Wanted::Report(_) | Wanted::Part(_) | Wanted::Accesses(_) => {
                caches(&self.machine, 1).map(drop).map_err(Into::into)
            }
            Wanted::Simulation(setup, _) | Wanted::Timing(setup) => {
                // Whether it is one core or many does not matter, but for the memory.
                let one = Setup { cores: Vec::new(), ..(**setup).clone() };
                detailed(&self.machine, &one, 1).map(drop)
            }
        };
        possible.with_context(|| self.impossible())
    }

    /// Does the work on a trace that is complete.
    pub fn run(self, trace: Arc<Trace>) -> Result<Analysed> {
        self.refuse(&trace)?;
        let what = if matches!(self.wanted, Wanted::Accesses(_)) { "replaying" } else { "simulating" };
        let bar = term::Progress::of(&trace, what);
        let source = Source::Stored(trace.clone());
        let (machine, (found, replayed)) = self.find(&source, |done| bar.advance_to(done))?;
        bar.finish();
        Analysed::new(trace, machine, found, replayed)
    }

    /// Cuts a complete trace into parts for analyses of every access, and runs each in a process of
    /// its own. `machine` is this job's by the name that the processes find it by, and
    /// `questions` are its analyses.
    pub fn run_in_parts(
        self,
        trace: &Trace,
        machine: &str,
        questions: &[String],
        processes: u32,
    ) -> Result<CommandAnswer> {
        self.refuse(trace)?;
        let planned = plan(trace, machine, questions, processes);
        let tasks = planned.map_err(|BadArgument(why)| anyhow!(why))?;
        let whole = tasks.iter().find(|task| task.cut == Cut::Whole).filter(|_| processes > 1);
        if let Some(task) = whole {
            let questions: Vec<&str> = task.questions.iter().map(|(_, question)| question.as_str()).collect();
            term::note(&format!("not cut into parts, but one task: {}", questions.join(", ")));
        }
        let bar = term::Progress::new(tasks.len() as u64, "replaying");
        let done = Cell::new(0);
        let results = processes::run(tasks, processes as usize, || {
            done.set(done.get() + 1);
            bar.advance_to(done.get());
        });
        let results = results?;
        bar.finish();
        let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
        let finished = finish(&results, Some(trace.directory().to_owned()))?;
        finished.peak_bytes.into_iter().for_each(memory::note_part);
        let analysis = build::analysis_in_parts(finished).map_err(|why| anyhow!(why))?;
        Ok(CommandFindings::Analysis(analysis).into())
    }

    /// Refuses a trace that cannot answer.
    fn refuse(&self, trace: &Trace) -> Result<()> {
        if is_empty(trace) {
            bail!("{}", nothing_recorded(trace));
        }
        if matches!(&self.wanted, Wanted::Accesses(run) if run.reads_values()) && !trace.sites().has_values()
        {
            let directory = trace.directory().display();
            bail!(
                "{directory}: no values were recorded: build the program with --values, and record it again"
            );
        }
        Ok(())
    }

    /// Does the work on any trace. `watch` receives the number of finished chunks now and then.
    pub fn find(self, source: &Source, watch: impl Fn(usize) + Sync) -> Result<(Machine, (Found, Replayed))> {
        let impossible = self.impossible();
        let Job { machine, wanted, by_path } = self;
        let watched = |done| {
            watch(done);
            ControlFlow::Continue(())
        };
        let simulation = Simulation::of(source, &machine).threads(threads());
        let found = match wanted {
            Wanted::Report(order) => {
                let found = simulation.by_path(by_path).count(watched).context(impossible)?;
                let sharing = losses(source, &found.0, &machine, order);
                (Found::Report(Box::new(found.0), None, sharing), found.1)
            }
            Wanted::Part(part) => {
                let (profile, replayed) = part.profile(source, &machine, threads(), watched)?;
                (Found::Report(Box::new(profile), Some(part.note()), None), replayed)
            }
            Wanted::Simulation(setup, order) => {
                let found = simulation.causes(&setup, watched).context(impossible)?;
                let order = order.map(Some);
                let sharing = order.and_then(|order| losses(source, &found.0.profile, &machine, order));
                (Found::Simulation(Box::new(found.0), sharing), found.1)
            }
            Wanted::Timing(setup) => {
                let found = simulation.time(&setup, watched).context(impossible)?;
                (Found::Timing(Box::new(found.0)), found.1)
            }
            Wanted::Accesses(analyses) => {
                let found = accesses::run(source, &machine, analyses, watch).context(impossible)?;
                (Found::Accesses(found.0), found.1)
            }
        };
        Ok((machine, found))
    }

    fn impossible(&self) -> String {
        format!("the machine {} cannot be simulated", self.machine.name)
    }
}

impl Analysed {
    /// Refuses an empty result.
    pub fn new(trace: Arc<Trace>, machine: Machine, found: Found, replayed: Replayed) -> Result<Analysed> {
        match nothing_decoded(&trace, &replayed) {
            Some(why) => bail!("{why}"),
            None => Ok(Analysed { trace, machine, found, replayed }),
        }
    }

    /// Returns the counts of the whole trace, if a report was asked for.
    pub fn counts(&self) -> Option<&Profile> {
        match &self.found {
            Found::Report(profile, None, _) => Some(profile),
            _ => None,
        }
    }

    /// Returns what a report is made of: counts, and what analyses find in them.
    pub fn inputs<'a>(
        &'a self,
        profile: &'a Profile,
        costs: &'a CostModel,
        sharing: Option<&'a SharingProfile>,
    ) -> build::Inputs<'a> {
        let Analysed { trace, machine, replayed, .. } = self;
        let findings = findings_of(trace, machine, profile, costs);
        build::Inputs { trace, machine, profile, costs, replayed, sharing, findings }
    }

    /// Names everything that was found.
    pub fn answer(&self) -> CommandAnswer {
        let Analysed { trace, machine, found, replayed } = self;
        let mut unmet_pages = Vec::new();
        let found = match found {
            Found::Report(profile, part, sharing) => {
                let costs = CostModel::new(profile, trace.sites(), machine);
                let mut report = build::report(self.inputs(profile, &costs, sharing.as_deref()));
                report.trace.notes.extend(part.clone());
                CommandFindings::Report(Box::new(report))
            }
            Found::Simulation(profile, sharing) => {
                unmet_pages.extend(profile.unmet_names());
                let costs = CostModel::new(&profile.profile, trace.sites(), machine);
                let inputs = self.inputs(&profile.profile, &costs, sharing.as_deref());
                let simulation = build::simulation(inputs, profile);
                CommandFindings::Simulation(Box::new(simulation))
            }
            Found::Timing(profile) => {
                CommandFindings::Timing(Box::new(build::timing(trace, machine, profile, replayed)))
            }
            Found::Accesses(tables) => {
                CommandFindings::Analysis(build::analysis(trace, machine, tables, replayed))
            }
        };
        CommandAnswer { unmet_pages, ..found.into() }
    }
}

/// Losses of threads to each other; `None` for a trace that is not stored, or for a sample.
fn losses(
    source: &Source,
    profile: &Profile,
    machine: &Machine,
    order: Option<Order>,
) -> Option<Box<SharingProfile>> {
    match source {
        Source::Stored(trace) if !has_gaps(trace) => {
            sharing(trace, profile, machine, order, threads()).map(Box::new)
        }
        _ => None,
    }
}

/// Each thread keeps the program's objects: more of them would cost memory and gain little.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(16)
}

/// Opens a trace.
pub fn open(directory: &Path) -> Result<Trace> {
    Ok(Trace::open(directory)?)
}
