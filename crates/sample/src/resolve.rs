//! From places in files to instructions, with their names and the addresses that they touched.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use memlode_symbols::debug::DebugFrame;
use memlode_symbols::instruction::{LONGEST, Operand, Operands, Register};
use memlode_symbols::typing::{TypedAccess, TypedData, Typing, Untyped};
use memlode_symbols::{GeneralRegisters, Instruction, ProgramFile};
use memlode_trace::format::untyped;
use memlode_trace::sampled::{
    CallPath, InstructionAccess, InstructionFrame, InstructionId, KnownBlocks, KnownPaths, SampledBlock,
    SampledInfo, SampledInstruction, SampledModule, SampledRecording, SampledThread, StoredSample,
};

use crate::blocks::{SweptBlock, sweep};
use crate::data_source::DataSource;
use crate::kept::{FilePlace, KeptSample};
use crate::sites::ProgramSites;
use crate::tally::Sampled;

/// Bytes above the stack pointer that are taken for the stack's, and below it.
const STACK_ABOVE: u64 = 8 << 20;
const STACK_BELOW: u64 = 4096;

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
    /// Bytes of the smallest blocks that programs note, where they are to note any.
    pub least_block: Option<u64>,
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
            least_block: None,
        }
    }
}

/// Finds the instructions that samples waited for, and what they touched.
pub fn resolve(sampled: &Sampled, source: &SampleSource) -> SampledRecording {
    let kept = &sampled.kept;
    let threads: BTreeSet<(u32, u32)> = kept.samples.iter().map(|sample| (sample.pid, sample.tid)).collect();
    let threads: Vec<SampledThread> =
        threads.into_iter().map(|(pid, tid)| SampledThread { pid, tid }).collect();
    let mut found = SampledRecording { info: info(sampled, source), threads, ..SampledRecording::default() };
    let thread = |sample: &KeptSample| {
        let own = SampledThread { pid: sample.pid, tid: sample.tid };
        found.threads.binary_search(&own).unwrap_or_default() as u32
    };
    let mut order: Vec<(u32, &KeptSample)> =
        kept.samples.iter().map(|sample| (thread(sample), sample)).collect();
    order.sort_by_key(|(thread, sample)| (*thread, sample.time));
    let mut code = Code::read(sampled, source, &mut found.modules);
    let mut known = KnownPaths::default();
    for (thread, sample) in &order {
        let place = code.place(sample, &mut found.modules);
        found.samples.push(stored(*thread, sample, &place));
    }
    let access = |(stored, (_, sample)): (&StoredSample, &(u32, &KeptSample))| {
        Some((sample.time, sample.pid, stored.address?))
    };
    let accesses: Vec<_> = found.samples.iter().zip(&order).map(access).collect();
    let blocks = sweep(&kept.blocks.changes, &accesses);
    let mut known_blocks = KnownBlocks::default();
    for ((stored, (_, sample)), block) in found.samples.iter_mut().zip(&order).zip(blocks) {
        stored.path = code.path(sample.call, sampled, &mut known, &mut found.modules);
        // Stacks of threads lie in memory that no file has, too.
        let block = block.filter(|block| block.begun > 0 || stored.on_stack != Some(true));
        stored.block = block.map(|SweptBlock { address, bytes, begun, call, is_mapped }| {
            let path = code.path(call, sampled, &mut known, &mut found.modules);
            known_blocks.number(SampledBlock { address, bytes, begun, is_mapped, path })
        });
    }
    found.paths = known.into_paths();
    found.blocks = known_blocks.into_blocks();
    found
}

fn info(sampled: &Sampled, source: &SampleSource) -> SampledInfo {
    SampledInfo {
        subject: source.subject.clone(),
        events: source.events.clone(),
        is_time: source.is_time,
        period_ns: source.period_ns,
        skid: source.skid,
        watched_ns: (sampled.seconds * 1e9).round() as u64,
        kernel: sampled.kernel,
        lost: sampled.lost,
        throttled: sampled.throttled,
        least_block: source.least_block.filter(|_| sampled.kept.blocks.is_noted),
        lost_blocks: sampled.kept.blocks.lost,
    }
}

