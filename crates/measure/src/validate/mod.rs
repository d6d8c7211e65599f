//! Compares a model's cost of each source line with a timer: where did the program really spend its
//! time?
//!
//! The kernel's CPU clock interrupts the program some thousand times a second, and reports its
//! place. No performance counter is needed. On a known loop, [`Skid`] measures the distance from
//! the waiting instruction to such a sample; [`images`] turns addresses into lines, by debug
//! information; [`compare`] knows numbers only. Where the costs come from is the caller's business.

mod compare;
mod images;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memlode_sample::{Sampled, SampledPlace};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::process::{Launch, RunLimits};

pub use compare::{Agreement, GOOD, LEAST_SHARE, agreement};
pub use memlode_sample::Skid;

use images::{Images, Place};

/// Nanoseconds between two samples: odd, so that nothing that a program does at a round interval keeps step with it.
const PERIOD_NS: u64 = 200_003;
/// With fewer samples at lines that touch memory, there is no result.
const LEAST_SAMPLES: u64 = 200;
/// The part of a model's cost that must lie on lines of the timed program, or it is another program.
const LEAST_KNOWN: f64 = 0.5;

/// A source line: the path as a compiler wrote it, and the number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// Path of the source file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
}

/// The costs of a program by a model.
#[derive(Clone, Debug)]
pub struct ModelledCosts {
    /// Short name, stable: a key of the JSON.
    pub name: &'static str,
    /// The cost of each line that touches memory, in any unit. A line may come several times.
    pub lines: Vec<LineCost>,
    /// Modelled seconds that the program takes, or waits; `None` if the model has no times.
    pub seconds: Option<f64>,
}

/// The cost of a line that touches memory.
#[derive(Clone, Debug)]
pub struct LineCost {
    /// The line.
    pub line: SourceLine,
    /// The function whose text holds it.
    pub function: String,
    /// The cost, in any unit.
    pub cost: f64,
}

/// A model held against the timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The model's name; `timer2` is the timer a second time.
    pub model: Cow<'static, str>,
    /// Its agreement with the timer.
    #[serde(flatten)]
    pub agreement: Agreement,
    /// Seconds that it predicts; `None` if it does not.
    pub predicted_s: Option<f64>,
    /// Predicted seconds over measured seconds.
    pub predicted_over_measured: Option<f64>,
}

/// One line in the eyes of the timer and of the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationRow {
    /// The line, as the model's program calls it.
    #[serde(flatten)]
    pub line: SourceLine,
    /// The function whose text holds the line.
    pub function: String,
    /// The part of the time at all these lines.
    pub timer: f64,
    /// The same by the second run.
    pub timer2: f64,
    /// Keyed by model: the part of the cost of all these lines.
    pub models: BTreeMap<Cow<'static, str>, f64>,
}

/// Seconds of a function's own lines, inlined into others or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionTime {
    /// Its name as linkers know it; empty where it is unknown.
    pub function: String,
    /// CPU time in user space.
    pub seconds: f64,
}

/// The timer's samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// The source of the interrupts.
    pub source: Cow<'static, str>,
    /// Seconds between samples.
    pub period_s: f64,
    /// Samples of the first run, and of the second.
    pub samples: [u64; 2],
    /// Samples that the kernel could not hand over.
    pub lost: u64,
    /// The part of the first run's samples at code without a line: libraries without debug information.
    pub without_line: f64,
    /// The part at lines that touch no memory.
    pub without_memory: f64,
    /// The distance of samples behind the waiting instruction.
    pub skid: Skid,
}

/// The findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The timed command.
    pub command: String,
    /// CPU seconds in user space of the first timed run.
    pub measured_s: f64,
    /// The timer's samples.
    pub timer: Timer,
    /// The models, and the timer a second time at the end.
    pub models: Vec<Judged>,
    /// The lines that touch memory and have any time or cost, the slowest first.
    pub lines: Vec<ValidationRow>,
    /// The time of functions, the slowest first.
    pub functions: Vec<FunctionTime>,
}

