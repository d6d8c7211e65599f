//! Words of a page that draws a report: its sentences, names and headings.
//!
//! A page has the numbers of [`super::json`] and draws them. All its words are chosen here, so the
//! page decides nothing by itself.

mod bandwidth;
mod shared;
mod terms;
mod together;

use memlode_machine::Provenance;
use memlode_whatif::advise::written;
use serde::Serialize;

use super::sentences::note;
use super::terminal::findings::{arrow, facts};
use super::terminal::report::{fresh_cycles, wait};
use super::terminal::sample::{lines as sample_lines, not_told_apart, stall_share};
use super::terminal::{self, verdict};
use super::text::{bytes, count, milliseconds, percent, percent_of, printable};
use crate::model::{
    Access, Advice, AdvisedEdit, Comparison, Doubt, Finding, Home, Object, Position, RejectedEdits, Report,
    SourceText, Transfers, WhatIf,
};

pub use super::terminal::CAUSES;
pub use bandwidth::Bandwidth;
pub use shared::SharedWords;
pub use together::TogetherWords;

/// Commands of a shell that go on where the page ends.
pub struct Commands<'a> {
    /// The command `NAME` about the trace, as a shell reads it.
    pub of: &'a dyn Fn(&str) -> String,
    /// An argument, quoted for a shell.
    pub quoted: &'a dyn Fn(&str) -> String,
}

/// All words of a page that depend on the trace.
#[derive(Debug, Serialize)]
pub struct Words {
    /// The program, for the page's title.
    pub title: String,
    /// The first sentence: how much of the run waits, and for what.
    pub sentence: String,
    /// A second sentence: the gain of an edit, or that none gains, or how to find out.
    pub gain: String,
    /// The program, the machine, and how far names reach: a heading and a sentence each.
    pub facts: Vec<Fact>,
    /// Parts of the run's cycles.
    pub bar: Vec<RunPart>,
    /// Findings, as ranked.
    pub findings: Vec<FindingWords>,
    /// The reason why there are no findings, or why the order of the first two is uncertain.
    pub remark: Option<String>,
    /// Notes on what is missing from the trace.
    pub notes: Vec<String>,
    /// Losses of threads to each other.
    pub sharing: Option<String>,
    /// Objects that they lose it for, which are findings.
    pub shared: Vec<SharedWords>,
    /// Members that are used together, of the types of findings.
    pub together: Vec<TogetherWords>,
    /// Edits that are worth it, and others.
    pub edits: Vec<EditWords>,
    /// The two sides of a comparison, and how far placement alone changes a run.
    pub compared: Option<String>,
    /// The traffic that the machine's memory carries.
    pub bandwidth: Bandwidth,
    /// Commands, by the parts of the page that they fill.
    pub commands: Vec<Fact>,
    /// Explanations of terms.
    pub terms: Vec<Fact>,
    /// Sentences on what views show.
    pub views: Vec<Fact>,
}

/// A heading and its text.
#[derive(Debug, Serialize)]
pub struct Fact {
    /// The heading, or the name of a view.
    pub heading: &'static str,
    /// A sentence, or a command.
    pub text: String,
}

/// A part of the run's cycles.
#[derive(Debug, Serialize)]
pub struct RunPart {
    /// Its id, for its colour.
    pub id: &'static str,
    /// Its name.
    pub label: &'static str,
    /// Its explanation.
    pub text: &'static str,
    /// Its cycles.
    pub cycles: f64,
    /// Its share of all parts, 0 to 1.
    pub share: f64,
    /// The share in words.
    pub percent: String,
}

/// The words of a finding.
#[derive(Debug, Serialize)]
pub struct FindingWords {
    /// The data.
    pub data: String,
    /// The line.
    pub place: String,
    /// Its share of the wait.
    pub share: String,
    /// Its share of the run's cycles.
    pub of_run: String,
    /// A sentence for each fact.
    pub facts: Vec<String>,
    /// The change that the evidence carries.
    pub advice: Option<String>,
    /// The command that shows the gain.
    pub command: String,
    /// The reason why its source line is not shown.
    pub no_source: Option<String>,
}

