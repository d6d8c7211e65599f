//! A worker's tools, and what one call of a reader is about.

use std::sync::Arc;

use memlode_trace::write::Packer;

use crate::ahead::{Batches, OwnEncoder};
use crate::output::Output;
use crate::packing::Packing;
use crate::process::Process;

/// The ring's process, the place for what is read, and the tools of the worker that reads.
pub struct Round<'a> {
    pub process: &'a Process,
    pub output: &'a Output,
    pub tools: &'a mut Tools,
}

/// The tools of a worker.
pub struct Tools {
    pub(super) words: Vec<u64>,
    pub(super) packer: Packer,
    pub(super) packing: Arc<Packing>,
    pub(super) encoder: OwnEncoder,
    pub(super) batches: Arc<Batches>,
    /// Rings that had something to read in the round before this one, for any reader.
    pub(super) busy_rings: usize,
    busy_rings_so_far: usize,
}

impl Tools {
    /// Tools of a thread that shares its work with others.
    pub fn new(packing: Arc<Packing>, batches: Arc<Batches>) -> Tools {
        Tools {
            words: Vec::new(),
            packer: Packer::new(),
            packing,
            encoder: OwnEncoder::default(),
            batches,
            busy_rings: 0,
            busy_rings_so_far: 0,
        }
    }

    /// Counts a ring that has something to read, or that another worker reads.
    pub fn count_busy_ring(&mut self) {
        self.busy_rings_so_far += 1;
    }

    /// All rings were looked at.
    pub fn end_round(&mut self) {
        self.busy_rings = std::mem::take(&mut self.busy_rings_so_far);
    }

    /// Packs a chunk if one waits, or encodes a batch of words.
    pub fn help_one(&mut self, output: &Output) -> bool {
        self.packing.pack_one(&mut self.packer, output) || self.batches.encode_one(&mut self.encoder)
    }
}
