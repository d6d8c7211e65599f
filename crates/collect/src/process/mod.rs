//! One traced process: its shared memory, its images, its threads.

mod loaded;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant};

use memlode_trace::format::ring;
use memlode_trace::log::Event;
use memlode_trace::write::AddressSpace;
use rustc_hash::FxHashSet;
use rustix::process::Pid;

use loaded::LoadedImage;

use crate::ahead::Space;
use crate::clock;
use crate::images::{self, Images};
use crate::output::{Output, count, lock};
use crate::reader::{Ending, Reader, Round, Tools};
use crate::shared::SharedMemory;
use crate::socket::{Connection, Message};
use crate::worker::Shared;

/// A process that registered.
pub struct Process {
    /// Index in the trace.
    pub index: u32,
    /// The kernel's id.
    pub pid: Pid,
    /// The name that it was called with.
    name: String,
    /// Memory that it shares with us.
    pub memory: SharedMemory,
    /// Readable once every thread of it is gone.
    pidfd: OwnedFd,
    /// True if the program counts its threads as we do, which it does not in another pid namespace.
    same_namespace: bool,
    library: Arc<Images>,
    space: Space,
    images: Mutex<Vec<LoadedImage>>,
    /// Pages of words that were not found among the images.
    strangers: Mutex<FxHashSet<u64>>,
    /// Held by who looks.
    search: Mutex<()>,
    /// `/proc/PID/maps` when it registered; it may be gone when it is needed.
    maps: Vec<u8>,
    /// The same when it last unloaded an image, as it does when it ends.
    last_maps: Mutex<Vec<u8>>,
    streams: Mutex<Arc<Vec<Arc<Stream>>>>,
    discovery: Mutex<Discovery>,
    /// Number of claimed rings at the last search for them.
    claims_seen: AtomicU64,
    /// No thread of it will ever write again.
    over: AtomicBool,
    /// Every thread of it is gone.
    gone: AtomicBool,
    closed: AtomicBool,
}

/// A ring, which is a thread's or that of signal handlers running on the thread.
pub struct Stream {
    tid: u32,
    thread: Arc<Thread>,
    /// The thread will never write again, though its process may.
    over: AtomicBool,
    /// It ended by itself: its process lived on.
    ended: AtomicBool,
    reader: Mutex<Option<Reader>>,
}

/// A thread that has at least one ring.
struct Thread {
    /// Index in its process.
    index: u32,
    /// Generation of its first ring.
    owner: u64,
    /// Rings it has had, and rings that are not closed.
    rings: AtomicU32,
    open: AtomicU32,
}

/// Which rings are known.
#[derive(Default)]
struct Discovery {
    /// Rings found so far.
    found: u32,
    /// Index of the next thread.
    threads: u32,
    /// Slots that have a reader.
    slots: FxHashSet<u32>,
    /// Every slot in use is below this.
    bound: u32,
}

impl Process {
    /// A process that is waiting for the reply to its hello.
    pub fn new(
        index: u32,
        message: &Message,
        connection: &Connection,
        command: &[String],
        shared: &Shared,
    ) -> rustix::io::Result<Process> {
        let pid = connection.pid;
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        let kernel_pid = pid.as_raw_pid() as u32;
        Ok(Process {
            index,
            pid,
            name: command.first().cloned().unwrap_or_default(),
            memory: SharedMemory::create(kernel_pid, index, shared.patience)?,
            pidfd,
            same_namespace: message.pid == kernel_pid,
            library: shared.images.clone(),
            space: Space::default(),
            images: Mutex::default(),
            strangers: Mutex::default(),
            search: Mutex::default(),
            maps: images::maps(pid).unwrap_or_default(),
            last_maps: Mutex::default(),
            streams: Mutex::default(),
            discovery: Mutex::default(),
            claims_seen: AtomicU64::new(0),
            over: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        })
    }

    /// Returns whether the program that registered still runs in the process, as far as can be
    /// seen.
    pub fn is_still_mapped(&self) -> bool {
        let inode = self.memory.inode();
        images::maps(self.pid).zip(inode).is_some_and(|(maps, inode)| images::is_mapped(&maps, inode))
    }

