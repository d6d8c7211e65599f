//! Results of a trace as tables: those of a report, which is kept beside the trace or made once, and those of analyses.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use memlode_analyses::{BadArgument, BadPart, Reads, all, findings_of, parts};
use memlode_attribute::sharing::sharing;
use memlode_attribute::{CostModel, Profile, Simulation, Source, has_gaps};
use memlode_export::tables::{Counted, ExportedTable, ReportTable, of_analysis};
use memlode_machine::Machine;
use memlode_report::notes::{is_empty, nothing_decoded, nothing_recorded};
use memlode_report::{CommandAnswer, CommandFindings, Report, build};
use memlode_results::{Lookup, MachineIdentity, Question, is_off};
use memlode_trace::Trace;
use pyo3::prelude::*;

use crate::PATIENCE;

/// Names of all tables: those of a report first, then those of analyses of every access.
pub fn names() -> Vec<&'static str> {
    let of_rows = all().into_iter().filter(|known| known.meta.reads == Reads::Rows);
    let of_analyses = of_rows.flat_map(|known| known.meta.tables.iter().map(|table| table.id));
    ReportTable::ALL.iter().map(|table| table.name()).chain(of_analyses).collect()
}

/// A report on a trace.
struct Reported {
    machine: Machine,
    report: Report,
    /// The counts of the report; `None` if it was a kept one.
    counted: Option<(Profile, CostModel)>,
}

/// Results of a trace so far, by machine.
#[derive(Default)]
pub struct Results {
    reports: Mutex<Vec<(MachineIdentity, Reported)>>,
    tables: Mutex<Vec<(MachineIdentity, Arc<ExportedTable>)>>,
}

/// The reason why there is no table.
pub enum NoTable {
    /// Nothing can be found out, or there is no such table.
    Failed(String),
    /// The analysis makes it with other arguments than its defaults.
    NotMade(String),
}

impl From<String> for NoTable {
    fn from(why: String) -> NoTable {
        NoTable::Failed(why)
    }
}

/// Warnings: a kept file that is unusable.
pub type Asides = Vec<String>;

impl Results {
    /// Returns a table by its name.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn table(
        &self,
        trace: &Arc<Trace>,
        machine: &str,
        name: &str,
        (stop, asides): (&AtomicBool, &mut Asides),
    ) -> Result<Arc<ExportedTable>, NoTable> {
        let simulated = Machine::find(machine).map_err(|why| why.to_string())?;
        let identity = MachineIdentity::of(&simulated.name, &simulated);
        let known = |tables: &[(MachineIdentity, Arc<ExportedTable>)]| {
            let found = tables.iter().find(|(of, table)| *of == identity && table.name == name);
            found.map(|(_, table)| table.clone())
        };
        if let Some(table) = known(&locked(&self.tables)) {
            return Ok(table);
        }
        let made = match ReportTable::ALL.into_iter().find(|table| table.name() == name) {
            Some(table) => vec![self.of_report(trace, simulated, table, (stop, asides))?],
            None => of_analysis_with(trace, machine, name)?,
        };
        let mut tables = locked(&self.tables);
        tables.extend(made.into_iter().map(|table| (identity.clone(), Arc::new(table))));
        let why = || {
            format!(
                "{name} is not among the tables that its analysis makes without arguments: ask memlode.run with them"
            )
        };
        known(&tables).ok_or_else(|| NoTable::NotMade(why()))
    }

    fn of_report(
        &self,
        trace: &Arc<Trace>,
        machine: Machine,
        table: ReportTable,
        (stop, asides): (&AtomicBool, &mut Asides),
    ) -> Result<ExportedTable, String> {
        let identity = MachineIdentity::of(&machine.name, &machine);
        let mut reports = locked(&self.reports);
        let known = reports.iter().find(|(of, _)| *of == identity);
        if let Some(made) = known.and_then(|(_, reported)| reported.table(trace, table)) {
            return Ok(made);
        }
        let kept = if table == ReportTable::Sites { None } else { kept(trace, &identity, asides) };
        let reported = match kept {
            Some(report) => Reported { machine, report, counted: None },
            None => Reported::compute(trace, machine, &identity, stop)?,
        };
        let made = reported.table(trace, table);
        reports.retain(|(of, _)| *of != identity);
        reports.push((identity, reported));
        made.ok_or_else(|| format!("the table {} was not made", table.name()))
    }
}

fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The question that `memlode report` asks without options.
fn question(machine: &MachineIdentity) -> Question {
    let machines = vec![machine.clone()];
    Question { command: "report".to_string(), machines, ..Question::default() }
}

