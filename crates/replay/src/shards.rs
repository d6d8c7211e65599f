//! Chunks dealt out to shards by address.
//!
//! Lines of different sets never meet in a cache, so pieces of a trace that touch different sets
//! can be simulated separately. Marks and loops go to every shard; of an access, each shard gets
//! the lines that are its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use memlode_simulate::{Schedule, Schedules, Shape, Strided};
use memlode_trace::UnrecordedId;
use memlode_trace::event::{Access, Batch, Loop, Stride};
use memlode_trace::sites::SiteId;

use crate::crew::Chunk;
use crate::moments::{Inside, Moment};
use crate::strides::strided;
use crate::walks::Walk;

/// Which shard an address belongs to.
#[derive(Clone, Debug)]
pub struct Shards {
    count: usize,
    /// The first level.
    shape: Shape,
    /// From address to the bits that choose the shard.
    shift: u32,
    /// The shard for each value of the chosen bits; bits above them do not matter.
    of: Box<Table>,
}

/// Most bits that a shard is chosen by.
const MOST_BITS: u32 = 12;

/// Shards by the value of the chosen bits.
type Table = [u8; 1 << MOST_BITS];

impl Shards {
    /// Everything in one.
    pub fn one() -> Shards {
        Shards { count: 1, shape: Shape { line_bytes: 64, sets: 1, ways: 1 }, shift: 0, of: Box::new([0; _]) }
    }

    /// At most `count` shards by the address bits `bits`; fewer where there are not as many values
    /// of the bits. Accesses are cut at lines of the first level, which are not longer than the
    /// value of the lowest bit.
    pub fn new(count: usize, bits: std::ops::Range<u32>, shape: Shape) -> Shards {
        let width = bits.len().min(MOST_BITS as usize) as u32;
        let count = count.clamp(1, (1 << width).min(usize::from(u8::MAX)));
        // The sum of the digits: neighbours and most strides are dealt out evenly.
        let shard = |mut value: usize| {
            let mut sum = 0;
            while value > 0 && count > 1 {
                sum += value % count;
                value /= count;
            }
            (sum % count) as u8
        };
        let of = std::array::from_fn(|value| shard(value & ((1 << width) - 1)));
        Shards { count, shape, shift: bits.start, of: Box::new(of) }
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// For [`Shards::deal`]: knows no loop yet.
    pub fn dealer(&self) -> Dealer {
        Dealer { schedules: Schedules::new(self.shape), strided: Vec::new() }
    }

    /// Returns the shard of an address.
    #[inline(always)]
    pub fn of(&self, address: u64) -> usize {
        self.owner()(address).into()
    }

    /// The same for many addresses: constants are held by value, so that the compiler keeps them in
    /// registers.
    #[inline(always)]
    pub fn owner(&self) -> impl Fn(u64) -> u8 + Copy + use<'_> {
        let (shift, of) = (self.shift, &*self.of);
        move |address| of[(address >> shift) as usize % of.len()]
    }

    /// Deals out a chunk with its moments: returns each shard's part, and how it was dealt.
    pub fn deal(&self, whole: &Batch, moments: &[Moment], dealer: &mut Dealer) -> Vec<(Batch, Dealing)> {
        let mut parts: Vec<Chunk> = (0..self.count).map(|_| Chunk::default()).collect();
        self.deal_out(whole, moments, &mut parts, dealer);
        parts.into_iter().map(|part| (part.batch, part.dealing)).collect()
    }

    /// The same to as many parts as there are shards.
    pub(crate) fn deal_out(
        &self,
        whole: &Batch,
        moments: &[Moment],
        parts: &mut [Chunk],
        dealer: &mut Dealer,
    ) {
        for Chunk { batch, dealing } in parts.iter_mut() {
            batch.clear();
            batch.clone_header(whole);
            batch.accesses.reserve(whole.accesses.len() / self.count + whole.accesses.len() / 8);
            dealing.halves.clear();
            dealing.loops.clear();
            dealing.moments.clear();
        }
        let mut cuts = 0;
        let mut from = Undealt { whole, access: 0, loops: 0, moments };
        for (mark, &(at, event)) in whole.marks.iter().enumerate() {
            self.loops_before(mark, &mut from, parts, &mut cuts, dealer);
            self.accesses_to(at as usize, &mut from, parts, &mut cuts);
            for part in parts.iter_mut() {
                part.batch.marks.push((part.batch.accesses.len() as u32, event));
            }
        }
        self.loops_before(whole.marks.len(), &mut from, parts, &mut cuts, dealer);
        self.accesses_to(whole.accesses.len(), &mut from, parts, &mut cuts);
        let depths = (0..cuts).map(|_| AtomicU8::new(0)).collect();
        let cuts = Arc::new(Cuts { depths, shards: self.count, done: AtomicUsize::new(0) });
        for part in parts {
            part.dealing.cuts = Some(cuts.clone());
        }
    }

