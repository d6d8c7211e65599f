//! The calls that a line was inlined at: of a small accessor, its own line says little.

use memlode_attribute::Cell;
use memlode_attribute::libraries::is_library_function;
use memlode_attribute::place::{Line, Place};
use memlode_attribute::tables::Tables;
use memlode_trace::sites::{Site, SiteTable};

use crate::Callers;

/// Calls must have this part of the cost together before the next ones are considered.
const ALL: f64 = 0.99;

/// Calls with a smaller part are left out.
const LEAST: f64 = 0.01;

/// Follows a line from call to call, to the outermost one, until the calls divide. `here` are the
/// cells of the line. `None` if it was not inlined.
pub(crate) fn callers(
    tables: &Tables<'_>,
    names: &SiteTable,
    place: &Place,
    here: impl Fn(&Cell) -> bool,
) -> Option<Callers> {
    let shown = place.inlined_into.unwrap_or(place.line);
    let mut through: Vec<Line> = Vec::new();
    loop {
        let depth = through.len();
        let next = |cell: &Cell| {
            let mut calls = calls(names, names.site(cell.site), &shown);
            let known = through.iter().all(|line| calls.next() == Some(*line));
            known.then(|| calls.next())
        };
        let rows = tables.roll(|cell| here(cell).then(|| next(cell)).flatten());
        let all: f64 = rows.iter().map(|row| row.wait.cycles()).sum();
        let first = rows.first()?;
        let share = |cycles: f64| if all > 0.0 { cycles / all } else { 0.0 };
        match first.key {
            Some(line) if share(first.wait.cycles()) >= ALL => through.push(line),
            _ => {
                let shares = rows.iter().map(|row| (row.key, share(row.wait.cycles())));
                let divided: Vec<_> = shares.filter(|(_, share)| *share >= LEAST).collect();
                let is_whole = divided.iter().all(|(line, _)| line.is_none());
                let divided = if is_whole { Vec::new() } else { divided };
                return (depth > 0 || !divided.is_empty()).then_some(Callers { through, divided });
            }
        }
    }
}

/// The calls outside of the line that is shown, the innermost first, without those of libraries.
fn calls<'t>(names: &'t SiteTable, site: &Site, shown: &Line) -> impl Iterator<Item = Line> + use<'t> {
    let shown = *shown;
    let chain = site.location.into_iter().flat_map(move |location| names.inline_chain(location));
    chain
        .map(move |at| (at.function, Line::of(names, at.function, at.line)))
        .skip_while(move |(_, line)| *line != shown)
        .skip(1)
        .filter(move |(function, _)| !is_library_function(names, *function))
        .map(|(_, line)| line)
}
