//! Loops by line: which accesses of a loop a cache has to see.
//!
//! Accesses that run side by side through memory are a *bundle*. A bundle enters a line, stays for
//! some iterations, and leaves it for good:
//!
//! ```text
//!   iteration     0     1     2     3        of the accesses to a line only these are shown to the cache:
//!   line  7       E  ·  ·  ·  L                E   the first: it may miss
//!   line  8             E  ·  ·  ·  L          L   the last: it decides how recent the line is from then on
//! ```
//! With exact LRU nothing in between changes anything, as long as the cache cannot drop the line
//! meanwhile: every access between E and L hits. That is certain while no set gets more lines than
//! it has ways. So a line that stays for long is shown again every *r* iterations, and *r* is
//! chosen such that within *r* + 1 iterations no set gets more lines than that.
//!
//! Why that is exact: the cache holds the same lines either way, as long as each eviction takes the
//! same line. It never takes a line that a bundle is in: that line was shown within the last *r* +
//! 1 iterations, and in these at most ways − 1 others of its set were used. All other lines were
//! left earlier or are not used in the loop. The least recent of them goes. Their order is the same
//! either way, because the last access to each was shown, or makes no difference to the order
//! (`schedule/leaves.rs`).
//!
//! The place of a bundle in a line repeats itself: after [`Schedule::period`] iterations each
//! bundle has gone a whole number of lines. So which accesses are shown is computed once for a
//! period, and for all executions of the loop that begin alike.

mod leaves;

use crate::loops::{MOST_STRIDES, Strided};
use crate::space::Space;
use crate::spec::LevelSpec;
use leaves::Leaves;

/// The first level of a cache hierarchy, of exact LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a line, a power of two.
    pub line_bytes: u64,
    /// Number of sets; a line's set is its number modulo this.
    pub sets: u64,
    /// Lines of a set.
    pub ways: u32,
}

impl Shape {
    /// The shape of a level.
    pub fn of(level: &LevelSpec) -> Shape {
        Shape { line_bytes: level.line_bytes.into(), sets: level.sets(), ways: level.ways }
    }
}

/// Most bundles of a loop.
const MOST_BUNDLES: usize = 16;
/// User addresses end below this number, so arithmetic on them does not overflow.
const ADDRESSES: i64 = Space::BYTES as i64;
/// Steps are shorter: a period takes as many as a line has bytes at most, and so leads over no more
/// lines than one has bytes.
const STEPS: u64 = 1 << 31;

/// Which accesses of a loop are shown to a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    bundles: Vec<Bundle>,
    /// True if the schedule holds only while bundles that go the same way keep their distances, up
    /// to a multiple of all sets.
    pub(super) is_pinned: bool,
    line_bytes: i64,
    /// True if each of the steps is.
    is_of_single_lines: bool,
    period: usize,
    /// Steps of the iterations that are shown: the first iteration of a loop, its end, one
    /// iteration in the middle for each of the period, the last for each of the period.
    steps: Vec<Step>,
    ends: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bundle {
    /// The stride with the lowest address.
    leader: u16,
    /// Bytes that it goes in a period, a whole number of lines.
    advance: i64,
}

/// The parts of an access that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Bytes from the line in which the bundle's leader was when the period began.
    bytes: i64,
    stride: u16,
    /// The iteration of the period.
    iteration: u16,
    bundle: u8,
    asks: bool,
    lines: u8,
}

/// Steps that follow each other, in some periods.
struct Run<'s> {
    steps: &'s [Step],
    /// The first period, and how many.
    period: u64,
    times: u64,
}

/// The accesses that are shown in some periods, in each the same, but that bundles have gone on.
pub struct Periods<'s> {
    run: Run<'s>,
    schedule: &'s Schedule,
    /// The line of each bundle in which its leader is as the first of the periods begins.
    lines: &'s [u64; MOST_BUNDLES],
}

/// An access, or the part of it that the cache is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownAccess {
    /// The first address of the line, or of the first of two.
    pub address: u64,
    /// Number of lines, 1 or 2.
    pub lines: u8,
    /// Which of the loop's accesses.
    pub stride: usize,
    /// In which iteration.
    pub iteration: u64,
}

