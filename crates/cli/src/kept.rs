//! Answers that are kept beside a trace: looked up before a replay, and stored after it.

use std::ffi::OsStr;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;
use clap::{Arg, ArgMatches, CommandFactory, Parser, ValueHint};
use indicatif::HumanDuration;
use memlode_machine::Machine;
use memlode_report::{CommandAnswer, render};
use memlode_results::{Kept, Lookup, MachineIdentity, Question, Unusable, Why, fingerprint, is_off};
use memlode_trace::Trace;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::passed_on::was_given;
use crate::{stop, term};

/// Arguments that change where or how much of an answer is shown or kept, but not the answer; and
/// those that a question has in another form: traces and machines.
const BESIDES: [&str; 17] = [
    "trace",
    "before",
    "after",
    "machine",
    "other_machine",
    "top",
    "by",
    "only",
    "confidential",
    "context",
    "json",
    "svg",
    "patch",
    "again",
    "no_keep",
    "list",
    "processes",
];

/// Bytes of the largest file that an option names.
const LARGEST: u64 = 64 << 20;

/// Options about answers that are kept.
#[derive(Clone, Copy, Debug, Default, Parser)]
pub struct KeepArgs {
    /// Compute anew what was asked before
    #[arg(long)]
    pub again: bool,
    /// Keep no answer beside the trace
    #[arg(long)]
    pub no_keep: bool,
}

/// The question of a command's arguments: all of them that change its answer.
pub fn question<A: CommandFactory>(
    command: &str,
    given: Option<&ArgMatches>,
    machines: &[&Machine],
) -> Question {
    let mut question = Question { command: command.to_string(), ..Question::default() };
    question.machines = machines.iter().map(|machine| MachineIdentity::of(&machine.name, machine)).collect();
    let Some(given) = given else { return question };
    for option in A::command().get_arguments().filter(|option| counts(option, given)) {
        let name = option.get_id().as_str();
        let values = given.get_raw(name).into_iter().flatten().map(|value| meaning(option, value));
        question.options.insert(name.to_string(), values.collect());
    }
    question
}

fn counts(option: &Arg, given: &ArgMatches) -> bool {
    !BESIDES.contains(&option.get_id().as_str()) && was_given(option, given)
}

/// A value as it was typed; for a file, with its contents.
fn meaning(option: &Arg, value: &OsStr) -> String {
    let shown = match value.to_str() {
        Some(text) => text.to_string(),
        None => format!("{value:?}"),
    };
    let may_be_file =
        matches!(option.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::Other);
    match may_be_file.then(|| memlode_files::read(Path::new(value), LARGEST)) {
        Some(Ok(bytes)) => format!("{shown} with {}", fingerprint(&bytes)),
        _ => shown,
    }
}

/// An answer that may be kept.
pub trait Answer: Serialize + DeserializeOwned {
    /// Returns whether it can be shown, as one that was read from a file may not.
    fn is_sound(&self) -> bool {
        true
    }

    /// Repeats what was said when it was computed.
    fn say_notes(&self) {}

    /// Notes where the traces lie now.
    fn locate(&mut self, _before: &str, _after: &str) {}
}

impl Answer for CommandAnswer {
    fn is_sound(&self) -> bool {
        CommandAnswer::is_sound(self)
    }

    fn say_notes(&self) {
        self.notes.iter().for_each(|note| term::note(&render::note(note)));
    }

    fn locate(&mut self, before: &str, after: &str) {
        CommandAnswer::locate(self, before, after);
    }
}

impl KeepArgs {
    /// Computes the answer in any case, if the computation has another purpose, too.
    pub fn unless(self, is_wanted: bool) -> KeepArgs {
        KeepArgs { again: self.again || is_wanted, ..self }
    }

    /// The answer that was kept beside the first trace, or else a computed one, which is then kept.
    pub fn answer<A: Answer>(
        self,
        question: Question,
        traces: &[&Trace],
        compute: impl FnOnce() -> Result<A>,
    ) -> Result<A> {
        let asked = asked(question, traces);
        if let Some(found) = asked.as_ref().filter(|_| !self.again).and_then(found) {
            return Ok(as_now(found, traces));
        }
        let answer = compute()?;
        // What a signal cut short is no answer to what was asked.
        if let Some(asked) = asked.filter(|_| !self.no_keep && !stop::is_search_ended()) {
            // Where nothing can be written, it is computed again the next time.
            let _ = asked.keep(&answer);
        }
        Ok(answer)
    }
}

/// A kept answer that is still right, for use in another answer.
pub fn find(question: Question, trace: &Trace) -> Option<CommandAnswer> {
    let kept = asked(question, &[trace])?.find::<CommandAnswer>().ok().flatten()?;
    kept.answer.is_sound().then_some(kept.answer)
}

fn found<A: Answer>(asked: &Lookup<'_>) -> Option<Kept<A>> {
    match asked.find::<A>() {
        Ok(Some(kept)) if kept.answer.is_sound() => return Some(kept),
        Ok(Some(Kept { path, .. })) => refuse(&Unusable { path, why: Why::Damaged }),
        Ok(None) => {}
        Err(unusable) => refuse(&unusable),
    }
    None
}

/// Keeps an answer that was computed for another reason.
pub fn keep(question: Question, trace: &Trace, answer: &CommandAnswer) {
    if let Some(asked) = asked(question, &[trace]) {
        let _ = asked.keep(answer);
    }
}

fn asked<'a>(question: Question, traces: &[&'a Trace]) -> Option<Lookup<'a>> {
    if is_off() { None } else { Lookup::new(question, traces) }
}

fn refuse(unusable: &Unusable) {
    term::note(&format!("{unusable}; the answer is computed anew"));
}

/// A kept answer with the present places of its traces, and with the warnings of its computation.
fn as_now<A: Answer>(Kept { mut answer, path, answered }: Kept<A>, traces: &[&Trace]) -> A {
    answer.say_notes();
    let since = SystemTime::now().duration_since(answered).unwrap_or_default();
    term::line(&format!(
        "computed {} ago and kept in {}; --again computes it anew",
        HumanDuration(since),
        path.display()
    ));
    let place = |trace: &&Trace| trace.directory().display().to_string();
    let before = traces.first().map(place).unwrap_or_default();
    let after = traces.last().map(place).unwrap_or_default();
    answer.locate(&before, &after);
    answer
}
