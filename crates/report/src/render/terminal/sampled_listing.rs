//! Source lines and instructions with samples beside them.

use memlode_sample::PlaceSamples;

use super::Style;
use super::listing::{HOT, Shown, beside, columns, common_margin, gap, heading, left_out, no_text};
use super::names::{data_label, name};
use super::sampled::far_cell;
use crate::model::{Data, SampledListedLine, SampledListing, SampledPart};
use crate::render::text::{brief, count, percent_of, printable};

/// Columns of a name of data, at most: the rest of a line is for its source.
const DATA_WIDTH: usize = 32;

/// A fact that is listed of each line's samples, in a column of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleEvent {
    /// The part of the time, or of the samples of another event.
    Share,
    /// The distance within which the share lies 19 times in 20.
    Error,
    /// Samples.
    Samples,
    /// Samples of loads.
    Loads,
    /// Samples of stores.
    Stores,
    /// Cycles of an access in the mean.
    Cycles,
    /// The source beyond the first cache that most of the samples name.
    Source,
    /// The data that has most.
    Data,
}

impl SampleEvent {
    /// All of them.
    pub const ALL: [SampleEvent; 8] = [
        SampleEvent::Share,
        SampleEvent::Error,
        SampleEvent::Samples,
        SampleEvent::Loads,
        SampleEvent::Stores,
        SampleEvent::Cycles,
        SampleEvent::Source,
        SampleEvent::Data,
    ];

    /// The events that are listed of a recording if none are named.
    pub fn usual(found: &SampledListing) -> Vec<SampleEvent> {
        let all = [SampleEvent::Share, SampleEvent::Error, SampleEvent::Samples];
        let costs = [SampleEvent::Loads, SampleEvent::Stores, SampleEvent::Cycles, SampleEvent::Source];
        let costs = costs.into_iter().filter(|_| found.total.cost.is_some());
        all.into_iter().chain(costs).chain([SampleEvent::Data]).collect()
    }

    /// The events of these names.
    ///
    /// # Errors
    /// A sentence on the first unknown name.
    pub fn named(names: &[String]) -> Result<Vec<SampleEvent>, String> {
        let one = |name: &String| {
            let known = SampleEvent::ALL.into_iter().find(|event| event.heading() == name);
            known.ok_or_else(|| {
                let all: Vec<&str> = SampleEvent::ALL.iter().map(|event| event.heading()).collect();
                format!("samples have no {}: there are {}", printable(name), all.join(", "))
            })
        };
        names.iter().map(one).collect()
    }

    fn heading(self) -> &'static str {
        match self {
            SampleEvent::Share => "share",
            SampleEvent::Error => "±",
            SampleEvent::Samples => "samples",
            SampleEvent::Loads => "loads",
            SampleEvent::Stores => "stores",
            SampleEvent::Cycles => "cycles",
            SampleEvent::Source => "source",
            SampleEvent::Data => "data",
        }
    }

    fn cell(self, samples: &PlaceSamples, line: Option<&SampledListedLine>) -> String {
        let cost = samples.cost.as_ref();
        match self {
            SampleEvent::Share => percent_of(samples.time.share),
            SampleEvent::Error => format!("±{}", percent_of(samples.time.error)),
            SampleEvent::Samples => count(samples.time.samples),
            SampleEvent::Loads => count(samples.loads),
            SampleEvent::Stores => count(samples.stores),
            SampleEvent::Cycles => {
                cost.and_then(|cost| cost.cycles).map_or(String::new(), |cycles| format!("{cycles:.0}"))
            }
            SampleEvent::Source => far_cell(cost),
            SampleEvent::Data => line.and_then(|line| line.data.first()).map(data_cell).unwrap_or_default(),
        }
    }
}

/// The name of data; of several that may be the ones, if they are long, the first alone.
fn data_cell(data: &Data) -> String {
    let whole = name(data);
    if whole.chars().count() <= DATA_WIDTH {
        return whole;
    }
    match whole.split_once('|') {
        Some((first, _)) if first.chars().count() + 2 <= DATA_WIDTH => format!("{first}|…"),
        _ => data_label(data, 0).fit(DATA_WIDTH),
    }
}

/// Returns the output of `memlode annotate` for samples, with a column for each event.
pub fn sampled_listing(found: &SampledListing, events: &[SampleEvent], style: Style) -> String {
    let mut out = String::new();
    for part in &found.parts {
        out += &head(found, part, style);
        out += &table(part, events, style);
        out.push('\n');
    }
    out + &left_out(found.left_out, &format!("the {}", unit(found)), style)
}

fn unit(found: &SampledListing) -> &'static str {
    if found.is_time { "time" } else { "samples" }
}

/// The name of a part, and its share.
fn head(found: &SampledListing, part: &SampledPart, style: Style) -> String {
    let time = part.samples.time;
    let cost = format!("{} of the {}, {} samples", percent_of(time.share), unit(found), count(time.samples));
    heading(part.function.as_deref(), part.file.as_deref(), &cost, style)
        + &no_text(part.no_text.as_deref(), style)
}

fn table(part: &SampledPart, events: &[SampleEvent], style: Style) -> String {
    let digits = part.lines.iter().filter_map(|line| line.line).max().unwrap_or(0).to_string().len();
    let margin = common_margin(part.lines.iter().filter_map(|line| line.text.as_deref()));
    let cells = |samples: Option<&PlaceSamples>, line| -> Vec<String> {
        samples
            .map(|samples| events.iter().map(|event| event.cell(samples, line)).collect())
            .unwrap_or_default()
    };
    let mut rows: Vec<Shown> = Vec::new();
    let mut before = None;
    for line in &part.lines {
        rows.extend(gap(before, line.line, digits));
        before = line.line;
        rows.push(Shown {
            numbers: cells(line.samples.as_ref(), Some(line)),
            is_hot: line.samples.as_ref().is_some_and(|samples| samples.time.share >= HOT),
            text: beside(line.line, line.text.as_deref(), "samples", digits, margin),
        });
        let mut function = part.function.as_deref();
        for one in &line.instructions {
            if function != Some(&one.function) {
                let text = format!("{:>digits$}  in {}:", "", printable(&brief(&one.function)));
                rows.push(Shown { numbers: Vec::new(), is_hot: false, text });
                function = Some(&one.function);
            }
            let text = format!("{:>digits$}    {:x}  {}", "", one.address, printable(&one.text));
            rows.push(Shown { numbers: cells(one.samples.as_ref(), None), is_hot: false, text });
        }
    }
    let headings: Vec<String> = events.iter().map(|event| event.heading().to_owned()).collect();
    columns(&headings, &rows, style)
}
