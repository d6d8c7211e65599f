//! Coherence on small traces worked out by hand.

use memlode_simulate::{
    Answer, Coherence, CoherenceCounters, Inclusion, LevelSpec, MemRef, Model, ModelLevel, ModelSpec,
    Sharing, Tag, Write,
};

fn level(sets: u64, ways: u32, shared_by: u32) -> ModelLevel {
    ModelLevel::from(LevelSpec { bytes: sets * u64::from(ways) * 64, ways, line_bytes: 64, shared_by })
}

fn mesi(levels: Vec<ModelLevel>, cores: u32) -> Model {
    Model::new(&ModelSpec { coherence: Coherence::Mesi, ..ModelSpec::new(levels, cores) }).unwrap()
}

/// Private first levels over one shared level, all roomy: only coherence makes a line leave.
fn machine(cores: u32) -> Model {
    mesi(vec![level(8, 4, 1), level(64, 8, cores)], cores)
}

fn outcome(depth: u8, transfer: bool, sharing: Option<(bool, u32, u32)>) -> Answer {
    let sharing =
        sharing.map(|(is_true, by_core, by_tag)| Sharing { is_true, by_core, by_tag: Tag::new(by_tag) });
    Answer { depth, transfer, sharing }
}

const HIT: Answer = Answer { depth: 0, transfer: false, sharing: None };

/// M, E or S of address 0 in each core's first level; `-` where it is not.
fn states(model: &Model) -> String {
    let state = |core| {
        let line = model.held(model.cache_of(core, 0)).find(|held| held.line == 0);
        line.map_or('-', |held| {
            if held.dirty {
                'M'
            } else if held.owned {
                'E'
            } else {
                'S'
            }
        })
    };
    (0..model.spec().cores as usize).map(state).collect()
}

/// Two threads count in neighbouring counters of one line. Every second access finds the line gone,
/// and never because of the counter it wants: false sharing, named by the other's tag.
///
/// ```text
///  access            states   why
///  0 reads  c0       E-       cold
///  0 writes c0       M-       silent: nobody else has it
///  1 reads  c1       SS       cold for core 1, from core 0's cache
///  1 writes c1       -M       upgrade, takes core 0's copy
///  0 reads  c0       SS       false: core 1 wrote c1, not c0
///  0 writes c0       M-       upgrade
///  1 reads  c1       SS       false
///  1 writes c1       -M       upgrade
/// ```
#[test]
fn counters_on_one_line_share_falsely() {
    let mut model = machine(2);
    let (c0, c1) = (0, 8);
    let steps = [
        (0, c0, false, 10, outcome(2, false, None), "E-"),
        (0, c0, true, 11, HIT, "M-"),
        (1, c1, false, 20, outcome(1, true, None), "SS"),
        (1, c1, true, 21, HIT, "-M"),
        (0, c0, false, 10, outcome(1, true, Some((false, 1, 21))), "SS"),
        (0, c0, true, 11, HIT, "M-"),
        (1, c1, false, 20, outcome(1, true, Some((false, 0, 11))), "SS"),
        (1, c1, true, 21, HIT, "-M"),
    ];
    for (i, (core, address, write, tag, expected, after)) in steps.into_iter().enumerate() {
        assert_eq!(
            model.access(MemRef::read(core, address, 8).writing(write).tagged(tag)),
            expected,
            "step {i}"
        );
        assert_eq!(states(&model), after, "step {i}");
    }
    let expected = CoherenceCounters { upgrades: 3, transfers: 3, true_sharing: 0, false_sharing: 2 };
    assert_eq!(model.coherence(), expected);
    assert_eq!(model.traffic()[0].invalidations, 3);
    // Each read of a line that the other had modified wrote it to the shared level first.
    assert_eq!(model.counters()[0].write_backs, 3);
}

