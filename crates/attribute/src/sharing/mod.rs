//! The time that threads lose by taking lines from each other, if each has a core of its own.
//!
//! ```text
//! survey   every thread by itself: lines that several use and one writes; what orders threads
//! eras     of threads that make others: lines that they only hand over
//! iterations    of waiting loops, those in vain: for the survey and the cursor there are none
//! lines    their size, the machine's
//! places   numbers of sites, and of addresses where a site does not say what it accesses
//! members  of the program's types, by address
//! locks    that several threads take, whose order is the schedule's
//! order    who waits for which release of whom
//! cursor   each thread's accesses to those lines; all else is instructions
//! tape     the same for a second run, with other costs
//! model    memlode_simulate::side_by_side: clocks, transfers, what each was for
//! ```
//!
//! Threads are not replayed at their recorded speed: each goes on as fast as its instructions and
//! its lines allow, whatever machine the trace was recorded on. The order that the program enforces
//! is kept. Decisions of the schedule (which thread got a lock first, or took which piece of work)
//! stay as recorded.
//!
//! No order of the whole trace is needed: each traced thread is read by itself. Only accesses to
//! the lines that the survey found are simulated, by one worker, so the result does not depend on
//! the number of workers. It equals a naive model to the digit
//! (`crates/simulate/tests/side_by_side/`). Under an edit, a [`Relocation`] gives the addresses: it
//! knows objects by their addresses, not by time.
//!
//! The model comes from a study of cores whose increments wait for a line that was taken away. On
//! another kind of core, increments go on with the value in the store buffer, and predicted losses
//! were up to a hundred times too large. So the machine file gives the kind of its cores
//! (`counting_slowdown`), and `bench/sharing/kernels.c` measures both.

mod contended;
mod cursor;
mod eras;
mod iterations;
mod lines;
mod locks;
mod members;
mod order;
mod places;
mod relocation;
mod survey;
mod tape;

use memlode_machine::{Machine, SharingCosts};
use memlode_simulate::Space;
use memlode_simulate::side_by_side::{
    CYCLE, Kind, Outcome, Pace, Pair, Program, Sampling, Taken, ThreadOutcome, Ticks, simulate,
};
use memlode_trace::Trace;
use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::objects::classes::{ClassId, Home};
use crate::profile::Profile;
use cursor::{Recorded, Threads};
use lines::Lines;
pub use locks::ContendedLock;
use members::Objects;
pub use members::OwnMember;
use places::{Located, Places};
pub use relocation::Relocation;
use survey::{Survey, ThreadFacts};
use tape::Recorder;

/// Accesses to lines of several threads that are simulated one by one; of more, a part is.
const MOST_STEPS: u64 = 24_000_000;
/// Accesses in a row that are, then.
const WINDOW: u64 = 200_000;

/// The most bytes of a stack: addresses that are further apart are on several stacks.
const LARGEST_STACK: u64 = 64 << 20;
/// Bytes that the variables of the innermost function may take.
const LAST_FRAME: u64 = 16 << 10;

/// In which order threads are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Each on a core of its own.
    #[default]
    Parallel,
    /// No earlier than it was recorded.
    Recorded,
}

/// The need for the bytes that were shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shares {
    /// Other bytes of the line were needed.
    Falsely,
    /// Bytes that another thread had written.
    Truly,
    /// Nothing is lost, but the line comes once: the other thread has ended, or made this one
    /// afterwards, or the variable it wrote has ended.
    HandedOver,
}

/// An access, by thread and site, to objects of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sharer {
    /// The thread.
    pub thread: ThreadId,
    /// The site.
    pub site: SiteId,
    /// The class of the object.
    pub class: ClassId,
    /// The member, if the address and not the site determines it.
    pub member: Option<OwnMember>,
}

