//! Folded stacks, one a line, from which FlameGraph, inferno and speedscope draw flame graphs.
//!
//! `main;price_block_[i];arc.state 4812`: functions from the outermost to the innermost, inlined
//! ones marked as FlameGraph does, then the data, and one of the metrics. Stacks whose metric is
//! zero are left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::one_line;
use crate::stacks::Stacks;

/// Writes a metric by stack, `metric` being its place among [`Stacks::metrics`].
pub fn write(mut out: impl Write, stacks: &Stacks, metric: usize) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for sample in &stacks.samples {
        let mut stack = String::new();
        for frame in sample.frames.iter().rev() {
            let mark = if frame.is_inlined { "_[i]" } else { "" };
            stack += &format!("{}{mark};", part(&stacks.functions[frame.function].name));
        }
        stack += &part(&sample.data);
        *lines.entry(stack).or_default() += sample.values[metric];
    }
    for (stack, value) in lines.iter().filter(|(_, value)| **value > 0) {
        writeln!(out, "{stack} {value}")?;
    }
    out.flush()
}

/// A name that separates nothing.
fn part(name: &str) -> String {
    one_line(name).replace(';', ":")
}
