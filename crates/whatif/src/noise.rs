//! The difference that the place of objects alone makes to a run, which a change of layout must exceed.

use std::path::PathBuf;

use memlode_files::{Folder, SMALL};
use memlode_machine::Machine;
use serde::{Deserialize, Serialize};

/// Cycles of a part of a trace under other placements of the same objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Chunks up to the end of the part.
    pub chunks: usize,
    /// Its accesses, about.
    pub accesses: u64,
    /// For each placement, the run's cycles relative to those of the unedited trace.
    pub run: Vec<f64>,
}

/// A judgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster, by more than placement alone, and by at least 2% of the run.
    WorthIt,
    /// Neither.
    Neutral,
    /// Slower in the same sense.
    Worse,
}

/// A change of less than this part of a run counts as none.
pub const LEAST: f64 = 0.02;

/// The number of times by which placement may change more of a run than a first look shows. In short
/// stretches caches begin empty, so that they show less of what does not fit into one any more: a
/// sixteenth of a run showed between an eighth of it and all.
const UNSEEN: f64 = 10.0;

/// The care with which placements are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A few, on a small part of the run: enough for most changes.
    First,
    /// All that a range is taken of.
    Close,
}

fn verdict(change: f64, range: f64) -> Verdict {
    let least = range.max(LEAST);
    match change {
        change if change <= -least => Verdict::WorthIt,
        change if change >= least => Verdict::Worse,
        _ => Verdict::Neutral,
    }
}

/// The distance from a middle that 19 of 20 values do not exceed.
fn range_around(middle: f64, values: &[f64]) -> f64 {
    let mut apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    apart.sort_by(f64::total_cmp);
    let at = (apart.len() * 19).div_ceil(20).saturating_sub(1);
    apart.get(at).copied().unwrap_or(0.0)
}

/// An edit in pairs: the same placement with it and without it.
///
/// Other placements may differ by more than an edit gains, and yet each is as much better with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// For each placement, the cycles with the edit by those without it.
    pub ratios: Vec<f64>,
}

impl Pairs {
    /// The part of a run by which pairs differ at most from the one in the middle; of twenty, 19.
    pub fn range(&self) -> f64 {
        range_around(self.middle(), &self.ratios)
    }

    fn middle(&self) -> f64 {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
    }

    /// Judges that a run takes `after` cycles in the place of `before`: what the pairs say, if the
    /// run agrees.
    pub fn verdict(&self, before: f64, after: f64) -> Verdict {
        let run = verdict((after - before) / before.max(1.0), 0.0);
        match verdict(self.middle() - 1.0, self.range()) {
            of_pairs if of_pairs == run => run,
            _ => Verdict::Neutral,
        }
    }
}

impl Noise {
    /// The part of a run by which placements differ at most; of twenty, 19.
    pub fn range(&self) -> f64 {
        range_around(1.0, &self.run)
    }

    /// The part of a run that placement changes at most, by a first look.
    pub fn at_most(&self) -> f64 {
        UNSEEN * self.range()
    }

    /// Judges that a run takes `after` cycles in the place of `before`.
    pub fn verdict(&self, before: f64, after: f64) -> Verdict {
        verdict((after - before) / before.max(1.0), self.range())
    }

    /// Judges the same by a first look; `None` if placements have to be looked at closely.
    pub fn first_verdict(&self, before: f64, after: f64) -> Option<Verdict> {
        Some(verdict((after - before) / before.max(1.0), self.at_most())).filter(|&of| of != Verdict::Neutral)
    }

    /// Reads the noise that was kept beside a trace for a machine.
    pub fn kept(trace: &Folder, look: Look, machine: &Machine, rules: &str) -> Option<Noise> {
        let text = trace.read_text(&file(look, machine, rules), SMALL).ok()?;
        let noise: Noise = serde_json::from_str(&text).ok()?;
        let is_sound = noise.run.iter().all(|run| run.is_finite() && *run > 0.0) && !noise.run.is_empty();
        is_sound.then_some(noise)
    }

    /// Keeps it there, so that it is found out once. Where that cannot be written, it is found out again.
    pub fn keep(&self, trace: &Folder, look: Look, machine: &Machine, rules: &str) {
        let Ok(text) = serde_json::to_string(self) else { return };
        let _ = trace.write(&file(look, machine, rules), text.as_bytes());
    }
}

/// The version of the cost model: noise of another version is not used.
const COST: &str = "the cost model of reports, a site's own misses overlapping, on stretches of the run";

fn file(look: Look, machine: &Machine, rules: &str) -> PathBuf {
    let known = format!("{}\n{COST}\n{:?}\n{rules}", env!("CARGO_PKG_VERSION"), machine);
    let sum = known
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let kind = match look {
        Look::First => "few-placements",
        Look::Close => "placements",
    };
    format!("{kind}-{sum:016x}.json").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_placement_gains_is_no_noise() {
        let pairs = |ratios: [f64; 5]| Pairs { ratios: ratios.to_vec() };
        let alike = pairs([0.86, 0.87, 0.87, 0.88, 0.87]);
        assert!((alike.range() - 0.01).abs() < 1e-9);
        assert_eq!(alike.verdict(100.0, 88.0), Verdict::WorthIt);
        // The run has another placement, by which it would seem to gain.
        assert_eq!(pairs([1.0, 1.0, 1.01, 0.99, 1.0]).verdict(100.0, 88.0), Verdict::Neutral);
        assert_eq!(alike.verdict(100.0, 100.0), Verdict::Neutral);
        assert_eq!(pairs([0.7, 0.9, 1.1, 0.8, 1.3]).verdict(100.0, 88.0), Verdict::Neutral);
        assert_eq!(pairs([1.1, 1.1, 1.1, 1.1, 1.1]).verdict(100.0, 110.0), Verdict::Worse);
    }

    #[test]
    fn a_first_look_decides_what_is_far_from_what_it_shows() {
        let look = Noise { chunks: 1, accesses: 1, run: vec![1.0, 1.002, 0.999] };
        assert!((look.at_most() - 0.02).abs() < 1e-9);
        assert_eq!(look.first_verdict(100.0, 90.0), Some(Verdict::WorthIt));
        assert_eq!(look.first_verdict(100.0, 110.0), Some(Verdict::Worse));
        // Placements that differ by 1% in short stretches may differ by 10% in the run.
        let near = Noise { run: vec![1.0, 1.01, 1.0], ..look.clone() };
        assert_eq!(near.first_verdict(100.0, 91.0), None);
        assert_eq!(near.first_verdict(100.0, 89.0), Some(Verdict::WorthIt));
        let same = Noise { run: vec![1.0; 3], ..look };
        assert_eq!(same.first_verdict(100.0, 97.0), Some(Verdict::WorthIt));
        assert_eq!(same.first_verdict(100.0, 99.0), None);
    }

    #[test]
    fn a_change_must_exceed_what_placement_does() {
        let noise = |most: f64| Noise {
            chunks: 1,
            accesses: 1,
            run: (0..20).map(|at| 1.0 + most * f64::from(at) / 18.0).collect(),
        };
        assert!((noise(0.09).range() - 0.09).abs() < 1e-9);
        assert_eq!(noise(0.0).verdict(100.0, 97.0), Verdict::WorthIt);
        assert_eq!(noise(0.0).verdict(100.0, 99.0), Verdict::Neutral);
        assert_eq!(noise(0.09).verdict(100.0, 93.0), Verdict::Neutral);
        assert_eq!(noise(0.09).verdict(100.0, 103.0), Verdict::Neutral);
        assert_eq!(noise(0.0).verdict(100.0, 103.0), Verdict::Worse);
    }
}
