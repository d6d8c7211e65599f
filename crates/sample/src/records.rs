//! Records as the kernel writes them: into its rings, and into files of `perf`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use memlode_symbols::GeneralRegisters;
use memlode_symbols::call_stack::FrameRegisters;
use memlode_symbols::instruction::Register;

/// Bits of a sample's type, from `linux/perf_event.h`, in the order in which their fields lie.
pub mod field {
    /// The instruction.
    pub const IP: u64 = 1 << 0;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Nanoseconds.
    pub const TIME: u64 = 1 << 2;
    /// The data's address.
    pub const ADDR: u64 = 1 << 3;
    /// Counters' values.
    pub const READ: u64 = 1 << 4;
    /// Return addresses.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The event.
    pub const ID: u64 = 1 << 6;
    /// The processor.
    pub const CPU: u64 = 1 << 7;
    /// Events that the sample stands for.
    pub const PERIOD: u64 = 1 << 8;
    /// The event's own number.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Data of a tracepoint.
    pub const RAW: u64 = 1 << 10;
    /// Branches that were taken.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// Registers of the program.
    pub const REGS_USER: u64 = 1 << 12;
    /// A part of the stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Latency.
    pub const WEIGHT: u64 = 1 << 14;
    /// The source of the data: a cache, memory.
    pub const DATA_SRC: u64 = 1 << 15;
    /// The event, in front of all.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// The state of a transaction.
    pub const TRANSACTION: u64 = 1 << 17;
    /// Registers where the event was.
    pub const REGS_INTR: u64 = 1 << 18;
    /// The data's physical address.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// Data of a trace of the processor's.
    pub const AUX: u64 = 1 << 20;
    /// Control group.
    pub const CGROUP: u64 = 1 << 21;
    /// The size of the data's page.
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    /// The size of the instruction's page.
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    /// Latencies, instead of `WEIGHT`.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Which fields the records of an event have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordLayout {
    /// Bits of [`field`].
    pub sample_type: u64,
    /// Bits of the registers of `REGS_USER`, in the kernel's numbers.
    pub regs_user: u64,
    /// Bits of the registers of `REGS_INTR`.
    pub regs_intr: u64,
    /// The fields of `READ`.
    pub read_format: u64,
    /// The fields of a branch.
    pub branch_type: u64,
    /// Records that are no samples end with process, thread and time, too.
    pub sample_id_all: bool,
}

/// The kernel's numbers of the general registers, in the order of debug information.
const GENERAL: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];

/// The bits of all general registers.
pub const GENERAL_REGISTERS: u64 = 0x00ff_00ff;

/// From here on numbers in a call chain are no addresses.
pub const CHAIN_MARKERS: u64 = 4096_u64.wrapping_neg();

/// A sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRecord {
    /// The instruction.
    pub ip: u64,
    /// It is the kernel's.
    pub is_kernel: bool,
    /// The data's address, if the event has one.
    pub address: Option<u64>,
    /// The event's number, if there are several.
    pub id: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
    /// Events that it stands for.
    pub period: Option<u64>,
    /// The instruction and its callers, the innermost first; markers above [`CHAIN_MARKERS`] give
    /// the kind of the addresses behind them.
    pub call_chain: Vec<u64>,
    /// Latency, in the processor's cycles: as a whole, or of the cache and of the instruction.
    pub weight: Option<SampleWeight>,
    /// The source of the data, as the kernel encodes it.
    pub data_source: Option<u64>,
    /// The data's physical address.
    pub physical: Option<u64>,
    /// The number of the control group.
    pub cgroup: Option<u64>,
    /// The size of the data's page.
    pub page_bytes: Option<u64>,
    /// The size of the instruction's page.
    pub code_page_bytes: Option<u64>,
    /// General registers, if all were recorded: of the program, or else where the event was.
    pub registers: Option<Box<GeneralRegisters>>,
    /// A copy of the stack, if one was recorded with the program's registers.
    pub stack: Option<Box<StackCopy>>,
}

