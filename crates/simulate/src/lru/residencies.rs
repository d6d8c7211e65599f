//! Residencies of some lines in the first level: the bytes of a line that are touched between its
//! fetch and the next one.
//!
//! Following every line would take too much memory, and only the end of the run shows which lines
//! matter. So lines are chosen by a hash of their number, which is independent of the layout of a
//! line. Whenever too many residencies are kept, half of the lines are dropped. The remaining lines
//! were followed from the beginning, all their residencies are there, and which lines they are does
//! not depend on how the work was split.
//!
//! A line that is followed has [`MARK`] in its entry in the first level. The fast lookup of the
//! most recent line of a set does not find it there, and calls [`Residencies::touch`] or
//! [`Residencies::fetch`]; other lines are found as fast as without.

use rustc_hash::FxHashMap;

use crate::tag::Tag;

/// Set in the line number of an entry that is followed. No line number has it, as followed lines
/// have at least 8 bytes; computing an entry's address shifts it out.
pub(crate) const MARK: u64 = 1 << 62;

/// The most residencies that are kept, for all shards of a trace together. An access to a followed
/// line takes ten times as long as another; for so few lines that is negligible.
const MOST: usize = 1 << 12;

/// Hashes have 32 bits.
const HASHES: u64 = 1 << 32;

/// Accesses to a line in one residency after which it is no longer examined: a line that is hit
/// this often has been used completely by then.
const ENOUGH: u32 = 128;

/// The residency of a line in a core's first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// The line's first address.
    pub line: u64,
    /// The core that fetched it.
    pub core: u32,
    /// Number of levels that did not have it, at least 1.
    pub depth: u8,
    /// A bit for each 64th part of the line, or for each byte of a shorter line, that was touched
    /// before the line was fetched again.
    pub touched: u64,
    /// The caller's label for the object there
    /// ([`Hierarchy::label_residencies`](crate::Hierarchy::label_residencies)).
    pub label: u32,
}

/// The bits of a line that accesses touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchedBits {
    /// All of them: each stands for a 64th part of the line, or for a byte of a line that has
    /// fewer.
    pub all: u64,
    /// Bits of the access that fetches the line, if it is known and is to one line alone.
    pub asked: u64,
}

impl TouchedBits {
    /// The touched bits of one access.
    pub fn of_one(bits: u64) -> TouchedBits {
        TouchedBits { all: bits, asked: bits }
    }
}

/// The fetch of a line that is to be labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The line's first address.
    pub line: u64,
    /// The bits that were touched.
    pub touched: TouchedBits,
    /// The tag of the access that fetched the line, if it was to one line.
    pub tag: Option<Tag>,
}

