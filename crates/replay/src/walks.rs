//! Walks of sites through memory, as seen in some chunks.
//!
//! Prefetchers follow steps to lines nearby, whichever site makes them. So for each site, two
//! numbers are counted: how often it goes to another line near one of its last lines, and how often
//! to a line far from all of them.

use memlode_trace::event::{Access, Batch, Stride};
use memlode_trace::sites::SiteId;

/// Bytes of a line: where the machine has others, shares are as good.
const LINE_SHIFT: u32 = 6;

/// Lines up to so far from each other are near: 512 bytes.
const NEAR_LINES: u64 = 8;

/// Lines that are remembered of a site.
const REMEMBERED: usize = 4;

/// Chunks that are examined: some at the beginning of every stream, and one in a number of chunks
/// later.
const FIRST: u32 = 8;
const ONE_OF: u32 = 8;

/// Lines gone to in a chunk, by a site, from which on its further accesses are looked at now and
/// then: a share of 1,024 has a standard error of 1.6% at most.
const ENOUGH: u64 = 1024;

/// Further accesses, of which the last ones are examined, as a walk may change later: a list whose
/// nodes were allocated one by one ends in the holes that were free before. Some accesses before
/// them find the site's position.
const PERIOD: u32 = 2048;
const LOOKED_AT: u32 = 128;
const WARM_UP: u32 = 16;

/// Counts of a site's accesses that went to another line than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// To a line within 512 bytes of one of the four that it went to last.
    pub near: u64,
    /// To any other.
    pub far: u64,
}

impl Walk {
    /// The part of the lines gone to that were near; none if there were none.
    pub fn near_share(&self) -> Option<f64> {
        let all = self.near + self.far;
        (all > 0).then(|| self.near as f64 / all as f64)
    }

    /// Adds another walk's counts.
    pub fn add(&mut self, other: Walk) {
        self.near += other.near;
        self.far += other.far;
    }
}

/// Looks at chunks of one stream, or at whole chunks of several.
#[derive(Default)]
pub struct Walks {
    /// Indexed by site.
    sites: Vec<Lines>,
    /// Number of the current chunk, from 1.
    chunk: u32,
    /// Sites of that chunk.
    met: Vec<SiteId>,
}

/// The lines that a site went to last, in a ring.
#[derive(Clone, Default)]
struct Lines {
    chunk: u32,
    latest: u32,
    lines: [u64; REMEMBERED],
    /// Lines gone to by accesses one by one, before there were enough.
    walk: Walk,
    /// The lines of some of the further accesses.
    later: Walk,
    /// Number of accesses before there were enough.
    before: u32,
    /// Number of the further accesses, and of those that were examined.
    further: u32,
    looked: u32,
    /// Lines gone to by loops.
    repeated: Walk,
}

/// No line has this number.
const NONE: u64 = u64::MAX;

impl Lines {
    /// Goes to a line; returns the counts of this step.
    #[inline]
    fn go(&mut self, line: u64) -> Walk {
        let mut gone = Walk::default();
        if self.lines[self.latest as usize] == line {
            return gone;
        }
        let mut best = None;
        for (place, &known) in (0..).zip(&self.lines) {
            if known.abs_diff(line) <= NEAR_LINES {
                best = Some(place);
                break;
            }
        }
        match best {
            Some(place) => {
                gone.near = u64::from(self.lines[place as usize] != line);
                self.latest = place;
            }
            None => {
                // The very first line was gone to from nowhere.
                let is_first = self.lines.iter().all(|&known| known == NONE);
                gone.far = u64::from(!is_first);
                self.latest = if is_first { 0 } else { (self.latest + 1) % REMEMBERED as u32 };
            }
        }
        self.lines[self.latest as usize] = line;
        gone
    }

    /// Goes to the lines of an access.
    #[inline]
    fn go_through(&mut self, access: &Access) -> Walk {
        // Of a range, the lines behind the first are near each other.
        let (first, lines) =
            (access.address >> LINE_SHIFT, u64::from(access.bytes).saturating_sub(1) >> LINE_SHIFT);
        let mut gone = self.go(first);
        if lines > 0 {
            gone.near += lines;
            self.lines[self.latest as usize] = first.saturating_add(lines);
        }
        gone
    }

