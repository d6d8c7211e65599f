//! The cost of a profile's accesses in time, by a formula on counts.
//!
//! A miss does not cost its latency. What it costs depends on what the processor can do meanwhile:
//!
//! | | from the second level | from behind it | recognised by |
//! |---|---|---|---|
//! | stored | 2 | a line written, `w` | the site stores |
//! | streamed | 2 | a line read, `r` | the site goes to a line near one that it was at a moment ago |
//! | chained | its latency | its latency and a page walk | the address comes from the load before in a chain |
//! | overlapping | its latency / *o2* | the same / min(*o*, max(1, *W·m*)), at least *r* | everything else |
//!
//! *r*, *w*, the overlaps *o2* and *o*, and the window *W* are the machine's ([`memlode_machine::Costs`]); *m* is how many such misses from
//! behind the second level the function has for each instruction. Latencies are those beyond the first level's. The first touch of a
//! line in memory that the program got while it was recorded costs what the second level does: the kernel has just zeroed it. All
//! instructions cost some fraction of a cycle besides, so it can be said which part of the cycles is waiting at all.

mod chains;

use std::iter::Sum;
use std::ops::AddAssign;

use memlode_machine::Machine;
use memlode_simulate::MAX_LEVELS;
use memlode_trace::sites::{SiteId, SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::objects::classes::{Class, Home};
use crate::profile::{Cell, Profile};
use crate::run::latencies;
use crate::tables::place;

/// Cycles that a line from the second level costs where it was fetched ahead, or is stored to.
const NEAR_CYCLES: f64 = 2.0;

/// In what way accesses wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitKind {
    /// Stores: the core goes on, as long as there is room for them.
    Stored,
    /// Loads of lines that a prefetcher can have fetched: they cost the bandwidth that they take.
    Streamed,
    /// Loads that wait for the one before.
    Chained,
    /// Loads that can wait together.
    Overlapping,
}

impl WaitKind {
    /// All of them.
    pub const ALL: [WaitKind; 4] =
        [WaitKind::Stored, WaitKind::Streamed, WaitKind::Chained, WaitKind::Overlapping];
}

/// Cycles that some accesses cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Waiting, by kind, in the order of [`WaitKind::ALL`].
    pub kinds: [f64; 4],
    /// For the first touches of lines, in none of the kinds.
    pub first_touches: f64,
    /// Executing the instructions up to the accesses.
    pub instructions: f64,
}

impl Wait {
    /// All waiting but for first touches.
    pub fn cycles(&self) -> f64 {
        self.kinds.iter().sum()
    }

    /// The kind that most of the waiting is of, if there is any.
    pub fn main_kind(&self) -> Option<WaitKind> {
        let most = (0..4).max_by(|&a, &b| self.kinds[a].total_cmp(&self.kinds[b]))?;
        (self.kinds[most] > 0.0).then(|| WaitKind::ALL[most])
    }

    /// Cycles of waiting of a kind.
    pub fn of(&self, kind: WaitKind) -> f64 {
        self.kinds[kind as usize]
    }
}

impl AddAssign<&Wait> for Wait {
    fn add_assign(&mut self, other: &Wait) {
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, more)| *sum += more);
        self.first_touches += other.first_touches;
        self.instructions += other.instructions;
    }
}

impl<'a> Sum<&'a Wait> for Wait {
    fn sum<I: Iterator<Item = &'a Wait>>(waits: I) -> Wait {
        waits.fold(Wait::default(), |mut sum, wait| {
            sum += wait;
            sum
        })
    }
}

/// The cost of an access of a cell, by the number of levels that it missed.
#[derive(Clone, Copy, Debug, Default)]
struct Prices {
    by_depth: [Wait; MAX_LEVELS + 1],
    first_touch: f64,
    instructions: f64,
}

/// Misses that could overlap, of each function, from behind the second level for each instruction.
#[derive(Clone, Debug, Default)]
pub struct Parallelism(FxHashMap<StringId, f64>);

/// The cost of the accesses of each cell of a profile.
#[derive(Clone, Debug)]
pub struct CostModel {
    prices: Vec<Prices>,
    waits: Vec<Wait>,
    /// Indexed by tag of a cell: its place in these.
    by_tag: Vec<u32>,
    knows_instructions: bool,
    parallelism: Parallelism,
}

