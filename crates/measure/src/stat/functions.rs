//! Ratios function by function, from samples.
//!
//! Each event interrupts the program once in `period` times, and the function that it meets has caused as many of them.
//! One event is sampled in a run, so that none waits for another's counter.

use std::collections::{BTreeMap, BTreeSet};

use memlode_counters::kernel::CounterEvent;
use memlode_counters::ratio::Ratio;
use memlode_counters::software::Software;
use memlode_counters::stat::{FunctionRatio, FunctionRatios, FunctionSource, FunctionTable, Stat};
use memlode_counters::table::{EventTable, Formula};

/// Samples of an event that are aimed at: the error of a function with a tenth of them is 5%.
const WANTED: f64 = 4000.0;
/// Nanoseconds between two samples of the task clock, at least: the kernel takes no more.
const SHORTEST_NS: u64 = 100_000;

/// An event to sample, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPeriod {
    /// The event.
    pub event: CounterEvent,
    /// Events between two samples.
    pub period: u64,
}

/// Samples by function.
pub type SamplesByFunction = BTreeMap<String, u64>;

/// Samples of one event by function, and its period.
#[derive(Default)]
struct Samples {
    of: SamplesByFunction,
    period: u64,
}

/// Makes the ratios of functions of a program of which `found` has the counts. `sample` runs the program once and returns how
/// many samples of the event each function has. Events that were not counted are not sampled.
///
/// # Errors
/// Those of `sample`.
pub fn sampled_functions<E>(
    table: Option<&EventTable>,
    found: &Stat,
    sample: &mut dyn FnMut(&EventPeriod) -> Result<SamplesByFunction, E>,
) -> Result<FunctionTable, E> {
    let mut take = |event: CounterEvent, count: f64, least: u64| -> Result<Samples, E> {
        // Odd, so that nothing that a program does at a round interval keeps step with it.
        let period = ((count / WANTED) as u64).max(least) | 1;
        Ok(Samples { of: sample(&EventPeriod { event, period })?, period })
    };
    let counted = |event: Software| {
        let found = found.software.iter().find(|known| known.event == event)?;
        found.found.interval().map(|found| found.middle)
    };
    let clock = match counted(Software::TaskClock) {
        Some(count) => take(CounterEvent::Software(Software::TaskClock), count, SHORTEST_NS)?,
        None => Samples::default(),
    };
    let faults = match counted(Software::MinorFaults) {
        Some(count) => Some(take(CounterEvent::Software(Software::MinorFaults), count, 1)?),
        None => None,
    };
    let mut events: BTreeMap<&str, Samples> = BTreeMap::new();
    for counted in &found.events {
        if let Some(raw) = table.and_then(|table| table.event.get(&counted.event)) {
            events.insert(&counted.event, take(CounterEvent::Raw(raw.code), counted.count, 1)?);
        }
    }
    let functions: BTreeSet<&String> = clock
        .of
        .keys()
        .chain(faults.iter().flat_map(|of| of.of.keys()))
        .chain(events.values().flat_map(|of| of.of.keys()))
        .collect();
    let all: u64 = clock.of.values().sum();
    let mut rows: Vec<FunctionRatios> = functions
        .into_iter()
        .map(|function| {
            let samples = clock.of.get(function).copied().unwrap_or_default();
            FunctionRatios {
                function: function.clone(),
                share: samples as f64 / all.max(1) as f64,
                samples: Some(samples),
                minor_faults: faults.as_ref().map(|faults| estimate(faults, function).0),
                ratios: table.map(|table| ratios(table, &events, function)).unwrap_or_default(),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
    Ok(FunctionTable { source: FunctionSource::Sampled, rows })
}

/// Returns the estimated count of an event in a function, and the samples behind it.
fn estimate(samples: &Samples, function: &str) -> (f64, u64) {
    let taken = samples.of.get(function).copied().unwrap_or_default();
    (taken as f64 * samples.period as f64, taken)
}

/// Returns the ratios of which all events were sampled. The number of samples of an event is Poisson's, so its relative error
/// is that of its square root; those of the sum and of the divisor add up in squares.
fn ratios(table: &EventTable, events: &BTreeMap<&str, Samples>, function: &str) -> Vec<FunctionRatio> {
    let ratio = |ratio: Ratio| {
        let Formula::Quotient { sum, times, over, .. } = &table.ratio[&ratio] else { return None };
        let (divisor, divided_by) = estimate(events.get(over.as_str())?, function);
        let parts: Option<Vec<_>> = sum
            .iter()
            .map(|event| {
                events.get(event.as_str()).map(|samples| (samples.period, estimate(samples, function)))
            })
            .collect();
        let parts = parts?;
        if divided_by == 0 {
            return None;
        }
        let total: f64 = parts.iter().map(|(_, (count, _))| count).sum();
        let variance: f64 =
            parts.iter().map(|(period, (_, taken))| (*period as f64).powi(2) * *taken as f64).sum();
        let value = times * total / divisor;
        let error = times / divisor * (variance + total.powi(2) / divided_by as f64).sqrt();
        Some(FunctionRatio { ratio, value, error })
    };
    Ratio::ALL.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use memlode_counters::stat::EventCount;

    use super::*;
    use crate::stat::not_run;

    #[test]
    fn ratios_of_functions_are_those_of_the_truth() {
        // By function: cycles and instructions. The fake takes exactly one sample in each period.
        let truth = [("walk", 8_000_000u64, 1_000_000u64), ("sum", 2_000_000, 4_000_000)];
        let table = EventTable::named("skylake-sp").expect("it is there");
        let Formula::Quotient { sum, over, times, .. } = &table.ratio[&Ratio::ClocksPerInstruction] else {
            panic!("it is counted")
        };
        let mut found = not_run(vec!["prog".into()]);
        for (event, count) in [(&sum[0], 10_000_000.0), (over, 5_000_000.0)] {
            found.events.push(EventCount { event: event.clone(), count });
        }
        let cycles = table.event[&sum[0]].code;
        let mut sample = |wanted: &EventPeriod| -> Result<BTreeMap<String, u64>, ()> {
            let of = |(name, cycle_count, instructions): &(&str, u64, u64)| {
                let count =
                    if wanted.event == CounterEvent::Raw(cycles) { cycle_count } else { instructions };
                (name.to_string(), count / wanted.period)
            };
            Ok(truth.iter().map(of).collect())
        };
        let functions = sampled_functions(Some(&table), &found, &mut sample).expect("counts");
        for (name, cycle_count, instructions) in truth {
            let row = functions.rows.iter().find(|row| row.function == name).expect("each has a row");
            assert_eq!(row.ratios.len(), 1, "of other ratios nothing was counted: {row:?}");
            let (found, expected) = (row.ratios[0], times * cycle_count as f64 / instructions as f64);
            assert!((found.value - expected).abs() < 0.01 * expected, "{found:?}, not {expected}");
            // 3,200 and 800 samples of cycles, 800 and 3,200 of instructions.
            let error = expected * (1.0 / 3200.0f64 + 1.0 / 800.0).sqrt();
            assert!((found.error - error).abs() < 0.05 * error, "{found:?}, not {error}");
        }
    }

    #[test]
    fn a_function_with_too_few_samples_to_divide_by_has_no_ratio() {
        let table = EventTable::named("skylake-sp").expect("it is there");
        let found = not_run(vec!["prog".into()]);
        let mut none =
            |_: &EventPeriod| -> Result<BTreeMap<String, u64>, ()> { panic!("nothing was counted") };
        assert_eq!(sampled_functions(Some(&table), &found, &mut none).map(|table| table.rows.len()), Ok(0));
        let events =
            BTreeMap::from([("cycles", Samples { of: BTreeMap::from([("walk".into(), 3)]), period: 7 })]);
        assert!(ratios(&table, &events, "walk").is_empty());
    }
}
