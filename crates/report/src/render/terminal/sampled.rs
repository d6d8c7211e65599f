//! Samples of a program that was not rebuilt, in words.

use memlode_sample::data_source::DataLevel;
use memlode_sample::{
    AllocationCall, SampleReport, SampleShare, SampledAllocation, SampledBlocks, SampledCaller, SampledCost,
    SampledData, SampledSource,
};

use super::Style;
use super::rows::NamedRows;
use super::style::together;
use crate::names::demangle_short;
use crate::render::text::{brief, bytes, count, cut, cut_end, percent_of, printable};

/// A smaller part of the time is not worth a sentence.
const LEAST_TOLD: f64 = 0.02;

/// Returns the output of `memlode sample`.
pub fn sampled(found: &SampleReport, style: Style) -> String {
    let mut out = style.paragraph("sampled", &subject(found));
    if let Some(cost) = &found.cost {
        out += &style.paragraph("sources", &sources(cost));
    }
    out += &style.paragraph("names", &coverage(found));
    for text in warnings(found) {
        out += &style.warning_paragraph("note", &text);
    }
    out += &data(found, style);
    out += &blocks(found, style);
    out += &lines(found, style);
    out += &functions(found, style);
    match exact(found) {
        Some(text) => out + "\n" + &style.paragraph("exactly", &text),
        None => out,
    }
}

/// The facts that only a recording of every access has, and how one is made.
fn exact(found: &SampleReport) -> Option<String> {
    let first = found.data.first()?;
    let how = match found.coverage.compiled.share > found.coverage.memory.share / 2.0 {
        true => "the program is built with memlode, so record them: `memlode run -- PROGRAM`",
        false => {
            "build the program with `memlode cc` (`memlode c++`, `memlode fc`, `memlode cargo build`), then \
             `memlode run -- PROGRAM`"
        }
    };
    Some(format!(
        "samples say that {} is waited for. How often it is accessed and misses which cache, why, which bytes of its lines \
         are never used, and what another layout would gain, only every access tells: {how}",
        brief(&printable(&first.name()))
    ))
}

fn subject(found: &SampleReport) -> String {
    let threads = match found.threads {
        1 => "1 thread".into(),
        n => format!("{n} threads"),
    };
    let mut text = format!("{}: {} samples of {threads}", printable(&found.subject), count(found.samples));
    if !found.events.is_empty() {
        text += &format!(" by {}", found.events.join(" and "));
    }
    if found.period_ns > 0 {
        text += &format!(", one each {:.3} ms of CPU time", found.period_ns as f64 / 1e6);
    }
    if found.seconds > 0.0 {
        text += &format!(", in {:.2} s", found.seconds);
    }
    if found.kernel > 0 {
        text += &format!("; {} more are of the kernel, and left out", count(found.kernel));
    }
    text + "; figures are shares of the "
        + unit(found)
        + ", with the distance within which they lie 19 times in 20"
}

/// The whole that shares are of.
fn unit(found: &SampleReport) -> &'static str {
    if found.is_time { "time" } else { "samples" }
}

/// Sources of the data of all samples.
fn sources(cost: &SampledCost) -> String {
    let one = |source: &SampledSource| {
        let mut text = format!("{} {}", count(source.samples), source_name(source));
        if let Some(cycles) = source.cycles {
            text += &format!(" ({cycles:.0} cycles)");
        }
        let notes = [
            (source.tlb_misses, "not in a TLB"),
            (source.locked, "locked"),
            (source.blocked, "blocked by a store to an address that looks alike"),
        ];
        let notes: Vec<String> = notes
            .iter()
            .filter(|(samples, _)| *samples > 0)
            .map(|(samples, what)| format!("{} {what}", count(*samples)))
            .collect();
        if !notes.is_empty() {
            text += &format!(", of which {}", notes.join(" and "));
        }
        text
    };
    let all: Vec<String> = cost.sources.iter().map(one).collect();
    let mut text =
        format!("by what the processor says, of {} samples: ", count(cost.samples)) + &all.join("; ");
    if let Some(cycles) = cost.cycles {
        text += &format!("; {cycles:.0} cycles in the mean of those that were timed");
    }
    text
}

