//! Translations, store buffers and memory nodes against their definitions, and on traces worked out
//! by hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use memlode_simulate::{
    AliasConflict, AliasPair, Cause, Coherence, Detailed, Hierarchy, Homes, ImpossibleTlb, LevelSpec, MemRef,
    Model, ModelLevel, ModelSpec, Numa, NumaDetail, Pages, Placement, Prefetch, StoreBuffer, Strided, Tag,
    Tlb, TlbDetail, TlbSpec, Translation,
};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn tlb(level: u32, entries: u32, ways: u32, page_bytes: &[u64], latency_cycles: u32) -> TlbSpec {
    TlbSpec { level, entries, ways, page_bytes: page_bytes.to_vec(), latency_cycles }
}

/// One core's arrays: the pages of each set, the most recent first.
type Arrays = HashMap<(usize, usize, u64), VecDeque<u64>>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn translations_are_as_defined(
        shapes in prop::collection::vec((0u32..3, 1u32..5), 3),
        has_second in any::<bool>(),
        trace in prop::collection::vec((0usize..2, 0u64..40, 0u64..8192, 1u32..9000), 1..120),
    ) {
        // 4 KiB and 2 MiB pages have a first level each and share the second.
        let spec = |i: usize, level, pages: &[u64]| tlb(level, shapes[i].1 << shapes[i].0, shapes[i].1, pages, 7 * (level - 1));
        let mut specs = vec![spec(0, 1, &[4 * KIB]), spec(1, 1, &[2 * MIB])];
        if has_second {
            specs.push(spec(2, 2, &[4 * KIB, 2 * MIB]));
        }
        let start = 16 * MIB;
        let pages = Pages { ranges: vec![(start, 64 * MIB, 2 * MIB)], ..Pages::of(4 * KIB) };
        let mut tlb = Tlb::new(&specs, 30, &pages, 2).unwrap();

        let mut arrays: Arrays = HashMap::new();
        // By core, page and size: tag and parts used.
        let mut visits: HashMap<(usize, u64, u64), (u32, BTreeSet<u64>)> = HashMap::new();
        let mut expected: BTreeMap<u32, TlbDetail> = BTreeMap::new();
        let end_visit = |expected: &mut BTreeMap<u32, TlbDetail>, size: u64, (tag, parts): (u32, BTreeSet<u64>)| {
            let counts: &mut TlbDetail = expected.entry(tag).or_default();
            counts.visited_bytes += size;
            counts.used_bytes += parts.len() as u64 * (size / 64);
        };
        for (i, &(core, page, offset, bytes)) in trace.iter().enumerate() {
            // Some in small pages, some in large ones, some over the border between them.
            let address = if page < 24 { start - 24 * 4 * KIB + page * 4 * KIB + offset % 4096 } else { start + (page - 24) * 2 * MIB + offset * 250 };
            let tag = i as u32 % 4;
            let mut worst = (Translation::First, 0);
            let mut touched: Vec<(u64, u64)> = Vec::new();
            for byte in address..address + u64::from(bytes) {
                let size = if byte >= start { 2 * MIB } else { 4 * KIB };
                if touched.last() != Some(&(byte / size, size)) {
                    touched.push((byte / size, size));
                    let mut touch = |array: usize| {
                        let sets = u64::from(specs[array].entries / specs[array].ways);
                        let key = byte / size * 2 + u64::from(size == 2 * MIB);
                        let set = arrays.entry((core, array, byte / size % sets)).or_default();
                        let place = set.iter().position(|held| *held == key);
                        if let Some(place) = place {
                            set.remove(place);
                        }
                        set.push_front(key);
                        let gone = if set.len() > specs[array].ways as usize { set.pop_back() } else { None };
                        (place.is_some(), gone)
                    };
                    let first = usize::from(size == 2 * MIB);
                    let (mut hit, mut gone) = touch(first);
                    let mut found = (Translation::First, 0);
                    if !hit && has_second {
                        (hit, gone) = touch(2);
                        found = (Translation::Second, 7);
                    }
                    if !hit {
                        found = (Translation::Walk, 30);
                        if let Some(gone) = gone {
                            let size = if gone % 2 == 1 { 2 * MIB } else { 4 * KIB };
                            let visit = visits.remove(&(core, gone / 2, size)).unwrap();
                            end_visit(&mut expected, size, visit);
                        }
                        visits.insert((core, byte / size, size), (tag, BTreeSet::new()));
                    }
                    worst = worst.max(found);
                }
                if let Some((_, parts)) = visits.get_mut(&(core, byte / size, size)) {
                    parts.insert(byte % size / (size / 64));
                }
            }
            let counts = expected.entry(tag).or_default();
            counts.second_level_hits += u64::from(worst.0 == Translation::Second);
            counts.walks += u64::from(worst.0 == Translation::Walk);
            counts.cycles += worst.1;
            prop_assert_eq!(tlb.access(MemRef::read(core, address, bytes).tagged(tag)), worst.0, "access {}", i);
        }
        for ((_, _, size), visit) in visits {
            end_visit(&mut expected, size, visit);
        }
        let found: BTreeMap<u32, TlbDetail> = (0..).zip(tlb.finish()).collect();
        expected.retain(|_, counts| *counts != TlbDetail::default());
        let found: BTreeMap<_, _> = found.into_iter().filter(|(_, counts)| *counts != TlbDetail::default()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn alias_conflicts_are_as_defined(
        entries in 1u32..12,
        window in 1u32..30,
        trace in prop::collection::vec((0usize..2, 0u64..3, 0u64..64, 1u32..40, any::<bool>()), 1..200),
    ) {
        let mut buffer = StoreBuffer::new(entries, window, 2);
        let mut history: [Vec<(u64, u32, Option<u32>)>; 2] = Default::default();
        let mut pairs: BTreeMap<(u32, u32), (u64, u32)> = BTreeMap::new();
        for (i, &(core, page, offset, bytes, is_write)) in trace.iter().enumerate() {
            // Around the end of a page, so that ranges wrap in their low bits.
            let address = page * 4096 + 4096 - 32 + offset;
            let tag = i as u32 % 6;
            let mut expected = None;
            if !is_write {
                let bytes_of = |address: u64, bytes: u32| address..address + u64::from(bytes);
                let stores = history[core].iter().rev().enumerate().filter(|(_, access)| access.2.is_some());
                for (before, &(other, other_bytes, store)) in stores.take(entries as usize) {
                    let meets = |modulo: u64| {
                        let low: BTreeSet<u64> = bytes_of(other, other_bytes).map(|byte| byte % modulo).collect();
                        bytes_of(address, bytes).any(|byte| low.contains(&(byte % modulo)))
                    };
                    if before as u32 + 1 > window {
                        break;
                    }
                    if meets(4096) {
                        let conflict = AliasConflict {
                            store_tag: Tag::new(store.unwrap()),
                            store_address: other,
                            accesses: before as u32 + 1,
                        };
                        expected = (!meets(u64::MAX)).then_some(conflict);
                        break;
                    }
                }
            }
            if let Some(conflict) = expected {
                let pair = pairs.entry((tag, conflict.store_tag.number())).or_insert((0, u32::MAX));
                *pair = (pair.0 + 1, pair.1.min(conflict.accesses));
            }
            history[core].push((address, bytes, is_write.then_some(tag)));
            prop_assert_eq!(buffer.access(MemRef::read(core, address, bytes).writing(is_write).tagged(tag)), expected, "access {}", i);
        }
        let found = buffer.finish().into_iter().map(|p| ((p.load_tag.number(), p.store_tag.number()), (p.conflicts, p.least_accesses)));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), pairs);
    }

    #[test]
    fn memory_belongs_to_who_touched_it_first(
        cores_per_node in 1u32..9,
        trace in prop::collection::vec((0usize..8, 0u64..20, 0u64..4096), 1..300),
    ) {
        let mut numa = Numa::new(8, cores_per_node, 4096, &Homes::default());
        let mut homes: HashMap<u64, usize> = HashMap::new();
        let mut expected = vec![NumaDetail::default(); 3];
        for (i, &(core, page, offset)) in trace.iter().enumerate() {
            let node = core / cores_per_node as usize;
            let remote = *homes.entry(page).or_insert(node) != node;
            prop_assert_eq!(numa.access(MemRef::read(core, page * 4096 + offset, 8).tagged(i as u32 % 3)), remote);
            expected[i % 3].remote += u64::from(remote);
            expected[i % 3].local += u64::from(!remote);
        }
        expected.truncate(trace.len());
        prop_assert_eq!(numa.finish(), expected);
    }
}

