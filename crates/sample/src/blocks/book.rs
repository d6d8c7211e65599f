//! Changes of a program's blocks, as few as samples need.

use std::collections::HashMap;

use super::{BlockNote, NoteKind};

/// Changes that are kept: a sixth of a gigabyte.
const MOST_CHANGES: usize = 1 << 22;
/// A block that is given back and taken again by the same calls this soon, in nanoseconds, is one block: few samples can
/// lie between.
const SOON: u64 = 100_000;

/// A change of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// A block was taken, or memory mapped.
    Taken {
        /// Its first byte.
        address: u64,
        /// Its length.
        bytes: u64,
        /// The innermost call that led there: an index into [`crate::KeptSamples::calls`].
        call: Option<u32>,
        /// The memory was mapped, and is no block of the heap.
        is_mapped: bool,
    },
    /// A block was given back.
    Freed {
        /// Its first byte.
        address: u64,
    },
    /// Memory was unmapped.
    Unmapped {
        /// Its first byte.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// The process began as a copy of `parent`.
    Forked {
        /// The process that it is a copy of.
        parent: u32,
    },
    /// Another program took the process's place.
    Replaced,
}

/// A change, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockChange {
    /// Nanoseconds of the clock that samples have; 0: before all.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The change.
    pub event: BlockEvent,
}

/// All changes of the blocks that were noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBlocks {
    /// In the order of time.
    pub changes: Vec<BlockChange>,
    /// Some process noted its blocks.
    pub is_noted: bool,
    /// Changes that are not among these.
    pub lost: u64,
}

/// A block that was given back a moment ago.
#[derive(Clone, Copy)]
struct Freed {
    time: u64,
    bytes: u64,
    path: Option<u16>,
}

/// Collects changes. Those of a block that comes and goes all the time are left out.
#[derive(Default)]
pub(crate) struct BlockBook {
    kept: KeptBlocks,
    /// Bytes and path of blocks, by process and address.
    alive: HashMap<(u32, u64), (u64, Option<u16>)>,
    freed: HashMap<(u32, u64), Freed>,
}

impl BlockBook {
    /// Adds what was noted, with the innermost call of its path.
    pub fn add(&mut self, note: &BlockNote, call: Option<u32>) {
        self.kept.is_noted = true;
        let BlockNote { time, pid, kind, address, bytes, path } = *note;
        match kind {
            NoteKind::Taken => {
                let block = (pid, address);
                if let Some(freed) = self.freed.remove(&block) {
                    if (freed.bytes, freed.path) == (bytes, path) && time.saturating_sub(freed.time) <= SOON {
                        self.alive.insert(block, (bytes, path));
                        return;
                    }
                    self.change(freed.time, pid, BlockEvent::Freed { address });
                }
                self.alive.insert(block, (bytes, path));
                self.change(time, pid, BlockEvent::Taken { address, bytes, call, is_mapped: false });
            }
            NoteKind::Freed => match self.alive.remove(&(pid, address)) {
                Some((bytes, path)) => _ = self.freed.insert((pid, address), Freed { time, bytes, path }),
                // That of a parent, perhaps.
                None => self.change(time, pid, BlockEvent::Freed { address }),
            },
            NoteKind::Mapped => {
                self.change(time, pid, BlockEvent::Taken { address, bytes, call, is_mapped: true });
            }
            NoteKind::Unmapped => self.change(time, pid, BlockEvent::Unmapped { address, bytes }),
        }
    }

    /// Memory that a process had before its blocks were noted: whatever lies there is older, or too small for a note.
    pub fn older(&mut self, pid: u32, address: u64, bytes: u64) {
        self.kept.is_noted = true;
        self.change(0, pid, BlockEvent::Taken { address, bytes, call: None, is_mapped: true });
    }

    /// Adds what the kernel said of a process.
    pub fn change(&mut self, time: u64, pid: u32, event: BlockEvent) {
        match self.kept.changes.len() < MOST_CHANGES {
            true => self.kept.changes.push(BlockChange { time, pid, event }),
            false => self.kept.lost += 1,
        }
    }

    /// Changes that are as old as this will not be taken back.
    pub fn settle(&mut self, until: u64) {
        let old: Vec<_> =
            self.freed.iter().filter(|(_, freed)| freed.time.saturating_add(SOON) < until).collect();
        let old: Vec<_> = old.into_iter().map(|(block, freed)| (*block, freed.time)).collect();
        for ((pid, address), time) in old {
            self.freed.remove(&(pid, address));
            self.change(time, pid, BlockEvent::Freed { address });
        }
    }

    /// All of them; `lost` more were never noted.
    pub fn finish(mut self, lost: u64) -> KeptBlocks {
        if !self.kept.is_noted {
            return KeptBlocks::default();
        }
        self.settle(u64::MAX);
        self.kept.lost += lost;
        self.kept.changes.sort_by_key(|change| change.time);
        self.kept
    }
}
