//! From places in files to names: lines and functions, types and members.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use memlode_symbols::debug::DebugFrame;
use memlode_symbols::instruction::Register;
use memlode_symbols::typing::{TypedAccess, TypedData, Typing, Untyped};
use memlode_symbols::{Flow, Instruction, ProgramFile};

use crate::data_source::DataSource;
use crate::report::{
    SampleCoverage, SampleReport, SampleShare, SampledCost, SampledData, SampledFunction, SampledImage,
    SampledLine, UntypedShare,
};
use crate::tally::{Sampled, SampledPlace, SampledState, SourceCount};

/// Lines that are listed for an object.
const MOST_LINES: usize = 3;
/// Bytes above the stack pointer that are taken for the stack's, and below it.
const STACK_ABOVE: u64 = 8 << 20;
const STACK_BELOW: u64 = 4096;

/// A line: its file, number and function, and the functions into which it is inlined.
type LineKey = (String, u32, String, Vec<String>);

/// Counts of a line.
#[derive(Default)]
struct LineCount {
    samples: u64,
    data: HashMap<TypedData, u64>,
    sources: BTreeMap<DataSource, SourceCount>,
}

/// Counts by name.
#[derive(Default)]
struct Names {
    lines: BTreeMap<LineKey, LineCount>,
    functions: BTreeMap<(String, String), u64>,
    data: BTreeMap<TypedData, DataCount>,
    untyped: BTreeMap<Untyped, u64>,
    images: Vec<(String, bool, Option<String>, u64)>,
    with_line: u64,
    memory: u64,
    typed: u64,
    member: u64,
}

#[derive(Default)]
struct DataCount {
    samples: u64,
    lines: BTreeMap<(String, u32, String), u64>,
    known: u64,
    on_stack: u64,
    sources: BTreeMap<DataSource, SourceCount>,
}

/// Adds counts of sources to others.
fn add(to: &mut BTreeMap<DataSource, SourceCount>, more: &BTreeMap<DataSource, SourceCount>) {
    more.iter().for_each(|(source, count)| to.entry(*source).or_default().add(*count));
}

/// The circumstances of samples.
#[derive(Clone, Debug)]
pub struct SampleSource {
    /// The thing that was sampled: a command, a process or a file.
    pub subject: String,
    /// Events that were sampled, where they are not the clock.
    pub events: Vec<String>,
    /// The samples are of time, not of events of another kind.
    pub is_time: bool,
    /// Nanoseconds of CPU time between samples; 0 if that is not known.
    pub period_ns: u64,
    /// Instructions from the one that waits to the one that a sample names.
    pub skid: u8,
    /// The folder that files are named from, if it is another one.
    pub root: Option<PathBuf>,
    /// Build ids of the files that were sampled, where they are known.
    pub build_ids: HashMap<OsString, Vec<u8>>,
}

impl Default for SampleSource {
    fn default() -> SampleSource {
        SampleSource {
            subject: String::new(),
            events: Vec::new(),
            is_time: true,
            period_ns: 0,
            skid: 0,
            root: None,
            build_ids: HashMap::new(),
        }
    }
}

/// Names the samples.
pub fn name(sampled: &Sampled, naming: SampleSource) -> SampleReport {
    let mut names = Names::default();
    for places in sampled.at.chunk_by(|one, other| one.image == other.image) {
        names.image(places, &naming);
    }
    let unmapped = sampled.unmapped;
    if unmapped > 0 {
        *names.functions.entry((String::new(), String::new())).or_default() += unmapped;
    }
    names.finish(sampled, naming)
}

/// Reads a file, if it is the one that was sampled.
fn read(path: &OsStr, naming: &SampleSource) -> Result<ProgramFile, String> {
    let program = ProgramFile::read_below(&below(naming.root.as_deref(), path), naming.root.as_deref())
        .map_err(|why| why.to_string())?;
    let expected = naming.build_ids.get(path);
    match expected.is_some_and(|expected| program.build_id().is_some_and(|own| own != expected.as_slice())) {
        true => Err(format!("{} is another build than the one that was sampled", path.to_string_lossy())),
        false => Ok(program),
    }
}

