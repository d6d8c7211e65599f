//! Accesses that wait for a [`Detailed`] simulation, and go through it together.
//!
//! What watches caches, translations and stores does not know of each other, so each can take all the accesses in one go, in
//! a loop of its own that is small. And the records of lines do not fit into the caches of the machine we run on: it can
//! fetch those of accesses to come meanwhile.

use crate::detailed::{Caches, Detailed, Far, Near};
use crate::later::Asked;
use crate::table::Table;

/// Accesses between the one at hand and that whose place in the index is fetched.
const FAR: usize = 24;
/// Accesses between the one at hand and that whose record is fetched.
const NEAR: usize = 12;

/// Bytes from one access to the next that lead to records which have come already, or come by themselves: those of neighbouring lines
/// are often neighbours.
const NEARBY: u64 = 128;

/// One access.
#[derive(Clone, Copy)]
struct Request {
    address: u64,
    bytes: u32,
    core: u32,
    tag: u32,
    is_write: bool,
}

/// Accesses that wait.
#[derive(Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// One more.
    #[inline(always)]
    pub fn push(&mut self, core: usize, address: u64, bytes: u32, is_write: bool, tag: u32) {
        self.0.push(Request { address, bytes, core: core as u32, tag, is_write });
    }

    /// The requests of a core, for many accesses in a row: to be settled when there are `most`.
    pub fn queue(&mut self, core: usize, line_shift: u32, most: usize) -> Queue<'_> {
        self.0.reserve(most.saturating_sub(self.0.len()));
        Queue { requests: &mut self.0, core: core as u32, line_shift, most }
    }

    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Where the accesses of one core wait.
pub struct Queue<'r> {
    requests: &'r mut Vec<Request>,
    core: u32,
    line_shift: u32,
    most: usize,
}

impl Queue<'_> {
    /// An access, if it is to one line.
    #[inline(always)]
    pub fn push(&mut self, address: u64, bytes: u32, is_write: bool, tag: u32) -> Asked {
        // Of no bytes, the last one is 4 GiB away.
        let last = address.wrapping_add(u64::from(bytes.wrapping_sub(1)));
        if last >> self.line_shift != address >> self.line_shift {
            return Asked::Several;
        }
        self.requests.push(Request { address, bytes, core: self.core, tag, is_write });
        Asked::Waits
    }

    /// Whether there are so many that it is time to settle.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.most
    }
}

impl Near {
    /// As [`Tlb::set_pages_of`](crate::Tlb), if there are translations.
    pub fn set_pages_of(&mut self, tag: u32, page_bytes: u64) {
        if let Some(tlb) = &mut self.tlb {
            tlb.set_pages_of(tag, page_bytes);
        }
    }

    /// Translates addresses and keeps stores in flight.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, requests: &Requests) {
        if let Some(tlb) = &mut self.tlb {
            for request in &requests.0 {
                tlb.access(request.core as usize, request.address, request.bytes, request.tag);
            }
        }
        if let Some(stores) = &mut self.stores {
            for &Request { address, bytes, core, tag, is_write } in &requests.0 {
                stores.access(core as usize, address, bytes, is_write, tag);
            }
        }
    }
}

impl Far {
    /// Asks the caches: `told` learns the tag and the depth of each access ([`Outcome::depth`](crate::Outcome)), in their order.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, requests: &Requests, mut told: impl FnMut(u32, u8)) {
        self.caches.access_all(&requests.0, &mut self.depths);
        let done = requests.0.iter().zip(&self.depths);
        if let Some(numa) = &mut self.numa {
            for (request, _) in done.clone().filter(|(_, depth)| usize::from(**depth) == self.levels) {
                numa.access(request.core as usize, request.address, request.tag);
            }
        }
        for (request, depth) in done {
            told(request.tag, *depth);
        }
        self.depths.clear();
    }
}

impl Detailed {
    /// [`Detailed::access`] that waits for [`Detailed::settle`].
    #[inline(always)]
    pub fn access_later(&mut self, core: usize, address: u64, bytes: u32, is_write: bool, tag: u32) {
        self.waiting.push(core, address, bytes, is_write, tag);
    }

    /// Where accesses of a core wait.
    pub fn queue(&mut self, core: usize, most: usize) -> Queue<'_> {
        let line_shift = self.first_level().line_shift();
        self.waiting.queue(core, line_shift, most)
    }

    /// How many accesses wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Does what waits: `told` as in [`Far::settle`]. Until then nothing that waits is counted anywhere.
    ///
    /// # Panics
    /// As [`Detailed::access`] of one of them.
    pub fn settle(&mut self, told: impl FnMut(u32, u8)) {
        self.far.settle(&self.waiting, told);
        self.near.settle(&self.waiting);
        self.waiting.clear();
    }
}

impl Caches {
    fn access_all(&mut self, requests: &[Request], depths: &mut Vec<u8>) {
        for (number, &Request { address, bytes, core, tag, is_write }) in requests.iter().enumerate() {
            if let Some(far) = jump(requests, number + FAR) {
                self.expect(far);
            }
            if let Some(near) = jump(requests, number + NEAR) {
                self.expect_soon(near);
            }
            let core = core as usize;
            depths.push(match self {
                Caches::Plain(plain) => {
                    let (caches, lines) = &mut **plain;
                    lines.access(caches, core, address, bytes, is_write, tag).0
                }
                Caches::General(general) => {
                    let (model, lines) = &mut **general;
                    lines.access(model, core, address, bytes, is_write, tag).0.depth
                }
            });
        }
    }

    /// An access comes in a while: asks the processor we run on for what leads to its line's record.
    #[inline(always)]
    fn expect(&self, request: &Request) {
        let (table, line) = self.place(request);
        table.prefetch_index(line);
    }

    /// It comes soon: asks for the record.
    #[inline(always)]
    fn expect_soon(&self, request: &Request) {
        let (table, line) = self.place(request);
        table.prefetch_record(line);
    }

    /// The line of the first level, and where what is known of it will be.
    #[inline(always)]
    fn place(&self, request: &Request) -> (&Table, u64) {
        let core = request.core as usize;
        match self {
            Caches::Plain(plain) => (plain.1.innermost(core), plain.1.line(request.address)),
            Caches::General(general) => (general.1.innermost(core), general.1.line(request.address)),
        }
    }
}

/// The request of that number, if it goes far from where the one before it went.
#[inline(always)]
fn jump(requests: &[Request], number: usize) -> Option<&Request> {
    let [before, request] = requests.get(number - 1..=number)? else { return None };
    (before.address.abs_diff(request.address) > NEARBY).then_some(request)
}
