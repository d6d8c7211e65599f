//! `memlode annotate` of samples: source lines and instructions, each with its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use memlode_report::render::terminal::{SampleEvent, sampled_listing};
use memlode_report::text::printable;
use memlode_report::{ModuleCode, SampledPlaces, Sources, WantedLines};
use memlode_symbols::code::code_of;
use memlode_symbols::debug::Debug;
use memlode_trace::sampled::SampledRecording;

use crate::next::ConfidentialArgs;
use crate::show::Out;
use crate::status::OK;
use crate::{code, sampled, term};

/// A listing of samples: its subject and form.
pub struct SampledLines<'a> {
    /// The lines.
    pub wanted: &'a WantedLines,
    /// Columns, by name; the usual ones if there are none.
    pub events: &'a [String],
    /// Neighbours of each line.
    pub context: u32,
    /// Instructions are listed, too.
    pub with_code: bool,
    /// The output is JSON.
    pub as_json: bool,
    /// Sources that are not shown.
    pub confidential: &'a ConfidentialArgs,
}

impl SampledLines<'_> {
    /// Lists the lines of a trace of samples.
    pub fn show(&self, directory: &Path) -> Result<ExitCode> {
        let events = SampleEvent::named(self.events).map_err(|why| anyhow!(why))?;
        let (trace, recording) = sampled::open(directory)?;
        let places = SampledPlaces::of(&recording);
        let (code, directories) = self.programs(&recording, &places)?;
        let mut sources: Sources = self.confidential.sources(&trace, 0)?.within(directories);
        let found = places.listing(&code, &mut sources, self.wanted, self.context);
        if found.parts.is_empty() {
            bail!("{}", self.nothing(&places));
        }
        if self.as_json {
            sampled::print_document("memlode sample listing", &found)?;
            return Ok(ExitCode::from(OK));
        }
        let events = if events.is_empty() { SampleEvent::usual(&found) } else { events };
        Out::Stdout.write(&sampled_listing(&found, &events, Out::Stdout.style(0)), false)?;
        Ok(ExitCode::from(OK))
    }

    /// The code of the wanted lines, where it is listed, and the directories that it was compiled in: of the programs
    /// that were sampled, as far as they are still there.
    fn programs(
        &self,
        recording: &SampledRecording,
        places: &SampledPlaces<'_>,
    ) -> Result<(Vec<ModuleCode>, BTreeSet<PathBuf>)> {
        let (mut found, mut directories, mut missing) = (Vec::new(), BTreeSet::new(), Vec::new());
        for (number, module) in (0..).zip(&recording.modules) {
            let names = places.functions(number, self.wanted);
            if names.is_empty() || module.path.is_empty() {
                continue;
            }
            match code::recorded(&module.path, &module.build_id) {
                Ok(program) => {
                    directories.extend(program.debug().map(Debug::directories).unwrap_or_default());
                    if self.with_code {
                        found.extend(code_of(&program, &names)?.into_iter().map(|code| (number, code)));
                    }
                }
                Err(why) => missing.push(why),
            }
        }
        missing.retain(|_| self.with_code);
        match (found.is_empty(), missing.first()) {
            (true, Some(why)) => bail!("{why}: leave out --asm, or sample the program that is there now"),
            _ => missing.iter().for_each(|why| term::note(&format!("instructions are left out: {why}"))),
        }
        Ok((found, directories))
    }

    /// The reason why nothing is listed, and what could be.
    fn nothing(&self, places: &SampledPlaces<'_>) -> String {
        let mut known = BTreeSet::new();
        let mut some = |name: Option<String>| name.filter(|name| known.insert(name.clone()));
        let (what, all): (String, Vec<String>) = match self.wanted {
            WantedLines::Hot(_) => {
                return "no function has 1% of the samples: name a file, or a function by --function".into();
            }
            WantedLines::Function(name) => (
                format!("in a function {}", printable(name)),
                places.positions().filter_map(|at| some(Some(at.function.clone()))).take(5).collect(),
            ),
            WantedLines::File(file, Some(line)) => (
                format!("at line {line} of {}", printable(file)),
                places
                    .positions()
                    .filter_map(|at| some(Some(format!("{}:{}", at.file.as_ref()?, at.line?))))
                    .take(5)
                    .collect(),
            ),
            WantedLines::File(file, None) => (
                format!("in a file {}", printable(file)),
                places.positions().filter_map(|at| some(at.file.clone())).take(5).collect(),
            ),
        };
        let most = all.iter().map(|name| printable(name).into_owned()).collect::<Vec<_>>().join(", ");
        format!("no sample is {what}: most are in {most}")
    }
}