    /// One of the accesses after the first ones, which were enough.
    #[inline]
    fn further(&mut self, access: &Access) {
        let place = self.further % PERIOD;
        self.further = self.further.saturating_add(1);
        if place < PERIOD - LOOKED_AT - WARM_UP {
            return;
        }
        if place == PERIOD - LOOKED_AT - WARM_UP {
            self.lines = [NONE; REMEMBERED];
        }
        let gone = self.go_through(access);
        if place >= PERIOD - LOOKED_AT {
            self.later.add(gone);
            self.looked += 1;
        }
    }

    /// The walk of the whole chunk, including the accesses that were not examined: these are taken
    /// to walk like the further ones that were, or like the first ones if there were none.
    fn whole(&self) -> Walk {
        let (seen, looked, all) = match self.looked {
            0 => (self.walk, self.before, u64::from(self.further)),
            looked => (self.later, looked, u64::from(self.further)),
        };
        let scaled = |lines: u64| {
            let scaled = u128::from(lines) * u128::from(all) / u128::from(looked.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let mut whole = Walk { near: scaled(seen.near), far: scaled(seen.far) };
        whole.add(self.walk);
        whole.add(self.repeated);
        whole
    }
}

impl Walks {
    /// Returns the walks of a chunk, if it is one of those that are examined. That depends on its
    /// place in its stream alone.
    pub fn of(&mut self, batch: &Batch) -> Vec<(SiteId, Walk)> {
        if !self.begin(batch.sequence) {
            return Vec::new();
        }
        let mut done = 0;
        for repeated in &batch.loops {
            let (before, strides) = (done..repeated.access as usize, &repeated.strides);
            done = before.end;
            batch.accesses[before].iter().for_each(|access| self.access(access));
            for stride in &batch.strides[strides.start as usize..strides.end as usize] {
                self.stride(stride, repeated.iterations);
            }
        }
        batch.accesses[done..].iter().for_each(|access| self.access(access));
        self.end().collect()
    }

    /// Begins with the chunk of this number in its stream; returns whether it is one of those that
    /// are examined.
    pub fn begin(&mut self, sequence: u32) -> bool {
        let is_looked_at = Walks::looks_at(sequence);
        self.chunk += u32::from(is_looked_at);
        is_looked_at
    }

    /// Returns whether the chunk of this number in its stream is examined.
    pub fn looks_at(sequence: u32) -> bool {
        sequence < FIRST || sequence.is_multiple_of(ONE_OF)
    }

    /// Looks at an access.
    pub fn access(&mut self, access: &Access) {
        let site = self.site(access.site);
        if site.walk.near + site.walk.far >= ENOUGH {
            site.further(access);
            return;
        }
        site.before += 1;
        let gone = site.go_through(access);
        site.walk.add(gone);
    }

    /// Examines all accesses of one instruction of a loop with this number of iterations.
    pub fn stride(&mut self, stride: &Stride, iterations: u64) {
        let site = self.site(stride.access.site);
        let gone = site.go(stride.access.address >> LINE_SHIFT);
        site.walk.add(gone);
        let step = (stride.step as i64).unsigned_abs();
        let further = iterations.saturating_sub(1);
        let lines = (u128::from(step) * u128::from(further)) >> LINE_SHIFT;
        let lines = u64::try_from(lines).unwrap_or(u64::MAX).min(further);
        let (near, far) = if step >> LINE_SHIFT <= NEAR_LINES { (lines, 0) } else { (0, lines) };
        site.repeated.add(Walk { near, far });
        let last = stride.access_in(further).address >> LINE_SHIFT;
        site.lines[site.latest as usize] = last;
    }

    /// Ends the chunk: returns the walks of its sites.
    pub fn end(&mut self) -> impl Iterator<Item = (SiteId, Walk)> + '_ {
        let Walks { sites, met, .. } = self;
        let walked = |site: SiteId| (site, sites[site.0 as usize].whole());
        met.drain(..).map(walked).filter(|(_, walk)| *walk != Walk::default())
    }

    #[inline]
    fn site(&mut self, site: SiteId) -> &mut Lines {
        let place = site.0 as usize;
        if self.sites.len() <= place {
            self.sites.resize(place + 1, Lines::default());
        }
        let lines = &mut self.sites[place];
        if lines.chunk != self.chunk {
            *lines = Lines { chunk: self.chunk, lines: [NONE; REMEMBERED], ..Lines::default() };
            self.met.push(site);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use memlode_trace::event::{Course, Loop};

    use super::*;

    fn walk(addresses: impl IntoIterator<Item = u64>) -> Walk {
        let access = |address| Access { address, bytes: 8, site: SiteId(3) };
        let batch = Batch { accesses: addresses.into_iter().map(access).collect(), ..Batch::default() };
        Walks::default().of(&batch).first().map_or(Walk::default(), |(site, walk)| {
            assert_eq!(*site, SiteId(3));
            *walk
        })
    }

    #[test]
    fn steps_to_lines_nearby_are_told_from_jumps() {
        assert_eq!(walk([64; 100]), Walk::default(), "one line");
        assert_eq!(walk((0..800).map(|i| 4096 + 8 * i)), Walk { near: 99, far: 0 });
        assert_eq!(walk((0..100).map(|i| (1 << 20) + 512 * i)), Walk { near: 99, far: 0 });
        assert_eq!(walk((0..100).map(|i| 4096 * i)), Walk { near: 0, far: 99 }, "a column");
        // Three arrays in turn are three streams, once each was gone to.
        let arrays = (0..300).map(|i| (1 << 20) * (1 + i % 3) + i / 3 * 64);
        assert_eq!(walk(arrays), Walk { near: 297, far: 2 });
        let random = (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
        assert!(walk(random).near_share().is_some_and(|share| share < 0.01));
    }

    #[test]
    fn of_many_lines_some_stand_for_all() {
        // Three of four steps are near.
        let line = |i: u64| (i / 4 * 1000 + i % 4) * 64;
        let Walk { near, far } = walk((0..40_000).map(line));
        assert!(near.abs_diff(30_000) <= 300 && far.abs_diff(10_000) <= 100, "{near} {far}");
    }

    #[test]
    fn a_walk_that_goes_elsewhere_later_is_seen_to() {
        let line = |i: u64| if i < 2_000 { i * 64 } else { (i * 7919 % 65_536) << 12 };
        let Walk { near, far } = walk((0..60_000).map(line));
        assert!(near < 4_000 && far.abs_diff(58_000) <= 2_000, "{near} {far}");
        let Walk { near, far } = walk((0..60_000).rev().map(line));
        assert!(near < 4_000 && far.abs_diff(58_000) <= 2_000, "{near} {far}");
    }

    #[test]
    fn a_loop_that_is_one_record_walks_as_its_accesses_do() {
        for step in [8u64, 64, 200, 512, 640, 4096, 8u64.wrapping_neg()] {
            let access = Access { address: 1 << 30, bytes: 8, site: SiteId(0) };
            let stride = Stride { access, step, is_write: false };
            let written_out: Vec<Access> = (0..100).map(|iteration| stride.access_in(iteration)).collect();
            let repeated =
                Loop { access: 0, mark: 0, iterations: 100, strides: 0..1, course: Course::of(&[stride]) };
            let folded = Batch { loops: vec![repeated], strides: vec![stride], ..Batch::default() };
            let unfolded = Batch { accesses: written_out, ..Batch::default() };
            let [folded, unfolded] = [folded, unfolded].map(|batch| Walks::default().of(&batch)[0].1);
            // Where a step is no multiple of a line's bytes, the last line may be one more.
            assert!(folded.near.abs_diff(unfolded.near) <= 1, "{step}: {folded:?} {unfolded:?}");
            assert!(folded.far.abs_diff(unfolded.far) <= 1, "{step}: {folded:?} {unfolded:?}");
        }
    }

    #[test]
    fn later_chunks_are_looked_at_one_by_eight() {
        let access = |address| Access { address, bytes: 8, site: SiteId(0) };
        let mut walks = Walks::default();
        let mut looked_at = |sequence| {
            let accesses = vec![access(0), access(64)];
            !walks.of(&Batch { sequence, accesses, ..Batch::default() }).is_empty()
        };
        assert!((0..8).all(&mut looked_at));
        assert_eq!((8..64).filter(|&sequence| looked_at(sequence)).count(), 7);
    }
}
