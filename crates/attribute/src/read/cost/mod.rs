//! The cost of a profile's accesses in time, by a formula on counts.
//!
//! A miss does not cost its full latency. Its cost depends on what the processor can do meanwhile:
//!
//! | | from the second level | from behind it | recognised by |
//! |---|---|---|---|
//! | stored | 2 | a line written, `w`; past the caches as long as one that is read, `r`; at least *p* / *op* where it is a jump | the site stores |
//! | streamed | 2 | a line read, `r` | the site goes to a line near one that it was at a moment ago, or is a prefetch |
//! | chained | its latency | its latency and a page walk | the address comes from the load before in a chain |
//! | overlapping | its latency / *o2* | the same and a page walk / min(*o*, max(1, *W·m*)), at least *r*, *p* / *op* | everything else |
//!
//! *r*, *w*, the overlaps *o2* and *o*, the window *W*, a page walk *p* and how many of these go on
//! at once, *op*, are the machine's ([`memlode_machine::Costs`]). *m* is the number of such misses
//! from behind the second level per instruction of the function. Latencies are those beyond the
//! first level's. The first touch of a line in memory that the program got while it was recorded
//! costs what the second level does: the kernel has just zeroed it.
//!
//! A miss costs a page walk if its object is larger than the reach of the TLB, and the program has
//! touched that much memory. Where translations are simulated there is no such estimate: the
//! simulated cycles of missing translations, and of memory of another node, are added to the
//! latencies. All instructions cost a fraction of a cycle, so the share of waiting in all cycles is
//! known.

mod chains;
mod sites;

use std::iter::Sum;
use std::ops::AddAssign;

use memlode_machine::Machine;
use memlode_simulate::MAX_LEVELS;
use memlode_trace::sites::{SiteTable, StringId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::objects::classes::Home;
use crate::profile::{Cell, Profile};
use sites::SiteWaits;

/// Cycles that a line from the second level costs where it was fetched ahead, or is stored to.
const NEAR_CYCLES: f64 = 2.0;

/// The way in which accesses wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// Returns the kind in a word, stable.
    pub fn word(self) -> &'static str {
        match self {
            WaitKind::Stored => "stored",
            WaitKind::Streamed => "streamed",
            WaitKind::Chained => "chained",
            WaitKind::Overlapping => "overlapping",
        }
    }
}

/// Cycles that some accesses cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Waiting, by kind, in the order of [`WaitKind::ALL`].
    pub kinds: [f64; 4],
    /// Waiting for first touches of lines, which is in none of the kinds.
    pub first_touches: f64,
    /// Executing the instructions up to the accesses.
    pub instructions: f64,
}

impl Wait {
    /// All waiting except for first touches.
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
    /// The price of one more cycle of latency, by kind.
    latency_cycle: [f64; 4],
    first_touch: f64,
    instructions: f64,
}

/// Misses that could overlap, of each function, from behind the second level for each instruction.
#[derive(Clone, Debug, Default)]
pub struct Parallelism(FxHashMap<StringId, f64>);

/// Misses that could overlap, and the instructions among which they are.
#[derive(Clone, Copy, Debug, Default)]
struct Density {
    misses: f64,
    instructions: f64,
}

impl Density {
    /// Returns the misses for each instruction.
    fn each(self) -> f64 {
        self.misses / self.instructions.max(1.0)
    }
}

/// Facts about a trace under an edit that its profile does not have.
#[derive(Clone, Debug, Default)]
pub struct UnderEdit {
    /// The parallelism of the unedited trace.
    pub parallelism: Parallelism,
    /// Bytes of a page of the objects that lie in pages of another size than the machine's.
    pub pages: FxHashMap<Home, u64>,
    /// Bytes that the whole trace touches, if the profile is one of a part of it.
    pub touched_bytes: Option<u64>,
}

/// The cost of the accesses of each cell of a profile.
#[derive(Clone, Debug)]
pub struct CostModel {
    prices: Vec<Prices>,
    waits: Vec<Wait>,
    /// Indexed by tag of a cell: its place in these.
    by_tag: Vec<u32>,
    knows_instructions: bool,
    parallelism: Parallelism,
    touched_bytes: u64,
    /// Indexed by level.
    line_bytes: Vec<u32>,
}

