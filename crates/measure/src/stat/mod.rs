//! Counters of a program, run by run: what `memlode stat` measures.
//!
//! ```text
//!   round 1   run with group 1   run with group 2 …      a group's events are counted all the time of its run
//!   round 2   run with group 1   …
//! ```
//! No two events share a counter, so a count is no estimate; differences from run to run are in the
//! intervals. Events of the kernel are counted in each run.

mod compare;
mod functions;

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use memlode_counters::kernel::{CounterEvent, CounterGroup, Kernel, Reading, Target};
use memlode_counters::plan::{EventGroup, groups};
use memlode_counters::ratio::Ratio;
use memlode_counters::refusal::{Circumstances, CountRefusal};
use memlode_counters::software::Software;
use memlode_counters::stat::{EventCount, FORMAT, RatioFound, SoftwareCount, Stat, VERSION, ValueSource};
use memlode_counters::table::{EventTable, Formula};

pub use compare::compare;
pub use functions::{EventPeriod, sampled_functions};

use crate::Error;
use crate::process::Started;
use crate::stats::{Random, location, random};

/// The program to count, and how often.
#[derive(Clone, Debug)]
pub struct StatPlan {
    /// The command, for the result.
    pub command: Vec<String>,
    /// The process that runs already and is to be observed.
    pub pid: Option<u32>,
    /// Events of this processor, if they are known.
    pub table: Option<EventTable>,
    /// Rounds to make, at least 1: each has a run for each group of events.
    pub rounds: usize,
    /// Time after which no round begins; the first is always made.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// Counts a program. `run` runs it once, or lets a process go on for a while, and returns the
/// seconds that took; it receives the number of the round.
///
/// # Errors
/// Those of `run`, and that a process to observe is not there or not ours.
pub fn stat(
    plan: &StatPlan,
    kernel: &dyn Kernel,
    run: &mut dyn FnMut(usize) -> Result<f64, Error>,
) -> Result<Stat, StatError> {
    let mut each = |counting: &mut Counting<'_>, group: usize, round: usize| {
        let mut open = counting.open(group)?;
        open.start()
            .map_err(|error| StatError::Refused(counting.reason(&error, CounterEvent::Raw(0), false)))?;
        let took = run(round)?;
        Ok((open, took))
    };
    rounds(plan, &mut Counting::new(plan, kernel), &mut each)
}

/// Counts what a program does in its region `region`, which turns the counters on and off. `start`
/// starts the program with their descriptors, and `finish` returns the seconds that it took.
///
/// # Errors
/// Fails as `start` and `finish` do, and if the program never was in the region.
pub fn stat_of_region(
    plan: &StatPlan,
    region: &str,
    kernel: &dyn Kernel,
    start: &(dyn Fn(&[RawFd]) -> Result<Started, Error> + Sync),
    finish: &mut dyn FnMut(Started) -> Result<f64, Error>,
) -> Result<Stat, StatError> {
    let mut counting = Counting { target: Target::Region, ..Counting::new(plan, kernel) };
    let mut each = |counting: &mut Counting<'_>, group: usize, _: usize| {
        let begin = || {
            let open = counting.open(group)?;
            let started = start(&open.descriptors())?;
            Ok::<_, StatError>((open, started))
        };
        // Once the thread that started the program has ended, nothing of ours is counted with it.
        let begun = std::thread::scope(|scope| scope.spawn(begin).join());
        let (mut open, started) = begun.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))?;
        let took = finish(started)?;
        match open.was_on() {
            true => Ok((open, took)),
            false => Err(StatError::NoRegion(region.into())),
        }
    };
    let found = rounds(plan, &mut counting, &mut each)?;
    Ok(Stat { region: Some(region.into()), ..found })
}

/// Opens the counters of a group, runs the program once, and returns the seconds that it took.
type EachRun<'r> = dyn FnMut(&mut Counting<'_>, usize, usize) -> Result<(OpenCounters, f64), StatError> + 'r;