/// The upper part of a program's stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackCopy {
    /// The program's instruction, stack pointer and rbp.
    pub registers: FrameRegisters,
    /// The bytes from the stack pointer on.
    pub bytes: Vec<u8>,
}

/// A sample's latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleWeight {
    /// One number.
    Whole(u64),
    /// Three numbers, whose meaning depends on the processor.
    Parts(u32, u16, u16),
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Nanoseconds of the kernel's clock.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The event itself.
    pub event: RecordEvent,
}

/// The event itself.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordEvent {
    /// The clock, or a counter, interrupted the program.
    Sample(SampleRecord),
    /// A file was mapped.
    Map {
        /// Where.
        address: u64,
        /// Bytes.
        length: u64,
        /// The first byte's place in the file.
        offset: u64,
        /// The file.
        path: OsString,
    },
    /// The process began as a copy of `parent`.
    Fork {
        /// The process that it is a copy of.
        parent: u32,
    },
    /// Another program took its place.
    Exec,
    /// Samples that the kernel could not hand over.
    Lost {
        /// Their number.
        samples: u64,
    },
    /// The kernel took no samples for a while, as they took too much of its time.
    Throttled,
}

/// Takes fields from the front of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// Two halves of a word.
    fn u32s(&mut self) -> Option<(u32, u32)> {
        self.u64().map(|word| (word as u32, (word >> 32) as u32))
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Takes a word, and the number of bytes that it says.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u64()?;
        let (head, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    fn skip_words(&mut self, words: u64) -> Option<()> {
        self.skip(words.checked_mul(8)?)
    }

    fn words(&mut self, words: u64) -> Option<impl Iterator<Item = u64> + use<'_>> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(words.checked_mul(8)?).ok()?)?;
        self.0 = rest;
        Some(head.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)))
    }
}

