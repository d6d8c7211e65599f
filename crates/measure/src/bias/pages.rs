//! Pages that collide: a load waits for a store to another page because their physical addresses agree in the low 20
//! bits.
//!
//! A processor compares a load with stores that are on their way to the cache by part of the address first. Where it
//! compares 20 bits of the physical address, a copy between two pages that agree in them takes many times as long as
//! between any others, and no counter that is documented says so. Which pages do is for the kernel to decide, anew in
//! each run; with huge pages it is all that lie a multiple of 1 MiB apart.
//!
//! The probe needs neither counters nor rights: it times a copy from one page to the other with the stores
//! one word ahead of the loads, and for control the same copy 2 KiB apart within the pages, where nothing can
//! agree.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use serde::Serialize;

use super::ticks::ticks;
use crate::Error;
use crate::stats::median;

const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;
/// Words of one copy: half a page, so that the other half is for the control.
const STEPS: usize = WORDS / 2 - 16;
const HUGE: usize = 2 << 20;
/// A copy that takes this many times as long as others is one between pages that collide. The
/// factor was more than five for pages that do collide; below two, no collision is claimed.
pub const FACTOR: f64 = 2.0;
/// Distances of the store before the load, in words, that the cost is measured at.
const DISTANCES: [usize; 6] = [1, 2, 4, 8, 12, 16];

/// Pairs of pages that collide, and what that costs.
#[derive(Clone, Debug, Serialize)]
pub struct PagePairs {
    /// Pairs of 4 KiB pages that were tried.
    pub pairs: usize,
    /// Pairs that collide.
    pub colliding: usize,
    /// The number of triples of pages of which two pairs collide and the third does not. Equal bits cannot do
    /// that, so each is a mistake of the probe; 0 if it makes none.
    pub contradictions: usize,
    /// The number of pairs for which the kernel's own account of physical pages agrees, where it may be read.
    pub pagemap: Option<Agreement>,
    /// Nanoseconds of a copied word between pages that do not collide.
    pub nanoseconds: f64,
    /// Times by distance of the store before the load in words: how many times as long a copied word takes
    /// between pages that collide, or between two others if none do.
    pub costs: Vec<PageCost>,
    /// The same in huge pages, if the kernel gives any.
    pub huge: Option<Huge>,
}

/// The probe beside the kernel's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Pairs that collide, and whose physical pages agree in the low 20 bits.
    pub both: usize,
    /// Pairs that collide although their pages do not.
    pub probe_only: usize,
    /// Pairs that do not although their pages do.
    pub pagemap_only: usize,
}

/// The cost of colliding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PageCost {
    /// Words from the load to the store that comes before it.
    pub distance: usize,
    /// The time of a word over that at the same distance between halves that do not agree.
    pub measured: f64,
    /// The prediction of the law: the wait at distance 1, divided by the distance, and never less than nothing.
    pub modelled: f64,
}

/// Pages within huge ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Huge {
    /// Pairs a multiple of 1 MiB apart.
    pub equal: usize,
    /// Number of those that collide.
    pub equal_colliding: usize,
    /// Pairs 512 KiB apart.
    pub different: usize,
    /// Number of those that collide.
    pub different_colliding: usize,
}

/// Probes all pairs of `pages` pages of this process's memory.
///
/// # Errors
/// If the system gives no memory.
pub fn probe(pages: usize) -> Result<PagePairs, Error> {
    let memory = Memory::new(pages * PAGE, PAGE, Advice::LinuxNoHugepage)?;
    let probe = Probe::new(&memory, pages);
    let found = probe.all(pages);
    let costs = probe.costs(found.first().copied().unwrap_or((0, 1)));
    Ok(PagePairs {
        pairs: pages * pages.saturating_sub(1) / 2,
        colliding: found.len(),
        contradictions: contradictions(pages, &found),
        pagemap: memory.frames(pages).map(|frames| agreement(&frames, &found)),
        nanoseconds: probe.usual * nanoseconds_per_tick(),
        costs,
        huge: huge()?,
    })
}