/// Pages 0 to 7, touched by a core of each of two nodes: by first touch, interleaved, or all in one
/// node.
#[test]
fn pages_are_where_they_are_put() {
    let remote = |placement, ranges: &[(u64, u64, u32)]| {
        let homes = Homes { placement, ranges: ranges.to_vec() };
        let mut numa = Numa::new(2, 4, 4096, &homes);
        let mut of = |core| {
            (0..8).filter(|page| numa.access(MemRef::read(core, page * 4096, 8))).collect::<Vec<u64>>()
        };
        [of(0), of(4)]
    };
    assert_eq!(remote(Placement::FirstTouch, &[]), [vec![], (0..8).collect()]);
    assert_eq!(remote(Placement::Interleave, &[]), [vec![1, 3, 5, 7], vec![0, 2, 4, 6]]);
    assert_eq!(remote(Placement::Node(1), &[]), [(0..8).collect(), vec![]]);
    let given = [(0, 5 * 4096, 1), (2 * 4096, 3 * 4096, 0)];
    assert_eq!(remote(Placement::FirstTouch, &given), [vec![0, 1, 3, 4], vec![2, 5, 6, 7]]);
}

/// Four pages through a first level of two translations and a second of four: the first round
/// walks, the next ones find the translations in the second level. Five pages are one too many for
/// that, too, and LRU then finds nothing. Of each page one line is used.
#[test]
fn a_column_needs_a_translation_a_row() {
    let specs = [tlb(1, 2, 2, &[4096], 0), tlb(2, 4, 4, &[4096], 7)];
    let walk = |pages: u64| {
        let mut tlb = Tlb::new(&specs, 30, &Pages::of(4096), 1).unwrap();
        for page in (0..3).flat_map(|_| 0..pages) {
            tlb.access(MemRef::read(0, page * 4096 + 64, 8));
        }
        tlb.finish()[0]
    };
    let expected = |hits, walks| TlbDetail {
        second_level_hits: hits,
        walks,
        cycles: 7 * hits + 30 * walks,
        visited_bytes: walks * 4096,
        used_bytes: walks * 64,
    };
    assert_eq!(walk(4), expected(8, 4));
    assert_eq!(walk(5), expected(0, 15));
}

