//! Requested analyses of every access, and one replay for all of them.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use memlode_analyses::{Arguments, BadArgument, Reads, Registered, Run, Table, View, all};
use memlode_attribute::annotate::Annotations;
use memlode_attribute::simulators::ImpossibleMachine;
use memlode_attribute::{Simulation, Source};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::sites::SiteTable;
use memlode_trace::{Clock, Thread};

use crate::args::numbers;

/// Adds the analysis of an argument such as `shared`, or `shared:least=1000,ratio=4`.
pub fn add(run: &mut Run, wanted: &str) -> Result<()> {
    let (name, arguments) = wanted.split_once(':').unwrap_or((wanted, ""));
    let known = known(name).with_context(|| {
        let all = all();
        let of_rows = all.iter().filter(|known| known.meta.reads == Reads::Rows);
        let names: Vec<String> =
            of_rows.map(|known| format!("{} ({})", known.meta.id, known.meta.title)).collect();
        format!("--analyse {name}: there is no such analysis; choose from {}", names.join(", "))
    })?;
    ensure!(
        known.meta.reads == Reads::Rows,
        "--analyse {name}: its findings are in every report; use `memlode report DIR`"
    );
    let made = plain(arguments).parse().and_then(|arguments: Arguments| run.add(&known, &arguments));
    made.map_err(|BadArgument(why)| anyhow!("--analyse {wanted}: {why}"))
}

/// Returns a question with its counts in digits, as a task of a plan has it.
pub fn in_digits(wanted: &str) -> String {
    match wanted.split_once(':') {
        Some((name, arguments)) => format!("{name}:{}", plain(arguments)),
        None => wanted.to_owned(),
    }
}

/// The analysis of that name.
pub fn known(name: &str) -> Option<Registered> {
    all().into_iter().find(|known| known.meta.id == name)
}

/// Arguments with their counts in digits: `every=100k` is `every=100000`.
fn plain(arguments: &str) -> String {
    let digits = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => match numbers::count(value.trim()) {
            Ok(number) => format!("{name}={number}"),
            Err(_) => pair.to_owned(),
        },
        None => pair.to_owned(),
    };
    arguments.split(',').map(digits).collect::<Vec<_>>().join(",")
}

/// Replays a trace for some analyses. `watch` receives the number of finished chunks after each
/// batch.
pub fn run(
    source: &Source,
    machine: &Machine,
    mut analyses: Run,
    watch: impl Fn(usize),
) -> Result<(Vec<Table>, Replayed), ImpossibleMachine> {
    let mut annotations = Simulation::of(source, machine).rows(analyses.options())?;
    let (levels, latencies) = (machine.served_by(), machine.latencies());
    while let Some(events) = annotations.next_batch() {
        // What the batch speaks of is known by now, even if the trace is still being written.
        let names = Names::of(source);
        let view = names.view(machine, &annotations, &levels, &latencies);
        analyses.observe(&events, &view);
        annotations.give_back(events);
        watch(annotations.chunks());
    }
    let names = Names::of(source);
    let view = names.view(machine, &annotations, &levels, &latencies);
    let tables = analyses.finish(&view).into_iter().flat_map(|found| found.tables).collect();
    Ok((tables, annotations.finish()))
}

/// Names of a trace.
struct Names {
    sites: Arc<SiteTable>,
    threads: Vec<Thread>,
    clock: Option<Clock>,
}

impl Names {
    fn of(source: &Source) -> Names {
        source.look(|trace| Names {
            sites: trace.sites_kept(),
            threads: trace.threads().to_vec(),
            clock: trace.clock(),
        })
    }

    fn view<'a>(
        &'a self,
        machine: &'a Machine,
        annotations: &'a Annotations,
        levels: &'a [String],
        latencies: &'a [u32],
    ) -> View<'a> {
        View {
            cells: annotations.cells(),
            names: &self.sites,
            threads: &self.threads,
            machine,
            levels,
            latencies,
            clock: self.clock,
            counted: None,
            before: &[],
        }
    }
}
