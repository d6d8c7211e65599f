//! The ways to sample on a machine: a clock everywhere, counters, and samples with the data of an
//! access and their source.
//!
//! The events of the third kind are encoded by the kernel's description of its units
//! (`/sys/bus/event_source/devices`). A unit that is missing there is hidden by a hypervisor, or
//! the processor does not have it.

use std::io;

use memlode_counters::refusal::{Circumstances, CountRefusal};

use crate::attributes::{EventAttributes, flag, kind};
use crate::records::{GENERAL_REGISTERS, RecordLayout, field};

/// The least cycles of a load that is sampled, unless the user chooses others: shorter ones are
/// hits of the first cache.
pub const LEAST_LATENCY: u64 = 30;
/// Units of processors with cores of two kinds: fast ones, and small ones.
const HYBRID_UNITS: [&str; 2] = ["cpu_core", "cpu_atom"];
/// Samples of memory events a second, as `perf mem` takes.
const RATE: u64 = 4000;
/// Events between samples of AMD's unit: a multiple of 16.
const IBS_PERIOD: u64 = 0x4_0000;

/// The parts of the kernel that sampling uses. Tests use fake kernels, whose units and refusals are
/// known.
pub trait SamplingKernel {
    /// Returns the text of a file below `/sys/bus/event_source/devices`.
    fn unit_file(&self, path: &str) -> Option<String>;

    /// Opens events that count at the same time, and closes them.
    ///
    /// # Errors
    /// The first error of `perf_event_open`.
    fn open(&self, events: &[EventAttributes]) -> io::Result<()>;

    /// Returns `/proc/sys/kernel/perf_event_paranoid`, if it can be read.
    fn paranoid(&self) -> Option<i32>;
}

/// A way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierKind {
    /// The kernel's clock.
    Clock,
    /// A counter of cycles.
    Counters,
    /// Loads and stores, each with its data's address and where that came from.
    Precise,
}

/// Why a way is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierRefusal {
    /// The processor's unit has no events that name data.
    NoMemoryEvents,
    /// The kernel refused.
    Refused(CountRefusal),
}

/// A way to sample, and whether this machine has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// The way.
    pub kind: TierKind,
    /// The events that were opened, or why they were not.
    pub found: Result<Vec<SampledEvent>, TierRefusal>,
}

/// An event as it is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledEvent {
    /// Its name, as `perf` would be given it.
    pub name: String,
    /// The attributes that the kernel gets.
    pub attributes: EventAttributes,
    /// The processors that have the event's unit, where cores are of two kinds; none: all have it.
    pub processors: Option<Vec<usize>>,
}

impl SampledEvent {
    /// Returns whether a processor has the event's unit.
    pub fn is_on(&self, processor: usize) -> bool {
        self.processors.as_ref().is_none_or(|processors| processors.contains(&processor))
    }
}

/// Returns all ways, of which each is tried.
pub fn tiers(kernel: &dyn SamplingKernel) -> [Tier; 3] {
    let clock = software("cpu-clock", 0);
    let counters = tried(kernel, cycles(kernel, RATE));
    let precise = match (memory_events(kernel, LEAST_LATENCY), &counters) {
        // Without a unit there is no event of one.
        (events, Err(TierRefusal::Refused(CountRefusal::NoUnit))) if events.is_empty() => counters.clone(),
        (events, _) if events.is_empty() => Err(TierRefusal::NoMemoryEvents),
        (events, _) => tried(kernel, events),
    };
    [
        Tier { kind: TierKind::Clock, found: tried(kernel, vec![vec![clock]]) },
        Tier { kind: TierKind::Counters, found: counters },
        Tier { kind: TierKind::Precise, found: precise },
    ]
}

