//! Pages of a program that collide, by the names of their variables.
//!
//! One call of a function is examined, instruction by instruction. Loads that agree in their low 12
//! bits with a store to another page shortly before are candidates. A copy between the candidate
//! pages, in the stopped program, shows whether they collide. That needs neither rights nor true
//! physical addresses from the kernel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::pages::FACTOR;
use crate::Error;
use crate::inside::{
    AliasedLoad, CoreFacts, Names, Repeated, SteppedAccess, Steps, Tracee, aliased_loads, step,
};
use crate::names::Name;
use crate::process::{AddressLayout, Launch, Pinned, StopFlag, processors};

/// Instructions of the call that are looked at: a few seconds.
const MOST: usize = 1_000_000;
/// The most pairs of pages that are tried; those with most loads come first.
const MOST_PAIRS: usize = 2000;
const PAGE: u64 = 4096;
/// Bits that huge pages of 2 MiB keep.
const LOW_20: u64 = 0xf_ffff;

/// Pairs of pages that one call of a function reads and writes.
#[derive(Clone, Debug, Serialize)]
pub struct PagesByName {
    /// The function.
    pub function: String,
    /// Loads of one call that agree in their low 12 bits with a store to another page shortly before.
    pub loads: usize,
    /// Pairs of pages that these lie in.
    pub pairs: usize,
    /// Pairs that were tried.
    pub tried: usize,
    /// Number of those that collide.
    pub colliding: usize,
    /// Collisions of each pair of a load and a store instruction, the most frequent first.
    pub names: Vec<NamedPagePair>,
    /// Loads that would collide if these data lay in huge pages at these addresses: they agree in 20 bits of
    /// the virtual address.
    pub huge: usize,
    /// Instructions of the call were left out.
    pub cut: bool,
}

/// A load and a store whose pages collide.
#[derive(Clone, Debug, Serialize)]
pub struct NamedPagePair {
    /// Name of the data that is loaded.
    pub load: Name,
    /// Name of the data that was stored to before.
    pub store: Name,
    /// Loads of one call that collide.
    pub count: usize,
    /// Accesses from the store to the load, at least.
    pub least: u32,
    /// The time of a copy between these pages over that between halves of them that do not agree.
    pub measured: f64,
    /// The part of the call's time that these loads wait, estimated from a copy: the wait of one
    /// word, divided by the words from store to load. A load with other work meanwhile waits less.
    pub modelled: f64,
}

/// Looks at the first call of a function.
///
/// # Errors
/// If the program does not call it or cannot be controlled, or if it is stopped.
pub fn named(
    program: &Launch,
    function: &str,
    longest: Duration,
    stop: &Arc<StopFlag>,
) -> Result<PagesByName, Error> {
    // To wake a process on another processor takes ten times as long as one instruction of it.
    let _pinned = processors().first().map(|cpu| Pinned::to(*cpu));
    let mut names = None;
    let find = |tracee: &Tracee| {
        let found = names.insert(Names::of(&tracee.file()?)?);
        found.loaded_at(tracee.entry()?);
        found.function(function)
    };
    let layout = AddressLayout { padding: 0, randomised: true };
    let mut call = Repeated::start(program, layout, function, find, stop, longest)?;
    let names = names.ok_or(Error::Interrupted)?;
    let ticks = call.time(0)?.ticks;
    let (back, stack) = call.rewind(0)?;
    let steps = step(call.tracee(), back, stack, MOST)?;
    let aliased = aliased_loads(&steps, CoreFacts::of_host().flight);
    let by_pages = by_pages(&steps, &aliased);
    let mut found = PagesByName {
        function: function.to_owned(),
        loads: by_pages.iter().map(|(_, loads)| loads.len()).sum(),
        pairs: by_pages.len(),
        tried: by_pages.len().min(MOST_PAIRS),
        colliding: 0,
        names: Vec::new(),
        huge: aliased.iter().filter(|load| huge(&steps, load)).count(),
        cut: steps.cut,
    };
    let mut collected: BTreeMap<(u64, u64), NamedPagePair> = BTreeMap::new();
    for ((from, to), loads) in by_pages.iter().take(MOST_PAIRS) {
        let Some((ratio, wait)) = collides(&mut call, *from, *to)? else { continue };
        found.colliding += 1;
        for aliased in loads {
            let (load, store) = (&steps.accesses[aliased.load], &steps.accesses[aliased.store]);
            let pair =
                collected.entry((load.instruction, store.instruction)).or_insert_with(|| NamedPagePair {
                    load: names.name(load),
                    store: names.name(store),
                    count: 0,
                    least: aliased.accesses,
                    measured: ratio,
                    modelled: 0.0,
                });
            pair.count += 1;
            pair.least = pair.least.min(aliased.accesses);
            // In a copy there are two accesses a word.
            pair.modelled += wait / f64::from(aliased.accesses.div_ceil(2).max(1)) / ticks;
        }
    }
    found.names = collected.into_values().collect();
    found.names.sort_by_key(|pair| std::cmp::Reverse(pair.count));
    Ok(found)
}

