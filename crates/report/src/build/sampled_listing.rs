//! From samples to the lines of their program's sources, and to its instructions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use memlode_attribute::libraries::is_library_path;
use memlode_sample::InstructionSamples;
use memlode_symbols::code::FunctionCode;
use memlode_symbols::debug::DebugFrame;
use memlode_trace::sampled::{InstructionFrame, InstructionId, SampledInstruction, SampledRecording};

use crate::build::listing::{Key, WantedLines, key, with_text};
use crate::build::source::Sources;
use crate::model::{
    Data, Position, SampledListedInstruction, SampledListedLine, SampledListing, SampledPart,
};
use crate::names::demangle;

/// Samples of a recording, with the positions of their instructions.
pub struct SampledPlaces<'r> {
    recording: &'r SampledRecording,
    counts: InstructionSamples,
    positions: Vec<(InstructionId, Position)>,
}

/// Instructions of a line: those that were sampled, and those of its code.
#[derive(Default)]
struct LineCode {
    sampled: Vec<InstructionId>,
    listed: Vec<SampledListedInstruction>,
}

/// Type, member and variable.
type DataName<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// Code of functions, each with the module that it is of.
pub type ModuleCode = (u32, FunctionCode);

impl<'r> SampledPlaces<'r> {
    /// Finds the positions of all samples.
    pub fn of(recording: &'r SampledRecording) -> SampledPlaces<'r> {
        let counts = InstructionSamples::of(recording);
        let positions = counts.instructions().map(|id| (id, position(recording.instruction(id)))).collect();
        SampledPlaces { recording, counts, positions }
    }

    /// Names of the functions of a module that hold code of wanted lines, as linkers know them.
    pub fn functions(&self, module: u32, wanted: &WantedLines) -> BTreeSet<String> {
        let own = self.positions.iter().filter(|(id, _)| id.module == module);
        let wanted = own.filter(|(_, position)| wanted.position(position).is_some());
        wanted.map(|(id, _)| self.recording.instruction(*id).symbol.clone()).collect()
    }

    /// Lists lines, with `context` neighbours on each side, and below them the instructions of `code`.
    pub fn listing(
        &self,
        code: &[ModuleCode],
        sources: &mut Sources,
        wanted: &WantedLines,
        context: u32,
    ) -> SampledListing {
        let by_function = !matches!(wanted, WantedLines::File(..));
        let mut parts: BTreeMap<Key<'_>, BTreeMap<Option<u32>, LineCode>> = BTreeMap::new();
        for (id, position) in &self.positions {
            if let Some(position) = wanted.position(position) {
                let (key, line) = key(position, by_function);
                parts.entry(key).or_default().entry(line).or_default().sampled.push(*id);
            }
        }
        let instructions = self.instructions(code);
        for (position, instruction) in &instructions {
            let Some(position) = wanted.position(position) else { continue };
            let (key, line) = key(position, by_function);
            // Code is listed where samples are.
            if let Some(line) = parts.get_mut(&key).and_then(|lines| lines.get_mut(&line)) {
                line.listed.push(instruction.clone());
            }
        }
        let least = if let WantedLines::Hot(least) = wanted { *least } else { 0.0 };
        let mut found = Vec::new();
        let mut left_out = 0;
        for (key, lines) in parts {
            let all: Vec<InstructionId> = lines.values().flat_map(|line| &line.sampled).copied().collect();
            let samples = self.counts.sum(&all);
            if samples.time.share < least {
                left_out += 1;
                continue;
            }
            let (lines, no_text) = with_text(key.file, lines, sources, context);
            found.push(SampledPart {
                file: key.file.map(str::to_owned),
                function: key.function.map(|(name, _)| name.to_owned()),
                linkage_name: key.function.map(|(_, name)| name.to_owned()),
                samples,
                lines: lines.into_iter().map(|(line, text, code)| self.line(line, text, code)).collect(),
                no_text,
            });
        }
        found.sort_by_key(|part| Reverse(part.samples.time.samples));
        let all: Vec<InstructionId> = self.counts.instructions().collect();
        let info = &self.recording.info;
        SampledListing {
            subject: info.subject.clone(),
            events: info.events.clone(),
            is_time: info.is_time,
            total: self.counts.sum(&all),
            parts: found,
            left_out,
        }
    }

    /// All positions with samples, those with most first.
    pub fn positions(&self) -> impl Iterator<Item = &Position> {
        let mut order: Vec<&(InstructionId, Position)> = self.positions.iter().collect();
        order.sort_by_key(|(id, _)| Reverse(self.counts.sum(&[*id]).time.samples));
        order.into_iter().map(|(_, position)| position)
    }

    fn line(&self, line: Option<u32>, text: Option<String>, code: LineCode) -> SampledListedLine {
        let mut data: BTreeMap<DataName<'_>, u64> = BTreeMap::new();
        for id in &code.sampled {
            let of = self.recording.instruction(*id);
            let name = (of.ty.as_deref(), of.member.as_deref(), of.variable.as_deref());
            if name != (None, None, None) {
                *data.entry(name).or_default() += self.counts.sum(&[*id]).time.samples;
            }
        }
        let mut data: Vec<_> = data.into_iter().collect();
        data.sort_by_key(|(_, samples)| Reverse(*samples));
        let named = |((ty, member, variable), _): (DataName<'_>, u64)| Data {
            ty: ty.map(str::to_owned),
            member: member.map(str::to_owned),
            variable: variable.map(str::to_owned),
        };
        SampledListedLine {
            line,
            text,
            samples: (!code.sampled.is_empty()).then(|| self.counts.sum(&code.sampled)),
            data: data.into_iter().map(named).collect(),
            instructions: code.listed,
        }
    }

    /// Instructions with their positions; a sample belongs to one of them.
    fn instructions(&self, code: &[ModuleCode]) -> Vec<(Position, SampledListedInstruction)> {
        let sampled: HashMap<(u32, u64), InstructionId> = self
            .positions
            .iter()
            .map(|(id, _)| ((id.module, self.recording.instruction(*id).address), *id))
            .collect();
        let mut found = Vec::new();
        for (module, function) in code {
            for line in &function.lines {
                let own = sampled.get(&(*module, line.address));
                let frames: Vec<InstructionFrame> = line.frames.iter().map(frame).collect();
                let instruction = SampledListedInstruction {
                    function: demangle(&function.name),
                    address: line.address,
                    text: line.text.clone(),
                    samples: own.map(|id| self.counts.sum(&[*id])),
                };
                found.push((position_of(&frames, &function.name), instruction));
            }
        }
        found
    }
}

fn frame(of: &DebugFrame) -> InstructionFrame {
    let position = of.position.as_ref();
    InstructionFrame {
        function: of.function.clone().unwrap_or_default(),
        file: position.map(|position| position.file.clone()).unwrap_or_default(),
        line: position.map_or(0, |position| position.line),
        column: position.map_or(0, |position| position.column),
    }
}

fn position(instruction: &SampledInstruction) -> Position {
    position_of(&instruction.frames, &instruction.symbol)
}

/// The line of the innermost frame, and if that is a library's, the nearest one of the program.
fn position_of(frames: &[InstructionFrame], symbol: &str) -> Position {
    let of = |frame: &InstructionFrame| {
        let function = if frame.function.is_empty() { symbol } else { &frame.function };
        Position {
            file: Some(frame.file.clone()).filter(|file| !file.is_empty()),
            line: Some(frame.line).filter(|line| *line > 0),
            function: demangle(function),
            linkage_name: function.to_owned(),
            ..Position::default()
        }
    };
    let Some(own) = frames.first() else {
        return Position {
            function: demangle(symbol),
            linkage_name: symbol.to_owned(),
            ..Position::default()
        };
    };
    let is_own = |frame: &&InstructionFrame| !is_library_path(&frame.file);
    let into = frames[1..].iter().find(is_own).filter(|_| !is_own(&own));
    Position { inlined_into: into.map(|frame| Box::new(of(frame))), ..of(own) }
}
