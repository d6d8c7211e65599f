//! Reports as JSON. The fields of `model` are the schema; this adds the sentences and what each document is.

use serde::Serialize;
use serde_json::{Map, json};

use super::sentences::{assumption, level_rules, note};
use crate::model::{
    Access, Advice, Alias, Analysis, Assumption, CoherenceNumbers, CommandAnswer, CommandFindings,
    Comparison, Data, Everything, Finding, Function, LevelBesides, LevelRules, Note, Object, Recording,
    Report, Row, RulesUsed, Sample, Shares, Sharing, Simulated, Simulation, Table, Thread, TimeReport,
    TimedCore, TimedRow, Transfers, Type, Value, WhatIf,
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

/// Something with the sentence that says it.
#[derive(Serialize)]
struct Said<'a, T> {
    #[serde(flatten)]
    data: &'a T,
    text: String,
}

fn notes(notes: &[Note]) -> Vec<Said<'_, Note>> {
    notes.iter().map(|data| Said { data, text: note(data) }).collect()
}

#[derive(Serialize)]
struct Trace<'a> {
    directory: &'a str,
    command: &'a [String],
    complete: bool,
    processes: usize,
    threads: usize,
    notes: Vec<Said<'a, Note>>,
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

#[derive(Serialize)]
struct Rules<'a> {
    levels: Vec<Said<'a, LevelRules>>,
    coherence: &'a str,
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

#[derive(Serialize)]
struct ReportDocument<'a> {
    format: &'static str,
    version: u32,
    trace: Trace<'a>,
    machine: &'a Simulated,
    total: &'a Row<Everything>,
    coverage: &'a Shares,
    findings: &'a [Finding],
    lines: &'a [Row<Access>],
    data: &'a [Row<Data>],
    fields: &'a [Row<Data>],
    types: &'a [Row<Type>],
    objects: &'a [Row<Object>],
    functions: &'a [Row<Function>],
    threads: &'a [Row<Thread>],
    sharing: &'a Option<Transfers>,
}

#[derive(Serialize)]
struct SimulationDocument<'a> {
    format: &'static str,
    version: u32,
    trace: Trace<'a>,
    machine: &'a Simulated,
    total: &'a Row<Everything>,
    threads: &'a [Row<Thread>],
    lines: &'a [Row<Access>],
    data: &'a [Row<Data>],
    fields: &'a [Row<Data>],
    types: &'a [Row<Type>],
    objects: &'a [Row<Object>],
    aliases: &'a [Alias],
    rules: Rules<'a>,
    coherence: &'a Option<CoherenceNumbers>,
    besides: &'a [LevelBesides],
    sharing: &'a [Sharing],
    #[serde(skip_serializing_if = "Option::is_none")]
    side_by_side: Option<&'a Transfers>,
}

#[derive(Serialize)]
struct TimingDocument<'a> {
    format: &'static str,
    version: u32,
    trace: Trace<'a>,
    machine: &'a Simulated,
    core: &'a TimedCore,
    total: &'a TimedRow<Everything>,
    lines: &'a [TimedRow<Access>],
    data: &'a [TimedRow<Data>],
    fields: &'a [TimedRow<Data>],
    types: &'a [TimedRow<Type>],
    objects: &'a [TimedRow<Object>],
    functions: &'a [TimedRow<Function>],
    threads: &'a [TimedRow<Thread>],
}

#[derive(Serialize)]
struct AnalysisDocument<'a> {
    format: &'static str,
    version: u32,
    trace: &'a str,
    machine: &'a str,
    notes: Vec<Said<'a, Note>>,
    tables: Vec<serde_json::Value>,
}

#[derive(Serialize)]
struct ComparisonDocument<'a, T> {
    format: &'static str,
    version: u32,
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

/// A value by itself: its column says what it is.
fn value(value: &Value) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Count(number) | Value::Bytes(number) => json!(number),
        Value::Step(step) => json!(step),
        Value::Text(text) => json!(text),
        Value::Word(word) => json!(word),
        Value::Histogram(buckets) => json!(buckets),
        Value::Seconds(number) | Value::Share(number) => json!(number),
        Value::Data(data) => json!(data),
        Value::Position(position) => json!(position),
        Value::Home(home) => json!(home),
        Value::Threads(threads) => json!(threads),
    }
}
