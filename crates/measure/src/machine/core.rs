//! One core's part of a round: its latencies, its parallelism, and its window.

use crate::Error;

use super::kernels::{self, Chase, GAPS, Sweep};
use super::memory::{Buffer, PageKind, next_place};
use super::touches::Touches;
use super::{Samples, Sizes, sharing};

/// Steps that one piece of a chase makes: a millisecond or so at any level.
const STEPS: u64 = 6000;

/// Pages that no translation buffer holds, with one line each; few enough that the lines, and those of the page tables, are near.
const PAGES: usize = 1 << 13;

/// Offset of a line in each page: another line in each, so that they do not meet in a few sets.
fn line_of_page(at: usize) -> usize {
    at * 4096 + at % 64 * 64
}

/// A buffer, the chain in it, and where a chase of it goes on.
struct Ring {
    buffer: Buffer,
    at: *const *const u8,
}

impl Ring {
    /// A chain of `count` places.
    fn new(
        bytes: usize,
        pages: PageKind,
        count: usize,
        place: impl Fn(usize) -> usize,
    ) -> Result<Ring, Error> {
        let mut buffer = Buffer::new(bytes, pages)?;
        let at = buffer.chain(count, place);
        Ok(Ring { buffer, at })
    }

    /// A chain through all lines, in huge pages.
    fn of_lines(bytes: usize) -> Result<Ring, Error> {
        Ring::new(bytes, PageKind::Huge, bytes / 64, |at| at * 64)
    }

    /// A chain with one line in each page.
    fn of_pages(pages: PageKind) -> Result<Ring, Error> {
        Ring::new(PAGES * 4096, pages, PAGES, line_of_page)
    }

    /// Nanoseconds of a step, after as many that are not timed.
    fn step(&mut self, untimed: u64) -> f64 {
        // SAFETY: nothing writes to a ring.
        let mut chase = unsafe { Chase::new(&self.buffer, self.at) };
        chase.walk(untimed);
        let step = chase.step(STEPS);
        self.at = chase.at();
        step
    }
}

/// Buffers for one core, of all sizes.
pub(super) struct Core {
    /// For each level but the last, and each of [`Sizes::beyond`].
    rings: Vec<Ring>,
    memory: Ring,
    /// The place where the second chase of a pair goes on.
    other: *const *const u8,
    small_pages: Ring,
    huge_pages: Ring,
    reads: Sweep,
    writes: Sweep,
    written: Buffer,
}

impl Core {
    /// Touches all of its memory.
    ///
    /// # Errors
    /// If the system has not as much.
    pub fn new(sizes: &Sizes) -> Result<Core, Error> {
        let inner = sizes.levels.split_last().map_or(&[][..], |(_, inner)| inner);
        let rings =
            inner.iter().chain(&sizes.beyond).map(|size| Ring::of_lines(*size)).collect::<Result<_, _>>()?;
        let memory = Ring::of_lines(sizes.memory)?;
        // SAFETY: nothing writes to a ring.
        let mut other = unsafe { Chase::new(&memory.buffer, memory.at) };
        other.walk(1 << 20);
        Ok(Core {
            rings,
            other: other.at(),
            memory,
            small_pages: Ring::of_pages(PageKind::Small)?,
            huge_pages: Ring::of_pages(PageKind::Huge)?,
            reads: Sweep::default(),
            writes: Sweep::default(),
            written: Buffer::new(sizes.memory / 2, PageKind::Huge)?,
        })
    }

    /// Measures everything once.
    pub fn round(&mut self, sizes: &Sizes, samples: &mut Samples) {
        samples.cycle.push(kernels::cycle());
        let steps = self.rings.iter_mut().map(|ring| {
            // What a cache can hold is there before it is timed: by a walk where that is short, else front to back.
            let lines = ring.buffer.bytes() as u64 / 64;
            if lines > 1 << 16 {
                kernels::read_through(&ring.buffer);
                kernels::read_through(&ring.buffer);
                ring.step(0)
            } else {
                ring.step(2 * lines)
            }
        });
        samples.steps.push(steps.collect());
        samples.memory.push(self.memory.step(0));
        samples.walk.push(self.small_pages.step(PAGES as u64) - self.huge_pages.step(PAGES as u64));
        let buffer = &self.small_pages.buffer;
        let mut page = 0;
        samples.gather_walk.push(kernels::gather(buffer, 4 * STEPS, || {
            page = next_place(page, PAGES);
            line_of_page(page)
        }));
        if let Some(second) = sizes.levels.get(1) {
            let gather = || kernels::gather(&self.rings[1].buffer, 4 * STEPS, kernels::any_line(*second));
            gather();
            samples.gather_l2.push(gather());
        }
        let buffer = &self.memory.buffer;
        let anywhere = kernels::any_line(sizes.memory);
        samples.gather_memory.push(kernels::gather(buffer, 4 * STEPS, anywhere));
        // SAFETY: nothing writes to a ring.
        let (mut one, mut other) =
            unsafe { (Chase::new(buffer, self.memory.at), Chase::new(buffer, self.other)) };
        samples.window.push(window(&GAPS.map(|gap| kernels::pair(gap, &mut one, &mut other, STEPS / 8))));
        (self.memory.at, self.other) = (one.at(), other.at());
        samples.read_line.push(self.reads.read_line(buffer));
        samples.write_line.push(self.writes.write_line(&self.written));
        samples.touches.extend(Touches::measure());
        samples.increment.push(kernels::increment());
        samples.atomic.push(sharing::addition());
        samples.fence.push(sharing::fenced_store());
    }
}

/// The number of instructions at which two misses no longer overlap: where the time of a pair goes through one and a half
/// times its least, between the gaps that were tried. The largest gap if it never does.
fn window(pairs: &[f64; GAPS.len()]) -> f64 {
    let least = pairs.iter().copied().fold(f64::INFINITY, f64::min);
    let limit = 1.5 * least;
    let gap = |at: usize| f64::from(GAPS[at]);
    let Some(at) = (0..pairs.len()).find(|at| pairs[*at..].iter().all(|time| *time >= limit)) else {
        return gap(GAPS.len() - 1);
    };
    if at == 0 {
        return gap(0);
    }
    let (before, behind) = (pairs[at - 1], pairs[at]);
    gap(at - 1) + (gap(at) - gap(at - 1)) * ((limit - before) / (behind - before)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use memlode_machine::Machine;

    use super::*;

    #[test]
    fn the_window_is_where_pairs_stop_overlapping() {
        let times = GAPS.map(|gap| if gap <= 224 { 100.0 } else { 200.0 });
        assert_eq!(window(&times), 240.0);
        // One disturbed gap in between is not the end.
        let mut disturbed = times;
        disturbed[3] = 190.0;
        assert_eq!(window(&disturbed), 240.0);
        assert_eq!(window(&GAPS.map(|_| 100.0)), 1024.0);
    }

    #[test]
    fn this_machine_keeps_the_order_that_all_have() {
        let sizes = Sizes::of(&Machine::named("generic").unwrap(), 1 << 30);
        let mut core = Core::new(&sizes).unwrap();
        let mut samples = Samples::default();
        core.round(&sizes, &mut samples);
        let steps = &samples.steps[0];
        assert!(steps[0] < steps[1] && steps[1] < samples.memory[0], "{steps:?} {:?}", samples.memory);
        assert!(samples.gather_memory[0] < samples.memory[0]);
    }
}
