//! Spread of a benchmark over links of the same code: the least change that a gate can believe in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use serde::Serialize;

use super::environment::EnvironmentPair;
use crate::Error;
use crate::link::{LinkLine, LinkVariation};
use crate::process::{AddressLayout, Launch, Pinned, RunLimits, StopFlag, processors};
use crate::stats::{median, pearson, pseudomedian, quantile, random};

/// With fewer links than this, their spread is unknown.
const LEAST_LINKS: usize = 5;
/// Rounds that any figure needs.
const LEAST_ROUNDS: usize = 5;

/// Shuffles of the links that a correlation is compared with.
const SHUFFLES: usize = 10_000;
/// A correlation that so few shuffles reach is one.
const SIGNIFICANT: f64 = 0.01;

/// The program to link and run.
#[derive(Clone, Debug)]
pub struct LinksPlan {
    /// The command that links it.
    pub line: LinkLine,
    /// The program, whose first word is replaced by each of its links.
    pub program: Launch,
    /// A function whose data may alias, by name.
    pub function: Option<String>,
    /// Links beside the order given.
    pub links: usize,
    /// Time for everything after linking.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// Spread of a program's times over links.
#[derive(Clone, Debug, Serialize)]
pub struct Floor {
    /// Times over the median link's, by link, the order given first.
    pub links: Vec<f64>,
    /// Standard errors of these, by link, from their rounds.
    pub errors: Vec<f64>,
    /// Rounds; in each, every link runs once.
    pub rounds: usize,
    /// The variation of the links.
    #[serde(skip)]
    pub varied: LinkVariation,
    /// The standard deviation of links that is left when the rounds' noise is taken out, as a part of the time.
    pub spread: f64,
    /// The slowest over the fastest link, as measured; noise makes it larger than it is.
    pub range: f64,
    /// A smaller change can be the luck of one link: 19 of 20 pairs of links differ by less,
    /// judging by the spread.
    pub floor: f64,
    /// Seconds of the median link.
    pub seconds: f64,
    /// The part that data aliasing in one function explains, if a function was named.
    pub aliasing: Option<Aliasing>,
}

/// The aliases of one call in one link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallAliases {
    /// Loads that agree in the low 12 bits with an earlier store to other data; those of the stack
    /// do not count.
    pub count: usize,
    /// The pairs, the most frequent first.
    pub pairs: Vec<EnvironmentPair>,
}

/// Dependence of the times of links on the aliases of a function.
#[derive(Clone, Debug, Serialize)]
pub struct Aliasing {
    /// The function.
    pub function: String,
    /// Aliases of a call, in the order of the links.
    pub aliases: Vec<usize>,
    /// Pearson's correlation of the links' times with them; none if they are as many in all links.
    pub correlation: Option<f64>,
    /// The share of random orders of the links that correlate as much.
    pub p: f64,
    /// The share of the links' variance that goes with the aliases; 0 unless `p` is below 0.01.
    pub explained: f64,
    /// The standard deviation of links that is left, as a part of the time: code layout, and data of other functions.
    pub rest: f64,
    /// The pairs of the link that has most of them.
    pub pairs: Vec<EnvironmentPair>,
}

