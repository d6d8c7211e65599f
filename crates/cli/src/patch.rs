//! Edited structures as a patch of the program's sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use memlode_layout::Layout;
use memlode_patch::command::Unit;
use memlode_patch::{Patch, Unpatched, inputs, is_c_or_cxx, options, split};
use memlode_report::Compiled;
use memlode_report::HandEdit;
use memlode_report::render::terminal::hand_edit;
use memlode_trace::Trace;
use memlode_whatif::plan::Plan;

use crate::driver::toolchain::{self, Language};
use crate::install::Install;
#[cfg(feature = "measure")]
use crate::term;

/// Sources of a program, at most.
const MOST_UNITS: usize = 10_000;

/// The file of a patch, and who says that it changes nothing else.
#[derive(Debug, clap::Args)]
pub struct PatchArgs {
    /// Write the edited structures as a patch of the program's sources, or the places to edit by hand
    #[arg(long, value_name = "FILE")]
    pub patch: Option<PathBuf>,
    /// Run this line of the shell in a copy of the folder, without the patch and with it: the patch is written only if
    /// exit status and standard output are the same
    #[cfg(feature = "measure")]
    #[arg(long, value_name = "CMD", requires = "patch")]
    pub check: Option<String>,
}

/// Edited structures in the sources of a program.
pub struct Patched {
    /// The patch.
    pub text: String,
    /// Why structures are not in it.
    pub refused: Vec<Unpatched>,
    /// The edited files, absolute, with their new texts.
    #[cfg(feature = "measure")]
    edited: Vec<(PathBuf, String)>,
    /// The folder in which the patch applies.
    #[cfg(feature = "measure")]
    folder: PathBuf,
}

impl PatchArgs {
    /// Lets the given command judge a patch of a program, if there is one.
    #[cfg(feature = "measure")]
    pub fn judge(&self, patched: &Patched, trace: &Trace) -> Result<()> {
        use memlode_measure::folder_check::{CheckVerdict, FolderCheck};

        let Some(command) = &self.check else { return Ok(()) };
        if patched.edited.is_empty() {
            return Ok(());
        }
        let without: Vec<PathBuf> = std::fs::canonicalize(trace.directory()).into_iter().collect();
        let stop = crate::stop::stop_on_signals()?;
        let check = FolderCheck { folder: &patched.folder, without: &without, command, stop: &stop };
        match check.run(&patched.edited).context("--check")? {
            CheckVerdict::Same => term::note(&format!(
                "--check: with the patch `{command}` prints the same and exits with the same status as without it"
            )),
            CheckVerdict::SameStatus => term::note(&format!(
                "--check: with the patch `{command}` exits with the same status as without it; what it prints differs from \
                 run to run, so that was not compared"
            )),
            CheckVerdict::Different(how) => {
                bail!("--check: with the patch, `{command}` {how}: no patch is written")
            }
        }
        Ok(())
    }

    /// Nothing judges a patch.
    #[cfg(not(feature = "measure"))]
    pub fn judge(&self, _: &Patched, _: &Trace) -> Result<()> {
        Ok(())
    }
}

/// The patch that makes the edited structures of some plans, and why others make none.
pub fn patch(trace: &Trace, plans: &[&Plan]) -> Result<Patched> {
    let layouts: Vec<&Layout> = plans.iter().flat_map(|plan| plan.layouts()).collect();
    if layouts.is_empty() {
        bail!("--patch: these edits change no structure");
    }
    let compiler = toolchain::find(Language::C, &Install::find()?)?;
    let resources = Command::new(&compiler.path).arg("-print-resource-dir").output();
    let resources = resources.with_context(|| format!("cannot run {}", compiler.path.display()))?;
    let resources = String::from_utf8_lossy(&resources.stdout).trim().to_string();
    let here =
        std::env::current_dir().and_then(std::fs::canonicalize).context("--patch: the working folder")?;
    let units = units(trace)?;
    let compiled = Compiled::of(trace);
    let source = Box::new(move |file: &Path| compiled.read_real(file));
    let mut patch = Patch::new(units, &compiler.path, &resources, &here, source).context("--patch")?;
    let mut refused = Vec::new();
    for layout in layouts {
        if let Err(why) = patch.add(layout) {
            refused.push(why);
        }
    }
    let text = patch.diff().context("--patch")?;
    Ok(Patched {
        text,
        refused,
        #[cfg(feature = "measure")]
        edited: patch.edited(),
        #[cfg(feature = "measure")]
        folder: here,
    })
}

