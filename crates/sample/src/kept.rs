//! Samples one by one, as small as they can be before anybody knows what their instructions do.

use std::collections::HashMap;
use std::ffi::OsString;

use memlode_symbols::GeneralRegisters;

use crate::blocks::KeptBlocks;
use crate::records::{SampleRecord, SampleWeight};

/// Samples that are kept: two gigabytes or so.
const MOST_SAMPLES: usize = 1 << 24;
/// Samples of which registers are kept: a sixth of a gigabyte. Later ones have no address.
const MOST_REGISTERS: usize = 1 << 20;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePlace {
    /// Index into [`KeptSamples::files`].
    pub file: u32,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// A place behind a call, and the one that its function was called from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeptCall {
    /// An earlier index into [`KeptSamples::calls`].
    pub parent: Option<u32>,
    /// A byte of the call.
    pub at: FilePlace,
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptSample {
    /// Nanoseconds of the kernel's clock.
    pub time: u64,
    /// The kernel's number of the process.
    pub pid: u32,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// The place that the kernel names. `None`: no file is mapped there.
    pub at: Option<FilePlace>,
    /// Events, or nanoseconds, that it stands for; 0 if it is not known.
    pub weight: u64,
    /// The data's address, as the processor says it.
    pub address: Option<u64>,
    /// The source of the data: the kernel's `perf_mem_data_src`.
    pub source: Option<u64>,
    /// Cycles that the access took.
    pub latency: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
    /// Bytes of the data's page.
    pub page_bytes: Option<u64>,
    /// Registers of the program.
    pub registers: Option<Box<GeneralRegisters>>,
    /// Index into [`KeptSamples::calls`].
    pub call: Option<u32>,
}

/// Samples in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptSamples {
    /// Files of code.
    pub files: Vec<OsString>,
    /// Calls that led to samples.
    pub calls: Vec<KeptCall>,
    /// The samples.
    pub samples: Vec<KeptSample>,
    /// Blocks of the processes' memory.
    pub blocks: KeptBlocks,
    registers: usize,
    numbers: HashMap<KeptCall, u32>,
}

impl KeptSamples {
    /// Keeps a sample of a time, process and thread; returns whether there was room. Its callers are the innermost first.
    pub(crate) fn take(
        &mut self,
        (time, pid, tid): (u64, u32, u32),
        at: Option<FilePlace>,
        weight: u64,
        sample: SampleRecord,
        callers: impl DoubleEndedIterator<Item = FilePlace>,
    ) -> bool {
        if self.samples.len() >= MOST_SAMPLES {
            return false;
        }
        let call = callers.rev().fold(None, |parent, at| Some(self.call(KeptCall { parent, at })));
        let registers = sample.registers.filter(|_| self.registers < MOST_REGISTERS);
        self.registers += usize::from(registers.is_some());
        self.samples.push(KeptSample {
            time,
            pid,
            tid,
            at,
            weight: sample.period.unwrap_or(weight),
            address: sample.address.filter(|address| *address != 0),
            source: sample.data_source,
            latency: latency(sample.weight),
            cpu: sample.cpu,
            page_bytes: sample.page_bytes.filter(|bytes| *bytes != 0),
            registers,
            call,
        });
        true
    }

    /// The number of a call, which is new if it was not found before.
    pub(crate) fn call(&mut self, call: KeptCall) -> u32 {
        *self.numbers.entry(call).or_insert_with(|| {
            self.calls.push(call);
            self.calls.len() as u32 - 1
        })
    }
}

/// Cycles of an access. Processors that measure none leave 0.
fn latency(weight: Option<SampleWeight>) -> Option<u64> {
    let cycles = match weight? {
        SampleWeight::Whole(cycles) => cycles,
        SampleWeight::Parts(cycles, _, _) => cycles.into(),
    };
    Some(cycles).filter(|cycles| *cycles > 0)
}
