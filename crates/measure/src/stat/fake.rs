//! A fake kernel whose counts and refusals are known, for tests of counting.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use memlode_counters::kernel::{CounterEvent, CounterGroup, Kernel, Reading, Target};

/// Opens groups whose counts a test decides.
pub(crate) struct FakeKernel {
    /// The error for an event, given whether the kernel's part is wanted.
    pub refuses: Arc<dyn Fn(CounterEvent, bool) -> Option<i32> + Send + Sync>,
    pub paranoid: i32,
    pub has_unit: bool,
    /// Nanoseconds for which counters are on.
    pub wanted: u64,
    /// The part of the time that counters run.
    pub runs: f64,
    /// The most events that a group may have: a test with more fails.
    pub most_events: usize,
    /// The true count of an event at the time of reading, in the group with this number among those
    /// that were opened.
    pub truth: Arc<dyn Fn(CounterEvent, usize) -> u64 + Send + Sync>,
    pub opened: AtomicUsize,
}

struct FakeGroup<F>(F);

impl FakeKernel {
    /// Counts everything, all the time.
    pub fn counting(truth: impl Fn(CounterEvent, usize) -> u64 + Send + Sync + 'static) -> FakeKernel {
        FakeKernel {
            refuses: Arc::new(|_, _| None),
            paranoid: 2,
            has_unit: true,
            wanted: 1_000_000_000,
            runs: 1.0,
            most_events: usize::MAX,
            truth: Arc::new(truth),
            opened: AtomicUsize::new(0),
        }
    }

    /// Refuses some events.
    pub fn refusing(
        self,
        refuses: impl Fn(CounterEvent, bool) -> Option<i32> + Send + Sync + 'static,
    ) -> FakeKernel {
        FakeKernel { refuses: Arc::new(refuses), ..self }
    }
}

impl Kernel for FakeKernel {
    fn open(
        &self,
        events: &[CounterEvent],
        _: Target,
        with_kernel: bool,
    ) -> io::Result<Box<dyn CounterGroup>> {
        assert!(events.len() <= self.most_events, "{events:?} do not fit");
        if let Some(errno) = events.iter().find_map(|event| (self.refuses)(*event, with_kernel)) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let group = self.opened.fetch_add(1, Ordering::Relaxed);
        let (events, truth, counted) =
            (events.to_vec(), self.truth.clone(), (self.wanted as f64 * self.runs) as u64);
        let wanted = self.wanted;
        Ok(Box::new(FakeGroup(move || {
            let reading = |event: &CounterEvent| Reading { count: truth(*event, group), wanted, counted };
            events.iter().map(reading).collect::<Vec<Reading>>()
        })))
    }

    fn paranoid(&self) -> Option<i32> {
        Some(self.paranoid)
    }

    fn has_unit(&self) -> bool {
        self.has_unit
    }
}

impl<F: Fn() -> Vec<Reading> + Send> CounterGroup for FakeGroup<F> {
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        Ok((self.0)())
    }
}