/// Returns the events of a way to sample, in groups that are opened together, after each was tried. Samples of the clock
/// and of cycles are taken `rate` times a second of a thread's time, those of memory as often as `perf mem` does.
///
/// # Errors
/// If the machine does not have the way.
pub fn events(
    kernel: &dyn SamplingKernel,
    kind: TierKind,
    rate: u64,
) -> Result<Vec<Vec<SampledEvent>>, TierRefusal> {
    let groups = match kind {
        TierKind::Clock => vec![vec![clock(rate)]],
        TierKind::Counters => cycles(kernel, rate),
        TierKind::Precise => {
            let [_, _, precise] = tiers(kernel);
            precise.found?;
            let mut groups = memory_events(kernel, LEAST_LATENCY);
            for event in groups.iter_mut().flatten() {
                event.attributes.layout.sample_type |= field::CALLCHAIN;
            }
            groups
        }
    };
    tried(kernel, groups.clone())?;
    Ok(groups)
}

/// The kernel's clock.
fn clock(rate: u64) -> SampledEvent {
    let mut event = software("cpu-clock", 0);
    // Odd, so that nothing that a program does at a round interval keeps step with it.
    event.attributes.period = (1_000_000_000 / rate) | 1;
    event.attributes.layout = with_registers(event.attributes.layout);
    event
}

/// A counter of cycles of each kind of core.
fn cycles(kernel: &dyn SamplingKernel, rate: u64) -> Vec<Vec<SampledEvent>> {
    let mut event = clock(rate);
    event.name = "cycles".into();
    event.attributes.kind = kind::HARDWARE;
    event.attributes.period = rate;
    event.attributes.flags |= flag::RATE;
    // The kernel changes the period as it goes.
    event.attributes.layout.sample_type |= field::PERIOD;
    let of_unit = |unit: &&str| {
        let (number, processors) = (number(kernel, unit)?, Some(processors(kernel, unit)?));
        // Without a unit's number the kernel takes the unit of the fast cores.
        let attributes = EventAttributes { config: u64::from(number) << 32, ..event.attributes.clone() };
        Some(vec![SampledEvent { name: format!("{unit}/cycles/"), attributes, processors }])
    };
    let units: Vec<_> = HYBRID_UNITS.iter().filter_map(of_unit).collect();
    if units.is_empty() { vec![vec![event]] } else { units }
}

/// The same, and what instructions touch, and where frame pointers say that they were called from.
fn with_registers(layout: RecordLayout) -> RecordLayout {
    RecordLayout {
        sample_type: layout.sample_type | field::REGS_USER | field::CALLCHAIN,
        regs_user: GENERAL_REGISTERS,
        ..layout
    }
}

/// Makes samples of events copy a part of the stack, instead of following frame pointers. `bytes` is a multiple of 8.
pub fn copy_stacks(events: &mut [Vec<SampledEvent>], bytes: u32) {
    for event in events.iter_mut().flatten() {
        let attributes = &mut event.attributes;
        attributes.layout = with_registers(attributes.layout);
        attributes.layout.sample_type ^= field::CALLCHAIN | field::STACK_USER;
        attributes.stack_bytes = bytes;
    }
}

/// Opens groups of events, one after the other.
fn tried(
    kernel: &dyn SamplingKernel,
    groups: Vec<Vec<SampledEvent>>,
) -> Result<Vec<SampledEvent>, TierRefusal> {
    for group in &groups {
        let attributes: Vec<EventAttributes> = group.iter().map(|event| event.attributes.clone()).collect();
        kernel
            .open(&attributes)
            .map_err(|why| TierRefusal::Refused(refusal(kernel, &why, &attributes[0])))?;
    }
    Ok(groups.into_iter().flatten().collect())
}

fn refusal(kernel: &dyn SamplingKernel, why: &io::Error, event: &EventAttributes) -> CountRefusal {
    let units = ["cpu", "cpu_core", "armv8_pmuv3_0"];
    CountRefusal::of(
        why,
        Circumstances {
            paranoid: kernel.paranoid(),
            has_unit: units.iter().any(|unit| kernel.unit_file(&format!("{unit}/type")).is_some()),
            is_software: event.kind == kind::SOFTWARE,
            with_kernel: event.flags & flag::EXCLUDE_KERNEL == 0,
            pid: None,
        },
    )
}