/// Counts triples of pages of which two pairs collide and the third does not.
fn contradictions(pages: usize, found: &[(usize, usize)]) -> usize {
    let mut partners = vec![vec![0u64; pages.div_ceil(64)]; pages];
    for &(from, to) in found {
        partners[from][to / 64] |= 1 << (to % 64);
        partners[to][from / 64] |= 1 << (from % 64);
    }
    // Of two partners of one page, in either order: one of them is no partner of the other. Nor is it one of itself.
    let strangers = |one: usize, other: usize| -> usize {
        let both = partners[one].iter().zip(&partners[other]);
        both.map(|(one, other)| (one & !other).count_ones() as usize).sum::<usize>() - 1
    };
    let ordered: usize = found.iter().map(|&(from, to)| strangers(from, to) + strangers(to, from)).sum();
    ordered / 2
}

fn agreement(frames: &[u64], found: &[(usize, usize)]) -> Agreement {
    let equal = |from: usize, to: usize| (frames[from] ^ frames[to]) & 0xff == 0;
    let both = found.iter().filter(|(from, to)| equal(*from, *to)).count();
    let all: usize =
        (0..frames.len()).map(|from| (from + 1..frames.len()).filter(|to| equal(from, *to)).count()).sum();
    Agreement { both, probe_only: found.len() - both, pagemap_only: all - both }
}

fn huge() -> Result<Option<Huge>, Error> {
    let memory = Memory::new(2 * HUGE, HUGE, Advice::LinuxHugepage)?;
    if !memory.is_huge() {
        return Ok(None);
    }
    let probe = Probe::new(&memory, 2 * HUGE / PAGE);
    let apart = |pages: usize| (0..HUGE / PAGE).filter(|page| probe.collides(*page, page + pages)).count();
    Ok(Some(Huge {
        equal: HUGE / PAGE,
        equal_colliding: apart(256),
        different: HUGE / PAGE,
        different_colliding: apart(128),
    }))
}

/// Memory that nothing else lies in; gone when dropped.
struct Memory {
    map: *mut u8,
    mapped: usize,
    /// Aligned as asked.
    start: *mut u8,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize, align: usize, advice: Advice) -> Result<Memory, Error> {
        let system = |error: rustix::io::Errno| Error::System {
            doing: "cannot allocate pages to probe",
            source: error.into(),
        };
        let mapped = bytes + align;
        // SAFETY: a new mapping, at an address of the system's choice.
        let map = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .map_err(system)?;
        let map = map.cast::<u8>();
        let start = map.wrapping_add(map.align_offset(align));
        // SAFETY: within the mapping; the advice changes the size of pages and no content. Kernels without huge pages
        // refuse it, which is no harm.
        let _ = unsafe { madvise(start.cast(), bytes, advice) };
        for page in (0..bytes).step_by(PAGE) {
            // SAFETY: within the mapping. Every page is written, so each is a page of its own.
            unsafe { start.add(page).write_volatile(1) };
        }
        Ok(Memory { map, mapped, start, bytes })
    }

    /// Returns whether the kernel made huge pages of it.
    fn is_huge(&self) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let mut inside = false;
        for line in maps.lines() {
            if let Some((from, to)) = line.split(' ').next().and_then(|range| range.split_once('-'))
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                inside = (from..to).contains(&(self.start as usize));
            }
            if inside && let Some(size) = line.strip_prefix("AnonHugePages:") {
                let kibibytes = size.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0);
                return kibibytes * 1024 >= self.bytes;
            }
        }
        false
    }

    /// Numbers of the physical pages, if the kernel shows them (it gives zeros to users other than
    /// root).
    fn frames(&self, pages: usize) -> Option<Vec<u64>> {
        let file = File::open("/proc/self/pagemap").ok()?;
        let mut frames = Vec::with_capacity(pages);
        for page in 0..pages {
            let mut entry = [0; 8];
            let at = (self.start as usize / PAGE + page) * 8;
            file.read_exact_at(&mut entry, at as u64).ok()?;
            let frame = u64::from_ne_bytes(entry) & ((1 << 55) - 1);
            frames.push(Some(frame).filter(|frame| *frame != 0)?);
        }
        Some(frames)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody has a pointer into it any more.
        let _ = unsafe { munmap(self.map.cast(), self.mapped) };
    }
}