/// "L3", "L3 of another core that changed it", "stores to L1d".
fn source_name(source: &SampledSource) -> String {
    let level = level_name(source.level);
    let level = if source.is_modified { format!("{level}, changed by another core") } else { level.into() };
    if source.is_store { format!("stores to {level}") } else { format!("from {level}") }
}

fn level_name(level: DataLevel) -> &'static str {
    match level {
        DataLevel::L1 => "L1d",
        DataLevel::FillBuffer => "a fill buffer",
        DataLevel::L2 => "L2",
        DataLevel::L3 => "L3",
        DataLevel::L4 => "L4",
        DataLevel::AnyCache => "another cache",
        DataLevel::RemoteCache => "a cache of another socket",
        DataLevel::Memory => "memory",
        DataLevel::RemoteMemory => "memory of another node",
        DataLevel::PersistentMemory => "persistent memory",
        DataLevel::Cxl => "CXL memory",
        DataLevel::Uncached => "uncached memory",
        DataLevel::BehindL1 => "somewhere behind L1d",
        DataLevel::Unknown => "an unknown place",
    }
}

fn coverage(found: &SampleReport) -> String {
    let part = |share: SampleShare| together(&percent_of(share.share));
    let of = &found.coverage;
    let mut text = format!(
        "{} of the {} has a line; {} is at instructions that touch memory: {} with a variable or type, {} with a member",
        part(of.line),
        unit(found),
        part(of.memory),
        part(of.typed),
        part(of.member)
    );
    if of.stack.share >= LEAST_TOLD {
        let able = of.memory.share - of.stack.share;
        let typed = if able > 0.0 { (of.typed.share / able).min(1.0) } else { 0.0 };
        text += &format!(
            "; {} saves or restores registers and return addresses, which have no type, so {} of what could have one has it",
            part(of.stack),
            together(&percent_of(typed))
        );
    }
    if of.compiled.samples > 0 {
        text += &format!(
            "; {} with the names that memlode's compiler wrote down, which are exact",
            part(of.compiled)
        );
    }
    let reasons: Vec<String> = found
        .untyped
        .iter()
        .filter(|row| row.time.share >= LEAST_TOLD && row.why != "Stack")
        .map(|row| format!("{} at {}", part(row.time), reason(&row.why)))
        .collect();
    if !reasons.is_empty() {
        text += &format!("; without a type: {}", reasons.join(", "));
    }
    text
}

/// Words for a reason of `memlode_symbols::typing::Untyped`.
fn reason(why: &str) -> &str {
    match why {
        "NoDebugInformation" => "code without debug information",
        "NoFunction" => "code of functions that debug information does not know",
        "NoInstruction" => "bytes that are no known instruction",
        "UnknownPointer" => "pointers that no variable explains",
        "UntypedPointer" => "pointers to void",
        "Frame" => "values that the compiler keeps on the stack",
        "Stack" => "registers and return addresses that are saved or restored",
        "OtherMemory" => "thread-local memory and gathers",
        "Static" => "static memory without a variable",
        other => other,
    }
}

fn warnings(found: &SampleReport) -> Vec<String> {
    let (mut texts, unit) = (Vec::new(), unit(found));
    for image in found.images.iter().filter(|image| image.time.share >= 0.05) {
        let (path, share) = (printable(&image.path), percent_of(image.time.share));
        match &image.unread {
            Some(why) => texts.push(format!("{share} of the {unit} is in {path}: {}", printable(why))),
            None if !image.has_debug => texts.push(format!(
                "{share} of the {unit} is in {path}, which has no debug information: compile it with -g, or install the package \
                 with its debug information"
            )),
            None => {}
        }
    }
    if found.lost_blocks > 0 {
        texts.push(format!(
            "{} changes of blocks could not be noted, so some may have the name of an earlier one: take larger ones with \
             --blocks",
            count(found.lost_blocks)
        ));
    }
    if found.lost > 0 || found.throttled > 0 {
        texts.push(format!(
            "the kernel lost {} samples and paused {} times: take fewer with --rate",
            count(found.lost),
            count(found.throttled)
        ));
    }
    texts
}

