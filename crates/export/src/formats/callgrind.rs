//! Callgrind's profile format, which KCachegrind, QCachegrind and `callgrind_annotate` open.
//!
//! Each function has its own accesses line by line, and its calls with the sums of all counts below
//! them. Inlined functions are functions like others, called from the line into which they were
//! inlined. The number of calls is unknown: every call counts as one.
//! <https://valgrind.org/docs/manual/cl-format.html>

use std::collections::BTreeMap;
use std::io::{self, Write};

use memlode_report::text::printable;

use super::one_line;
use crate::stacks::{StackFrame, Stacks};

/// A call: the caller's line, the called function, and the line that is executed there.
type Call = (u32, usize, u32);

/// The entry of a function.
#[derive(Default)]
struct Entry {
    /// Sums of its own accesses, by line.
    own: BTreeMap<u32, Vec<u64>>,
    /// Sums of all that was counted below its calls.
    calls: BTreeMap<Call, Vec<u64>>,
}

/// Writes a profile.
pub fn write(mut out: impl Write, stacks: &Stacks) -> io::Result<()> {
    writeln!(out, "# callgrind format\nversion: 1\ncreator: memlode {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "cmd: {}", printable(&stacks.command.join(" ")))?;
    writeln!(out, "positions: line")?;
    for metric in &stacks.metrics {
        writeln!(out, "event: {} : {}", event(&metric.name), printable(&metric.name).replace('_', " "))?;
    }
    let events: Vec<String> = stacks.metrics.iter().map(|metric| event(&metric.name)).collect();
    writeln!(out, "events: {}", events.join(" "))?;
    writeln!(out, "summary: {}\n", joined(&stacks.totals()))?;
    let mut names = Names { stacks, files: BTreeMap::new(), known: vec![false; stacks.functions.len()] };
    for (function, entry) in entries(stacks) {
        writeln!(out, "fl={}\nfn={}", names.file(function), names.function(function))?;
        for (line, values) in entry.own {
            writeln!(out, "{line} {}", joined(&values))?;
        }
        for ((line, called, at), values) in entry.calls {
            writeln!(out, "cfi={}\ncfn={}\ncalls=1 {at}", names.file(called), names.function(called))?;
            writeln!(out, "{line} {}", joined(&values))?;
        }
        writeln!(out)?;
    }
    out.flush()
}

/// An event's name is one word.
fn event(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn joined(values: &[u64]) -> String {
    values.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// All functions that were on a stack. A call that a stack has several times counts once, like a
/// function inlined into itself.
fn entries(stacks: &Stacks) -> BTreeMap<usize, Entry> {
    let mut entries: BTreeMap<usize, Entry> = BTreeMap::new();
    let add = |sums: &mut Vec<u64>, values: &[u64]| {
        sums.resize(values.len(), 0);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    };
    for sample in &stacks.samples {
        let Some(innermost) = sample.frames.first() else { continue };
        let own = &mut entries.entry(innermost.function).or_default().own;
        add(own.entry(innermost.line).or_default(), &sample.values);
        let mut counted: Vec<(usize, Call)> = Vec::new();
        for pair in sample.frames.windows(2) {
            let [StackFrame { function, line: at, .. }, caller] = pair else { continue };
            let call = (caller.function, (caller.line, *function, *at));
            if counted.iter().all(|known| (known.0, known.1.1) != (call.0, call.1.1)) {
                let calls = &mut entries.entry(caller.function).or_default().calls;
                add(calls.entry(call.1).or_default(), &sample.values);
                counted.push(call);
            }
        }
    }
    entries
}

/// Names with numbers: each stands in the file once.
struct Names<'a> {
    stacks: &'a Stacks,
    files: BTreeMap<&'a str, usize>,
    known: Vec<bool>,
}

impl Names<'_> {
    fn function(&mut self, function: usize) -> String {
        let number = function + 1;
        if std::mem::replace(&mut self.known[function], true) {
            return format!("({number})");
        }
        format!("({number}) {}", one_line(&self.stacks.functions[function].name))
    }

    fn file(&mut self, function: usize) -> String {
        let name = self.stacks.functions[function].file.as_deref().unwrap_or("???");
        let next = self.files.len() + 1;
        match self.files.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.files.insert(name, next);
                format!("({next}) {}", one_line(name))
            }
        }
    }
}