    /// Deals out the loops that stand before a mark.
    fn loops_before(
        &self,
        mark: usize,
        from: &mut Undealt<'_>,
        parts: &mut [Chunk],
        cuts: &mut u32,
        dealer: &mut Dealer,
    ) {
        let whole = from.whole;
        while let Some(next) = whole.loops.get(from.loops).filter(|next| next.mark as usize <= mark) {
            self.accesses_to(next.access as usize, from, parts, cuts);
            from.moments_here(parts);
            from.loops += 1;
            self.repeat(next, &whole.strides, parts, cuts, dealer);
        }
    }

    /// Deals out the accesses up to one, which no loop or mark stands before.
    fn accesses_to(&self, access: usize, from: &mut Undealt<'_>, parts: &mut [Chunk], cuts: &mut u32) {
        while from.access < access {
            from.moments_here(parts);
            let moment = from.moments.first().map_or(access, |moment| moment.accesses as usize);
            let to = moment.min(access);
            self.accesses(&from.whole.accesses[from.access..to], parts, cuts);
            from.access = to;
        }
    }

    fn accesses(&self, accesses: &[Access], parts: &mut [Chunk], cuts: &mut u32) {
        let line = self.shape.line_bytes - 1;
        for &access in accesses {
            if (access.address & line) + u64::from(access.bytes) <= line + 1 {
                parts[self.of(access.address)].batch.accesses.push(access);
            } else {
                self.cut(access, parts, cuts);
            }
        }
    }

    /// Deals out a loop. Each shard finds its own lines in it, if it can do so without knowing the
    /// other shards' parts of an access.
    fn repeat(
        &self,
        repeated: &Loop,
        strides: &[Stride],
        parts: &mut [Chunk],
        cuts: &mut u32,
        dealer: &mut Dealer,
    ) {
        let strides = &strides[repeated.strides.start as usize..repeated.strides.end as usize];
        let Dealer { schedules, strided: looks } = dealer;
        strided(strides, looks);
        let are_aligned = looks.iter().all(|stride| stride.is_aligned(self.shape.line_bytes));
        // Moments may take it apart.
        let inside = next_of(&parts[0]).and_then(|moment| moment.inside);
        let one_by_one = match inside {
            Some(Inside { apart, .. }) => {
                are_aligned && apart.is_multiple_of(Schedule::period(looks, self.shape) as u64)
            }
            None => Schedule::enters_one_by_one(looks, self.shape),
        };
        let schedule = if one_by_one { schedules.of(looks, repeated.iterations) } else { None };
        let dealt = match schedule {
            Some(schedule) => {
                for stride in strides {
                    self.accesses(&[stride.access], parts, cuts);
                }
                Dealt::Scheduled(schedule.clone())
            }
            None if are_aligned => Dealt::Aligned,
            None => {
                self.unroll(repeated.iterations, strides.to_vec(), parts, cuts);
                return;
            }
        };
        for Chunk { batch, dealing } in parts {
            let (access, mark) = (batch.accesses.len() as u32, batch.marks.len() as u32);
            batch.loops.push(Loop { access, mark, ..repeated.clone() });
            dealing.loops.push(dealt.clone());
        }
    }

    fn unroll(&self, iterations: u64, mut strides: Vec<Stride>, parts: &mut [Chunk], cuts: &mut u32) {
        let moment = next_of(&parts[0]).copied();
        let inside = moment.and_then(|moment| moment.inside);
        for part in parts.iter_mut().filter(|_| inside.is_some()) {
            part.dealing.moments.last_mut().map(|moment| moment.inside.take());
        }
        for iteration in 0..iterations {
            if let (Some(moment), Some(Inside { apart, count, .. })) = (moment, inside)
                && iteration.is_multiple_of(apart)
                && (1..=count).contains(&(iteration / apart))
            {
                let time = moment.time_of(iteration / apart);
                for Chunk { batch, dealing } in parts.iter_mut() {
                    let (accesses, marks) = (batch.accesses.len() as u32, batch.marks.len() as u32);
                    let loops = batch.loops.len() as u32;
                    dealing.moments.push(Moment { time, accesses, marks, loops, inside: None });
                }
            }
            for Stride { access, step, .. } in &mut strides {
                self.accesses(&[*access], parts, cuts);
                access.address = access.address.wrapping_add(*step);
            }
        }
    }