/// Places that have to be edited by hand.
pub fn by_hand(refused: &[Unpatched]) -> Vec<HandEdit> {
    let places = refused.iter().filter_map(|why| match why {
        Unpatched::ByHand { places, .. } => Some(places),
        Unpatched::Sentence(_) => None,
    });
    let plain = |text: &str| text.replace(char::is_control, " ");
    let edit = |found: &memlode_patch::PlaceToEdit| HandEdit {
        place: plain(&found.place),
        why: plain(&found.why),
        task: plain(&found.task),
    };
    places.flatten().map(edit).collect()
}

/// Places to edit by hand, a comment each, as a patch may hold them.
pub fn comments(edits: &[HandEdit]) -> String {
    edits.iter().map(|edit| format!("# {}\n", hand_edit(edit))).collect()
}

/// The sources of a trace's images, each with its compiler options.
fn units(trace: &Trace) -> Result<Vec<Unit>> {
    let names = trace.sites();
    let known: BTreeSet<(&str, &str)> = names
        .functions()
        .iter()
        .filter_map(|function| function.file)
        .map(|(directory, file)| (names.string(directory), names.string(file)))
        .collect();
    let mut units: Vec<Unit> = Vec::new();
    for image in trace.modules() {
        let path = Path::new(&image.path);
        let built = std::fs::metadata(path).and_then(|facts| facts.modified());
        let built = built
            .with_context(|| format!("--patch: {} knows how its sources were compiled", path.display()))?;
        let commands = memlode_symbols::compile_commands(path).context("--patch")?;
        for line in commands {
            let words = split(&line);
            for input in inputs(&words) {
                let Some(directory) = directory(&known, path, input) else {
                    let input = input.escape_debug();
                    bail!("--patch: {} was compiled from {input}, which is not found", path.display());
                };
                let file = directory.join(input);
                let facts = std::fs::metadata(&file);
                let facts =
                    facts.with_context(|| format!("--patch: {} was compiled from it", path.display()))?;
                if !facts.is_file() {
                    bail!("--patch: {} is no regular file", file.display());
                }
                if facts.modified().is_ok_and(|changed| changed > built) {
                    bail!(
                        "--patch: {} was changed after {} was built: build and record it again",
                        file.display(),
                        path.display()
                    );
                }
                let unit = Unit { options: options(&words, &directory), file };
                if !units.contains(&unit) && units.len() < MOST_UNITS {
                    units.push(unit);
                }
            }
        }
    }
    if units.is_empty() {
        bail!(
            "--patch: no image of the trace says how a source in C or C++ was compiled; patches are of programs that \
             `memlode cc` or `memlode c++` built and that are still there"
        );
    }
    let missing = known.iter().map(|(directory, file)| Path::new(directory).join(file)).find(|file| {
        let is_ours = is_c_or_cxx(file) && !file.starts_with("/usr");
        let real = std::fs::canonicalize(file).ok();
        is_ours && real.is_some() && !units.iter().any(|unit| std::fs::canonicalize(&unit.file).ok() == real)
    });
    match missing {
        Some(file) if file.is_file() => bail!(
            "--patch: it is not known how {} was compiled, so uses of the structure may be missed: build it by `memlode cc` \
             or `memlode c++`",
            file.display()
        ),
        _ => Ok(units),
    }
}

/// The folder that a command was given in, by the functions of the source that it names.
fn directory(known: &BTreeSet<(&str, &str)>, image: &Path, input: &str) -> Option<PathBuf> {
    let is_it =
        |(directory, file): &&(&str, &str)| *file == input && Path::new(directory).join(file).exists();
    let by_name = known.iter().find(is_it).map(|(directory, _)| PathBuf::from(directory));
    let beside = image.parent().map(Path::to_owned).filter(|folder| folder.join(input).exists());
    let by_ancestor =
        || image.ancestors().skip(1).find(|folder| folder.join(input).exists()).map(Path::to_owned);
    by_name.or(beside).or_else(by_ancestor)
}
