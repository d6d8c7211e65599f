//! Sentences that every output has.

use super::text::{bytes, count, printable};
use crate::model::{Assumption, LevelRules, NotRecorded, Note, Pages};

/// Returns the peak memory of a command, and of the largest process that looked at a part for it, both in bytes.
pub fn peak_memory(own: Option<u64>, part: Option<u64>) -> String {
    let own = own.map_or("not known here".into(), bytes);
    let part = part.map(|part| format!(", and {} in the largest process that looked at a part", bytes(part)));
    format!("peak memory: {own}{}", part.unwrap_or_default())
}

/// Returns a note as a sentence.
pub fn note(note: &Note) -> String {
    match note {
        Note::Filtered => {
            "part of the program was compiled with a filter: what it leaves out is not in these numbers".into()
        }
        Note::NotRecorded { places } => {
            let (executed, standing): (Vec<_>, Vec<_>) = places.iter().partition(|of| of.executed.is_some());
            let mut parts = Vec::new();
            if !executed.is_empty() {
                parts.push(format!("not recorded, by executions: {}", executions(executed)));
            }
            if !standing.is_empty() {
                let each: Vec<String> =
                    standing.iter().map(|of| format!("{} ({})", of.reason, count(of.places))).collect();
                parts.push(format!("not recorded, by places in the code: {}", each.join(", ")));
            }
            parts.join("; ")
        }
        Note::Nameless => {
            "part of the program was compiled without -g, or with -g1: its variables, types and members have no names, \
             and no advice is given on them; compile it with -g"
                .into()
        }
        Note::Plain { files } => {
            let names: Vec<&str> = files.iter().map(|file| file.rsplit('/').next().unwrap_or(file)).collect();
            format!("loaded and not recorded, as memlode did not build it: {}", some(&names))
        }
        Note::Foreign { file, functions, bytes: length, names, has_libraries } => {
            let file = printable(file.rsplit('/').next().unwrap_or(file));
            let (noun, what_is_done) =
                if *functions == 1 { ("function", "it does") } else { ("functions", "they do") };
            let names: Vec<String> = names.iter().map(|name| without_arguments(name)).collect();
            let more = functions.saturating_sub(names.len() as u64);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let libraries = if *has_libraries { ", the C library's among them" } else { "" };
            format!(
                "memlode did not compile {functions} {noun} in {file} ({}{libraries}), and what {what_is_done} is not \
                 recorded: {}{rest}",
                bytes(*length),
                names.join(", ")
            )
        }
        Note::Unmatched { rules } => format!("matched nothing in the program: {}", some(rules)),
        Note::Narrowed { to } => to.clone(),
        Note::Part { between, functions, files, threads } => {
            let mut parts: Vec<String> = between.iter().map(|part| format!("accesses {part}")).collect();
            let named = [("function", functions), ("file", files), ("thread", threads)];
            parts.extend(
                named
                    .into_iter()
                    .filter(|(_, names)| !names.is_empty())
                    .map(|(what, names)| format!("{what} {}", names.join(" or "))),
            );
            format!("only a part is counted, and all of the trace went through the caches: {}", parts.join(", "))
        }
        Note::SumOfLatencies { cycles, report_cycles } => format!(
            "waits are sums of latencies here, {} cycles in all: {:.1} times the {} of the report's model, by which misses \
             overlap",
            count(*cycles),
            *cycles as f64 / (*report_cycles).max(1) as f64,
            count(*report_cycles)
        ),
        Note::Unfinished => {
            "recording did not finish: what the collector had not yet written is missing".into()
        }
        Note::AsWritten => {
            "part of the program was compiled with --fidelity=source: these are the accesses that its source names, \
             of which an optimised program makes fewer"
                .into()
        }
        Note::Damaged { part } => part.clone(),
        Note::LeftOut { part } => format!("{part}; left out"),
        Note::Switched => {
            "recording was stopped, started or set to other bursts while the program ran: what is missing was chosen, \
             not sampled"
                .into()
        }
        Note::Lost { loss } => loss.clone(),
        Note::Signal { signal } => format!("the program was ended by signal {signal}"),
    }
}

