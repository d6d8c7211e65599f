//! Caches on two threads: the first level on this one, the others on another.
//!
//! ```text
//!   this thread    attribute, first level ─► misses ─┐      ┌───── emptied ─► to be used again
//!                                                    │      │
//!   the other                                        └─► the levels behind it ─► counts by tag
//! ```
//! A level is looked up for the lines that the inner level missed and dropped, in that order, and
//! no caller waits for the result. So every figure equals that of [`Hierarchy`] on one thread.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use memlode_simulate::{
    Fetched, Followed, Fragment, Front, Hierarchy, LevelCounters, LevelSpec, MemRef, Request, Tag,
    TouchedBits, Waiting,
};

use crate::count::engine::{Engine, LoopMode, TakesFragments};
use crate::drive::threads::beside_caches::Depths;

/// Runs of misses, each of which fits into a cache, that are passed on together.
const TOGETHER: usize = 16;
/// The number of batches that may be on their way.
const ON_THEIR_WAY: usize = 16;

/// A [`Hierarchy`] of which the outer levels have a thread of their own.
pub struct ThreadedOuterLevels {
    /// The part that is simulated here.
    inner: Hierarchy,
    missed: Vec<Waiting>,
    emptied: Vec<Waiting>,
    worker: Option<Worker>,
}

/// The other thread.
struct Worker {
    missed: SyncSender<Vec<Waiting>>,
    emptied: Receiver<Vec<Waiting>>,
    thread: JoinHandle<(Hierarchy, Depths)>,
}

impl ThreadedOuterLevels {
    /// Starts the other thread. Nothing may have been simulated yet.
    pub fn new(empty: Hierarchy) -> ThreadedOuterLevels {
        let outer = empty.clone();
        let (missed, coming) = sync_channel(ON_THEIR_WAY);
        let (empties, emptied) = channel();
        let thread = std::thread::spawn(move || answer(outer, &coming, &empties));
        let worker = Some(Worker { missed, emptied, thread });
        ThreadedOuterLevels { inner: empty, missed: Vec::new(), emptied: Vec::new(), worker }
    }

    /// Passes the gathered misses on.
    fn pass_on(&mut self) {
        let Some(worker) = &self.worker else { return };
        self.emptied.extend(worker.emptied.try_iter().flatten());
        // An error is a panic of the other thread, which is met again when that is waited for.
        let _ = worker.missed.send(std::mem::take(&mut self.missed));
    }
}

/// The life of the other thread.
fn answer(
    mut outer: Hierarchy,
    coming: &Receiver<Vec<Waiting>>,
    emptied: &Sender<Vec<Waiting>>,
) -> (Hierarchy, Depths) {
    let mut depths = Depths::default();
    for mut missed in coming {
        for waiting in &mut missed {
            outer.settle_for(waiting, |tag, depth, times| depths.add(tag, depth, times));
        }
        // Nobody takes it back any more when all is over.
        let _ = emptied.send(missed);
    }
    (outer, depths)
}

impl Engine for ThreadedOuterLevels {
    const LOOPS: LoopMode = Hierarchy::LOOPS;
    type Lane<'e> = Front<'e>;

    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Option<u8> {
        Engine::access(&mut self.inner, access)
    }

    #[inline(always)]
    fn lane(&mut self, core: usize) -> Option<Front<'_>> {
        self.inner.lane(core)
    }

    #[inline(always)]
    fn count_hits(&mut self, is_write: bool, accesses: u64) {
        self.inner.count_hits(is_write, accesses);
    }

    fn show(&mut self, core: usize, lines: &[Request], touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        self.inner.show(core, lines, touched);
    }

    fn show_both(&mut self, access: MemRef, touched: impl Fn(u64, u32, Tag) -> TouchedBits) {
        self.inner.show_both(access, touched);
    }

    fn touch_more(&mut self, core: usize, line: u64, touched: impl FnOnce() -> TouchedBits) {
        self.inner.touch_more(core, line, touched);
    }

    #[inline(always)]
    fn label_residencies(&mut self, label: impl FnMut(Fetched) -> u32) {
        self.inner.label_residencies(label);
    }

    fn residencies(&self) -> Followed {
        self.inner.residencies()
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        Engine::is_full(&self.inner)
    }

    /// Leaves the waiting misses of a short piece of the trace, to be joined by those of the next
    /// one.
    fn settle(&mut self, _told: impl FnMut(Tag, u8, u64)) {
        if self.is_full() {
            let next = self.emptied.pop().unwrap_or_default();
            self.missed.push(self.inner.replace_waiting(next));
            if self.missed.len() == TOGETHER {
                self.pass_on();
            }
        }
    }

    fn finish(&mut self, told: impl FnMut(Tag, u8, u64)) {
        self.missed.push(self.inner.replace_waiting(Waiting::default()));
        self.pass_on();
        let Some(Worker { missed, thread, .. }) = self.worker.take() else { return };
        drop(missed);
        let (outer, depths) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        depths.tell(told);
        self.inner.count_those_of(&outer);
    }

    /// Counters of the outer levels are complete only at the end.
    fn counters(&self) -> Vec<LevelCounters> {
        self.inner.counters()
    }

    fn first_level(&self) -> &LevelSpec {
        &self.inner.levels()[0]
    }

    fn followed_levels(&self) -> &[LevelSpec] {
        self.inner.levels()
    }

    fn cores(&self) -> u32 {
        self.inner.cores()
    }
}

impl TakesFragments for ThreadedOuterLevels {
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) {
        self.inner.fragments_later(access, fragments);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Counts by tag and depth.
    type Told = BTreeMap<(Tag, u8), u64>;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn finds_what_one_thread_does(
            accesses in prop::collection::vec((0..2usize, 0..1u64 << 18, 0..200u32, any::<bool>(), 0..40u32), 0..20_000),
            ways in 1..5u32,
        ) {
            let level = |sets: u64, shared_by| LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by };
            let empty = Hierarchy::new(&[level(16, 1), level(128, 1), level(512, 2)], 2).unwrap();
            let (mut alone, mut apart) = (empty.clone(), ThreadedOuterLevels::new(empty));
            let (mut told, mut told_apart) = (Told::new(), Told::new());
            for (core, address, bytes, is_write, tag) in accesses {
                let access = MemRef::read(core, address, bytes).writing(is_write).tagged(tag);
                prop_assert_eq!(Engine::access(&mut alone, access), apart.access(access));
                if Engine::is_full(&alone) {
                    Engine::settle(&mut alone, |tag, depth, times| *told.entry((tag, depth)).or_default() += times);
                    apart.settle(|_, _, _| unreachable!("answers come at the end"));
                }
                prop_assert!(!apart.is_full());
            }
            Engine::settle(&mut alone, |tag, depth, times| *told.entry((tag, depth)).or_default() += times);
            apart.finish(|tag, depth, times| *told_apart.entry((tag, depth)).or_default() += times);
            prop_assert_eq!(told, told_apart);
            prop_assert_eq!(Engine::counters(&alone), apart.counters());
        }
    }
}
