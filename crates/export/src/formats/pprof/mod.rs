//! pprof's profile format: a compressed protocol buffer, which `go tool pprof`, Speedscope and Grafana open.
//!
//! Each sample has all metrics, and labels besides: `data`, `object` and `thread`, by which pprof selects (`-tagfocus`) and groups
//! (`-tagroot data`). Inlined functions are lines of one location, as pprof has them.
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>

mod profile;

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use self::profile::{Function, Label, Line, Location, Profile, Sample, ValueType};
use crate::stacks::{StackFrame, StackFunction, StackSample, Stacks};

/// Writes a profile. pprof shows `metric` first, which is a place among [`Stacks::metrics`].
pub fn write(out: impl Write, stacks: &Stacks, metric: usize) -> io::Result<()> {
    let mut maker = Maker::default();
    maker.text("");
    let sample_type = stacks
        .metrics
        .iter()
        .map(|metric| ValueType { r#type: maker.text(&metric.name), unit: maker.text(metric.unit) })
        .collect();
    let sample = stacks.samples.iter().map(|sample| maker.sample(sample)).collect();
    let function = |(function, id): (&StackFunction, u64)| Function {
        id,
        name: maker.text(&function.name),
        system_name: maker.text(&function.linkage_name),
        filename: maker.text(function.file.as_deref().unwrap_or("")),
        start_line: function.first_line.into(),
    };
    let function = stacks.functions.iter().zip(1..).map(function).collect();
    let Maker { mut texts, locations, .. } = maker;
    let profile = Profile {
        sample_type,
        sample,
        location: locations,
        function,
        comment: vec![texts.text(&format!("memlode: {}", stacks.command.join(" ")))],
        default_sample_type: texts.text(stacks.metrics.get(metric).map_or("", |metric| &metric.name)),
        string_table: texts.table,
    };
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&profile.encode_to_vec())?;
    out.finish()?.flush()
}

/// Each text once.
#[derive(Default)]
struct Texts {
    table: Vec<String>,
    numbers: FxHashMap<String, i64>,
}

impl Texts {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.table.len() as i64;
        self.table.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }
}

#[derive(Default)]
struct Maker {
    texts: Texts,
    locations: Vec<Location>,
    /// Ids of locations by their lines.
    ids: FxHashMap<Vec<StackFrame>, u64>,
}

impl Maker {
    fn text(&mut self, text: &str) -> i64 {
        self.texts.text(text)
    }

    fn sample(&mut self, sample: &StackSample) -> Sample {
        let text = |maker: &mut Maker, key, text: &str| Label {
            key: maker.text(key),
            str: maker.text(text),
            num: 0,
        };
        let label = vec![
            text(self, "data", &sample.data),
            text(self, "object", &sample.object),
            Label { key: self.text("thread"), str: 0, num: sample.thread.0.into() },
        ];
        // A location ends with the function that the lines before it were inlined into.
        let physical = sample.frames.split_inclusive(|frame| !frame.is_inlined);
        Sample {
            location_id: physical.map(|lines| self.location(lines)).collect(),
            value: sample.values.iter().map(|&value| i64::try_from(value).unwrap_or(i64::MAX)).collect(),
            label,
        }
    }

    fn location(&mut self, lines: &[StackFrame]) -> u64 {
        if let Some(&id) = self.ids.get(lines) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        let line =
            |frame: &StackFrame| Line { function_id: frame.function as u64 + 1, line: frame.line.into() };
        self.locations.push(Location { id, line: lines.iter().map(line).collect() });
        self.ids.insert(lines.to_vec(), id);
        id
    }
}
