//! Maps of a trace, against a program that moves each byte by itself.

mod edit;
mod elements;
mod walks;

use std::collections::BTreeMap;

use memlode_machine::Machine;
use memlode_replay::Piece as Run;
use memlode_simulate::{
    Coherence, Detailed, Details, Hierarchy, Inclusion, LevelDetail, LevelSpec, MemRef, Model, ModelLevel,
    ModelSpec, Pages, Replacement, StoreBuffer, Tlb, TlbSpec,
};
use memlode_trace::event::{Batch, Course, Loop, ThreadId};
use memlode_trace::sites::{FunctionId, NameEvidence, Site, SiteKind};
use proptest::prelude::*;

use super::*;
use crate::count::engine::Engine;
use crate::count::profiler::LoadedGlobal;
use crate::drive::simulators::detailed;
use crate::drive::threads::beside_caches::ThreadedDetailed;
use crate::drive::threads::outer_levels::ThreadedOuterLevels;
use crate::profile::Profile;
use crate::setup::Setup;
use edit::{Edit, How};

/// Bytes of a line.
const LINE: u64 = 64;

/// An event in a chunk.
#[derive(Clone, Debug)]
enum Event {
    Access(Access),
    Alloc(u64, u64),
    Loop(u64, Vec<Stride>),
}

/// A chunk: its thread, whether recording had been off before, and its events.
type Chunk = (u32, bool, Vec<Event>);

/// Sites of a load, a store, a load from the stack, and an allocation.
fn sites() -> Vec<Site> {
    let site = |(kind, flags)| Site {
        kind,
        evidence: NameEvidence::Source,
        flags,
        bytes: 8,
        function: FunctionId(0),
        location: None,
        variable: None,
        ty: None,
        member: None,
    };
    [(SiteKind::Load, 0), (SiteKind::Store, 0), (SiteKind::Load, flag::STACK), (SiteKind::Alloc, 0)]
        .map(site)
        .to_vec()
}

fn globals() -> Vec<(u64, u64)> {
    vec![(0x9800, 4), (0x9808, 3), (0x980b, 1), (0x9850, 256)]
}

fn access() -> impl Strategy<Value = Access> {
    let bytes = prop_oneof![6 => prop::sample::select(vec![1u32, 2, 4, 8, 16, 32, 64]), 1 => 1u32..400];
    (0u32..3, 0x8000..0xa000u64, any::<bool>(), bytes).prop_map(|(site, address, aligned, bytes)| {
        let address = if aligned { address & !(u64::from(bytes.next_power_of_two()) - 1) } else { address };
        Access { address, bytes, site: SiteId(site) }
    })
}

fn event() -> impl Strategy<Value = Event> {
    // Blocks of elements, some of which end in the middle of one.
    let alloc = (0x800..0x940u64, 1..40u64, 0..9u64)
        .prop_map(|(base, elements, more)| Event::Alloc(base << 4, elements * 16 + more));
    let step = prop_oneof![6 => (-4..5i64).prop_map(|n| n * 16), 2 => -20..20i64, 1 => any::<i64>()];
    let bytes = prop::sample::select(vec![1u32, 4, 8, 16, 24]);
    let stride = (0..3u32, 0x8000..0x9400u64, step, bytes).prop_map(|(site, address, step, bytes)| Stride {
        access: Access { address: address & !3, bytes, site: SiteId(site) },
        step: step as u64,
        is_write: site == 1,
    });
    let strides = prop::collection::vec(stride, 1..4);
    let iterations = prop_oneof![1..6u64, 1..40u64];
    prop_oneof![
        8 => access().prop_map(Event::Access),
        4 => alloc,
        3 => (iterations, strides).prop_map(|(iterations, strides)| Event::Loop(iterations, strides)),
    ]
}

fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let gap = prop_oneof![9 => Just(false), 1 => Just(true)];
    prop::collection::vec((0..3u32, gap, prop::collection::vec(event(), 1..40)), 1..6)
}

