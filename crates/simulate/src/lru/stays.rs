//! Stays of some lines in the first level: what is touched of a line between its fetch and the next one.
//!
//! Every line of a program would be too many to keep, and which of them matter is known in the end only. So lines are chosen by a hash of
//! their number, which has nothing to do with where things lie in a line, and half of them are given up each time that more stays are kept
//! than there is room for. Those that are left were followed from the beginning, all their stays are there, and which they are does not
//! depend on who followed how many others meanwhile.
//!
//! A line that is followed has [`MARK`] in its entry in the first level. What asks for the most recent line of a set does not find it
//! there, and comes to [`Stays::touch`] or [`Stays::fetch`]; other lines are found as fast as without.

use rustc_hash::FxHashMap;

use crate::tag::Tag;

/// Set in the line number of an entry that is followed. No line has it, as lines have at least 8 bytes where they are followed; and what
/// makes an address of an entry shifts it out.
pub(crate) const MARK: u64 = 1 << 62;

/// Stays that are kept at most, of all shards of a trace together. An access that is looked at takes ten times as long as another: so
/// few take no time worth mentioning.
const MOST: usize = 1 << 12;

/// Hashes have 32 bits.
const HASHES: u64 = 1 << 32;

/// Accesses to a line in one stay after which it is left alone: what is used of a line that is hit so often was used by then.
const ENOUGH: u32 = 128;

/// A stay of a line in a core's first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The line's first address.
    pub line: u64,
    /// The core that asked for it.
    pub core: u32,
    /// Levels that did not have it, at least 1.
    pub depth: u8,
    /// A bit for each 64th part of the line, or for each byte of a line that has fewer: touched before it was asked for again.
    pub touched: u64,
    /// The caller's word for what lies there ([`Hierarchy::label_stays`](crate::Hierarchy::label_stays)).
    pub label: u32,
}

/// The bits of a line that accesses touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchedBits {
    /// All of them: each stands for a 64th part of the line, or for a byte of a line that has fewer.
    pub all: u64,
    /// Those of the access that asks for the line, if that is known, and it asks for no other.
    pub asked: u64,
}

impl TouchedBits {
    /// Those of one access.
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
    /// The tag of the access that asked, if it was to one line.
    pub tag: Option<Tag>,
}

/// The hash by which lines are chosen: of lines at any constant step, it chooses as many everywhere (Knuth, The Art of Computer
/// Programming 3, 6.4: Fibonacci hashing).
#[inline(always)]
fn hash(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The bits of a line ([`Stay::touched`]) that lie in so many bytes, at least one, from an address on.
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

/// The stays so far.
#[derive(Clone, Default)]
pub(crate) struct Stays {
    /// Lines whose hashes are below it are followed.
    below: u64,
    kept: Vec<Kept>,
    /// So many of them are labelled.
    labelled: usize,
    /// The last one of each line in each cache.
    last: FxHashMap<(u32, u64), usize>,
    /// So many began, whether they are kept or not.
    begun: u32,
    /// Levels that did not have the line of each of those, as far as it is known.
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

impl Stays {
    /// Begins to follow lines, one of so many.
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

    /// Returns the last stay of a line in a cache.
    pub fn last(&self, cache: u32, line: u64) -> Option<usize> {
        self.last.get(&(cache, line)).copied()
    }

    /// Returns the entry of a line whose last stay that is.
    pub fn entry(&self, last: Option<usize>) -> Entry {
        match last {
            Some(at) if self.kept[at].accesses >= ENOUGH => Entry::Plain,
            _ => Entry::Marked,
        }
    }

    /// Adds an access to a line in its last stay; returns its entry from now on.
    pub fn touch(&mut self, last: usize, touched: u64) -> Entry {
        let kept = &mut self.kept[last];
        kept.touched.all |= touched;
        kept.accesses = kept.accesses.saturating_add(1);
        self.entry(Some(last))
    }

    /// Adds what the accesses behind the one that came last touch, all of which hit.
    pub fn touch_more(&mut self, cache: u32, line: u64, touched: u64) {
        if let Some(at) = self.last(cache, line) {
            self.kept[at].touched.all |= touched;
        }
    }

    /// A line is fetched, which an access touches. Returns whether lines were given up: none of those may keep its mark.
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

    /// Says how deep the next of the fetches went, in their order.
    pub fn answer(&mut self, depth: u8) {
        self.depths.push(depth);
    }

    /// Takes over the answers that another has.
    pub fn take_answers_of(&mut self, other: &Stays) {
        self.depths.extend_from_slice(&other.depths);
    }

    /// Labels the stays that have no label yet.
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

    /// Returns those that are answered.
    pub fn all(&self, shift: u32) -> Followed {
        let stay = |kept: &Kept| {
            let &Kept { number, core, line, touched, label, .. } = kept;
            let depth = *self.depths.get(number as usize)?;
            Some(Stay { line: line << shift, core, depth, touched: touched.all, label })
        };
        Followed { stays: self.kept.iter().filter_map(stay).collect(), below: self.below, shift }
    }
}

/// Stays of the lines that were followed to the end, those of each line in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// All of them.
    pub stays: Vec<Stay>,
    /// Hashes of their lines are below it.
    below: u64,
    /// From address to line.
    shift: u32,
}

impl Followed {
    /// Adds those of another shard of the same caches. So many lines are given up that it is as if one had followed all.
    pub fn add(&mut self, other: Followed) {
        self.stays.extend(other.stays);
        self.below = self.below.min(other.below);
        loop {
            let Followed { stays, below, shift } = self;
            stays.retain(|stay| hash(stay.line >> *shift) < *below);
            if stays.len() <= MOST || *below <= 1 {
                return;
            }
            *below /= 2;
        }
    }
}