impl Names {
    fn image(&mut self, places: &[SampledPlace], naming: &SampleSource) {
        let path = &places[0].image;
        let count = places.iter().map(|place| place.count).sum();
        let text = path.to_string_lossy().into_owned();
        let program = match read(path, naming) {
            Ok(program) => program,
            Err(why) => {
                *self.functions.entry((String::new(), text.clone())).or_default() += count;
                self.images.push((text, false, Some(why), count));
                return;
            }
        };
        self.images.push((text.clone(), program.debug().is_some(), None, count));
        let mut typing = Typing::default();
        for place in places {
            self.place(place, &program, &mut typing, naming.skid, &text);
        }
    }

    fn place(
        &mut self,
        place: &SampledPlace,
        program: &ProgramFile,
        typing: &mut Typing,
        skid: u8,
        image: &str,
    ) {
        let Some(sampled) = program.address_of(place.offset) else {
            *self.functions.entry((String::new(), image.to_owned())).or_default() += place.count;
            return;
        };
        let access = waiting(program, typing, sampled, skid);
        // Damaged information names nothing.
        let debug = program.debug();
        let frames = debug.and_then(|debug| debug.frames(access.address).ok()).unwrap_or_default();
        let line = line(&frames);
        let function = frames.first().and_then(|frame| frame.function.clone());
        let by_symbol = || program.function_at(access.address).map(|symbol| symbol.name.clone());
        let function = function.or_else(by_symbol).unwrap_or_default();
        *self.functions.entry((function, image.to_owned())).or_default() += place.count;
        self.memory += if access.operand.is_some() { place.count } else { 0 };
        if let Some(key) = &line {
            self.with_line += place.count;
            let row = self.lines.entry(key.clone()).or_default();
            row.samples += place.count;
            add(&mut row.sources, &place.sources);
            if let Ok(data) = &access.data {
                *row.data.entry(data.clone()).or_default() += place.count;
            }
        }
        match &access.data {
            Ok(data) => self.data(place, &access, data, line),
            Err(Untyped::NoMemory) => {}
            Err(why) => *self.untyped.entry(*why).or_default() += place.count,
        }
    }

    fn data(&mut self, place: &SampledPlace, access: &TypedAccess, data: &TypedData, line: Option<LineKey>) {
        self.typed += place.count;
        // Objects of a type are one kind of data, whatever variable they are in.
        let mut key = data.clone();
        if data.member.is_some() {
            self.member += place.count;
            key.variable = data.variable.clone().filter(|_| data.kind.is_none());
        }
        let count = self.data.entry(key).or_default();
        count.samples += place.count;
        add(&mut count.sources, &place.sources);
        for state in &place.states {
            let address = access.operand.as_ref().and_then(|operand| operand.address(&state.registers));
            let Some(address) = address else { continue };
            count.known += 1;
            count.on_stack += u64::from(is_on_stack(address, state));
        }
        if let Some((file, line, function, _)) = line {
            *count.lines.entry((file, line, function)).or_default() += place.count;
        }
    }