fn stored(thread: u32, sample: &KeptSample, place: &Place) -> StoredSample {
    let computed = || place.operand.as_ref()?.address(sample.registers.as_deref()?);
    let is_access = sample.source.and_then(DataSource::of).is_some();
    let address = sample.address.filter(|_| is_access).or_else(computed).filter(|_| place.is_access);
    let stack = |registers: &GeneralRegisters| registers.general[usize::from(Register::STACK.0)];
    let on_stack = address.zip(sample.registers.as_deref().map(stack)).map(|(address, stack)| {
        (stack.saturating_sub(STACK_BELOW)..stack.saturating_add(STACK_ABOVE)).contains(&address)
    });
    StoredSample {
        thread,
        time: sample.time,
        at: place.id,
        weight: sample.weight,
        address,
        on_stack,
        latency: sample.latency,
        source: sample.source,
        cpu: sample.cpu,
        page_bytes: sample.page_bytes,
        path: None,
        block: None,
    }
}

/// An instruction that samples waited for.
#[derive(Clone, Copy)]
struct Place {
    id: InstructionId,
    /// It touches memory.
    is_access: bool,
    /// The memory, where the registers of a sample still say which.
    operand: Option<Operand>,
}

/// The files that were sampled.
struct Code {
    /// For each file the module, and its contents if they could be read.
    files: Vec<(u32, Option<ProgramFile>)>,
    typing: Vec<Typing>,
    /// The sites of programs that were built with memlode.
    sites: Vec<Option<ProgramSites>>,
    /// The module of memory that no file is mapped to.
    no_file: Option<u32>,
    skid: u8,
    /// Callers are known by tables, not by frame pointers.
    is_unwound: bool,
    places: HashMap<FilePlace, Place>,
    calls: HashMap<FilePlace, Option<InstructionId>>,
    /// Numbers by module and address; calls have addresses of their own.
    instructions: HashMap<(u32, u64), u32>,
    /// Paths by the index of a kept call; `None` of one where no call stands.
    paths: HashMap<u32, Option<u32>>,
    operands: Operands,
}

impl Code {
    /// Reads all files that samples are in, and makes a module of each.
    fn read(sampled: &Sampled, source: &SampleSource, modules: &mut Vec<SampledModule>) -> Code {
        let kept = &sampled.kept;
        let used: BTreeMap<&OsStr, usize> = kept
            .samples
            .iter()
            .filter_map(|sample| sample.at)
            .chain(kept.calls.iter().map(|call| call.at))
            .map(|at| (kept.files[at.file as usize].as_os_str(), at.file as usize))
            .collect();
        let mut files: Vec<(u32, Option<ProgramFile>)> = kept.files.iter().map(|_| (0, None)).collect();
        for (path, file) in used {
            let (program, unread) = match read(path, source) {
                Ok(program) => (Some(program), None),
                Err(why) => (None, Some(why)),
            };
            let build_id = program.as_ref().and_then(ProgramFile::build_id).unwrap_or_default().to_vec();
            modules.push(SampledModule {
                path: path.to_string_lossy().into_owned(),
                build_id,
                has_debug: program.as_ref().is_some_and(|program| program.debug().is_some()),
                unread,
                instructions: Vec::new(),
            });
            files[file] = (modules.len() as u32 - 1, program);
        }
        let typing = files.iter().map(|_| Typing::default()).collect();
        let sites = files.iter().map(|(_, program)| ProgramSites::of(program.as_ref()?)).collect();
        let no_file = kept.samples.iter().any(|sample| sample.at.is_none()).then(|| {
            modules.push(SampledModule::default());
            modules.len() as u32 - 1
        });
        Code {
            files,
            typing,
            sites,
            no_file,
            skid: source.skid,
            is_unwound: sampled.unwound > 0,
            places: HashMap::new(),
            calls: HashMap::new(),
            instructions: HashMap::new(),
            paths: HashMap::new(),
            operands: Operands::default(),
        }
    }

