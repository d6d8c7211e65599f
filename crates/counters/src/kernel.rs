//! The kernel's side of counting. Tests use a fake kernel, whose counts and refusals are known.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use perf_event::events::{Raw, Software as KernelSoftware};
use perf_event::{Builder, Counter};

use crate::software::Software;

/// An event that a counter can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterEvent {
    /// One of the kernel's.
    Software(Software),
    /// One of the processor's, by its code.
    Raw(u64),
}

/// The processes that are observed, with all their threads and with the children that they make from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The next program that this thread starts, from its `exec` on.
    NextProgram,
    /// The next program that this thread starts, while its counters are on. They are off, and the
    /// program turns them on and off itself, by [`CounterGroup::descriptors`]. This thread must end
    /// once it has started the program, as it would be counted, too.
    Region,
    /// A process that runs, from [`CounterGroup::start`] on.
    Process(u32),
}

/// The result of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The count.
    pub count: u64,
    /// Nanoseconds for which it was wanted.
    pub wanted: u64,
    /// Nanoseconds for which it counted.
    pub counted: u64,
}

/// The kernel, as far as counters go.
pub trait Kernel: Sync {
    /// Opens counters that count at the same time or not at all.
    ///
    /// # Errors
    /// The first error of `perf_event_open`.
    fn open(
        &self,
        events: &[CounterEvent],
        target: Target,
        with_kernel: bool,
    ) -> io::Result<Box<dyn CounterGroup>>;

    /// Returns `/proc/sys/kernel/perf_event_paranoid`, if it can be read.
    fn paranoid(&self) -> Option<i32>;

    /// Returns whether the kernel has a unit of this processor.
    fn has_unit(&self) -> bool;
}

/// Counters that count at the same time.
pub trait CounterGroup: Send {
    /// Returns the descriptors by which all counters are turned on and off.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Starts the counters of a process that runs already.
    ///
    /// # Errors
    /// The kernel's.
    fn start(&mut self) -> io::Result<()>;

    /// Returns the counts since the events were opened, in the order of the events.
    ///
    /// # Errors
    /// The kernel's.
    fn read(&mut self) -> io::Result<Vec<Reading>>;
}

/// Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

/// One group for each thread that is observed; the first counter of each leads.
struct LinuxGroup(Vec<Vec<Counter>>);

impl Kernel for Linux {
    fn open(
        &self,
        events: &[CounterEvent],
        target: Target,
        with_kernel: bool,
    ) -> io::Result<Box<dyn CounterGroup>> {
        let groups = match target {
            Target::NextProgram | Target::Region => vec![group(events, target, with_kernel)?],
            Target::Process(pid) => {
                let mut groups = Vec::new();
                for thread in threads(pid)? {
                    match group(events, Target::Process(thread), with_kernel) {
                        Ok(group) => groups.push(group),
                        // The thread ended meanwhile.
                        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => return Err(error),
                    }
                }
                if groups.is_empty() {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                groups
            }
        };
        Ok(Box::new(LinuxGroup(groups)))
    }

    fn paranoid(&self) -> Option<i32> {
        fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
    }

    fn has_unit(&self) -> bool {
        // `cpu`, or one for each kind of core: `cpu_core` and `cpu_atom`; on Arm `armv8_pmuv3_0` and its like.
        let is_unit = |name: &str| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv");
        let units = fs::read_dir("/sys/bus/event_source/devices");
        units.into_iter().flatten().flatten().any(|entry| entry.file_name().to_str().is_some_and(is_unit))
    }
}

impl CounterGroup for LinuxGroup {
    fn descriptors(&self) -> Vec<RawFd> {
        self.0.iter().filter_map(|group| group.first()).map(AsRawFd::as_raw_fd).collect()
    }

    fn start(&mut self) -> io::Result<()> {
        self.0.iter_mut().filter_map(|group| group.first_mut()).try_for_each(Counter::enable_group)
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        let events = self.0.first().map_or(0, Vec::len);
        let mut sums = vec![Reading { count: 0, wanted: 0, counted: 0 }; events];
        for group in &mut self.0 {
            for (counter, sum) in group.iter_mut().zip(&mut sums) {
                let read = counter.read_count_and_time()?;
                sum.count += read.count;
                sum.wanted += read.time_enabled;
                sum.counted += read.time_running;
            }
        }
        Ok(sums)
    }
}

/// Opens one group, of the calling thread's next program or of another thread.
fn group(events: &[CounterEvent], target: Target, with_kernel: bool) -> io::Result<Vec<Counter>> {
    let mut counters: Vec<Counter> = Vec::new();
    for event in events {
        let mut builder = builder(*event);
        // The leader starts all.
        builder.inherit(true).exclude_kernel(!with_kernel).enabled(!counters.is_empty());
        match target {
            Target::Process(thread) => builder.observe_pid(thread as libc::pid_t),
            Target::NextProgram => builder.enable_on_exec(counters.is_empty()),
            Target::Region => &mut builder,
        };
        let counter = match counters.first_mut() {
            Some(leader) => builder.build_with_group(leader)?,
            None => builder.build()?,
        };
        counters.push(counter);
    }
    Ok(counters)
}

/// Begins a counter of an event.
pub fn builder<'a>(event: CounterEvent) -> Builder<'a> {
    match event {
        CounterEvent::Software(event) => Builder::new(software(event)),
        CounterEvent::Raw(code) => Builder::new(Raw::new(code)),
    }
}

fn software(event: Software) -> KernelSoftware {
    match event {
        Software::TaskClock => KernelSoftware::TASK_CLOCK,
        Software::MinorFaults => KernelSoftware::PAGE_FAULTS_MIN,
        Software::MajorFaults => KernelSoftware::PAGE_FAULTS_MAJ,
        Software::ContextSwitches => KernelSoftware::CONTEXT_SWITCHES,
        Software::Migrations => KernelSoftware::CPU_MIGRATIONS,
    }
}

/// Returns the threads of a process.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let none = |_| io::Error::from_raw_os_error(libc::ESRCH);
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(none)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}