#[test]
fn impossible_tlbs_are_refused() {
    let refused =
        |specs: &[TlbSpec], pages: u64| Tlb::new(specs, 30, &Pages::of(pages), 1).err().expect("refused");
    let good = tlb(1, 64, 4, &[4096], 0);
    assert_eq!(refused(std::slice::from_ref(&good), 2 * MIB), ImpossibleTlb::NoFirstLevel(2 * MIB));
    assert_eq!(refused(std::slice::from_ref(&good), 5000), ImpossibleTlb::PageSize(5000));
    assert_eq!(refused(&[good.clone(), good.clone()], 4096), ImpossibleTlb::Two(1, 4096));
    assert_eq!(refused(&[tlb(3, 64, 4, &[4096], 0)], 4096), ImpossibleTlb::Level(3));
    assert_eq!(refused(&[tlb(1, 64, 5, &[4096], 0)], 4096), ImpossibleTlb::Shape(64, 5));
    assert_eq!(refused(&[tlb(1, 60, 5, &[4096], 0)], 4096), ImpossibleTlb::Shape(60, 5));
    assert_eq!(refused(&[tlb(1, 0, 0, &[4096], 0)], 4096), ImpossibleTlb::Shape(0, 0));
}

/// Two small levels of a number of sets, with every layer, for one core or two; lines of the outer
/// level are longer by a factor.
fn watched(of_model: bool, cores: u32, sets: [u64; 2], factor: u32) -> Detailed {
    let level = |sets: u64, line_bytes, shared_by| LevelSpec {
        bytes: sets * 2 * u64::from(line_bytes),
        ways: 2,
        line_bytes,
        shared_by,
    };
    let levels = [level(sets[0], 64, 1), level(sets[1], 64 * factor, cores)];
    let caches = if of_model {
        let mut spec = ModelSpec::new(levels.map(ModelLevel::from).to_vec(), cores);
        spec.coherence = Coherence::Mesi;
        spec.levels[0].prefetch = vec![Prefetch::NextLine, Prefetch::Stride];
        Detailed::of_model(Model::new(&spec).unwrap())
    } else {
        Detailed::new(Hierarchy::new(&levels, cores).unwrap())
    };
    caches
        .with_tlb(Tlb::new(&[tlb(1, 8, 4, &[4096], 0)], 30, &Pages::of(4096), cores).unwrap())
        .with_store_buffer(StoreBuffer::new(8, 32, cores))
        .with_numa(Numa::new(2, 1, 4096, &Homes::default()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Whenever they are settled.
    #[test]
    fn accesses_that_waited_are_as_those_at_once(
        of_model in any::<bool>(),
        trace in prop::collection::vec((0usize..2, 0u64..20_000, 0u32..80, any::<bool>(), 0u32..5), 1..600),
        pause in 1usize..200,
    ) {
        let (mut at_once, mut later) = (watched(of_model, 2, [4, 16], 1), watched(of_model, 2, [4, 16], 1));
        let (mut depths, mut told) = (Vec::new(), Vec::new());
        for &(core, address, bytes, is_write, tag) in &trace {
            let depth = at_once.access(MemRef::read(core, address, bytes).writing(is_write).tagged(tag)).depth;
            depths.extend((depth > 0).then_some((tag, depth)));
            later.access_later(MemRef::read(core, address, bytes).writing(is_write).tagged(tag));
            if later.waiting() == pause {
                later.settle(|tag, depth| told.push((tag.number(), depth)));
                prop_assert_eq!(&told, &depths);
            }
        }
        prop_assert_eq!(later.finish(), at_once.finish());
    }
}

/// Accesses of loops that cores make together, of up to `iterations` iterations.
fn loops(iterations: u64) -> impl Strategy<Value = (usize, u64, Vec<Strided>)> {
    let step = prop_oneof![
        4 => prop::sample::select(vec![0i64, 1, 4, 8, 12, 16, 64, 256, 4096]),
        1 => -5000i64..5000,
    ];
    let address = prop_oneof![0u64..3000, 0u64..40_000, Just(u64::MAX - 2000)];
    let bytes = prop_oneof![4 => prop::sample::select(vec![1u32, 4, 8, 16]), 1 => 0u32..200];
    let strided = (address, step, any::<bool>(), bytes, any::<bool>(), 0u32..5).prop_map(
        |(address, step, is_back, bytes, is_write, tag)| {
            let step = if is_back { -step } else { step } as u64;
            // Mostly aligned.
            let address =
                if bytes.is_power_of_two() && tag > 0 { address & !(u64::from(bytes) - 1) } else { address };
            Strided { address, step, bytes, is_write, tag: Tag::new(tag) }
        },
    );
    let same_step =
        (prop::collection::vec(strided.clone(), 1..8), any::<bool>()).prop_map(|(mut strides, is_same)| {
            let step = strides[0].step;
            strides.iter_mut().filter(|_| is_same).for_each(|strided| strided.step = step);
            strides
        });
    (0usize..2, 0..iterations, same_step)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// A loop is its accesses, one after the other.
    #[test]
    fn loops_are_their_accesses(
        of_model in prop::bool::weighted(0.1),
        one_core in any::<bool>(),
        sets in prop::sample::select(vec![[4, 16], [64, 8], [3, 12], [1, 2]]),
        factor in prop::sample::select(vec![1, 1, 1, 4]),
        trace in prop::collection::vec(prop_oneof![8 => loops(60), 1 => loops(3000)], 1..12),
        between in 0u64..4,
    ) {
        let cores = if one_core { 1 } else { 2 };
        let new = || watched(of_model, cores, sets, factor);
        let (mut at_once, mut later) = (new(), new());
        let (mut depths, mut told) = (Vec::new(), Vec::new());
        for (core, iterations, strides) in &trace {
            let core = if one_core { 0 } else { *core };
            let mut access = |address, bytes, is_write, tag| {
                let depth = at_once.access(MemRef::read(core, address, bytes).writing(is_write).tagged(tag)).depth;
                depths.extend((depth > 0).then_some((tag, depth)));
            };
            for number in 0..between {
                access(number * 200, 8, false, 7);
                later.access_later(MemRef::read(core, number * 200, 8).tagged(7));
            }
            for iteration in 0..*iterations {
                for strided in strides {
                    let address = strided.address.wrapping_add(strided.step.wrapping_mul(iteration));
                    access(address, strided.bytes, strided.is_write, strided.tag.number());
                }
            }
            later.requests().push_iterations(core, *iterations, strides);
            if later.waiting() > 1000 {
                later.settle(|tag, depth| told.push((tag.number(), depth)));
                prop_assert_eq!(&told, &depths);
            }
        }
        later.settle(|_, _| {});
        prop_assert_eq!(later.counters(), at_once.counters());
        prop_assert_eq!(later.finish(), at_once.finish());
    }
}

/// The loop of the paper's microkernel: `i` is stored at …03c and `inc` loaded from …03c of another
/// page, as long as the stack lies so. Moved by 16 bytes the pair is gone. Reading `i` back is
/// forwarding.
#[test]
fn a_load_meets_a_store_4096_bytes_away() {
    let conflicts = |stack: u64| {
        let mut buffer = StoreBuffer::new(56, 224, 1);
        for _ in 0..10 {
            buffer.access(MemRef::write(0, 0x60103c, 4).tagged(1)); // i
            buffer.access(MemRef::read(0, 0x60103c, 4).tagged(2));
            buffer.access(MemRef::read(0, stack, 4).tagged(3)); // inc
        }
        buffer.finish()
    };
    let pair = AliasPair { load_tag: Tag::new(3), store_tag: Tag::new(1), conflicts: 10, least_accesses: 2 };
    assert_eq!(conflicts(0x7fff_ffff_e03c), [pair]);
    assert_eq!(conflicts(0x7fff_ffff_e04c), []);
}

/// Everything at once, of one access.
#[test]
fn an_outcome_says_all() {
    let level = LevelSpec { bytes: 1 << 10, ways: 2, line_bytes: 64, shared_by: 1 };
    let tlb = Tlb::new(&[tlb(1, 4, 4, &[4096], 0)], 30, &Pages::of(4096), 2).unwrap();
    let mut detailed = Detailed::new(Hierarchy::new(&[level], 2).unwrap())
        .with_tlb(tlb)
        .with_store_buffer(StoreBuffer::new(8, 32, 2))
        .with_numa(Numa::new(2, 1, 4096, &Homes::default()));
    let stored = detailed.access(MemRef::write(0, 0x5010, 8).tagged(1));
    assert_eq!((stored.depth, stored.translation, stored.remote), (1, Translation::Walk, false));
    let loaded = detailed.access(MemRef::read(0, 0x9010, 8).tagged(2));
    assert_eq!(
        loaded.alias,
        Some(AliasConflict { store_tag: Tag::new(1), store_address: 0x5010, accesses: 1 })
    );
    let other = detailed.access(MemRef::read(1, 0x5010, 8).tagged(3));
    assert!(other.remote);
    assert_eq!(other.causes().collect::<Vec<_>>(), [Cause::Cold]);
    let again = detailed.access(MemRef::read(0, 0x5018, 8).tagged(2));
    assert_eq!((again.depth, again.translation, again.alias), (0, Translation::First, None));
    let details = detailed.finish();
    assert_eq!(details.numa[3], NumaDetail { local: 0, remote: 1 });
    assert_eq!((details.tlb[1].walks, details.tlb[2].walks, details.aliases.len()), (1, 1, 1));
}
