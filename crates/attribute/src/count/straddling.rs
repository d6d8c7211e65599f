//! Accesses that have lines of two shards: each shard simulates its part, and passes the depth to
//! the other.

use std::sync::Arc;

use memlode_replay::{Cuts, Half, Piece};
use memlode_simulate::{Fragment, MemRef, Tag};

use crate::count::engine::Engine;
use crate::count::profiler::{Profiler, Stream};
use crate::count::single_line::SiteFacts;

/// An access that goes on in another shard, or began there.
pub(crate) struct CutAccess {
    cell: u32,
    /// True if it begins here.
    is_first: bool,
    pub depth: u8,
    cut: u32,
    cuts: Arc<Cuts>,
}

impl<E: Engine> Profiler<E> {
    /// The part here of an access that other shards have parts of, too. It counts once, where it
    /// begins, as deep as any part went.
    pub(crate) fn half(&mut self, stream: &mut Stream, half: &Half, piece: &Piece<'_>) {
        let access = &piece.batch.accesses[half.access as usize];
        let SiteFacts { is_write, is_past_caches, .. } = self.sites.facts[access.site.0 as usize];
        // What counts by cell has one shard, and no halves.
        let cell = if half.is_first { self.cell(stream, access) } else { 0 };
        let (address, bytes, core) =
            (stream.origin.space.place(access.address), access.bytes, stream.origin.core as u32);
        let depth = match is_past_caches {
            true => Some(self.begin_lines(core, &[Fragment { address, bytes, is_write }]).0),
            false => {
                let tag = Tag::part(self.cut.len() as u32);
                self.caches.access(MemRef { address, bytes, core, tag, is_write })
            }
        };
        let Some(cuts) = &piece.dealing.cuts else { return };
        let (depth, cut) = (depth.unwrap_or(0), half.cut);
        self.cut.push(CutAccess { cell, is_first: half.is_first, depth, cut, cuts: cuts.clone() });
    }

    /// Ends the piece: passes the depths of second halves to the other shards, and counts first
    /// halves whose second depth has come.
    pub(crate) fn join(&mut self) {
        let mut cut = std::mem::take(&mut self.cut);
        for second in cut.extract_if(.., |access| !access.is_first) {
            second.cuts.tell(second.cut, second.depth);
        }
        for done in cut.extract_if(.., |access| access.cuts.are_told()) {
            self.cells.count(done.cell, done.depth.max(done.cuts.told(done.cut)));
        }
        self.cut = cut;
    }

    /// Returns whether this shard counts accesses that no shard simulates.
    pub(crate) fn counts_for_all(&self) -> bool {
        self.shard.0 == 0
    }

    /// Returns whether the line of an address is this shard's.
    #[inline(always)]
    pub(crate) fn is_own(&self, address: u64) -> bool {
        self.shard.1.of(address) == self.shard.0
    }
}