fn page(access: &SteppedAccess) -> u64 {
    access.address & !(PAGE - 1)
}

/// Returns whether a load and a store lie in different pages, a multiple of 1 MiB apart. Accesses
/// that agree in only some of their bytes count as well: the pages decide.
fn huge(steps: &Steps, aliased: &AliasedLoad) -> bool {
    let apart = page(&steps.accesses[aliased.load]).wrapping_sub(page(&steps.accesses[aliased.store]));
    apart != 0 && apart & LOW_20 == 0
}

/// Aliased loads with stores to other pages, grouped by the two pages, those with most loads first.
fn by_pages(steps: &Steps, loads: &[AliasedLoad]) -> Vec<((u64, u64), Vec<AliasedLoad>)> {
    let mut pages: BTreeMap<(u64, u64), Vec<AliasedLoad>> = BTreeMap::new();
    for load in loads {
        let pair = (page(&steps.accesses[load.load]), page(&steps.accesses[load.store]));
        if pair.0 != pair.1 {
            pages.entry(pair).or_default().push(*load);
        }
    }
    let mut pages: Vec<_> = pages.into_iter().collect();
    pages.sort_by_key(|(pages, loads)| (std::cmp::Reverse(loads.len()), *pages));
    pages
}

/// Returns, if a copy between the pages is slow each time, how many times as slow, and the ticks
/// that a word waits.
fn collides(call: &mut Repeated, from: u64, to: u64) -> Result<Option<(f64, f64)>, Error> {
    let mut least = (f64::INFINITY, 0.0);
    for passes in [2, 5, 5, 5] {
        let (agreeing, control) = call.copy_between(from, to, passes)?;
        let ratio = agreeing / control.max(1e-3);
        if ratio < FACTOR {
            return Ok(None);
        }
        if ratio < least.0 {
            least = (ratio, agreeing - control);
        }
    }
    Ok(Some(least))
}

#[cfg(test)]
mod tests {
    use memlode_machine::InFlight;

    use super::*;

    fn access(address: u64, is_store: bool) -> SteppedAccess {
        SteppedAccess { instruction: 1 + u64::from(is_store), address, bytes: 8, is_store, frame: None }
    }

    /// Stores to two pages, and loads of a third that agree with them.
    #[test]
    fn loads_are_dealt_to_pairs_of_pages() {
        let accesses = vec![
            access(0x10_0010, true),
            access(0x20_0010, false),
            access(0x10_1020, true),
            access(0x20_0020, false),
            access(0x10_0030, true),
            access(0x20_0030, false),
        ];
        let steps = Steps { accesses, ..Steps::default() };
        let loads = aliased_loads(&steps, InFlight { stores: 56, instructions: 224 });
        assert_eq!(loads.len(), 3);
        let found = by_pages(&steps, &loads);
        let sizes: Vec<_> = found.iter().map(|(pages, loads)| (*pages, loads.len())).collect();
        assert_eq!(sizes, [((0x20_0000, 0x10_0000), 2), ((0x20_0000, 0x10_1000), 1)]);
        // A multiple of 1 MiB apart, and a page more.
        let huge: Vec<bool> = loads.iter().map(|load| huge(&steps, load)).collect();
        assert_eq!(huge, [true, false, true]);
    }
}
