//! Which block lay at an address at a time.

use std::collections::{BTreeMap, HashMap};

use super::{BlockChange, BlockEvent};

/// Blocks of all processes that are followed at a time, at most. A process begins with those of its parent.
const MOST_BLOCKS: usize = 1 << 22;

/// A block that lay at the address of some sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SweptBlock {
    pub address: u64,
    pub bytes: u64,
    /// Nanoseconds.
    pub begun: u64,
    /// The innermost call that led to it.
    pub call: Option<u32>,
    pub is_mapped: bool,
}

/// An access: time, process and address.
pub(crate) type Access = (u64, u32, u64);

/// The blocks of accesses, by their index; `None` where no block is known. Changes are in the order of time.
pub(crate) fn sweep(changes: &[BlockChange], accesses: &[Option<Access>]) -> Vec<Option<SweptBlock>> {
    let mut order: Vec<(usize, Access)> =
        accesses.iter().enumerate().filter_map(|(at, access)| Some((at, (*access)?))).collect();
    order.sort_by_key(|(_, access)| *access);
    let mut memory = Memory::default();
    let mut left = changes;
    let mut found = vec![None; accesses.len()];
    for (at, (time, pid, address)) in order {
        let due = left.partition_point(|change| change.time <= time);
        left[..due].iter().for_each(|change| memory.change(change));
        left = &left[due..];
        found[at] = memory.block(pid, address);
    }
    found
}

/// The blocks of all processes at a time: by address, those of the heap apart from what was mapped, as heaps lie in
/// memory that was mapped.
#[derive(Default)]
struct Memory {
    processes: HashMap<u32, [BTreeMap<u64, SweptBlock>; 2]>,
    blocks: usize,
}

impl Memory {
    fn change(&mut self, change: &BlockChange) {
        let pid = change.pid;
        match change.event {
            BlockEvent::Taken { address, bytes, call, is_mapped } => {
                let block = SweptBlock { address, bytes, begun: change.time, call, is_mapped };
                self.remove(pid, address, bytes, is_mapped);
                if self.blocks < MOST_BLOCKS {
                    let of = self.processes.entry(pid).or_default();
                    of[usize::from(is_mapped)].insert(address, block);
                    self.blocks += 1;
                }
            }
            BlockEvent::Freed { address } => {
                let of = self.processes.get_mut(&pid);
                let gone = of.and_then(|[heap, _]| heap.remove(&address));
                self.blocks -= usize::from(gone.is_some());
            }
            BlockEvent::Unmapped { address, bytes } => self.remove(pid, address, bytes, true),
            BlockEvent::Forked { parent } => {
                self.forget(pid);
                let of = self.processes.get(&parent).cloned().unwrap_or_default();
                let more: usize = of.iter().map(BTreeMap::len).sum();
                if self.blocks + more <= MOST_BLOCKS {
                    self.blocks += more;
                    self.processes.insert(pid, of);
                }
            }
            BlockEvent::Replaced => self.forget(pid),
        }
    }

    fn forget(&mut self, pid: u32) {
        let gone = self.processes.remove(&pid);
        self.blocks -= gone.iter().flatten().map(BTreeMap::len).sum::<usize>();
    }

    /// Removes what lies in a part of memory: of what was mapped, all that lies before and behind the part stays.
    fn remove(&mut self, pid: u32, address: u64, bytes: u64, is_mapped: bool) {
        let Some(of) = self.processes.get_mut(&pid) else { return };
        let blocks = &mut of[usize::from(is_mapped)];
        let end = address.saturating_add(bytes);
        while let Some((start, old)) = blocks.range(..end).next_back().map(|(start, old)| (*start, *old)) {
            let old_end = start.saturating_add(old.bytes);
            if old_end <= address {
                break;
            }
            blocks.remove(&start);
            self.blocks -= 1;
            if !is_mapped {
                continue;
            }
            if start < address {
                blocks.insert(start, SweptBlock { bytes: address - start, ..old });
                self.blocks += 1;
            }
            if old_end > end {
                blocks.insert(end, SweptBlock { address: end, bytes: old_end - end, ..old });
                self.blocks += 1;
            }
        }
    }

    fn block(&self, pid: u32, address: u64) -> Option<SweptBlock> {
        self.processes.get(&pid)?.iter().find_map(|blocks| {
            let (start, block) = blocks.range(..=address).next_back()?;
            (address - start < block.bytes).then_some(*block)
        })
    }
}