/// An event of the kernel's own.
fn software(name: &str, config: u64) -> SampledEvent {
    let layout = RecordLayout {
        sample_type: field::IP | field::TID | field::TIME,
        sample_id_all: true,
        ..RecordLayout::default()
    };
    let flags = flag::SAMPLE_ID_ALL | flag::EXCLUDE_KERNEL;
    let attributes = EventAttributes {
        kind: kind::SOFTWARE,
        config,
        period: 1_000_003,
        flags,
        layout,
        ..EventAttributes::default()
    };
    SampledEvent { name: name.into(), attributes, processors: None }
}

/// The number that the kernel gave a unit.
fn number(kernel: &dyn SamplingKernel, unit: &str) -> Option<u32> {
    kernel.unit_file(&format!("{unit}/type"))?.trim().parse().ok()
}

/// The processors of a unit that not all have.
fn processors(kernel: &dyn SamplingKernel, unit: &str) -> Option<Vec<usize>> {
    kernel.unit_file(&format!("{unit}/cpus")).map(|text| ranges(text.trim()))
}

/// `0-3,8` as numbers.
pub(crate) fn ranges(text: &str) -> Vec<usize> {
    let one = |range: &str| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse::<usize>().ok()?..=to.parse::<usize>().ok().filter(|to| *to < 1 << 16)?)
    };
    text.split(',').filter_map(one).flatten().collect()
}

/// The events of this machine's loads and stores, in groups that are opened together; empty if it has none.
pub fn memory_events(kernel: &dyn SamplingKernel, least_latency: u64) -> Vec<Vec<SampledEvent>> {
    let mut groups = Vec::new();
    for unit in ["cpu"].iter().chain(&HYBRID_UNITS) {
        let event = |name: &str, parameters: &[(&str, u64)]| intel(kernel, unit, name, parameters);
        let Some(loads) = event("mem-loads", &[("ldlat", least_latency)]) else { continue };
        // Since Sapphire Rapids loads are sampled only beside this event, whose own samples mean nothing.
        let loads = event("mem-loads-aux", &[]).into_iter().chain([loads]).collect();
        groups.push(loads);
        groups.extend(event("mem-stores", &[]).map(|stores| vec![stores]));
    }
    if groups.is_empty() { amd(kernel).into_iter().map(|event| vec![event]).collect() } else { groups }
}

/// The fields of samples of memory events.
fn memory_layout() -> RecordLayout {
    let sample_type = field::IP
        | field::TID
        | field::TIME
        | field::ADDR
        | field::ID
        | field::PERIOD
        | field::WEIGHT
        | field::DATA_SRC;
    RecordLayout { sample_type, sample_id_all: true, read_format: 4, ..RecordLayout::default() }
}

fn intel(
    kernel: &dyn SamplingKernel,
    unit: &str,
    name: &str,
    parameters: &[(&str, u64)],
) -> Option<SampledEvent> {
    let text = kernel.unit_file(&format!("{unit}/events/{name}"))?;
    let mut attributes = encoded(kernel, unit, &text, parameters)?;
    attributes.period = RATE;
    attributes.flags = flag::RATE
        | flag::SAMPLE_ID_ALL
        | flag::EXCLUDE_KERNEL
        | precision(kernel, unit) << flag::PRECISE_SHIFT;
    attributes.layout = memory_layout();
    let options: String = parameters.iter().map(|(name, value)| format!(",{name}={value}")).collect();
    let processors = processors(kernel, unit);
    Some(SampledEvent { name: format!("{unit}/{name}{options}/P"), attributes, processors })
}

/// The highest precision of the unit; 2 where it is unknown, as all units have it that report data.
fn precision(kernel: &dyn SamplingKernel, unit: &str) -> u64 {
    let most = kernel.unit_file(&format!("{unit}/caps/max_precise"));
    most.and_then(|most| most.trim().parse().ok()).unwrap_or(2).min(3)
}

/// AMD's unit chooses operations of any kind, of user and kernel; newer kernels leave out those of the kernel.
fn amd(kernel: &dyn SamplingKernel) -> Option<SampledEvent> {
    const UNIT: &str = "ibs_op";
    let filter = kernel.unit_file(&format!("{UNIT}/format/swfilt")).is_some();
    let (text, name) = match filter {
        true => ("cnt_ctl=1,swfilt=1", "ibs_op/cnt_ctl=1,swfilt=1/u"),
        false => ("cnt_ctl=1", "ibs_op/cnt_ctl=1/"),
    };
    let mut attributes = encoded(kernel, UNIT, text, &[])?;
    attributes.period = IBS_PERIOD;
    attributes.flags = flag::SAMPLE_ID_ALL | if filter { flag::EXCLUDE_KERNEL } else { 0 };
    attributes.layout = memory_layout();
    Some(SampledEvent { name: name.into(), attributes, processors: None })
}

