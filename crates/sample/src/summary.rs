//! From samples to a report: counts by line and function, by type and member.

use std::collections::BTreeMap;

use memlode_symbols::typing::TypedData;
use memlode_trace::format::untyped;
use memlode_trace::sampled::{
    InstructionId, SampledInstruction, SampledRecording, StoredSample, untyped_word,
};

use crate::allocations::Allocations;
use crate::data_source::DataSource;
use crate::report::{
    SampleCoverage, SampleReport, SampledCaller, SampledCost, SampledData, SampledFunction, SampledImage,
    SampledLine, UntypedShare,
};
use crate::resolve::{SampleSource, resolve};
use crate::share::{SampleCount, SampleShare, SourceCount};
use crate::tally::Sampled;

/// Lines that are told of data.
const MOST_LINES: usize = 3;
/// Ways to a line that are told, and functions of each.
const MOST_CALLERS: usize = 3;
const LONGEST_WAY: usize = 4;

/// A line: its file, number and function, and what that is inlined into.
type LineKey = (String, u32, String, Vec<String>);

/// Counts of a line.
#[derive(Default)]
struct LineCount {
    time: SampleCount,
    data: BTreeMap<TypedData, u128>,
    sources: BTreeMap<DataSource, SourceCount>,
    callers: BTreeMap<Vec<String>, u128>,
}

/// Counts of an instruction.
#[derive(Default)]
pub(crate) struct InstructionCount {
    pub time: SampleCount,
    known: u64,
    on_stack: u64,
    pub sources: BTreeMap<DataSource, SourceCount>,
    /// Weights by call path.
    callers: BTreeMap<u32, u128>,
}

/// Counts by name.
#[derive(Default)]
struct Names {
    lines: BTreeMap<LineKey, LineCount>,
    functions: BTreeMap<(String, String), SampleCount>,
    data: BTreeMap<TypedData, DataCount>,
    untyped: BTreeMap<u8, SampleCount>,
    images: Vec<(SampledImage, SampleCount)>,
    sources: BTreeMap<DataSource, SourceCount>,
    with_line: SampleCount,
    memory: SampleCount,
    typed: SampleCount,
    member: SampleCount,
    compiled: SampleCount,
    all: SampleCount,
    allocations: Allocations,
}

#[derive(Default)]
struct DataCount {
    time: SampleCount,
    lines: BTreeMap<(String, u32, String), u128>,
    allocations: BTreeMap<usize, u128>,
    known: u64,
    on_stack: u64,
    sources: BTreeMap<DataSource, SourceCount>,
}

/// Adds counts of sources to others.
pub(crate) fn add(to: &mut BTreeMap<DataSource, SourceCount>, more: &BTreeMap<DataSource, SourceCount>) {
    more.iter().for_each(|(source, count)| to.entry(*source).or_default().add(*count));
}

/// Names what was sampled.
pub fn name(sampled: &Sampled, source: SampleSource) -> SampleReport {
    report(&resolve(sampled, &source))
}

/// Sums up samples.
pub fn report(recording: &SampledRecording) -> SampleReport {
    let counts = counts(recording);
    let mut names =
        Names { allocations: Allocations::of(recording, is_weighted(recording)), ..Names::default() };
    for (module, found) in (0..).zip(&recording.modules) {
        let own = counts.iter().filter(|(at, _)| at.module == module);
        let mut of_image = SampleCount::default();
        for (at, count) in own {
            of_image.add(count.time);
            names.instruction(recording, *at, count, &found.path);
        }
        if !found.path.is_empty() && of_image.samples > 0 {
            let (path, unread) = (found.path.clone(), found.unread.clone());
            let time = SampleShare::default();
            let has_debug = found.has_debug;
            names.images.push((SampledImage { path, has_debug, unread, time }, of_image));
        }
        names.all.add(of_image);
    }
    names.finish(recording)
}

