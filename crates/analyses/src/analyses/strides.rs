//! # Strides
//!
//! **What it finds.** How each access in the code walks through memory: whether it stays at an
//! address, goes a constant step, a few steps in turn (as nested loops do), moves about nearby, or
//! jumps. For jumps it shows the origin of their addresses:
//!
//! | | address | example |
//! |---|---|---|
//! | `chasing` | loaded from where the step before led to | lists, trees, chains of a hash table, `i = next[i]` |
//! | `gather` | loaded, but not one from the other | `a[idx[i]]`, `ptrs[i]->x`, `node->data->x` |
//! | `random` | computed, without a load | hashes, random numbers, binary search |
//! | `jumping` | not known | a pointer from another function; a program compiled by an older memlode |
//!
//! **Why it costs.** Prefetchers follow constant steps, and nothing else reliably. A step above the
//! size of a line fetches a line for each access; a jump waits for memory. When jumps gather or are
//! random, a processor waits for several at once; when they chase, each begins when the one before
//! has ended, so that as many misses take several times as long.
//!
//! **What to do.** A long constant step: interchange loops, or store what is walked through side by
//! side. `chasing`: follow several chains alternately, put more into each node (an array list, a
//! B-tree), allocate nodes in the order of the walk, or replace the chain by an array. A prefetch
//! does not help there: its address is not known earlier. `gather`: prefetch some iterations ahead
//! by hand, as the indices are known then, or sort them. `random`: compute several addresses first,
//! then prefetch or load; make the table smaller; or partition the work, so that what is reached
//! together is small. What stays at an address belongs into a register.
//!
//! **When it is wrong.** The steps are those of one access in one thread, with any other accesses
//! between. Four different steps are kept per access, so shares are lower bounds if there are more
//! (Misra and Gries, "Finding repeated elements", Science of Computer Programming 2(2), 1982). An
//! access of a function that is called for several data structures in turn jumps. Where addresses
//! come from is found in the code of one function, inlined ones included
//! (`instrument/src/describe/AddressDependence.h`): chains that lead through memory, or through
//! calls other than of a function by itself, do not look like chains. A chain whose steps stay
//! within a page is `chasing` if more than half of the accesses miss the first level; one whose
//! nodes lie a constant step apart is `strided`.
//!
//! `memlode dump --sites` shows for every site what the compiler saw (`chased`, `loaded`,
//! `computed`). With `--fidelity source` or `-O0` it sees variables, not their values at each
//! point: one that is used for a chain and for something else may count as chased. In the loop of
//! an interpreter, loaded values move the program counter, so a large part of its loads are in that chain,
//! although the processor predicts it.

use std::cmp::Reverse;

use memlode_attribute::annotate::AnnotatedAccesses;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::{Dependence, SiteId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Arguments, BadArgument, BadNumber, CellPacker, CellUnpacker, Column, Findings, Holds, Meta,
    Reads, Splits, Table, TableMeta, Value, View,
};

/// Steps kept for each access.
const KEPT: usize = 4;

/// A walk has a pattern if at least this part of its steps follows it.
const MOST: f64 = 0.8;

/// Steps up to this many bytes are nearby: a page.
const NEAR: u64 = 4096;

/// Names of walks.
const PATTERNS: [&str; 9] =
    ["once", "constant", "strided", "few strides", "nearby", "chasing", "gather", "random", "jumping"];

/// One access of a thread.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Walk {
    last: u64,
    accesses: u64,
    misses: u64,
    near: u64,
    /// Step and how often it was made, at least.
    steps: [(i64, u64); KEPT],
}

impl Walk {
    fn go(&mut self, address: u64, missed: bool) {
        self.misses += u64::from(missed);
        self.accesses += 1;
        let step = address.wrapping_sub(std::mem::replace(&mut self.last, address)) as i64;
        if self.accesses == 1 {
            return;
        }
        self.near += u64::from(step.unsigned_abs() <= NEAR);
        if let Some((_, times)) = self.steps.iter_mut().find(|(known, times)| *known == step && *times > 0) {
            *times += 1;
        } else if let Some(free) = self.steps.iter_mut().find(|(_, times)| *times == 0) {
            *free = (step, 1);
        } else {
            self.steps.iter_mut().for_each(|(_, times)| *times -= 1);
        }
    }