    /// For polling: readable once the process is gone.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Returns the meaning of header words.
    pub fn space(&self) -> RwLockReadGuard<'_, AddressSpace> {
        self.space.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, for threads that encode its words on their own.
    pub fn shared_space(&self) -> &Space {
        &self.space
    }

    /// No more words will come: the process ended, or became another program, or is no longer of
    /// interest.
    pub fn mark_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// The process has ended.
    pub fn mark_gone(&self) {
        self.gone.store(true, Ordering::Release);
        self.mark_over();
    }

    /// Returns whether a signal ended it, as far as is known: it did not announce its end.
    fn was_killed(&self) -> bool {
        self.gone.load(Ordering::Acquire) && !self.is_leaving()
    }

    /// Returns whether it is about to end by its own will.
    fn is_leaving(&self) -> bool {
        self.memory.exits() || self.memory.exiting_thread() != 0
    }

    /// Returns whether [`Self::mark_over`] was called.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Returns whether everything was read and written.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn streams(&self) -> Arc<Vec<Arc<Stream>>> {
        lock(&self.streams).clone()
    }

    /// Returns whether there is anything to do for a worker.
    pub fn has_work(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        self.is_over()
            || self.memory.generation() != self.claims_seen.load(Ordering::Relaxed)
            || self.streams().iter().any(|stream| match stream.reader.try_lock() {
                Ok(reader) => {
                    reader.as_ref().is_some_and(|reader| stream.is_over() || reader.has_pending(self))
                }
                Err(_) => false, // another worker is at it
            })
    }

    /// Looks for rings that were claimed since the last time.
    fn discover(&self, output: &Output) {
        let mut discovery = lock(&self.discovery);
        let claims = self.memory.generation();
        self.claims_seen.store(claims, Ordering::Relaxed);
        let missing = claims.saturating_sub(discovery.found.into());
        if missing == 0 {
            return;
        }
        // The program takes the lowest free slot.
        let bound = missing.saturating_add(discovery.bound.into()).min(ring::RINGS.into()) as u32;
        let mut fresh: Vec<(u64, u32)> = (0..bound)
            .filter(|slot| !discovery.slots.contains(slot))
            .map(|slot| (slot, self.memory.ring(slot)))
            .filter(|(_, ring)| ring.state() == ring::SLOT_ACTIVE)
            .map(|(slot, ring)| (ring.generation(), slot))
            .collect();
        fresh.sort_unstable();
        let mut streams = Vec::clone(&self.streams());
        for (_, slot) in fresh {
            let (tid, owner) = (self.memory.ring(slot).tid(), self.memory.ring(slot).owner());
            let same = |stream: &&Arc<Stream>| stream.tid == tid && stream.thread.owner == owner;
            let thread = match streams.iter().find(same) {
                Some(stream) => stream.thread.clone(),
                None => {
                    // A kernel thread id is used again only after its thread is gone.
                    streams.iter().filter(|old| old.tid == tid).for_each(|old| old.mark_ended());
                    self.add_thread(&mut discovery, owner, tid, output)
                }
            };
            let number = thread.rings.fetch_add(1, Ordering::Relaxed).min(u8::MAX.into()) as u8;
            thread.open.fetch_add(1, Ordering::Relaxed);
            let late = self.memory.was_dormant();
            let reader = Reader::new(slot, self.index, thread.index, number, output.form(), late);
            if output.is_live() {
                output.bound(self.index, thread.index, number, Some(self.memory.ring(slot).stamps(0).first));
            }
            let reader = Mutex::new(Some(reader));
            let (over, ended) = (AtomicBool::new(false), AtomicBool::new(false));
            streams.push(Arc::new(Stream { tid, thread, over, ended, reader }));
            discovery.found += 1;
            discovery.slots.insert(slot);
            discovery.bound = discovery.bound.max(slot + 1);
        }
        *lock(&self.streams) = Arc::new(streams);
    }

    fn add_thread(&self, discovery: &mut Discovery, owner: u64, tid: u32, output: &Output) -> Arc<Thread> {
        let index = discovery.threads;
        discovery.threads += 1;
        count(&output.counters.threads, 1);
        let stamp = clock::stamp();
        output.event(&Event::ThreadStart { process: self.index, thread: index, tid, stamp });
        Arc::new(Thread { index, owner, rings: AtomicU32::new(0), open: AtomicU32::new(0) })
    }

    /// Finds out which threads are gone. Their memory becomes free once it is read.
    pub fn notice_dead_threads(&self) {
        if !self.same_namespace || self.is_over() {
            return;
        }
        // Rings before tasks: a thread that claims one in between is in neither list.
        let streams = self.streams();
        let tasks = PathBuf::from(format!("/proc/{}/task", self.pid.as_raw_pid()));
        let Ok(entries) = std::fs::read_dir(&tasks) else { return };
        let listed: FxHashSet<u32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        // The listing may skip some while others end, so it only narrows down whom to ask for.
        let missing: Vec<_> = streams
            .iter()
            .filter(|stream| !stream.is_over() && !listed.contains(&stream.tid))
            .filter(|stream| std::fs::symlink_metadata(tasks.join(stream.tid.to_string())).is_err())
            .collect();
        // Where a process is ended, one thread goes after the other.
        if !missing.is_empty() && self.lives_on(&tasks, &listed) {
            missing.iter().for_each(|stream| stream.mark_ended());
        }
    }

    /// Returns whether threads that are gone have ended by themselves, and not because their
    /// process ends. The kernel leaves two marks on threads that it ends, with a moment without any
    /// mark between them; so they are checked twice.
    fn lives_on(&self, tasks: &Path, listed: &FxHashSet<u32>) -> bool {
        let pid = self.pid.as_raw_pid() as u32;
        let others = listed.iter().filter(|&&tid| tid != pid);
        let lives = || {
            let state = std::iter::once(&pid).chain(others.clone()).find_map(|tid| Doom::of(tasks, *tid));
            state == Some(Doom::None) && !self.is_leaving() && !self.is_over()
        };
        lives() && {
            std::thread::sleep(Duration::from_millis(1));
            lives()
        }
    }

    /// Returns whether almost all rings are in use, so that new threads may soon find none.
    pub fn is_crowded(&self) -> bool {
        self.streams().len() >= ring::RINGS as usize / 2
    }

    /// One round over all threads. Returns how many of them had something to read.
    pub fn serve(&self, output: &Output, tools: &mut Tools, now: Instant) -> usize {
        self.memory.beat();
        let over = self.is_over();
        // Before the rings are looked for: a thread that is over has all its rings by then.
        let ended: FxHashSet<u32> = self
            .streams()
            .iter()
            .filter(|stream| stream.is_over())
            .map(|stream| stream.thread.index)
            .collect();
        self.discover(output);
        let mut busy = 0;
        let mut gone = 0;
        for stream in self.streams().iter() {
            let Ok(mut guard) = stream.reader.try_lock() else {
                tools.count_busy_ring();
                continue;
            };
            let Some(reader) = guard.as_mut() else {
                gone += 1;
                continue;
            };
            let round = &mut Round { process: self, output, tools };
            if over || ended.contains(&stream.thread.index) {
                busy += 1;
                self.close(stream, reader, round);
                *guard = None;
                gone += 1;
            } else {
                if reader.read(round) {
                    round.tools.count_busy_ring();
                    busy += 1;
                } else {
                    reader.read_if_due(round, now);
                }
                if output.is_live() {
                    reader.tell_bound(round, now);
                }
            }
        }
        if gone > 0 {
            let mut streams = lock(&self.streams);
            let left = streams.iter().filter(|stream| !stream.is_closed()).cloned().collect();
            *streams = Arc::new(left);
        }
        if over && self.streams().is_empty() && !self.closed.swap(true, Ordering::AcqRel) {
            count(&output.counters.unregistered_threads, self.memory.unregistered_threads().into());
            count(&output.counters.given_up, self.memory.given_up().into());
            if !self.is_accounted_for() {
                let pid = self.pid.as_raw_pid();
                output.note(format!("process {pid} wrote over memlode's memory: threads of it are lost"));
            }
            self.tell_unrecorded(output);
            self.tell_plain(output);
            let (clean, stamp) = (self.memory.exiting_thread() != 0, clock::stamp());
            output.event(&Event::ProcessEnd { process: self.index, clean, stamp });
        }
        busy
    }

    /// Reports the accesses that the process, or its children, made unrecorded.
    fn tell_unrecorded(&self, output: &Output) {
        let (pid, name) = (self.pid.as_raw_pid(), &self.name);
        if self.memory.is_sealed() {
            output.note(format!(
                "process {pid} ({name}) forbade itself system calls (seccomp); what it did from then on is not recorded"
            ));
        }
        let children = self.memory.lost_children();
        if children > 0 {
            output.note(format!(
                "{children} processes that process {pid} ({name}) forked did not find memlode and are not recorded"
            ));
        }
        let tasks = self.memory.foreign_tasks();
        if tasks > 0 {
            output.note(format!(
                "process {pid} ({name}) made {tasks} tasks that share its memory and are no threads of it (clone); what they did \
                 is not recorded, nor what the thread that made them did meanwhile if they have its thread-local data"
            ));
        }
    }

    /// Every claimed ring was found, except those whose thread was killed while claiming it.
    fn is_accounted_for(&self) -> bool {
        let discovery = lock(&self.discovery);
        let missing = self.memory.generation().saturating_sub(discovery.found.into());
        let unfinished = (0..discovery.bound.saturating_add(missing.min(8) as u32).min(ring::RINGS))
            .filter(|&slot| self.memory.ring(slot).state() == ring::SLOT_CLAIMED)
            .count();
        missing <= unfinished as u64
    }

    fn close(&self, stream: &Stream, reader: &mut Reader, round: &mut Round<'_>) {
        let ending = self.ending_of(stream, self.memory.ring(reader.slot()).has_ended());
        reader.close(round, &ending);
        if stream.thread.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            let (process, thread, stamp) = (self.index, stream.thread.index, clock::stamp());
            round.output.event(&Event::ThreadEnd { process, thread, stamp });
        }
        if !self.is_over() {
            // Forgotten before it is free: it may be claimed again at once.
            let ring = self.memory.ring(reader.slot());
            ring.drain();
            lock(&self.discovery).slots.remove(&reader.slot());
            ring.free();
        }
    }

    /// Returns how a thread that is over ended, which the program may have noticed.
    fn ending_of(&self, stream: &Stream, was_noticed: bool) -> Ending {
        // A thread may have been cancelled between any two words.
        let has_ended = (was_noticed || stream.ended.load(Ordering::Acquire)) && !self.memory.cancels();
        if has_ended || stream.tid == self.memory.exiting_thread() {
            Ending::Whole
        } else if self.was_killed() {
            Ending::Killed
        } else {
            Ending::CutShort
        }
    }

    /// Reads the words of every thread so far. `ending` applies to threads that live.
    fn read_everything(&self, output: &Output, tools: &mut Tools, ending: &Ending) {
        self.discover(output);
        self.notice_dead_threads();
        for stream in self.streams().iter() {
            if let Some(reader) = lock(&stream.reader).as_mut() {
                // Whoever is over is read to the end by those who close it.
                let ending = if stream.is_over() { &Ending::Runs } else { ending };
                reader.read_all(&mut Round { process: self, output, tools }, ending);
            }
        }
    }
}

/// The kernel's next act on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doom {
    None,
    /// It ends, or is to be ended with its process.
    Ends,
}

impl Doom {
    /// `None` if the thread is gone, or has ended and waits for others.
    fn of(tasks: &Path, tid: u32) -> Option<Doom> {
        /// Fields of /proc/…/stat behind the name, and bits of them.
        const FLAGS: usize = 6;
        const PENDING: usize = 28;
        const ENDS: u64 = 4;
        const SIGKILL: u64 = 1 << 8;
        let stat = std::fs::read_to_string(tasks.join(format!("{tid}/stat"))).ok()?;
        // The name is in parentheses and may hold anything.
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
        let bits = |field: usize| fields.get(field).and_then(|bits| bits.parse::<u64>().ok());
        match fields.first()? {
            &"Z" | &"X" => None,
            _ if bits(FLAGS)? & ENDS != 0 || bits(PENDING)? & SIGKILL != 0 => Some(Doom::Ends),
            _ => Some(Doom::None),
        }
    }
}

impl Stream {
    fn mark_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    fn mark_ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.mark_over();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    fn is_closed(&self) -> bool {
        self.reader.try_lock().is_ok_and(|reader| reader.is_none())
    }
}
