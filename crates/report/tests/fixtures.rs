//! Findings of each analysis in the trace beside it, in both outputs. `make fixtures` writes the
//! present findings down.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memlode_analyses::{Arguments, Column, Holds, Reads, Registered, Run, View, all, findings_of};
use memlode_attribute::{CostModel, Simulation, Source};
use memlode_machine::Machine;
use memlode_report::render::terminal::{By, Style};
use memlode_report::render::{json, terminal};
use memlode_report::{CommandAnswer, CommandFindings, build};
use memlode_trace::Trace;
use serde_json::{Map, Value, json};

/// Arguments that make something of a small trace.
const ARGUMENTS: [(&str, &str); 3] =
    [("working-set", "every=10000"), ("timeline", "every=10000"), ("ranges", "blocks=yes")];

const STYLE: Style = Style { colours: false, width: 100, top: 10 };

/// The folder of an analysis's fixture. It is relative, since reports name it.
fn folder(known: &Registered) -> PathBuf {
    Path::new("../analyses/fixtures").join(known.meta.id)
}

/// Returns the findings, as JSON and as text.
fn found(known: &Registered, style: Style) -> (String, String) {
    let machine = Machine::find("generic").expect("a built-in machine");
    let directory = folder(known).join("trace");
    let trace = Arc::new(Trace::open(&directory).unwrap_or_else(|error| panic!("{error}")));
    let source = Source::Stored(trace.clone());
    if known.meta.reads == Reads::Cells {
        let (profile, replayed) =
            Simulation::of(&source, &machine).count(|_| ControlFlow::Continue(())).expect("a profile");
        let costs = CostModel::new(&profile, trace.sites(), &machine);
        let findings = findings_of(&trace, &machine, &profile, &costs);
        let report = build::report(build::Inputs {
            trace: &trace,
            machine: &machine,
            profile: &profile,
            costs: &costs,
            replayed: &replayed,
            sharing: None,
            findings,
        });
        assert!(report.findings.iter().any(|finding| finding.analysis == known.meta.id));
        let report = kept(CommandFindings::Report(Box::new(report)));
        let CommandFindings::Report(found) = &report.found else { panic!("a report stays one") };
        return (
            json::answer(&report).expect("JSON"),
            terminal::report(found, &[By::Line, By::Data, By::Object], style),
        );
    }
    let arguments = ARGUMENTS.iter().find(|(id, _)| *id == known.meta.id).map_or("", |(_, given)| given);
    let arguments: Arguments = arguments.parse().expect("arguments");
    let mut run = Run::default();
    run.add(known, &arguments).expect("arguments that it knows");
    let mut annotations = Simulation::of(&source, &machine).rows(run.options()).expect("a machine");
    let (levels, latencies) = (machine.served_by(), machine.latencies());
    let mut batches = Vec::new();
    while let Some(events) = annotations.next_batch() {
        batches.push(events);
    }
    let view = View::of(&trace, &machine, (&levels, &latencies), annotations.cells());
    batches.iter().for_each(|events| run.observe(events, &view));
    let tables: Vec<_> = run.finish(&view).into_iter().flat_map(|found| found.tables).collect();
    let analysis = build::analysis(&trace, &machine, &tables, &annotations.finish());
    let analysis = kept(CommandFindings::Analysis(analysis));
    let CommandFindings::Analysis(found) = &analysis.found else { panic!("tables stay tables") };
    (json::answer(&analysis).expect("JSON"), terminal::analysis(found, style).0)
}

/// An answer as it is read again after it was stored.
fn kept(findings: CommandFindings) -> CommandAnswer {
    let text = serde_json::to_string(&CommandAnswer::from(findings)).expect("JSON");
    let read: CommandAnswer = serde_json::from_str(&text).expect("what was written is read");
    assert!(read.is_sound());
    assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    read
}