/// Times copies between pages.
trait Copies {
    /// Ticks of a word of a copy, the least of some; stores are `distance` words ahead of loads, and the page that is
    /// written is entered `apart` words behind.
    fn ticks(&self, from: usize, to: usize, distance: usize, apart: usize, passes: usize) -> f64;
}

struct Probe<'a> {
    copies: &'a dyn Copies,
    /// Ticks of a word between pages that do not collide.
    usual: f64,
}

impl Probe<'_> {
    fn new(copies: &dyn Copies, pages: usize) -> Probe<'_> {
        let control = |at: usize| copies.ticks(at % pages, (at * 7 + 1) % pages, 1, WORDS / 2, 3);
        let controls: Vec<f64> = (0..199).map(control).collect();
        Probe { copies, usual: median(&controls) }
    }

    /// All pairs of the first pages that collide.
    fn all(&self, pages: usize) -> Vec<(usize, usize)> {
        let after = |from: usize| {
            (from + 1..pages).filter(move |to| self.collides(from, *to)).map(move |to| (from, to))
        };
        (0..pages).flat_map(after).collect()
    }

    /// Returns whether a load from one page waits for a store to the other.
    fn collides(&self, from: usize, to: usize) -> bool {
        let limit = FACTOR * self.usual;
        if self.copies.ticks(from, to, 1, 0, 2) < limit {
            return false;
        }
        // An interrupt makes one copy slow. Collisions make all of them slow, and none of the controls.
        (0..3).all(|_| {
            let control = self.copies.ticks(from, to, 1, WORDS / 2, 5);
            self.copies.ticks(from, to, 1, 0, 5) > FACTOR * control
        })
    }

    fn costs(&self, (from, to): (usize, usize)) -> Vec<PageCost> {
        let one = |distance| {
            let control = self.copies.ticks(from, to, distance, WORDS / 2, 50);
            (control, self.copies.ticks(from, to, distance, 0, 50))
        };
        let (_, wait) = one(1);
        let cost = |distance: usize| {
            let (control, ticks) = one(distance);
            PageCost {
                distance,
                measured: ticks / control,
                modelled: (wait / distance as f64 / control).max(1.0),
            }
        };
        DISTANCES.into_iter().map(cost).collect()
    }
}

impl Copies for Memory {
    fn ticks(&self, from: usize, to: usize, distance: usize, apart: usize, passes: usize) -> f64 {
        let page = |page: usize| self.start.wrapping_add(page * PAGE).cast::<u64>();
        let (from, to) = (page(from), page(to).wrapping_add(apart + distance));
        let pass = || {
            let before = ticks();
            for step in 0..STEPS {
                // SAFETY: STEPS + 16 words are half a page, and both pages lie in this memory.
                unsafe { to.add(step).write_volatile(from.add(step).read_volatile()) };
            }
            ticks() - before
        };
        let least = (0..passes).map(|_| pass()).min().unwrap_or(0);
        least as f64 / STEPS as f64
    }
}

