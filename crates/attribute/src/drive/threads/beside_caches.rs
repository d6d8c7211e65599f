//! A detailed simulation on two threads: the parts of a core on this one, caches on another.
//!
//! ```text
//!   this thread    decode, attribute ─► requests ─┬─► translations, stores in flight
//!                         ▲                       │
//!                         └────── emptied ──────┐ │ a few thousand at a time, in order
//!   the other                                   └─┴─► caches, causes, use of lines, nodes of memory ─► counts by tag
//! ```
//! Both see all accesses in the order of the trace, so every figure is that of [`Detailed`] on one
//! thread.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use memlode_simulate::{
    CacheSide, CoreSide, Detailed, Fragment, LevelCounters, LevelSpec, MAX_LEVELS, MemRef, Queue, Requests,
    Strided, Tag,
};

use crate::count::engine::{Engine, LoopMode, TakesFragments};

/// Accesses that are passed on together.
const TOGETHER: usize = 4096;
/// The number of batches that may be on their way.
const ON_THEIR_WAY: usize = 8;

/// A [`Detailed`] simulation of which the caches have a thread of their own.
pub struct ThreadedDetailed {
    near: Option<CoreSide>,
    waiting: Requests,
    worker: Option<Worker>,
    /// Once both are done.
    whole: Option<Detailed>,
    /// Facts that can be read meanwhile.
    first_level: LevelSpec,
    cores: u32,
    levels: usize,
}

/// The other thread.
struct Worker {
    requests: SyncSender<Requests>,
    emptied: Receiver<Requests>,
    thread: JoinHandle<(CacheSide, Depths)>,
}

/// Number of accesses, by tag and number of levels missed; first touches of lines have missed
/// memory, too.
#[derive(Default)]
pub(crate) struct Depths(Vec<[u64; MAX_LEVELS + 2]>);

impl Depths {
    /// Some more.
    #[inline(always)]
    pub fn add(&mut self, tag: Tag, depth: u8, times: u64) {
        let tag = tag.index();
        if self.0.len() <= tag {
            self.0.resize(tag + 1, [0; MAX_LEVELS + 2]);
        }
        self.0[tag][usize::from(depth)] += times;
    }

    /// Reports all results, as [`Engine::settle`] does.
    pub fn tell(&self, mut told: impl FnMut(Tag, u8, u64)) {
        for (tag, depths) in (0u32..).zip(&self.0) {
            for (depth, &times) in (0u8..).zip(depths).filter(|(_, times)| **times > 0) {
                told(Tag::new(tag), depth, times);
            }
        }
    }
}

impl ThreadedDetailed {
    /// Starts the other thread. Nothing may have been simulated yet.
    pub fn new(detailed: Detailed) -> ThreadedDetailed {
        let (first_level, cores) = (*detailed.first_level(), detailed.cores());
        let levels = detailed.counters().len();
        let (near, far) = detailed.split();
        let (requests, coming) = sync_channel(ON_THEIR_WAY);
        let (empty, emptied) = channel();
        let thread = std::thread::spawn(move || answer(far, &coming, &empty));
        let worker = Some(Worker { requests, emptied, thread });
        let waiting = Requests::default();
        ThreadedDetailed { near: Some(near), waiting, worker, whole: None, first_level, cores, levels }
    }

    /// The simulation, all of which is done.
    ///
    /// # Panics
    /// Before [`Engine::finish`].
    pub fn into_whole(self) -> Detailed {
        self.whole.expect("both threads are done")
    }

    /// Passes the waiting accesses to both.
    fn pass_on(&mut self) {
        let (Some(near), Some(worker)) = (&mut self.near, &self.worker) else { return };
        near.settle(&self.waiting);
        let next = worker.emptied.try_recv().unwrap_or_default();
        // An error is a panic of the other thread, which is met again when that is waited for.
        let _ = worker.requests.send(std::mem::replace(&mut self.waiting, next));
    }
}

/// The life of the other thread.
fn answer(
    mut far: CacheSide,
    coming: &Receiver<Requests>,
    empty: &std::sync::mpsc::Sender<Requests>,
) -> (CacheSide, Depths) {
    let mut depths = Depths::default();
    for mut requests in coming {
        far.settle(&requests, |tag, depth| depths.add(tag, depth, 1));
        requests.clear();
        // Nobody takes it back any more when all is over.
        let _ = empty.send(requests);
    }
    (far, depths)
}

