//! Calibrations of a machine.

use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use memlode_measure::machine::{Calibration, MachineNote, Measured};

/// Returns the table, and where it was written.
pub fn written(calibration: &Calibration, file: &Path, hash: &str) -> String {
    format!("{}\nwritten to {} ({hash})\n", text(calibration), file.display())
}

/// Returns a table of the constants, then the notes.
pub fn text(calibration: &Calibration) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["constant", "value", "unit", "spread", ""]);
    for constant in &calibration.constants {
        table.add_row(row(constant));
    }
    for number in [1, 3] {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut out: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    for note in &calibration.notes {
        out += &format!("note: {}\n", self::note(note));
    }
    out
}

/// Returns the line about a measurement that a command made and kept.
pub fn kept(file: &Path) -> String {
    format!("this machine's caches were measured, once: {}", file.display())
}

/// Returns a note as a sentence.
pub fn note(note: &MachineNote) -> String {
    match note {
        MachineNote::OneProcessor => "there is one processor, so what shared lines cost is assumed".into(),
        MachineNote::Apart(first, partner) => {
            format!("processors {first} and {partner} did not run at the same time")
        }
        MachineNote::HardlyLater { level } => format!(
            "memory answers hardly later than {level}, so the size of the latter is what the system says"
        ),
        MachineNote::Smaller { level, bytes, believed } => format!(
            "the system says that {level} has {} MiB, but chases through so much find about {} MiB there, and the rest takes \
             as long as memory: {level} is taken to have {1} MiB",
            bytes >> 20,
            believed >> 20
        ),
    }
}

fn row(constant: &Measured) -> [String; 5] {
    let known = match constant.kept {
        None => "measured".to_string(),
        Some(kept) => format!("not trusted: {} stays assumed", number(kept)),
    };
    let spread = if constant.spread < 10.0 {
        format!("{:.0}%", 100.0 * constant.spread)
    } else {
        "over 999%".to_string()
    };
    [constant.name.clone(), number(constant.value), unit(&constant.name).to_string(), spread, known]
}

/// Three digits.
fn number(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// The unit of a constant, from its key; a level's name stands for its latency.
fn unit(name: &str) -> &'static str {
    match name {
        "clock_ghz" => "GHz",
        "overlap_l2" | "overlap_memory" => "accesses",
        "overlap_walk" => "walks",
        "window_instructions" => "instructions",
        "counting_slowdown" => "times",
        "read_line_cycles" | "write_line_cycles" | "zeroed_line_cycles" => "cycles a line",
        _ => "cycles",
    }
}
