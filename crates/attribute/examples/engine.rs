//! The cost of replaying a trace, stage by stage, as JSON: `engine TRACE [MACHINE]`.
//!
//! Rates are million accesses per second of one core's processor time; `two_core_speedup` is of
//! elapsed time.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use memlode_attribute::setup::{RuleChoice, Setup};
use memlode_attribute::simulators::caches;
use memlode_attribute::{Simulation, Source};
use memlode_machine::Machine;
use memlode_replay::Replay;
use memlode_simulate::{Hierarchy, MemRef, ReuseDistance};
use memlode_trace::Trace;

/// Processor time of the main thread in seconds.
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel");
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).expect("nanoseconds first") / 1e9
}

/// Processor and elapsed seconds of some work.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64, f64) {
    let (processor, elapsed) = (processor_s(), Instant::now());
    let done = work();
    (done, processor_s() - processor, elapsed.elapsed().as_secs_f64())
}

/// Most memory this process has had, in MB.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("kB") / 1000.0
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a trace");
    let machine = arguments.next().unwrap_or_else(|| "skylake-sp".into());
    let machine = Machine::find(&machine).expect("a machine");
    let trace = Arc::new(Trace::open(Path::new(&directory)).expect("a trace"));
    let source = Source::Stored(trace.clone());
    let on = ControlFlow::Continue(());

    let mut accesses = 0u64;
    let ((), decode, _) = timed(|| {
        trace.replay(0, |batch| {
            accesses += batch.accesses.len() as u64;
            on
        });
    });
    let rate = |seconds: f64| accesses as f64 / seconds.max(1e-9) / 1e6;
    let whole = caches(&machine, machine.cores).expect("a machine");
    // Alone: what decoding costs is taken off.
    let by_level = (1..=whole.levels().len()).map(|levels| {
        let mut caches = Hierarchy::new(&whole.levels()[..levels], whole.cores()).expect("fewer levels");
        let cores = caches.cores() as usize;
        let ((), seconds, _) = timed(|| {
            trace.replay(0, |batch| {
                let core = batch.thread.map_or(0, |thread| thread.0 as usize % cores);
                for access in &batch.accesses {
                    caches.access(MemRef::read(core, access.address, access.bytes));
                }
                on
            });
        });
        format!("{:.1}", rate(seconds - decode))
    });
    let by_level: Vec<String> = by_level.collect();
    let ((profile, _), engine, elapsed) =
        timed(|| Simulation::of(&source, &machine).count(|_| on).expect("a machine"));
    let before_detail_mb = peak_mb();
    let (_, _, elapsed_two) =
        timed(|| Simulation::of(&source, &machine).threads(2).count(|_| on).expect("a machine"));
    let ruled = Setup::of(&machine);
    let plain = Setup { rules: RuleChoice::Lru, ..ruled.clone() };
    let in_detail =
        |setup| timed(|| Simulation::of(&source, &machine).causes(setup, |_| on).expect("a machine"));
    let (_, causes, _) = in_detail(&plain);
    let with_causes_mb = peak_mb();
    let (_, rules, _) = in_detail(&ruled);
    let (_, time, _) = timed(|| Simulation::of(&source, &machine).time(&ruled, |_| on).expect("a machine"));
    let mut reuse = ReuseDistance::new();
    let ((), distance, _) = timed(|| {
        trace.replay(0, |batch| {
            for access in &batch.accesses {
                reuse.touch(access.address >> 6);
            }
            on
        });
    });
    let simulated: u64 = profile.cells.iter().map(|cell| cell.counts.accesses()).sum();
    println!(
        "{{\"accesses\": {accesses}, \"simulated\": {simulated}, \"lines\": {}, \"decode_maccess_s\": {:.1}, \
         \"simulate_maccess_s\": [{}], \"engine_maccess_s\": {:.1}, \"causes_time_ratio\": {:.2}, \
         \"rules_time_ratio\": {:.2}, \"time_time_ratio\": {:.2}, \"reuse_maccess_s\": {:.1}, \"two_core_speedup\": {:.2}, \
         \"peak_mb\": {before_detail_mb:.0}, \"peak_with_causes_mb\": {with_causes_mb:.0}}}",
        reuse.lines(),
        rate(decode),
        by_level.join(", "),
        rate(engine),
        causes / engine,
        rules / engine,
        time / engine,
        rate(distance - decode),
        elapsed / elapsed_two,
    );
}