/// Lists code that was executed and not recorded, with its executions.
pub(super) fn executions<'a>(places: impl IntoIterator<Item = &'a NotRecorded>) -> String {
    let times = |of: &NotRecorded| {
        let what = of.function.as_deref().map_or(of.reason.to_string(), without_arguments);
        format!("{what} {}", count(of.executed.unwrap_or_default()))
    };
    some(&places.into_iter().map(times).collect::<Vec<_>>())
}

/// A function's name without the arguments of templates.
fn without_arguments(name: &str) -> String {
    let mut depth = 0;
    let mut shown = String::new();
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            c if depth == 0 => shown.push(c),
            _ => {}
        }
    }
    if depth == 0 { printable(&shown).into_owned() } else { printable(name).into_owned() }
}

/// Lists the first five, and the number of the rest.
fn some<S: AsRef<str>>(all: &[S]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = all.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = all.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

/// Something that a simulation takes for granted, as a sentence.
pub(crate) fn assumption(assumption: &Assumption) -> String {
    match assumption {
        Assumption::NoOverlap => {
            "misses do not overlap, and each costs the latency of the level that answers: an upper bound"
                .into()
        }
        Assumption::PrefetchAtOnce { late_within_accesses } => format!(
            "prefetched lines arrive at once; one used within {late_within_accesses} accesses of each running core \
             counts as late (the latency of memory, at one access a cycle)"
        ),
        Assumption::Translations { page_walk_cycles, second_level_cycles } => {
            let second = second_level_cycles
                .map_or(String::new(), |cycles| format!(", an answer of the second-level TLB {cycles}"));
            format!(
                "the wait includes address translation: a page walk takes {page_walk_cycles} cycles, wherever the page \
                 tables are{second}"
            )
        }
        Assumption::PageSize { memory, page_bytes } => {
            let pages = bytes(*page_bytes);
            match memory {
                Pages::Heap => format!("memory whose allocation was recorded lies in pages of {pages}"),
                Pages::Stack => format!("stacks lie in pages of {pages}"),
                Pages::Global(name) => format!("the global variable {name} lies in pages of {pages}"),
            }
        }
        Assumption::RemoteMemory { remote_cycles, local_cycles, given, placement, node } => {
            let placed = match (&**placement, node) {
                ("node", Some(node)) => format!("in node {node}"),
                ("interleave", _) => "in all nodes in turn".into(),
                _ => "in the node that touches them first".into(),
            };
            let pages = if *given { "pages lie where the file says, and others" } else { "pages lie" };
            format!(
                "the wait includes remote memory: {remote_cycles} cycles, where the node's own takes {local_cycles}; \
                 {pages} {placed}"
            )
        }
    }
}

/// `tree-PLRU, exclusive, prefetches next-line and stride`.
pub(crate) fn level_rules(rules: &LevelRules) -> String {
    let replacement = match &*rules.replacement {
        "tree-plru" => "tree-PLRU".into(),
        word @ ("lru" | "srrip" | "brrip" | "fifo") => word.to_uppercase(),
        word => word.to_string(),
    };
    let mut words = vec![replacement];
    words.extend((rules.inclusion != "non-inclusive").then(|| rules.inclusion.to_string()));
    words.extend((rules.write == "through").then(|| "write-through".into()));
    words.extend((rules.allocate == "reads").then(|| "no-write-allocate".into()));
    words.extend(rules.sector_bytes.map(|sector| format!("sectors of {}", bytes(sector.into()))));
    words
        .extend((!rules.prefetch.is_empty()).then(|| format!("prefetches {}", rules.prefetch.join(" and "))));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_matched_nothing_are_named_up_to_five() {
        let told = |count: usize| {
            note(&Note::Unmatched { rules: (1..=count).map(|n| format!("function f{n}")).collect() })
        };
        assert_eq!(told(1), "matched nothing in the program: function f1");
        let five = "function f1, function f2, function f3, function f4, function f5";
        assert_eq!(told(5), format!("matched nothing in the program: {five}"));
        assert_eq!(told(7), format!("matched nothing in the program: {five} and 2 more"));
    }
}