    fn finish(self, sampled: &Sampled, naming: SampleSource) -> SampleReport {
        let all = sampled.samples();
        let share = |samples: u64| SampleShare::of(samples, all);
        let mut sources = BTreeMap::new();
        sampled.at.iter().for_each(|place| add(&mut sources, &place.sources));
        let all_cycles = sources.values().fold(0, |sum: u64, count| sum.saturating_add(count.cycles));
        let coverage = SampleCoverage {
            line: share(self.with_line),
            memory: share(self.memory),
            typed: share(self.typed),
            member: share(self.member),
        };
        let data = self.data.into_iter().map(|(data, count)| {
            let mut lines: Vec<_> = count.lines.into_iter().collect();
            lines.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
            let lines = lines.into_iter().take(MOST_LINES).map(|(line, _)| line).collect();
            let on_stack = (count.known > 0).then(|| count.on_stack as f64 / count.known as f64);
            let TypedData { kind, member, variable } = data;
            let cost = SampledCost::of(&count.sources, all_cycles);
            SampledData { kind, member, variable, lines, on_stack, cost, time: share(count.samples) }
        });
        let lines = self.lines.into_iter().map(|((file, line, function, inlined_into), count)| {
            let most = count.data.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            let data = most.map(|(data, _)| {
                let TypedData { kind, member, variable } = data;
                let time = SampleShare::default();
                SampledData { kind, member, variable, lines: Vec::new(), on_stack: None, cost: None, time }
                    .name()
            });
            let cost = SampledCost::of(&count.sources, all_cycles);
            SampledLine { file, line, function, inlined_into, data, cost, time: share(count.samples) }
        });
        let functions = self.functions.into_iter().map(|((function, image), samples)| SampledFunction {
            function,
            image,
            time: share(samples),
        });
        let untyped = self
            .untyped
            .into_iter()
            .map(|(why, samples)| UntypedShare { why: format!("{why:?}"), time: share(samples) });
        let images = self.images.into_iter().map(|(path, has_debug, unread, samples)| SampledImage {
            path,
            has_debug,
            unread,
            time: share(samples),
        });
        SampleReport {
            subject: naming.subject,
            events: naming.events,
            is_time: naming.is_time,
            seconds: sampled.seconds,
            period_ns: naming.period_ns,
            samples: all,
            kernel: sampled.kernel,
            lost: sampled.lost,
            throttled: sampled.throttled,
            threads: sampled.threads,
            skid: naming.skid,
            cost: SampledCost::of(&sources, all_cycles),
            coverage,
            untyped: slowest_first(untyped, |row| row.time),
            images: slowest_first(images, |row| row.time),
            data: slowest_first(data, |row| row.time),
            lines: slowest_first(lines, |row| row.time),
            functions: slowest_first(functions, |row| row.time),
        }
    }
}

/// Rows of equal time stay in the order of their names.
fn slowest_first<T>(rows: impl Iterator<Item = T>, time: impl Fn(&T) -> SampleShare) -> Vec<T> {
    let mut rows: Vec<T> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(time(row).samples));
    rows
}

fn below(root: Option<&Path>, path: &OsStr) -> PathBuf {
    let path = Path::new(path);
    match root {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_owned(),
    }
}

fn is_on_stack(address: u64, state: &SampledState) -> bool {
    let stack = state.registers.general[usize::from(Register::STACK.0)];
    (stack.saturating_sub(STACK_BELOW)..stack.saturating_add(STACK_ABOVE)).contains(&address)
}

/// The access that a sample's instruction waits for: its own, or that of the instruction before it,
/// if the program comes from there.
fn waiting(program: &ProgramFile, typing: &mut Typing, sampled: u64, skid: u8) -> TypedAccess {
    let own = |typing: &mut Typing| typing.at(program, sampled);
    if skid == 0 || sampled == 0 {
        return own(typing);
    }
    let before = typing.at(program, sampled - 1);
    let code = program.bytes_at(before.address, memlode_symbols::instruction::LONGEST);
    let decoded = Instruction::decode(code, before.address);
    let leads_here = decoded.is_some_and(|instruction| {
        instruction.next() == sampled
            && !matches!(instruction.flow(), Flow::Ends | Flow::Jump(_) | Flow::Call)
    });
    if leads_here { before } else { own(typing) }
}

fn line(frames: &[DebugFrame]) -> Option<LineKey> {
    let position = frames.first()?.position.as_ref().filter(|position| position.line > 0)?;
    let name = |frame: &DebugFrame| frame.function.clone().unwrap_or_default();
    let inlined_into = frames[1..].iter().map(name).collect();
    Some((position.file.clone(), position.line, name(&frames[0]), inlined_into))
}
