//! `memlode dump`: a trace as text, one line an event or an executed site.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use memlode_export::request::find_thread;
use memlode_replay::Replay;
use memlode_report::render::terminal::draw_record;
use memlode_trace::census::{self, Census};
use memlode_trace::text::{HEADER, TextWriter};
use memlode_trace::{ChunkRef, Trace};

use crate::analyse::open;
use crate::args::numbers;
use crate::args::traces::TraceArgs;
use crate::door::{Door, Form};
use crate::status::OK;
use crate::term;

/// Print the events of a trace, one a line with columns separated by tabs, or its sites or types
#[derive(Debug, Parser)]
#[command(after_help = "\
Exit status: 0 success, 1 the trace cannot be read or lacks chunks, 2 wrong usage.
Threads are interleaved as they ran, as far as they synchronised.")]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// One thread only: PROCESS.THREAD as in the first column, or THREAD of process 0
    #[arg(long, short, value_name = "T")]
    thread: Option<String>,
    /// Executed sites instead of events: how often each was, and its names; most executed first
    #[arg(long)]
    sites: bool,
    /// Print the layouts of the program's structures instead: members, holes, cache lines; by name
    #[arg(long, conflicts_with_all = ["thread", "sites"])]
    types: bool,
    /// Lines, or types, at most
    #[arg(long, short = 'n', value_name = "N", value_parser = numbers::count)]
    limit: Option<u64>,
    /// Print JSON, one object a line; what is unknown is left out
    #[arg(long)]
    json: bool,
}

/// Writes all events of a trace as text.
pub fn events(directory: &Path, out: impl Write) -> Result<()> {
    let trace = open(directory)?;
    let out = door(out, false);
    let mut lines = Lines { out, as_json: false, header: HEADER, left: u64::MAX, partial: Vec::new() };
    writeln!(lines.out, "{HEADER}")?;
    let mut writer = TextWriter::new(&trace);
    let mut written = Ok(());
    trace.replay(1, |batch| {
        written = writer.write(batch, &mut lines);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    Ok(lines.out.flush()?)
}

/// Writes the layouts of types.
fn types(trace: &Trace, args: &Args) -> Result<()> {
    let mut out = door(io::stdout().lock(), args.json);
    let records = memlode_report::records(trace.sites());
    if records.is_empty() {
        bail!("the trace describes no types: its programs were compiled by an older memlode, or without -g");
    }
    let limit = usize::try_from(args.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    for record in records.iter().take(limit) {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(record)?)?;
            continue;
        }
        writeln!(out, "{}", draw_record(record))?;
    }
    Ok(out.flush()?)
}

pub fn run(args: Args) -> Result<ExitCode> {
    let trace = args.trace.open()?;
    if args.types {
        types(&trace, &args)?;
        return Ok(ExitCode::from(OK));
    }
    let chunks = chunks(&trace, args.thread.as_deref())?;
    let out = door(io::stdout().lock(), args.json);
    let header = if args.sites { census::HEADER } else { HEADER };
    let left = args.limit.unwrap_or(u64::MAX);
    let mut lines = Lines { out, as_json: args.json, header, left, partial: Vec::new() };
    if !args.json {
        writeln!(lines.out, "{header}")?;
    }
    let (written, replayed) = if args.sites {
        let mut census = Census::new(&trace);
        let replayed = trace.replay_chunks(&chunks, 1, |batch| {
            census.add(batch);
            ControlFlow::Continue(())
        });
        (census.write(&mut lines), replayed)
    } else {
        let mut writer = TextWriter::new(&trace);
        let mut written = Ok(());
        let replayed = trace.interleave_chunks(&chunks, 1, |piece| {
            let (accesses, marks) = piece.places();
            written = writer.write_some(piece.batch, accesses, marks, &mut lines);
            if written.is_ok() && lines.left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (written, replayed)
    };
    match written {
        // The limit was reached.
        Err(error) if error.kind() == io::ErrorKind::Other && lines.left == 0 => {}
        written => written?,
    }
    lines.out.flush()?;
    for damage in trace.damage() {
        term::note(&damage.to_string());
    }
    for (_, error) in &replayed.damaged {
        term::note(&format!("{error}; left out"));
    }
    if !replayed.damaged.is_empty() {
        bail!("{} chunks could not be decoded", replayed.damaged.len());
    }
    Ok(ExitCode::from(OK))
}

/// The chunks of one thread, or all.
fn chunks(trace: &Trace, thread: Option<&str>) -> Result<Vec<ChunkRef>> {
    let Some(wanted) = thread else { return Ok(trace.chunks().to_vec()) };
    let found = find_thread(trace, wanted)?;
    Ok(trace.chunks().iter().filter(|chunk| chunk.thread == found).copied().collect())
}

fn door<W: Write>(out: W, as_json: bool) -> Door<BufWriter<W>> {
    let form = if as_json { Form::Json } else { Form::Text { colours: false } };
    Door::new(BufWriter::with_capacity(1 << 16, out), form)
}

/// Takes whole lines, converts each into its form, and stops after a number of them.
struct Lines<W> {
    out: W,
    /// One object a line.
    as_json: bool,
    /// Names of the columns.
    header: &'static str,
    left: u64,
    partial: Vec<u8>,
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                if self.left == 0 {
                    return Err(io::Error::other("enough"));
                }
                self.left -= 1;
                self.line()?;
                self.partial.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Lines<W> {
    fn line(&mut self) -> io::Result<()> {
        if !self.as_json {
            return self.out.write_all(&self.partial);
        }
        let text = String::from_utf8_lossy(&self.partial);
        writeln!(self.out, "{}", object(self.header, &text))
    }
}

/// A line of text as an object: the columns that are not empty.
fn object(header: &str, line: &str) -> serde_json::Value {
    let names = header.trim_start_matches('#').split('\t');
    let columns = names.zip(line.trim_end_matches('\n').split('\t')).filter(|(_, value)| *value != "-");
    let value = |name: &str, value: &str| match (name, value.parse::<u64>()) {
        ("event" | "events" | "bytes", Ok(number)) => number.into(),
        _ => value.into(),
    };
    serde_json::Value::Object(columns.map(|(name, text)| (name.to_string(), value(name, text))).collect())
}
