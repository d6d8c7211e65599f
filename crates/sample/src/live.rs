//! Samples of programs that run, taken by the kernel's CPU clock. No performance counter is used.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memlode_counters::kernel::{CounterEvent, builder};
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, Sampler};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::Error;
use crate::attributes::flag;
use crate::blocks::{BlockNote, BlockNotes};
use crate::records::{Record, RecordEvent, RecordLayout, field};
use crate::tally::{Sampled, Tally};
use crate::tiers::{SampledEvent, event_builder};

/// Bytes of each processor's ring: what an ordinary user may lock, and more than a second of samples.
pub(crate) const RING_BYTES: usize = 256 << 10;
/// Between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(20);

/// From `linux/perf_event.h`: lets an event write into another one's ring.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// The fields of samples that say where a program is, and no more.
const PLACES: RecordLayout = RecordLayout {
    sample_type: field::IP | field::TID | field::TIME,
    regs_user: 0,
    regs_intr: 0,
    read_format: 0,
    branch_type: 0,
    sample_id_all: true,
};

/// Samples the program that `run` starts and waits for, with all that it starts itself, from its `exec` on: the places
/// of samples alone.
///
/// # Errors
/// Fails as `run` does, and if the kernel refuses.
pub fn sample<T, E: From<Error>>(
    period_ns: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_of(Builder::new(Software::CPU_CLOCK), Tally::default(), period_ns, run)
}

/// Does as [`sample`], by another event than the CPU clock: a sample for each `period` of them in user space. Keeps each
/// sample.
///
/// # Errors
/// Fails as `run` does, and if the kernel refuses.
pub fn sample_event<T, E: From<Error>>(
    event: CounterEvent,
    period: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_of(builder(event), Tally::keeping(period), period, run)
}

fn sample_of<'a, T, E: From<Error>>(
    mut builder: Builder<'a>,
    tally: Tally,
    period: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sampling(&mut builder, period);
    of_processes(&mut builder).enable_on_exec(true);
    let mut rings = Rings::new(PLACES, open(&mut builder)?);
    let begun = Instant::now();
    let (result, tally) = drained(&mut rings, tally, Tally::take, |_, _| {}, run);
    let seconds = begun.elapsed().as_secs_f64();
    Ok((result?, Sampled { seconds, ..tally.finish() }))
}

/// Samples the program that `run` starts and waits for, with all that it starts itself, from its `exec` on, by events in
/// groups ([`crate::tiers::events`]), and keeps each sample. Blocks are those that the program notes, if it was given
/// memory for that.
///
/// # Errors
/// Fails as `run` does, and if the kernel refuses.
pub fn sample_events<T, E: From<Error>>(
    events: &[Vec<SampledEvent>],
    blocks: Option<&mut BlockNotes>,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    let mut opened = Opened::default();
    for cpu in processors().into_iter().filter(|cpu| is_sampled(events, *cpu)) {
        opened.add(events, None, cpu).map_err(Error::refused)?;
    }
    let mut rings = Rings::of(events, opened.samplers);
    let begun = Instant::now();
    let mut noted = Noted::new(blocks);
    let between = |tally: &mut Tally, is_last: bool| noted.look(tally, is_last);
    let (result, tally) = drained(&mut rings, keeping(events), Tally::take, between, run);
    let seconds = begun.elapsed().as_secs_f64();
    drop(opened.others);
    Ok((result?, Sampled { seconds, ..tally.finish_with(noted.lost()) }))
}

/// The fields of samples: the same of all events that are written.
fn layout(events: &[Vec<SampledEvent>]) -> RecordLayout {
    events.iter().find_map(|group| Some(group.last()?.attributes.layout)).unwrap_or_default()
}

/// Returns whether a processor has the unit of one of the events.
pub(crate) fn is_sampled(events: &[Vec<SampledEvent>], processor: usize) -> bool {
    events.iter().flatten().any(|event| event.is_on(processor))
}

/// Between two looks at the rings, so that samples with copies of stacks fill at most half of one.
fn pause(events: &[Vec<SampledEvent>]) -> Duration {
    const OTHER_FIELDS: u64 = 256;
    let bytes = |event: &SampledEvent| {
        let of = &event.attributes;
        let period = of.period.max(1);
        let rate = if of.flags & flag::RATE == 0 { 1_000_000_000 / period } else { period };
        rate.max(1).saturating_mul(u64::from(of.stack_bytes) + OTHER_FIELDS)
    };
    let most: u64 = events.iter().filter_map(|group| group.last()).map(bytes).sum();
    PAUSE.min(Duration::from_micros(RING_BYTES as u64 / 2 * 1_000_000 / most.max(1)))
}