/// The words of an edit that was replayed.
#[derive(Debug, Serialize)]
pub struct EditWords {
    /// The edit in its short form.
    pub edit: String,
    /// Its verdict as a word.
    pub verdict: &'static str,
    /// True if it is worth it.
    pub is_worth_it: bool,
    /// The cycles that it saves or costs.
    pub gain: String,
    /// Misses of each level before and after.
    pub misses: Vec<[String; 3]>,
    /// Limits of the confidence.
    pub confidence: String,
    /// The command that replays it, or makes its patch.
    pub command: String,
}

/// Finds the words of a page.
pub fn words(
    report: &Report,
    tried: Option<&Advice>,
    comparison: Option<&Comparison>,
    bandwidth: Bandwidth,
    commands: &Commands<'_>,
) -> Words {
    let run = report.run_cycles;
    Words {
        title: program(report),
        sentence: sentence(report),
        gain: gain_sentence(report, tried),
        facts: about(report),
        bar: bar(report),
        findings: report.findings.iter().map(|found| finding(report, found, run, commands)).collect(),
        remark: remark(report),
        notes: report.trace.notes.iter().map(|found| plain(&note(found))).collect(),
        sharing: report.sharing.as_ref().map(lost),
        shared: shared::words(report, commands),
        together: together::words(report),
        edits: tried.map(|tried| edits(tried, commands)).unwrap_or_default(),
        compared: comparison.map(compared),
        bandwidth,
        commands: fill(commands),
        terms: terms::terms(),
        views: terms::views(),
    }
}

/// The name of data: `arc.state`.
pub fn data_name(data: &crate::model::Data) -> String {
    plain(&terminal::name(data))
}

/// The name of a line: `before.c:50 price_block`.
pub fn place_name(position: &Position) -> String {
    plain(&terminal::place(position))
}

/// Names the home of objects and their allocation.
pub fn object_name(object: &Object) -> String {
    plain(&terminal::object(object))
}

/// Names a home alone.
pub fn home_name(home: &Home) -> String {
    plain(&terminal::home(home))
}

/// A name in which nothing changes the direction of text or is invisible, with its template arguments shortened.
pub fn short(name: &str) -> String {
    plain(&printable(&super::text::brief(name)))
}

/// Text without the marks that keep words together on a terminal.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

fn program(report: &Report) -> String {
    let command = &report.trace.command;
    if command.is_empty() { "unknown program".into() } else { printable(&command.join(" ")).into_owned() }
}

fn sentence(report: &Report) -> String {
    let total = &report.total.numbers;
    if total.accesses == 0 {
        return "Nothing was recorded of this run.".into();
    }
    if let Some(first) = shared::first(report) {
        return first;
    }
    let waits = &total.wait;
    let share = match waits.instruction_cycles > 0.0 {
        true => {
            let part = percent_of(waits.cycles / report.run_cycles);
            format!("About {part} of the run's modelled cycles wait for data")
        }
        false => "What share of this run waits for data is not known".to_string(),
    };
    match report.findings.first() {
        Some(first) => {
            let Access { data, position } = &first.subject;
            let most = stall_share(first.cost.wait_share, first.cost.standard_error);
            format!("{share}; {most} of that for {}, at {}.", data_name(data), place_name(position))
        }
        None if waits.instruction_cycles > 0.0 => format!("{share}: another layout would gain little."),
        None => "No line of this run stands out.".into(),
    }
}

fn gain_sentence(report: &Report, tried: Option<&Advice>) -> String {
    match tried {
        Some(tried) => match tried.worth_it.first() {
            Some(best) => format!(
                "One edit buys {} of the cycles: {}.",
                percent_of(best.gain),
                best.edits.iter().map(|edit| printable(edit)).collect::<Vec<_>>().join("; ")
            ),
            None => format!(
                "Of {} edits that were tried none is worth it: none gains 2% and more than placement alone changes ({}).",
                tried.rejected.len(),
                percent_of(tried.noise)
            ),
        },
        None if report.findings.is_empty() => String::new(),
        None => "Which edit of the layout is worth it, and how much it buys, is found by:".into(),
    }
}

