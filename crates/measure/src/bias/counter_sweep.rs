//! Every event of a processor over the contexts of `bias env`: the table that `bias counters`
//! reads, filled here.
//!
//! Events are counted in groups that fit the counters, cycles in each group, so that nothing is
//! estimated. Contexts are visited in random order in each pass, so slow changes are not taken for
//! effects of contexts.

use std::time::{Duration, Instant};

use memlode_counters::kernel::{CounterEvent, CounterGroup, Kernel, Target};
use memlode_counters::refusal::{Circumstances, CountRefusal};
use memlode_counters::table::EventTable;
use rand::seq::SliceRandom;

use super::environment::{CONTEXTS, layout, needs_fixed_addresses};
use crate::Error;
use crate::process::{Launch, RunLimits};
use crate::stats::{median, random};

/// The event that others are compared with.
const CYCLES: &str = "cycles";

/// The events to count, and the contexts.
pub struct CounterSweepPlan<'a> {
    /// Events of this processor.
    pub table: &'a EventTable,
    /// Contexts: the layouts that [`run_at`] knows, or fewer.
    pub contexts: usize,
    /// Passes over all contexts with each group of events, at least 1.
    pub passes: usize,
    /// Time after which no pass begins; the first is always made.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// Counts by context.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterSweep {
    /// Names of the contexts: bytes added to the environment.
    pub contexts: Vec<usize>,
    /// Events, cycles first, with the median of their counts by context.
    pub events: Vec<(String, Vec<f64>)>,
    /// Events that were not counted, and why.
    pub refused: Vec<(String, CountRefusal)>,
}

impl CounterSweep {
    /// Returns it as CSV that [`super::counters::CounterTable::parse`] reads.
    pub fn csv(&self) -> String {
        let names: Vec<&str> = self.events.iter().map(|(name, _)| name.as_str()).collect();
        let mut text = format!("bytes,{}\n", names.join(","));
        for (at, context) in self.contexts.iter().enumerate() {
            let counts: Vec<String> = self.events.iter().map(|(_, counts)| counts[at].to_string()).collect();
            text += &format!("{context},{}\n", counts.join(","));
        }
        text
    }
}

/// Runs a program at a context: with this many additional bytes of environment.
///
/// # Errors
/// Those of the program's run.
pub fn run_at(program: &Launch, context: usize, limits: RunLimits<'_>) -> Result<(), Error> {
    program.run(layout(context), limits).map(drop)
}

/// Returns whether contexts differ here, and how many there are.
///
/// # Errors
/// If addresses cannot be fixed.
pub fn contexts() -> Result<usize, Error> {
    needs_fixed_addresses().map(|()| CONTEXTS)
}

