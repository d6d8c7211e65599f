//! Lines that are fetched ahead: along the step of a site, and ahead of a walk through a page.

/// Steps of one size in a row that make a stream of a site.
const STEPS: u8 = 2;

/// The longest step that is followed, in bytes.
const LONGEST_STEP: u64 = 2048;

/// Pages in which walks are followed, by the low bits of their numbers.
const PAGES: usize = 64;

/// Lines from one access of a walk to the next, at most, and accesses in one direction that make a
/// walk.
const NEAR: u64 = 4;
const ITERATIONS: u8 = 2;

/// The steps of a site.
#[derive(Clone, Copy, Default)]
pub(super) struct SiteStep {
    last: u64,
    step: i64,
    /// Steps of this size in a row.
    run: u8,
    /// Distance up to which it was fetched ahead, in bytes of the step's direction.
    ahead: u64,
}

/// A walk through a page.
#[derive(Clone, Copy)]
struct Walk {
    page: u64,
    last: u64,
    /// Goes down.
    is_down: bool,
    run: u8,
    /// Distance up to which it was fetched ahead, in lines.
    ahead: u64,
}

/// Walks through pages.
pub(super) struct Walks {
    walks: Vec<Walk>,
    line_shift: u32,
    page_shift: u32,
}

/// Lines to be fetched, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// First byte of the next one, and the step to the one behind it.
    pub next: u64,
    pub step: i64,
    pub count: u64,
}

impl SiteStep {
    /// The site goes to an address.
    #[inline]
    pub fn goes(&mut self, address: u64) {
        let step = address.wrapping_sub(self.last) as i64;
        self.last = address;
        if step == 0 {
            return;
        }
        if step == self.step {
            self.run = self.run.saturating_add(1).min(STEPS);
            self.ahead = self.ahead.saturating_sub(step.unsigned_abs());
        } else {
            *self = SiteStep { last: address, step, run: 0, ahead: 0 };
        }
    }

    /// Returns whether it steps regularly, by no more than the largest step that is followed.
    #[inline]
    pub fn is_stream(&self) -> bool {
        self.run >= STEPS && self.step.unsigned_abs() <= LONGEST_STEP
    }

    /// Returns the lines to fetch so that `lines` lines are on their way. Steps of more than a line
    /// are not followed out of a page.
    pub fn ahead(&mut self, lines: u64, line_bytes: u64, page_shift: u32) -> Ahead {
        // Steps within a line go from line to line.
        let is_dense = self.step.unsigned_abs() <= line_bytes;
        let stride = if is_dense { line_bytes } else { self.step.unsigned_abs() };
        let step = if self.step < 0 { -(stride as i64) } else { stride as i64 };
        let done = self.ahead.div_ceil(stride).min(lines);
        let next = self.last.wrapping_add((step * (done as i64 + 1)) as u64);
        let mut count = lines - done;
        if !is_dense {
            let in_page = |steps: u64| {
                let address = self.last.wrapping_add((step * steps as i64) as u64);
                address >> page_shift == self.last >> page_shift
            };
            count = (done + 1..=lines).take_while(|&steps| in_page(steps)).count() as u64;
        }
        self.ahead = (done + count) * stride;
        Ahead { next, step, count }
    }
}

impl Walks {
    /// Without walks.
    pub fn new(line_shift: u32, page_shift: u32) -> Walks {
        let none = Walk { page: u64::MAX, last: 0, is_down: false, run: 0, ahead: 0 };
        Walks { walks: vec![none; PAGES], line_shift, page_shift }
    }

    /// An access that the first level did not serve, or that took a line fetched ahead. Returns the
    /// lines to fetch so that at most `lines` lines are on their way. A walk is followed to the end
    /// of its page. It fetches as many lines as it has already gone through, so that short walks
    /// cost little.
    pub fn goes(&mut self, address: u64, lines: u64) -> Option<Ahead> {
        let (line, page) = (address >> self.line_shift, address >> self.page_shift);
        let line_bytes = 1i64 << self.line_shift;
        let walk = &mut self.walks[page as usize % PAGES];
        if walk.page != page {
            *walk = Walk { page, last: line, is_down: false, run: 0, ahead: 0 };
            return None;
        }
        let (is_down, distance) = (line < walk.last, line.abs_diff(walk.last));
        if distance == 0 {
            return None;
        }
        walk.last = line;
        if is_down != walk.is_down || distance > NEAR {
            *walk = Walk { is_down, run: 1, ahead: 0, ..*walk };
            return None;
        }
        walk.run = walk.run.saturating_add(1);
        walk.ahead = walk.ahead.saturating_sub(distance);
        if walk.run < ITERATIONS {
            return None;
        }
        let per_page = 1u64 << (self.page_shift - self.line_shift);
        let left = if is_down { line % per_page } else { per_page - 1 - line % per_page };
        let wanted = lines.min(walk.run.into()).min(left);
        let (done, step) = (walk.ahead, if is_down { -line_bytes } else { line_bytes });
        walk.ahead = done.max(wanted);
        let next = address.wrapping_add((step * (done as i64 + 1)) as u64);
        (wanted > done).then(|| Ahead { next, step, count: wanted - done })
    }
}