/// Makes the rounds of a plan.
fn rounds(plan: &StatPlan, counting: &mut Counting<'_>, each: &mut EachRun<'_>) -> Result<Stat, StatError> {
    let started = Instant::now();
    let mut seconds = Vec::new();
    for round in 0..plan.rounds.max(1) {
        if round > 0 && started.elapsed() >= plan.time {
            break;
        }
        for group in 0..counting.groups.len().max(1) {
            let (mut open, took) = match each(counting, group, round) {
                // It ended or was stopped, and what was counted until then counts.
                Err(
                    StatError::Refused(CountRefusal::NoProcess { .. }) | StatError::Run(Error::Interrupted),
                ) if !seconds.is_empty() => return Ok(counting.result(plan, seconds)),
                done => done?,
            };
            seconds.push(took);
            counting.keep(group, &mut open);
        }
        if counting.all_refused() {
            counting.groups.clear();
        }
    }
    Ok(counting.result(plan, seconds))
}

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum StatError {
    /// The program could not be run.
    #[error(transparent)]
    Run(#[from] Error),
    /// The process could not be observed at all.
    #[error("the process cannot be observed")]
    Refused(CountRefusal),
    /// The program never was in the region.
    #[error("the program never was in the region {0}")]
    NoRegion(String),
}

/// The counts of one thing, run by run, until something is refused.
#[derive(Clone, Debug, Default)]
struct Series {
    values: Vec<f64>,
    refusal: Option<CountRefusal>,
    user_only: bool,
}

impl Series {
    fn found(&self, random: &mut Random) -> ValueSource {
        match &self.refusal {
            Some(refusal) => ValueSource::Missing { refusal: refusal.clone() },
            None if self.values.is_empty() => {
                ValueSource::Missing { refusal: CountRefusal::NothingToDivideBy }
            }
            None => ValueSource::Measured {
                values: self.values.clone(),
                interval: location(&self.values, random),
                user_only: self.user_only,
            },
        }
    }
}

/// Counters that are open during one run.
struct OpenCounters {
    software: Vec<(Software, Box<dyn CounterGroup>)>,
    group: Option<Box<dyn CounterGroup>>,
}

impl OpenCounters {
    fn start(&mut self) -> std::io::Result<()> {
        let software = self.software.iter_mut().map(|(_, counter)| counter);
        software.chain(&mut self.group).try_for_each(|counter| counter.start())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let software = self.software.iter().map(|(_, counter)| counter);
        software.chain(&self.group).flat_map(|counter| counter.descriptors()).collect()
    }

    /// Returns whether some counter was on for a while, or none could be read.
    fn was_on(&mut self) -> bool {
        let software = self.software.iter_mut().map(|(_, counter)| counter);
        let mut readings =
            software.chain(&mut self.group).filter_map(|counter| counter.read().ok()).flatten();
        readings.next().is_none_or(|first| first.wanted > 0) || readings.any(|next| next.wanted > 0)
    }
}

struct Counting<'a> {
    kernel: &'a dyn Kernel,
    table: Option<&'a EventTable>,
    target: Target,
    groups: Vec<EventGroup>,
    software: Vec<(Software, Series)>,
    ratios: Vec<(Ratio, Series)>,
    /// Counts of the processor's events, run by run.
    events: BTreeMap<String, Vec<u64>>,
}

