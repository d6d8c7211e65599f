//! The threads that read the rings.
//!
//! One worker, the leader, watches all processes and sleeps on their doorbells. Helpers sleep until
//! the leader finds more than one ring with something to read, or other work. A lock on each ring,
//! which no worker waits for, decides which worker reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use memlode_trace::format::{limit, off};
use rustix::io::Errno;
use rustix::thread::futex::{self, Wait, WaitFlags, WaitvFlags};
use rustix::time::{ClockId, Timespec};

use crate::ahead::Batches;
use crate::clock;
use crate::images::Images;
use crate::output::{Output, lock};
use crate::packing::Packing;
use crate::process::Process;
use crate::reader::Tools;

/// Nothing is left unread for longer, doorbell or not; also the pace of heartbeats.
const NAP: Duration = Duration::from_millis(100);
/// The nap where doorbells cannot be waited for all at once.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// The leader's sleep while helpers encode: a fraction of the time in which a program fills its
/// ring.
const GLIMPSE: Duration = Duration::from_micros(100);
/// Futexes that one system call waits for at most.
const MOST_DOORBELLS: usize = 120;

/// Data that the collector's threads share.
pub struct Shared {
    /// The destination of the words.
    pub output: Output,
    /// The ELF files behind the programs.
    pub images: Arc<Images>,
    /// Chunks on their way to the output.
    pub packing: Arc<Packing>,
    /// Words on their way to chunks.
    batches: Arc<Batches>,
    /// The leader and its helpers.
    workers: usize,
    processes: RwLock<Vec<Arc<Process>>>,
    /// Why recording is off in all processes, `off.*`; held while it changes.
    off: Mutex<u32>,
    /// Regions to be recorded, if not everything.
    regions: Vec<String>,
    most_accesses: u64,
    /// Time that programs wait for us.
    pub patience: Duration,
    /// Bumped when the leader is to look up.
    attention: AtomicU32,
    /// Bumped when the helpers are.
    help: AtomicU32,
    stop: AtomicBool,
    next_process: AtomicU64,
    dead_threads_noticed: Mutex<Instant>,
}

impl Shared {
    /// No process yet.
    pub fn new(
        output: Output,
        workers: usize,
        regions: Vec<String>,
        most_accesses: Option<u64>,
        patience: Duration,
    ) -> Shared {
        Shared {
            output,
            images: Arc::default(),
            packing: Arc::default(),
            batches: Arc::new(Batches::new(workers)),
            workers,
            processes: RwLock::default(),
            off: Mutex::default(),
            regions,
            most_accesses: most_accesses.unwrap_or(u64::MAX),
            patience,
            attention: AtomicU32::new(0),
            help: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            next_process: AtomicU64::new(0),
            dead_threads_noticed: Mutex::new(Instant::now()),
        }
    }

    /// Returns the tools that a thread needs to read rings.
    pub fn tools(&self) -> Tools {
        Tools::new(self.packing.clone(), self.batches.clone())
    }

    /// The processes that are not closed.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.processes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The index of a process that is about to be added.
    /// `None` if a trace cannot hold more.
    pub fn next_process(&self) -> Option<u32> {
        let index = self.next_process.fetch_add(1, Ordering::Relaxed);
        (index < limit::PROCESSES).then_some(index as u32)
    }

    /// Switches recording off in all processes for a reason (`off.*`), or takes that reason back.
    pub fn switch(&self, reason: u32, off: bool) {
        let mut reasons = lock(&self.off);
        *reasons = if off { *reasons | reason } else { *reasons & !reason };
        self.processes().iter().for_each(|process| process.memory.switch(reason, off));
    }

    /// The regions that are to be recorded; none if everything is.
    pub fn regions(&self) -> &[String] {
        &self.regions
    }

    /// Why recording is off in all processes, `off.*`.
    pub fn reasons(&self) -> u32 {
        *lock(&self.off)
    }

    /// Ends the recording once enough was written.
    fn watch_amount(&self) {
        let enough = self.output.counters.accesses.load(Ordering::Relaxed) >= self.most_accesses;
        if enough && self.reasons() & off::WINDOW == 0 {
            self.switch(off::WINDOW | off::OVER, true);
        }
    }

    /// A process said hello.
    pub fn add(&self, process: Arc<Process>) {
        let reasons = lock(&self.off);
        if *reasons != 0 {
            process.memory.switch(*reasons, true);
        }
        if !self.regions.is_empty() {
            process.memory.set_regions(&self.regions);
            process.memory.switch(off::REGION, true);
        }
        self.processes.write().unwrap_or_else(PoisonError::into_inner).push(process);
        self.wake();
    }

    /// Wakes the leader.
    pub fn wake(&self) {
        self.attention.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(&self.attention, futex::Flags::PRIVATE, 1);
    }