/// The constants of a machine that the formula takes.
struct Constants {
    latencies: Vec<f64>,
    overlap_l2: f64,
    overlap: f64,
    read_line: f64,
    write_line: f64,
    window: f64,
    instruction: f64,
    walk: f64,
    /// Bytes whose translations the machine keeps.
    reach: u64,
}

impl Constants {
    fn of(machine: &Machine) -> Constants {
        let costs = &machine.costs;
        let first = machine.levels.first().map_or(0, |level| level.latency_cycles);
        let reach = machine.tlbs.iter().filter(|tlb| tlb.page_bytes.contains(&machine.page_bytes));
        Constants {
            latencies: latencies(machine)
                .iter()
                .map(|&cycles| f64::from(cycles.saturating_sub(first)))
                .collect(),
            overlap_l2: costs.overlap_l2.value,
            overlap: costs.overlap_memory.value,
            read_line: costs.read_line_cycles.value,
            write_line: costs.write_line_cycles.value,
            window: costs.window_instructions.value,
            instruction: costs.instruction_cycles.value,
            walk: machine.page_walk_cycles.into(),
            reach: reach.map(|tlb| u64::from(tlb.entries) * machine.page_bytes).max().unwrap_or(u64::MAX),
        }
    }
}

impl CostModel {
    /// Looks at all cells of a profile on a machine.
    pub fn new(profile: &Profile, names: &SiteTable, machine: &Machine) -> CostModel {
        CostModel::with(profile, names, machine, None)
    }

    /// Looks at all cells of a profile under an edit of the layout, whose trace has this parallelism as it is. Functions are not
    /// credited with parallelism that an edit creates by missing more: the other misses need not be near those.
    pub fn under_edit(
        profile: &Profile,
        names: &SiteTable,
        machine: &Machine,
        as_it_is: &Parallelism,
    ) -> CostModel {
        CostModel::with(profile, names, machine, Some(as_it_is))
    }

    fn with(
        profile: &Profile,
        names: &SiteTable,
        machine: &Machine,
        as_it_is: Option<&Parallelism>,
    ) -> CostModel {
        let constants = Constants::of(machine);
        let sites = names.sites().len();
        let mut seen =
            chains::Seen { executed: vec![0; sites], missed: vec![0; sites], stays: vec![false; sites] };
        for cell in &profile.cells {
            seen.executed[cell.site.0 as usize] += cell.counts.accesses();
            seen.missed[cell.site.0 as usize] += cell.counts.misses(0);
        }
        for (stays, walk) in seen.stays.iter_mut().zip(&profile.walks) {
            *stays = walk.near_share().is_none();
        }
        let chained = chains::chained(names, &seen);
        let streamed = |site: SiteId| streamed(profile, names, site);
        let mut misses = overlapping_misses(profile, names, &chained, &streamed);
        for (function, misses) in misses.iter_mut() {
            *misses =
                as_it_is.map_or(*misses, |known| known.0.get(function).map_or(0.0, |most| misses.min(*most)));
        }
        let price = |cell: &Cell| {
            let site = names.site(cell.site);
            let part = Parts {
                is_write: site.kind.is_write(),
                streamed: streamed(cell.site),
                chained: chained[cell.site.0 as usize],
                overlapping_misses: misses.get(&place(names, site).line.function).copied().unwrap_or(0.0),
                instructions: names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after)),
            };
            prices(&constants, &part, &profile.classes[cell.class.0 as usize])
        };
        let prices: Vec<Prices> = profile.cells.iter().map(price).collect();
        let can_tell = profile.gaps.is_none();
        let wait = |(cell, prices): (&Cell, &Prices)| {
            let counts = &cell.counts;
            let is_fresh = can_tell && profile.classes[cell.class.0 as usize].home != Home::Unknown;
            let first = if is_fresh { counts.first_touches } else { 0 };
            let mut by_depth: [u64; MAX_LEVELS + 1] =
                std::array::from_fn(|depth| counts.reads[depth] + counts.writes[depth]);
            by_depth[machine.levels.len()] -= first;
            let mut wait = prices.wait(&by_depth);
            wait.kinds[WaitKind::Overlapping as usize] += counts.other_cycles as f64;
            wait.first_touches = first as f64 * prices.first_touch;
            wait.instructions += first as f64 * prices.instructions;
            wait
        };
        let waits = profile.cells.iter().zip(&prices).map(wait).collect();
        let mut by_tag = vec![u32::MAX; profile.cells.len()];
        for (number, cell) in (0u32..).zip(&profile.cells) {
            if let Some(place) = by_tag.get_mut(cell.tag.index()) {
                *place = number;
            }
        }
        let knows_instructions = profile.cells.iter().any(|cell| names.work(cell.site).is_some());
        CostModel { prices, waits, by_tag, knows_instructions, parallelism: Parallelism(misses) }
    }

    /// Returns how parallel the misses of each function were taken to be.
    pub fn parallelism(&self) -> &Parallelism {
        &self.parallelism
    }

    /// Returns what the cell at this place among the profile's costs.
    pub fn of(&self, cell: usize) -> &Wait {
        &self.waits[cell]
    }

    /// Returns what everything costs.
    pub fn total(&self) -> Wait {
        self.waits.iter().sum()
    }

    /// Returns whether anything is known of the instructions that are executed between accesses.
    pub fn knows_instructions(&self) -> bool {
        self.knows_instructions
    }

    /// Cycles of waiting of accesses of the cell with this tag, by the number of levels that they missed.
    pub(crate) fn cycles_of(&self, tag: u32, by_depth: &[u64; MAX_LEVELS + 1]) -> f64 {
        let place = self.by_tag.get(tag as usize).and_then(|&place| self.prices.get(place as usize));
        place.map_or(0.0, |prices| prices.wait(by_depth).cycles())
    }
}