/// A line that two accesses take from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedPair {
    /// The process.
    pub process: ProcessId,
    /// Address of the line.
    pub line: u64,
    /// The need for it.
    pub shares: Shares,
    /// The access that waited for the line.
    pub missed: Sharer,
    /// The access that had taken it away, or for true sharing wrote the bytes; `None` if there was
    /// none before.
    pub other: Option<Sharer>,
    /// Number of times that the line came.
    pub transfers: u64,
    /// Cycles lost to that.
    pub cycles: f64,
}

/// The outcome for a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingThread {
    /// The thread.
    pub thread: ThreadId,
    /// Cycles lost to transfers.
    pub lost_cycles: f64,
    /// Cycles that its instructions take without any transfer, and without a miss of any cache.
    pub alone_cycles: f64,
    /// Cycles in which it waited for other threads.
    pub waited_cycles: f64,
}

/// Losses of threads to each other.
#[derive(Clone, Debug)]
pub struct SharingProfile {
    /// In which order they were replayed.
    pub order: Order,
    /// For a recorded order: the longest time, in nanoseconds, during which a thread's progress is
    /// unknown.
    pub fineness_ns: Option<u64>,
    /// Threads whose creation was not recorded: they began at their first record at the latest.
    pub unknown_starts: usize,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Lines that several threads use, one of them writing.
    pub lines: usize,
    /// Number of accesses to these of which one was simulated.
    pub one_in: u64,
    /// Acquisitions whose release could not come before them.
    pub unmet: u64,
    /// The clock that cycles are of, in GHz.
    pub clock_ghz: f64,
    /// Indexed by thread.
    pub threads: Vec<SharingThread>,
    /// Indexed by line and pair of accesses.
    pub pairs: Vec<SharedPair>,
    /// Locks that several threads take often, the costliest first if threads took turns.
    pub locks: Vec<ContendedLock>,
    /// Cycles lost by all threads where cores are far from each other, if the machine has such.
    pub far_cycles: Option<f64>,
    /// Stacks, by their first and last address.
    stacks: Vec<(ThreadId, u64, u64)>,
    /// The sites of the first thread of each process, indexed by site: true if they ran while there
    /// were others.
    beside: FxHashMap<ThreadId, Vec<bool>>,
}

impl SharingProfile {
    /// Cycles lost by all threads.
    pub fn lost_cycles(&self) -> f64 {
        self.threads.iter().map(|thread| thread.lost_cycles.max(0.0)).sum()
    }

    /// Returns the thread on whose stack a line of no object is.
    pub fn stack_at(&self, line: u64) -> Option<ThreadId> {
        let mut stacks = self.stacks.iter();
        stacks.find(|(_, first, last)| (*first..=*last).contains(&line)).map(|(thread, ..)| *thread)
    }

    /// Returns whether a thread may have executed a site while its process had other threads.
    pub fn is_beside_others(&self, thread: ThreadId, site: SiteId) -> bool {
        let known = self.beside.get(&thread).and_then(|beside| beside.get(site.0 as usize));
        known.copied().unwrap_or(true)
    }

    /// Transfers.
    pub fn transfers(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.transfers).sum()
    }
}

/// Computes the time that the threads of a trace lose to each other on a machine. `None` if no
/// process has several threads that recorded accesses.
///
/// `profile` is of the same trace. Threads are replayed as `order` says; by default side by side,
/// if the creation of all was recorded.
pub fn sharing(
    trace: &Trace,
    profile: &Profile,
    machine: &Machine,
    order: Option<Order>,
    workers: usize,
) -> Option<SharingProfile> {
    sharing_moved(trace, profile, machine, order, None, workers)
}