    /// The instruction that a sample waited for.
    fn place(&mut self, sample: &KeptSample, modules: &mut [SampledModule]) -> Place {
        let Some(at) = sample.at else {
            let id = self.add(self.no_file.unwrap_or_default(), nameless(0), modules);
            return Place { id, is_access: false, operand: None };
        };
        if let Some(known) = self.places.get(&at) {
            return *known;
        }
        let (module, program) = &self.files[at.file as usize];
        let module = *module;
        let sampled = program.as_ref().and_then(|program| Some((program, program.address_of(at.offset)?)));
        let place = match sampled {
            // The processor, too, says what touches memory.
            None => {
                let instruction = accessing(nameless(at.offset), sample.source.and_then(DataSource::of));
                let is_access = instruction.access.is_some();
                Place { id: self.add(module, instruction, modules), is_access, operand: None }
            }
            Some((program, address)) => {
                let (access, is_behind) =
                    waiting(program, &mut self.typing[at.file as usize], address, self.skid);
                let still_known = |operand: &Operand| {
                    !is_behind || !overwrites(program, &mut self.operands, access.address, operand)
                };
                let operand = access.operand.filter(still_known);
                let mut instruction = named(program, &access);
                let own = self.sites[at.file as usize].as_mut().filter(|_| instruction.access.is_some());
                if let Some(data) = own.and_then(|own| own.data(program, &access)) {
                    instruction = compiled(instruction, data);
                }
                let is_access = instruction.access.is_some();
                Place { id: self.add(module, instruction, modules), is_access, operand }
            }
        };
        self.places.insert(at, place);
        place
    }

    /// The calls that led to a sample, by the index of the innermost.
    fn path(
        &mut self,
        call: Option<u32>,
        sampled: &Sampled,
        known: &mut KnownPaths,
        modules: &mut [SampledModule],
    ) -> Option<u32> {
        let calls = &sampled.kept.calls;
        let (mut chain, mut next, mut parent) = (Vec::new(), call, None);
        while let Some(call) = next {
            if let Some(path) = self.paths.get(&call) {
                parent = *path;
                break;
            }
            chain.push(call);
            next = calls[call as usize].parent;
        }
        for call in chain.into_iter().rev() {
            let id = self.call(calls[call as usize].at, modules);
            parent = id.map(|call| known.number(CallPath { parent, call }));
            self.paths.insert(call, parent);
        }
        parent
    }

    /// An instruction that calls. `None` if there is none: code without frame pointers leads anywhere.
    fn call(&mut self, at: FilePlace, modules: &mut [SampledModule]) -> Option<InstructionId> {
        if let Some(known) = self.calls.get(&at) {
            return *known;
        }
        let (module, program) = &self.files[at.file as usize];
        let module = *module;
        let instruction = match program {
            None => Some(nameless(at.offset)),
            Some(program) => {
                let is_one = |address: &u64| self.is_unwound || is_in_call(program, *address);
                let address = program.address_of(at.offset).filter(is_one);
                let of = |address| TypedAccess { address, operand: None, data: Err(Untyped::NoMemory) };
                address.map(|address| named(program, &of(address)))
            }
        };
        let id = instruction.map(|instruction| self.add(module, instruction, modules));
        self.calls.insert(at, id);
        id
    }

    fn add(&mut self, module: u32, new: SampledInstruction, modules: &mut [SampledModule]) -> InstructionId {
        let all = &mut modules[module as usize].instructions;
        let instruction = *self.instructions.entry((module, new.address)).or_insert_with(|| {
            all.push(new);
            all.len() as u32 - 1
        });
        InstructionId { module, instruction }
    }
}

/// Reads a file, if it is the one that was sampled.
fn read(path: &OsStr, naming: &SampleSource) -> Result<ProgramFile, String> {
    if let Some(why) = in_no_file(path.as_encoded_bytes()) {
        return Err(why.to_owned());
    }
    let program = ProgramFile::read_below(&below(naming.root.as_deref(), path), naming.root.as_deref())
        .map_err(|why| why.to_string())?;
    let expected = naming.build_ids.get(path);
    match expected.is_some_and(|expected| program.build_id().is_some_and(|own| own != expected.as_slice())) {
        true => Err(format!("{} is another build than the one that was sampled", path.to_string_lossy())),
        false => Ok(program),
    }
}

/// Why there is no file to read, where the kernel names memory that is none's.
fn in_no_file(name: &[u8]) -> Option<&'static str> {
    let made = [&b"//anon"[..], b"[heap]", b"[stack", b"[anon", b"anon_inode:", b"/memfd:", b"/dev/zero"];
    if made.iter().any(|start| name.starts_with(start)) {
        Some("code that was made while the program ran, so no file has its names")
    } else if name.starts_with(b"[v") {
        Some("code of the kernel that every program has")
    } else {
        None
    }
}

/// The name of a file that a process has mapped, from here.
pub(crate) fn below(root: Option<&Path>, path: &OsStr) -> PathBuf {
    let path = Path::new(path);
    match root {
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_owned(),
    }
}

