//! Samples of programs that run, taken by the kernel's CPU clock. No performance counter is used.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memlode_counters::kernel::{CounterEvent, builder};
use perf_event::events::Software;
use perf_event::{Builder, Sampler};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::Error;
use crate::records::{GENERAL_REGISTERS, Record, RecordEvent, RecordLayout, field};
use crate::tally::{Sampled, Tally};

/// Bytes of each processor's ring: what an ordinary user may lock, and more than a second of samples.
pub(crate) const RING_BYTES: usize = 256 << 10;
/// Between two looks at the rings.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// The fields of samples with the place in the program, and no others.
const PLACES: RecordLayout = RecordLayout {
    sample_type: field::IP | field::TID | field::TIME,
    regs_user: 0,
    regs_intr: 0,
    read_format: 0,
    branch_type: 0,
    sample_id_all: true,
};

/// The fields of samples that say what the instruction touches, too, and where frame pointers say that it was called.
pub(crate) const WITH_REGISTERS: RecordLayout = RecordLayout {
    sample_type: PLACES.sample_type | field::REGS_USER | field::CALLCHAIN,
    regs_user: GENERAL_REGISTERS,
    ..PLACES
};

/// Samples the program that `run` starts and waits for, and all programs that it starts, from its
/// `exec` on. Samples have places only.
///
/// # Errors
/// Those of `run`, and if the kernel refuses.
pub fn sample<T, E: From<Error>>(
    period_ns: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_with(PLACES, Tally::default(), period_ns, run)
}

/// Does as [`sample`], and keeps each sample, with its registers.
///
/// # Errors
/// Those of `run`, and if the kernel refuses.
pub fn sample_registers<T, E: From<Error>>(
    period_ns: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_with(WITH_REGISTERS, Tally::keeping(period_ns), period_ns, run)
}

fn sample_with<T, E: From<Error>>(
    layout: RecordLayout,
    tally: Tally,
    period_ns: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_of(Builder::new(Software::CPU_CLOCK), layout, tally, period_ns, run)
}

/// Does as [`sample`], by another event than the CPU clock: a sample for each `period` of them in user space. Keeps each
/// sample.
///
/// # Errors
/// Those of `run`, and if the kernel refuses.
pub fn sample_event<T, E: From<Error>>(
    event: CounterEvent,
    period: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sample_of(builder(event), PLACES, Tally::keeping(period), period, run)
}

fn sample_of<'a, T, E: From<Error>>(
    mut builder: Builder<'a>,
    layout: RecordLayout,
    tally: Tally,
    period: u64,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Sampled), E> {
    sampling(&mut builder, layout, period);
    of_processes(&mut builder).enable_on_exec(true);
    let mut rings = Rings::new(layout, open(&mut builder)?);
    let begun = Instant::now();
    let (result, tally) = drained(&mut rings, tally, Tally::take, run);
    let seconds = begun.elapsed().as_secs_f64();
    Ok((result?, Sampled { seconds, ..tally.finish() }))
}

/// Samples this thread while it runs `work`: addresses, and how many.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn sample_self(period_ns: u64, work: impl FnOnce()) -> Result<BTreeMap<u64, u64>, Error> {
    let mut builder = clock(PLACES, period_ns);
    builder.enabled(true);
    let mut rings = Rings::new(PLACES, open(&mut builder)?);
    let take = |found: &mut BTreeMap<u64, u64>, record: Record| {
        if let RecordEvent::Sample(sample) = record.event {
            *found.entry(sample.ip).or_default() += 1;
        }
    };
    Ok(drained(&mut rings, BTreeMap::new(), take, work).1)
}

/// Returns whether this machine's processor counts cycles for this user: many guests have no counters.
pub fn counts_cycles() -> bool {
    Builder::new(perf_event::events::Hardware::CPU_CYCLES).build().is_ok()
}

/// The clock in user space, for the chosen processes or threads, and for all that they start.
pub(crate) fn clock<'a>(layout: RecordLayout, period_ns: u64) -> Builder<'a> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    sampling(&mut builder, layout, period_ns);
    builder
}

/// Makes an event interrupt user space once in `period` times, also in programs that it starts.
fn sampling(builder: &mut Builder<'_>, layout: RecordLayout, period: u64) {
    builder.sample_period(period).exclude_kernel(true).exclude_hv(true).inherit(true);
    let attributes = builder.attrs_mut();
    attributes.sample_type = layout.sample_type;
    attributes.sample_regs_user = layout.regs_user;
    attributes.set_exclude_callchain_kernel(1);
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
}

impl Rings {
    pub(crate) fn new(layout: RecordLayout, samplers: Vec<Sampler>) -> Rings {
        Rings { layout, samplers, waiting: Vec::new(), newest: 0 }
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

/// Runs `work` while another thread empties the rings into `found`.
fn drained<T, S: Send>(
    rings: &mut Rings,
    mut found: S,
    take: fn(&mut S, Record),
    work: impl FnOnce() -> T,
) -> (T, S) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| {
            // What came before the end is in the rings when the end is seen.
            while !done.load(Ordering::Acquire) {
                rings.look(&mut |record| take(&mut found, record));
                std::thread::sleep(PAUSE);
            }
            rings.finish(&mut |record| take(&mut found, record));
            found
        });
        let result = work();
        done.store(true, Ordering::Release);
        (result, drain.join().expect("the thread only parses"))
    })
}