/// The hash by which lines are chosen: it chooses equally many lines in any range, also if lines
/// come at a constant step (Knuth, The Art of Computer Programming 3, 6.4: Fibonacci hashing).
#[inline(always)]
fn hash(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The bits of a line ([`Residency::touched`]) in a range of at least one byte from an address on.
#[inline]
pub fn touched_bits(line: u64, line_bytes: u32, address: u64, bytes: u64) -> u64 {
    let unit = u64::from(line_bytes).div_ceil(64);
    let first = address.max(line);
    let last = address.saturating_add(bytes.max(1) - 1).min(line + u64::from(line_bytes - 1));
    if first > last {
        return 0;
    }
    let (from, to) = ((first - line) / unit, (last - line) / unit);
    (u64::MAX >> (63 - (to - from))) << from
}

/// The residencies so far.
#[derive(Clone, Default)]
pub(crate) struct Residencies {
    /// Lines are followed if their hash is below this number.
    below: u64,
    kept: Vec<Kept>,
    /// The number of residencies that are labelled.
    labelled: usize,
    /// The last one of each line in each cache.
    last: FxHashMap<(u32, u64), usize>,
    /// The number of residencies that began, whether they are kept or not.
    begun: u32,
    /// For each of those, the number of levels that did not have the line, as far as it is known.
    depths: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Kept {
    number: u32,
    cache: u32,
    core: u32,
    line: u64,
    tag: Option<Tag>,
    touched: TouchedBits,
    /// Accesses that were looked at.
    accesses: u32,
    label: u32,
}

/// The entry that a line has in the first level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// With the mark.
    Marked,
    /// Without: it was hit often enough.
    Plain,
}

impl Residencies {
    /// Begins to follow lines, one of `one_of`.
    pub fn begin(&mut self, one_of: u64) {
        self.below = HASHES / one_of.max(1);
    }

    /// Returns whether a line is followed.
    #[inline(always)]
    pub fn follows(&self, line: u64) -> bool {
        hash(line) < self.below
    }

    /// Returns whether any is.
    #[inline(always)]
    pub fn follow_any(&self) -> bool {
        self.below > 0
    }

    /// Returns the last residency of a line in a cache.
    pub fn last(&self, cache: u32, line: u64) -> Option<usize> {
        self.last.get(&(cache, line)).copied()
    }

    /// Returns the entry of a line with this last residency.
    pub fn entry(&self, last: Option<usize>) -> Entry {
        match last {
            Some(at) if self.kept[at].accesses >= ENOUGH => Entry::Plain,
            _ => Entry::Marked,
        }
    }

    /// Adds an access to a line's last residency; returns the line's new entry.
    pub fn touch(&mut self, last: usize, touched: u64) -> Entry {
        let kept = &mut self.kept[last];
        kept.touched.all |= touched;
        kept.accesses = kept.accesses.saturating_add(1);
        self.entry(Some(last))
    }

    /// Adds bits that later accesses touch, all of which hit.
    pub fn touch_more(&mut self, cache: u32, line: u64, touched: u64) {
        if let Some(at) = self.last(cache, line) {
            self.kept[at].touched.all |= touched;
        }
    }

    /// A line is fetched by an access. Returns whether lines were dropped: none of those may keep
    /// its mark.
    pub fn fetch(
        &mut self,
        (cache, core): (u32, u32),
        line: u64,
        tag: Option<Tag>,
        touched: TouchedBits,
    ) -> bool {
        self.last.insert((cache, line), self.kept.len());
        self.kept.push(Kept { number: self.begun, cache, core, line, tag, touched, accesses: 1, label: 0 });
        self.begun += 1;
        let is_full = self.kept.len() > MOST && self.below > 1;
        if is_full {
            self.give_up_half();
        }
        is_full
    }

    #[cold]
    fn give_up_half(&mut self) {
        while self.kept.len() > MOST && self.below > 1 {
            self.below /= 2;
            let below = self.below;
            let stays = |kept: &Kept| hash(kept.line) < below;
            self.labelled = self.kept[..self.labelled].iter().filter(|kept| stays(kept)).count();
            self.kept.retain(stays);
        }
        let places = self.kept.iter().enumerate().map(|(at, kept)| ((kept.cache, kept.line), at));
        self.last = places.collect();
    }

    /// Records the depth of the next fetch, in the order of fetches.
    pub fn answer(&mut self, depth: u8) {
        self.depths.push(depth);
    }

    /// Takes over the depths that another one has.
    pub fn take_served_of(&mut self, other: &Residencies) {
        self.depths.extend_from_slice(&other.depths);
    }

    /// Labels the residencies that have no label yet.
    #[inline]
    pub fn label(&mut self, shift: u32, mut label: impl FnMut(Fetched) -> u32) {
        if self.labelled < self.kept.len() {
            for kept in &mut self.kept[self.labelled..] {
                let &mut Kept { line, touched, tag, .. } = kept;
                kept.label = label(Fetched { line: line << shift, touched, tag });
            }
            self.labelled = self.kept.len();
        }
    }

    /// Returns the residencies whose depths are known.
    pub fn all(&self, shift: u32) -> Followed {
        let residency = |kept: &Kept| {
            let &Kept { number, core, line, touched, label, .. } = kept;
            let depth = *self.depths.get(number as usize)?;
            Some(Residency { line: line << shift, core, depth, touched: touched.all, label })
        };
        Followed { residencies: self.kept.iter().filter_map(residency).collect(), below: self.below, shift }
    }
}

/// Residencies of the lines that were followed to the end; those of each line are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// All of them.
    pub residencies: Vec<Residency>,
    /// Hashes of their lines are below it.
    below: u64,
    /// From address to line.
    shift: u32,
}

impl Followed {
    /// Adds those of another shard of the same caches. Then drops lines until the result is what
    /// one shard alone would have followed.
    pub fn add(&mut self, other: Followed) {
        self.residencies.extend(other.residencies);
        self.below = self.below.min(other.below);
        loop {
            let Followed { residencies, below, shift } = self;
            residencies.retain(|residency| hash(residency.line >> *shift) < *below);
            if residencies.len() <= MOST || *below <= 1 {
                return;
            }
            *below /= 2;
        }
    }
}
