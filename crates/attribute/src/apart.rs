//! A detailed simulation on two threads: what accesses meet in their core on this one, caches on another.
//!
//! ```text
//!   this thread    decode, attribute ─► requests ─┬─► translations, stores in flight
//!                         ▲                       │
//!                         └────── emptied ──────┐ │ a few thousand at a time, in order
//!   the other                                   └─┴─► caches, causes, use of lines, nodes of memory ─► counts by tag
//! ```
//! Both see all accesses in the order of the trace, so every figure is that of [`Detailed`] on one thread.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use memlode_simulate::{
    Detailed, Far, Fragment, LevelCounters, LevelSpec, MAX_LEVELS, Near, Queue, Requests,
};

use crate::simulator::{Simulator, TakesFragments};

/// Accesses that are passed on together.
const TOGETHER: usize = 4096;
/// Of those, how many times as many may be on their way.
const ON_THEIR_WAY: usize = 8;

/// A [`Detailed`] simulation of which the caches have a thread of their own.
pub struct Apart {
    near: Option<Near>,
    waiting: Requests,
    worker: Option<Worker>,
    /// Once both are done.
    whole: Option<Detailed>,
    /// What can be said meanwhile.
    first_level: LevelSpec,
    cores: u32,
    levels: usize,
}

/// The other thread.
struct Worker {
    requests: SyncSender<Requests>,
    emptied: Receiver<Requests>,
    thread: JoinHandle<(Far, Depths)>,
}

/// By tag and number of levels missed, how many accesses; first touches of lines have missed memory, too.
#[derive(Default)]
pub(crate) struct Depths(Vec<[u64; MAX_LEVELS + 2]>);

impl Depths {
    /// Some more.
    #[inline(always)]
    pub fn add(&mut self, tag: u32, depth: u8, times: u64) {
        let tag = tag as usize;
        if self.0.len() <= tag {
            self.0.resize(tag + 1, [0; MAX_LEVELS + 2]);
        }
        self.0[tag][usize::from(depth)] += times;
    }

    /// Tells of all, as [`Simulator::settle`] does.
    pub fn tell(&self, mut told: impl FnMut(u32, u8, u64)) {
        for (tag, depths) in (0u32..).zip(&self.0) {
            for (depth, &times) in (0u8..).zip(depths).filter(|(_, times)| **times > 0) {
                told(tag, depth, times);
            }
        }
    }
}

impl Apart {
    /// Starts the other thread. Nothing may have been simulated yet.
    pub fn new(detailed: Detailed) -> Apart {
        let (first_level, cores) = (*detailed.first_level(), detailed.cores());
        let levels = detailed.counters().len();
        let (near, far) = detailed.split();
        let (requests, coming) = sync_channel(ON_THEIR_WAY);
        let (empty, emptied) = channel();
        let thread = std::thread::spawn(move || answer(far, &coming, &empty));
        let worker = Some(Worker { requests, emptied, thread });
        let waiting = Requests::default();
        Apart { near: Some(near), waiting, worker, whole: None, first_level, cores, levels }
    }

    /// The simulation, all of which is done.
    ///
    /// # Panics
    /// Before [`Simulator::finish_settling`].
    pub fn into_whole(self) -> Detailed {
        self.whole.expect("both threads are done")
    }

    /// Hands what waits to both.
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
    mut far: Far,
    coming: &Receiver<Requests>,
    empty: &std::sync::mpsc::Sender<Requests>,
) -> (Far, Depths) {
    let mut depths = Depths::default();
    for mut requests in coming {
        far.settle(&requests, |tag, depth| depths.add(tag, depth, 1));
        requests.clear();
        // Nobody takes it back any more when all is over.
        let _ = empty.send(requests);
    }
    (far, depths)
}

impl Simulator for Apart {
    #[inline(always)]
    fn access(
        &mut self,
        core: usize,
        address: u64,
        bytes: u32,
        is_write: bool,
        cell: u32,
        _tag: u32,
    ) -> Option<u8> {
        self.waiting.push(core, address, bytes, is_write, cell);
        None
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.waiting.len() >= TOGETHER
    }

    /// Of a piece of the trace that is shorter, the next one fills up what waits.
    fn settle(&mut self, _told: impl FnMut(u32, u8, u64)) {
        if self.is_full() {
            self.pass_on();
        }
    }

    fn finish_settling(&mut self, told: impl FnMut(u32, u8, u64)) {
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

    fn queue(&mut self, core: usize) -> Option<Queue<'_>> {
        Some(self.waiting.queue(core, self.first_level.line_shift(), TOGETHER))
    }

    fn loops(&mut self) -> Option<&mut Requests> {
        Some(&mut self.waiting)
    }

    fn set_pages_of(&mut self, cell: u32, page_bytes: u64) {
        if let Some(near) = &mut self.near {
            near.set_pages_of(cell, page_bytes);
        }
    }

    fn other_cycles(&self, cell: u32) -> u64 {
        self.whole.as_ref().map_or(0, |whole| whole.other_cycles(cell))
    }
}

impl TakesFragments for Apart {
    fn access_fragments(&mut self, core: usize, fragments: &[Fragment], is_write: bool, cell: u32) {
        self.waiting.push_fragments(core, fragments, is_write, cell);
    }
}

#[cfg(test)]
mod tests {
    use memlode_machine::Machine;
    use memlode_simulate::Strided;
    use proptest::prelude::*;

    use super::*;
    use crate::simulator::{Setup, detailed};

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
            let mut apart = Apart::new(detailed(&machine, &setup, 2).unwrap());
            let mut told = [[0; MAX_LEVELS + 1]; 2];
            alone.set_pages_of(named, machine.page_bytes);
            apart.set_pages_of(named, machine.page_bytes);
            for (core, address, bytes, is_write, tag, turns) in accesses {
                if turns > 480 {
                    let strided = Strided { address, step: u64::from(bytes), bytes, is_write, tag };
                    for requests in [alone.loops().unwrap(), apart.loops().unwrap()] {
                        requests.push_turns(core.into(), turns, &[strided; 2]);
                    }
                }
                Simulator::access(&mut alone, core.into(), address, bytes, is_write, tag, tag);
                apart.access(core.into(), address, bytes, is_write, tag, tag);
                if Simulator::is_full(&alone) {
                    Simulator::settle(&mut alone, |_, depth, times| told[0][usize::from(depth)] += times);
                }
                if apart.is_full() {
                    apart.settle(|_, _, _| unreachable!("answers come at the end"));
                }
            }
            Simulator::settle(&mut alone, |_, depth, times| told[0][usize::from(depth)] += times);
            apart.finish_settling(|_, depth, times| told[1][usize::from(depth)] += times);
            prop_assert_eq!(told[0], told[1]);
            let whole = apart.into_whole();
            prop_assert_eq!(whole.counters(), Simulator::counters(&alone));
            prop_assert_eq!(whole.other_cycles(named), Simulator::other_cycles(&alone, named));
            prop_assert_eq!(whole.finish(), alone.finish());
        }
    }
}
