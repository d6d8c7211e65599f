//! From a trace directory and the name of a machine to what analyses of every access find, in one replay.

use std::io::stdout;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use memlode_analyses::events::{Analysis, Table, View};
use memlode_attribute::annotate::Annotations;
use memlode_attribute::run::latencies;
use memlode_export::{Request, level_names, request};
use memlode_machine::Machine;
use memlode_report::findings;
use memlode_report::notes::{notes, nothing_decoded};
use memlode_report::terminal::Style;
use memlode_trace::Trace;
use serde_json::json;

use crate::commands::{print, print_json};
use crate::{analyse, term};

/// Replays a trace for some analyses, and prints what they find.
pub fn run(
    directory: &Path,
    machine: &str,
    analyses: impl FnOnce(&Trace) -> Result<Vec<Box<dyn Analysis>>>,
    top: usize,
    json: bool,
) -> Result<()> {
    let machine = Machine::find(machine)?;
    let trace = Arc::new(analyse::open(directory)?);
    let (mut annotations, _) = request::start(&trace, &machine, &Request::default())?;
    let mut analyses = analyses(&trace)?;
    let (levels, latencies) = (level_names(&machine), latencies(&machine));
    let view = |annotations: &Annotations, act: &mut dyn FnMut(View<'_>)| {
        act(View {
            cells: annotations.cells(),
            names: trace.sites(),
            threads: trace.threads(),
            levels: &levels,
            latencies: &latencies,
            clock: trace.clock(),
        });
    };
    let bar = term::Progress::of(&trace, "replaying");
    while let Some(events) = annotations.next_batch() {
        view(&annotations, &mut |view| analyses.iter_mut().for_each(|analysis| analysis.take(&events, view)));
        annotations.give_back(events);
        bar.advance_to(annotations.chunks());
    }
    bar.finish();
    let mut tables: Vec<Table> = Vec::new();
    let mut analyses = analyses.into_iter();
    view(&annotations, &mut |view| {
        tables.extend(analyses.by_ref().flat_map(|analysis| analysis.finish(view)))
    });
    let replayed = annotations.finish();
    if let Some(why) = nothing_decoded(&trace, &replayed) {
        bail!("{why}");
    }
    let notes = notes(&trace, Some(&replayed));
    if json {
        let tables: Vec<_> = tables.iter().map(|table| findings::json(&trace, table)).collect();
        return print_json(&json!({
            "format": "memlode analysis",
            "version": 1,
            "trace": trace.directory().display().to_string(),
            "machine": machine.name,
            "notes": notes,
            "tables": tables,
        }));
    }
    let style = Style { colours: term::colours(&stdout()), width: term::width(&stdout()), top };
    let texts = tables.iter().map(|table| findings::text(&trace, table, style));
    print(&texts.collect::<String>())?;
    notes.iter().for_each(|note| term::note(note));
    Ok(())
}