/// Counts by instruction.
pub(crate) fn counts(recording: &SampledRecording) -> BTreeMap<InstructionId, InstructionCount> {
    let is_weighted = is_weighted(recording);
    let mut counts: BTreeMap<_, InstructionCount> = BTreeMap::new();
    for sample in &recording.samples {
        let weight = if is_weighted { sample.weight } else { 1 };
        counts.entry(sample.at).or_default().take(sample, weight);
    }
    counts
}

/// Samples of which one does not say what it stands for all stand for as much.
fn is_weighted(recording: &SampledRecording) -> bool {
    recording.samples.iter().all(|sample| sample.weight > 0)
}

impl InstructionCount {
    fn take(&mut self, sample: &StoredSample, weight: u64) {
        self.time.take(weight);
        if let Some(path) = sample.path {
            *self.callers.entry(path).or_default() += u128::from(weight);
        }
        if let Some(on_stack) = sample.on_stack {
            self.known += 1;
            self.on_stack += u64::from(on_stack);
        }
        if let Some(source) = sample.source.and_then(DataSource::of) {
            self.sources.entry(source).or_default().take(sample.latency, weight);
        }
    }
}

impl Names {
    fn instruction(
        &mut self,
        recording: &SampledRecording,
        at: InstructionId,
        count: &InstructionCount,
        image: &str,
    ) {
        let found = recording.instruction(at);
        let time = count.time;
        let line = line(found);
        let function = found.function().to_owned();
        self.functions.entry((function, image.to_owned())).or_default().add(time);
        add(&mut self.sources, &count.sources);
        if found.access.is_some() {
            self.memory.add(time);
        }
        if found.is_compiled {
            self.compiled.add(time);
        }
        let data = data_of(found);
        if let Some(key) = &line {
            self.with_line.add(time);
            let row = self.lines.entry(key.clone()).or_default();
            row.time.add(time);
            add(&mut row.sources, &count.sources);
            for (path, weight) in &count.callers {
                *row.callers.entry(way(recording, *path)).or_default() += weight;
            }
            if let Some(data) = &data {
                *row.data.entry(data.clone()).or_default() += time.weight;
            }
        }
        match data {
            Some(data) => self.data(at, count, data, line),
            None if found.untyped == untyped::NO_MEMORY => {}
            None => self.untyped.entry(found.untyped).or_default().add(time),
        }
    }

    fn data(&mut self, at: InstructionId, found: &InstructionCount, data: TypedData, line: Option<LineKey>) {
        self.typed.add(found.time);
        // Objects of a type are one kind of data, whatever variable they are in.
        let mut key = data;
        if key.member.is_some() {
            self.member.add(found.time);
            key.variable = key.variable.filter(|_| key.kind.is_none());
        }
        let count = self.data.entry(key).or_default();
        count.time.add(found.time);
        add(&mut count.sources, &found.sources);
        for (way, weight) in self.allocations.of_instruction(at) {
            *count.allocations.entry(way).or_default() += weight;
        }
        count.known += found.known;
        count.on_stack += found.on_stack;
        if let Some((file, line, function, _)) = line {
            *count.lines.entry((file, line, function)).or_default() += found.time.weight;
        }
    }