/// Like [`sharing`], for a trace some of whose objects are moved. Operations that order threads
/// stay as recorded.
pub fn sharing_moved(
    trace: &Trace,
    profile: &Profile,
    machine: &Machine,
    order: Option<Order>,
    moved: Option<&dyn Relocation>,
    workers: usize,
) -> Option<SharingProfile> {
    let mut survey = survey::survey(trace, Lines::of(machine), moved, workers)?;
    let beside = survey.threads.iter_mut().filter(|facts| facts.is_first);
    let beside =
        beside.filter_map(|facts| Some((facts.thread?, std::mem::take(&mut facts.beside)))).collect();
    let locks = locks::locks(&survey.threads);
    let orders = order::orders(&survey.threads, &locks.exclusive);
    let default = if orders.unknown == 0 { Order::Parallel } else { Order::Recorded };
    let order = order.unwrap_or(default);
    let clock_ghz = machine.costs.clock_ghz.value;
    let recorded = recorded(trace, &survey, clock_ghz);
    let fineness = survey.threads.iter().map(|facts| facts.longest).max().zip(trace.clock());
    let mut found = SharingProfile {
        order,
        fineness_ns: fineness.map(|(ticks, clock)| clock.ns(ticks) - clock.ns(0)),
        unknown_starts: orders.unknown,
        line_bytes: survey.size.bytes,
        lines: survey.lines.len(),
        one_in: survey.accesses.div_ceil(MOST_STEPS).max(1),
        unmet: 0,
        clock_ghz,
        threads: Vec::new(),
        pairs: Vec::new(),
        locks: Vec::new(),
        far_cycles: None,
        stacks: survey.threads.iter().filter_map(stack_of).collect(),
        beside,
    };
    let sampling = match found.one_in {
        1 => Sampling::ALL,
        every => Sampling { window: WINDOW, every },
    };
    let run = |program: &mut dyn Program, costs: &SharingCosts| {
        simulate(program, survey.lines.len(), &pace(costs, machine), sampling)
    };
    let recorded = recorded.filter(|_| order == Order::Recorded);
    let threads = || Threads::new(trace, &survey, &orders, recorded, moved);
    let mut first = threads();
    let mut recorder = Recorder::new(&mut first);
    let near = run(&mut recorder, &machine.costs.near);
    let tape = recorder.tape();
    if let Some(far) = machine.costs.far.as_ref().filter(|_| !survey.lines.is_empty()) {
        let far = match tape {
            Some(mut tape) => run(&mut tape, far),
            None => run(&mut threads(), far),
        };
        found.far_cycles = Some(far.threads.iter().map(|thread| cycles(thread.lost.max(0))).sum());
    }
    found.unmet = near.unmet;
    found.threads = survey
        .threads
        .iter()
        .zip(&near.threads)
        .filter_map(|(facts, outcome)| thread(facts, outcome))
        .collect();
    let names = Names::new(trace, profile, &survey, first.places());
    found.pairs = pairs(&names, &survey, &near);
    found.locks = locks::contended(&names, &found.pairs, &machine.costs.near, locks);
    Some(found)
}

fn thread(facts: &ThreadFacts, outcome: &ThreadOutcome) -> Option<SharingThread> {
    Some(SharingThread {
        thread: facts.thread?,
        lost_cycles: cycles(outcome.lost),
        alone_cycles: cycles(outcome.alone),
        waited_cycles: cycles(outcome.waited),
    })
}

/// Names the pairs of accesses that took lines from each other, and shares out what their threads
/// lost; the costliest first.
fn pairs(names: &Names<'_>, survey: &Survey, near: &Outcome) -> Vec<SharedPair> {
    // What retirement waited for a line may be made up for: what was lost is divided by it.
    let mut stalled = vec![0; survey.threads.len()];
    for (pair, taken) in &near.pairs {
        stalled[names.thread_of(pair.place)] += taken.stalled;
    }
    let addresses: FxHashMap<u32, u64> = survey.lines.iter().map(|(&line, &number)| (number, line)).collect();
    let pair = |(pair, taken): &(Pair, Taken)| {
        let thread = names.thread_of(pair.place);
        let lost = near.threads[thread].lost.max(0);
        let part = if stalled[thread] > 0 { taken.stalled as f64 / stalled[thread] as f64 } else { 0.0 };
        let process = survey.threads[thread].process.unwrap_or(ProcessId(0));
        let line = Space::of(process.0).place(addresses[&pair.line] * survey.size.bytes);
        SharedPair {
            process,
            line,
            shares: match pair.kind {
                Kind::False => Shares::Falsely,
                Kind::HandedOver => Shares::HandedOver,
                Kind::True => Shares::Truly,
            },
            missed: names.sharer(pair.place, line),
            other: (pair.other != u32::MAX).then(|| names.sharer(pair.other, line)),
            transfers: taken.transfers,
            cycles: cycles(lost) * part,
        }
    };
    let mut pairs: Vec<SharedPair> = near.pairs.iter().map(pair).collect();
    pairs.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(b.transfers.cmp(&a.transfers)));
    pairs
}