/// A line in one iteration.
struct Residency {
    bundle: u8,
    line: i64,
    first: u16,
    last: u16,
    enters: bool,
    leaves: bool,
}

/// Which iteration of a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iteration {
    First,
    Middle { shows_all: bool },
    Last,
}

impl Schedule {
    /// Computes the schedule of loops that begin like this one, which must be
    /// [possible](Schedule::is_possible) and have at least three iterations. `None` if lines may be
    /// dropped while they are in use.
    ///
    /// With `may_pin` the schedule may hold only for bundles at the distances of these, if that
    /// shows fewer accesses.
    pub fn new(strides: &[Strided], shape: Shape, may_pin: bool) -> Option<Schedule> {
        let period = Schedule::period(strides, shape);
        let numbers = bundles(strides, shape);
        let count = numbers.iter().max().map_or(0, |&last| usize::from(last) + 1);
        if count > MOST_BUNDLES {
            return None;
        }
        let of = |bundle: usize| -> Vec<usize> {
            let mut members: Vec<usize> =
                (0..strides.len()).filter(|&stride| usize::from(numbers[stride]) == bundle).collect();
            members.sort_by_key(|&stride| (strides[stride].address, stride));
            members
        };
        let members: Vec<Vec<usize>> = (0..count).map(of).collect();
        let walks: Vec<Walk<'_>> = members.iter().map(|members| Walk::new(strides, members, shape)).collect();
        let ways = u64::from(shape.ways);
        let fits = |again: &usize| {
            walks.iter().map(|walk| walk.most_of_a_set(again + 1, period)).sum::<u64>() <= ways
        };
        let fits_here = |again: &usize| {
            let groups = walks.chunk_by(|a, b| a.step == b.step);
            groups.map(|group| most_together(group, again + 1, period)).fold(0, u64::saturating_add) <= ways
        };
        // Powers of two: the period is one.
        let halves = || std::iter::successors(Some(period), |again| Some(again / 2).filter(|half| *half > 0));
        let anywhere = halves().find(fits);
        let again = anywhere.or_else(|| halves().find(fits_here))?;
        let bundles = walks
            .iter()
            .map(|walk| Bundle { leader: walk.members[0] as u16, advance: period as i64 * walk.step });
        let bundles = bundles.collect();
        let mut is_pinned = anywhere.is_none();
        let mut leaves = Leaves::new(&walks, period, again, is_pinned);
        let hidden = |leaves: &Option<Leaves>| leaves.as_ref().map_or(0, Leaves::hidden);
        if may_pin && !is_pinned {
            let here = Leaves::new(&walks, period, again, true);
            if hidden(&here) > hidden(&leaves) {
                (leaves, is_pinned) = (here, true);
            }
        }
        let line_bytes = shape.line_bytes as i64;
        let (steps, ends) = (Vec::new(), Vec::new());
        let is_of_single_lines = true;
        let mut schedule =
            Schedule { bundles, is_pinned, line_bytes, is_of_single_lines, period, steps, ends };
        let residencies: Vec<Vec<Residency>> = (0..period as i64)
            .map(|iteration| {
                (0u8..).zip(&walks).flat_map(|(bundle, walk)| walk.residencies(bundle, iteration)).collect()
            })
            .collect();
        schedule.show(0, &residencies[0], Iteration::First, None);
        if let Some(leaves) = &leaves {
            schedule.steps.extend(leaves.of_beginning(&walks, line_bytes));
        }
        schedule.ends.push(schedule.steps.len() as u32);
        let is_long = leaves.as_ref().is_none_or(|leaves| leaves.is_long);
        for (iteration, residencies) in residencies.iter().enumerate() {
            let shows_all = is_long && iteration % again == 0;
            schedule.show(iteration, residencies, Iteration::Middle { shows_all }, leaves.as_ref());
        }
        for (iteration, residencies) in residencies.iter().enumerate() {
            schedule.show(iteration, residencies, Iteration::Last, None);
        }
        Some(schedule)
    }