impl Engine for ThreadedDetailed {
    const LOOPS: LoopMode = Detailed::LOOPS;
    type Lane<'e> = Queue<'e>;

    #[inline(always)]
    fn access(&mut self, access: MemRef) -> Option<u8> {
        self.waiting.push(access);
        None
    }

    #[inline(always)]
    fn lane(&mut self, core: usize) -> Option<Queue<'_>> {
        Some(self.waiting.queue(core, self.first_level.line_shift(), TOGETHER))
    }

    fn repeat(&mut self, core: usize, iterations: u64, strides: &[Strided]) {
        self.waiting.push_iterations(core, iterations, strides);
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting.len() >= TOGETHER
    }

    /// Leaves the waiting accesses of a short piece of the trace, to be joined by those of the next
    /// one.
    fn settle(&mut self, _told: impl FnMut(Tag, u8, u64)) {
        if self.is_full() {
            self.pass_on();
        }
    }

    fn finish(&mut self, told: impl FnMut(Tag, u8, u64)) {
        self.pass_on();
        let (Some(near), Some(Worker { requests, thread, .. })) = (self.near.take(), self.worker.take())
        else {
            return;
        };
        drop(requests);
        let (far, depths) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        depths.tell(told);
        self.whole = Some(Detailed::join(near, far));
    }

    /// Nothing is counted before all is.
    fn counters(&self) -> Vec<LevelCounters> {
        self.whole.as_ref().map_or_else(|| vec![LevelCounters::default(); self.levels], Detailed::counters)
    }

    fn first_level(&self) -> &LevelSpec {
        &self.first_level
    }

    fn cores(&self) -> u32 {
        self.cores
    }

    fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        if let Some(near) = &mut self.near {
            near.set_pages_of(tag, page_bytes);
        }
    }

    fn other_cycles(&self, tag: Tag) -> u64 {
        self.whole.as_ref().map_or(0, |whole| whole.other_cycles(tag))
    }

    fn has_translations(&self) -> bool {
        self.whole.as_ref().is_some_and(Detailed::has_translations)
    }
}

impl TakesFragments for ThreadedDetailed {
    fn access_fragments(&mut self, access: MemRef, fragments: &[Fragment]) {
        self.waiting.push_fragments(access, fragments);
    }
}

#[cfg(test)]
mod tests {
    use memlode_machine::Machine;
    use proptest::prelude::*;

    use super::*;
    use crate::drive::simulators::detailed;
    use crate::setup::Setup;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn finds_what_one_thread_does(
            accesses in prop::collection::vec((0..2u8, 0..1u64 << 22, 0..100u32, any::<bool>(), 0..40u32, 0..500u64), 0..20_000),
            named in 0..40u32,
        ) {
            let machine = Machine::find("skylake-sp").unwrap();
            let setup = Setup::of(&machine);
            let mut alone = detailed(&machine, &setup, 2).unwrap();
            let mut apart = ThreadedDetailed::new(detailed(&machine, &setup, 2).unwrap());
            let named = Tag::new(named);
            let mut told = [[0; MAX_LEVELS + 1]; 2];
            alone.set_pages_of(named, machine.page_bytes);
            apart.set_pages_of(named, machine.page_bytes);
            for (core, address, bytes, is_write, tag, iterations) in accesses {
                let tag = Tag::new(tag);
                if iterations > 480 {
                    let strided = Strided { address, step: u64::from(bytes), bytes, is_write, tag };
                    alone.repeat(core.into(), iterations, &[strided; 2]);
                    apart.repeat(core.into(), iterations, &[strided; 2]);
                }
                let access = MemRef { address, bytes, core: core.into(), tag, is_write };
                Engine::access(&mut alone, access);
                Engine::access(&mut apart, access);
                if Engine::is_full(&alone) {
                    Engine::settle(&mut alone, |_, depth, times| told[0][usize::from(depth)] += times);
                }
                if apart.is_full() {
                    apart.settle(|_, _, _| unreachable!("answers come at the end"));
                }
            }
            Engine::settle(&mut alone, |_, depth, times| told[0][usize::from(depth)] += times);
            apart.finish(|_, depth, times| told[1][usize::from(depth)] += times);
            prop_assert_eq!(told[0], told[1]);
            let whole = apart.into_whole();
            prop_assert_eq!(whole.counters(), Engine::counters(&alone));
            prop_assert_eq!(whole.other_cycles(named), Engine::other_cycles(&alone, named));
            prop_assert_eq!(whole.finish(), alone.finish());
        }
    }
}