/// A thread's stack, as far as its functions are known: its end is not recorded. `None` if they run
/// on several stacks.
fn stack_of(facts: &ThreadFacts) -> Option<(ThreadId, u64, u64)> {
    let (low, high) = facts.frames.filter(|(low, high)| high - low < LARGEST_STACK)?;
    let space = Space::of(facts.process?.0);
    Some((facts.thread?, space.place(low.saturating_sub(LAST_FRAME)), space.place(high)))
}

fn cycles(ticks: Ticks) -> f64 {
    ticks as f64 / CYCLE as f64
}

fn pace(costs: &SharingCosts, machine: &Machine) -> Pace {
    let ticks = |cycles: f64| (cycles * CYCLE as f64).round() as Ticks;
    let (arrival, usable) = (costs.arrival_cycles.value, costs.use_cycles.value);
    Pace {
        transfer: ticks(costs.transfer_cycles.value),
        arrival: ticks(arrival),
        usable: ticks(usable.min(arrival)),
        instruction: ticks(machine.costs.instruction_cycles.value).max(1),
        increment: ticks(machine.costs.increment_cycles.value),
        atomic: ticks(machine.costs.atomic_cycles.value),
        fence: ticks(machine.costs.fence_cycles.value),
        // Half the core's did best in the study behind the model.
        window: (machine.costs.window_instructions.value / 2.0).round().max(1.0) as u64,
        on_their_way: machine.costs.overlap_memory.value.round().max(1.0) as usize,
        forwards: machine.costs.forwards_waiting_stores(),
    }
}

/// Returns how stamps become cycles. Without a clock, a tick is a cycle.
fn recorded(trace: &Trace, survey: &Survey, clock_ghz: f64) -> Option<Recorded> {
    let began = survey.threads.iter().map(|facts| facts.began).min()?;
    let ticks = 1u64 << 40;
    let ns = trace.clock().map(|clock| clock.ns(began.saturating_add(ticks)) - clock.ns(began));
    let cycles_per_tick = ns.map_or(1.0, |ns| ns as f64 * clock_ghz / ticks as f64);
    Some(Recorded { began, cycles_per_tick })
}

/// Finds the objects of accesses.
struct Names<'t> {
    trace: &'t Trace,
    profile: &'t Profile,
    survey: &'t Survey,
    places: Vec<&'t Places>,
    objects: Objects<'t>,
    /// Keyed by thread and site: classes, and accesses to each.
    classes: FxHashMap<(ThreadId, SiteId), Vec<(ClassId, u64)>>,
    /// Blocks that have bytes of lines of several threads: process, first and last address,
    /// allocation.
    blocks: Vec<(ProcessId, u64, u64, SiteId)>,
}

