//! Large blocks of a program's heap, moved by a library that the program preloads: which places slow it down,
//! and which are best?

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use serde::Serialize;

use super::sweep::{Extent, LEAST_ROUNDS, SweepSource, Swept, sweep};
use crate::Error;
use crate::bench::{self, Progress};
use crate::process::{AddressLayout, Launch, RunLimits, StopFlag, calibrate};
use crate::stats::{quantile, random};

/// Bytes of a page, over which blocks are moved.
const PAGE: usize = 4096;
/// Bytes from one place to the next, in a sweep.
const STEP: usize = 64;
/// The same in a search: fewer places, more runs of each.
const COARSE: usize = 256;
/// The part of a search's time in which places are tried; in the rest the best of them has to prove itself.
const TRYING: f64 = 0.5;
/// Rounds in which the fastest places are tried: all of them, a quarter, and the last few.
const RUNGS: [(usize, usize); 3] = [(1, 3), (4, 5), (12, 10)];
/// The quantile of a place's times that stands for it: bursts of other programs only ever add.
const QUANTILE: f64 = 0.2;
/// The most blocks that are tried, if none are named.
const TRIED: usize = 4;

/// A large block that a program allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Its number among the large blocks of the process, from 0.
    pub number: usize,
    /// Its length.
    pub bytes: usize,
    /// The place where it was allocated, as far as that is known: "main conv.c:12", or a file and an address in it.
    pub place: String,
}

/// The blocks to move.
#[derive(Clone, Debug)]
pub struct BlocksPlan {
    /// The program.
    pub program: Launch,
    /// The library that moves blocks.
    pub library: PathBuf,
    /// Time for everything.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// The best place that was found for a block.
#[derive(Clone, Debug)]
pub struct Fix {
    /// The block; none where nothing was faster than the places it has.
    pub block: Option<Block>,
    /// Bytes to move it by.
    pub distance: usize,
    /// Places that were tried.
    pub tried: usize,
    /// The program with the block moved, beside the program with the library alone.
    pub bench: Option<bench::Result>,
}

impl BlocksPlan {
    fn with(&self, more: &[(&str, OsString)]) -> Launch {
        let mut launch = self.program.clone();
        launch.environment.push(("LD_PRELOAD".into(), self.library.clone().into()));
        launch.environment.extend(more.iter().map(|(name, value)| (OsString::from(*name), value.clone())));
        launch
    }

    /// With one block moved. The environment is as long for any block and distance.
    fn shifted(&self, block: usize, distance: usize) -> Launch {
        self.with(&[("MEMLODE_STAGGER_SHIFT", format!("{block:04}:{distance:05}").into())])
    }

    /// The large blocks that the program allocates, in their order.
    ///
    /// # Errors
    /// If the program fails.
    pub fn blocks(&self, stop: &StopFlag) -> Result<Vec<Block>, Error> {
        let system = |source| Error::System { doing: "cannot make a temporary file", source };
        let file = tempfile::NamedTempFile::new().map_err(system)?;
        let list = [("MEMLODE_STAGGER_SHIFT", "".into()), ("MEMLODE_STAGGER_LIST", file.path().into())];
        self.with(&list).run(AddressLayout::GIVEN, RunLimits { stop, longest: self.time })?;
        let text = std::fs::read_to_string(file.path())
            .map_err(|source| Error::File { path: file.path().to_owned(), source })?;
        let mut blocks: Vec<Block> = text.lines().filter_map(block).collect();
        // Children count for themselves; the program itself comes first.
        let mut next = 0;
        blocks.retain(|block| {
            let is_next = block.number == next;
            next += usize::from(is_next);
            is_next
        });
        Ok(blocks)
    }

    /// Times a program with a block at each place of a page, in random order.
    ///
    /// # Errors
    /// If the program fails or has no such block, if the time does not suffice, or if it is
    /// stopped.
    pub fn sweep(
        &self,
        block: usize,
        stop: &StopFlag,
        tell: &mut dyn FnMut(usize, f64),
    ) -> Result<(Block, Swept), Error> {
        let known = self.blocks(stop)?;
        let found = known.get(block).cloned().ok_or_else(|| self.no_block(block, known.len()))?;
        let contexts = PAGE / STEP;
        let extent =
            Extent { contexts, page: contexts, time: self.time, rounds: LEAST_ROUNDS, seed: self.seed };
        let mut places =
            Places { plan: self, places: (0..contexts).map(|at| (block, at * STEP)).collect(), stop };
        Ok((found, sweep(extent, &mut places, stop, tell)?))
    }

    fn no_block(&self, number: usize, count: usize) -> Error {
        Error::Usage(match count {
            0 => format!("`{}` allocates no block of 64 KiB or more", self.program.text()),
            _ => format!("`{}` has no block {number}: they are 0 to {}", self.program.text(), count - 1),
        })
    }

    /// Compares the program with and without large blocks of different colours.
    ///
    /// # Errors
    /// As of [`bench::measure`].
    pub fn stagger(&self, stop: &StopFlag, tell: &mut dyn FnMut(Progress)) -> Result<bench::Result, Error> {
        let mut plain = self.program.clone();
        // As long as the other's.
        plain.environment.push(("NO_PRELOAD".into(), self.library.clone().into()));
        self.compare(plain, self.with(&[]), self.time, stop, tell)
    }