/// Keeps samples of events, which stand for what they say, or for as much as lies between two of them.
pub(crate) fn keeping(events: &[Vec<SampledEvent>]) -> Tally {
    let fixed =
        |event: &SampledEvent| (event.attributes.flags & flag::RATE == 0).then_some(event.attributes.period);
    Tally::keeping(events.iter().find_map(|group| fixed(group.last()?)).unwrap_or(0))
}

/// Events that are open.
#[derive(Default)]
pub(crate) struct Opened {
    /// A ring for each processor.
    pub samplers: Vec<Sampler>,
    /// Events that write into one of these rings, or nowhere.
    pub others: Vec<Counter>,
}

impl Opened {
    /// Opens events on a processor, whose ring is the last if it has one: of a thread, or of what this one starts. Of a
    /// group the last event is written.
    pub fn add(&mut self, events: &[Vec<SampledEvent>], thread: Option<i32>, cpu: usize) -> io::Result<()> {
        self.add_to(events, thread, cpu, None)
    }

    /// Opens events that write into a ring that is there.
    pub fn add_to(
        &mut self,
        events: &[Vec<SampledEvent>],
        thread: Option<i32>,
        cpu: usize,
        mut ring: Option<RawFd>,
    ) -> io::Result<()> {
        let mut is_first = true;
        for group in events.iter().filter(|group| group.iter().all(|event| event.is_on(cpu))) {
            let mut leader: Option<Counter> = None;
            for (at, event) in group.iter().enumerate() {
                let mut builder = event_builder(&event.attributes);
                builder.inherit(true).one_cpu(cpu);
                match thread {
                    Some(thread) => builder.observe_pid(thread).enabled(true),
                    None => builder.observe_self().enable_on_exec(true),
                };
                // Programs note their blocks by this clock.
                builder.clockid(Clock::MONOTONIC);
                // What processes map has to be told once.
                let is_written = at + 1 == group.len();
                if is_written && std::mem::take(&mut is_first) {
                    of_processes(&mut builder);
                }
                let counter = match &mut leader {
                    Some(leader) => builder.build_with_group(leader)?,
                    None => builder.build()?,
                };
                match (is_written, ring) {
                    (false, _) => leader = Some(counter),
                    (true, Some(ring)) => {
                        share(&counter, ring)?;
                        self.others.push(counter);
                    }
                    (true, None) => {
                        ring = Some(counter.as_raw_fd());
                        self.samplers.push(counter.sampled(RING_BYTES)?);
                    }
                }
            }
            self.others.extend(leader);
        }
        Ok(())
    }
}

/// Makes an event write into another one's ring.
fn share(counter: &Counter, ring: RawFd) -> io::Result<()> {
    // SAFETY: both are descriptors of events that are open, of one processor; the kernel checks them.
    match unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Samples this thread while it runs `work`: addresses, and how many.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn sample_self(period_ns: u64, work: impl FnOnce()) -> Result<BTreeMap<u64, u64>, Error> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    sampling(&mut builder, period_ns);
    builder.enabled(true);
    let mut rings = Rings::new(PLACES, open(&mut builder)?);
    let take = |found: &mut BTreeMap<u64, u64>, record: Record| {
        if let RecordEvent::Sample(sample) = record.event {
            *found.entry(sample.ip).or_default() += 1;
        }
    };
    Ok(drained(&mut rings, BTreeMap::new(), take, |_, _| {}, work).1)
}

/// Returns whether this machine's processor counts cycles for this user: many guests have no counters.
pub fn counts_cycles() -> bool {
    Builder::new(perf_event::events::Hardware::CPU_CYCLES).build().is_ok()
}

/// Makes an event interrupt user space once in `period` times, also in programs that it starts.
fn sampling(builder: &mut Builder<'_>, period: u64) {
    builder.sample_period(period).exclude_kernel(true).exclude_hv(true).inherit(true);
    builder.attrs_mut().sample_type = PLACES.sample_type;
}

/// Makes the kernel record mappings, starts and `exec`s of processes.
pub(crate) fn of_processes<'a, 'b>(builder: &'b mut Builder<'a>) -> &'b mut Builder<'a> {
    builder.mmap(true).mmap2(true).comm(true).comm_exec(true).task(true).sample_id_all(true)
}