impl<'t> Names<'t> {
    fn new(trace: &'t Trace, profile: &'t Profile, survey: &'t Survey, places: Vec<&'t Places>) -> Names<'t> {
        let mut classes: FxHashMap<(ThreadId, SiteId), Vec<(ClassId, u64)>> = FxHashMap::default();
        for cell in &profile.cells {
            let of_site = classes.entry((cell.thread, cell.site)).or_default();
            of_site.push((cell.class, cell.counts.accesses()));
        }
        let mut sorted: Vec<u64> = survey.lines.keys().copied().collect();
        sorted.sort_unstable();
        let mut blocks = Vec::new();
        for facts in &survey.threads {
            let Some(process) = facts.process else { continue };
            for &(first, last, site) in &facts.blocks {
                let line = survey.size.number(process, first);
                let from = sorted.partition_point(|&other| other < line);
                if sorted.get(from).is_some_and(|&line| line <= survey.size.number(process, last)) {
                    blocks.push((process, first, last, site));
                }
            }
        }
        let objects = Objects::new(trace, blocks.clone());
        Names { trace, profile, survey, places, objects, classes, blocks }
    }

    /// The thread of a place, by its number in the survey.
    fn thread_of(&self, place: u32) -> usize {
        Places::look_up(&self.places, place).thread
    }

    fn sharer(&self, place: u32, line: u64) -> Sharer {
        let Located { thread, site, address } = Places::look_up(&self.places, place);
        let facts = &self.survey.threads[thread];
        let thread = facts.thread.unwrap_or(ThreadId(0));
        let candidates = self.classes.get(&(thread, site)).map_or(&[][..], |classes| classes);
        let class = match candidates {
            [] => ClassId::UNKNOWN,
            [(class, _)] => *class,
            several => {
                let fitting = several.iter().filter(|(class, _)| self.fits(*class, facts.process, line));
                let best = fitting.max_by_key(|(_, accesses)| *accesses);
                best.or(several.iter().max_by_key(|(_, accesses)| *accesses))
                    .map_or(ClassId::UNKNOWN, |c| c.0)
            }
        };
        let member = facts.process.zip(address);
        let member = member.and_then(|(process, address)| self.objects.member_at(process, address));
        Sharer { thread, site, class, member }
    }

    /// The class of the object at an address.
    fn class_at(&self, process: ProcessId, address: u64) -> ClassId {
        let mut blocks = self.blocks.iter().rev();
        let block = blocks.find(|(of, first, last, _)| *of == process && (*first..=*last).contains(&address));
        let images = self.trace.images().iter().filter(|image| image.process == process);
        let mut globals = images.flat_map(|image| {
            let module = self.trace.modules().get(image.module.0 as usize);
            let globals = module.map_or(&[][..], |module| &module.globals[..]);
            globals.iter().map(|global| (global.address.wrapping_add(image.load_bias), global))
        });
        let global = globals.find(|(at, global)| (*at..at.saturating_add(global.bytes)).contains(&address));
        let is_it = |home: &Home| match home {
            Home::Heap { site, .. } => block.is_some_and(|(.., by)| by == site),
            Home::Global { symbol, .. } => global.is_some_and(|(_, global)| global.name == *symbol),
            Home::Stack { .. } | Home::Unknown => false,
        };
        let found = self.profile.classes.iter().position(|class| is_it(&class.home));
        found.map_or(ClassId::UNKNOWN, |class| ClassId(class as u32))
    }

    /// Returns whether an object of a class has a byte of a line.
    fn fits(&self, class: ClassId, process: Option<ProcessId>, line: u64) -> bool {
        let end = line + (self.survey.size.bytes - 1);
        match &self.profile.classes[class.0 as usize].home {
            Home::Heap { site, .. } => self.blocks.iter().any(|&(of, first, last, by)| {
                Some(of) == process && by == *site && first <= end && last >= line
            }),
            Home::Global { symbol, .. } => {
                self.trace.images().iter().filter(|image| Some(image.process) == process).any(|image| {
                    let globals = self.trace.modules().get(image.module.0 as usize).map(|m| &m.globals[..]);
                    globals.unwrap_or_default().iter().any(|global| {
                        let at = global.address.wrapping_add(image.load_bias);
                        global.name == *symbol && at <= end && at + global.bytes > line
                    })
                })
            }
            Home::Stack { .. } | Home::Unknown => false,
        }
    }
}