/// The same counters, one line each: after the first misses, silence.
#[test]
fn counters_on_lines_of_their_own_do_not_meet() {
    let mut model = machine(2);
    for round in 0..10 {
        for core in 0..2 {
            let depth = if round == 0 { 2 } else { 0 };
            assert_eq!(model.access(MemRef::read(core, 64 * core as u64, 8)), outcome(depth, false, None));
            assert_eq!(model.access(MemRef::write(core, 64 * core as u64, 8)), HIT);
        }
    }
    assert_eq!(model.coherence(), CoherenceCounters::default());
}

/// A lock word that goes from core to core, with the data it guards in the same line. Taking it is
/// true sharing: the releasing core wrote the word. No other core touched the data in between, so
/// they hit.
///
/// ```text
///  0 writes lock (takes), writes data, writes lock (releases)     M-
///  1 writes lock: misses; core 0 wrote the lock    -> cold for core 1, transfer
///  1 reads data: hit; writes data; writes lock (releases)         -M
///  0 writes lock: true, by core 1's first write of the line, tag 1
/// ```
#[test]
fn a_lock_handed_over_is_true_sharing() {
    let mut model = machine(2);
    let (lock, data) = (0, 32);
    assert_eq!(model.access(MemRef::write(0, lock, 4).tagged(1)), outcome(2, false, None));
    assert_eq!(model.access(MemRef::write(0, data, 8).tagged(2)), HIT);
    assert_eq!(model.access(MemRef::write(0, lock, 4).tagged(3)), HIT);
    assert_eq!(model.access(MemRef::write(1, lock, 4).tagged(1)), outcome(1, true, None));
    assert_eq!(model.access(MemRef::read(1, data, 8).tagged(4)), HIT);
    assert_eq!(model.access(MemRef::write(1, data, 8).tagged(2)), HIT);
    assert_eq!(model.access(MemRef::write(1, lock, 4).tagged(3)), HIT);
    assert_eq!(model.access(MemRef::write(0, lock, 4).tagged(1)), outcome(1, true, Some((true, 1, 1))));
    assert_eq!(states(&model), "M-");
    let expected = CoherenceCounters { upgrades: 0, transfers: 2, true_sharing: 1, false_sharing: 0 };
    assert_eq!(model.coherence(), expected);
    // Modified lines went from core to core without a write-back.
    assert_eq!(model.counters()[0].write_backs, 0);
}

/// Counts bytes that were written after the line was taken, too: core 1 takes the line by writing
/// byte 8. Core 0 comes back for byte 0, which core 1 wrote a moment later, when it already owned
/// the line.
#[test]
fn silent_writes_after_the_loss_make_it_true() {
    for (writes_byte_0, is_true) in [(false, false), (true, true)] {
        let mut model = machine(2);
        model.access(MemRef::read(0, 0, 1));
        model.access(MemRef::write(1, 8, 1).tagged(7));
        if writes_byte_0 {
            assert_eq!(model.access(MemRef::write(1, 0, 1).tagged(9)), HIT);
        }
        // The write that took the line is named, not the last one.
        assert_eq!(model.access(MemRef::read(0, 0, 1)), outcome(1, true, Some((is_true, 1, 7))));
    }
}

/// Readers stay shared; one write takes all copies; each reader that returns misses once.
#[test]
fn a_write_takes_every_copy() {
    let mut model = machine(4);
    for core in 0..4 {
        model.access(MemRef::read(core, 0, 8));
    }
    assert_eq!(states(&model), "SSSS");
    assert_eq!(model.access(MemRef::write(2, 0, 8).tagged(5)), HIT);
    assert_eq!(states(&model), "--M-");
    assert_eq!((model.coherence().upgrades, model.traffic()[0].invalidations), (1, 3));
    for core in [0, 1, 3] {
        let transfer = core == 0; // then core 2's newest bytes are in the shared level
        assert_eq!(model.access(MemRef::read(core, 0, 8)), outcome(1, transfer, Some((true, 2, 5))));
        assert_eq!(model.access(MemRef::read(core, 0, 8)), HIT);
    }
    assert_eq!(states(&model), "SSSS");
}