impl Prices {
    fn wait(&self, by_depth: &[u64; MAX_LEVELS + 1]) -> Wait {
        let mut sum = Wait::default();
        for (&accesses, price) in by_depth.iter().zip(&self.by_depth) {
            for (sum, price) in sum.kinds.iter_mut().zip(price.kinds) {
                *sum += accesses as f64 * price;
            }
            sum.instructions += accesses as f64 * self.instructions;
        }
        sum
    }
}

/// The part of a site's lines that a prefetcher can have fetched: as it was seen to walk, or as the code says where it was not seen.
fn streamed(profile: &Profile, names: &SiteTable, site: SiteId) -> f64 {
    let seen = profile.walks.get(site.0 as usize).and_then(|walk| walk.near_share());
    seen.unwrap_or_else(|| f64::from(u8::from(names.site(site).dependence().is_none())))
}

/// Returns, by function, how many misses that could overlap it has from behind the second level for each instruction.
fn overlapping_misses(
    profile: &Profile,
    names: &SiteTable,
    chained: &[f64],
    streamed: &impl Fn(SiteId) -> f64,
) -> FxHashMap<StringId, f64> {
    let mut sums: FxHashMap<StringId, (f64, f64)> = FxHashMap::default();
    for cell in &profile.cells {
        let site = names.site(cell.site);
        let sum = sums.entry(place(names, site).line.function).or_default();
        let work = names.work(cell.site).map_or(0.0, |work| f64::from(work.before + work.after));
        sum.1 += cell.counts.accesses() as f64 * work;
        if !site.kind.is_write() {
            let free = (1.0 - streamed(cell.site)) * (1.0 - chained[cell.site.0 as usize]);
            sum.0 += cell.counts.misses(1) as f64 * free;
        }
    }
    sums.into_iter()
        .map(|(function, (misses, instructions))| (function, misses / instructions.max(1.0)))
        .collect()
}

/// Facts about the accesses of a cell.
struct Parts {
    is_write: bool,
    streamed: f64,
    chained: f64,
    /// Those of the function, for each instruction.
    overlapping_misses: f64,
    /// For each access.
    instructions: f64,
}