/// The program and the machine, in sentences.
fn about(report: &Report) -> Vec<Fact> {
    let total = &report.total.numbers;
    let (machine, trace) = (&report.machine, &report.trace);
    let caches: Vec<String> =
        machine.levels.iter().map(|level| format!("{} {}", level.name, bytes(level.bytes))).collect();
    let known = match machine.latencies {
        Provenance::Measured => "measured",
        Provenance::PartlyMeasured => "partly measured",
        Provenance::Assumed => "assumed",
    };
    let of =
        |n: usize, one: &str, more: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {more}") };
    let mut facts = vec![
        Fact { heading: "Program", text: program(report) },
        Fact {
            heading: "Machine",
            text: plain(&printable(&format!(
                "{}: {} cores, {}; latencies {known}",
                machine.name,
                machine.cores,
                caches.join(", ")
            ))),
        },
        Fact {
            heading: "Accesses",
            text: format!(
                "{}: {} reads, {} writes, by {} of {}",
                count(total.accesses),
                count(total.reads),
                count(total.writes),
                of(trace.threads, "thread", "threads"),
                of(trace.processes, "process", "processes"),
            ),
        },
    ];
    if let Some(sample) = &trace.sample {
        let [part, errors] = sample_lines(sample);
        facts.push(Fact { heading: "Sample", text: plain(&format!("{part}; {errors}")) });
    }
    facts.extend(wait(report).map(|text| Fact { heading: "Wait", text: plain(&text) }));
    let shares = &report.coverage;
    let part = |share: f64| percent((share * shares.accesses as f64).round() as u64, shares.accesses);
    facts.push(Fact {
        heading: "Names",
        text: format!(
            "{} of the recorded accesses have a line, {} a variable or type, {} a member, {} an object",
            part(shares.line),
            part(shares.variable_or_type),
            part(shares.member),
            part(shares.object)
        ),
    });
    facts
}

fn bar(report: &Report) -> Vec<RunPart> {
    let wait = &report.total.numbers.wait;
    let lost = report.sharing.as_ref().map_or(0.0, |found| found.cycles as f64);
    let parts = [
        (
            "instructions",
            "instructions",
            "executing instructions while nothing is waited for",
            wait.instruction_cycles,
        ),
        ("chained", "chased", "loads that wait for the one before (pointer chasing)", wait.chained),
        (
            "overlapping",
            "jumps",
            "loads that do not depend on each other: their misses can overlap",
            wait.overlapping,
        ),
        ("streamed", "streams", "lines that are fetched ahead, at the cost of bandwidth", wait.streamed),
        ("stored", "stores", "stores: more lines are written than memory takes", wait.stored),
        (
            "first",
            "first touches",
            "the first touches of fresh memory, for which the kernel makes pages",
            fresh_cycles(report),
        ),
        ("lost", "taken by threads", "lines that other threads took, of all threads together", lost),
    ];
    let whole: f64 = parts.iter().map(|part| part.3).sum();
    let share = |cycles: f64| if whole > 0.0 { cycles / whole } else { 0.0 };
    let made = parts.into_iter().filter(|part| part.3 > 0.0).map(|(id, label, text, cycles)| RunPart {
        id,
        label,
        text,
        cycles,
        share: share(cycles),
        percent: percent_of(share(cycles)),
    });
    made.collect()
}

fn finding(report: &Report, found: &Finding, run: f64, commands: &Commands<'_>) -> FindingWords {
    let Access { data, position } = &found.subject;
    let all: Vec<&AdvisedEdit> = report.advised.iter().collect();
    let mut left = all.clone();
    let advice = arrow(&mut left, found);
    let command = match all.into_iter().find(|edit| !left.contains(edit)) {
        Some(AdvisedEdit { edits, .. }) => {
            format!("{} --edit {}", (commands.of)("whatif"), (commands.quoted)(&edits.join("; ")))
        }
        None => (commands.of)("sim"),
    };
    let no_source = match &found.source {
        Some(SourceText::Missing { file, why }) => {
            Some(format!("no source line: {}: {}", printable(file), printable(why)))
        }
        _ => None,
    };
    FindingWords {
        data: data_name(data),
        place: place_name(position),
        share: stall_share(found.cost.wait_share, found.cost.standard_error),
        of_run: percent_of(if run > 0.0 { found.cost.wait_cycles / run } else { 0.0 }),
        facts: facts(report, found).iter().map(|fact| plain(fact)).collect(),
        advice: advice.map(|advice| plain(&advice)),
        command,
        no_source,
    }
}