/// Compares with a file, or writes it.
fn compare(file: &Path, text: &str) {
    if std::env::var_os("MEMLODE_UPDATE").is_some() {
        fs::write(file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let stored = fs::read_to_string(file).unwrap_or_default();
    assert!(
        stored == text,
        "{}: something else is found now; `make fixtures` writes it down, and git shows the difference:\n{text}",
        file.display()
    );
}

#[test]
fn each_analysis_finds_what_is_written_down() {
    for known in all() {
        let (json, text) = found(&known, STYLE);
        compare(&folder(&known).join("found.json"), &json);
        compare(&folder(&known).join("found.txt"), &text);
    }
}

/// A file without its line is of no use, on however narrow a terminal.
#[test]
fn no_width_cuts_a_line_number() {
    for known in all() {
        for width in [40, 60, 80, 100, 140] {
            let (_, text) = found(&known, Style { width, ..STYLE });
            let with_line = text.split("program.c:").skip(1);
            let with_line = with_line.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).count();
            assert_eq!(text.matches("program.").count(), with_line, "{width}:\n{text}");
            let fits = |line: &str| line.chars().count() <= width;
            assert!(known.meta.id != "offenders" || width < 80 || text.lines().all(fits), "{width}:\n{text}");
        }
    }
}

/// The schema of the tables, from the descriptions of analyses.
#[test]
fn the_schema_is_that_of_the_registry() {
    let all = all();
    let tables = all.iter().flat_map(|known| known.meta.tables.iter().map(|table| (known.meta.id, table)));
    let schemas: Vec<Value> = tables
        .map(|(analysis, table)| {
            let (levels, fixed): (Vec<&Column>, Vec<&Column>) =
                table.columns.iter().partition(|column| column.id.contains('*'));
            let properties: Map<String, Value> =
                fixed.iter().map(|column| (column.id.to_string(), schema(column.holds))).collect();
            let patterns: Map<String, Value> = levels
                .iter()
                .map(|column| (format!("^{}$", column.id.replace('*', ".+")), schema(column.holds)))
                .collect();
            let required = fixed.iter().filter(|column| column.holds != Holds::Seconds);
            let required: Vec<&str> = required.map(|column| column.id).collect();
            json!({
                "properties": {
                    "table": { "const": table.id },
                    "title": { "const": table.title },
                    "rows": { "type": "array", "items": {
                        "type": "object",
                        "properties": properties,
                        "patternProperties": patterns,
                        "required": required,
                    } },
                },
                "required": ["table", "title", "rows"],
                "$comment": format!("memlode replay --analyse {analysis}"),
            })
        })
        .collect();
    let string = json!({ "type": ["string", "null"] });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memlode analysis",
        "type": "object",
        "properties": {
            "format": { "const": "memlode analysis" },
            "version": { "const": json::VERSION },
            "trace": { "type": "string" },
            "machine": { "type": "string" },
            "notes": { "type": "array", "items": {
                "type": "object", "required": ["id", "text"],
                "properties": { "id": { "type": "string" }, "text": { "type": "string" } },
            } },
            "tables": { "type": "array", "items": { "type": "object", "anyOf": schemas } },
        },
        "required": ["format", "version", "trace", "machine", "notes", "tables"],
        "$defs": {
            "data": {
                "type": ["object", "null"],
                "properties": { "type": string, "member": string, "variable": string },
                "required": ["type", "member", "variable"],
            },
            "position": {
                "type": "object",
                "properties": {
                    "file": string,
                    "line": { "type": ["integer", "null"] },
                    "function": { "type": "string" },
                    "linkage_name": { "type": "string" },
                    "inlined_into": { "$ref": "#/$defs/position" },
                },
                "required": ["file", "line", "function", "linkage_name"],
            },
            "stack": {
                "type": "array", "description": "the innermost line first",
                "items": {
                    "$ref": "#/$defs/position",
                    "properties": { "inlined": { "type": "boolean", "description": "into the next line's function" } },
                    "required": ["inlined"],
                },
            },
            "object": {
                "type": "object",
                "properties": { "kind": { "enum": ["unknown", "heap", "global", "stack"] } },
                "required": ["kind"],
            },
        },
    });
    let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
    compare(Path::new("../../docs/analyses/schema.json"), &text);
}

fn schema(holds: Holds) -> Value {
    match holds {
        Holds::Count => json!({ "type": "integer", "minimum": 0 }),
        Holds::Number | Holds::File => json!({ "type": ["string", "null"] }),
        Holds::Name => json!({ "type": "string" }),
        Holds::Bytes => json!({ "type": ["integer", "null"], "minimum": 0 }),
        Holds::Step => json!({ "type": "integer" }),
        Holds::Word(words) => json!({ "enum": words }),
        Holds::Histogram => json!({
            "type": "array", "description": "[bytes from which on, accesses]",
            "items": { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 },
        }),
        Holds::Bins => json!({
            "type": "array", "description": "accesses of each bin, in order",
            "items": { "type": "integer", "minimum": 0 },
        }),
        Holds::Seconds => json!({ "type": "number", "minimum": 0 }),
        Holds::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Holds::What => json!({ "$ref": "#/$defs/data" }),
        Holds::Place => json!({ "$ref": "#/$defs/position" }),
        Holds::Stack => json!({ "$ref": "#/$defs/stack" }),
        Holds::Object => json!({ "$ref": "#/$defs/object" }),
        Holds::Threads => json!({
            "type": "array", "description": "[thread, accesses], the most first",
            "items": { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 },
        }),
    }
}
