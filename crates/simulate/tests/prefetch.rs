//! Prefetchers on small traces worked out by hand. Lines have 64 bytes, pages 4 KiB.

use memlode_simulate::{LevelSpec, MemRef, Model, ModelLevel, ModelSpec, Prefetch, PrefetchCounters};

fn roomy() -> ModelLevel {
    ModelLevel::from(LevelSpec { bytes: 64 << 10, ways: 16, line_bytes: 64, shared_by: 1 })
}

fn with(prefetch: Prefetch, fill_accesses: u32) -> Model {
    let level = ModelLevel { prefetch: vec![prefetch], ..roomy() };
    Model::new(&ModelSpec { fill_accesses, ..ModelSpec::new(vec![level], 1) }).unwrap()
}

/// Depths of reads at these addresses by one site.
fn depths(model: &mut Model, addresses: impl IntoIterator<Item = u64>) -> Vec<u8> {
    addresses.into_iter().map(|address| model.access(MemRef::read(0, address, 8).tagged(1)).depth).collect()
}

fn counters(issued: u64, useful: u64, late: u64, useless: u64, pollution: u64) -> PrefetchCounters {
    PrefetchCounters { issued, useful, late, useless, pollution }
}

/// Line 0 misses and sends for 1; the first use of each line sends for the next. The page ends with
/// line 63.
#[test]
fn the_next_line_of_a_sequence_is_there() {
    let mut model = with(Prefetch::NextLine, 0);
    let expected: Vec<u8> = (0..65).map(|line| u8::from(line == 0 || line == 64)).collect();
    assert_eq!(depths(&mut model, (0..65).map(|line| line * 64)), expected);
    // 63 of the first page, all used, and line 65.
    assert_eq!(model.prefetch()[0], counters(64, 63, 0, 0, 0));
}

/// Eight accesses a line: the next line is needed eight accesses after its prefetch. If it takes
/// seven accesses to come it is in time, if it takes eight it is late, and counts as useful as
/// well.
#[test]
fn a_prefetch_is_late_if_the_line_is_wanted_before_it_is_there() {
    for (fill_accesses, late) in [(7, 0), (8, 9)] {
        let mut model = with(Prefetch::NextLine, fill_accesses);
        depths(&mut model, (0..80).map(|word| word * 8));
        assert_eq!(model.prefetch()[0], counters(10, 9, late, 0, 0), "{fill_accesses}");
    }
}

/// Lines 4 and 5 are a pair, and 6 and 7; only misses send for the other one.
#[test]
fn pairs_come_together() {
    let mut model = with(Prefetch::AdjacentLine, 0);
    assert_eq!(depths(&mut model, [5 * 64, 4 * 64, 6 * 64, 7 * 64, 7 * 64]), [1, 0, 1, 0, 0]);
    assert_eq!(model.prefetch()[0], counters(2, 2, 0, 0, 0));
}

/// Stride 200: 0, 200, 400. The third access proves the stride and sends for 800, the fourth for
/// 1000, …; 600 (line 9) was not prefetched.
///
/// ```text
///  address       0    200    400    600    800   1000   1200
///  line          0      3      6      9     12     15     18
///  state      init  trans. steady steady steady steady steady
///  sends for     –      –     12     15     18     21     25
/// ```
#[test]
fn a_stride_is_trusted_when_it_comes_twice() {
    let mut model = with(Prefetch::Stride, 0);
    assert_eq!(depths(&mut model, (0..7).map(|i| i * 200)), [1, 1, 1, 1, 0, 0, 0]);
    assert_eq!(model.prefetch()[0], counters(5, 3, 0, 0, 0));
    // Another site has to prove itself, on lines that nobody has fetched.
    let other: Vec<u8> =
        (0..4).map(|i| model.access(MemRef::read(0, 8192 + i * 200, 8).tagged(2)).depth).collect();
    assert_eq!(other, [1, 1, 1, 1]);
    // A site whose number falls on the same entry takes its place: 1 must prove itself again.
    model.access(MemRef::read(0, 1 << 20, 8).tagged(1 + 256));
    depths(&mut model, [16384, 16584]);
    assert_eq!(model.prefetch()[0].issued, 5 + 2);
    depths(&mut model, [16784]);
    assert_eq!(model.prefetch()[0].issued, 5 + 2 + 1);
}

/// A site that reads 8 bytes every 60 straddles lines at 60 and at 1020, which does not disturb its
/// stride: 120 is in line 1, which came with 60, and sends for line 3; 180 misses line 2, and sends
/// for line 4; from then on all is there.
#[test]
fn an_access_of_two_lines_has_one_address() {
    let mut model = with(Prefetch::Stride, 0);
    let mut expected = vec![1, 1, 0, 1];
    expected.resize(24, 0);
    assert_eq!(depths(&mut model, (0..24).map(|i| i * 60)), expected);
}