    /// Its most frequent step; its name, given the origin of its address; and the part of its steps
    /// with that name.
    fn pattern(&self, dependence: Option<Dependence>) -> (i64, &'static str, f64) {
        let all = self.accesses.saturating_sub(1);
        let mut steps = self.steps;
        steps.sort_by_key(|&(step, times)| (Reverse(times), step));
        let share = |times: u64| if all == 0 { 1.0 } else { times as f64 / all as f64 };
        let (step, first) = (steps[0].0, share(steps[0].1));
        let together = share(steps.iter().map(|(_, times)| times).sum());
        let near = share(self.near);
        let chases = dependence == Some(Dependence::Chased);
        let waits = self.misses > self.accesses / 2;
        let (word, part) = match () {
            () if all == 0 => ("once", 1.0),
            () if first >= MOST && step == 0 => ("constant", first),
            () if first >= MOST => ("strided", first),
            () if together >= MOST => ("few strides", together),
            () if near >= MOST && !(chases && waits) => ("nearby", near),
            // However far a link leads, it is one of the chain.
            () => (jump(dependence), if chases { 1.0 } else { 1.0 - near }),
        };
        (step, word, part)
    }
}

/// Returns what jumps are called whose addresses come out of what `dependence` says.
fn jump(dependence: Option<Dependence>) -> &'static str {
    match dependence {
        Some(Dependence::Chased) => "chasing",
        Some(Dependence::Loaded) => "gather",
        Some(Dependence::Computed) => "random",
        None => "jumping",
    }
}

/// The threads that make an access in the same way.
#[derive(Default)]
struct Way {
    threads: Vec<(ThreadId, u64)>,
    accesses: u64,
    misses: u64,
    /// Accesses of the pattern.
    so: f64,
}

/// See the module's page.
pub struct Strides;

/// Walks of threads.
#[derive(Default)]
pub struct Walks {
    walks: Vec<Walk>,
    /// Indexed by walk.
    keys: Vec<(ThreadId, SiteId)>,
    numbers: FxHashMap<(ThreadId, SiteId), u32>,
    /// Indexed by cell: its walk.
    by_cell: Vec<u32>,
}

impl Walks {
    /// The number of a walk.
    fn number(&mut self, key: (ThreadId, SiteId)) -> u32 {
        let next = self.walks.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.walks.push(Walk::default());
            self.keys.push(key);
        }
        number
    }
}

impl Analysis for Strides {
    const META: Meta = Meta {
        id: "strides",
        title: "how each access walks through memory",
        reads: Reads::Rows,
        inlines: true,
        levels: true,
        after: &[],
        // Four steps are kept of a walk, and which those are depends on all steps before.
        splits: Splits { chunks: false, address: None, thread: true, time: false },
        arguments: &[],
        tables: &[TableMeta {
            id: "strides",
            title: "Strides",
            is_whole: false,
            columns: &[
                Column { id: "data", holds: Holds::What },
                Column { id: "line", holds: Holds::Place },
                Column { id: "pattern", holds: Holds::Word(&PATTERNS) },
                Column { id: "share", holds: Holds::Share },
                Column { id: "usual_step", holds: Holds::Step },
                Column { id: "accesses", holds: Holds::Count },
                Column { id: "misses", holds: Holds::Count },
                Column { id: "by_thread", holds: Holds::Threads },
            ],
        }],
    };

    type State = Walks;
    type Saved = Vec<(u32, u32, Walk)>;

    fn new(_arguments: &Arguments) -> Result<Strides, BadArgument> {
        Ok(Strides)
    }

    fn start(&self) -> Walks {
        Walks::default()
    }

    fn observe(&self, walks: &mut Walks, rows: &AnnotatedAccesses, view: &View<'_>) {
        for cell in &view.cells.cells[walks.by_cell.len()..] {
            let number = walks.number((cell.thread, cell.site));
            walks.by_cell.push(number);
        }
        for row in 0..rows.rows() {
            let walk = &mut walks.walks[walks.by_cell[rows.cell[row] as usize] as usize];
            walk.go(rows.address[row], rows.level[row] > 0);
        }
    }

    fn merge(&self, walks: &mut Walks, later: Walks) {
        let mut numbers = Vec::with_capacity(later.walks.len());
        for (walk, key) in later.walks.into_iter().zip(later.keys) {
            let number = walks.number(key);
            if walk.accesses > 0 {
                walks.walks[number as usize] = walk;
            }
            numbers.push(number);
        }
        let known = walks.by_cell.len().min(later.by_cell.len());
        walks.by_cell.extend(later.by_cell[known..].iter().map(|&number| numbers[number as usize]));
    }

