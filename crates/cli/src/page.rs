//! The page of a report: makes its additional parts, and writes it to a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Parser, ValueEnum};
use memlode_analyses::{Arguments, BadArgument, Run};
use memlode_attribute::setup::Setup;
use memlode_attribute::{CostModel, Profile, has_gaps};
use memlode_html::Page;
use memlode_machine::Machine;
use memlode_report::render::page::{Bandwidth, Commands};
use memlode_report::{
    Advice, Cells, CommandAnswer, CommandFindings, MissCauses, NamedComparison, NamedListing, PageRows,
    Report, SiteCounts, Sources, TimeReport, WantedLines, build, listing,
};
use memlode_trace::Trace;
use memlode_whatif::advise::{Budget, Effort, advise};
use serde::{Deserialize, Serialize};

use crate::accesses::known;
use crate::analyse::{Analysed, Found, Job, Wanted};
use crate::kept::{Answer, KeepArgs, question};
use crate::next::{ConfidentialArgs, NextCommands};
use crate::{baseline, code, term};

/// Intervals of the time line.
const INTERVALS: u64 = 120;

/// Tables of these analyses that no page has.
const UNUSED: [&str; 4] = ["reuse_by_line", "reuse_by_object", "contexts_by_function", "ranges_by_context"];

/// Functions with this part of the cycles have their instructions shown.
const LISTED: f64 = 0.005;

/// Types that layouts are tried of.
const TYPES: usize = 3;

/// A part of a page beside the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Extra {
    /// Time line, working sets, reuse and strides: one replay of every access
    Rows,
    /// Waits of accesses by a model of the core: `memlode sim --time`
    Time,
    /// Causes of misses, to filter by: `memlode sim`
    Sim,
    /// Edits that are worth it: `memlode advise`
    Advise,
    /// Instructions beneath source lines: `memlode annotate --asm`
    Asm,
}

/// The parts of a page beside the report, from the command line.
#[derive(Debug, Default, Parser)]
pub struct ExtraArgs {
    /// Parts to make besides: rows is the time line, working sets, reuse and strides; sim why accesses
    /// miss, to filter by; time what accesses wait for; advise which edits are worth it; asm the instructions of source lines
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', default_value = "rows")]
    with: Vec<Extra>,
    /// Compare with another trace, recorded before
    #[arg(long, value_name = "BEFORE")]
    compare: Option<PathBuf>,
}

impl ExtraArgs {
    /// The parts that are made by default.
    pub fn usual() -> ExtraArgs {
        ExtraArgs { with: vec![Extra::Rows], compare: None }
    }

    fn has(&self, extra: Extra) -> bool {
        self.with.contains(&extra)
    }
}

/// Analyses of every access that a page shows, and the cells that its filters choose from.
#[derive(Serialize, Deserialize)]
struct RowsAndCells {
    rows: PageRows,
    cells: Option<Cells>,
}

impl Answer for RowsAndCells {
    fn is_sound(&self) -> bool {
        self.rows.is_sound()
    }

    fn locate(&mut self, before: &str, _after: &str) {
        self.rows.analysis.trace = before.to_string();
    }
}

impl Answer for MissCauses {}

/// A trace on a machine, and whether answers about it are kept.
pub struct Subject<'a> {
    /// The trace.
    pub trace: &'a Arc<Trace>,
    /// The machine.
    pub machine: &'a Machine,
    /// The counts that the report is made of, if they were counted anew.
    pub counted: Option<&'a Analysed>,
    /// Options about answers that are kept.
    pub keep: KeepArgs,
    /// Sources whose text is left out.
    pub confidential: &'a ConfidentialArgs,
}