/// The constants of a machine that the formula takes.
struct Constants {
    latencies: Vec<f64>,
    overlap_l2: f64,
    overlap: f64,
    overlap_walk: f64,
    read_line: f64,
    write_line: f64,
    window: f64,
    instruction: f64,
    walk: f64,
    /// Bytes whose translations the machine keeps, by page size.
    reach: FxHashMap<u64, u64>,
    page_bytes: u64,
}

impl Constants {
    fn of(machine: &Machine) -> Constants {
        let costs = &machine.costs;
        let first = machine.levels.first().map_or(0, |level| level.latency_cycles);
        let mut reach: FxHashMap<u64, u64> = FxHashMap::default();
        for (tlb, &page) in
            machine.tlbs.iter().flat_map(|tlb| tlb.page_bytes.iter().map(move |page| (tlb, page)))
        {
            let most = reach.entry(page).or_default();
            *most = (*most).max(u64::from(tlb.entries).saturating_mul(page));
        }
        Constants {
            latencies: machine
                .latencies()
                .iter()
                .map(|&cycles| f64::from(cycles.saturating_sub(first)))
                .collect(),
            overlap_l2: costs.overlap_l2.value,
            overlap: costs.overlap_memory.value,
            overlap_walk: costs.overlap_walk.value,
            read_line: costs.read_line_cycles.value,
            write_line: costs.write_line_cycles.value,
            window: costs.window_instructions.value,
            instruction: costs.instruction_cycles.value,
            walk: machine.page_walk_cycles.into(),
            reach,
            page_bytes: machine.page_bytes,
        }
    }

    /// Cycles that a miss of an object's takes longer because its translation is not kept.
    fn walk(&self, bytes: u64, page_bytes: Option<u64>) -> f64 {
        let reach = match page_bytes {
            Some(of_its_own) if !self.reach.is_empty() => self.reach.get(&of_its_own).copied().unwrap_or(0),
            _ => self.reach.get(&self.page_bytes).copied().unwrap_or(u64::MAX),
        };
        if bytes > reach { self.walk } else { 0.0 }
    }
}

impl CostModel {
    /// Looks at all cells of a profile on a machine.
    pub fn new(profile: &Profile, names: &SiteTable, machine: &Machine) -> CostModel {
        CostModel::with(profile, names, machine, None)
    }

    /// Computes the costs of all cells of a profile under an edit of the layout, given the
    /// parallelism of the unedited trace. A site is not credited with parallelism that an edit
    /// creates by making other sites miss: these need not be near it. Where it misses more itself,
    /// its own misses are near each other.
    pub fn under_edit(
        profile: &Profile,
        names: &SiteTable,
        machine: &Machine,
        edit: &UnderEdit,
    ) -> CostModel {
        CostModel::with(profile, names, machine, Some(edit))
    }

    fn with(profile: &Profile, names: &SiteTable, machine: &Machine, edit: Option<&UnderEdit>) -> CostModel {
        let constants = Constants::of(machine);
        let sites = SiteWaits::of(profile, names, machine, edit);
        let price = |cell: &Cell| prices(&constants, &sites.parts(cell), sites.walk(&constants, cell));
        let prices: Vec<Prices> = profile.cells.iter().map(price).collect();
        let wait = |(cell, prices): (&Cell, &Prices)| prices.of_cell(profile, cell, machine.levels.len());
        let waits = profile.cells.iter().zip(&prices).map(wait).collect();
        let mut by_tag = vec![u32::MAX; profile.cells.len()];
        for (number, cell) in (0u32..).zip(&profile.cells) {
            if let Some(place) = by_tag.get_mut(cell.tag.index()) {
                *place = number;
            }
        }
        let knows_instructions = profile.cells.iter().any(|cell| names.work(cell.site).is_some());
        let touched_bytes = sites.touched_bytes();
        let parallelism = sites.parallelism();
        let line_bytes = machine.levels.iter().map(|level| level.line_bytes).collect();
        CostModel { prices, waits, by_tag, knows_instructions, parallelism, touched_bytes, line_bytes }
    }

    /// Returns how parallel the misses of each function were taken to be.
    pub fn parallelism(&self) -> &Parallelism {
        &self.parallelism
    }

    /// Bytes that the program touched, at most; `u64::MAX` if that is not known.
    pub fn touched_bytes(&self) -> u64 {
        self.touched_bytes
    }