fn prices(constants: &Constants, parts: &Parts, class: &Class) -> Prices {
    let Parts { is_write, streamed, chained, overlapping_misses, instructions } = *parts;
    let walk = if class.bytes > constants.reach { constants.walk } else { 0.0 };
    let together = constants.overlap.min((constants.window * overlapping_misses).max(1.0));
    let levels = constants.latencies.len() - 1;
    let price = |depth: usize| {
        let latency = constants.latencies.get(depth).copied().unwrap_or(0.0);
        // The second level, if memory is not what comes second.
        let is_near = depth == 1 && depth < levels;
        let mut kinds = [0.0; 4];
        if depth == 0 || depth > levels {
            return Wait::default();
        }
        let line = |cycles: f64| if is_near { NEAR_CYCLES.min(latency) } else { cycles.min(latency + walk) };
        if is_write {
            kinds[WaitKind::Stored as usize] = line(constants.write_line);
            return Wait { kinds, ..Wait::default() };
        }
        let (waits, overlap) =
            if is_near { (latency, constants.overlap_l2) } else { (latency + walk, together) };
        kinds[WaitKind::Streamed as usize] = streamed * line(constants.read_line);
        kinds[WaitKind::Chained as usize] = (1.0 - streamed) * chained * waits;
        // A line that a jump fetches takes as much of the bandwidth as one of a stream.
        let jump = if is_near { waits / overlap } else { (waits / overlap).max(line(constants.read_line)) };
        kinds[WaitKind::Overlapping as usize] = (1.0 - streamed) * (1.0 - chained) * jump;
        Wait { kinds, ..Wait::default() }
    };
    let second = constants.latencies.get(1).copied().unwrap_or(0.0);
    Prices {
        by_depth: std::array::from_fn(price),
        first_touch: if is_write { NEAR_CYCLES } else { second / constants.overlap_l2 },
        instructions: instructions * constants.instruction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constants() -> Constants {
        Constants {
            latencies: vec![0.0, 10.0, 100.0, 300.0],
            overlap_l2: 5.0,
            overlap: 20.0,
            read_line: 13.0,
            write_line: 22.0,
            window: 400.0,
            instruction: 0.25,
            walk: 30.0,
            reach: 1 << 20,
        }
    }

    fn parts() -> Parts {
        Parts { is_write: false, streamed: 0.0, chained: 0.0, overlapping_misses: 0.0, instructions: 4.0 }
    }

    /// Cycles of accesses that missed one, two and three levels.
    fn cycles(parts: &Parts, bytes: u64) -> [f64; 3] {
        let home = Home::Global { symbol: "a".into(), image: "b".into() };
        let class = Class { home, element: None, element_by_use: false, objects: 1, bytes };
        let prices = prices(&constants(), parts, &class);
        assert_eq!(prices.by_depth[0], Wait::default(), "a hit waits for nothing");
        assert_eq!(prices.instructions, 1.0);
        [1, 2, 3].map(|depth| prices.by_depth[depth].cycles())
    }

    #[test]
    fn prices_are_those_of_the_formula() {
        let chained = Parts { chained: 1.0, ..parts() };
        assert_eq!(cycles(&chained, 0), [10.0, 100.0, 300.0], "all of the latency");
        assert_eq!(cycles(&chained, 2 << 20), [10.0, 130.0, 330.0], "and a page walk");
        let streamed = Parts { streamed: 1.0, chained: 1.0, ..parts() };
        assert_eq!(cycles(&streamed, 2 << 20), [2.0, 13.0, 13.0], "a chain in order is a stream");
        assert_eq!(cycles(&Parts { is_write: true, ..parts() }, 0), [2.0, 22.0, 22.0]);
        // One such miss in 100 instructions: four are in the window; in ten, no more than twenty are in flight.
        let some = Parts { overlapping_misses: 0.01, ..parts() };
        assert_eq!(cycles(&some, 0), [2.0, 25.0, 75.0]);
        let many = Parts { overlapping_misses: 0.1, ..parts() };
        assert_eq!(cycles(&many, 0), [2.0, 13.0, 15.0], "no less than a stream");
        assert_eq!(cycles(&parts(), 0), [2.0, 100.0, 300.0], "a miss alone waits alone");
        // Half of each.
        let half = Parts { streamed: 0.5, chained: 0.5, ..parts() };
        assert_eq!(cycles(&half, 0), [1.0 + 2.5 + 0.5, 6.5 + 25.0 + 25.0, 6.5 + 75.0 + 75.0]);
    }
}
