//! Reports as JSON. The fields of `model` are the schema; this adds the sentences and the kind of
//! each document.

use serde::Serialize;
use serde_json::{Map, json};

use super::sentences::{assumption, level_rules, note};
use crate::model::{
    Access, Advice, Alias, Analysis, Assumption, CoherenceNumbers, CommandAnswer, CommandFindings,
    Comparison, Data, Everything, Finding, Function, LevelBesides, LevelRules, ListedPart, Listing, Note,
    Numbers, Object, Recording, Report, Row, RulesUsed, Sample, Shares, Sharing, Simulated, Simulation,
    Table, Thread, TimeReport, TimedCore, TimedRow, Transfers, Type, Value, WhatIf,
};

/// Version of the schema: within one, fields are added, and none is renamed or removed.
pub const VERSION: u32 = 2;

/// The JSON of a command's answer.
pub fn answer(answer: &CommandAnswer) -> serde_json::Result<String> {
    match &answer.found {
        CommandFindings::Report(found) => report(found),
        CommandFindings::Simulation(found) => simulation(found),
        CommandFindings::Timing(found) => timing(found),
        CommandFindings::Analysis(found) => analysis(found),
        CommandFindings::Comparison(found) => comparison(found),
        CommandFindings::WhatIf(found) => what_if(found),
        CommandFindings::Advice(found) => advice(found),
    }
}

/// `memlode report --json`.
pub fn report(report: &Report) -> serde_json::Result<String> {
    pretty(&report_document(report))
}

fn report_document(report: &Report) -> ReportDocument<'_> {
    ReportDocument {
        format: "memlode report",
        version: VERSION,
        trace: Trace::of(&report.trace),
        machine: &report.machine,
        total: &report.total,
        coverage: &report.coverage,
        findings: &report.findings,
        lines: &report.lines,
        data: &report.data,
        fields: &report.fields,
        types: &report.types,
        objects: &report.objects,
        functions: &report.functions,
        threads: &report.threads,
        sharing: &report.sharing,
        instructions: report.instructions,
        run_cycles: report.run_cycles,
    }
}

/// `memlode sim --json`.
pub fn simulation(simulation: &Simulation) -> serde_json::Result<String> {
    let report = &simulation.report;
    pretty(&SimulationDocument {
        format: "memlode sim",
        version: VERSION,
        trace: Trace::of(&report.trace),
        machine: &report.machine,
        total: &report.total,
        threads: &report.threads,
        lines: &report.lines,
        data: &report.data,
        fields: &report.fields,
        types: &report.types,
        objects: &report.objects,
        aliases: &simulation.aliases,
        rules: Rules::of(&simulation.rules),
        coherence: &simulation.coherence,
        besides: &simulation.besides,
        sharing: &simulation.sharing,
        side_by_side: report.sharing.as_ref(),
    })
}

/// `memlode sim --time --json`.
pub fn timing(timing: &TimeReport) -> serde_json::Result<String> {
    pretty(&timing_document(timing))
}

fn timing_document(timing: &TimeReport) -> TimingDocument<'_> {
    TimingDocument {
        format: "memlode sim --time",
        version: VERSION,
        trace: Trace::of(&timing.trace),
        machine: &timing.machine,
        core: &timing.core,
        run_cycles: timing.run_cycles,
        total: &timing.total,
        lines: &timing.lines,
        data: &timing.data,
        fields: &timing.fields,
        types: &timing.types,
        objects: &timing.objects,
        functions: &timing.functions,
        threads: &timing.threads,
    }
}

/// `memlode replay --analyse … --json`, `memlode timeline --json`.
pub fn analysis(analysis: &Analysis) -> serde_json::Result<String> {
    pretty(&analysis_document(analysis))
}

fn analysis_document(analysis: &Analysis) -> AnalysisDocument<'_> {
    AnalysisDocument {
        format: "memlode analysis",
        version: VERSION,
        trace: &analysis.trace,
        machine: &analysis.machine,
        notes: notes(&analysis.notes),
        tables: analysis.tables.iter().map(table).collect(),
    }
}

/// `memlode annotate --json`.
pub fn listing(found: &Listing) -> serde_json::Result<String> {
    pretty(&ListingDocument {
        format: "memlode annotate",
        version: VERSION,
        trace: Trace::of(&found.trace),
        machine: &found.machine,
        total: &found.total,
        has_causes: found.has_causes,
        parts: &found.parts,
        left_out: found.left_out,
    })
}

/// `memlode diff --json`.
pub fn comparison(comparison: &Comparison) -> serde_json::Result<String> {
    pretty(&ComparisonDocument { format: "memlode diff", version: VERSION, found: comparison })
}