/// Links, runs, and computes the floor.
///
/// # Errors
/// If links or runs fail, the time does not suffice, or it is stopped.
pub fn floor(
    plan: &LinksPlan,
    stop: &Arc<StopFlag>,
    tell: &mut dyn FnMut(usize, f64),
) -> Result<Floor, Error> {
    if plan.links < LEAST_LINKS {
        return Err(Error::Usage(format!(
            "{} links say nothing of their spread: ask for {LEAST_LINKS} or more",
            plan.links
        )));
    }
    let folder = tempfile::Builder::new().prefix("memlode-link-").tempdir();
    let folder =
        folder.map_err(|source| Error::System { doing: "cannot make a temporary folder", source })?;
    let mut programs = Vec::new();
    for link in 0..=plan.links as u64 {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let seed = if link == 0 { 0 } else { plan.seed.wrapping_mul(1_000_003).wrapping_add(link).max(1) };
        let mut program = plan.program.clone();
        program.words[0] = plan.line.link(seed, folder.path())?.into();
        programs.push(program);
    }
    let aliases = match &plan.function {
        Some(function) => Some((function.as_str(), look(plan, function, &programs, stop)?)),
        None => None,
    };
    let limits = RunLimits { stop, longest: plan.time };
    let started = Instant::now();
    let pilot = programs[0].run(AddressLayout::GIVEN, limits)?;
    let round = programs.len() as f64 * pilot.wall;
    let rounds = (plan.time.saturating_sub(started.elapsed()).as_secs_f64() / round) as usize;
    if rounds < LEAST_ROUNDS {
        return Err(Error::LimitTooShort {
            round_seconds: round,
            rounds: LEAST_ROUNDS,
            needed_seconds: 1.2 * round * LEAST_ROUNDS as f64 + pilot.wall,
        });
    }
    tell(rounds, round);
    let mut random = random(plan.seed);
    let cpus = processors();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); programs.len()];
    for done in 0..rounds {
        if done >= LEAST_ROUNDS && (started.elapsed() > plan.time || stop.load(Ordering::Relaxed)) {
            break;
        }
        let _pinned = cpus.get(done % cpus.len().max(1)).map(|cpu| Pinned::to(*cpu));
        let mut order: Vec<usize> = (0..programs.len()).collect();
        order.shuffle(&mut random);
        let mut one = vec![0.0; programs.len()];
        for link in order {
            // Data lie elsewhere in each run, so that what is left is the link.
            let layout = AddressLayout { padding: 0, randomised: true };
            one[link] = programs[link].run(layout, limits)?.cpu.max(1e-6);
        }
        times.iter_mut().zip(one).for_each(|(times, time)| times.push(time));
    }
    let mut floor = summary(&times, plan.line.varies());
    floor.aliasing = aliases.map(|(function, calls)| explain(function, calls, &floor, plan.seed));
    Ok(floor)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::link_aliasing::look;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn look(_: &LinksPlan, _: &str, _: &[Launch], _: &Arc<StopFlag>) -> Result<Vec<CallAliases>, Error> {
    Err(Error::Machine("calls are looked at by the registers of x86-64, and this is none".into()))
}

/// Returns how far the times of links follow the aliases of their calls.
fn explain(function: &str, calls: Vec<CallAliases>, floor: &Floor, seed: u64) -> Aliasing {
    let times: Vec<f64> = floor.links.iter().map(|link| link.ln()).collect();
    let mut counts: Vec<f64> = calls.iter().map(|call| call.count as f64).collect();
    let aliases = calls.iter().map(|call| call.count).collect();
    let correlation = Some(pearson(&counts, &times)).filter(|r| r.is_finite());
    let mut random = random(seed);
    let reached = (0..SHUFFLES).filter(|_| {
        counts.shuffle(&mut random);
        correlation.is_none_or(|r| pearson(&counts, &times) >= r - 1e-12)
    });
    let p = (1 + reached.count()) as f64 / (1 + SHUFFLES) as f64;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let measured = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (times.len() - 1) as f64;
    let shared = correlation.filter(|r| *r > 0.0 && p < SIGNIFICANT).map_or(0.0, |r| r * r * measured);
    // Noise is in what was measured, and not in the spread.
    let rest = (floor.spread.powi(2) - shared).max(0.0).sqrt();
    let explained = if floor.spread > 0.0 { (shared / floor.spread.powi(2)).min(1.0) } else { 0.0 };
    let most = calls.into_iter().max_by_key(|call| call.count).unwrap_or_default();
    Aliasing { function: function.into(), aliases, correlation, p, explained, rest, pairs: most.pairs }
}