/// An instruction of which only the place is known.
fn nameless(address: u64) -> SampledInstruction {
    SampledInstruction { address, untyped: untyped::NO_MEMORY, ..SampledInstruction::default() }
}

/// An instruction of which a sample says that it touches memory; not how many bytes.
fn accessing(instruction: SampledInstruction, source: Option<DataSource>) -> SampledInstruction {
    let Some(source) = source else { return instruction };
    let access = Some(InstructionAccess { is_store: source.is_store, bytes: 1 });
    SampledInstruction { access, untyped: untyped::NO_DEBUG_INFORMATION, ..instruction }
}

fn named(program: &ProgramFile, access: &TypedAccess) -> SampledInstruction {
    // Damaged information names nothing.
    let frames = program.debug().and_then(|debug| debug.frames(access.address).ok()).unwrap_or_default();
    let symbol = program.function_at(access.address).map(|symbol| symbol.name.clone());
    let (data, untyped) = match &access.data {
        Ok(data) => (data.clone(), untyped::TYPED),
        Err(why) => (TypedData { kind: None, member: None, variable: None }, number(*why)),
    };
    let of_access =
        |operand: &Operand| InstructionAccess { is_store: operand.stores, bytes: operand.bytes.max(1) };
    SampledInstruction {
        address: access.address,
        symbol: symbol.unwrap_or_default(),
        frames: frames.iter().map(frame).collect(),
        access: access.operand.as_ref().map(of_access),
        untyped,
        variable: data.variable,
        ty: data.kind,
        member: data.member,
        is_compiled: false,
    }
}

/// An instruction with the names that memlode's compiler wrote down.
fn compiled(instruction: SampledInstruction, data: TypedData) -> SampledInstruction {
    SampledInstruction {
        untyped: untyped::TYPED,
        variable: data.variable,
        ty: data.kind,
        member: data.member,
        is_compiled: true,
        ..instruction
    }
}

fn frame(frame: &DebugFrame) -> InstructionFrame {
    let position = frame.position.as_ref();
    InstructionFrame {
        function: frame.function.clone().unwrap_or_default(),
        file: position.map(|position| position.file.clone()).unwrap_or_default(),
        line: position.map_or(0, |position| position.line),
        column: position.map_or(0, |position| position.column),
    }
}

fn number(why: Untyped) -> u8 {
    match why {
        Untyped::NoDebugInformation => untyped::NO_DEBUG_INFORMATION,
        Untyped::NoFunction => untyped::NO_FUNCTION,
        Untyped::NoInstruction => untyped::NO_INSTRUCTION,
        Untyped::NoMemory => untyped::NO_MEMORY,
        Untyped::UnknownPointer => untyped::UNKNOWN_POINTER,
        Untyped::UntypedPointer => untyped::UNTYPED_POINTER,
        Untyped::Frame => untyped::FRAME,
        Untyped::OtherMemory => untyped::OTHER_MEMORY,
        Untyped::Static => untyped::STATIC_MEMORY,
        Untyped::Stack => untyped::STACK,
    }
}

/// The access that a sample's instruction waits for, and whether it is that of the instruction in front of it: so it is
/// if the program comes from there.
fn waiting(program: &ProgramFile, typing: &mut Typing, sampled: u64, skid: u8) -> (TypedAccess, bool) {
    if skid == 0 {
        return (typing.at(program, sampled), false);
    }
    match typing.before(program, sampled) {
        Some(before) => (before, true),
        None => (typing.at(program, sampled), false),
    }
}

fn decoded(program: &ProgramFile, address: u64) -> Option<Instruction> {
    Instruction::decode(program.bytes_at(address, LONGEST), address)
}

/// Returns whether an address is that of the last byte of a call.
fn is_in_call(program: &ProgramFile, last: u64) -> bool {
    // From `call rax` to `call [rax + rbx * 8 + 0x1000]` with a prefix.
    (2..=8).any(|length| {
        let call = last.checked_add(1).and_then(|end| decoded(program, end.checked_sub(length)?));
        call.is_some_and(|call| call.is_call() && call.next() == last + 1)
    })
}

/// Returns whether an instruction that was carried out changed the registers that its address was made of.
fn overwrites(program: &ProgramFile, operands: &mut Operands, address: u64, operand: &Operand) -> bool {
    let Some(instruction) = decoded(program, address) else { return true };
    let of_address = [operand.base(), operand.index()];
    operands.written(&instruction).any(|written| of_address.contains(&Some(written)))
}
