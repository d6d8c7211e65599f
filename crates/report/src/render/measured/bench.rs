//! Programs compared: for people, for pages and as JSON.

use std::fmt::Display;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use memlode_measure::bench::{
    BenchNote, BenchRun, CodeVariation, Comparison, Contestant, Metric, Progress, Result, Spread, Trust,
};
use memlode_measure::link::LinkVariation;
use memlode_measure::stats::Effect;
use serde::Serialize;

use super::trim;
use super::verdict::{self, percent, seen};

/// For people: a table, then the answers.
pub fn text(result: &Result, width: usize) -> String {
    let mut table = table(result, presets::NOTHING);
    table.set_width(width.try_into().unwrap_or(u16::MAX));
    let mut out = format!("{}\n\n", trim(&table));
    for line in answers(result) {
        out += &format!("{line}\n");
    }
    for note in notes(result) {
        out += &format!("note: {note}\n");
    }
    out
}

/// A table of Markdown, and the answers below.
pub fn markdown(result: &Result) -> String {
    let mut out = format!("{}\n\n", table(result, presets::ASCII_MARKDOWN));
    for line in answers(result).into_iter().chain(notes(result)) {
        out += &format!("{line}\n\n");
    }
    out
}

/// A result as JSON, with what is said of it.
#[derive(Debug, Serialize)]
pub struct BenchDocument<'a> {
    metric: Metric,
    seed: u64,
    rounds: usize,
    interrupted: bool,
    varied: String,
    programs: &'a [Contestant],
    comparisons: Vec<ComparedDocument<'a>>,
    trust: Trust,
    notes: Vec<String>,
    runs: &'a [BenchRun],
}

#[derive(Debug, Serialize)]
struct ComparedDocument<'a> {
    #[serde(flatten)]
    found: &'a Comparison,
    sentence: String,
}

/// Returns what `--json` prints.
pub fn document(result: &Result) -> BenchDocument<'_> {
    let compared = |found| ComparedDocument { sentence: sentence(result, found), found };
    BenchDocument {
        metric: result.metric,
        seed: result.seed,
        rounds: result.rounds,
        interrupted: result.interrupted,
        varied: varied(&result.code),
        programs: &result.programs,
        comparisons: result.comparisons.iter().map(compared).collect(),
        trust: result.trust,
        notes: notes(result),
        runs: &result.runs,
    }
}

/// Returns a line about work that begins, if it is worth one.
pub fn progress(progress: &Progress) -> Option<String> {
    match progress {
        Progress::Linking(0, total) => Some(format!("linking {total} variants")),
        Progress::Linking(..) | Progress::Round(_) => None,
        Progress::Planned { rounds, round, runs } => {
            let time = round * *rounds as f64;
            Some(format!("{rounds} rounds of {runs} runs, about {time:.0} s; Ctrl-C ends it early"))
        }
    }
}

/// Returns the line about a program whose links would take too long.
pub fn too_many_links(links: u32, file: &Path, seconds: f64) -> String {
    format!(
        "code layout is not varied: {links} links of {} take {seconds:.0} s; give a longer --time-limit, or fewer --links",
        file.display()
    )
}

/// Returns the line about a program that cannot be linked anew.
pub fn not_linked(why: &dyn Display) -> String {
    format!("code layout is not varied: {why}")
}

fn sentence(result: &Result, one: &Comparison) -> String {
    let name = |program: usize| &result.programs[program].command;
    verdict::sentence(one, name(one.program), name(0), one.is_code_varied)
}

fn varied(code: &CodeVariation) -> String {
    let code = match code {
        CodeVariation::All(varied) => format!(", {}", variation(varied)),
        CodeVariation::Some(varied) => format!(", and for programs with a link line {}", variation(varied)),
        CodeVariation::None => "; not the layout of code, for which --relink is needed".into(),
    };
    format!("length of the environment, addresses of stack, heap and mappings{code}")
}

