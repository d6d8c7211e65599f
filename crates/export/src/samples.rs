//! A recording of samples as a table, a row each, and as stacks.

use std::collections::HashMap;

use memlode_report::names::demangle;
use memlode_trace::event::ThreadId;
use memlode_trace::sampled::{
    InstructionFrame, SampledInstruction, SampledRecording, StoredSample, untyped_word,
};

use crate::columns::{Columns, ExportedTable};
use crate::stacks::{StackFrame, StackFunction, StackMetric, StackSample, Stacks};

/// Makes the table `samples`.
pub fn table(recording: &SampledRecording) -> ExportedTable {
    let samples = &recording.samples;
    let mut columns = Columns::new(samples.len());
    let each = || samples.iter();
    let at = || each().map(|sample| recording.instruction(sample.at));
    let thread = || each().map(|sample| recording.threads[sample.thread as usize]);
    let frame = |of: fn(&InstructionFrame) -> u32| {
        at().map(move |at| at.frames.first().map(of).filter(|number| *number > 0))
    };
    columns.u64("time_ns", each().map(|sample| sample.time));
    columns.u64("pid", thread().map(|thread| thread.pid.into()));
    columns.u64("tid", thread().map(|thread| thread.tid.into()));
    columns.u64("weight", each().map(|sample| sample.weight));
    columns.maybe_u64("address", each().map(|sample| sample.address));
    columns.maybe_u32("bytes", at().map(|at| at.access.map(|access| access.bytes)));
    columns.maybe_text(
        "kind",
        at().map(|at| at.access.map(|access| if access.is_store { "store" } else { "load" })),
    );
    columns.maybe_text("variable", at().map(|at| at.variable.as_ref()));
    columns.maybe_text("type", at().map(|at| at.ty.as_ref()));
    columns.maybe_text("member", at().map(|at| at.member.as_ref()));
    columns.maybe_text("untyped", at().map(|at| untyped_word(at.untyped)));
    columns.maybe_text("file", at().map(|at| Some(&at.frames.first()?.file).filter(|file| !file.is_empty())));
    columns.maybe_u32("line", frame(|frame| frame.line));
    columns.maybe_u32("column", frame(|frame| frame.column));
    columns.maybe_text("function", at().map(|at| Some(at.function()).filter(|name| !name.is_empty())));
    columns.text("image", each().map(|sample| &recording.modules[sample.at.module as usize].path));
    columns.u64("instruction", at().map(|at| at.address));
    columns.maybe_u64("data_source", each().map(|sample| sample.source));
    columns.maybe_u64("latency", each().map(|sample| sample.latency));
    columns.maybe_u32("cpu", each().map(|sample| sample.cpu));
    columns.maybe_u64("page_bytes", each().map(|sample| sample.page_bytes));
    let block = || each().map(|sample| sample.block.map(|block| &recording.blocks[block as usize]));
    columns.maybe_u64("block", block().map(|block| Some(block?.address)));
    columns.maybe_u64("block_bytes", block().map(|block| Some(block?.bytes)));
    columns.texts(
        "allocated_by",
        block().map(|block| {
            let calls = recording.calls(block.and_then(|block| block.path));
            calls.map(SampledInstruction::function).collect()
        }),
    );
    columns.texts(
        "callers",
        each().map(|sample| recording.callers(sample).map(SampledInstruction::function).collect()),
    );
    columns.named("samples")
}

/// Makes stacks: one for each sample.
pub fn stacks(recording: &SampledRecording, command: Vec<String>) -> Stacks {
    let metric = |name: &str, unit| StackMetric { name: name.into(), unit };
    let weight = if recording.info.period_ns > 0 { "nanoseconds" } else { "count" };
    let mut functions = Functions::default();
    let samples = recording.samples.iter().map(|sample| functions.sample(recording, sample)).collect();
    Stacks {
        command,
        metrics: vec![metric("weight", weight), metric("samples", "count")],
        functions: functions.all,
        samples,
    }
}

/// Functions by name and file.
#[derive(Default)]
struct Functions {
    all: Vec<StackFunction>,
    numbers: HashMap<(String, String), usize>,
}

impl Functions {
    fn sample(&mut self, recording: &SampledRecording, sample: &StoredSample) -> StackSample {
        let at = recording.instruction(sample.at);
        let mut frames = Vec::new();
        for at in std::iter::once(at).chain(recording.callers(sample)) {
            self.frames(at, &mut frames);
        }
        let data = [&at.variable, &at.ty, &at.member].map(|name| name.as_deref());
        let data = match data {
            [_, Some(ty), Some(member)] => format!("{ty}.{member}"),
            [Some(variable), None, Some(member)] => format!("{variable}.{member}"),
            [Some(variable), _, None] => variable.to_owned(),
            [None, Some(ty), None] => ty.to_owned(),
            [None, None, Some(member)] => member.to_owned(),
            [None, None, None] if at.access.is_some() => "(memory)".to_owned(),
            [None, None, None] => "(no memory)".to_owned(),
        };
        StackSample {
            frames,
            thread: ThreadId(sample.thread),
            data,
            object: String::new(),
            values: vec![sample.weight.max(1), 1],
        }
    }

    /// Frames of an instruction, the innermost first.
    fn frames(&mut self, at: &SampledInstruction, frames: &mut Vec<StackFrame>) {
        if at.frames.is_empty() {
            let function = self.number(&at.symbol, "");
            frames.push(StackFrame { function, line: 0, is_inlined: false });
        }
        for (number, frame) in (1..).zip(&at.frames) {
            let name = if frame.function.is_empty() { &at.symbol } else { &frame.function };
            let function = self.number(name, &frame.file);
            let is_inlined = number < at.frames.len();
            frames.push(StackFrame { function, line: frame.line, is_inlined });
        }
    }

    fn number(&mut self, name: &str, file: &str) -> usize {
        *self.numbers.entry((name.to_owned(), file.to_owned())).or_insert_with(|| {
            let shown = if name.is_empty() { "(no function is known)".to_owned() } else { demangle(name) };
            self.all.push(StackFunction {
                name: shown,
                linkage_name: name.to_owned(),
                file: Some(file.to_owned()).filter(|file| !file.is_empty()),
                first_line: 0,
            });
            self.all.len() - 1
        })
    }
}