    fn call_helpers(&self) {
        self.help.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wake(&self.help, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    /// Ends the workers.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
        self.call_helpers();
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Looks for threads that ended, if it has been a while.
    pub fn notice_dead_threads(&self, pause: Duration) {
        let Ok(mut last) = self.dead_threads_noticed.try_lock() else { return };
        let start = Instant::now();
        if start.duration_since(*last) < pause {
            return;
        }
        self.processes().iter().for_each(|process| process.notice_dead_threads());
        // Where looking takes long, look less often.
        *last = Instant::now() + 10 * start.elapsed();
    }

    /// One round over all processes. Returns how many rings had something to read.
    fn round(&self, tools: &mut Tools) -> usize {
        let now = Instant::now();
        let mut busy = 0;
        let mut closed = false;
        for process in self.processes() {
            busy += process.serve(&self.output, tools, now);
            closed |= process.is_closed();
            if process.is_crowded() {
                self.notice_dead_threads(Duration::from_millis(1));
            }
        }
        tools.end_round();
        if closed {
            let mut processes = self.processes.write().unwrap_or_else(PoisonError::into_inner);
            processes.retain(|process| !process.is_closed());
        }
        busy
    }

    /// Returns whether helpers can do the waiting work. Then the leader should not do it: while it
    /// does, no thread reads the ring, the program waits, and soon the helpers have nothing to do.
    fn has_enough_helpers(&self) -> bool {
        self.batches.waiting() + self.packing.waiting() < self.workers
    }

    /// The life of the leader.
    pub fn lead(&self) {
        let mut tools = self.tools();
        while !self.stops() {
            let begun = clock::stamp();
            let busy = self.round(&mut tools);
            if self.output.is_live() {
                // Whoever began before has been found.
                self.output.all_known(begun);
            }
            self.watch_amount();
            if busy > 1 || self.packing.waiting() > 0 || self.batches.waiting() > 0 {
                self.call_helpers();
            }
            if busy > 0 {
                continue;
            }
            if self.batches.are_flying() && self.has_enough_helpers() {
                // What is written meanwhile fits into a ring; the program need not ring for it.
                std::thread::sleep(GLIMPSE);
            } else if !tools.help_one(&self.output) {
                self.sleep();
            }
        }
    }

    /// The life of a helper.
    pub fn help(&self) {
        let mut tools = self.tools();
        while !self.stops() {
            let called = self.help.load(Ordering::SeqCst);
            if !tools.help_one(&self.output) && self.round(&mut tools) == 0 && !self.stops() {
                let _ = futex::wait(&self.help, futex::Flags::PRIVATE, called, None);
            }
        }
    }

    /// Sleeps until a program rings, someone calls, or a nap is over.
    fn sleep(&self) {
        let called = self.attention.load(Ordering::SeqCst);
        let processes = self.processes();
        // Pairs with the program's: it hands over, then looks whether we sleep.
        processes.iter().for_each(|process| _ = process.memory.sleepers().fetch_add(1, Ordering::SeqCst));
        let rung: Vec<u32> =
            processes.iter().map(|process| process.memory.doorbell().load(Ordering::SeqCst)).collect();
        fence(Ordering::SeqCst);
        if !self.stops() && !processes.iter().any(|process| process.has_work()) {
            let mut waits = vec![wait_for(&self.attention, called, WaitFlags::PRIVATE)];
            let doorbells = processes.iter().zip(&rung).take(MOST_DOORBELLS);
            waits.extend(
                doorbells
                    .map(|(process, &rung)| wait_for(process.memory.doorbell(), rung, WaitFlags::empty())),
            );
            let nap = if processes.len() > MOST_DOORBELLS { SHORT_NAP } else { NAP };
            if futex::waitv(&waits, WaitvFlags::empty(), Some(&in_a(nap)), ClockId::Monotonic)
                == Err(Errno::NOSYS)
            {
                // Linux before 5.16: wait for one thing, and look often.
                let pause = Timespec { tv_sec: 0, tv_nsec: SHORT_NAP.as_nanos() as _ };
                let _ = futex::wait(&self.attention, futex::Flags::PRIVATE, called, Some(&pause));
            }
        }
        processes.iter().for_each(|process| _ = process.memory.sleepers().fetch_sub(1, Ordering::SeqCst));
    }
}

fn wait_for(word: &AtomicU32, value: u32, flags: WaitFlags) -> Wait {
    let mut wait = Wait::new();
    wait.val = value.into();
    wait.uaddr = futex::WaitPtr::new(word.as_ptr().cast());
    wait.flags = WaitFlags::SIZE_U32 | flags;
    wait
}

/// The time on the monotonic clock after a pause.
fn in_a(pause: Duration) -> Timespec {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    let nanoseconds = now.tv_nsec as u64 + pause.subsec_nanos() as u64;
    Timespec {
        tv_sec: now.tv_sec + pause.as_secs() as i64 + (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}
