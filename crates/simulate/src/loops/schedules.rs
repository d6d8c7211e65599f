//! Schedules that were worked out before. A loop inside another is executed again and again, and
//! mostly begins alike.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::schedule::{Schedule, Shape, bundles};
use super::strided::Strided;

/// Number of schedules that are kept.
const SLOTS: usize = 256;
/// Periods that a loop must run for its schedule to be worked out at once.
const LONG: u64 = 4;
/// The number of times that a shorter loop must have come.
const OFTEN: u32 = 4;
/// The number of changes after which a schedule is computed that holds for any distance of bundles,
/// if there is one.
const MOST_CHANGES: u32 = 8;
/// Fewer iterations are not worth it.
const FEWEST_ITERATIONS: u64 = 3;

/// Schedules by the loops that they are of.
pub struct Schedules {
    shape: Shape,
    slots: Vec<Slot>,
}

#[derive(Clone, Default)]
struct Slot {
    key: u64,
    /// Number of times that loops with this key came.
    seen: u32,
    /// Number of times that they did not look as before.
    changes: u32,
    /// The look of the loop, and its schedule, if it can have one.
    known: Option<(Vec<Look>, Option<Arc<Schedule>>)>,
}

/// The facts of a stride that a schedule depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    step: u64,
    bytes: u32,
    is_write: bool,
    /// The first stride of its bundle, perhaps this one.
    first: u16,
    /// Bytes that it is behind that; if it is itself, its offset in its line.
    offset: u64,
    /// The first stride that goes the same way, and this one's distance from it, in sets.
    way: u16,
    apart: u64,
}

impl Schedules {
    /// For a first level of this shape; none is known yet.
    pub fn new(shape: Shape) -> Schedules {
        Schedules { shape, slots: vec![Slot::default(); SLOTS] }
    }

    /// The first level.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The schedule of a loop, which is identified by its strides' tags. `None` if it cannot have
    /// one, or it is not worth while.
    #[inline]
    pub fn of(&mut self, strides: &[Strided], iterations: u64) -> Option<&Arc<Schedule>> {
        if iterations < FEWEST_ITERATIONS || !Schedule::is_possible(strides, iterations, self.shape) {
            return None;
        }
        let key = self.key(strides);
        let slot = &mut self.slots[key as usize % SLOTS];
        if slot.key != key {
            *slot = Slot { key, ..Slot::default() };
        }
        slot.seen = slot.seen.saturating_add(1);
        let is_known = slot.known.as_ref().is_some_and(|(looks, schedule)| {
            let is_pinned = schedule.as_ref().is_none_or(|schedule| schedule.is_pinned);
            are_alike(strides, looks, is_pinned, self.shape)
        });
        if !is_known {
            if slot.seen < OFTEN && iterations < LONG * Schedule::period(strides, self.shape) as u64 {
                return None;
            }
            slot.changes += u32::from(slot.known.is_some());
            let may_pin = slot.changes < MOST_CHANGES;
            let schedule = Schedule::new(strides, self.shape, may_pin).map(Arc::new);
            slot.known = Some((looks(strides, self.shape), schedule));
            slot.seen = 0;
        }
        slot.known.as_ref()?.1.as_ref()
    }

    fn key(&self, strides: &[Strided]) -> u64 {
        let mut hasher = FxHasher::default();
        for Strided { tag, address, .. } in strides {
            (tag, address & (self.shape.line_bytes - 1)).hash(&mut hasher);
        }
        let hash = hasher.finish();
        hash ^ hash >> 32
    }
}

/// Each stride relative to the first of its bundle, so that the distance between bundles does not
/// matter.
fn looks(strides: &[Strided], shape: Shape) -> Vec<Look> {
    let bundles = bundles(strides, shape);
    let look = |(number, stride): (usize, &Strided)| {
        let first = bundles.iter().position(|bundle| *bundle == bundles[number]).unwrap_or(number);
        let way = strides.iter().position(|other| other.step == stride.step).unwrap_or(number);
        Look {
            step: stride.step,
            bytes: stride.bytes,
            is_write: stride.is_write,
            first: first as u16,
            offset: offset(strides, number, first, shape),
            way: way as u16,
            apart: apart(strides, number, way, shape),
        }
    };
    strides.iter().enumerate().map(look).collect()
}

fn offset(strides: &[Strided], number: usize, first: usize, shape: Shape) -> u64 {
    let address = strides[number].address;
    match first == number {
        true => address & (shape.line_bytes - 1),
        false => address.wrapping_sub(strides[first].address),
    }
}

fn apart(strides: &[Strided], number: usize, way: usize, shape: Shape) -> u64 {
    let line = |stride: &Strided| (stride.address / shape.line_bytes) % shape.sets;
    (shape.sets + line(&strides[number]) - line(&strides[way])) % shape.sets
}

/// Returns whether these strides equal those; if `pinned`, the sets in which they begin must be
/// equal, too.
fn are_alike(strides: &[Strided], looks: &[Look], pinned: bool, shape: Shape) -> bool {
    strides.len() == looks.len()
        && strides.iter().zip(looks).enumerate().all(|(number, (stride, look))| {
            stride.step == look.step
                && stride.bytes == look.bytes
                && stride.is_write == look.is_write
                && offset(strides, number, look.first.into(), shape) == look.offset
                && (!pinned || apart(strides, number, look.way.into(), shape) == look.apart)
        })
}