/// Returns what differs from link to link: `the order of 3 objects`.
pub(super) fn variation(link: &LinkVariation) -> String {
    let objects = (link.objects > 1).then(|| format!("the order of {} objects", link.objects));
    let functions = (link.functions > 1).then(|| format!("the order of {} functions", link.functions));
    let seed = link.has_seed.then(|| "whatever depends on {seed}".to_string());
    [objects, functions, seed].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn notes(result: &Result) -> Vec<String> {
    result.notes.iter().map(note).collect()
}

fn note(note: &BenchNote) -> String {
    match note {
        BenchNote::Busy { queued, metric } => {
            let effect = match metric {
                Metric::Cpu => "CPU time does not count it, but disturbed caches are in it",
                Metric::Wall => "wall time counts it",
            };
            let percent = 100.0 * queued;
            format!(
                "the machine was busy: programs waited for a processor {percent:.0}% of the time; {effect}"
            )
        }
        BenchNote::Clock { clock, explained } => {
            let what = match explained {
                Some(part) => format!(
                    "it explains {:.0}% of the differences between runs and was taken out of them",
                    100.0 * part
                ),
                None => "it does not explain the differences between runs".into(),
            };
            let percent = 100.0 * (clock - 1.0);
            format!("the speed of the processor varied by {percent:.0}% (80% of calibrations); {what}")
        }
        BenchNote::LeftBehind => {
            "processes of a program went on after its end; their time is not counted".into()
        }
        BenchNote::RandomAddresses => {
            "this system forbids fixed addresses, so the layout given has random ones, too".into()
        }
        BenchNote::Short => "a run of less than 5 ms is mostly the start of a process".into(),
    }
}

fn answers(result: &Result) -> Vec<String> {
    let mut lines: Vec<String> = result.comparisons.iter().map(|one| sentence(result, one)).collect();
    let moved = |program: &Contestant| {
        let layout = &program.layout;
        match layout.is_claimed() {
            true => format!(
                "The layout given makes {} {} than it is over random layouts.",
                program.command,
                percent(layout.ratio)
            ),
            false => format!(
                "That the layout given moves {} cannot be claimed, {}.",
                program.command,
                seen(layout)
            ),
        }
    };
    lines.extend(
        result.programs.iter().filter(|one| one.layout.is_claimed() || result.programs.len() == 1).map(moved),
    );
    lines.push(format!(
        "{} rounds{}, seed {}. Varied at random: {}.",
        result.rounds,
        if result.interrupted { " until it was interrupted" } else { "" },
        result.seed,
        varied(&result.code)
    ));
    lines
}

fn table(result: &Result, preset: &str) -> Table {
    let mut table = Table::new();
    let metric = match result.metric {
        Metric::Cpu => "CPU time",
        Metric::Wall => "wall time",
    };
    table.load_preset(preset).set_header([
        metric,
        "layout given",
        "10–90%",
        "random layouts",
        "10–90%",
        "ratio (95%)",
        "p",
    ]);
    for (number, program) in result.programs.iter().enumerate() {
        let compared = result.comparisons.iter().find(|one| one.program == number);
        let (ratio, p) = compared.map_or(("1".into(), String::new()), |one| ratio(&one.random));
        let [given, given_range] = times(&program.given);
        let [random, random_range] = times(&program.random);
        table.add_row([program.command.clone(), given, given_range, random, random_range, ratio, p]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn times(spread: &Spread) -> [String; 2] {
    let (scale, unit) = match spread.median {
        ..1e-3 => (1e6, "µs"),
        1e-3..1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    let digits = |time: f64| match time * scale {
        ..10.0 => format!("{:.2}", time * scale),
        10.0..100.0 => format!("{:.1}", time * scale),
        _ => format!("{:.0}", time * scale),
    };
    [format!("{} {unit}", digits(spread.median)), format!("{}–{}", digits(spread.low), digits(spread.high))]
}

fn ratio(effect: &Effect) -> (String, String) {
    let p = if effect.p < 0.001 { "< 0.001".into() } else { format!("{:.3}", effect.p) };
    (format!("{:.4} ({:.4}–{:.4})", effect.ratio, effect.low, effect.high), p)
}