fn nanoseconds_per_tick() -> f64 {
    let (started, before) = (std::time::Instant::now(), ticks());
    std::thread::sleep(std::time::Duration::from_millis(20));
    started.elapsed().as_nanos() as f64 / (ticks() - before).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::cell::RefCell;

    use rand::RngExt;

    use crate::stats::{Random, random};

    /// A processor in which pages lie in these frames: how many low bits of a frame it compares, what is in
    /// its way, and passes that its other half still disturbs.
    struct Simulated {
        frames: Vec<u64>,
        compared: u32,
        noise: Noise,
        state: RefCell<(Random, u32)>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Noise {
        /// Interrupts, and a clock that wavers.
        Usual,
        /// Besides, stretches in which all copies take several times as long.
        Neighbour,
    }

    impl Simulated {
        fn new(seed: u64, pages: usize, compared: u32, noise: Noise) -> Simulated {
            let mut random = random(seed);
            let frames = (0..pages).map(|_| random.random_range(0..1 << 24)).collect();
            Simulated { frames, compared, noise, state: RefCell::new((random, 0)) }
        }

        fn pass(&self, from: usize, to: usize, distance: usize, apart: usize) -> f64 {
            let mut state = self.state.borrow_mut();
            let (random, disturbed) = &mut *state;
            let mask = (1 << self.compared) - 1;
            let waits = apart == 0 && self.compared > 0 && (self.frames[from] ^ self.frames[to]) & mask == 0;
            let mut ticks = if waits { 1.0 + 9.0 / distance as f64 } else { 1.0 };
            ticks *= random.random_range(0.95..1.3);
            if random.random_bool(0.01) {
                ticks *= random.random_range(2.0..500.0);
            }
            if self.noise == Noise::Neighbour && random.random_bool(0.002) {
                *disturbed = random.random_range(1..60);
            }
            if *disturbed > 0 {
                *disturbed -= 1;
                ticks *= random.random_range(2.0..6.0);
            }
            ticks
        }
    }

    impl Copies for Simulated {
        fn ticks(&self, from: usize, to: usize, distance: usize, apart: usize, passes: usize) -> f64 {
            (0..passes).map(|_| self.pass(from, to, distance, apart)).fold(f64::INFINITY, f64::min)
        }
    }

    /// The probe names exactly those of 101,025 pairs whose frames agree, in each of several runs; with a
    /// neighbour that disturbs whole stretches it may miss some and still makes none up.
    #[test]
    fn no_pair_of_a_hundred_thousand_is_made_up() {
        const PAGES: usize = 450;
        for seed in 1..=6 {
            for (compared, noise) in [(8, Noise::Usual), (8, Noise::Neighbour), (0, Noise::Neighbour)] {
                let simulated = Simulated::new(seed, PAGES, compared, noise);
                let found = Probe::new(&simulated, PAGES).all(PAGES);
                let mut truth = Vec::new();
                for from in 0..PAGES {
                    for to in from + 1..PAGES {
                        if compared > 0 && simulated.frames[from] % 256 == simulated.frames[to] % 256 {
                            truth.push((from, to));
                        }
                    }
                }
                let made_up = found.iter().filter(|pair| !truth.contains(pair)).count();
                assert_eq!(made_up, 0, "seed {seed}, {compared} bits");
                match noise {
                    Noise::Usual => {
                        assert_eq!((found, contradictions(PAGES, &truth)), (truth, 0), "seed {seed}")
                    }
                    Noise::Neighbour => {
                        assert!(found.len() * 100 >= truth.len() * 95, "seed {seed}: {found:?}")
                    }
                }
            }
        }
    }

    /// Triples, counted one by one.
    #[test]
    fn contradictions_are_triples() {
        let mut random = random(7);
        for density in [0.05, 0.3, 0.8, 1.0] {
            let found: Vec<(usize, usize)> = (0..40)
                .flat_map(|from| (from + 1..40).map(move |to| (from, to)))
                .filter(|_| random.random_bool(density))
                .collect();
            let has =
                |one: usize, other: usize| usize::from(found.contains(&(one.min(other), one.max(other))));
            let mut triples = 0;
            for a in 0..40 {
                for b in a + 1..40 {
                    triples += (b + 1..40).filter(|c| has(a, b) + has(a, *c) + has(b, *c) == 2).count();
                }
            }
            assert_eq!(contradictions(40, &found), triples);
        }
    }

    #[test]
    fn agreement_counts_pairs() {
        // Frames 1 and 257 agree in eight bits, as do 2 and 514.
        let frames = [1, 257, 2, 514, 3];
        let agreement = agreement(&frames, &[(0, 1), (0, 4)]);
        assert_eq!(agreement, Agreement { both: 1, probe_only: 1, pagemap_only: 1 });
    }

    /// On any processor, what most of five verdicts about a pair say is said again, of nine pairs in
    /// ten: the time of a single one may be another program's.
    #[test]
    fn verdicts_repeat() {
        let memory = Memory::new(40 * PAGE, PAGE, Advice::LinuxNoHugepage).expect("memory");
        let probe = Probe::new(&memory, 40);
        let most = |page: usize| (0..5).filter(|_| probe.collides(0, page)).count() >= 3;
        let unlike = (1..40).filter(|&page| most(page) != most(page)).count();
        assert!(unlike <= 4, "{unlike} of 39 pages");
    }
}
