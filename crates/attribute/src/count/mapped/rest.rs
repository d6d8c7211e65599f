//! Fixed places for memory that belongs to no object of a trace: stacks, and pages of unknown use.
//!
//! The kernel puts both elsewhere in each run. A stack is moved so that the first byte that its
//! thread used of it has the same address in every run; the kernel aligns it to 16 bytes, so a
//! program's frames keep their alignment. Everything else is moved by whole pages, which are
//! numbered in the order of their first use.

use memlode_trace::event::{ProcessId, ThreadId};
use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;
/// Stacks begin here, one for each thread.
const STACKS: u64 = 0x6000_0000_0000;
const FAR: u64 = 1 << 32;
/// Pages of unknown use are here.
const PAGES: u64 = 0x5000_0000_0000;
/// Bytes below and above the first used byte that are still taken for the same stack, where an
/// access does not say that it goes to one.
const BELOW: u64 = 64 << 20;
const ABOVE: u64 = 256 << 10;

/// Memory of one trace that no object has.
#[derive(Default)]
pub(super) struct Rest {
    /// The first address in use of each stack, by process and thread.
    stacks: FxHashMap<(ProcessId, ThreadId), u64>,
    pages: FxHashMap<(ProcessId, u64), u64>,
    given: FxHashMap<ProcessId, u64>,
}

impl Rest {
    /// Returns the place of a byte of a thread's stack.
    pub fn stack(&mut self, process: ProcessId, thread: ThreadId, address: u64) -> u64 {
        let first = *self.stacks.entry((process, thread)).or_insert(address);
        on_stack(thread, first, address)
    }

    /// Returns the place of a byte that no object has. A byte near the beginning of a stack is on
    /// it.
    pub fn unowned(&mut self, process: ProcessId, address: u64) -> u64 {
        let near = self.stacks.iter().filter(|((of, _), first)| {
            *of == process && address.wrapping_sub(first.wrapping_sub(BELOW)) < BELOW + ABOVE
        });
        // Stacks of threads may be closer to each other than that.
        if let Some((&(_, thread), &first)) = near.min_by_key(|(_, first)| first.abs_diff(address)) {
            return on_stack(thread, first, address);
        }
        let given = self.given.entry(process).or_default();
        let page = *self.pages.entry((process, address / PAGE)).or_insert_with(|| {
            *given += 1;
            *given - 1
        });
        PAGES.wrapping_add(page.wrapping_mul(PAGE)) + address % PAGE
    }
}

fn on_stack(thread: ThreadId, first: u64, address: u64) -> u64 {
    let top = STACKS + u64::from(thread.0) * FAR + FAR / 2;
    top.wrapping_add(address.wrapping_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_hang_on_addresses() {
        let run = |stack: u64, heap: u64, library: u64| {
            let (process, mut rest) = (ProcessId(1), Rest::default());
            vec![
                rest.stack(process, ThreadId(0), stack),
                rest.stack(process, ThreadId(0), stack - 400),
                rest.unowned(process, heap + 24),
                rest.unowned(process, library),
                rest.unowned(process, heap + 4096),
                rest.unowned(process, heap + 32),
                rest.unowned(process, stack - 96),
            ]
        };
        let first = run(0x7ffd_1234_5670, 0x5555_5555_0000, 0x7f00_0000_0000);
        assert_eq!(first, run(0x7ffc_8888_0010, 0x6123_4567_8000, 0x7f12_3456_7000));
        assert_eq!(first[0] - first[1], 400);
        assert_eq!(first[5] - first[2], 8, "bytes of a page stay together");
        assert_eq!(first[0] - first[6], 96, "what is reached through a pointer is on the stack, too");
    }
}
