//! The Firefox Profiler's processed format, for <https://profiler.firefox.com>: a call tree and a
//! flame graph of each thread, and counters over time.
//!
//! Each thread comes once, with the requested metric as the weight of its stacks. A sample has an
//! amount but no time: samples lie evenly over the run, or, if its length is unknown, a millisecond
//! apart. A weight has 31 bits in this format, so a larger value becomes several samples with one
//! stack. Counters are of all threads and processes, and stand with the first process.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile, SamplingInterval,
    Timestamp, WeightType,
};
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;

use super::one_line;
use crate::over_time::OverTime;
use crate::stacks::{StackSample, Stacks};

/// The category of counters. Those of other names have units of their own.
const CATEGORY: &str = "memlode";

/// Writes a profile of a metric, `metric` being its place among [`Stacks::metrics`], with counters
/// over time.
pub fn write(
    mut out: impl Write,
    trace: &Trace,
    stacks: &Stacks,
    metric: usize,
    counters: &[OverTime],
) -> io::Result<()> {
    let start = Timestamp::from_millis_since_reference(0.0);
    let name = stacks.metrics.get(metric).map_or("", |metric| &metric.name);
    let product = format!("{} ({})", one_line(&stacks.command.join(" ")), one_line(name).replace('_', " "));
    // It says nothing of when the program ran.
    let mut profile = Profile::new(&product, SystemTime::UNIX_EPOCH.into(), SamplingInterval::from_millis(1));
    profile.set_symbolicated(true);
    let mut by_thread: BTreeMap<ThreadId, Vec<&StackSample>> = BTreeMap::new();
    for sample in &stacks.samples {
        by_thread.entry(sample.thread).or_default().push(sample);
    }
    let mut processes = BTreeMap::new();
    for (id, samples) in by_thread {
        let thread = &trace.threads()[id.0 as usize];
        let process = *processes.entry(thread.process).or_insert_with(|| {
            let pid = trace.processes().get(thread.process.0 as usize).map_or(0, |process| process.pid);
            profile.add_process(&product, pid, start)
        });
        let handle = profile.add_thread(process, thread.tid, start, id.0 == 0);
        profile.set_thread_name(handle, &format!("thread {}", id.0));
        profile.set_thread_samples_weight_type(handle, WeightType::Samples);
        let weights = samples.iter().map(|sample| parts(sample.values[metric]).count()).sum();
        let mut times = times(counters, weights);
        for sample in samples {
            let labels = labels(stacks, sample);
            let frames: Vec<FrameInfo> = labels
                .iter()
                .map(|label| FrameInfo {
                    frame: Frame::Label(profile.intern_string(label)),
                    category_pair: CategoryHandle::OTHER.into(),
                    flags: FrameFlags::empty(),
                })
                .collect();
            let stack = profile.intern_stack_frames(handle, frames.into_iter());
            for (weight, when) in parts(sample.values[metric]).zip(&mut times) {
                profile.add_sample(handle, when, stack, CpuDelta::ZERO, weight);
            }
        }
    }
    if let Some(process) = processes.values().next() {
        counters.iter().for_each(|counter| add_counter(&mut profile, *process, counter));
    }
    serde_json::to_writer(&mut out, &profile)?;
    out.flush()
}

/// A value as weights that fit.
fn parts(value: u64) -> impl Iterator<Item = i32> {
    const MOST: u64 = i32::MAX as u64;
    (0..value.div_ceil(MOST)).map(move |part| (value - part * MOST).min(MOST) as i32)
}

/// Returns the times of a thread's samples, this many of them.
fn times(counters: &[OverTime], samples: usize) -> impl Iterator<Item = Timestamp> {
    let ends = counters.iter().filter_map(|counter| counter.intervals.last());
    let last = ends.map(|(end, _)| *end).max();
    (0..samples as u64).map(move |number| match last {
        Some(last) => {
            let part = (u128::from(last) * u128::from(number)) / samples.max(1) as u128;
            Timestamp::from_nanos_since_reference(part as u64)
        }
        None => Timestamp::from_millis_since_reference(number as f64),
    })
}

fn add_counter(profile: &mut Profile, process: ProcessHandle, counter: &OverTime) {
    let name = one_line(&counter.name);
    let handle = profile.add_counter(process, &name, CATEGORY, "memlode: interval by interval");
    let start = Timestamp::from_nanos_since_reference(0);
    profile.add_counter_sample(handle, start, 0.0, 0);
    for &(end, count) in &counter.intervals {
        profile.add_counter_sample(handle, Timestamp::from_nanos_since_reference(end), count as f64, 1);
    }
}

/// The frames of a stack, the outermost first, and the data behind them.
fn labels(stacks: &Stacks, sample: &StackSample) -> Vec<String> {
    let frame = |frame: &crate::stacks::StackFrame| {
        let function = &stacks.functions[frame.function];
        let name = one_line(&function.name);
        match (&function.file, frame.line) {
            (Some(file), line) if line > 0 => {
                format!("{name} ({}:{line})", one_line(file.rsplit('/').next().unwrap_or(file)))
            }
            _ => name,
        }
    };
    let frames = sample.frames.iter().rev().map(frame);
    frames.chain([one_line(&sample.data)]).collect()
}