/// Times the program of `launch` twice, and compares `models` with the samples.
///
/// # Errors
/// If the kernel does not allow sampling, the program fails, is too short, has no debug information
/// or is another one than that of the models.
pub fn validate(
    launch: &Launch,
    models: &[ModelledCosts],
    limits: RunLimits<'_>,
) -> Result<Validation, Error> {
    let skid = Skid::measure(PERIOD_NS)?;
    let mut images = Images::default();
    let first = timed(launch, skid, &mut images, limits)?;
    let second = timed(launch, skid, &mut images, limits)?;
    too_few(launch, "", first.samples.min(second.samples))?;
    let known = images.lines();
    let names = Names::of(&known);
    let functions = names.functions(models);
    let models: Vec<(&ModelledCosts, BTreeMap<SourceLine, f64>)> =
        models.iter().map(|model| (model, names.rename(&model.lines))).collect();
    // Libraries of the system may have some of their own.
    let files: BTreeSet<&str> = known.iter().map(|line| line.file.as_str()).collect();
    if !models.iter().flat_map(|(_, costs)| costs.keys()).any(|line| files.contains(line.file.as_str())) {
        return Err(Error::Usage(format!(
            "nothing of the recorded sources that `{}` ran has debug information, so its time has no lines: compile it with -g",
            launch.text()
        )));
    }
    refuse_others(launch, &models, &known)?;
    let mut lines: BTreeMap<&SourceLine, ValidationRow> = BTreeMap::new();
    for line in models.iter().flat_map(|(_, costs)| costs.keys()) {
        let empty = || ValidationRow {
            line: line.clone(),
            function: functions.get(line).map_or(String::new(), |name| (*name).to_owned()),
            timer: 0.0,
            timer2: 0.0,
            models: BTreeMap::new(),
        };
        lines.entry(line).or_insert_with(empty);
    }
    let at = |of: &Timed, line: &SourceLine| of.lines.get(line).copied().unwrap_or(0);
    let on_memory = |of: &Timed| lines.keys().map(|line| at(of, line)).sum::<u64>();
    let (touching, touching2) = (on_memory(&first), on_memory(&second));
    too_few(launch, " at a line that touches memory", touching.min(touching2))?;
    let totals: Vec<f64> = models.iter().map(|(_, costs)| costs.values().sum()).collect();
    for (line, row) in &mut lines {
        row.timer = at(&first, line) as f64 / touching as f64;
        row.timer2 = at(&second, line) as f64 / touching2 as f64;
        for ((model, costs), total) in models.iter().zip(&totals) {
            let cost = costs.get(line).copied().unwrap_or(0.0);
            row.models.insert(model.name.into(), if *total > 0.0 { cost / total } else { 0.0 });
        }
    }
    let mut rows: Vec<ValidationRow> = lines.into_values().collect();
    let column = |of: &dyn Fn(&ValidationRow) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
    let truth = column(&|row| row.timer);
    let judge = |model: &'static str, shares: &[f64], predicted_s: Option<f64>| Judged {
        model: model.into(),
        agreement: agreement(&truth, shares),
        predicted_s,
        predicted_over_measured: predicted_s.map(|seconds| seconds / first.seconds),
    };
    let mut judged: Vec<Judged> = models
        .iter()
        .map(|(model, _)| judge(model.name, &column(&|row| row.models[model.name]), model.seconds))
        .collect();
    judged.push(judge("timer2", &column(&|row| row.timer2), Some(second.seconds)));
    rows.retain(|row| row.timer > 0.0 || row.timer2 > 0.0 || row.models.values().any(|share| *share > 0.0));
    rows.sort_by(|a, b| b.timer.total_cmp(&a.timer).then_with(|| a.line.cmp(&b.line)));
    let samples = first.samples as f64;
    Ok(Validation {
        command: launch.text(),
        measured_s: first.seconds,
        timer: Timer {
            source: "perf_event_open: cpu-clock, user space".into(),
            period_s: PERIOD_NS as f64 / 1e9,
            samples: [first.samples, second.samples],
            lost: first.lost + second.lost,
            without_line: first.without_line as f64 / samples,
            without_memory: (first.samples - first.without_line - touching) as f64 / samples,
            skid,
        },
        models: judged,
        lines: rows,
        functions: first.functions(),
    })
}

/// One run under the timer.
struct Timed {
    /// CPU seconds in user space, as the kernel counted them.
    seconds: f64,
    samples: u64,
    lost: u64,
    without_line: u64,
    /// Samples of each line.
    lines: BTreeMap<SourceLine, u64>,
    by_function: BTreeMap<String, u64>,
}

impl Timed {
    fn functions(&self) -> Vec<FunctionTime> {
        let second = self.seconds / self.samples as f64;
        let mut functions: Vec<FunctionTime> = self
            .by_function
            .iter()
            .map(|(function, samples)| FunctionTime {
                function: function.clone(),
                seconds: *samples as f64 * second,
            })
            .collect();
        functions.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.function.cmp(&b.function)));
        functions
    }
}

fn timed(launch: &Launch, skid: Skid, images: &mut Images, limits: RunLimits<'_>) -> Result<Timed, Error> {
    let (run, sampled): (_, Sampled) =
        memlode_sample::sample(PERIOD_NS, || launch.run(crate::process::AddressLayout::GIVEN, limits))?;
    let mut timed = Timed {
        seconds: run.user,
        samples: sampled.samples(),
        lost: sampled.lost,
        without_line: 0,
        lines: BTreeMap::new(),
        by_function: BTreeMap::new(),
    };
    for SampledPlace { image, offset, count, .. } in &sampled.at {
        let place = images.place(image, *offset, skid)?;
        let function = place.as_ref().map_or(String::new(), |Place { function, .. }| function.clone());
        *timed.by_function.entry(function).or_default() += count;
        match place {
            None => timed.without_line += count,
            Some(Place { line, .. }) => *timed.lines.entry(line).or_default() += count,
        }
    }
    let unmapped = sampled.unmapped;
    timed.without_line += unmapped;
    *timed.by_function.entry(String::new()).or_default() += unmapped;
    Ok(timed)
}

