//! Large blocks of a program that are moved, and what that gains.

use memlode_measure::bench::{Progress, Result};
use memlode_measure::bias::blocks::{Block, Fix};
use memlode_measure::bias::sweep::{Candidate, SweepVerdict, Swept};
use serde::Serialize;

use super::bench::{BenchDocument, document};
use super::picture::{Drawing, Labels};
use super::{beyond, swept_picture, verdict};

/// Bytes of a page, over which blocks are moved.
const PAGE: usize = 4096;

/// The best place of a block as JSON.
#[derive(Debug, Serialize)]
pub struct FixDocument<'a> {
    block: &'a Option<Block>,
    distance: usize,
    tried: usize,
    bench: Option<BenchDocument<'a>>,
    sentence: &'a str,
}

/// Returns the best place as JSON, with what is said of it.
pub fn fix_document<'a>(found: &'a Fix, sentence: &'a str) -> FixDocument<'a> {
    let Fix { block, distance, tried, bench } = found;
    FixDocument { block, distance: *distance, tried: *tried, bench: bench.as_ref().map(document), sentence }
}

/// Returns the blocks, a line each.
pub fn list(blocks: &[Block]) -> String {
    let line = |block: &Block| format!("{:4}  {:>11}  {}\n", block.number, size(block.bytes), block.place);
    blocks.iter().map(line).collect()
}

/// Returns the line of progress before programs are compared, if there is one.
pub fn progress(progress: &Progress) -> Option<String> {
    match progress {
        Progress::Planned { rounds, round, .. } => {
            Some(format!("{rounds} rounds, about {:.0} s", *rounds as f64 * round))
        }
        _ => None,
    }
}

/// Returns the line of progress before a block is moved.
pub fn sweep_progress(runs: usize, seconds: f64) -> String {
    format!("{runs} runs, about {:.0} s", runs as f64 * seconds)
}

/// Returns what moving all large blocks does to a program.
pub fn stagger_sentence(compared: &Result, program: &str) -> String {
    compared_sentence(compared, &format!("{program} with staggered blocks"), &format!("{program} as it is"))
}

/// Returns what the best place of a block does to a program.
pub fn fix_sentence(found: &Fix, program: &str) -> String {
    let tried = found.tried;
    let (Some(block), Some(compared)) = (&found.block, &found.bench) else {
        return format!("Of {tried} places of blocks none was faster than those that they have.");
    };
    let said = compared_sentence(
        compared,
        &format!("{program} with that"),
        &format!("{program} with its blocks as they are"),
    );
    format!(
        "The best of {tried} places: block {} ({}, {}) moved by {} bytes. {said}",
        block.number,
        size(block.bytes),
        block.place,
        found.distance
    )
}

fn compared_sentence(compared: &Result, second: &str, first: &str) -> String {
    // Code lies where it did in both.
    compared.comparisons.first().map(|one| verdict::sentence(one, second, first, true)).unwrap_or_default()
}

/// Returns at which places a block slows the program down.
pub fn sweep_sentence(block: &Block, swept: &Swept) -> String {
    let what = format!("block {} ({}, {})", block.number, size(block.bytes), block.place);
    let spikes = swept.of(SweepVerdict::Spike);
    if spikes.is_empty() {
        return format!(
            "No place of {what} slows this program down beside 2 KiB further; {} would have been seen.",
            beyond(swept.detectable())
        );
    }
    let place =
        |spike: &Candidate| format!("{} bytes ({})", spike.context * step(swept), beyond(spike.effect.ratio));
    let places: Vec<String> = spikes.iter().map(place).collect();
    format!("This program is slower where {what} is moved by {}, beside 2 KiB further.", places.join(", "))
}

/// Draws the times by place.
pub fn sweep_picture(block: &Block, swept: &Swept) -> Drawing {
    let labels = Labels {
        title: block.place.clone(),
        across: format!("bytes by which block {} is moved", block.number),
        up: "time over the median",
    };
    swept_picture(labels, swept, (0..swept.ratio.len()).map(|at| (at * step(swept)) as f64))
}

/// Bytes from one place to the next.
fn step(swept: &Swept) -> usize {
    PAGE / swept.ratio.len()
}

/// Returns bytes as `1.00 MiB`.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20)),
        bytes => format!("{:.1} KiB", bytes as f64 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        assert_eq!((size(1 << 20), size(65536)), ("1.00 MiB".into(), "64.0 KiB".into()));
    }
}