    /// Tries places of blocks, and confirms the best one by paired rounds.
    ///
    /// # Errors
    /// If the program fails or has no such blocks, if the time does not suffice, or if it is
    /// stopped.
    pub fn search(
        &self,
        blocks: &[usize],
        stop: &StopFlag,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Fix, Error> {
        let started = Instant::now();
        let known = self.blocks(stop)?;
        let mut wanted: Vec<&Block> = Vec::new();
        for number in blocks {
            let of = known.get(*number).ok_or_else(|| self.no_block(*number, known.len()));
            wanted.push(of?);
        }
        if blocks.is_empty() {
            // The first one stays where it is: it is others that move beside it.
            wanted = known.iter().skip(1).collect();
            wanted.sort_by_key(|block| std::cmp::Reverse(block.bytes));
            wanted.truncate(TRIED);
        }
        if wanted.is_empty() {
            return Err(Error::Usage(format!(
                "`{}` has {} block{} of 64 KiB or more: there is nothing to move beside another",
                self.program.text(),
                known.len(),
                if known.len() == 1 { "" } else { "s" }
            )));
        }
        let all: Vec<(usize, usize)> = wanted
            .iter()
            .flat_map(|block| (0..PAGE / COARSE).map(move |at| (block.number, at * COARSE)))
            .collect();
        let tried = all.len();
        let mut places = Places { plan: self, places: all, stop };
        let best = fastest(&mut places, self.time.mul_f64(TRYING), self.seed)?;
        let (number, distance) = places.places[best];
        if distance == 0 {
            return Ok(Fix { block: None, distance, tried, bench: None });
        }
        let left = self.time.saturating_sub(started.elapsed());
        let compared =
            self.compare(self.shifted(number, 0), self.shifted(number, distance), left, stop, tell)?;
        Ok(Fix { block: Some(known[number].clone()), distance, tried, bench: Some(compared) })
    }

    fn compare(
        &self,
        first: Launch,
        second: Launch,
        time: Duration,
        stop: &StopFlag,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<bench::Result, Error> {
        let plan = bench::BenchPlan {
            programs: vec![first, second],
            links: vec![None, None],
            variants: 0,
            prepare: Vec::new(),
            warmup: 0,
            time,
            rounds: None,
            metric: None,
            seed: self.seed,
        };
        Ok(bench::measure(&plan, stop, tell)?.result(&plan))
    }
}

/// A line of the library's list: number, bytes, file, and address in it.
fn block(line: &str) -> Option<Block> {
    let mut words = line.splitn(3, ' ');
    let (number, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (file, address) = words.next()?.rsplit_once(' ')?;
    let place = u64::from_str_radix(address, 16).ok().and_then(|address| place(Path::new(file), address));
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(Block { number, bytes, place: place.unwrap_or_else(|| format!("{name}+0x{address}")) })
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn place(file: &Path, address: u64) -> Option<String> {
    let mut names = crate::inside::Names::of(file).ok()?;
    names.counted_from_lowest();
    let place = names.place(address.wrapping_sub(1));
    (!place.starts_with("0x")).then_some(place)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn place(_: &Path, _: u64) -> Option<String> {
    None
}

/// A program with one of its blocks moved: numbers of blocks, and by how much.
struct Places<'a> {
    plan: &'a BlocksPlan,
    places: Vec<(usize, usize)>,
    stop: &'a StopFlag,
}

impl SweepSource for Places<'_> {
    fn time(&mut self, context: usize) -> Result<f64, Error> {
        let (block, distance) = self.places[context];
        let before = calibrate();
        let limits = RunLimits { stop: self.stop, longest: self.plan.time };
        // Stack and mappings lie where they always do, so that what differs is the block.
        let cpu = self.plan.shifted(block, distance).run(AddressLayout::GIVEN, limits)?.cpu.max(1e-6);
        Ok((cpu / (before + calibrate())).ln())
    }
}

/// The fastest context, by rounds in random order that the slower half does not survive.
fn fastest(places: &mut Places<'_>, time: Duration, seed: u64) -> Result<usize, Error> {
    let started = Instant::now();
    let contexts = places.places.len();
    let mut random = random(seed);
    let pilot = Instant::now();
    places.time(0)?;
    let each = pilot.elapsed().as_secs_f64();
    let least: usize = RUNGS.iter().map(|(part, runs)| contexts.div_ceil(*part) * runs).sum();
    if each * least as f64 > time.as_secs_f64() * 1.2 {
        return Err(Error::LimitTooShort {
            round_seconds: each * contexts as f64,
            rounds: RUNGS[0].1,
            needed_seconds: 1.2 * each * least as f64 / TRYING,
        });
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contexts];
    let mut order: Vec<usize> = (0..contexts).collect();
    for (part, runs) in RUNGS {
        order.truncate(contexts.div_ceil(part));
        for pass in 0.. {
            let over = started.elapsed() > time.mul_f64(1.0 / (1.0 + contexts.div_ceil(part) as f64));
            if pass >= runs && (over || pass >= 4 * runs) {
                break;
            }
            let mut shuffled = order.clone();
            shuffled.shuffle(&mut random);
            for context in shuffled {
                times[context].push(places.time(context)?);
            }
        }
        let low = |context: &usize| quantile(&times[*context], QUANTILE);
        order.sort_by(|a, b| low(a).total_cmp(&low(b)));
    }
    Ok(order[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_read() {
        let found = block("12 1048576 /no such/file 1a2b").expect("a block");
        assert_eq!((found.number, found.bytes, found.place.as_str()), (12, 1 << 20, "file+0x1a2b"));
        assert!(block("12 x").is_none() && block("").is_none());
    }
}