impl RecordLayout {
    fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Reads a record's body. `None` if it is of another kind, or too short for its kind.
    pub fn parse(&self, kind: u32, misc: u16, body: &[u8]) -> Option<Record> {
        // From linux/perf_event.h.
        const MMAP: u32 = 1;
        const LOST: u32 = 2;
        const COMM: u32 = 3;
        const THROTTLE: u32 = 5;
        const FORK: u32 = 7;
        const SAMPLE: u32 = 9;
        const MMAP2: u32 = 10;
        const LOST_SAMPLES: u32 = 13;
        const COMM_EXEC: u16 = 1 << 13;
        if kind == SAMPLE {
            return self.sample(misc, body);
        }
        let (fields, trailer) = body.split_at_checked(body.len().checked_sub(self.trailer_bytes())?)?;
        let u32_at = |at: usize| Some(u32::from_le_bytes(fields.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(fields.get(at..at + 8)?.try_into().ok()?));
        let map = |path: usize| {
            let text = fields.get(path..)?;
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            let path = OsString::from_vec(text[..end].to_vec());
            Some(RecordEvent::Map { address: u64_at(8)?, length: u64_at(16)?, offset: u64_at(24)?, path })
        };
        let event = match kind {
            MMAP => map(32)?,
            MMAP2 => map(64)?,
            FORK if u32_at(0)? != u32_at(4)? => RecordEvent::Fork { parent: u32_at(4)? },
            COMM if misc & COMM_EXEC != 0 => RecordEvent::Exec,
            LOST => RecordEvent::Lost { samples: u64_at(8)? },
            LOST_SAMPLES => RecordEvent::Lost { samples: u64_at(0)? },
            THROTTLE => RecordEvent::Throttled,
            _ => return None,
        };
        let (pid, tid, time) = self.identity(trailer)?;
        // The trailer has the thread that the kernel ran for; the record the process that it is about.
        let (pid, tid) = match event {
            RecordEvent::Map { .. } | RecordEvent::Exec => (u32_at(0)?, u32_at(4)?),
            RecordEvent::Fork { .. } => (u32_at(0)?, u32_at(8)?),
            _ => (pid, tid),
        };
        Some(Record { time, pid, tid, event })
    }

    /// The number of a record's event, if this layout has it. Events with an identifier have it at
    /// one place, whatever their other fields.
    pub fn id(&self, kind: u32, body: &[u8]) -> Option<u64> {
        const SAMPLE: u32 = 9;
        let count = |fields: &[u64]| fields.iter().filter(|field| self.has(**field)).count();
        let (at, has) = match (kind == SAMPLE, self.has(field::IDENTIFIER)) {
            (true, true) => (0, true),
            (true, false) => {
                let before = count(&[field::IP, field::TID, field::TIME, field::ADDR]);
                (8 * before, self.has(field::ID))
            }
            (false, with) => {
                let behind = if with { 0 } else { count(&[field::STREAM_ID, field::CPU]) };
                let has = self.sample_id_all && (with || self.has(field::ID));
                (body.len().checked_sub(8 * (behind + 1))?, has)
            }
        };
        let word = body.get(at..)?.first_chunk()?;
        has.then(|| u64::from_le_bytes(*word))
    }

    fn trailer_bytes(&self) -> usize {
        const EACH: [u64; 6] =
            [field::TID, field::TIME, field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];
        let words = EACH.iter().filter(|field| self.has(**field)).count();
        if self.sample_id_all { 8 * words } else { 0 }
    }

    fn identity(&self, trailer: &[u8]) -> Option<(u32, u32, u64)> {
        let mut fields = Fields(trailer);
        let with = |field| self.sample_id_all && self.has(field);
        let (pid, tid) = if with(field::TID) { fields.u32s()? } else { (0, 0) };
        let time = if with(field::TIME) { fields.u64()? } else { 0 };
        Some((pid, tid, time))
    }

    fn sample(&self, misc: u16, body: &[u8]) -> Option<Record> {
        // The kernel, a hypervisor, and a guest's kernel.
        const CPU_MODE: u16 = 7;
        const OTHERS: [u16; 3] = [1, 3, 4];
        let is_kernel = OTHERS.contains(&(misc & CPU_MODE));
        let mut fields = Fields(body);
        let mut sample = SampleRecord { is_kernel, ..SampleRecord::default() };
        if self.has(field::IDENTIFIER) {
            sample.id = Some(fields.u64()?);
        }
        if self.has(field::IP) {
            sample.ip = fields.u64()?;
        }
        let (pid, tid) = if self.has(field::TID) { fields.u32s()? } else { (0, 0) };
        let time = if self.has(field::TIME) { fields.u64()? } else { 0 };
        if self.has(field::ADDR) {
            sample.address = Some(fields.u64()?);
        }
        if self.has(field::ID) {
            sample.id = Some(fields.u64()?);
        }
        if self.has(field::STREAM_ID) {
            fields.u64()?;
        }
        if self.has(field::CPU) {
            sample.cpu = Some(fields.u32s()?.0);
        }
        if self.has(field::PERIOD) {
            sample.period = Some(fields.u64()?);
        }
        self.middle(&mut fields, &mut sample)?;
        self.tail(&mut fields, &mut sample)?;
        Some(Record { time, pid, tid, event: RecordEvent::Sample(sample) })
    }

    /// Counters' values, return addresses, data of tracepoints, and branches.
    fn middle(&self, fields: &mut Fields<'_>, sample: &mut SampleRecord) -> Option<()> {
        const TIMES: [u64; 2] = [1, 2];
        const READ_ID: u64 = 4;
        const READ_GROUP: u64 = 8;
        const READ_LOST: u64 = 16;
        const BRANCH_HW_INDEX: u64 = 1 << 17;
        const BRANCH_COUNTERS: u64 = 1 << 19;
        if self.has(field::READ) {
            let reads = |bit: u64| u64::from(self.read_format & bit != 0);
            let times: u64 = TIMES.iter().map(|bit| reads(*bit)).sum();
            let each = 1 + reads(READ_ID) + reads(READ_LOST);
            let counters = if self.read_format & READ_GROUP != 0 { fields.u64()? } else { 1 };
            fields.skip_words(counters.checked_mul(each)?.checked_add(times)?)?;
        }
        if self.has(field::CALLCHAIN) {
            let addresses = fields.u64()?;
            let chain = fields.words(addresses)?;
            sample.call_chain = chain.collect();
        }
        if self.has(field::RAW) {
            // Its size is a half word, and the whole is padded to words.
            let size = u32::from_le_bytes(*fields.0.first_chunk()?);
            fields.skip((u64::from(size) + 4).next_multiple_of(8))?;
        }
        if self.has(field::BRANCH_STACK) {
            let branches = fields.u64()?;
            if self.branch_type & BRANCH_HW_INDEX != 0 {
                fields.u64()?;
            }
            let words = if self.branch_type & BRANCH_COUNTERS != 0 { 4 } else { 3 };
            fields.skip_words(branches.checked_mul(words)?)?;
        }
        Some(())
    }

    fn tail(&self, fields: &mut Fields<'_>, sample: &mut SampleRecord) -> Option<()> {
        let mut instruction = sample.ip;
        if self.has(field::REGS_USER) {
            sample.registers = registers(fields, self.regs_user, &mut instruction)?;
        }
        if self.has(field::STACK_USER) {
            let bytes = fields.bytes()?;
            // Fewer may have been there to copy.
            let copied = if bytes.is_empty() { 0 } else { fields.u64()? };
            let bytes = &bytes[..bytes.len().min(usize::try_from(copied).unwrap_or(usize::MAX))];
            sample.stack = stack(instruction, sample.registers.as_deref(), bytes);
        }
        if self.has(field::WEIGHT) {
            sample.weight = Some(SampleWeight::Whole(fields.u64()?));
        } else if self.has(field::WEIGHT_STRUCT) {
            let word = fields.u64()?;
            sample.weight = Some(SampleWeight::Parts(word as u32, (word >> 32) as u16, (word >> 48) as u16));
        }
        if self.has(field::DATA_SRC) {
            sample.data_source = Some(fields.u64()?);
        }
        if self.has(field::TRANSACTION) {
            fields.u64()?;
        }
        if self.has(field::REGS_INTR) {
            let found = registers(fields, self.regs_intr, &mut 0)?;
            sample.registers = sample.registers.take().or(found);
        }
        if self.has(field::PHYS_ADDR) {
            sample.physical = Some(fields.u64()?);
        }
        if self.has(field::CGROUP) {
            sample.cgroup = Some(fields.u64()?);
        }
        if self.has(field::DATA_PAGE_SIZE) {
            sample.page_bytes = Some(fields.u64()?);
        }
        if self.has(field::CODE_PAGE_SIZE) {
            sample.code_page_bytes = Some(fields.u64()?);
        }
        Some(())
    }
}

/// The program's stack as far as it was copied, if its registers were, too.
fn stack(instruction: u64, registers: Option<&GeneralRegisters>, bytes: &[u8]) -> Option<Box<StackCopy>> {
    let of = |register: Register| Some(registers?.general[usize::from(register.0)]);
    let (stack, frame) = (of(Register::STACK)?, of(Register::FRAME)?);
    let registers = FrameRegisters { instruction, stack, frame, is_next: true };
    (!bytes.is_empty()).then(|| Box::new(StackCopy { registers, bytes: bytes.to_vec() }))
}

/// Reads the registers of a mask, and the instruction if it is among them. The outer `None` is a record that is too
/// short.
fn registers(
    fields: &mut Fields<'_>,
    mask: u64,
    instruction: &mut u64,
) -> Option<Option<Box<GeneralRegisters>>> {
    const ABI_64: u64 = 2;
    const INSTRUCTION: u32 = 8;
    let abi = fields.u64()?;
    if abi == 0 {
        return Some(None);
    }
    let mut found = GeneralRegisters::default();
    for number in (0..64).filter(|number| mask >> number & 1 != 0) {
        let value = fields.u64()?;
        if let Some(general) = GENERAL.iter().position(|bit| *bit == number) {
            found.general[general] = value;
        }
        if number == INSTRUCTION {
            *instruction = value;
        }
    }
    let is_whole = abi == ABI_64 && mask & GENERAL_REGISTERS == GENERAL_REGISTERS;
    Some(is_whole.then(|| Box::new(found)))
}

#[cfg(test)]
mod tests;