/// `memlode whatif --json`.
pub fn what_if(found: &WhatIf) -> serde_json::Result<String> {
    pretty(&ComparisonDocument { format: "memlode whatif", version: VERSION, found })
}

/// `memlode advise --json`.
pub fn advice(found: &Advice) -> serde_json::Result<String> {
    pretty(&ComparisonDocument { format: "memlode advise", version: VERSION, found })
}

/// The document of `memlode report --json` without spaces, for a page that holds it.
pub fn embedded_report(found: &Report) -> serde_json::Result<String> {
    serde_json::to_string(&report_document(found))
}

/// The document of `memlode sim --time --json` in that form.
pub fn embedded_timing(found: &TimeReport) -> serde_json::Result<String> {
    serde_json::to_string(&timing_document(found))
}

/// The document of `memlode replay --analyse … --json` in that form.
pub fn embedded_analysis(found: &Analysis) -> serde_json::Result<String> {
    serde_json::to_string(&analysis_document(found))
}

fn pretty(document: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// A value with its sentence.
#[derive(Serialize)]
struct Said<'a, T> {
    /// The data.
    #[serde(flatten)]
    data: &'a T,
    /// The sentence about it.
    text: String,
}

fn notes(notes: &[Note]) -> Vec<Said<'_, Note>> {
    notes.iter().map(|data| Said { data, text: note(data) }).collect()
}

/// A recording: its command and its end.
#[derive(Serialize)]
struct Trace<'a> {
    /// The trace directory.
    directory: &'a str,
    /// The command as typed.
    command: &'a [String],
    /// True if everything that was recorded could be read.
    complete: bool,
    /// Traced processes.
    processes: usize,
    /// Traced threads.
    threads: usize,
    /// Notes on missing data, and on the program's end if it was abnormal.
    notes: Vec<Said<'a, Note>>,
    /// The part of the program that all numbers are of, and their errors, where recording was off for a while.
    sample: &'a Option<Sample>,
}

impl Trace<'_> {
    fn of(recording: &Recording) -> Trace<'_> {
        Trace {
            directory: &recording.directory,
            command: &recording.command,
            complete: recording.complete,
            processes: recording.processes,
            threads: recording.threads,
            notes: notes(&recording.notes),
            sample: &recording.sample,
        }
    }
}

/// The rules of a simulated machine.
#[derive(Serialize)]
struct Rules<'a> {
    /// The rules of each level.
    levels: Vec<Said<'a, LevelRules>>,
    /// `none`, or the protocol that keeps caches the same.
    coherence: &'a str,
    /// Assumptions where the machine's description lacks facts.
    assumptions: Vec<Said<'a, Assumption>>,
}

impl Rules<'_> {
    fn of(rules: &RulesUsed) -> Rules<'_> {
        let level = |data| Said { data, text: level_rules(data) };
        let assumed = |data| Said { data, text: assumption(data) };
        Rules {
            levels: rules.levels.iter().map(level).collect(),
            coherence: &rules.coherence,
            assumptions: rules.assumptions.iter().map(assumed).collect(),
        }
    }
}

/// The document of `memlode report --json`.
#[derive(Serialize)]
struct ReportDocument<'a> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The recording.
    trace: Trace<'a>,
    /// The simulated machine, and the counts of its caches.
    machine: &'a Simulated,
    /// All accesses.
    total: &'a Row<Everything>,
    /// The shares of accesses that have a name.
    coverage: &'a Shares,
    /// Findings, the costliest first.
    findings: &'a [Finding],
    /// Data and the line that touches it; like the other tables, the costliest first.
    lines: &'a [Row<Access>],
    /// Rows by member of a type, or by variable or array without members, over all lines.
    data: &'a [Row<Data>],
    /// Rows by member of a type, over all lines.
    fields: &'a [Row<Data>],
    /// Types.
    types: &'a [Row<Type>],
    /// Objects: by allocating call and call path, global variable, or stack variable.
    objects: &'a [Row<Object>],
    /// Functions whose text holds the accesses.
    functions: &'a [Row<Function>],
    /// Threads.
    threads: &'a [Row<Thread>],
    /// Losses of threads to lines that they take from each other; null where that is not known, or there is one.
    sharing: &'a Option<Transfers>,
    /// Instructions that the accesses stand among.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    /// Modelled cycles of the run: instructions, waiting, fresh memory with the kernel's work for it,
    /// and losses of threads to each other.
    run_cycles: f64,
}