/// The report that is kept beside a trace, if one is.
fn kept(trace: &Trace, machine: &MachineIdentity, asides: &mut Asides) -> Option<Report> {
    let asked = if is_off() { None } else { Lookup::new(question(machine), &[trace]) }?;
    let found = asked.find::<CommandAnswer>().unwrap_or_else(|unusable| {
        asides.push(format!("{unusable}; the answer is computed anew"));
        None
    });
    match found?.answer {
        CommandAnswer { found: CommandFindings::Report(report), .. } => Some(*report),
        _ => None,
    }
}

impl Reported {
    /// Makes a table; `None` for tables that need the counts, if there are none.
    fn table(&self, trace: &Trace, table: ReportTable) -> Option<ExportedTable> {
        let Reported { machine, report, counted } = self;
        match counted {
            Some((profile, costs)) => {
                Some(table.of(&Counted { trace, machine, profile, costs, report, is_part: false }))
            }
            None => table.of_report(trace, report),
        }
    }

    /// Replays a trace for a report, and keeps this beside it, as `memlode report` does.
    fn compute(
        trace: &Arc<Trace>,
        machine: Machine,
        identity: &MachineIdentity,
        stop: &AtomicBool,
    ) -> Result<Reported, String> {
        if is_empty(trace) {
            return Err(nothing_recorded(trace));
        }
        let source = Source::Stored(trace.clone());
        let workers = thread::available_parallelism().map_or(1, |count| count.get()).min(16);
        let watch = |_| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let replay = Simulation::of(&source, &machine).threads(workers);
        let (profile, replayed) = replay
            .count(watch)
            .map_err(|why| format!("the machine {} cannot be simulated: {why}", machine.name))?;
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted".to_string());
        }
        if let Some(why) = nothing_decoded(trace, &replayed) {
            return Err(why);
        }
        let losses = match has_gaps(trace) {
            true => None,
            false => sharing(trace, &profile, &machine, None, workers),
        };
        let costs = CostModel::new(&profile, trace.sites(), &machine);
        let report = build::report(build::Inputs {
            trace,
            machine: &machine,
            profile: &profile,
            costs: &costs,
            replayed: &replayed,
            sharing: losses.as_ref(),
            findings: findings_of(trace, &machine, &profile, &costs),
        });
        let answer = CommandAnswer::from(CommandFindings::Report(Box::new(report)));
        if let Some(asked) = if is_off() { None } else { Lookup::new(question(identity), &[trace]) } {
            // Where nothing can be written, it is computed again the next time.
            let _ = asked.keep(&answer);
        }
        match answer.found {
            CommandFindings::Report(report) => {
                Ok(Reported { machine, report: *report, counted: Some((profile, costs)) })
            }
            _ => Err("a report was asked for, and something else was found".to_string()),
        }
    }
}

/// All tables of the analysis that fills the one of this name.
fn of_analysis_with(trace: &Trace, machine: &str, name: &str) -> Result<Vec<ExportedTable>, String> {
    let fills = |known: &memlode_analyses::Registered| {
        known.meta.reads == Reads::Rows && known.meta.tables.iter().any(|table| table.id == name)
    };
    let Some(known) = all().into_iter().find(fills) else {
        return Err(format!("there is no table {name}; there are {}", names().join(", ")));
    };
    if is_empty(trace) {
        return Err(nothing_recorded(trace));
    }
    let questions = [known.meta.id.to_string()];
    let tasks = parts::plan(trace, machine, &questions, 1).map_err(|BadArgument(why)| why)?;
    let results: Result<Vec<Vec<u8>>, String> = tasks.iter().map(|task| task.run(|_| None)).collect();
    let results = results?;
    let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
    let finished = parts::finish(&results, None).map_err(|bad: BadPart| bad.to_string())?;
    let found: Vec<_> = finished.found.into_iter().flat_map(|found| found.tables).collect();
    let analysis = build::analysis(&finished.trace, &finished.machine, &found, &Default::default());
    let made = analysis.tables.iter().zip(&found).map(|(table, found)| of_analysis(table, &found.holds));
    Ok(made.collect())
}

/// Does long work without Python's lock, and looks meanwhile whether the user has pressed Ctrl-C, which raises `stop`.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let stop = &AtomicBool::new(false);
    py.detach(|| {
        thread::scope(|scope| {
            let (done, finished) = mpsc::channel();
            scope.spawn(move || done.send(work(stop)));
            loop {
                match finished.recv_timeout(PATIENCE) {
                    Ok(found) => return Ok(found),
                    Err(RecvTimeoutError::Timeout) => {
                        Python::attach(|py| py.check_signals()).inspect_err(|_| {
                            stop.store(true, Ordering::Relaxed);
                        })?;
                    }
                    // The scope says on which line it panicked.
                    Err(RecvTimeoutError::Disconnected) => return Err(crate::error("memlode failed")),
                }
            }
        })
    })
}