    /// Returns whether a schedule is possible for a loop of this many iterations: no access is
    /// larger than a line, no step is very long, and no access leaves the address space.
    pub fn is_possible(strides: &[Strided], iterations: u64, shape: Shape) -> bool {
        let inside = |stride: &Strided| {
            let end = i64::try_from(iterations).ok().and_then(|iterations| {
                (stride.step as i64).checked_mul(iterations)?.checked_add(i64::try_from(stride.address).ok()?)
            });
            (1..=shape.line_bytes).contains(&stride.bytes.into())
                && (stride.step as i64).unsigned_abs() < STEPS
                && stride.address < ADDRESSES as u64
                && end.is_some_and(|end| (0..ADDRESSES).contains(&end))
        };
        !strides.is_empty() && strides.len() <= MOST_STRIDES && strides.iter().all(inside)
    }

    /// The number of iterations, a power of two, after which each access is at the same place in
    /// its line again.
    pub fn period(strides: &[Strided], shape: Shape) -> usize {
        let of =
            |stride: &Strided| shape.line_bytes >> stride.step.trailing_zeros().min(shape.line_bytes.ilog2());
        strides.iter().map(of).max().unwrap_or(1) as usize
    }

    /// Returns whether only accesses of the first iteration can be the first to both of two lines.
    pub fn enters_one_by_one(strides: &[Strided], shape: Shape) -> bool {
        strides.iter().all(|stride| {
            stride.is_aligned(shape.line_bytes) || (stride.step as i64).unsigned_abs() <= shape.line_bytes
        })
    }

    /// Passes the shown accesses of a loop of at least two iterations to `each`, in their order;
    /// those of the first iteration only if `begins`. `line_of` returns the beginning of the line
    /// in which a stride begins.
    #[inline(always)]
    pub fn walk(
        &self,
        begins: bool,
        iterations: u64,
        line_of: impl Fn(usize) -> u64,
        mut each: impl FnMut(Periods<'_>),
    ) {
        let mut lines = [0u64; MOST_BUNDLES];
        let mut at = 0;
        for (line, bundle) in lines.iter_mut().zip(&self.bundles) {
            *line = line_of(usize::from(bundle.leader));
        }
        for run in self.runs(begins, iterations) {
            if run.times == 0 || run.steps.is_empty() {
                continue;
            }
            let further = (run.period - at) as i64;
            for (line, bundle) in lines.iter_mut().zip(&self.bundles) {
                *line = line.wrapping_add_signed(further * bundle.advance);
            }
            at = run.period;
            each(Periods { run, schedule: self, lines: &lines });
        }
    }

    /// Splits the iterations: the first and its end, the rest of its period, all whole periods
    /// after it, the remainder, the last one.
    #[inline(always)]
    fn runs(&self, begins: bool, iterations: u64) -> [Run<'_>; 6] {
        let length = self.period as u64;
        let (last, of_last) = ((iterations - 1) / length, ((iterations - 1) % length) as usize);
        let of_first = length.min(iterations - 1) as usize;
        let middle = |from: usize, to: usize| self.steps(2 + from, 2 + to);
        let end = |of: usize| self.steps(2 + self.period + of, 3 + self.period + of);
        let of_one = |steps, period, is_there: bool| Run { steps, period, times: u64::from(is_there) };
        [
            of_one(self.steps(0, 1), 0, begins),
            of_one(self.steps(1, 2), 0, true),
            of_one(middle(1, of_first), 0, true),
            Run { steps: middle(0, self.period), period: 1, times: last.saturating_sub(1) },
            of_one(middle(0, of_last), last, last > 0),
            of_one(end(of_last), last, true),
        ]
    }

    /// Returns the steps that are shown in a range of iterations.
    #[inline(always)]
    fn steps(&self, from: usize, to: usize) -> &[Step] {
        let begin =
            |iteration: usize| iteration.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.steps[begin(from)..begin(to)]
    }

    /// Returns whether each access that is shown is so for one line.
    pub fn is_of_single_lines(&self) -> bool {
        self.is_of_single_lines
    }

    /// Adds the steps that are shown in one iteration of the period.
    fn show(
        &mut self,
        number: usize,
        residencies: &[Residency],
        iteration: Iteration,
        leaves: Option<&Leaves>,
    ) {
        let mut steps = Vec::new();
        for residency in residencies {
            let asks = residency.enters || iteration == Iteration::First;
            let at_first = asks || matches!(iteration, Iteration::Middle { shows_all: true });
            let leaves = residency.leaves && leaves.is_none_or(|leaves| leaves.shows(residency, number));
            let at_last = leaves || iteration == Iteration::Last;
            let step = Step {
                bytes: residency.line * self.line_bytes,
                stride: residency.first,
                iteration: number as u16,
                bundle: residency.bundle,
                asks,
                lines: 1,
            };
            if at_first {
                steps.push(step);
            }
            if at_last && !(at_first && residency.first == residency.last) {
                steps.push(Step { stride: residency.last, asks: false, ..step });
            }
        }
        // An access touches its lines in ascending order.
        steps.sort_by_key(|step| (step.stride, step.bytes));
        for step in steps {
            let begin = self.ends.last().map_or(0, |&end| end as usize);
            match self.steps[begin..].last_mut() {
                Some(before) if before.bundle == step.bundle => {
                    let is_next = before.bytes + i64::from(before.lines) * self.line_bytes == step.bytes;
                    if before.bytes == step.bytes && !step.asks {
                        continue;
                    }
                    if is_next && before.stride == step.stride && before.asks && step.asks {
                        before.lines += 1;
                        self.is_of_single_lines = false;
                        continue;
                    }
                    self.steps.push(step);
                }
                _ => self.steps.push(step),
            }
        }
        self.ends.push(self.steps.len() as u32);
    }
}

impl Periods<'_> {
    /// Returns how many.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.run.times
    }

    /// Shows the first one to `each`, and how many bytes every access is further on in the next
    /// one, and the next.
    #[inline(always)]
    pub fn first(&self, mut each: impl FnMut(ShownAccess, i64)) {
        let begin = self.run.period * self.schedule.period as u64;
        for step in self.run.steps {
            let bundle = usize::from(step.bundle) % MOST_BUNDLES;
            let address = self.lines[bundle].wrapping_add_signed(step.bytes);
            let iteration = begin + u64::from(step.iteration);
            let touch = ShownAccess { address, lines: step.lines, stride: step.stride.into(), iteration };
            each(touch, self.schedule.bundles[bundle].advance);
        }
    }

    /// Shows them to `each`.
    #[inline(always)]
    pub fn all(&self, mut each: impl FnMut(ShownAccess)) {
        for period in 0..self.run.times {
            self.first(|touch, advance| {
                let address = touch.address.wrapping_add_signed(period as i64 * advance);
                let iteration = touch.iteration + period * self.schedule.period as u64;
                each(ShownAccess { address, iteration, ..touch });
            });
        }
    }
}