/// An event's numbers, from the kernel's text for it (`event=0xcd,umask=0x1,ldlat=3`) with some parameters changed, and
/// the places of parameters (`config:8-15`).
fn encoded(
    kernel: &dyn SamplingKernel,
    unit: &str,
    text: &str,
    parameters: &[(&str, u64)],
) -> Option<EventAttributes> {
    let mut found = EventAttributes { kind: number(kernel, unit)?, ..EventAttributes::default() };
    for term in text.trim().split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let digits = value.trim_start_matches("0x");
        let base = if digits.len() < value.len() { 16 } else { 10 };
        let given = parameters.iter().find(|(parameter, _)| *parameter == name).map(|(_, value)| *value);
        let value = given.map_or_else(|| u64::from_str_radix(digits, base).ok(), Some)?;
        let place = kernel.unit_file(&format!("{unit}/format/{name}"))?;
        let (word, bits) = place.trim().split_once(':')?;
        let word = match word {
            "config" => &mut found.config,
            "config1" => &mut found.config1,
            "config2" => &mut found.config2,
            _ => return None,
        };
        put(word, bits, value)?;
    }
    Some(found)
}

/// Puts a value's bits into the given ranges: `0-7,32-35`.
fn put(word: &mut u64, ranges: &str, mut value: u64) -> Option<()> {
    for range in ranges.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        let count = to.checked_sub(from)?.checked_add(1).filter(|_| to < 64)?;
        let mask = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        *word |= (value & mask) << from;
        value = value.checked_shr(count).unwrap_or(0);
    }
    // A value that does not fit would be another one.
    (value == 0).then_some(())
}

/// Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxSampling;

impl SamplingKernel for LinuxSampling {
    fn unit_file(&self, path: &str) -> Option<String> {
        let path = format!("/sys/bus/event_source/devices/{path}");
        memlode_files::read_text(path.as_ref(), memlode_files::SMALL).ok()
    }

    fn open(&self, events: &[EventAttributes]) -> io::Result<()> {
        let mut opened: Vec<perf_event::Counter> = Vec::new();
        for event in events {
            let builder = event_builder(event);
            let counter = match opened.first_mut() {
                Some(leader) => builder.build_with_group(leader)?,
                None => builder.build()?,
            };
            opened.push(counter);
        }
        Ok(())
    }

    fn paranoid(&self) -> Option<i32> {
        let text =
            memlode_files::read_text("/proc/sys/kernel/perf_event_paranoid".as_ref(), memlode_files::SMALL);
        text.ok()?.trim().parse().ok()
    }
}

/// An event of this thread.
pub(crate) fn event_builder<'a>(event: &EventAttributes) -> perf_event::Builder<'a> {
    let mut builder = perf_event::Builder::new(perf_event::events::Raw::new(event.config));
    let attributes = builder.attrs_mut();
    attributes.type_ = event.kind;
    attributes.__bindgen_anon_1.sample_period = event.period;
    attributes.__bindgen_anon_3.config1 = event.config1;
    attributes.__bindgen_anon_4.config2 = event.config2;
    attributes.sample_type = event.layout.sample_type;
    attributes.read_format = event.layout.read_format;
    attributes.sample_regs_user = event.layout.regs_user;
    attributes.sample_stack_user = event.stack_bytes;
    attributes.set_exclude_callchain_kernel(1);
    attributes.set_freq(u64::from(event.flags & flag::RATE != 0));
    attributes.set_sample_id_all(u64::from(event.layout.sample_id_all));
    attributes.set_precise_ip(event.precision().into());
    attributes.set_exclude_kernel(u64::from(event.flags & flag::EXCLUDE_KERNEL != 0));
    attributes.set_exclude_hv(0);
    builder
}

#[cfg(test)]
mod tests;