/// A thousand cores read a line, one writes it: 999 first levels and 999 second levels lose it, and
/// each core that comes back learns which core took its line.
#[test]
fn a_thousand_cores_lose_a_line_to_one() {
    let mut model = mesi(vec![level(8, 4, 1), level(16, 4, 1), level(64, 8, 1000)], 1000);
    for core in 0..1000 {
        assert_eq!(model.access(MemRef::read(core, 0, 8)).depth, if core == 0 { 3 } else { 2 });
    }
    assert_eq!(model.access(MemRef::write(700, 0, 8).tagged(9)), HIT);
    assert_eq!((model.traffic()[0].invalidations, model.traffic()[1].invalidations), (999, 999));
    for core in (0..1000).filter(|core| *core != 700) {
        assert_eq!(
            model.access(MemRef::read(core, 0, 8)).sharing,
            Some(Sharing { is_true: true, by_core: 700, by_tag: Tag::new(9) })
        );
    }
    assert_eq!(model.coherence().true_sharing, 999);
}

/// A line that left for want of room is no coherence miss, even if another core wrote it meanwhile:
/// one set of two ways; lines 0, 1, 2 of core 0 push out line 0 before core 1 writes it.
#[test]
fn a_line_evicted_before_the_write_is_not_lost_to_it() {
    let mut model = mesi(vec![level(1, 2, 1), level(64, 8, 2)], 2);
    for line in [0, 1, 2] {
        model.access(MemRef::read(0, 64 * line, 8));
    }
    assert_eq!(model.access(MemRef::write(1, 0, 8)), outcome(1, false, None));
    assert_eq!(model.access(MemRef::read(0, 0, 8)), outcome(1, true, None));
}

/// The first level had evicted the line, the private second level still held it: the access misses
/// in the first level for want of room, and in the second because of core 1.
#[test]
fn the_level_that_lost_the_line_tells_why() {
    let mut model = mesi(vec![level(1, 2, 1), level(8, 4, 1), level(64, 8, 2)], 2);
    for line in [0, 1, 2] {
        model.access(MemRef::read(0, 64 * line, 8));
    }
    model.access(MemRef::write(1, 0, 8).tagged(3));
    assert_eq!((model.traffic()[0].invalidations, model.traffic()[1].invalidations), (0, 1));
    assert_eq!(model.access(MemRef::read(0, 0, 8)), outcome(2, true, Some((true, 1, 3))));
}

/// Two groups of two cores, a second level for each group: within the group, the second level
/// serves a miss; the other group's level is off the way and loses the line as the first levels do.
#[test]
fn groups_of_cores_share_what_is_on_their_way() {
    let mut model = mesi(vec![level(8, 4, 1), level(64, 8, 2)], 4);
    model.access(MemRef::write(0, 0, 8).tagged(1));
    assert_eq!(model.access(MemRef::read(1, 0, 8).tagged(2)), outcome(1, true, None));
    // Core 2 is asked to fetch from the other group: its caches do not have the line, core 0's do.
    assert_eq!(model.access(MemRef::read(2, 0, 8).tagged(3)), outcome(2, true, None));
    assert_eq!(states(&model), "SSS-");
    assert_eq!(model.access(MemRef::write(2, 0, 8).tagged(4)), HIT);
    assert_eq!(states(&model), "--M-");
    // Two first levels and one second level.
    assert_eq!((model.traffic()[0].invalidations, model.traffic()[1].invalidations), (2, 1));
    assert_eq!(model.access(MemRef::read(1, 0, 8).tagged(5)), outcome(2, true, Some((true, 2, 4))));
}