fn cells(time: SampleShare) -> Vec<String> {
    vec![percent_of(time.share), format!("±{}", percent_of(time.error))]
}

/// Cycles of an access in the mean, the share of all cycles, and the most frequent source but the first cache.
fn cost_cells(cost: Option<&SampledCost>) -> Vec<String> {
    let cycles = cost.and_then(|cost| cost.cycles).map_or(String::new(), |cycles| format!("{cycles:.0}"));
    let share = cost.and_then(|cost| cost.share).map_or(String::new(), percent_of);
    vec![cycles, share, far_cell(cost)]
}

/// The most frequent source but the first cache, and its part of the samples.
pub(super) fn far_cell(cost: Option<&SampledCost>) -> String {
    let is_far = |source: &&SampledSource| source.level != DataLevel::L1 || source.is_modified;
    let far = cost.and_then(|cost| Some((cost, cost.sources.iter().find(is_far)?)));
    far.map_or(String::new(), |(cost, source)| {
        let share = source.samples as f64 / cost.samples as f64;
        format!("{} {}", percent_of(share), source_name(source))
    })
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn place(file: &str, line: u32, function: &str) -> String {
    let function = brief(&demangle_short(function));
    printable(format!("{}:{line} {function}", base_name(file)).trim_end()).into_owned()
}

/// Columns that names may take beside the numbers.
fn room(style: Style) -> usize {
    style.width.saturating_sub(22).max(40)
}

fn table(
    title: &'static str,
    columns: &'static [&'static str],
    rows: Vec<(Vec<String>, SampleShare, Option<&SampledCost>)>,
    below: Vec<String>,
    all: usize,
    found: &SampleReport,
    style: Style,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let has_cost = rows.iter().any(|(_, _, cost)| cost.is_some());
    let row = |(text, time, cost): (Vec<String>, SampleShare, Option<&SampledCost>)| {
        let costs = if has_cost { cost_cells(cost) } else { Vec::new() };
        (text, [cells(time), costs].concat())
    };
    let (texts, numbers): (Vec<_>, Vec<_>) = rows.into_iter().map(row).unzip();
    let mut headings = vec![unit(found).to_owned(), "±".to_owned()];
    if has_cost {
        headings.extend(["cycles", "of all cycles", "beyond L1d, mostly"].map(str::to_owned));
    }
    NamedRows { title, columns, texts, below }.table(&headings, numbers, all, style)
}

fn name(data: &SampledData) -> String {
    let name = brief(&printable(&data.name()));
    match data.on_stack {
        Some(share) if share > 0.5 && data.variable.is_none() => format!("{name} (stack)"),
        _ => name,
    }
}

fn data<'a>(found: &'a SampleReport, style: Style) -> String {
    let width = room(style);
    let row = |data: &'a SampledData| {
        let at = data.lines.first().map(|(file, line, function)| place(file, *line, function));
        let (name, at) = (name(data), at.unwrap_or_default());
        (
            vec![cut(&name, width / 2).into_owned(), cut_end(&at, width / 2).into_owned()],
            data.time,
            data.cost.as_ref(),
        )
    };
    let rows = found.data.iter().take(style.top).map(row).collect();
    let block = |data: &SampledData| {
        let of = data.allocated.as_ref().map(|allocated| format!("in {}", allocation(allocated)));
        cut_end(&of.unwrap_or_default(), width + 18).into_owned()
    };
    let below = found.data.iter().take(style.top).map(block).collect();
    table(
        if found.is_time {
            "Data, by time at the instructions that touch it"
        } else {
            "Data, by samples at the instructions that touch it"
        },
        &["data", "mostly at"],
        rows,
        below,
        found.data.len(),
        found,
        style,
    )
}

