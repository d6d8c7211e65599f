//! The machine that a command simulates: the host is measured the first time that one needs it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use memlode_machine::{HostSources, Machine};
#[cfg(feature = "measure")]
use memlode_measure::machine::settled;
#[cfg(feature = "measure")]
use memlode_report::render::measured::machine as words;

use crate::term;

/// The variable that says `off` where nothing is to be measured.
const SWITCH: &str = "MEMLODE_CALIBRATE";

/// Returns the machine of a `--machine` argument.
///
/// # Errors
/// Fails as [`Machine::find`] does.
pub fn machine(wanted: &str) -> Result<Machine> {
    // A build that cannot measure assumes latencies.
    #[cfg(feature = "measure")]
    measure_if_needed(wanted);
    Ok(Machine::find(wanted)?)
}

/// Measures the host if that is the machine, and it was not measured before.
#[cfg(feature = "measure")]
fn measure_if_needed(wanted: &str) {
    if wanted == "host"
        && std::env::var_os(SWITCH).is_none_or(|value| value != "off")
        && Machine::host().file_hash.is_none()
        && let Some(file) = measure()
    {
        term::note(&words::kept(&file));
    }
}

/// Measures the host, and keeps the result; returns the file. `None` if it cannot be kept, or if
/// others use the processors: then latencies are assumed, and reports say so.
#[cfg(feature = "measure")]
fn measure() -> Option<PathBuf> {
    let sources = HostSources { measured: None, ..HostSources::default() };
    let described = HostSources { kept: None, ..sources.clone() }.detect();
    let file = sources.kept_file(&described)?;
    fs::create_dir_all(file.parent()?).ok()?;
    let text = settled(&described).ok()??.machine.to_toml();
    Machine::from_toml(&text, &file.display().to_string()).ok()?;
    keep(&file, &text).ok()?;
    Some(file)
}

/// Writes a file as a whole, since other commands may read it meanwhile.
fn keep(file: &Path, text: &str) -> std::io::Result<()> {
    let beside = file.with_extension(std::process::id().to_string());
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}
