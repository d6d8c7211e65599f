//! Columns of counts and costs.

use memlode_report::Numbers;
use memlode_report::{NamedRow, Simulated};

use crate::columns::Columns;

/// Makes a table of a report's: columns of the subjects, and then of their numbers.
pub fn rows<S>(levels: &[&str], rows: &[NamedRow<S>], subjects: impl Fn(&mut Columns, &[&S])) -> Columns {
    let mut out = Columns::new(rows.len());
    subjects(&mut out, &rows.iter().map(|row| &row.subject).collect::<Vec<_>>());
    let of: Vec<&Numbers> = rows.iter().map(|row| &row.numbers).collect();
    numbers(&mut out, levels, &of);
    out
}

/// Adds the counts and the costs of rows.
pub fn numbers(out: &mut Columns, levels: &[&str], rows: &[&Numbers]) {
    out.u64("accesses", rows.iter().map(|row| row.accesses));
    out.u64("reads", rows.iter().map(|row| row.reads));
    out.u64("writes", rows.iter().map(|row| row.writes));
    for (level, name) in levels.iter().enumerate() {
        out.u64(&format!("misses_{name}"), rows.iter().map(|row| row.misses.of(level)));
    }
    out.u64("stall_cycles", rows.iter().map(|row| row.stall_cycles));
    out.f64("stall_share", rows.iter().map(|row| row.stall_share));
    out.f64("wait_cycles", rows.iter().map(|row| row.wait.cycles));
    out.f64("wait_share", rows.iter().map(|row| row.wait_share));
    out.f64("wait_stored", rows.iter().map(|row| row.wait.stored));
    out.f64("wait_streamed", rows.iter().map(|row| row.wait.streamed));
    out.f64("wait_chained", rows.iter().map(|row| row.wait.chained));
    out.f64("wait_overlapping", rows.iter().map(|row| row.wait.overlapping));
    out.f64("first_touch_cycles", rows.iter().map(|row| row.wait.first_touch_cycles));
    out.f64("instruction_cycles", rows.iter().map(|row| row.wait.instruction_cycles));
    standard_errors(out, levels, rows);
}

/// Adds the standard errors of a sample's numbers; a whole recording has none.
fn standard_errors(out: &mut Columns, levels: &[&str], rows: &[&Numbers]) {
    if rows.iter().all(|row| row.standard_errors.is_none()) {
        return;
    }
    let errors = || rows.iter().map(|row| row.standard_errors.as_ref());
    out.maybe_f64("accesses_error", errors().map(|of| of.map(|of| of.accesses)));
    for (level, name) in levels.iter().enumerate() {
        out.maybe_f64(&format!("misses_{name}_error"), errors().map(|of| of.map(|of| of.misses.of(level))));
    }
    out.maybe_f64("stall_cycles_error", errors().map(|of| of.map(|of| of.stall_cycles)));
    out.maybe_f64("stall_share_error", errors().map(|of| of.map(|of| of.stall_share)));
    out.maybe_f64("wait_share_error", errors().map(|of| of.map(|of| of.wait_share)));
}

/// Makes the table of a machine's caches.
pub fn levels(machine: &Simulated) -> Columns {
    let levels = &machine.levels;
    let mut out = Columns::new(levels.len());
    out.text("machine", levels.iter().map(|_| &machine.name));
    out.text("level", levels.iter().map(|level| &level.name));
    out.u64("bytes", levels.iter().map(|level| level.bytes));
    out.u64("ways", levels.iter().map(|level| level.ways.into()));
    out.u64("line_bytes", levels.iter().map(|level| level.line_bytes.into()));
    out.u64("shared_by", levels.iter().map(|level| level.shared_by.into()));
    out.u64("latency_cycles", levels.iter().map(|level| level.latency_cycles.into()));
    out.u64("reads", levels.iter().map(|level| level.reads));
    out.u64("writes", levels.iter().map(|level| level.writes));
    out.u64("read_misses", levels.iter().map(|level| level.read_misses));
    out.u64("write_misses", levels.iter().map(|level| level.write_misses));
    out.u64("write_backs", levels.iter().map(|level| level.write_backs));
    out
}
