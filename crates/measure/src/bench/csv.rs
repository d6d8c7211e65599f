//! Every run as a row, for spreadsheets.

use super::Result;

/// Every run as a row.
///
/// # Panics
/// Never: memory takes whatever is written.
pub fn csv(result: &Result) -> String {
    let mut rows = csv::Writer::from_writer(Vec::new());
    let head = [
        "program",
        "round",
        "layout",
        "link_variant",
        "environment_padding_bytes",
        "addresses",
        "wall_seconds",
        "cpu_seconds",
        "queued_seconds",
        "calibration_nanoseconds",
    ];
    rows.write_record(head).expect("memory takes everything");
    for run in &result.runs {
        let place = &run.place;
        let fields = [
            result.programs[place.program].command.clone(),
            place.round.to_string(),
            if place.slot == 0 { "given" } else { "random" }.to_string(),
            place.variant.to_string(),
            place.layout.padding.to_string(),
            if place.layout.randomised { "random" } else { "fixed" }.to_string(),
            run.sample.wall.to_string(),
            run.sample.cpu.to_string(),
            run.sample.queued.to_string(),
            run.calibration.to_string(),
        ];
        rows.write_record(fields).expect("memory takes everything");
    }
    String::from_utf8_lossy(&rows.into_inner().unwrap_or_default()).into_owned()
}
