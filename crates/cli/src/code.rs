//! Instructions of the programs that were recorded, beneath source lines.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use memlode_report::{NamedListing, SiteCounts, WantedLines};
use memlode_symbols::ProgramFile;
use memlode_symbols::code::{FunctionCode, code_of};
use memlode_trace::Trace;

use crate::term;

/// Adds to a listing the instructions of its lines, from the program in `native` or from the
/// recorded programs.
pub fn add(
    listing: &mut NamedListing,
    wanted: &WantedLines,
    counts: &SiteCounts<'_>,
    trace: &Trace,
    native: Option<&Path>,
) -> Result<()> {
    let names = counts.functions(listing, wanted);
    counts.add_to(listing, wanted, &code(trace, native, &names)?);
    Ok(())
}

/// A program, if it is still the one that was recorded; or why it is not.
pub fn recorded(path: &str, build_id: &[u8]) -> Result<ProgramFile, String> {
    let program = ProgramFile::read(Path::new(path)).map_err(|why| why.to_string())?;
    match program.build_id() {
        Some(id) if id == build_id => Ok(program),
        _ => Err(format!("{path} is not the program that was recorded")),
    }
}

/// The code of functions: of the named program, or of the recorded ones.
fn code(trace: &Trace, native: Option<&Path>, names: &BTreeSet<String>) -> Result<Vec<FunctionCode>> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    if let Some(native) = native {
        let program = ProgramFile::read(native)?;
        if program.debug().is_none() {
            bail!(
                "{} has no debug information, so its instructions have no lines: compile it with -g",
                native.display()
            );
        }
        found = code_of(&program, names)?;
    } else {
        for image in trace.modules() {
            match recorded(&image.path, &image.build_id) {
                Ok(program) => found.extend(code_of(&program, names)?),
                Err(why) => missing.push(why),
            }
        }
    }
    match (found.is_empty(), missing.first()) {
        (true, Some(why)) => bail!("{why}: name a build of the same sources by --native"),
        (true, None) => term::note("the program has no code of these lines in functions of its own"),
        (false, _) => missing.iter().for_each(|why| term::note(&format!("instructions are left out: {why}"))),
    }
    Ok(found)
}