    /// An access of several lines.
    #[cold]
    fn cut(&self, access: Access, parts: &mut [Chunk], cuts: &mut u32) {
        let line_bytes = self.shape.line_bytes;
        let last = access.address.saturating_add(u64::from(access.bytes) - 1);
        // Behind the last address there is nothing.
        let Some(second) = (access.address | (line_bytes - 1)).checked_add(1) else {
            parts[self.of(access.address)].batch.accesses.push(access);
            return;
        };
        if u64::from(access.bytes) <= line_bytes {
            let (of_first, of_second) = (self.of(access.address), self.of(second));
            if of_first == of_second {
                parts[of_first].batch.accesses.push(access);
                return;
            }
            let bytes = (second - access.address) as u32;
            let halves = [
                (of_first, Access { bytes, ..access }, true),
                (of_second, Access { address: second, bytes: (last - second + 1) as u32, ..access }, false),
            ];
            for (shard, half, is_first) in halves {
                let Chunk { batch, dealing } = &mut parts[shard];
                dealing.halves.push(Half { access: batch.accesses.len() as u32, cut: *cuts, is_first });
                batch.accesses.push(half);
            }
            *cuts += 1;
            return;
        }
        let mut address = access.address;
        loop {
            let end = (address | (line_bytes - 1)).min(last);
            let bytes = (end - address + 1) as u32;
            parts[self.of(address)].batch.accesses.push(Access { address, bytes, ..access });
            if end == last {
                return;
            }
            address = end + 1;
        }
    }
}

/// The moment in front of the loop that follows in a part of a chunk, if there is one.
fn next_of(part: &Chunk) -> Option<&Moment> {
    part.dealing.moments.last().filter(|moment| moment.loops as usize == part.batch.loops.len())
}

/// A chunk that is being dealt out: how far, and the moments that are left.
struct Undealt<'a> {
    whole: &'a Batch,
    access: usize,
    loops: usize,
    moments: &'a [Moment],
}

impl Undealt<'_> {
    /// Gives every part the moments that stand before the next event.
    fn moments_here(&mut self, parts: &mut [Chunk]) {
        while let Some((&moment, rest)) = self.moments.split_first()
            && (moment.accesses as usize, moment.loops as usize) <= (self.access, self.loops)
        {
            self.moments = rest;
            for Chunk { batch, dealing } in parts.iter_mut() {
                let (accesses, marks) = (batch.accesses.len() as u32, batch.marks.len() as u32);
                let loops = batch.loops.len() as u32;
                dealing.moments.push(Moment { accesses, marks, loops, ..moment });
            }
        }
    }
}

/// A dealing thread's knowledge of loops.
pub struct Dealer {
    schedules: Schedules,
    /// The current loop.
    strided: Vec<Strided>,
}

/// A chunk's division among the shards, as one of these sees it.
#[derive(Clone, Debug, Default)]
pub struct Dealing {
    /// Accesses of its own that go on, or began, in another shard, in order.
    pub halves: Vec<Half>,
    /// Indexed by loop; of a chunk that was not dealt out there is nothing.
    pub loops: Vec<Dealt>,
    /// Cuts of those accesses, through which shards exchange depths.
    pub cuts: Option<Arc<Cuts>>,
    /// Moments between its stamps, if others may have run meanwhile.
    pub moments: Vec<Moment>,
    /// The walks of the chunk's sites, as far as they were examined. The first shard gets those of
    /// the whole chunk.
    pub walks: Vec<(SiteId, Walk)>,
    /// Places that are not recorded, and how often they were executed; passed to the first shard.
    pub unrecorded: Vec<(UnrecordedId, u64)>,
}

impl Dealing {
    /// The result for a chunk that was not dealt out.
    pub fn none() -> &'static Dealing {
        static NONE: Dealing = Dealing {
            halves: Vec::new(),
            loops: Vec::new(),
            cuts: None,
            moments: Vec::new(),
            walks: Vec::new(),
            unrecorded: Vec::new(),
        };
        &NONE
    }
}

/// A loop's division among the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dealt {
    /// No access of it ever has several lines.
    Aligned,
    /// Its first iteration was dealt out as accesses; of the others, only those that the schedule
    /// shows may miss.
    Scheduled(Arc<Schedule>),
}

/// One shard's part of an access that has lines of two.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// Which access of the batch.
    pub access: u32,
    /// Which of the chunk's [`Cuts`].
    pub cut: u32,
    /// True if the access begins here.
    pub is_first: bool,
}

/// A chunk's accesses that have lines of two shards, which exchange their depths here.
#[derive(Debug)]
pub struct Cuts {
    depths: Vec<AtomicU8>,
    shards: usize,
    done: AtomicUsize,
}

impl Cuts {
    /// For the shard with the second half: how deep it went.
    pub fn tell(&self, cut: u32, depth: u8) {
        self.depths[cut as usize].store(depth, Ordering::Relaxed);
    }

    /// A shard is through the chunk.
    pub fn finish(&self) {
        // Release: who sees it sees the depths.
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Returns how deep the second half went, once all shards are through.
    pub fn told(&self, cut: u32) -> u8 {
        self.depths[cut as usize].load(Ordering::Relaxed)
    }

    /// Returns whether all shards are through.
    pub fn are_told(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.shards
    }
}