/// The bundle of each stride. Strides of one bundle go the same way, have no whole line between
/// neighbours, and all read or all write, since a written line must be seen to be written.
pub(super) fn bundles(strides: &[Strided], shape: Shape) -> Vec<u8> {
    let mut order: Vec<usize> = (0..strides.len()).collect();
    let way = |stride: &Strided| (stride.step, stride.is_write);
    order.sort_by_key(|&stride| (way(&strides[stride]), strides[stride].address));
    let mut of = vec![0u8; strides.len()];
    let (mut bundle, mut end) = (0u8, 0u64);
    for (number, &stride) in order.iter().enumerate() {
        let access = &strides[stride];
        let before = number.checked_sub(1).map(|before| &strides[order[before]]);
        let goes_on = before.is_some_and(|before| {
            way(before) == way(&strides[stride]) && access.address < end.saturating_add(shape.line_bytes)
        });
        match (before, goes_on) {
            (None, _) => end = 0,
            (_, true) => {}
            (_, false) => (bundle, end) = (bundle.saturating_add(1), 0),
        }
        of[stride] = bundle;
        end = end.max(access.address + u64::from(access.bytes));
    }
    of
}

/// A bundle on its way; lines are counted from that of its leader.
struct Walk<'s> {
    strides: &'s [Strided],
    /// Sorted by address.
    members: &'s [usize],
    step: i64,
    /// From address to line.
    shift: u32,
    /// The beginning of the line in which the leader begins.
    origin: i64,
    /// Bytes from the first to behind the last access of an iteration.
    extent: u64,
    sets: u64,
}

