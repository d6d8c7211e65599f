//! Writes and reads traces of samples.

use std::collections::HashMap;
use std::path::Path;

use super::chunk::{self, ChunkSamples};
use super::{
    CallPath, InstructionId, SampledBlock, SampledModule, SampledRecording, SampledThread, StoredSample,
};
use crate::decode::{Decoder, Loops};
use crate::error::Error;
use crate::index::ChunkRef;
use crate::log::Event;
use crate::manifest::{ManifestInfo, Summary};
use crate::pack::Packer;
use crate::read::Trace;
use crate::write::{EncodedChunk, TraceWriter};

/// Stamps are nanoseconds.
const TICKS_PER_SECOND: u64 = 1_000_000_000;

impl SampledRecording {
    /// Writes a trace directory. An existing trace is replaced only if told so.
    ///
    /// # Errors
    /// If the directory holds something else, or cannot be written.
    pub fn write(&self, directory: &Path, info: ManifestInfo, replace: bool) -> Result<(), Error> {
        self.modules.iter().try_for_each(SampledModule::refuse_huge)?;
        let info = ManifestInfo { sampled: Some(Box::new(self.info.clone())), ..info };
        let mut writer = TraceWriter::create(directory, info, replace)?;
        self.begin(&mut writer)?;
        let mut packer = Packer::new();
        let mut numbers = self.thread_numbers().into_iter();
        for samples in self.by_thread() {
            let (process, thread) = numbers.next().unwrap_or_default();
            for samples in samples.chunks(chunk::MOST) {
                let is_access = |at| self.instruction(at).access.is_some();
                let contents = chunk::contents(&self.with_own_lists(samples), is_access);
                writer.append(process, thread, EncodedChunk::of_samples(contents, &mut packer))?;
            }
        }
        let finished_unix_ms = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |time| time.as_millis());
        writer.finish(Summary {
            finished_unix_ms: finished_unix_ms as u64,
            ticks_per_second: Some(TICKS_PER_SECOND),
            ..Summary::default()
        })
    }

    /// Writes what stands before the chunks.
    fn begin(&self, writer: &mut TraceWriter) -> Result<(), Error> {
        let begun = self.samples.iter().map(|sample| sample.time).min().unwrap_or(0);
        let ended = self.samples.iter().map(|sample| sample.time).max().unwrap_or(0);
        let mut ids = Vec::new();
        for module in &self.modules {
            ids.push(writer.add_module(module.to_image())?.0.0);
        }
        let mut processes: Vec<u32> = Vec::new();
        for (SampledThread { pid, tid }, (process, thread)) in self.threads.iter().zip(self.thread_numbers())
        {
            if process as usize == processes.len() {
                processes.push(*pid);
                writer.event(&Event::ProcessStart {
                    process,
                    pid: *pid,
                    parent: None,
                    command: Vec::new(),
                    stamp: begun,
                })?;
                // Addresses of instructions are those of the file.
                for module in &ids {
                    let event = Event::ModuleLoad { process, module: *module, load_bias: 0, stamp: begun };
                    writer.event(&event)?;
                }
            }
            writer.event(&Event::ThreadStart { process, thread, tid: *tid, stamp: begun })?;
        }
        for process in 0..processes.len() as u32 {
            writer.event(&Event::ProcessEnd { process, clean: true, stamp: ended })?;
        }
        Ok(())
    }

    /// Numbers of process and thread in the trace.
    fn thread_numbers(&self) -> Vec<(u32, u32)> {
        let mut numbers: Vec<(u32, u32)> = Vec::with_capacity(self.threads.len());
        for (at, thread) in self.threads.iter().enumerate() {
            let number = match at.checked_sub(1).map(|before| (self.threads[before].pid, numbers[before])) {
                None => (0, 0),
                Some((pid, (process, number))) if pid == thread.pid => (process, number + 1),
                Some((_, (process, _))) => (process + 1, 0),
            };
            numbers.push(number);
        }
        numbers
    }

    /// Samples of each thread; none of one that has none.
    fn by_thread(&self) -> Vec<&[StoredSample]> {
        let mut rest = &self.samples[..];
        let of = |thread| {
            let own;
            (own, rest) = rest.split_at(rest.partition_point(|sample| sample.thread <= thread));
            own
        };
        (0..self.threads.len() as u32).map(of).collect()
    }

    /// Samples with indices into lists of the paths and blocks that they have alone.
    fn with_own_lists(&self, samples: &[StoredSample]) -> ChunkSamples {
        let (mut paths, mut blocks) = (KnownPaths::default(), KnownBlocks::default());
        let own = |sample: &StoredSample| {
            let path = sample.path.map(|path| paths.take_over(path, &self.paths));
            let block =
                sample.block.map(|block| blocks.take_over(block, &self.blocks, &self.paths, &mut paths));
            StoredSample { path, block, ..*sample }
        };
        let samples = samples.iter().map(own).collect();
        ChunkSamples { samples, paths: paths.paths, blocks: blocks.blocks }
    }
}