/// Writes the page of a report to a file, with its additional parts: kept answers, or new ones.
pub fn write(
    subject: &Subject<'_>,
    mut report: CommandAnswer,
    extras: &ExtraArgs,
    next: &NextCommands,
    file: &Path,
) -> Result<()> {
    let mut sources = subject.confidential.sources(subject.trace, 0)?;
    sources.add_to(&mut report);
    let CommandFindings::Report(mut report) = report.found else { bail!("a page is made of a report") };
    let records = build::records(subject.trace.sites());
    let accesses = report.total.numbers.accesses;
    // Causes are chosen in the cells of the rows.
    let with_rows = extras.has(Extra::Rows) || extras.has(Extra::Sim);
    let rows = with_rows.then(|| subject.rows(accesses)).transpose()?;
    let causes = extras.has(Extra::Sim).then(|| subject.causes()).transpose()?;
    let timing = if extras.has(Extra::Time) { subject.timing()? } else { None };
    let advice = extras.has(Extra::Advise).then(|| subject.advice()).transpose()?;
    report.advised = advice.as_ref().map_or_else(Vec::new, |advice| advice.advised());
    let comparison = extras.compare.as_deref().map(|before| subject.comparison(before)).transpose()?;
    let code = extras.has(Extra::Asm).then(|| subject.code(&report, &mut sources)).transpose()?;
    let commands = Commands { of: &|command| next.of(command), quoted: &NextCommands::quoted };
    let page = Page {
        report: *report,
        bandwidth: Bandwidth::of(subject.machine),
        advice: advice.as_deref(),
        records: &records,
        code: code.as_ref(),
        rows: rows.as_ref().map(|rows| &rows.rows),
        cells: rows.as_ref().and_then(|rows| rows.cells.as_ref()),
        causes: causes.as_ref(),
        timing,
        comparison,
    };
    let text = memlode_html::render(page, &mut sources, &commands)?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

impl Subject<'_> {
    /// The answer to a question about the trace, with another trace before it if there is one.
    fn answer(
        &self,
        command: &str,
        before: Option<&Arc<Trace>>,
        compute: impl FnOnce() -> Result<CommandAnswer>,
    ) -> Result<CommandFindings> {
        let machines = [self.machine, self.machine];
        let question = question::<ExtraArgs>(command, None, &machines[usize::from(before.is_none())..]);
        let traces: Vec<&Trace> = before.into_iter().chain([self.trace]).map(|trace| &**trace).collect();
        Ok(self.keep.answer(question, &traces, compute)?.found)
    }

    fn job(&self, wanted: Wanted) -> Result<CommandAnswer> {
        Ok(Job { machine: self.machine.clone(), wanted, by_path: false }.run(self.trace.clone())?.answer())
    }

    /// The source lines of functions that cost something, with their instructions.
    fn code(&self, report: &Report, sources: &mut Sources) -> Result<NamedListing> {
        let wanted = WantedLines::Hot(LISTED);
        let mut found = listing(report, None, sources, &wanted, 0);
        let job = Job { machine: self.machine.clone(), wanted: Wanted::Report(None), by_path: false };
        let analysed = job.run(self.trace.clone())?;
        if let Found::Report(profile, ..) = &analysed.found {
            code::add(
                &mut found,
                &wanted,
                &SiteCounts::of(self.trace, self.machine, profile),
                self.trace,
                None,
            )?;
        }
        Ok(found)
    }

    /// Analyses of every access, in one replay, and the cells of the counts.
    fn rows(&self, accesses: u64) -> Result<RowsAndCells> {
        let every = accesses.div_ceil(INTERVALS).max(1).to_string();
        let none = || "".parse::<Arguments>().map_err(|BadArgument(why)| anyhow!(why));
        let mut run = Run::default();
        for (name, arguments) in [
            ("timeline", Arguments::one("every", every.clone())),
            ("working-set", Arguments::one("every", every)),
            ("reuse", none()?),
            ("strides", none()?),
            ("contexts", none()?),
            ("ranges", none()?),
            ("cells", none()?),
            ("heap", none()?),
        ] {
            let analysis = known(name).with_context(|| format!("there is no analysis called {name}"))?;
            run.add(&analysis, &arguments).map_err(|BadArgument(why)| anyhow!("{name}: {why}"))?;
        }
        let question = question::<ExtraArgs>("html rows", None, &[self.machine]);
        self.keep.answer(question, &[&**self.trace], || self.computed_rows(run))
    }

    /// Replays the trace for some analyses, and for the prices of its accesses.
    fn computed_rows(&self, run: Run) -> Result<RowsAndCells> {
        let job = |wanted| Job { machine: self.machine.clone(), wanted, by_path: false };
        let rows = job(Wanted::Accesses(run)).run(self.trace.clone())?;
        let Found::Accesses(mut tables) = rows.found else { bail!("an analysis of every access has tables") };
        let at = tables.iter().position(|table| table.meta.id == "cells");
        let of_cells = at.map(|at| tables.remove(at)).context("a replay of rows has cells")?;
        tables.retain(|table| !UNUSED.contains(&table.meta.id));
        let (trace, machine) = (self.trace, self.machine);
        self.with_counts(|profile, costs| {
            let counts = (profile, costs);
            let cells = build::cells(trace, machine, counts, &of_cells);
            drop(of_cells);
            let rows = build::page_rows(trace, machine, counts, tables, &rows.replayed, memlode_html::limit);
            RowsAndCells { rows, cells }
        })
    }

    /// Causes of misses, by thread, line and object.
    fn causes(&self) -> Result<MissCauses> {
        let job = |wanted| Job { machine: self.machine.clone(), wanted, by_path: false };
        let compute = || {
            let setup = Box::new(Setup::of(self.machine));
            let simulated = job(Wanted::Simulation(setup, None)).run(self.trace.clone())?;
            let Found::Simulation(detailed, _) = &simulated.found else { bail!("a simulation has causes") };
            self.with_counts(|profile, costs| {
                build::miss_causes(self.trace, self.machine, (profile, costs), detailed)
            })
        };
        let question = question::<ExtraArgs>("html causes", None, &[self.machine]);
        self.keep.answer(question, &[&**self.trace], compute)
    }

    /// Passes on the counts of the report, which are counted anew if its answer was kept.
    fn with_counts<R>(&self, of: impl FnOnce(&Profile, &CostModel) -> R) -> Result<R> {
        let job = Job { machine: self.machine.clone(), wanted: Wanted::Report(None), by_path: false };
        let of_report = self.counted.and_then(Analysed::counts);
        let counted = if of_report.is_none() { Some(job.run(self.trace.clone())?) } else { None };
        let profile = of_report.or(counted.as_ref().and_then(Analysed::counts));
        let profile = profile.context("a report has counts")?;
        Ok(of(profile, &CostModel::new(profile, self.trace.sites(), self.machine)))
    }

    /// Times of accesses; `None` for a sample, because the instructions between bursts are unknown.
    fn timing(&self) -> Result<Option<TimeReport>> {
        if has_gaps(self.trace) {
            term::note(
                "the page has no times: the trace is a sample, and what was executed between bursts is not known",
            );
            return Ok(None);
        }
        let setup = Box::new(Setup::of(self.machine));
        match self.answer("html time", None, || self.job(Wanted::Timing(setup)))? {
            CommandFindings::Timing(found) => Ok(Some(*found)),
            _ => bail!("a model of the core has times"),
        }
    }

    /// Edits that were tried, as `memlode advise` tries them.
    fn advice(&self) -> Result<Box<Advice>> {
        let compute = || {
            let baseline = baseline::count(self.trace.clone(), self.machine.clone(), None, None)?;
            let found = advise(&baseline, Effort { types: TYPES, budget: Budget::Usual })?;
            let advice = build::what_if::advice(
                &baseline,
                &baseline::as_it_is(&baseline),
                &found,
                baseline.noise()?.range(),
            );
            let notes = baseline::notes(&baseline);
            Ok(CommandAnswer { notes, ..CommandFindings::Advice(Box::new(advice)).into() })
        };
        match self.answer("advise", None, compute)? {
            CommandFindings::Advice(found) => Ok(found),
            _ => bail!("advice has edits"),
        }
    }

    /// Changes from another trace, as `memlode diff` finds them.
    fn comparison(&self, before: &Path) -> Result<NamedComparison> {
        let before = Arc::new(Trace::open(before)?);
        let compute = || {
            let count = |trace: &Arc<Trace>| baseline::count(trace.clone(), self.machine.clone(), None, None);
            let sides = [count(&before)?, count(self.trace)?];
            let found = baseline::compared(sides.each_ref())?;
            let notes = sides.each_ref().map(baseline::notes).concat();
            Ok(CommandAnswer { notes, ..CommandFindings::Comparison(Box::new(found)).into() })
        };
        match self.answer("diff", Some(&before), compute)? {
            CommandFindings::Comparison(found) => Ok(*found),
            _ => bail!("a comparison has changes"),
        }
    }
}