fn edit() -> impl Strategy<Value = Edit> {
    let how = prop_oneof![
        (1..5000u64).prop_map(How::Shift),
        (1..100u64).prop_map(How::Pad),
        (1..16u64, any::<bool>()).prop_map(|(hot, linked)| How::Split { hot, linked }),
        (1..8u64, 8..16u64).prop_map(|(from, to)| How::Remove { from, to }),
    ];
    how.prop_map(|how| Edit { element: 16, how })
}

fn batch(sequence: usize, (thread, after_gap, events): &Chunk, unrolled: bool) -> Batch {
    let mut batch = Batch {
        process: Some(ProcessId(thread / 2)),
        thread: Some(ThreadId(*thread)),
        sequence: sequence as u32,
        after_gap: *after_gap,
        stamps: (sequence as u64, sequence as u64),
        ..Batch::default()
    };
    for event in events {
        let at = batch.accesses.len() as u32;
        match event {
            Event::Access(access) => batch.accesses.push(*access),
            Event::Alloc(base, bytes) => {
                let mark = Mark::Alloc { site: SiteId(3), base: *base, count: 1, element_bytes: *bytes };
                batch.marks.push((at, mark));
            }
            Event::Loop(iterations, strides) if unrolled => {
                let iterations = (0..*iterations)
                    .flat_map(|iteration| strides.iter().map(move |s| s.access_in(iteration)));
                batch.accesses.extend(iterations);
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

/// Accesses by thread and site, and by the level that served them.
type Depths = BTreeMap<(u32, u32), [u64; 4]>;

fn depths(profile: &Profile) -> Depths {
    let mut depths = Depths::new();
    for cell in &profile.cells {
        let sum = depths.entry((cell.thread.0, cell.site.0)).or_default();
        for (depth, sum) in sum.iter_mut().enumerate() {
            *sum += cell.counts.reads[depth] + cell.counts.writes[depth];
        }
    }
    depths.retain(|_, depths| *depths != [0; 4]);
    depths
}

/// The blocks of a process, in no order.
#[derive(Clone)]
struct Memory(Vec<(u64, u64)>);

impl Memory {
    fn insert(&mut self, base: u64, bytes: u64) {
        self.0.retain(|(other, size)| other + size <= base || base + bytes <= *other);
        self.0.push((base, bytes));
    }

    fn block(&self, address: u64) -> Option<u64> {
        self.0.iter().find(|(base, bytes)| address.wrapping_sub(*base) < *bytes).map(|(base, _)| *base)
    }

    /// Returns where the bytes of an access go, byte by byte: runs of them, and whether each is a
    /// link.
    fn pieces(&self, edit: &Edit, access: &Access) -> Vec<(u64, u64, bool)> {
        let mut pieces: Vec<(u64, u64, bool)> = Vec::new();
        let mut before = None;
        for was in (0..u64::from(access.bytes)).map_while(|n| access.address.checked_add(n)) {
            let block = self.block(was).filter(|base| edit.is_about(*base) && access.site.0 != 2);
            let now = block.map_or(Some(was), |base| edit.byte(base, was - base));
            let Some(now) = now else { continue };
            let goes_on = before == Some((was.wrapping_sub(1), now.wrapping_sub(1)));
            if !goes_on {
                let link = block.and_then(|base| edit.link(base, was - base));
                pieces.extend(link.map(|link| (link, 8, true)));
                pieces.push((now, 0, false));
            }
            if let Some(last) = pieces.last_mut() {
                last.1 += 1;
            }
            before = Some((was, now));
        }
        pieces
    }
}

/// Calls `each` for each access of the chunks, with the memory as it is then.
fn each_access(chunks: &[Chunk], mut each: impl FnMut(u32, &Access, &Memory)) {
    let mut processes = vec![Memory(globals()); 2];
    for (thread, _, events) in chunks {
        let memory = &mut processes[*thread as usize / 2];
        for event in events {
            match event {
                Event::Access(access) => each(*thread, access, memory),
                Event::Alloc(base, bytes) => memory.insert(*base, *bytes),
                Event::Loop(iterations, strides) => (0..*iterations).for_each(|iteration| {
                    strides.iter().for_each(|stride| each(*thread, &stride.access_in(iteration), memory));
                }),
            }
        }
    }
}

/// Returns the depths of the accesses of a trace under an edit: `ask` simulates one.
fn naive(chunks: &[Chunk], edit: &Edit, mut ask: impl FnMut(MemRef) -> u8) -> Depths {
    let mut depths = Depths::new();
    each_access(chunks, |thread, access, memory| {
        let space = u64::from(thread / 2) << 48;
        let mut count =
            |depth: u8| depths.entry((thread, access.site.0)).or_default()[usize::from(depth)] += 1;
        let mut ask = |address: u64, bytes: u64, is_link: bool| {
            let is_write = access.site.0 == 1 && !is_link;
            ask(MemRef::read(thread as usize % 2, address ^ space, bytes as u32).writing(is_write))
        };
        let pieces = memory.pieces(edit, access);
        if u64::from(access.bytes) <= LINE {
            let (links, others): (Vec<_>, Vec<_>) = pieces.into_iter().partition(|(_, _, is_link)| *is_link);
            links.into_iter().for_each(|(address, bytes, _)| count(ask(address, bytes, true)));
            // All that begin in the same line are one access.
            let mut lines: Vec<u64> = Vec::new();
            for line in others.iter().map(|(address, ..)| address / LINE) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            for line in lines {
                let together = others.iter().filter(|(address, ..)| address / LINE == line);
                let depth = together.map(|&(address, bytes, _)| ask(address, bytes, false)).max();
                depth.into_iter().for_each(&mut count);
            }
            return;
        }
        for (mut address, bytes, is_link) in pieces {
            let last = address + (bytes - 1);
            loop {
                let end = (address | (LINE - 1)).min(last);
                count(ask(address, end - address + 1, is_link));
                let Some(next) = end.checked_add(1).filter(|next| *next <= last) else { break };
                address = next;
            }
        }
    });
    depths
}

fn levels() -> [LevelSpec; 3] {
    let level = |sets: u64, ways: u32, shared_by| LevelSpec {
        bytes: sets * u64::from(ways) * LINE,
        ways,
        line_bytes: LINE as u32,
        shared_by,
    };
    [level(2, 2, 1), level(4, 4, 1), level(16, 4, 2)]
}

fn hierarchy() -> Hierarchy {
    Hierarchy::new(&levels(), 2).unwrap()
}

/// Rules that look up lines one by one, whatever came when.
fn rules() -> ModelSpec {
    let mut rules = levels().map(ModelLevel::from);
    (rules[0].replacement, rules[1].inclusion) = (Replacement::TreePlru, Inclusion::Inclusive);
    ModelSpec {
        levels: rules.to_vec(),
        cores: 2,
        coherence: Coherence::Mesi,
        page_bytes: 4096,
        fill_accesses: 100,
    }
}

fn watched(caches: Detailed) -> Detailed {
    let pages = TlbSpec { level: 1, entries: 4, ways: 2, page_bytes: vec![4096], latency_cycles: 0 };
    let tlb = Tlb::new(&[pages], 30, &Pages::of(4096), 2).unwrap();
    caches.with_tlb(tlb).with_store_buffer(StoreBuffer::new(8, 32, 2))
}

/// Sends a trace through caches, by the route of an edit or directly.
fn profile<S: TakesFragments>(caches: S, chunks: &[Chunk], edit: Option<&Edit>) -> (Profile, S) {
    profile_with(caches, chunks, edit, &[])
}

/// The same with more global variables: the number of one that there is, and an address and size.
fn profile_with<S: TakesFragments>(
    caches: S,
    chunks: &[Chunk],
    edit: Option<&Edit>,
    more: &[(usize, (u64, u64))],
) -> (Profile, S) {
    let mut profiler = Profiler::new(&sites(), caches).with_cores(vec![0, 1]);
    for process in [ProcessId(0), ProcessId(1)] {
        let global = |(number, (address, bytes))| LoadedGlobal {
            address,
            bytes,
            symbol: format!("global {number}"),
            image: "a".into(),
        };
        let all = globals().into_iter().enumerate().chain(more.iter().copied());
        profiler.add_globals(process, all.map(global));
    }
    if chunks.iter().any(|chunk| chunk.1) {
        profiler.watch_gaps(None);
    }
    let mut road = edit.map(|edit| Mapped::new(edit, Vec::new()));
    for (sequence, chunk) in chunks.iter().enumerate() {
        let batch = batch(sequence, chunk, false);
        match &mut road {
            Some(road) => profiler.observe_piece_by(road, &Run::whole(&batch)),
            None => profiler.observe_piece(&Run::whole(&batch)),
        }
    }
    profiler.finish_with_caches()
}

/// The content of a profile, as comparable text.
fn told(profile: &Profile) -> String {
    let classes: Vec<_> = profile.classes.iter().map(|c| (&c.home, c.element, c.objects, c.bytes)).collect();
    let cells: Vec<_> = profile.cells.iter().map(|c| (c.thread, c.site, c.class, c.counts)).collect();
    format!("{:?}\n{classes:?}\n{cells:?}", profile.levels)
}

/// Returns the results of a simulation, summed over all tags.
fn summed(details: &Details) -> String {
    let mut levels = vec![LevelDetail::default(); 3];
    for tag in &details.levels {
        tag.iter().zip(&mut levels).for_each(|(level, sum)| *sum += level);
    }
    let tlb = details.tlb.iter().fold((0, 0, 0, 0, 0), |sum, tag| {
        (
            sum.0 + tag.walks,
            sum.1 + tag.second_level_hits,
            sum.2 + tag.cycles,
            sum.3 + tag.visited_bytes,
            sum.4 + tag.used_bytes,
        )
    });
    let aliases: u64 = details.aliases.iter().map(|pair| pair.conflicts).sum();
    let model = details.model.as_ref().map(|model| (model.coherence, &model.traffic, &model.prefetch));
    format!("{levels:?}\n{tlb:?}\n{aliases}\n{model:?}")
}

/// The machine's rules, prefetchers among them, with translations and stores in flight.
fn machine() -> Detailed {
    let machine = Machine::find("skylake-sp").unwrap();
    detailed(&machine, &Setup::of(&machine), 2).unwrap()
}

/// Returns where an edit puts the bytes of a block: ranges that have all of them, and nothing of
/// other blocks. `None` if the block stays.
fn new_blocks(edit: &Edit, (base, bytes): (u64, u64)) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut all: Vec<u64> = match edit.is_about(base) {
        true => (0..bytes).filter_map(|offset| edit.byte(base, offset)).collect(),
        false => Vec::new(),
    };
    all.sort_unstable();
    for address in all {
        match ranges.last_mut() {
            Some((first, bytes)) if address - *first < 0x10000 => *bytes = address - *first + 1,
            _ => ranges.push((address, 1)),
        }
    }
    ranges
}

/// Rewrites the trace like a naive program, for edits that leave each access in one piece; other
/// accesses are left out of both.
fn rewritten(chunks: &[Chunk], edit: &Edit) -> (Vec<Chunk>, Vec<Chunk>) {
    let one = |memory: &Memory, access: &Access| match memory.pieces(edit, access)[..] {
        [(address, bytes, false)] if bytes == u64::from(access.bytes) => Some(Access { address, ..*access }),
        _ => None,
    };
    let mut processes = vec![Memory(globals()); 2];
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for (thread, gap, events) in chunks {
        let memory = &mut processes[*thread as usize / 2];
        let (mut as_it_was, mut as_it_is) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Alloc(base, bytes) => {
                    memory.insert(*base, *bytes);
                    as_it_was.push(event.clone());
                    // The old place stays known, for what lies beside it and does not move.
                    as_it_is.push(event.clone());
                    let new = new_blocks(edit, (*base, *bytes));
                    as_it_is.extend(new.into_iter().map(|(base, bytes)| Event::Alloc(base, bytes)));
                }
                Event::Access(access) => {
                    let Some(access) = one(memory, access) else { continue };
                    as_it_was.push(event.clone());
                    as_it_is.push(Event::Access(access));
                }
                Event::Loop(iterations, strides) => {
                    let all = (0..*iterations)
                        .flat_map(|iteration| strides.iter().map(move |s| s.access_in(iteration)));
                    let all: Option<Vec<Access>> = all.map(|access| one(memory, &access)).collect();
                    let Some(all) = all else { continue };
                    as_it_was.push(event.clone());
                    as_it_is.extend(all.into_iter().map(Event::Access));
                }
            }
        }
        kept.push((*thread, *gap, as_it_was));
        moved.push((*thread, *gap, as_it_is));
    }
    (kept, moved)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Resolving accesses and mapping them to where they were changes no result.
    #[test]
    fn identity_changes_no_digit(chunks in chunks()) {
        let same = Edit { element: 16, how: How::Same };
        let straight = told(&profile(hierarchy(), &chunks, None).0);
        prop_assert_eq!(told(&profile(hierarchy(), &chunks, Some(&same)).0), straight);
        for new in [|| watched(Detailed::new(hierarchy())), machine] {
            let [straight, mapped] = [None, Some(&same)].map(|edit| {
                let (profile, detailed) = profile(new(), &chunks, edit);
                (told(&profile), detailed.counters(), detailed.finish())
            });
            prop_assert_eq!(straight, mapped);
        }
    }

    /// Each access goes as deep as the worst of its bytes' lines, and counts once for each line
    /// that a piece of it begins in.
    #[test]
    fn bytes_go_where_they_are_put(chunks in chunks(), edit in edit()) {
        let mut caches = hierarchy();
        let expected = naive(&chunks, &edit, |access| caches.access(access));
        let (by_line, _) = profile(hierarchy(), &chunks, Some(&edit));
        prop_assert_eq!(depths(&by_line), expected.clone());
        let (in_detail, alone) = profile(watched(Detailed::new(hierarchy())), &chunks, Some(&edit));
        prop_assert_eq!(depths(&in_detail), expected);
        if !chunks.iter().any(|chunk| chunk.1) {
            let (on_two, _) = profile(ThreadedOuterLevels::new(hierarchy()), &chunks, Some(&edit));
            prop_assert_eq!(told(&on_two), told(&by_line));
            let (apart, both) = profile(ThreadedDetailed::new(watched(Detailed::new(hierarchy()))), &chunks, Some(&edit));
            prop_assert_eq!(told(&apart), told(&in_detail));
            prop_assert_eq!(both.into_whole().finish(), alone.finish());
        }
    }

    /// The same under rules.
    #[test]
    fn bytes_go_where_they_are_put_under_rules(chunks in chunks(), edit in edit()) {
        let mut model = Model::new(&rules()).unwrap();
        let expected =
            naive(&chunks, &edit, |access| model.access(access).depth);
        let (found, detailed) = profile(watched(Detailed::of_model(Model::new(&rules()).unwrap())), &chunks, Some(&edit));
        prop_assert_eq!(depths(&found), expected.clone());
        let levels = Engine::counters(&detailed);
        let asked: u64 = expected.values().flatten().sum();
        prop_assert_eq!(levels[0].reads + levels[0].writes, asked);
        let missed: u64 = expected.values().map(|depths| depths[1] + depths[2] + depths[3]).sum();
        prop_assert_eq!(levels[0].read_misses + levels[0].write_misses, missed);
    }

    /// Compares with the trace that a naive program rewrites, where each access stays in one piece:
    /// all results are equal.
    #[test]
    fn maps_equal_rewritten_traces(chunks in chunks(), edit in edit()) {
        let (kept, moved) = rewritten(&chunks, &edit);
        let more: Vec<_> = globals()
            .into_iter()
            .enumerate()
            .flat_map(|(number, global)| new_blocks(&edit, global).into_iter().map(move |new| (number, new)))
            .collect();
        let (mapped, _) = profile(hierarchy(), &kept, Some(&edit));
        let (expected, _) = profile_with(hierarchy(), &moved, None, &more);
        prop_assert_eq!(depths(&mapped), depths(&expected));
        prop_assert_eq!(mapped.levels, expected.levels);
        for new in [|| watched(Detailed::new(hierarchy())), machine] {
            let (mapped, caches) = profile(new(), &kept, Some(&edit));
            let (expected, expected_caches) = profile_with(new(), &moved, None, &more);
            prop_assert_eq!(depths(&mapped), depths(&expected));
            prop_assert_eq!(caches.counters(), expected_caches.counters());
            prop_assert_eq!(summed(&caches.finish()), summed(&expected_caches.finish()));
        }
    }
}