/// Call paths, each once.
#[derive(Default)]
pub struct KnownPaths {
    paths: Vec<CallPath>,
    numbers: HashMap<CallPath, u32>,
}

impl KnownPaths {
    /// The number of a path, which is new if it was not met before.
    pub fn number(&mut self, path: CallPath) -> u32 {
        *self.numbers.entry(path).or_insert_with(|| {
            self.paths.push(path);
            self.paths.len() as u32 - 1
        })
    }

    /// All of them.
    pub fn into_paths(self) -> Vec<CallPath> {
        self.paths
    }

    /// The number of a path of another list.
    fn take_over(&mut self, path: u32, of: &[CallPath]) -> u32 {
        let mut chain = vec![path];
        while let Some(parent) = of[chain[chain.len() - 1] as usize].parent {
            chain.push(parent);
        }
        let mut parent = None;
        for path in chain.into_iter().rev() {
            parent = Some(self.number(CallPath { parent, ..of[path as usize] }));
        }
        parent.unwrap_or_default()
    }
}

/// Blocks, each once.
#[derive(Default)]
pub struct KnownBlocks {
    blocks: Vec<SampledBlock>,
    numbers: HashMap<SampledBlock, u32>,
}

impl KnownBlocks {
    /// The number of a block, which is new if it was not found before.
    pub fn number(&mut self, block: SampledBlock) -> u32 {
        *self.numbers.entry(block).or_insert_with(|| {
            self.blocks.push(block);
            self.blocks.len() as u32 - 1
        })
    }

    /// All of them.
    pub fn into_blocks(self) -> Vec<SampledBlock> {
        self.blocks
    }

    /// The number of a block of another list, whose path is one of `of_paths`.
    fn take_over(
        &mut self,
        block: u32,
        of: &[SampledBlock],
        of_paths: &[CallPath],
        paths: &mut KnownPaths,
    ) -> u32 {
        let block = of[block as usize];
        let path = block.path.map(|path| paths.take_over(path, of_paths));
        self.number(SampledBlock { path, ..block })
    }
}

impl Trace {
    /// Opens a trace directory that holds samples.
    ///
    /// # Errors
    /// If it is none, or holds every access.
    pub fn open_sampled(directory: &Path) -> Result<Trace, Error> {
        let path = directory.to_owned();
        let trace = Trace::open_any(directory)?;
        if trace.is_sampled() { Ok(trace) } else { Err(Error::NotSampled { path }) }
    }

    /// Returns whether it holds samples, and not every access.
    pub fn is_sampled(&self) -> bool {
        self.manifest.info.sampled.is_some()
    }

    /// Reads all samples, and says what could not be read.
    ///
    /// # Errors
    /// If a module of it is damaged.
    pub fn recording(&self) -> Result<(SampledRecording, Vec<Error>), Error> {
        let modules: Vec<SampledModule> =
            self.modules().iter().map(SampledModule::of_image).collect::<Result<_, _>>()?;
        let pid = |process: usize| self.processes().get(process).map_or(0, |process| process.pid);
        let of = |thread: &crate::read::Thread| SampledThread {
            pid: pid(thread.process.0 as usize),
            tid: thread.tid,
        };
        let mut chunks: Vec<&ChunkRef> = self.chunks().iter().collect();
        chunks.sort_by_key(|chunk| (chunk.thread, chunk.sequence()));
        let mut found = SampledRecording {
            info: self.manifest().info.sampled.as_deref().cloned().unwrap_or_default(),
            threads: self.threads().iter().map(of).collect(),
            modules,
            ..SampledRecording::default()
        };
        let (mut known, mut blocks, mut problems) =
            (KnownPaths::default(), KnownBlocks::default(), Vec::new());
        let mut decoder = Decoder::new(Loops::Unrolled);
        for chunk in chunks {
            match decoder.samples(self, chunk, |at| is_access(&found.modules, at)) {
                Ok(own) => found.samples.extend(own.samples.into_iter().map(|sample| {
                    let path = sample.path.map(|path| known.take_over(path, &own.paths));
                    let block = sample
                        .block
                        .map(|block| blocks.take_over(block, &own.blocks, &own.paths, &mut known));
                    StoredSample { thread: chunk.thread.0, path, block, ..sample }
                })),
                Err(problem) => problems.push(problem),
            }
        }
        found.paths = known.paths;
        found.blocks = blocks.blocks;
        Ok((found, problems))
    }
}

/// Returns whether an instruction touches memory; `None` if there is no such instruction.
fn is_access(modules: &[SampledModule], at: InstructionId) -> Option<bool> {
    let module = modules.get(at.module as usize)?;
    Some(module.instructions.get(at.instruction as usize)?.access.is_some())
}