impl Walk<'_> {
    fn new<'s>(strides: &'s [Strided], members: &'s [usize], shape: Shape) -> Walk<'s> {
        let leader = &strides[members[0]];
        let ends = members.iter().map(|&member| {
            let access = &strides[member];
            access.address + u64::from(access.bytes)
        });
        Walk {
            strides,
            members,
            step: leader.step as i64,
            shift: shape.line_bytes.ilog2(),
            origin: (leader.address & !(shape.line_bytes - 1)) as i64,
            extent: ends.max().unwrap_or(0) - leader.address,
            sets: shape.sets,
        }
    }

    /// First and last line of an access in an iteration, which may be before the first one.
    fn lines(&self, stride: usize, iteration: i64) -> (i64, i64) {
        let access = &self.strides[stride];
        let first = access.address as i64 - self.origin + iteration * self.step;
        (first >> self.shift, (first + i64::from(access.bytes) - 1) >> self.shift)
    }

    fn touches(&self, line: i64, iteration: i64) -> impl Iterator<Item = usize> {
        let touch = move |stride: &usize| {
            let (first, last) = self.lines(*stride, iteration);
            first <= line && line <= last
        };
        self.members.iter().copied().filter(touch)
    }

    /// First and last line of an iteration.
    fn span(&self, iteration: i64) -> (i64, i64) {
        let lines = self.members.iter().map(|&member| self.lines(member, iteration));
        lines.fold((i64::MAX, i64::MIN), |(from, to), (first, last)| (from.min(first), to.max(last)))
    }

    /// All lines of an iteration.
    fn residencies(&self, bundle: u8, iteration: i64) -> Vec<Residency> {
        let lines = self.members.iter().map(|&member| self.lines(member, iteration));
        let (from, to) =
            lines.fold((i64::MAX, i64::MIN), |(from, to), (first, last)| (from.min(first), to.max(last)));
        let residency = |line: i64| {
            let (first, last) = (self.touches(line, iteration).min()?, self.touches(line, iteration).max()?);
            let enters = self.touches(line, iteration - 1).next().is_none();
            let leaves = self.touches(line, iteration + 1).next().is_none();
            Some(Residency { bundle, line, first: first as u16, last: last as u16, enters, leaves })
        };
        (from..=to).filter_map(residency).collect()
    }

    /// An upper bound of the lines that any set gets within this many iterations.
    fn most_of_a_set(&self, iterations: usize, period: usize) -> u64 {
        let line_bytes = 1u64 << self.shift;
        let pace = self.step.unsigned_abs();
        let touched = |bytes: u64| (bytes + line_bytes - 2) / line_bytes + 1;
        if pace < self.extent + line_bytes {
            // Neighbours, from the first to the last.
            return touched((iterations as u64 - 1) * pace + self.extent).div_ceil(self.sets);
        }
        most_together(std::slice::from_ref(self), iterations, period)
    }
}

/// Most lines that bundles are counted in.
const MOST_COUNTED: usize = 1 << 14;

/// The most lines of these bundles that any set gets within this many iterations, beginning at any
/// iteration of the period. The bundles go the same way and keep their distances.
fn most_together(walks: &[Walk<'_>], iterations: usize, period: usize) -> u64 {
    let per_iteration: u64 = walks.iter().map(|walk| (walk.extent >> walk.shift) + 2).sum();
    if per_iteration.saturating_mul((iterations * period) as u64) > MOST_COUNTED as u64 {
        return u64::MAX;
    }
    let most_from = |begin: usize| {
        let of_iteration = |walk: &Walk<'_>, iteration: usize| {
            let (first, last) = walk.span(iteration as i64);
            let begin = walk.origin >> walk.shift;
            begin + first..=begin + last
        };
        let iterations = begin..begin + iterations;
        let mut lines: Vec<i64> = iterations
            .flat_map(|iteration| walks.iter().flat_map(move |walk| of_iteration(walk, iteration)))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        let mut sets: Vec<i64> = lines.iter().map(|line| line.rem_euclid(walks[0].sets as i64)).collect();
        sets.sort_unstable();
        sets.chunk_by(|a, b| a == b).map(|same| same.len() as u64).max().unwrap_or(0)
    };
    (0..period).map(most_from).max().unwrap_or(0)
}
