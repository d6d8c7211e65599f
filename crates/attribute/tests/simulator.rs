//! Machines as they are described, on traces that no machine was made for.

mod common;

use common::site;
use memlode_attribute::setup::{RuleChoice, Setup};
use memlode_attribute::simulators::detailed;
use memlode_attribute::{Profile, Profiler};
use memlode_machine::Machine;
use memlode_trace::event::{Access, Batch, ProcessId, ThreadId};
use memlode_trace::sites::{Site, SiteId, SiteKind};

const THREADS: u32 = 1000;

fn sites() -> Vec<Site> {
    [SiteKind::Load, SiteKind::Store].map(|kind| site(kind, 0)).to_vec()
}

/// Every thread reads a shared word, writes a word of its own, reads nothing, reads over the end of
/// a page, and reads the last bytes of memory.
fn profile(machine: &Machine, setup: &Setup) -> Profile {
    let sites = sites();
    let caches = detailed(machine, setup, THREADS as usize).expect("a machine");
    let cores = setup.cores(machine, THREADS as usize);
    let mut profiler = Profiler::new(&sites, caches).with_cores(cores);
    for thread in 0..THREADS {
        let access = |site, address, bytes| Access { address, bytes, site: SiteId(site) };
        profiler.observe(&Batch {
            process: Some(ProcessId(0)),
            thread: Some(ThreadId(thread)),
            accesses: vec![
                access(0, 0x10_0000, 8),
                access(1, 0x10_0000 + 8 * u64::from(thread), 8),
                access(0, 0x5000, 0),
                access(0, 0x20_0ffc, 8),
                access(0, u64::MAX - 3, 64),
            ],
            ..Batch::default()
        });
    }
    profiler.finish()
}

#[test]
fn a_thousand_threads_share_the_cores_there_are() {
    for name in ["generic", "skylake-sp", "zen3"] {
        let machine = Machine::named(name).expect("a machine");
        for rules in [RuleChoice::Machine, RuleChoice::Lru] {
            let profile = profile(&machine, &Setup { rules, ..Setup::of(&machine) });
            let accesses: u64 = profile.cells.iter().map(|cell| cell.counts.accesses()).sum();
            assert_eq!(accesses, 5 * u64::from(THREADS), "{name} {rules:?}");
            let first = &profile.levels[0];
            assert_eq!((first.reads, first.writes), (4000, 1000), "{name} {rules:?}");
            // Each core has to fetch the shared word, at least; 125 lines are written.
            assert!(first.read_misses >= u64::from(machine.cores.min(THREADS)), "{name} {rules:?}");
            assert!(first.write_misses >= 124, "{name} {rules:?}");
        }
    }
}
