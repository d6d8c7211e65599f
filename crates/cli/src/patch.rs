//! Edited structures as a patch of the program's sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use memlode_attribute::place::place;
use memlode_layout::Layout;
use memlode_trace::sites::SiteTable;
use memlode_whatif::candidates::first_component;
use memlode_whatif::patch::{Unwritten, rewritten, unified_diff};
use memlode_whatif::plan::Plan;

use crate::whatif::AsItIs;

/// Sources that are looked into, at most.
const MOST_FILES: usize = 10_000;

/// The patch that makes the edited structures of a plan, and above it what else has to change.
pub fn patch(as_it_is: &AsItIs, plan: &Plan) -> Result<String> {
    let names = as_it_is.trace.sites();
    let files = sources(names);
    let mut out = String::new();
    for layout in plan.layouts() {
        let name = &layout.structure().name;
        let mut why = None;
        let written = files.iter().find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            match rewritten(&text, layout) {
                Ok(new) => Some(unified_diff(&file.display().to_string(), &text, &new)),
                Err(Unwritten::NotThere(_)) => None,
                Err(other) => {
                    why = Some(other);
                    None
                }
            }
        });
        let Some(diff) = written else {
            match why {
                Some(why) => bail!("--patch: {why}"),
                None => bail!(
                    "--patch: no source of the trace that can be read has a definition of `struct {name}`"
                ),
            }
        };
        for place in places(names, layout) {
            out += &format!("# {place}\n");
        }
        out += &diff;
    }
    if out.is_empty() {
        bail!("--patch: these edits change no structure");
    }
    Ok(out)
}

/// Lines that touch members which are somewhere else now.
fn places(names: &SiteTable, layout: &Layout) -> BTreeSet<String> {
    let apart = layout.parts().iter().skip(1).flat_map(|part| &part.slots).flat_map(|slot| &slot.names);
    let apart: BTreeSet<&str> = apart.map(String::as_str).collect();
    let mut places = BTreeSet::new();
    for site in names.sites() {
        let Some((ty, member)) = site.ty.zip(site.member) else { continue };
        let member = first_component(names.string(member));
        if names.string(names.ty(ty).name) != layout.structure().name || !apart.contains(member) {
            continue;
        }
        let place = place(names, site);
        let line = place.inlined_into.unwrap_or(place.line);
        let file = line.file.map_or("?", |(_, file)| names.string(file));
        places.insert(format!(
            "{file}:{}: {} uses {member}, which moves",
            line.line,
            names.string(line.function)
        ));
    }
    places
}

/// The program's sources: those of its functions, and what they include by a name in quotes.
fn sources(names: &SiteTable) -> Vec<PathBuf> {
    let of_functions = names.functions().iter().filter_map(|function| function.file);
    let mut found: BTreeSet<PathBuf> = of_functions
        .map(|(directory, file)| Path::new(names.string(directory)).join(names.string(file)))
        .filter(|file| !file.starts_with("/usr"))
        .collect();
    let mut next: Vec<PathBuf> = found.iter().cloned().collect();
    while let Some(file) = next.pop().filter(|_| found.len() < MOST_FILES) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let included = text.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
            rest.trim_start().strip_prefix('"')?.split('"').next().map(str::to_string)
        });
        for name in included {
            let header = file.parent().unwrap_or(Path::new(".")).join(name);
            if header.is_file() && found.insert(header.clone()) {
                next.push(header);
            }
        }
    }
    found.into_iter().collect()
}