    fn finish(self, recording: &SampledRecording) -> SampleReport {
        let all = self.all;
        let share = |count: SampleCount| SampleShare::of(count, all);
        let all_cycles = self.sources.values().fold(0, |sum: u128, count| sum.saturating_add(count.cycles));
        let coverage = SampleCoverage {
            line: share(self.with_line),
            memory: share(self.memory),
            typed: share(self.typed),
            member: share(self.member),
            compiled: share(self.compiled),
            stack: share(self.untyped.get(&untyped::STACK).copied().unwrap_or_default()),
        };
        let data = self.data.into_iter().map(|(data, count)| {
            let mut lines: Vec<_> = count.lines.into_iter().collect();
            lines.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
            let lines = lines.into_iter().take(MOST_LINES).map(|(line, _)| line).collect();
            let on_stack = (count.known > 0).then(|| count.on_stack as f64 / count.known as f64);
            let TypedData { kind, member, variable } = data;
            let cost = SampledCost::of(&count.sources, all_cycles);
            let allocated = count.allocations.into_iter().max_by_key(|(_, weight)| *weight);
            let allocated = allocated.map(|(way, _)| self.allocations.way(way).clone());
            SampledData { kind, member, variable, lines, on_stack, allocated, cost, time: share(count.time) }
        });
        let lines = self.lines.into_iter().map(|((file, line, function, inlined_into), count)| {
            let most = count.data.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            let data = most.map(|(data, _)| SampledData::named(data).name());
            let cost = SampledCost::of(&count.sources, all_cycles);
            let callers = callers(count.callers, count.time);
            SampledLine { file, line, function, inlined_into, callers, data, cost, time: share(count.time) }
        });
        let functions = self.functions.into_iter().map(|((function, image), count)| SampledFunction {
            function,
            image,
            time: share(count),
        });
        let untyped = self.untyped.into_iter().map(|(why, count)| UntypedShare {
            why: untyped_word(why).unwrap_or_default().to_owned(),
            time: share(count),
        });
        let images =
            self.images.into_iter().map(|(image, count)| SampledImage { time: share(count), ..image });
        let name = |at: &SampledInstruction| data_of(at).map(|data| SampledData::named(data).name());
        let blocks = self.allocations.blocks(recording, name, share);
        let info = &recording.info;
        SampleReport {
            subject: info.subject.clone(),
            events: info.events.clone(),
            is_time: info.is_time,
            seconds: info.watched_ns as f64 / 1e9,
            period_ns: info.period_ns,
            samples: all.samples,
            effective: all.effective(),
            kernel: info.kernel,
            lost: info.lost,
            throttled: info.throttled,
            threads: recording.threads.len(),
            skid: info.skid,
            cost: SampledCost::of(&self.sources, all_cycles),
            coverage,
            untyped: slowest_first(untyped, |row| row.time),
            images: slowest_first(images, |row| row.time),
            data: slowest_first(data, |row| row.time),
            lines: slowest_first(lines, |row| row.time),
            functions: slowest_first(functions, |row| row.time),
            blocks: slowest_first(blocks.into_iter(), |row| row.time),
            least_block: info.least_block,
            lost_blocks: info.lost_blocks,
        }
    }
}

/// Functions that led to samples, the nearest first.
fn way(recording: &SampledRecording, path: u32) -> Vec<String> {
    let mut names = Vec::new();
    for call in recording.calls(Some(path)) {
        names.extend(call.frames.iter().map(|frame| frame.function.clone()));
        if call.frames.is_empty() {
            names.push(call.symbol.clone());
        }
        if names.len() >= LONGEST_WAY {
            break;
        }
    }
    names.truncate(LONGEST_WAY);
    names
}

fn callers(counts: BTreeMap<Vec<String>, u128>, of: SampleCount) -> Vec<SampledCaller> {
    let mut ways: Vec<_> = counts.into_iter().collect();
    ways.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let one =
        |(functions, weight): (_, u128)| SampledCaller { functions, share: weight as f64 / of.weight as f64 };
    ways.into_iter().take(MOST_CALLERS).map(one).collect()
}

/// Rows of equal time stay in the order of their names.
fn slowest_first<T>(rows: impl Iterator<Item = T>, time: impl Fn(&T) -> SampleShare) -> Vec<T> {
    let mut rows: Vec<T> = rows.collect();
    rows.sort_by(|a, b| time(b).share.total_cmp(&time(a).share));
    rows
}

/// The data of an instruction, if they have a name.
fn data_of(found: &SampledInstruction) -> Option<TypedData> {
    (found.untyped == untyped::TYPED).then(|| TypedData {
        kind: found.ty.clone(),
        member: found.member.clone(),
        variable: found.variable.clone(),
    })
}

fn line(found: &SampledInstruction) -> Option<LineKey> {
    let first = found.frames.first().filter(|frame| frame.line > 0)?;
    let inlined_into = found.frames[1..].iter().map(|frame| frame.function.clone()).collect();
    Some((first.file.clone(), first.line, first.function.clone(), inlined_into))
}