/// Refuses too few samples.
fn too_few(launch: &Launch, place: &str, samples: u64) -> Result<(), Error> {
    if samples >= LEAST_SAMPLES {
        return Ok(());
    }
    let command = launch.text();
    Err(Error::Usage(format!(
        "the timer found `{command}` {samples} times{place}, and {LEAST_SAMPLES} are needed: give it a larger input, of a \
         second or more"
    )))
}

/// Refuses models of a program whose lines are not those that ran.
fn refuse_others(
    launch: &Launch,
    models: &[(&ModelledCosts, BTreeMap<SourceLine, f64>)],
    known: &BTreeSet<SourceLine>,
) -> Result<(), Error> {
    for (model, costs) in models {
        let total: f64 = costs.values().sum();
        let there: f64 = costs.iter().filter(|(line, _)| known.contains(line)).map(|(_, cost)| cost).sum();
        // Nothing adds up to −0.
        let there = there + 0.0;
        if total > 0.0 && there < LEAST_KNOWN * total {
            let missing = costs.iter().filter(|(line, _)| !known.contains(line));
            let worst = missing.max_by(|a, b| a.1.total_cmp(b.1)).map(|(line, _)| line);
            let named = worst.map_or(String::new(), |line| format!(", {}:{} for one", line.file, line.line));
            return Err(Error::Usage(format!(
                "`{}` has {:.0}% of the lines that cost the recorded program anything ({}{named} is missing): was it \
                 built from the same source, with -g?",
                launch.text(),
                100.0 * there / total,
                model.name
            )));
        }
    }
    Ok(())
}

/// The names that the timed program has for source files: two builds may call one file by different paths.
struct Names<'a> {
    /// Keyed by file name without folders: paths, in their order.
    by_name: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Names<'a> {
    fn of(known: &'a BTreeSet<SourceLine>) -> Names<'a> {
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for SourceLine { file, .. } in known {
            let paths = by_name.entry(base_name(file)).or_default();
            if paths.last() != Some(&file.as_str()) {
                paths.push(file);
            }
        }
        Names { by_name }
    }

    /// The path with the longest common end, if any file has that name.
    fn of_file<'b>(&'b self, file: &'b str) -> &'b str {
        let common = |path: &str| {
            let ends = path.rsplit('/').zip(file.rsplit('/'));
            ends.take_while(|(one, other)| one == other).count()
        };
        // Of several with equal ends, the first.
        let paths = self.by_name.get(base_name(file)).into_iter().flatten().rev();
        paths.max_by_key(|path| common(path)).copied().unwrap_or(file)
    }

    fn of_line(&self, SourceLine { file, line }: &SourceLine) -> SourceLine {
        SourceLine { file: self.of_file(file).to_owned(), line: *line }
    }

    /// Costs by the names of the timed program.
    fn rename(&self, lines: &[LineCost]) -> BTreeMap<SourceLine, f64> {
        let mut renamed = BTreeMap::new();
        for LineCost { line, cost, .. } in lines {
            *renamed.entry(self.of_line(line)).or_default() += cost;
        }
        renamed
    }

    /// The function of each line.
    fn functions<'b>(&self, models: &'b [ModelledCosts]) -> BTreeMap<SourceLine, &'b str> {
        let lines = models.iter().flat_map(|model| &model.lines);
        lines.map(|cost| (self.of_line(&cost.line), cost.function.as_str())).collect()
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, line: u32) -> SourceLine {
        SourceLine { file: file.into(), line }
    }

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        let known =
            [line("/build/native/src/a.c", 1), line("/build/native/test/a.c", 1), line("b.c", 2)].into();
        let names = Names::of(&known);
        assert_eq!(names.of_file("/elsewhere/test/a.c"), "/build/native/test/a.c");
        assert_eq!(names.of_file("src/a.c"), "/build/native/src/a.c");
        assert_eq!(names.of_file("a.c"), "/build/native/src/a.c");
        assert_eq!(names.of_file("/x/b.c"), "b.c");
        assert_eq!(names.of_file("/x/c.c"), "/x/c.c");
        let cost = |file, cost| LineCost { line: line(file, 2), function: "f".into(), cost };
        let renamed = names.rename(&[cost("x/b.c", 1.0), cost("b.c", 2.0)]);
        assert_eq!(renamed, [(line("b.c", 2), 3.0)].into());
    }

    #[test]
    fn another_program_is_refused() {
        let launch = Launch { words: vec!["./prog".into()], ..Launch::default() };
        let known = [line("a.c", 1), line("a.c", 2)].into();
        let model = ModelledCosts { name: "lru", lines: Vec::new(), seconds: None };
        let with = |costs: &[(SourceLine, f64)]| {
            refuse_others(&launch, &[(&model, costs.iter().cloned().collect())], &known)
        };
        assert!(with(&[(line("a.c", 1), 6.0), (line("a.c", 9), 4.0)]).is_ok());
        assert!(with(&[]).is_ok());
        let refused = with(&[(line("a.c", 1), 4.0), (line("a.c", 9), 6.0)]).expect_err("another program");
        assert!(refused.to_string().contains("has 40% of the lines"), "{refused}");
        assert!(refused.to_string().contains("a.c:9 for one"), "{refused}");
    }
}
