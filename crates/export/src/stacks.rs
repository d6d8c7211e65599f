//! Counts by call stack, for the formats of profilers.
//!
//! A sample has the counts of one thread, call path, site and class of objects, so sums over
//! samples equal the report's totals. Cycles of waiting are fractions in the model and whole
//! numbers in these formats: they are rounded so that the first *n* samples together have the
//! rounded sum of the first *n*, and all of them that of the report.

use memlode_attribute::place::{Line, place, what};
use memlode_attribute::stack::{StackLine, stack};
use memlode_attribute::{Cell, ClassId, Home, PathId, Wait};
use memlode_report::build::naming::Naming;
use memlode_report::render::terminal;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{FunctionId, SiteId, SiteTable};
use rustc_hash::FxHashMap;

use crate::tables::Counted;

/// A quantity that each sample has a value of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackMetric {
    /// Short name, stable: `accesses`, `misses_L1d`, `wait_cycles`.
    pub name: String,
    /// `count` or `cycles`.
    pub unit: &'static str,
}

/// A function that frames name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFunction {
    /// Demangled.
    pub name: String,
    /// The linkage name.
    pub linkage_name: String,
    /// Its file, where that is known.
    pub file: Option<String>,
    /// The line where it begins, 0 if that is not known.
    pub first_line: u32,
}

/// A line of a function on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Index into [`Stacks::functions`].
    pub function: usize,
    /// The line, 0 if it is not known.
    pub line: u32,
    /// True if the function was inlined into that of the next frame.
    pub is_inlined: bool,
}

/// Accesses of one thread on one call path, at one site to objects of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// The lines, the innermost first. Recursion is folded.
    pub frames: Vec<StackFrame>,
    /// The thread.
    pub thread: ThreadId,
    /// The data that is touched: `arc.state`.
    pub data: String,
    /// The home of the objects, with their allocation: `network.h:35 must_allocate ← …`.
    pub object: String,
    /// A value for each of [`Stacks::metrics`].
    pub values: Vec<u64>,
}

/// Samples, and the tables to which they refer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The command that was recorded.
    pub command: Vec<String>,
    /// The quantities that each sample has a value of.
    pub metrics: Vec<StackMetric>,
    /// The functions.
    pub functions: Vec<StackFunction>,
    /// The samples, in the order of the profile's cells.
    pub samples: Vec<StackSample>,
}

impl Stacks {
    /// Makes stacks of the counts.
    pub fn of(counted: &Counted<'_>) -> Stacks {
        let mut maker = Maker::new(counted);
        let mut waits = Rounded::default();
        let sites = counted.trace.sites();
        let cells = counted.profile.cells.iter().enumerate();
        let cells = cells.filter(|(_, cell)| counted.has(sites.site(cell.site)));
        let samples = cells.map(|(number, cell)| maker.sample(cell, waits.next(counted.costs.of(number))));
        let samples = samples.collect();
        Stacks {
            command: counted.report.trace.command.clone(),
            metrics: metrics(counted),
            functions: maker.functions,
            samples,
        }
    }

    /// The sums of all samples, by metric.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.metrics.len()];
        for sample in &self.samples {
            totals.iter_mut().zip(&sample.values).for_each(|(sum, value)| *sum += value);
        }
        totals
    }

    /// The place of a metric by its name.
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|metric| metric.name == name)
    }
}

fn metrics(counted: &Counted<'_>) -> Vec<StackMetric> {
    let metric = |name: String, unit| StackMetric { name, unit };
    let levels = counted.report.machine.levels.iter();
    let counts = ["accesses", "reads", "writes"].map(|name| metric(name.into(), "count"));
    let misses = levels.map(|level| metric(format!("misses_{}", level.name), "count"));
    let cycles = ["stall_cycles", "wait_cycles"].map(|name| metric(name.into(), "cycles"));
    counts.into_iter().chain(misses).chain(cycles).collect()
}

/// Rounds a series of waits so that the sums of its beginnings are the rounded ones.
#[derive(Default)]
struct Rounded {
    sum: Wait,
    given: u64,
}

impl Rounded {
    fn next(&mut self, wait: &Wait) -> u64 {
        self.sum += wait;
        // The report has tenths, which a reader rounds.
        let tenths = (self.sum.cycles() * 10.0).round() / 10.0;
        let sum = (tenths.round() as u64).max(self.given);
        let next = sum - self.given;
        self.given = sum;
        next
    }
}

struct Maker<'a> {
    counted: &'a Counted<'a>,
    names: &'a SiteTable,
    latencies: Vec<u32>,
    functions: Vec<StackFunction>,
    numbers: FxHashMap<FunctionId, usize>,
    data: FxHashMap<SiteId, String>,
    stacks: FxHashMap<(SiteId, PathId), Vec<StackFrame>>,
    objects: FxHashMap<ClassId, String>,
}

impl<'a> Maker<'a> {
    fn new(counted: &'a Counted<'a>) -> Maker<'a> {
        Maker {
            counted,
            names: counted.trace.sites(),
            latencies: counted.machine.latencies(),
            functions: Vec::new(),
            numbers: FxHashMap::default(),
            data: FxHashMap::default(),
            stacks: FxHashMap::default(),
            objects: FxHashMap::default(),
        }
    }

    fn sample(&mut self, cell: &Cell, wait: u64) -> StackSample {
        if !self.stacks.contains_key(&(cell.site, cell.path)) {
            let frames = self.frames(cell.site, cell.path);
            self.stacks.insert((cell.site, cell.path), frames);
        }
        let counts = &cell.counts;
        let mut values = vec![counts.accesses(), counts.reads.iter().sum(), counts.writes.iter().sum()];
        values.extend((0..self.counted.report.machine.levels.len()).map(|level| counts.misses(level)));
        values.extend([counts.stall_cycles(&self.latencies), wait]);
        let (profile, names) = (self.counted.profile, self.names);
        let data = self.data.entry(cell.site).or_insert_with(|| {
            let site = names.site(cell.site);
            let access = Naming::new(names).access(&what(names, site, false), &place(names, site));
            terminal::name(&access.data)
        });
        let object = self.objects.entry(cell.class).or_insert_with(|| {
            let home = &profile.classes[cell.class.0 as usize].home;
            let path = match home {
                Home::Heap { path, .. } => *path,
                _ => PathId::ROOT,
            };
            terminal::home(&Naming::new(names).home(home, profile.paths.steps(path)))
        });
        StackSample {
            frames: self.stacks[&(cell.site, cell.path)].clone(),
            thread: cell.thread,
            data: data.clone(),
            object: object.clone(),
            values,
        }
    }

    fn frames(&mut self, site: SiteId, path: PathId) -> Vec<StackFrame> {
        let lines = stack(self.names, self.names.site(site), self.counted.profile.paths.steps(path));
        let frame = |StackLine { function, line, is_inlined }| StackFrame {
            function: self.function(function),
            line,
            is_inlined,
        };
        lines.into_iter().map(frame).collect()
    }

    fn function(&mut self, id: FunctionId) -> usize {
        if let Some(&number) = self.numbers.get(&id) {
            return number;
        }
        let first_line = self.names.function(id).line;
        let named = Naming::new(self.names).line(&Line::of(self.names, id, first_line));
        let number = self.functions.len();
        self.functions.push(StackFunction {
            name: named.function,
            linkage_name: named.linkage_name,
            file: named.file,
            first_line,
        });
        self.numbers.insert(id, number);
        number
    }
}
