//! A trace that is split into shards, with loops that are simulated by line, gives the same result
//! as in one piece, access by access. So do loops with all layers.

mod common;

use common::site;
use memlode_attribute::LoadedGlobal;
use memlode_attribute::{Engine, LineResidency, Profile, Profiler};
use memlode_replay::{Dealing, Piece, Shards, moments};
use memlode_simulate::{Detailed, Hierarchy, LevelSpec, Pages, Shape, StoreBuffer, Tlb, TlbSpec};
use memlode_trace::calls::Caller;
use memlode_trace::event::{Access, Batch, Course, Frame, Loop, Mark, ProcessId, Stride, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::{FunctionId, Site, SiteId, SiteKind};
use proptest::prelude::*;

/// Sites of a load, a store, a load from the stack, an allocation, its end, and a store past the
/// caches.
fn sites() -> Vec<Site> {
    let kinds = [
        (SiteKind::Load, 0),
        (SiteKind::Store, 0),
        (SiteKind::Load, flag::STACK),
        (SiteKind::Alloc, 0),
        (SiteKind::Free, 0),
        (SiteKind::Store, flag::NON_TEMPORAL),
    ];
    kinds.map(|(kind, flags)| site(kind, flags)).to_vec()
}

/// An event in a chunk.
#[derive(Clone, Debug)]
enum Event {
    Access(Access),
    Mark(Mark),
    Loop(u64, Vec<Stride>),
}

const FRAME: u64 = 0x9000;

fn access() -> impl Strategy<Value = Access> {
    // Small blocks, globals and the stack share two pages; all sizes and alignments.
    let bytes = prop_oneof![6 => prop::sample::select(vec![1u32, 2, 4, 8, 16, 32, 64]), 1 => 1u32..400];
    (0u32..3, 0x8000..0xa000u64, any::<bool>(), bytes).prop_map(|(site, address, aligned, bytes)| {
        let address = if aligned { address & !(u64::from(bytes.next_power_of_two()) - 1) } else { address };
        Access { address, bytes, site: SiteId(site) }
    })
}

fn stride(access: Access, step: i64) -> Stride {
    Stride { access, step: step as u64, is_write: access.site.0 == 1 }
}

/// A loop as compilers unroll it: rows of accesses side by side, all of which go on by the bytes of
/// a row, or a little more.
fn unrolled_loop() -> impl Strategy<Value = Vec<Stride>> {
    let bytes = prop::sample::select(vec![1i64, 4, 8, 16, 24]);
    let row = (0..3u32, 0x8000..0xa000u64, -2..3i64, any::<bool>());
    let rows = prop::collection::vec(row, 1..5);
    let more = prop_oneof![4 => Just(0i64), 1 => prop::sample::select(vec![4i64, 8, 32, 64, 192, 1024, 1 << 40, (1 << 40) + 8])];
    (bytes, 1..6i64, more, rows, any::<bool>(), any::<bool>()).prop_map(
        |(bytes, copies, more, rows, down, by_copy)| {
            let step = (bytes * copies + more) * if down { -1 } else { 1 };
            let each = |copy: i64, &(site, base, off, aligned): &(u32, u64, i64, bool)| {
                let base = if aligned { base & !63 } else { base };
                let address = (base as i64 + bytes * (copy + off)) as u64;
                stride(Access { address, bytes: bytes as u32, site: SiteId(site) }, step)
            };
            match by_copy {
                true => (0..copies).flat_map(|copy| rows.iter().map(move |row| each(copy, row))).collect(),
                false => rows.iter().flat_map(|row| (0..copies).map(move |copy| each(copy, row))).collect(),
            }
        },
    )
}

/// An access, which may be a store past the caches. Those are in no loop.
fn any_access() -> impl Strategy<Value = Access> {
    (access(), prop::bool::weighted(0.2))
        .prop_map(|(access, is_past)| if is_past { Access { site: SiteId(5), ..access } } else { access })
}

fn event() -> impl Strategy<Value = Event> {
    let step = prop_oneof![-16..16i64, prop::sample::select(vec![0i64, 64, 128, 4096, -64]), any::<i64>()];
    let stride = (access(), step).prop_map(|(access, step)| stride(access, step));
    let strides = prop_oneof![prop::collection::vec(stride, 1..6), unrolled_loop()];
    // Blocks may lie wherever a program puts them, also within eight bytes of another.
    let alloc = (0x8000..0x9800u64, 1..300u64, any::<bool>()).prop_map(|(base, element_bytes, aligned)| {
        let base = if aligned { base & !15 } else { base };
        Mark::Alloc { site: SiteId(3), base, count: 1, element_bytes }
    });
    let call = (1..4u32).prop_map(|f| Mark::Enter {
        function: FunctionId(f),
        frame: FRAME - 64 * u64::from(f),
        caller: Caller::UNKNOWN,
    });
    let exit = (1..4u32).prop_map(|f| Mark::Exit { function: FunctionId(f) });
    prop_oneof![
        8 => any_access().prop_map(Event::Access),
        2 => alloc.prop_map(Event::Mark),
        1 => call.prop_map(Event::Mark),
        1 => exit.prop_map(Event::Mark),
        3 => (prop_oneof![1..40u64, 1..300u64], strides).prop_map(|(iterations, strides)| Event::Loop(iterations, strides)),
    ]
}

/// A chunk of these events; `unrolled`, its loops are accesses like all others.
fn batch(thread: u32, sequence: u32, events: &[Event], unrolled: bool) -> Batch {
    let mut batch = Batch {
        process: Some(ProcessId(thread / 2)),
        thread: Some(ThreadId(thread)),
        sequence,
        stack: vec![Frame { function: FunctionId(0), address: FRAME }],
        ..Batch::default()
    };
    for event in events {
        let at = batch.accesses.len() as u32;
        match event {
            Event::Access(access) => batch.accesses.push(*access),
            Event::Mark(mark) => batch.marks.push((at, *mark)),
            Event::Loop(iterations, strides) if unrolled => {
                let (mark, course) = (batch.marks.len() as u32, Course::of(strides));
                let strides_gone = 0..strides.len() as u32;
                batch.unrolled.push(Loop {
                    access: at,
                    mark,
                    iterations: *iterations,
                    strides: strides_gone,
                    course,
                });
                for iteration in 0..*iterations {
                    batch.accesses.extend(strides.iter().map(|Stride { access, step, .. }| {
                        let address = access.address.wrapping_add(step.wrapping_mul(iteration));
                        Access { address, ..*access }
                    }));
                }
            }
            Event::Loop(iterations, strides) => {
                let first = batch.strides.len() as u32;
                let course = Course::of(strides);
                batch.strides.extend(strides);
                let strides = first..batch.strides.len() as u32;
                let mark = batch.marks.len() as u32;
                batch.loops.push(Loop { access: at, mark, iterations: *iterations, strides, course });
            }
        }
    }
    batch
}

fn globals() -> Vec<LoadedGlobal> {
    let global = |address, bytes, symbol: &str| LoadedGlobal {
        address,
        bytes,
        symbol: symbol.into(),
        image: "a".into(),
    };
    vec![global(0x9804, 4, "i"), global(0x9808, 3, "j"), global(0x980b, 1, "k"), global(0x9840, 200, "table")]
}

/// The content of a profile, as comparable text.
fn told(profile: &Profile) -> String {
    let classes: Vec<_> = profile.classes.iter().map(|c| (&c.home, c.element, c.objects, c.bytes)).collect();
    let cells: Vec<_> = profile.cells.iter().map(|c| (c.thread, c.site, c.class, c.counts)).collect();
    format!("{:?}\n{classes:?}\n{cells:?}", profile.levels)
}

/// The residencies in each level, line by line.
fn residencies(profile: &Profile) -> Vec<Vec<LineResidency>> {
    let sorted = |level| {
        let mut residencies = profile.residencies.at(level);
        residencies.sort_by_key(|residency| residency.line);
        residencies
    };
    (0..2).map(sorted).collect()
}

/// The caches with everything that can watch them.
fn watched(caches: &Hierarchy) -> Detailed {
    let pages = TlbSpec { level: 1, entries: 4, ways: 2, page_bytes: vec![4096], latency_cycles: 0 };
    let tlb = Tlb::new(&[pages], 30, &Pages::of(4096), caches.cores()).unwrap();
    let stores = StoreBuffer::new(8, 32, caches.cores());
    Detailed::new(caches.clone()).with_tlb(tlb).with_store_buffer(stores)
}

/// A chunk that was not dealt out, with its moments if it does not run alone.
fn with_moments(whole: Batch, is_alone: bool) -> (Batch, Dealing) {
    let mut dealing = Dealing::default();
    if !is_alone {
        moments(&whole, &mut dealing.moments);
    }
    (whole, dealing)
}

/// Observes chunks of threads that take turns at each moment.
fn in_turns<E: Engine>(profiler: &mut Profiler<E>, chunks: &[(Batch, Dealing)]) {
    let mut pieces: Vec<_> =
        chunks.iter().map(|(batch, dealing)| Piece::at_moments(batch, dealing).into_iter()).collect();
    loop {
        let turn: Vec<_> = pieces.iter_mut().filter_map(Iterator::next).collect();
        if turn.is_empty() {
            return;
        }
        for piece in turn.iter().filter(|piece| piece.is_last() || !piece.is_empty()) {
            profiler.observe_piece(piece);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn add_up_to_the_whole(
        chunks in prop::collection::vec((0..3u32, prop::collection::vec(event(), 1..30)), 1..6),
        ways in prop::sample::select(vec![1u32, 2, 4, 8]),
        sets in prop::sample::select(vec![2u64, 3, 4, 8]),
        outer_line in prop::sample::select(vec![64u32, 128]),
        followed_one_of in prop::sample::select(vec![1u64, 3]),
        count in 2..7usize,
        side_by_side in any::<bool>(),
    ) {
        let sites = sites();
        let levels = [
            LevelSpec { bytes: 64 * sets * u64::from(ways), ways, line_bytes: 64, shared_by: 1 },
            LevelSpec { bytes: u64::from(outer_line) * 12 * sets, ways: 3, line_bytes: outer_line, shared_by: 2 },
        ];
        let unwatched = Hierarchy::new(&levels, 2).unwrap();
        let caches = unwatched.clone().with_residencies(followed_one_of);
        let mut single = Profiler::new(&sites, caches.clone());
        let mut by_line = Profiler::new(&sites, caches.clone());
        let shards = Shards::new(count, caches.shard_bits(), Shape::of(&levels[0]));
        let new = |shard| Profiler::of_shard(&sites, caches.clone(), shard, shards.clone());
        let mut dealt: Vec<_> = (0..shards.count()).map(new).collect();
        for profiler in [&mut single, &mut by_line].into_iter().chain(&mut dealt) {
            profiler.add_globals(ProcessId(0), globals());
        }
        let mut in_detail = [false, true].map(|unrolled| {
            let mut profiler = Profiler::new(&sites, watched(&unwatched));
            profiler.add_globals(ProcessId(0), globals());
            (unrolled, profiler)
        });
        let mut dealer = shards.dealer();
        let mut sequence = 0;
        // Chunks of two threads that run side by side, or one alone.
        for together in chunks.chunk_by(|a, b| side_by_side && a.0 != b.0).flat_map(|some| some.chunks(2)) {
            let batches = |unrolled: bool| -> Vec<Batch> {
                let numbered = (sequence..).zip(together);
                numbered.map(|(number, (thread, events))| batch(*thread, number, events, unrolled)).collect()
            };
            let [kept, written_out] = [false, true].map(|unrolled| -> Vec<_> {
                let is_alone = together.len() == 1;
                batches(unrolled).into_iter().map(|whole| with_moments(whole, is_alone)).collect()
            });
            sequence += together.len() as u32;
            in_turns(&mut single, &written_out);
            in_turns(&mut by_line, &kept);
            for (unrolled, profiler) in &mut in_detail {
                in_turns(profiler, if *unrolled { &written_out } else { &kept });
            }
            let mut parts: Vec<Vec<(Batch, Dealing)>> = vec![Vec::new(); shards.count()];
            for (whole, dealing) in &kept {
                let dealt = shards.deal(whole, &dealing.moments, &mut dealer);
                parts.iter_mut().zip(dealt).for_each(|(parts, dealt)| parts.push(dealt));
            }
            for (profiler, parts) in dealt.iter_mut().zip(&parts) {
                in_turns(profiler, parts);
            }
            for (_, dealing) in parts.iter().flatten() {
                dealing.cuts.as_ref().unwrap().finish();
            }
        }
        let [single, by_line, dealt] =
            [single.finish(), by_line.finish(), Profiler::finish_all(dealt)];
        let residencies = [&single, &by_line, &dealt].map(residencies);
        let residencies_of_single = residencies[0].clone();
        let single = told(&single);
        prop_assert_eq!(told(&by_line), single.clone(), "loops by line");
        prop_assert_eq!(told(&dealt), single, "{} shards", shards.count());
        let lines = |residencies: &[Vec<LineResidency>]| -> Vec<u64> { residencies.iter().flatten().map(|residency| residency.line).collect() };
        let block = |residency: &LineResidency| residency.fetch.map(|fetch| (fetch.base, fetch.bytes, fetch.class));
        for (residencies, how) in residencies[1..].iter().zip(["loops by line", "shards"]) {
            prop_assert_eq!(lines(residencies), lines(&residencies_of_single), "residencies of {}", how);
            // What a loop touches of a line is entered when it comes to it: more than that if the line is lost in between, and of one that
            // it fetches again it is not known which access does.
            for (one, more) in residencies_of_single.iter().flatten().zip(residencies.iter().flatten()) {
                prop_assert_eq!(one.touched & !more.touched, 0, "{}: {:?} {:?}", how, one, more);
                if let (Some(one), Some(other)) = (block(one), block(more)) {
                    prop_assert_eq!(one, other, "{}", how);
                }
            }
        }
        let [loops, accesses] = in_detail.map(|(_, profiler)| {
            let (profile, detailed) = profiler.finish_with_caches();
            (told(&profile), detailed.counters(), detailed.finish())
        });
        prop_assert_eq!(loops, accesses, "loops in detail");
    }
}