/// An inclusive shared level of one set of two ways: a third line drops the first, and core 0's
/// modified copy with it, which is written to memory.
#[test]
fn an_inclusive_level_takes_inner_copies_with_it() {
    let shared = ModelLevel { inclusion: Inclusion::Inclusive, ..level(1, 2, 2) };
    let mut model = mesi(vec![level(8, 4, 1), shared], 2);
    model.access(MemRef::write(0, 0, 8));
    model.access(MemRef::read(1, 64, 8));
    model.access(MemRef::read(1, 128, 8));
    assert_eq!(states(&model), "--");
    assert_eq!(model.traffic()[0].back_invalidations, 1);
    let counters = model.counters();
    assert_eq!((counters[0].write_backs, counters[1].write_backs), (1, 1));
    assert_eq!(model.access(MemRef::read(0, 0, 8)), outcome(2, false, None));
}

/// An exclusive second level of two ways behind a first level of one way.
///
/// ```text
///  access    level 1   level 2
///  read A    A                    memory
///  write B   B*        A          memory; A evicted into 2
///  read A    A         B*         hit in 2, A moves in and B goes out
///  read C    C         A B*       memory
///  read D    D         C A        memory; C goes out, B leaves for memory
/// ```
#[test]
fn an_exclusive_level_is_filled_by_evictions() {
    let victims = ModelLevel { inclusion: Inclusion::Exclusive, ..level(1, 2, 1) };
    let mut model = mesi(vec![level(1, 1, 1), victims], 1);
    let held = |model: &Model, cache| {
        let mut lines: Vec<u64> = model.held(cache).map(|held| held.line).collect();
        lines.sort();
        lines
    };
    let (a, b, c, d) = (0, 1, 2, 3);
    for (line, write, depth, inner, outer) in [
        (a, false, 2, vec![a], vec![]),
        (b, true, 2, vec![b], vec![a]),
        (a, false, 1, vec![a], vec![b]),
        (c, false, 2, vec![c], vec![a, b]),
        (d, false, 2, vec![d], vec![a, c]),
    ] {
        assert_eq!(model.access(MemRef::read(0, line * 64, 8).writing(write)).depth, depth);
        assert_eq!((held(&model, 0), held(&model, 1)), (inner, outer), "after line {line}");
    }
    let counters = model.counters();
    assert_eq!((counters[0].write_backs, counters[1].write_backs), (1, 1));
}

/// A write-through, no-write-allocate first level: writes never stay in it and never fill it.
#[test]
fn writes_go_through_and_past() {
    let through = ModelLevel { write: Write::Through, write_allocate: false, ..level(8, 4, 1) };
    let mut model = mesi(vec![through, level(64, 8, 1)], 1);
    assert_eq!(model.access(MemRef::write(0, 0, 8)), outcome(2, false, None)); // past the first level, into the second
    assert_eq!(model.access(MemRef::write(0, 0, 8)), outcome(1, false, None));
    assert_eq!(model.access(MemRef::read(0, 0, 8)), outcome(1, false, None));
    assert_eq!(model.access(MemRef::write(0, 0, 8)), HIT); // and through to the second level, which is no demand
    assert_eq!((model.traffic()[0].passed_writes, model.counters()[1].writes), (3, 2));
    assert_eq!(model.held(0).filter(|held| held.dirty).count(), 0);
    assert_eq!(model.held(1).filter(|held| held.dirty).count(), 1);
}

/// Lines of two sectors: the second sector misses without evicting, and the third access has both.
#[test]
fn sectors_are_fetched_one_by_one() {
    let sectored = ModelLevel { sector_bytes: Some(32), ..level(1, 1, 1) };
    let mut model = mesi(vec![sectored], 1);
    assert_eq!(model.access(MemRef::read(0, 0, 8)).depth, 1);
    assert_eq!(model.access(MemRef::read(0, 24, 8)).depth, 0);
    assert_eq!(model.access(MemRef::read(0, 32, 8)).depth, 1);
    assert_eq!(model.access(MemRef::read(0, 24, 16)).depth, 0);
    assert_eq!(model.held(0).count(), 1);
}