impl<'a> Counting<'a> {
    fn new(plan: &'a StatPlan, kernel: &'a dyn Kernel) -> Counting<'a> {
        let table = plan.table.as_ref();
        let refused = |ratio: Ratio| match table.map(|table| &table.ratio[&ratio]) {
            _ if !kernel.has_unit() => Some(CountRefusal::NoUnit),
            None => Some(CountRefusal::NoTable),
            Some(Formula::Missing { missing }) => Some(CountRefusal::NotCounted { reason: missing.clone() }),
            Some(Formula::Quotient { .. }) => None,
        };
        let ratio = |ratio| (ratio, Series { refusal: refused(ratio), ..Series::default() });
        Counting {
            kernel,
            table,
            target: plan.pid.map_or(Target::NextProgram, Target::Process),
            groups: table.filter(|_| kernel.has_unit()).map(groups).unwrap_or_default(),
            software: Software::ALL.into_iter().map(|event| (event, Series::default())).collect(),
            ratios: Ratio::ALL.into_iter().map(ratio).collect(),
            events: BTreeMap::new(),
        }
    }

    /// Opens the counters of a run: those of the kernel's events, and one group.
    fn open(&mut self, group: usize) -> Result<OpenCounters, StatError> {
        let mut software = Vec::new();
        for at in 0..self.software.len() {
            let (event, series) = &self.software[at];
            if series.refusal.is_some() {
                continue;
            }
            match self.open_events(&[CounterEvent::Software(*event)], event.is_of_kernel()) {
                Ok((counter, user_only)) => {
                    software.push((*event, counter));
                    self.software[at].1.user_only = user_only;
                }
                Err(refusal @ (CountRefusal::NoProcess { .. } | CountRefusal::NotYours { .. })) => {
                    return Err(StatError::Refused(refusal));
                }
                Err(refusal) => self.software[at].1.refusal = Some(refusal),
            }
        }
        let codes = self.groups.get(group).zip(self.table).map(|(group, table)| {
            group.events.iter().map(|event| CounterEvent::Raw(table.event[event].code)).collect::<Vec<_>>()
        });
        let group = match codes.map(|codes| self.open_events(&codes, false)) {
            None => None,
            Some(Ok((counters, user_only))) => {
                self.of_group(group, |series| series.user_only = user_only);
                Some(counters)
            }
            Some(Err(refusal)) => {
                self.of_group(group, |series| series.refusal = Some(refusal.clone()));
                None
            }
        };
        Ok(OpenCounters { software, group })
    }

    /// Opens events with their counts in the kernel; without these where they are forbidden and the
    /// event makes sense without them. The flag tells which.
    fn open_events(
        &self,
        events: &[CounterEvent],
        needs_kernel: bool,
    ) -> Result<(Box<dyn CounterGroup>, bool), CountRefusal> {
        let refused = |error: std::io::Error, with_kernel| self.reason(&error, events[0], with_kernel);
        match self.kernel.open(events, self.target, true) {
            Ok(counters) => Ok((counters, false)),
            Err(error) if needs_kernel => Err(refused(error, true)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => self
                    .kernel
                    .open(events, self.target, false)
                    .map(|counters| (counters, true))
                    .map_err(|error| refused(error, false)),
                _ => Err(refused(error, true)),
            },
        }
    }

    fn reason(&self, error: &std::io::Error, event: CounterEvent, with_kernel: bool) -> CountRefusal {
        CountRefusal::of(
            error,
            Circumstances {
                paranoid: self.kernel.paranoid(),
                has_unit: self.kernel.has_unit(),
                is_software: matches!(event, CounterEvent::Software(_)),
                with_kernel,
                pid: match self.target {
                    Target::NextProgram | Target::Region => None,
                    Target::Process(pid) => Some(pid),
                },
            },
        )
    }

    fn of_group(&mut self, group: usize, mut change: impl FnMut(&mut Series)) {
        let ratios = &self.groups[group].ratios;
        self.ratios
            .iter_mut()
            .filter(|(ratio, _)| ratios.contains(ratio))
            .for_each(|(_, series)| change(series));
    }

    /// Adds the counts of a run.
    fn keep(&mut self, group: usize, open: &mut OpenCounters) {
        for (event, counter) in &mut open.software {
            let Some((_, series)) = self.software.iter_mut().find(|(known, _)| known == event) else {
                continue;
            };
            match counted(counter.as_mut()) {
                Ok(counts) => series.values.extend(counts.first().map(|count| *count as f64)),
                Err(refusal) => series.refusal = Some(refusal),
            }
        }
        let Some(counts) = open.group.as_mut().map(|group| counted(group.as_mut())) else { return };
        let Some(table) = self.table else { return };
        let EventGroup { ratios, events } = self.groups[group].clone();
        for (event, count) in events.iter().zip(counts.iter().flatten()) {
            self.events.entry(event.clone()).or_default().push(*count);
        }
        for (ratio, series) in self.ratios.iter_mut().filter(|(ratio, _)| ratios.contains(ratio)) {
            let count = |counts: &[u64], event: &str| {
                events.iter().position(|known| known == event).and_then(|at| counts.get(at).copied())
            };
            match &counts {
                Ok(counts) => series.values.extend(table.ratio[ratio].value(|event| count(counts, event))),
                Err(refusal) => series.refusal = Some(refusal.clone()),
            }
        }
    }

    /// Returns whether no group of the processor's events can be counted: further runs for them
    /// would be useless.
    fn all_refused(&self) -> bool {
        self.ratios.iter().all(|(_, series)| series.refusal.is_some())
    }

    fn result(&self, plan: &StatPlan, seconds: Vec<f64>) -> Stat {
        let mut random = random(plan.seed);
        let software = self.software.iter().map(|(event, series)| {
            let mut found = series.found(&mut random);
            // Nothing was divided.
            if found == (ValueSource::Missing { refusal: CountRefusal::NothingToDivideBy }) {
                found =
                    ValueSource::Missing { refusal: CountRefusal::Other { said: "it was not read".into() } };
            }
            SoftwareCount { event: *event, found }
        });
        let software = software.collect();
        let ratio = |(ratio, series): &(Ratio, Series)| {
            let found = series.found(&mut random);
            let formula = self.table.map(|table| (table, &table.ratio[ratio]));
            let formula = formula.filter(|_| matches!(found, ValueSource::Measured { .. }));
            RatioFound {
                ratio: *ratio,
                formula: formula.map(|(_, formula)| formula.text()).unwrap_or_default(),
                note: formula.and_then(|(_, formula)| match formula {
                    Formula::Quotient { note, .. } => note.clone(),
                    Formula::Missing { .. } => None,
                }),
                checked: formula.is_some_and(|(table, formula)| table.is_checked(formula)),
                found,
            }
        };
        Stat {
            format: FORMAT.into(),
            version: VERSION,
            command: plan.command.clone(),
            pid: plan.pid,
            region: None,
            processor: self.table.map(|table| table.name.clone()),
            seconds,
            software,
            ratios: self.ratios.iter().map(ratio).collect(),
            events: self.events.iter().map(|(event, counts)| mean(event, counts)).collect(),
            simulated: None,
            functions: Vec::new(),
        }
    }
}