fn remark(report: &Report) -> Option<String> {
    let first = report.findings.first()?;
    first
        .doubt
        .iter()
        .find_map(|Doubt::Lead { value, standard_error }| not_told_apart(*value, *standard_error))
}

/// A sentence about the time that threads lose to each other.
fn lost(found: &Transfers) -> String {
    let whole = found.ms + found.rest_ms;
    let known = if found.measured { "measured" } else { "assumed" };
    match found.transfers {
        0 => "No line came from another core.".into(),
        transfers => format!(
            "About {} of all threads together are lost to {} transfers of lines between cores: {} of {} without misses \
             of caches. The times of transfers are {known}.",
            milliseconds(found.ms),
            count(transfers),
            percent_of(found.ms / whole.max(f64::MIN_POSITIVE)),
            milliseconds(whole),
        ),
    }
}

fn gained(gain: f64) -> String {
    match gain {
        gain if gain >= 0.0 => format!("{} fewer cycles", percent_of(gain)),
        loss => format!("{} more cycles", percent_of(-loss)),
    }
}

fn edits(tried: &Advice, commands: &Commands<'_>) -> Vec<EditWords> {
    let command = |edits: &[String]| {
        let options: String =
            edits.iter().map(|edit| format!(" --edit {}", (commands.quoted)(edit))).collect();
        (commands.of)("whatif") + &options
    };
    let misses = |item: &WhatIf| {
        let sides = item.comparison.before.levels.iter().zip(&item.comparison.after.levels);
        let row = sides.map(|(before, after)| {
            let [before_misses, after_misses] =
                [before, after].map(|level| count(level.read_misses + level.write_misses));
            [before.name.clone(), before_misses, after_misses]
        });
        row.collect()
    };
    let worth_it = tried.worth_it.iter().map(|item| EditWords {
        edit: item.edits.iter().map(|edit| printable(edit)).collect::<Vec<_>>().join("; "),
        verdict: verdict(item.verdict),
        is_worth_it: true,
        gain: gained(item.gain),
        misses: misses(item),
        confidence: plain(&terminal::confidence(item)),
        command: format!("{} --patch memlode.patch", command(&item.edits)),
    });
    let rejected = tried.rejected.iter().map(|RejectedEdits { rejected: item, .. }| {
        let text = written(&item.edits);
        EditWords {
            edit: printable(&text).into_owned(),
            verdict: match item.verdict {
                memlode_whatif::noise::Verdict::WorthIt => "less than another edit of the type",
                other => verdict(other),
            },
            is_worth_it: false,
            gain: gained(item.gain) + if item.is_whole { "" } else { " on a part of the trace" },
            misses: Vec::new(),
            confidence: String::new(),
            command: command(&item.edits.iter().map(ToString::to_string).collect::<Vec<_>>()),
        }
    });
    worth_it.chain(rejected).collect()
}

/// Two sentences about the traces that were compared.
fn compared(found: &Comparison) -> String {
    let side = |side: &crate::model::Compared| {
        printable(&format!("{} on {}", side.trace, side.machine)).into_owned()
    };
    let noise = found.noise.map_or(String::new(), |noise| {
        format!(" Placement alone changes a run by {}: a smaller change is none.", percent_of(noise))
    });
    let (before, after) = (found.before.run_cycles, found.after.run_cycles);
    let change = match before > 0.0 {
        true => format!(": {}", gained((before - after) / before)),
        false => String::new(),
    };
    format!("Before, {}; after, {}{change}.{noise}", side(&found.before), side(&found.after))
}

/// Commands that fill views.
fn fill(commands: &Commands<'_>) -> Vec<Fact> {
    let command =
        |heading, name, with: &str| Fact { heading, text: format!("{}{with}", (commands.of)(name)) };
    vec![
        command("advise", "html", " --with rows,advise"),
        command("rows", "html", " --with rows"),
        command("time", "html", " --with rows,time"),
        command("sim", "html", " --with rows,sim"),
        command("compare", "html", " --compare BEFORE"),
        command("why", "sim", ""),
    ]
}