    /// Returns the cost of the cell at this index.
    pub fn of(&self, cell: usize) -> &Wait {
        &self.waits[cell]
    }

    /// Returns the cycles that accesses of the cell at this index wait, by the number of levels that
    /// they missed: their sum is that of [`CostModel::of`], unless translations were simulated.
    pub fn by_depth(&self, profile: &Profile, cell: usize, levels: usize) -> [f64; MAX_LEVELS + 1] {
        let (prices, of) = (&self.prices[cell], &profile.cells[cell]);
        let first = fresh_touches(profile, of);
        std::array::from_fn(|depth| {
            let accesses = of.counts.reads[depth] + of.counts.writes[depth];
            let waiting = if depth == levels { accesses - first } else { accesses };
            waiting as f64 * prices.by_depth[depth].cycles()
        })
    }

    /// Returns the cost of all cells.
    pub fn total(&self) -> Wait {
        self.waits.iter().sum()
    }

    /// Returns whether the instructions between accesses are known.
    pub fn knows_instructions(&self) -> bool {
        self.knows_instructions
    }

    /// Bytes of a line of a level, 0 being the innermost.
    pub fn line_bytes(&self, level: usize) -> u32 {
        self.line_bytes[level]
    }

    /// Cycles of waiting of accesses of the cell with this tag, by the number of levels that they
    /// missed.
    pub(crate) fn cycles_of(&self, tag: u32, by_depth: &[u64; MAX_LEVELS + 1]) -> f64 {
        let place = self.by_tag.get(tag as usize).and_then(|&place| self.prices.get(place as usize));
        place.map_or(0.0, |prices| prices.wait(by_depth).cycles())
    }
}