fn mean(event: &str, counts: &[u64]) -> EventCount {
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    EventCount { event: event.into(), count: sum / counts.len().max(1) as f64 }
}

/// Returns what is known without a run: nothing is counted, and each value says so.
pub fn not_run(command: Vec<String>) -> Stat {
    let missing = || ValueSource::Missing { refusal: CountRefusal::NotRun };
    let ratio =
        |ratio| RatioFound { ratio, formula: String::new(), note: None, checked: false, found: missing() };
    Stat {
        format: FORMAT.into(),
        version: VERSION,
        command,
        pid: None,
        region: None,
        processor: None,
        seconds: Vec::new(),
        software: Software::ALL.map(|event| SoftwareCount { event, found: missing() }).into(),
        ratios: Ratio::ALL.map(ratio).into(),
        events: Vec::new(),
        simulated: None,
        functions: Vec::new(),
    }
}

/// Returns the counts of counters that ran all the time, to a thousandth: reading them one after the other takes some.
pub(crate) fn counted(counters: &mut dyn CounterGroup) -> Result<Vec<u64>, CountRefusal> {
    let readings = counters.read().map_err(|error| CountRefusal::Other { said: error.to_string() })?;
    let count = |reading: &Reading| match reading.counted as f64 / reading.wanted.max(1) as f64 {
        part if part < 0.999 && reading.wanted > 0 => {
            Err(CountRefusal::Shared { percent: (100.0 * part) as u8 })
        }
        _ => Ok(reading.count),
    };
    readings.iter().map(count).collect()
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
