//! The Firefox Profiler's processed format, for <https://profiler.firefox.com>: a call tree and a
//! flame graph of each thread.
//!
//! Each thread comes once, with the requested metric as the weight of its stacks. A sample has an
//! amount but no time: its time is the number of the sample. A weight has 31 bits in this format,
//! so a larger value becomes several samples with one stack.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, SamplingInterval, Timestamp, WeightType,
};
use memlode_trace::Trace;
use memlode_trace::event::ThreadId;

use super::one_line;
use crate::stacks::{StackSample, Stacks};

/// Writes a profile of a metric, `metric` being its place among [`Stacks::metrics`].
pub fn write(mut out: impl Write, trace: &Trace, stacks: &Stacks, metric: usize) -> io::Result<()> {
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
        let mut at = 0;
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
            let mut left = sample.values[metric];
            while left > 0 {
                let weight = left.min(i32::MAX as u64);
                left -= weight;
                let when = Timestamp::from_millis_since_reference(f64::from(at));
                profile.add_sample(handle, when, stack, CpuDelta::ZERO, weight as i32);
                at += 1;
            }
        }
    }
    serde_json::to_writer(&mut out, &profile)?;
    out.flush()
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