impl Prices {
    /// The cost of a cell's accesses, those that touch fresh memory first among them. Memory is
    /// behind `levels` levels.
    fn of_cell(&self, profile: &Profile, cell: &Cell, levels: usize) -> Wait {
        let counts = &cell.counts;
        let first = fresh_touches(profile, cell);
        let mut by_depth: [u64; MAX_LEVELS + 1] =
            std::array::from_fn(|depth| counts.reads[depth] + counts.writes[depth]);
        by_depth[levels] -= first;
        let mut wait = self.wait(&by_depth);
        for (sum, price) in wait.kinds.iter_mut().zip(self.latency_cycle) {
            *sum += counts.other_cycles as f64 * price;
        }
        wait.first_touches = first as f64 * self.first_touch;
        wait.instructions += first as f64 * self.instructions;
        wait
    }

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

/// The first touches of a cell that are known to be of memory which the program got while it was
/// recorded.
pub(crate) fn fresh_touches(profile: &Profile, cell: &Cell) -> u64 {
    let is_fresh = profile.gaps.is_none() && profile.classes[cell.class.0 as usize].home != Home::Unknown;
    if is_fresh { cell.counts.first_touches } else { 0 }
}

/// Facts about the accesses of a cell.
struct Parts {
    is_write: bool,
    /// Its lines are written and not read before.
    is_past_caches: bool,
    streamed: f64,
    chained: f64,
    /// Misses of the accesses around it, per instruction.
    overlapping_misses: f64,
    /// For each access.
    instructions: f64,
}

fn prices(constants: &Constants, parts: &Parts, walk: f64) -> Prices {
    let Parts { is_write, is_past_caches, streamed, chained, overlapping_misses, instructions } = *parts;
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
        // A jump walks the page tables, of which few walks go on at the same time.
        let walked = walk / constants.overlap_walk;
        if is_write {
            let cycles = if is_past_caches { constants.read_line } else { constants.write_line };
            let jump = if is_near { line(cycles) } else { line(cycles).max(walked) };
            kinds[WaitKind::Stored as usize] = streamed * line(cycles) + (1.0 - streamed) * jump;
            return Wait { kinds, ..Wait::default() };
        }
        let (waits, overlap) =
            if is_near { (latency, constants.overlap_l2) } else { (latency + walk, together) };
        kinds[WaitKind::Streamed as usize] = streamed * line(constants.read_line);
        kinds[WaitKind::Chained as usize] = (1.0 - streamed) * chained * waits;
        // A line that a jump fetches takes as much of the bandwidth as one of a stream.
        let least = if is_near { 0.0 } else { line(constants.read_line).max(walked) };
        let jump = (waits / overlap).max(least);
        kinds[WaitKind::Overlapping as usize] = (1.0 - streamed) * (1.0 - chained) * jump;
        Wait { kinds, ..Wait::default() }
    };
    let mut latency_cycle = [0.0; 4];
    if !is_write {
        latency_cycle[WaitKind::Chained as usize] = (1.0 - streamed) * chained;
        latency_cycle[WaitKind::Overlapping as usize] = (1.0 - streamed) * (1.0 - chained) / together;
    }
    let second = constants.latencies.get(1).copied().unwrap_or(0.0);
    Prices {
        by_depth: std::array::from_fn(price),
        latency_cycle,
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
            overlap_walk: 1.0,
            overlap: 20.0,
            read_line: 13.0,
            write_line: 22.0,
            window: 400.0,
            instruction: 0.25,
            walk: 30.0,
            reach: [(4096, 1 << 20), (1 << 21, 1 << 30)].into_iter().collect(),
            page_bytes: 4096,
        }
    }

    fn parts() -> Parts {
        Parts {
            is_write: false,
            is_past_caches: false,
            streamed: 0.0,
            chained: 0.0,
            overlapping_misses: 0.0,
            instructions: 4.0,
        }
    }

    /// Cycles of accesses that missed one, two and three levels.
    fn cycles(parts: &Parts, bytes: u64) -> [f64; 3] {
        let prices = prices(&constants(), parts, constants().walk(bytes, None));
        assert_eq!(prices.by_depth[0], Wait::default(), "a hit waits for nothing");
        assert_eq!(prices.instructions, 1.0);
        [1, 2, 3].map(|depth| prices.by_depth[depth].cycles())
    }

    #[test]
    fn prices_are_those_of_the_formula() {
        let chained = Parts { chained: 1.0, ..parts() };
        assert_eq!(cycles(&chained, 0), [10.0, 100.0, 300.0], "all of the latency");
        assert_eq!(cycles(&chained, 2 << 20), [10.0, 130.0, 330.0], "and a page walk");
        assert_eq!(
            constants().walk(2 << 20, Some(2 << 20)),
            0.0,
            "translations of large pages reach farther"
        );
        assert_eq!(constants().walk(2 << 20, Some(1 << 30)), 30.0, "of pages that it knows");
        let streamed = Parts { streamed: 1.0, chained: 1.0, ..parts() };
        assert_eq!(cycles(&streamed, 2 << 20), [2.0, 13.0, 13.0], "a chain in order is a stream");
        assert_eq!(cycles(&Parts { is_write: true, ..parts() }, 0), [2.0, 22.0, 22.0]);
        let past = Parts { is_write: true, is_past_caches: true, ..parts() };
        assert_eq!(cycles(&past, 0)[1..], [13.0; 2], "nothing is read for it");
        // One such miss in 100 instructions: four are in the window; in ten, no more than twenty are in flight.
        let some = Parts { overlapping_misses: 0.01, ..parts() };
        assert_eq!(cycles(&some, 0), [2.0, 25.0, 75.0]);
        let many = Parts { overlapping_misses: 0.1, ..parts() };
        assert_eq!(cycles(&many, 0), [2.0, 13.0, 15.0], "no less than a stream");
        assert_eq!(cycles(&many, 2 << 20), [2.0, 30.0, 30.0], "no less than a page walk beside others");
        assert_eq!(cycles(&Parts { is_write: true, ..parts() }, 2 << 20), [2.0, 30.0, 30.0], "nor a store");
        assert_eq!(cycles(&parts(), 0), [2.0, 100.0, 300.0], "a miss alone waits alone");
        let longer = |parts: &Parts| prices(&constants(), parts, 0.0).latency_cycle;
        assert_eq!(longer(&chained), [0.0, 0.0, 1.0, 0.0], "another cycle of latency is another of waiting");
        assert_eq!(longer(&some), [0.0, 0.0, 0.0, 0.25], "or of four that wait together");
        assert_eq!(longer(&streamed), [0.0; 4]);
        // Half of each.
        let half = Parts { streamed: 0.5, chained: 0.5, ..parts() };
        assert_eq!(cycles(&half, 0), [1.0 + 2.5 + 0.5, 6.5 + 25.0 + 25.0, 6.5 + 75.0 + 75.0]);
    }
}
