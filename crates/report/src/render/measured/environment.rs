//! The length of the environment: which of them slow a program down.

use memlode_measure::bias::environment::{CONTEXTS, EnvironmentPair, Sweep};
use memlode_measure::bias::sweep::{Candidate, SweepVerdict};

use super::picture::{Drawing, Labels};
use super::{beyond, swept_picture};

/// Returns the line of progress before a sweep of a program, or of one of its functions.
pub fn progress(is_of_function: bool, runs: usize, seconds: f64, limit: f64) -> String {
    let what = if is_of_function { "timings" } else { "runs" };
    let time = runs as f64 * seconds;
    format!(
        "{runs} {what} of {CONTEXTS} contexts, about {time:.0} s; then the slowest again, {limit:.0} s in all at most"
    )
}

/// Returns the sentence, and how much was measured.
pub fn text(found: &Sweep, seed: u64) -> String {
    format!(
        "{}\n{} contexts, {} runs of each or more, seed {seed}; 80% of contexts lie within {} of each other.\n",
        sentence(found),
        found.padding.len(),
        found.swept.runs,
        beyond(found.swept.spread)
    )
}

/// Draws times by length.
pub fn picture(found: &Sweep, program: &str) -> Drawing {
    let labels = Labels {
        title: program.to_string(),
        across: "bytes added to the environment".into(),
        up: "time over the median context's",
    };
    swept_picture(labels, &found.swept, found.padding.iter().map(|padding| *padding as f64))
}

/// Returns all of it in one sentence.
pub fn sentence(found: &Sweep) -> String {
    let what = found.function.as_deref().unwrap_or("this program");
    let place = |one: &Candidate| format!("{} bytes ({})", found.padding_of(one), beyond(one.effect.ratio));
    let places = |all: &[Candidate]| all.iter().map(place).collect::<Vec<_>>().join(", ");
    let spikes = found.swept.of(SweepVerdict::Spike);
    let unclear = found.swept.of(SweepVerdict::Inconclusive);
    let Some(first) = spikes.first() else {
        if !unclear.is_empty() {
            return format!(
                "Inconclusive: {what} is slower at {}, but contexts that should not matter differ as much.",
                places(&unclear)
            );
        }
        return format!(
            "No length of the environment slows {what} down: the slowest of {} contexts did not differ from those 2 KiB away; \
             {} would have been seen there.",
            found.padding.len(),
            beyond(found.swept.detectable())
        );
    };
    let twice = spikes.iter().any(|other| {
        found.is_page_apart(other, first) && (other.effect.ratio - first.effect.ratio).abs() < 0.5
    });
    let pair = match pairs(found.pairs_of(first), 3) {
        Some(pairs) => format!(
            " There loads agree in their low 12 bits with stores to other data shortly before, and 2 KiB away they do not: \
             {pairs}."
        ),
        None => String::new(),
    };
    format!(
        "The environment's length slows {what} down at {}, beside the context 2 KiB away{}.{pair}",
        places(&spikes),
        if twice { ", in both pages alike" } else { "" }
    )
}

/// Returns the pairs of different data, at most `most` of them: `of g (work kernel.c:12) with j
/// (work kernel.c:10)`.
pub(super) fn pairs(pairs: &[EnvironmentPair], most: usize) -> Option<String> {
    let mut told: Vec<&EnvironmentPair> = Vec::new();
    for pair in pairs {
        let same = |other: &&EnvironmentPair| {
            (&other.load.data, &other.store.data) == (&pair.load.data, &pair.store.data)
        };
        if !told.iter().any(same) {
            told.push(pair);
        }
    }
    let more = told.len().saturating_sub(most);
    let text = |EnvironmentPair { load, store, .. }: &EnvironmentPair| {
        format!("of {} ({}) with {} ({})", load.data, load.place, store.data, store.place)
    };
    let texts: Vec<String> = told.iter().take(most).map(|pair| text(pair)).collect();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!texts.is_empty()).then(|| texts.join(", ") + &more)
}