/// "heap block from build at network.h:35 ← main at main.c:7".
fn allocation(of: &SampledAllocation) -> String {
    if of.is_older {
        return "memory that is older than the recording (or a block too small to be noted)".into();
    }
    let kind = if of.is_mapped { "memory mapped by" } else { "heap block from" };
    let one = |call: &AllocationCall| {
        let name = match call.function.as_str() {
            "" => "?".to_owned(),
            name => brief(&printable(&demangle_short(name))),
        };
        match call.line {
            0 => name,
            line => printable(&format!("{name} at {}:{line}", base_name(&call.file))).into_owned(),
        }
    };
    match &of.calls[..] {
        [] => format!("{kind} calls that are not known"),
        calls => format!("{kind} {}", calls.iter().map(one).collect::<Vec<_>>().join(" ← ")),
    }
}

fn blocks(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let rows = found.blocks.iter().take(style.top).map(|row| {
        let data = row.data.as_deref().map_or(String::new(), |data| brief(&printable(data)));
        let name = allocation(&row.allocated);
        (vec![cut_end(&name, 2 * width / 3).into_owned(), cut(&data, width / 3).into_owned()], row.time, None)
    });
    let size = |row: &SampledBlocks| match row.blocks {
        _ if row.allocated.is_older => String::new(),
        1 => format!("1 block of {}", bytes(row.bytes)),
        n => format!("{} blocks of {} together", count(n as u64), bytes(row.bytes)),
    };
    let below = found.blocks.iter().take(style.top).map(size).collect();
    table("Blocks", &["block", "data"], rows.collect(), below, found.blocks.len(), found, style)
}

fn lines(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let rows = found.lines.iter().take(style.top).map(|row| {
        let mut at = place(&row.file, row.line, &row.function);
        for outer in &row.inlined_into {
            at += &format!(" ← {}", brief(&printable(&demangle_short(outer))));
        }
        let data = row.data.as_deref().map_or(String::new(), |data| brief(&printable(data)));
        (
            vec![cut_end(&at, 2 * width / 3).into_owned(), cut(&data, width / 3).into_owned()],
            row.time,
            row.cost.as_ref(),
        )
    });
    let below = found.lines.iter().take(style.top).map(|row| callers(&row.callers, width)).collect();
    table("Lines", &["line", "data"], rows.collect(), below, found.lines.len(), found, style)
}

/// "called by f ← main (80%), g (20%)"; nothing where no caller is known.
fn callers(callers: &[SampledCaller], width: usize) -> String {
    let one = |caller: &SampledCaller| {
        let name = |name: &String| match name.as_str() {
            "" => "?".to_owned(),
            name => brief(&printable(&demangle_short(name))),
        };
        let names: Vec<String> = caller.functions.iter().map(name).collect();
        format!("{} ({})", names.join(" ← "), percent_of(caller.share))
    };
    match callers {
        [] => String::new(),
        callers => cut_end(
            &format!("called by {}", callers.iter().map(one).collect::<Vec<_>>().join(", ")),
            width + 18,
        )
        .into_owned(),
    }
}

fn functions(found: &SampleReport, style: Style) -> String {
    let width = room(style);
    let rows = found.functions.iter().take(style.top).map(|row| {
        let name = match row.function.as_str() {
            "" => "(no function is known)".into(),
            name => brief(&printable(&demangle_short(name))),
        };
        let image = match row.image.as_str() {
            "" => "memory without a file".into(),
            path => printable(base_name(path)).into_owned(),
        };
        (
            vec![cut_end(&name, 2 * width / 3).into_owned(), cut_end(&image, width / 3).into_owned()],
            row.time,
            None,
        )
    });
    table("Functions", &["function", "in"], rows.collect(), Vec::new(), found.functions.len(), found, style)
}