/// The document of `memlode sim --json`. Rows have details: why their accesses missed.
#[derive(Serialize)]
struct SimulationDocument<'a> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The recording.
    trace: Trace<'a>,
    /// The simulated machine, and the counts of its caches.
    machine: &'a Simulated,
    /// All accesses.
    total: &'a Row<Everything>,
    /// Threads.
    threads: &'a [Row<Thread>],
    /// Data and the line that touches it; like the other tables, the costliest first.
    lines: &'a [Row<Access>],
    /// Rows by member of a type, or by variable or array without members, over all lines.
    data: &'a [Row<Data>],
    /// Rows by member of a type, over all lines.
    fields: &'a [Row<Data>],
    /// Types.
    types: &'a [Row<Type>],
    /// Objects: by allocating call and call path, global variable, or stack variable.
    objects: &'a [Row<Object>],
    /// Loads that a store to another address may hold up, the most frequent first.
    aliases: &'a [Alias],
    /// The rules that were simulated, and the assumptions.
    rules: Rules<'a>,
    /// Messages of coherence; null if it was not simulated.
    coherence: &'a Option<CoherenceNumbers>,
    /// Events of the levels besides demand; empty if none of their rules were simulated.
    besides: &'a [LevelBesides],
    /// Misses because of other cores' writes, the most frequent first.
    sharing: &'a [Sharing],
    /// Losses of threads to each other, as a report has them; only with `--threads`.
    #[serde(skip_serializing_if = "Option::is_none")]
    side_by_side: Option<&'a Transfers>,
}

/// The document of `memlode sim --time --json`.
#[derive(Serialize)]
struct TimingDocument<'a> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The recording.
    trace: Trace<'a>,
    /// The simulated machine, and the counts of its caches.
    machine: &'a Simulated,
    /// The core.
    core: &'a TimedCore,
    /// Cycles of the run by the model of `report`, `whatif` and `diff`, without what threads lose to
    /// each other.
    run_cycles: f64,
    /// All accesses.
    total: &'a TimedRow<Everything>,
    /// Data and the line that touches it; like the other tables, the costliest first.
    lines: &'a [TimedRow<Access>],
    /// Rows by member of a type, or by variable or array without members, over all lines.
    data: &'a [TimedRow<Data>],
    /// Rows by member of a type, over all lines.
    fields: &'a [TimedRow<Data>],
    /// Types.
    types: &'a [TimedRow<Type>],
    /// Objects: by allocating call and call path, global variable, or stack variable.
    objects: &'a [TimedRow<Object>],
    /// Functions whose text holds the accesses.
    functions: &'a [TimedRow<Function>],
    /// Threads.
    threads: &'a [TimedRow<Thread>],
}

/// The document of `memlode annotate --json`.
#[derive(Serialize)]
struct ListingDocument<'a> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The recording.
    trace: Trace<'a>,
    /// The simulated machine, and the counts of its caches.
    machine: &'a Simulated,
    /// All accesses.
    total: &'a Numbers,
    /// Lines have the causes of their misses.
    has_causes: bool,
    /// Functions or files, the costliest first.
    parts: &'a [ListedPart],
    /// Functions that are left out because each costs too little.
    left_out: usize,
}

/// The document of commands that analyse every access.
#[derive(Serialize)]
struct AnalysisDocument<'a> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The trace directory.
    trace: &'a str,
    /// The simulated machine, by its short name.
    machine: &'a str,
    /// Notes on data that are missing from the trace.
    notes: Vec<Said<'a, Note>>,
    /// Tables: each has `table`, `title` and `rows`, which are objects with the columns as members ([analyses](analyses/README.md)).
    tables: Vec<serde_json::Value>,
}

/// The document of commands that compare two runs, or a run with edited ones.
#[derive(Serialize)]
struct ComparisonDocument<'a, T> {
    /// The name of the document.
    format: &'static str,
    /// Version of the schema: within one, members are added, and none is renamed or removed.
    version: u32,
    /// The findings.
    #[serde(flatten)]
    found: &'a T,
}

/// All rows of a table, each an object with the columns as members.
fn table(table: &Table) -> serde_json::Value {
    let row = |row: &Vec<_>| {
        let members = table.columns.iter().zip(row).map(|(column, cell)| (column.id.clone(), value(cell)));
        serde_json::Value::Object(Map::from_iter(members))
    };
    json!({
        "table": table.id,
        "title": table.title,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// A value by itself: its column has its meaning.
fn value(value: &Value) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Count(number) | Value::Bytes(number) => json!(number),
        Value::Step(step) => json!(step),
        Value::Text(text) => json!(text),
        Value::Word(word) => json!(word),
        Value::Histogram(buckets) => json!(buckets),
        Value::Bins(bins) => json!(bins),
        Value::Seconds(number) | Value::Share(number) => json!(number),
        Value::Data(data) => json!(data),
        Value::Position(position) => json!(position),
        Value::Home(home) => json!(home),
        Value::Stack(lines) => json!(lines),
        Value::Threads(threads) => json!(threads),
    }
}