/// Counts at each context; `run` runs the program at one.
///
/// # Errors
/// Those of `run`, and the reason if not even cycles can be counted.
pub fn sweep(
    plan: &CounterSweepPlan<'_>,
    kernel: &dyn Kernel,
    run: &mut dyn FnMut(usize) -> Result<(), Error>,
) -> Result<Result<CounterSweep, CountRefusal>, Error> {
    let mut refused = Vec::new();
    let mut events: Vec<&String> = plan.table.event.keys().filter(|event| *event != CYCLES).collect();
    events.retain(|event| match open(plan.table, &[CYCLES.into(), (*event).clone()], kernel) {
        Ok(_) => true,
        Err(refusal) => {
            refused.push(((*event).clone(), refusal));
            false
        }
    });
    let groups = groups(plan.table, &events);
    if groups.is_empty() {
        return Ok(Err(refused.pop().map_or(CountRefusal::NoEvent, |(_, refusal)| refusal)));
    }
    let started = Instant::now();
    let mut random = random(plan.seed);
    let mut counts = Counts::default();
    for pass in 0..plan.passes.max(1) {
        if pass > 0 && started.elapsed() >= plan.time {
            break;
        }
        for group in &groups {
            let mut order: Vec<usize> = (0..plan.contexts).collect();
            order.shuffle(&mut random);
            for context in order {
                match open(plan.table, group, kernel) {
                    Ok(mut counters) => {
                        run(context)?;
                        counts.add(group, context, counters.as_mut(), &mut refused);
                    }
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
        }
    }
    Ok(counts.sweep(plan.contexts, refused))
}

/// Groups of events that fit the counters, cycles the first of each.
fn groups(table: &EventTable, events: &[&String]) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for &event in events {
        let fits = |group: &&mut Vec<String>| {
            let all = group.iter().map(String::as_str).chain([event.as_str()]);
            table.general(all) <= table.counters
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(event.clone()),
            None => groups.push(vec![CYCLES.into(), event.clone()]),
        }
    }
    groups
}

fn open(
    table: &EventTable,
    group: &[String],
    kernel: &dyn Kernel,
) -> Result<Box<dyn CounterGroup>, CountRefusal> {
    let events: Vec<CounterEvent> =
        group.iter().map(|event| CounterEvent::Raw(table.event[event].code)).collect();
    // What happens in the kernel is no business of a program's layout.
    kernel.open(&events, Target::NextProgram, false).map_err(|error| {
        CountRefusal::of(
            &error,
            Circumstances {
                paranoid: kernel.paranoid(),
                has_unit: kernel.has_unit(),
                is_software: false,
                with_kernel: false,
                pid: None,
            },
        )
    })
}

/// Counts by event, and of each by context, run by run.
#[derive(Default)]
struct Counts(Vec<(String, Vec<Vec<f64>>)>);

impl Counts {
    fn add(
        &mut self,
        group: &[String],
        context: usize,
        counters: &mut dyn CounterGroup,
        refused: &mut Vec<(String, CountRefusal)>,
    ) {
        match crate::stat::counted(counters) {
            Ok(counts) => {
                for (event, count) in group.iter().zip(counts) {
                    self.of(event, context).push(count as f64);
                }
            }
            Err(refusal) => {
                for event in group.iter().skip(1) {
                    if refused.iter().all(|(known, _)| known != event) {
                        refused.push((event.clone(), refusal.clone()));
                    }
                }
            }
        }
    }

    fn of(&mut self, event: &str, context: usize) -> &mut Vec<f64> {
        let at = self.0.iter().position(|(known, _)| known == event).unwrap_or_else(|| {
            self.0.push((event.into(), Vec::new()));
            self.0.len() - 1
        });
        let contexts = &mut self.0[at].1;
        if contexts.len() <= context {
            contexts.resize(context + 1, Vec::new());
        }
        &mut contexts[context]
    }

    /// Takes medians. An event that lacks a context was not counted.
    fn sweep(
        self,
        contexts: usize,
        mut refused: Vec<(String, CountRefusal)>,
    ) -> Result<CounterSweep, CountRefusal> {
        let is_whole = |by_context: &[Vec<f64>]| {
            by_context.len() == contexts && by_context.iter().all(|runs| !runs.is_empty())
        };
        let (mut whole, _): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(_, counts)| is_whole(counts));
        refused.retain(|(event, _)| whole.iter().all(|(known, _)| known != event));
        let Some(cycles) = whole.iter().position(|(event, _)| event == CYCLES) else {
            return Err(refused.pop().map_or(CountRefusal::NoEvent, |(_, refusal)| refusal));
        };
        whole.swap(0, cycles);
        let medians = |counts: Vec<Vec<f64>>| counts.iter().map(|runs| median(runs)).collect();
        Ok(CounterSweep {
            contexts: (0..contexts).map(|context| layout(context).padding).collect(),
            events: whole.into_iter().map(|(event, counts)| (event, medians(counts))).collect(),
            refused,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::bias::counters::CounterTable;
    use crate::stat::fake::FakeKernel;

    /// Two contexts, 4 KiB apart, are slow, as loads are blocked there.
    fn is_spike(context: usize) -> bool {
        context % 256 == 199
    }

    /// The truth: the count of an event in a context.
    fn truth(event: CounterEvent, context: usize) -> u64 {
        let waver = (context * 7919 % 97) as u64;
        match (event, is_spike(context)) {
            (CounterEvent::Raw(0x3c), true) => 825_000 + waver,
            (CounterEvent::Raw(0x3c), false) => 692_000 + waver,
            // LD_BLOCKS_PARTIAL.ADDRESS_ALIAS
            (CounterEvent::Raw(0x107), true) => 327_000,
            (CounterEvent::Raw(0x107), false) => waver % 5,
            (CounterEvent::Raw(0xc0), _) => 65_600,
            _ => 1000 + context as u64 * 31 % 89,
        }
    }

    fn swept(lacks: u64, has_unit: bool) -> Result<CounterSweep, CountRefusal> {
        let context = Arc::new(AtomicUsize::new(0));
        let table = EventTable::named("skylake-sp").unwrap();
        let plan =
            CounterSweepPlan { table: &table, contexts: CONTEXTS, passes: 2, time: Duration::MAX, seed: 5 };
        let now = context.clone();
        // What Skylake's events count in the context that runs, of which one does not exist.
        let kernel = FakeKernel::counting(move |event, _| truth(event, now.load(Ordering::Relaxed)))
            .refusing(move |event, with_kernel| {
                assert!(!with_kernel);
                (!has_unit || event == CounterEvent::Raw(lacks)).then_some(libc::ENOENT)
            });
        let kernel = FakeKernel { has_unit, most_events: 6, ..kernel };
        sweep(&plan, &kernel, &mut |at| {
            context.store(at, Ordering::Relaxed);
            Ok(())
        })
        .expect("the program runs")
    }

    #[test]
    fn the_event_behind_the_spikes_is_found() {
        let found = swept(0, true).expect("counts");
        let table = EventTable::named("skylake-sp").unwrap();
        assert_eq!((found.events.len(), found.refused.len()), (table.event.len(), 0));
        let correlated = CounterTable::parse(&found.csv(), None, CYCLES).expect("a table").correlate(4);
        let mut spikes = correlated.spikes.clone();
        spikes.sort();
        assert_eq!(spikes, ["3216", "7312"], "32 bytes and 16 for each context");
        assert_eq!(correlated.rows[1].event, "LD_BLOCKS_PARTIAL.ADDRESS_ALIAS");
        assert!(correlated.rows[1].pearson > 0.999 && correlated.rows[1].median < 5.0);
        assert!(correlated.rows[2].pearson.abs() < 0.5, "{:?}", correlated.rows[2]);
    }

    #[test]
    fn what_is_not_counted_has_no_column_and_a_reason() {
        let found = swept(0x151, true).expect("counts");
        assert_eq!(found.refused, [("L1D.REPLACEMENT".to_string(), CountRefusal::NoEvent)]);
        assert!(found.events.iter().all(|(event, _)| event != "L1D.REPLACEMENT"));
        assert_eq!(swept(0, false), Err(CountRefusal::NoUnit));
    }
}
