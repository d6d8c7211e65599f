//! SARIF 2.1.0, the format of static analysis results, which code review, editors and CI show
//! beside a line.
//!
//! Each finding is a result of the rule that found it, and each worthwhile edit is one of the rule
//! `advice`. Written as plain JSON: a crate with all of the format's types generates them from its
//! schema in each build, and we need twenty members.
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use std::io::{self, Write};

use memlode_report::render::{note, terminal};
use memlode_report::{Advice, NamedEvidence, NamedFinding, NamedHome, Position, Report, WhatIf};
use serde_json::{Value, json};

/// A finding that takes this part of the wait is a warning; smaller ones, and advice, are notes.
const WARNING: f64 = 0.1;

/// The name of handles, by which a review knows a finding of an earlier recording.
const FINGERPRINT: &str = "memlodeHandle/v1";

/// Writes the findings of a report, and advice if there is some.
pub fn write(mut out: impl Write, report: &Report, advice: Option<&Advice>) -> io::Result<()> {
    let worth_it = advice.map_or(&[][..], |advice| &advice.worth_it);
    let findings = report.findings.iter().zip(1..).map(|(found, rank)| finding(report, found, rank));
    let results: Vec<Value> = findings.chain(worth_it.iter().zip(1..).map(advised)).collect();
    let mut rules: Vec<Value> = Vec::new();
    for rule in results.iter().map(|result| &result["ruleId"]) {
        if rules.iter().all(|known| &known["id"] != rule) {
            rules.push(self::rule(rule.as_str().unwrap_or_default()));
        }
    }
    let notes: Vec<Value> = report
        .trace
        .notes
        .iter()
        .map(|said| json!({ "level": "note", "message": { "text": note(said) } }))
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "memlode",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            } },
            "invocations": [{
                "commandLine": report.trace.command.join(" "),
                "executionSuccessful": report.trace.complete,
                "toolExecutionNotifications": notes,
            }],
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": { "machine": &report.machine.name, "total": &report.total },
        }],
    });
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    out.flush()
}

fn rule(id: &str) -> Value {
    let text = match id {
        "advice" => "A change of layout that replay says is worth it",
        _ => "Data that the program waits for most, and the line that does",
    };
    json!({ "id": id, "shortDescription": { "text": text } })
}

fn finding(report: &Report, found: &NamedFinding, rank: usize) -> Value {
    let mut related: Vec<Value> = Vec::new();
    for fact in &found.evidence {
        match fact {
            NamedEvidence::Together { lines } => {
                related.extend(lines.iter().map(|row| location(&row.subject.position)));
            }
            NamedEvidence::Objects { objects } => {
                related.extend(objects.iter().filter_map(|row| match &row.subject.home {
                    NamedHome::Heap { allocated_at, .. } => Some(location(allocated_at)),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    // No location comes twice there.
    let mut known: Vec<Value> = Vec::new();
    related.retain(|place| {
        let is_new = !known.contains(place);
        known.extend(is_new.then(|| place.clone()));
        is_new
    });
    json!({
        "ruleId": found.analysis,
        "level": if found.cost.wait_share >= WARNING { "warning" } else { "note" },
        "rank": (found.cost.wait_share * 100.0).clamp(0.0, 100.0),
        "message": { "text": terminal::finding_sentences(report, found).join(".\n") },
        "locations": [location(shown(&found.subject.position))],
        "relatedLocations": related,
        "partialFingerprints": { FINGERPRINT: &found.handle },
        "properties": {
            "place": rank,
            "type": &found.subject.data.ty,
            "member": &found.subject.data.member,
            "variable": &found.subject.data.variable,
            "cost": &found.cost,
            "numbers": &found.numbers,
            "edit": &found.edit,
        },
    })
}

fn advised((item, place): (&WhatIf, usize)) -> Value {
    let at: Vec<Value> = item.at.iter().map(|at| location(shown(&at.access.position))).collect();
    json!({
        "ruleId": "advice",
        "level": "note",
        "message": { "text": terminal::advice_sentences(item).join(".\n") },
        "locations": at,
        "partialFingerprints": { FINGERPRINT: &item.handle },
        "properties": { "place": place, "edits": &item.edits, "gain": item.gain },
    })
}

/// The line that a reader can change: for a library's text, the one into which it was inlined.
fn shown(position: &Position) -> &Position {
    position.inlined_into.as_deref().unwrap_or(position)
}

fn location(position: &Position) -> Value {
    let mut location = json!({});
    if !position.function.is_empty() {
        location["logicalLocations"] = json!([{
            "fullyQualifiedName": &position.function,
            "decoratedName": &position.linkage_name,
            "kind": "function",
        }]);
    }
    if let Some(file) = &position.file {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(file) } });
        if let Some(line) = position.line {
            location["physicalLocation"]["region"] = json!({ "startLine": line });
        }
    }
    location
}

/// A path as a URI reference: absolute ones as `file:`, and every byte that means something else there escaped.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_string() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte.into())
            }
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_reference() {
        assert_eq!(uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(uri("/w/x#1?%:\n\u{fffd}.c"), "file:///w/x%231%3F%25%3A%0A%EF%BF%BD.c");
    }
}
