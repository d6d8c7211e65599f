//! Constant strides of single sites: the reference prediction table of Chen and Baer ("Effective
//! Hardware-Based Data Prefetching for High-Performance Processors", IEEE Transactions on Computers
//! 1995).
//!
//! An entry, found by core and tag, remembers the last address and a stride, and how far to trust
//! it:
//!
//! ```text
//!               as predicted →                      a stride is kept when it fails once in Steady, and
//!   Initial ─────────────────────► Steady ◄─┐      learned anew in the other states
//!      │  ▲  ◄── not ──────────────  │  └───┘
//!     not └──────────────────────────┘
//!      ▼
//!   Transient ── as predicted ──► Steady
//!      │  ▲
//!     not └─ as predicted ─┐
//!      ▼                   │
//!   NoPrediction ──────────┘
//! ```
//!
//! In Steady it fetches two steps ahead, a step being the stride or, if that is less, one line.

use super::{Prefetcher, Seen};
use crate::tag::Tag;

const ENTRIES: usize = 256;
const STEPS_AHEAD: i64 = 2;

#[derive(Clone, Copy, Default, PartialEq)]
enum Trust {
    #[default]
    Initial,
    Transient,
    Steady,
    NoPrediction,
}

#[derive(Clone, Copy)]
struct Entry {
    site: (usize, Tag),
    address: u64,
    stride: i64,
    trust: Trust,
}

pub struct Stride {
    line_shift: u32,
    entries: Box<[Option<Entry>; ENTRIES]>,
}

impl Stride {
    pub fn new(line_shift: u32) -> Stride {
        Stride { line_shift, entries: Box::new([None; ENTRIES]) }
    }
}

impl Stride {
    /// Learns from an access to `address`, and returns the line to be fetched.
    #[inline(always)]
    pub fn learn(&mut self, core: usize, tag: Tag, address: u64) -> Option<u64> {
        let site = (core, tag);
        // A prime keeps the same site of neighbouring cores apart.
        let place = tag.index().wrapping_add(61 * core) % ENTRIES;
        let entry = match &mut self.entries[place] {
            Some(entry) if entry.site == site => entry,
            other => {
                *other = Some(Entry { site, address, stride: 0, trust: Trust::Initial });
                return None;
            }
        };
        let stride = address.wrapping_sub(entry.address) as i64;
        entry.address = address;
        entry.trust = match (entry.trust, stride == entry.stride) {
            (Trust::NoPrediction, true) => Trust::Transient,
            (_, true) => Trust::Steady,
            (Trust::Steady, false) => {
                entry.trust = Trust::Initial;
                return None;
            }
            (Trust::Initial, false) => Trust::Transient,
            (_, false) => Trust::NoPrediction,
        };
        entry.stride = stride;
        (entry.trust == Trust::Steady && stride != 0).then(|| {
            let step = stride.signum().wrapping_mul(stride.saturating_abs().max(1 << self.line_shift));
            address.wrapping_add_signed(step.wrapping_mul(STEPS_AHEAD)) >> self.line_shift
        })
    }
}

impl Prefetcher for Stride {
    #[inline(always)]
    fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>) {
        if !seen.goes_on {
            wanted.extend(self.learn(seen.core, seen.tag, seen.address));
        }
    }
}