/// One miss in the rhythm of a steady site does not unlearn its stride.
#[test]
fn a_steady_stride_survives_one_jump() {
    let mut model = with(Prefetch::Stride, 0);
    depths(&mut model, [0, 128, 256, 384]); // sends for 512 and 640
    assert_eq!(model.prefetch()[0].issued, 2);
    depths(&mut model, [2048, 2176]); // jump; as predicted again: sends for 2432
    assert_eq!(model.prefetch()[0].issued, 3);
}

/// Downwards from line 40: the third access is the second step down and sends for two lines, 37 and
/// 36; each further one sends for two more, until 20 lines ahead.
///
/// ```text
///  asked   40  39  38     37     36     35     34   …
///  sent     –   –  37 36  35 34  33 32  31 30  29 28
/// ```
#[test]
fn a_stream_runs_ahead_of_its_requests() {
    let mut model = with(Prefetch::Stream, 0);
    let down = |from: u64, to: u64| (to..=from).rev().map(|line| line * 64);
    assert_eq!(depths(&mut model, down(40, 34)), [1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(model.prefetch()[0], counters(10, 4, 0, 0, 0));
    // From 20 lines ahead on, one request leaves room for one line; the page begins with line 0.
    assert_eq!(depths(&mut model, down(33, 0)), [0; 34]);
    assert_eq!(model.prefetch()[0], counters(38, 38, 0, 0, 0));
}

/// One set of two ways; lines 0 and 2 are wanted, in turn. Each miss of line 1 more brings its
/// pair.
///
/// ```text
///  read   set (recent first)   what happened
///  0      1 0                  miss, 1 comes as its pair
///  2      3 2                  miss: 0 makes room; 3 comes, and 1 leaves unused
///  4      5 4                  miss: 2 makes room; 5 comes, and 3 leaves unused
/// ```
#[test]
fn prefetches_that_leave_unused_are_useless() {
    let shape = LevelSpec { bytes: 128, ways: 2, line_bytes: 64, shared_by: 1 };
    let level = ModelLevel { prefetch: vec![Prefetch::AdjacentLine], ..ModelLevel::from(shape) };
    let mut model = Model::new(&ModelSpec::new(vec![level], 1)).unwrap();
    assert_eq!(depths(&mut model, [0, 128, 256]), [1, 1, 1]);
    assert_eq!(model.prefetch()[0], counters(3, 0, 0, 2, 0));
}

/// One set of two ways. 0 and 1 come together and are used. 2 takes 0's place, and its pair 3 takes
/// that of 1, which was in use: when 1 misses next, a prefetch is to blame.
#[test]
fn a_miss_of_a_line_that_made_room_for_a_prefetch_is_pollution() {
    let shape = LevelSpec { bytes: 128, ways: 2, line_bytes: 64, shared_by: 1 };
    let level = ModelLevel { prefetch: vec![Prefetch::AdjacentLine], ..ModelLevel::from(shape) };
    let mut model = Model::new(&ModelSpec::new(vec![level], 1)).unwrap();
    assert_eq!(depths(&mut model, [0, 64, 128, 64]), [1, 0, 1, 1]);
    // 1 is used; 3 leaves unused for 0, the pair that comes back with 1.
    let found = model.prefetch()[0];
    assert_eq!((found.issued, found.useful, found.pollution), (3, 1, 1));
}

/// A prefetch of the second level is no demand anywhere, and its line is found there.
#[test]
fn outer_levels_prefetch_for_inner_ones() {
    let inner = ModelLevel::from(LevelSpec { bytes: 128, ways: 2, line_bytes: 64, shared_by: 1 });
    let outer = ModelLevel { prefetch: vec![Prefetch::NextLine], ..roomy() };
    let mut model = Model::new(&ModelSpec::new(vec![inner, outer, roomy()], 1)).unwrap();
    assert_eq!(depths(&mut model, (0..6).map(|line| line * 64)), [3, 1, 1, 1, 1, 1]);
    let counted = model.counters();
    assert_eq!((counted[1].reads, counted[2].reads, counted[2].read_misses), (6, 1, 1));
    assert_eq!(model.prefetch()[1], counters(6, 5, 0, 0, 0));
    // The third level got every line on its way.
    assert_eq!(model.held(2).count(), 7);
}

/// With prefetchers, sets influence each other: no address bits can be simulated apart.
#[test]
fn prefetchers_break_the_sharding_law() {
    let plain = Model::new(&ModelSpec::new(vec![roomy()], 1)).unwrap();
    assert_eq!(plain.shard_bits(), 6..12);
    assert!(with(Prefetch::NextLine, 0).shard_bits().is_empty());
}