    fn save(&self, walks: Walks, _carried: &mut CellPacker<'_>) -> Vec<(u32, u32, Walk)> {
        let walks = walks.walks.into_iter().zip(walks.keys).filter(|(walk, _)| walk.accesses > 0);
        walks.map(|(walk, (thread, site))| (thread.0, site.0, walk)).collect()
    }

    fn load(&self, saved: Vec<(u32, u32, Walk)>, carried: &CellUnpacker<'_>) -> Result<Walks, BadNumber> {
        let mut walks = Walks::default();
        for (thread, site, walk) in saved {
            let number = walks.number((carried.thread(thread)?, carried.site(site)?));
            walks.walks[number as usize] = walk;
        }
        Ok(walks)
    }

    fn finish(&self, walks: Walks, view: &View<'_>) -> Findings {
        // Threads that go the same way are one row.
        let mut ways: FxHashMap<(SiteId, &'static str, i64), Way> = FxHashMap::default();
        let mut keys: Vec<_> = walks.numbers.iter().collect();
        keys.sort();
        for (&(thread, site), &number) in keys {
            let walk = &walks.walks[number as usize];
            if walk.accesses > 0 {
                let (step, pattern, share) = walk.pattern(view.names.site(site).dependence());
                let way = ways.entry((site, pattern, step)).or_default();
                way.threads.push((thread, walk.accesses));
                way.accesses += walk.accesses;
                way.misses += walk.misses;
                way.so += share * walk.accesses as f64;
            }
        }
        let mut ways: Vec<_> = ways.into_iter().collect();
        ways.sort_by_key(|(key, way)| (Reverse((way.misses, way.accesses)), *key));
        let row = |((site, pattern, step), mut way): ((SiteId, &'static str, i64), Way)| {
            let (data, at) = view.key_of(view.names.site(site));
            way.threads.sort_by_key(|&(thread, accesses)| (Reverse(accesses), thread));
            vec![
                Value::What(data),
                Value::Place(at),
                Value::Word(pattern),
                Value::Share(way.so / way.accesses as f64),
                Value::Step(step),
                Value::Count(way.accesses),
                Value::Count(way.misses),
                Value::Threads(way.threads),
            ]
        };
        let tables = vec![Table::plain(&Strides::META.tables[0], ways.into_iter().map(row).collect())];
        Findings { findings: Vec::new(), tables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(addresses: impl IntoIterator<Item = u64>, missed: bool) -> Walk {
        let mut walk = Walk::default();
        addresses.into_iter().for_each(|address| walk.go(address, missed));
        walk
    }

    fn pattern(addresses: impl IntoIterator<Item = u64>) -> (i64, &'static str, f64) {
        walk(addresses, false).pattern(None)
    }

    fn random() -> impl FnMut(u64) -> u64 {
        let mut seed = 1u64;
        move |below| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        }
    }

    #[test]
    fn patterns_have_names() {
        assert_eq!(pattern([7]), (0, "once", 1.0));
        assert_eq!(pattern([7; 50]), (0, "constant", 1.0));
        assert_eq!(pattern((0..100).map(|i| 10_000 - 24 * i)), (-24, "strided", 1.0));
        // Rows of four elements: three short steps, and a long one.
        let rows = (0..400u64).map(|i| i / 4 * 4096 + i % 4 * 8);
        let (step, word, share) = pattern(rows);
        assert_eq!((step, word), (8, "few strides"));
        assert!((share - 1.0).abs() < 1e-9);
        let mut random = random();
        assert_eq!(pattern((0..1000).map(|_| random(2000))).1, "nearby");
        assert_eq!(pattern((0..1000).map(|_| random(1 << 30))).1, "jumping");
    }
    #[test]
    fn jumps_are_called_by_where_their_addresses_come_from() {
        use Dependence::{Chased, Computed, Loaded};
        let mut random = random();
        let far = walk((0..1000).map(|_| random(1 << 30)), true);
        let words = [Some(Chased), Some(Loaded), Some(Computed), None].map(|from| far.pattern(from).1);
        assert_eq!(words, ["chasing", "gather", "random", "jumping"]);
        // Whatever the code looks like, a prefetcher follows these.
        let even = walk((0..100).map(|i| 64 * i), true);
        assert_eq!(even.pattern(Some(Chased)), (64, "strided", 1.0));
        // A chain through a page waits only where it misses, and nothing else waits for itself.
        for (missed, from, word) in
            [(true, Chased, "chasing"), (false, Chased, "nearby"), (true, Loaded, "nearby")]
        {
            let near = walk((0..1000).map(|_| random(2000)), missed);
            assert_eq!(near.pattern(Some(from)).1, word);
        }
    }
}
