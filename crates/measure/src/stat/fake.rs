//! A fake kernel whose counts and refusals are known, for tests of counting.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use memlode_counters::kernel::{CounterEvent, CounterGroup, Kernel, Reading, Target};

/// Opens groups whose counts a test decides.
pub(crate) struct FakeKernel {
    /// The error for an event, given whether the kernel's part is wanted.
    pub refuses: Rc<dyn Fn(CounterEvent, bool) -> Option<i32>>,
    pub paranoid: i32,
    pub has_unit: bool,
    /// The part of the time that counters run.
    pub runs: f64,
    /// The most events that a group may have: a test with more fails.
    pub most_events: usize,
    /// The true count of an event at the time of reading, in the group with this number among those
    /// that were opened.
    pub truth: Rc<dyn Fn(CounterEvent, usize) -> u64>,
    pub opened: Cell<usize>,
}

struct FakeGroup<F>(F);

impl FakeKernel {
    /// Counts everything, all the time.
    pub fn counting(truth: impl Fn(CounterEvent, usize) -> u64 + 'static) -> FakeKernel {
        FakeKernel {
            refuses: Rc::new(|_, _| None),
            paranoid: 2,
            has_unit: true,
            runs: 1.0,
            most_events: usize::MAX,
            truth: Rc::new(truth),
            opened: Cell::new(0),
        }
    }

    /// Refuses some events.
    pub fn refusing(self, refuses: impl Fn(CounterEvent, bool) -> Option<i32> + 'static) -> FakeKernel {
        FakeKernel { refuses: Rc::new(refuses), ..self }
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
        let group = self.opened.replace(self.opened.get() + 1);
        let (events, truth, counted) = (events.to_vec(), self.truth.clone(), (1e9 * self.runs) as u64);
        Ok(Box::new(FakeGroup(move || {
            let reading = |event: &CounterEvent| Reading {
                count: truth(*event, group),
                wanted: 1_000_000_000,
                counted,
            };
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

impl<F: Fn() -> Vec<Reading>> CounterGroup for FakeGroup<F> {
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        Ok((self.0)())
    }
}