/// From the times of each link, one for each round.
fn summary(times: &[Vec<f64>], varied: LinkVariation) -> Floor {
    let rounds = times.first().map_or(0, Vec::len);
    // What all links of a round share (the clock, neighbours) is the round's median, and goes.
    let centre: Vec<f64> = (0..rounds)
        .map(|round| median(&times.iter().map(|link| link[round].ln()).collect::<Vec<_>>()))
        .collect();
    let differences: Vec<Vec<f64>> = times
        .iter()
        .map(|link| link.iter().zip(&centre).map(|(time, centre)| time.ln() - centre).collect())
        .collect();
    let locations: Vec<f64> = differences.iter().map(|link| pseudomedian(link)).collect();
    // Half the width of the middle 68%, which bursts do not widen, over the root of the rounds.
    let error =
        |link: &Vec<f64>| (quantile(link, 0.84) - quantile(link, 0.16)) / 2.0 / (rounds as f64).sqrt();
    let errors: Vec<f64> = differences.iter().map(error).collect();
    let middle = median(&locations);
    let variance = |of: &mut dyn Iterator<Item = f64>, n: usize| of.map(|x| x * x).sum::<f64>() / n as f64;
    let mean = locations.iter().sum::<f64>() / locations.len() as f64;
    let measured = variance(&mut locations.iter().map(|link| link - mean), locations.len() - 1);
    let noise = variance(&mut errors.iter().copied(), errors.len());
    let spread = (measured - noise).max(0.0).sqrt();
    let links: Vec<f64> = locations.iter().map(|link| (link - middle).exp()).collect();
    let ends = (quantile(&links, 0.0), quantile(&links, 1.0));
    Floor {
        range: ends.1 / ends.0,
        links,
        errors,
        rounds,
        varied,
        spread,
        // Two links differ by √2 times one's deviation.
        floor: (1.96 * std::f64::consts::SQRT_2 * spread).exp_m1(),
        seconds: centre.iter().map(|log| log.exp()).sum::<f64>() / rounds as f64,
        aliasing: None,
    }
}

impl Floor {
    /// The size of spread that noise alone would have hidden: the root mean square of the errors.
    pub fn hidden(&self) -> f64 {
        (self.errors.iter().map(|error| error * error).sum::<f64>() / self.errors.len() as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIED: LinkVariation = LinkVariation { objects: 3, functions: 0, has_seed: false };

    fn times(links: &[f64], rounds: usize, noise: f64) -> Vec<Vec<f64>> {
        let mut random = random(3);
        let mut normal = || (0..12).map(|_| rand::RngExt::random::<f64>(&mut random)).sum::<f64>() - 6.0;
        let clocks: Vec<f64> = (0..rounds).map(|_| 0.1 * normal()).collect();
        links
            .iter()
            .map(|link| clocks.iter().map(|clock| (link + clock + noise * normal()).exp()).collect())
            .collect()
    }

    #[test]
    fn noise_is_no_spread() {
        let floor = summary(&times(&[0.0; 25], 30, 0.02), VARIED);
        assert!(floor.spread < 0.004, "{floor:?}");
        assert!(floor.spread < floor.hidden(), "{floor:?}");
    }

    #[test]
    fn spread_is_found_under_noise_and_a_drifting_clock() {
        let links: Vec<f64> = (0..25).map(|link| 0.05 * f64::from(link % 5) / 4.0).collect();
        let floor = summary(&times(&links, 30, 0.02), VARIED);
        // The deviation of five even steps from 0 to 5%.
        assert!((0.014..0.022).contains(&floor.spread), "{floor:?}");
        assert!(floor.floor > 2.0 * floor.spread && floor.spread > floor.hidden(), "{floor:?}");
    }

    /// Links whose times depend on aliases, code layout, or both.
    #[test]
    fn aliases_and_code_layout_are_told_apart() {
        let calls = |of: &dyn Fn(usize) -> usize| -> Vec<CallAliases> {
            (0..25).map(|link| CallAliases { count: of(link), pairs: Vec::new() }).collect()
        };
        let aliased = |link: usize| if link.is_multiple_of(5) { 900 } else { 0 };
        let found = |times: &dyn Fn(usize) -> f64, of: &dyn Fn(usize) -> usize| {
            let links: Vec<f64> = (0..25).map(times).collect();
            let floor = summary(&super::tests::times(&links, 30, 0.01), VARIED);
            explain("work", calls(of), &floor, 1)
        };
        let slow = |link: usize| 0.08 * (aliased(link) as f64) / 900.0;
        let layout = |link: usize| 0.04 * ((link * 7 % 11) as f64) / 10.0;
        let all = found(&slow, &aliased);
        assert!(all.explained > 0.95 && all.rest < 0.01, "{all:?}");
        let none = found(&layout, &aliased);
        assert!(none.explained == 0.0 && none.correlation.is_some(), "{none:?}");
        let both = found(&|link| slow(link) + layout(link), &aliased);
        assert!((0.6..0.97).contains(&both.explained) && both.rest > 0.008, "{both:?}");
        let even = found(&layout, &|_| 7);
        assert!(even.correlation.is_none() && even.aliases == [7; 25], "{even:?}");
    }
}