/// Numbers of the processors that this thread may run on.
pub(crate) fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// One for each processor: children are followed only so.
fn open(builder: &mut Builder<'_>) -> Result<Vec<Sampler>, Error> {
    let one = |cpu| builder.observe_self().one_cpu(cpu).build()?.sampled(RING_BYTES);
    processors().into_iter().map(one).collect::<Result<_, _>>().map_err(Error::refused)
}

/// Rings of several processors, read in the order of time.
pub(crate) struct Rings {
    layout: RecordLayout,
    samplers: Vec<Sampler>,
    waiting: Vec<Record>,
    /// The latest time of the last look.
    newest: u64,
    /// Between two looks.
    pub(crate) pause: Duration,
}

impl Rings {
    fn new(layout: RecordLayout, samplers: Vec<Sampler>) -> Rings {
        Rings { layout, samplers, waiting: Vec::new(), newest: 0, pause: PAUSE }
    }

    /// Rings of events.
    pub(crate) fn of(events: &[Vec<SampledEvent>], samplers: Vec<Sampler>) -> Rings {
        Rings { pause: pause(events), ..Rings::new(layout(events), samplers) }
    }

    /// Empties the rings. Records up to the latest one of the last call are passed on: everything
    /// before it was in its ring by then, and has been read now.
    pub(crate) fn look(&mut self, take: &mut dyn FnMut(Record)) {
        let mut newest = self.newest;
        for sampler in &mut self.samplers {
            while let Some(record) = sampler.next_record() {
                let parsed = self.layout.parse(record.ty(), record.misc(), &record.to_contiguous());
                newest = parsed.as_ref().map_or(newest, |record| record.time.max(newest));
                self.waiting.extend(parsed);
            }
        }
        let until = std::mem::replace(&mut self.newest, newest);
        self.hand_over(until, take);
    }

    /// Passes on the remaining records.
    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(Record)) {
        self.look(take);
        self.hand_over(u64::MAX, take);
    }

    fn hand_over(&mut self, until: u64, take: &mut dyn FnMut(Record)) {
        // Those of one time stay in the order of their ring.
        self.waiting.sort_by_key(|record| record.time);
        let count = self.waiting.partition_point(|record| record.time <= until);
        self.waiting.drain(..count).for_each(take);
    }
}

/// Notes of blocks that wait for the kernel's records of what their process had mapped.
pub(crate) struct Noted<'a> {
    notes: Option<&'a mut BlockNotes>,
    /// Notes of the last look, and of the one before.
    waiting: [Vec<BlockNote>; 2],
}

impl<'a> Noted<'a> {
    pub(crate) fn new(notes: Option<&'a mut BlockNotes>) -> Noted<'a> {
        Noted { notes, waiting: Default::default() }
    }

    /// Notes for which there was no room.
    pub(crate) fn lost(&self) -> u64 {
        self.notes.as_ref().map_or(0, |notes| notes.lost())
    }

    /// Passes on notes that were taken before the rings were emptied the last time: every record that is older is known
    /// by now.
    pub(crate) fn look(&mut self, tally: &mut Tally, is_last: bool) {
        let Some(notes) = self.notes.as_deref_mut() else { return };
        let [last, before] = &mut self.waiting;
        let mut pass = |of: &mut Vec<BlockNote>, notes: &BlockNotes| {
            let newest = of.iter().map(|note| note.time).max();
            of.drain(..).for_each(|note| tally.note(&note, notes));
            newest.into_iter().for_each(|newest| tally.settle(newest));
        };
        pass(before, notes);
        std::mem::swap(last, before);
        notes.take(is_last, last);
        if is_last {
            pass(before, notes);
            pass(last, notes);
        }
    }
}

/// Runs `work` while another thread empties the rings into `found`, and does `between` after each look; its second
/// argument is true after the last one.
fn drained<T, S: Send>(
    rings: &mut Rings,
    mut found: S,
    take: fn(&mut S, Record),
    mut between: impl FnMut(&mut S, bool) + Send,
    work: impl FnOnce() -> T,
) -> (T, S) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| {
            // What came before the end is in the rings when the end is seen.
            while !done.load(Ordering::Acquire) {
                rings.look(&mut |record| take(&mut found, record));
                between(&mut found, false);
                std::thread::sleep(rings.pause);
            }
            rings.finish(&mut |record| take(&mut found, record));
            between(&mut found, true);
            found
        });
        let result = work();
        done.store(true, Ordering::Release);
        (result, drain.join().expect("the thread only parses"))
    })
}
