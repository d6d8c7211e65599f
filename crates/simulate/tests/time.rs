//! The time model against a naive one, on traces whose times are on paper, and by laws that hold
//! whatever is executed.

mod time {
    pub mod naive;
}

use std::sync::OnceLock;

use memlode_simulate::{
    Act, Charged, CoreTime, Stall, TICKS, TimeSpec, TimedAccess, TimedFeed, TimedLine, TimedSite, Translation,
};
use proptest::prelude::*;
use time::naive::Naive;

/// Cycles until memory answers.
const L: u64 = 300;

/// A core whose times are whole ticks.
fn spec() -> TimeSpec {
    TimeSpec {
        latencies: vec![4.0, 14.0, 100.0, L as f64],
        instruction: 0.25,
        overlap_l2: 7.0,
        overlap_memory: 20.0,
        read_line: 12.0,
        write_line: 20.0,
        window: 400.0,
        stores: 72,
        walk: 30.0,
        overlap_walk: 2.0,
        second_tlb: 7.0,
        atomic: 18.0,
        fence: 25.0,
        mispredict: 20.0,
        line_bytes: 64,
        page_bytes: 4096,
    }
}

/// An access by what the tests say of it.
#[derive(Clone, Debug)]
struct Step {
    site: u32,
    act: Act,
    is_fenced: bool,
    address: u64,
    bytes: u32,
    level: u8,
    /// Level of the second line, if there is one.
    other_level: u8,
    instructions: u64,
    translation: Translation,
    translation_ticks: u64,
    address_feeds: Feeds,
    data_feeds: Feeds,
    branch_feeds: Option<Feeds>,
}

/// Groups of sites, each with the number of times it was executed since.
type Feeds = Vec<Vec<(u32, u8)>>;

/// A load from memory, of a line that nothing else is near.
fn miss(number: u64) -> Step {
    Step {
        site: 0,
        act: Act::Load,
        is_fenced: false,
        address: (1 << 40) + number * 4096 * 977,
        bytes: 8,
        level: 3,
        other_level: 3,
        instructions: 0,
        translation: Translation::First,
        translation_ticks: 0,
        address_feeds: Vec::new(),
        data_feeds: Vec::new(),
        branch_feeds: None,
    }
}

/// Fed by the last load of a site.
fn fed_by(site: u32) -> Feeds {
    vec![vec![(site, 0)]]
}

impl Step {
    fn site(&self) -> TimedSite {
        let feed = |&(site, back): &(u32, u8)| TimedFeed { site, back };
        let feeds = |groups: &Feeds| groups.iter().map(|group| group.iter().map(feed).collect()).collect();
        TimedSite {
            number: self.site,
            act: self.act,
            is_fenced: self.is_fenced,
            before: self.instructions * TICKS,
            after: 0,
            address: feeds(&self.address_feeds),
            data: feeds(&self.data_feeds),
            branches: self.branch_feeds.as_ref().map(feeds),
        }
    }

    fn lines(&self) -> Vec<TimedLine> {
        let first = TimedLine { address: self.address, level: self.level };
        let last = (self.address + u64::from(self.bytes) - 1) / 64 * 64;
        let other = TimedLine { address: last, level: self.other_level };
        if last / 64 == self.address / 64 { vec![first] } else { vec![first, other] }
    }
}

/// Returns the charges of each access, and ticks until all have committed.
fn charges(spec: &TimeSpec, steps: &[Step]) -> (Vec<Charged>, u64) {
    let mut core = CoreTime::new(spec);
    let charge = |step: &Step| {
        core.access(&TimedAccess {
            site: &step.site(),
            address: step.address,
            bytes: step.bytes,
            lines: &step.lines(),
            translation: step.translation,
            translation_ticks: step.translation_ticks,
        })
    };
    let charged: Vec<Charged> = steps.iter().map(charge).collect();
    let committed = core.committed();
    assert_eq!(charged.iter().map(Charged::ticks).sum::<u64>(), committed, "all ticks are somebody's");
    (charged, committed)
}

/// Cycles that some accesses take, and those of each stall.
fn run(steps: &[Step]) -> (f64, impl Fn(Stall) -> f64 + use<>) {
    let (charged, committed) = charges(&spec(), steps);
    let cycles = |ticks: u64| ticks as f64 / TICKS as f64;
    let stalls = Stall::ALL.map(|stall| cycles(charged.iter().map(|charged| charged.of(stall)).sum()));
    (cycles(committed), move |stall: Stall| stalls[stall as usize])
}

#[test]
fn a_chase_takes_all_latencies_and_is_a_chain() {
    for k in [1, 2, 10, 50] {
        let chase: Vec<Step> = (0..k).map(|i| Step { address_feeds: fed_by(0), ..miss(i) }).collect();
        let (cycles, of) = run(&chase);
        assert_eq!(cycles, (k * L) as f64);
        assert_eq!(of(Stall::Chain), ((k - 1) * L) as f64);
        // What is not waiting is the first level's latency, once.
        assert_eq!(of(Stall::Latency), (L - 4) as f64);
    }
}

/// Two loads an iteration, each fed by what both loaded in the iteration before: when the second is
/// executed, the first has been again.
#[test]
fn loads_of_a_iteration_that_wait_for_the_iteration_before_wait_together() {
    let iterations = 30;
    let with_back = |back| {
        let first = |i| Step { address_feeds: vec![vec![(0, 0), (1, 0)]], ..miss(2 * i) };
        let second = |i| Step { site: 1, address_feeds: vec![vec![(0, back), (1, 0)]], ..miss(2 * i + 1) };
        run(&(0..iterations).flat_map(|i| [first(i), second(i)]).collect::<Vec<_>>()).0
    };
    // The line of the second comes 12 cycles behind that of the first.
    assert_eq!(with_back(1), (iterations * (L + 12)) as f64);
    assert_eq!(with_back(0), (2 * iterations * L) as f64);
}

#[test]
fn independent_misses_take_a_latency_for_each_iteration_of_the_fill_buffers() {
    for k in [1, 20, 21, 40, 41] {
        let (cycles, of) = run(&(0..k).map(miss).collect::<Vec<_>>());
        // Twenty at a time; within an iteration they are twelve cycles apart.
        let (iterations, left) = ((k - 1) / 20, (k - 1) % 20);
        assert_eq!(cycles, (L * (iterations + 1) + 12 * left) as f64, "{k}");
        assert_eq!(of(Stall::Chain), 0.0);
        assert_eq!(of(Stall::Buffers) > 0.0, k > 20, "{k}");
    }
}

/// A number of misses, each prefetched a number of instructions before it is needed, in a walk that
/// would have to wait for each.
#[test]
fn what_is_asked_for_in_time_is_not_waited_for() {
    let walk = |k: u64, ahead: u64| {
        let asked = |i: u64| Step { site: 1, act: Act::Prefetch, ..miss(i) };
        let needed = |i: u64| Step {
            level: 0,
            address_feeds: fed_by(0),
            instructions: if i == 0 { 4 * ahead } else { 0 },
            ..miss(i)
        };
        run(&(0..k).map(asked).chain((0..k).map(needed)).collect::<Vec<_>>())
    };
    let alone: Vec<Step> = (0..10).map(|i| Step { address_feeds: fed_by(0), ..miss(i) }).collect();
    assert_eq!(run(&alone).0, (10 * L) as f64);
    // In time: ten hits of the first level, in a chain, behind the instructions.
    assert_eq!(walk(10, 2 * L).0, (2 * L + 10 * 4) as f64);
    // Too late: the first has all of its way before it, and the others come behind it, twelve cycles apart.
    let (cycles, of) = walk(10, 0);
    assert_eq!(cycles, (L + 9 * 12 + 4) as f64);
    assert!(of(Stall::Bandwidth) == 0.0, "nobody waits on the way");
    // More than there are fill buffers: the next ones have to wait for one.
    assert!(walk(21, 2 * L).1(Stall::Buffers) > 0.0);
}

#[test]
fn misses_overlap_within_the_window_and_not_beyond() {
    let two = |apart: u64| [miss(0), Step { instructions: apart, ..miss(1) }];
    let (within, _) = run(&two(399));
    assert_eq!(within, 399.0 * 0.25 + L as f64);
    let (beyond, of) = run(&two(400));
    assert_eq!(beyond, (2 * L) as f64, "not before the first one has committed");
    assert_eq!(of(Stall::Window), (L - 100) as f64);
}

#[test]
fn a_store_waits_only_where_the_buffer_is_full() {
    let stores = |k: u64| (0..k).map(|i| Step { act: Act::Store, level: 0, ..miss(i) }).collect::<Vec<_>>();
    let mut some = stores(72);
    some[0].level = 3;
    assert_eq!(run(&some).0, 4.0, "72 find room, and commit as what waits for nothing does");
    some.extend(stores(1));
    let (cycles, of) = run(&some);
    assert_eq!(cycles, L as f64, "the first one has to leave");
    assert_eq!(of(Stall::Stores), (L - 4) as f64);
}

#[test]
fn a_store_past_the_caches_waits_for_bandwidth_alone() {
    let past = |k: u64| (0..k).map(|i| Step { act: Act::StorePast, ..miss(i) }).collect::<Vec<_>>();
    assert_eq!(run(&past(72)).0, 4.0, "72 find room");
    // Number 73 needs the place of the first, which leaves a cycle after it committed, and number 1072 that of number 1000, which
    // leaves when 999 lines are through.
    let (cycles, of) = run(&past(1072));
    assert_eq!(cycles, 999.0 * 12.0);
    assert_eq!(of(Stall::Stores), 999.0 * 12.0 - 4.0);
    let inside: Vec<Step> = past(1072).into_iter().map(|step| Step { level: 0, ..step }).collect();
    assert!(run(&inside).0 < 1072.0, "lines that are being written cost nothing");
}

#[test]
fn a_load_gets_what_a_store_in_flight_wrote_and_waits_for_one_that_wrote_a_part() {
    // The stored value comes from a miss.
    let store = Step { site: 1, act: Act::Store, data_feeds: fed_by(0), ..miss(1) };
    let load = Step { site: 2, level: 0, ..miss(1) };
    let (charged, committed) = charges(&spec(), &[miss(0), store.clone(), load.clone()]);
    assert_eq!(committed, (L + 4) * TICKS);
    assert_eq!((charged[2].forwarded, charged[2].blocked), (1, 0));
    assert_eq!(charged[2].of(Stall::Forwarding), 4 * TICKS);
    // The upper half is not the store's: it has to leave, which is when its line is there.
    let narrow = Step { bytes: 4, ..store.clone() };
    let (charged, committed) = charges(&spec(), &[miss(0), narrow, load.clone()]);
    assert_eq!((charged[2].forwarded, charged[2].blocked), (0, 1));
    assert_eq!(committed, (12 + L + 4) * TICKS, "its line is the second one to depart");
    // One of other bytes is nobody's business.
    let beside = Step { address: store.address + 8, ..store };
    let (charged, _) = charges(&spec(), &[miss(0), beside, load]);
    assert_eq!((charged[2].forwarded, charged[2].blocked), (0, 0));
}

#[test]
fn a_stream_costs_its_bandwidth_and_a_line_on_its_way_the_rest() {
    let line = |i: u64| Step { address: (1 << 30) + 64 * i, ..miss(0) };
    let cycles = |lines: u64| run(&(0..lines).map(line).collect::<Vec<_>>()).0;
    // Behind the first lines, each costs what the machine measured, whatever the page.
    assert_eq!(cycles(4000) - cycles(2000), 2000.0 * 12.0);
    // Two loads of one line: the second one hits, but not before it is there.
    let (cycles, _) = run(&[miss(0), Step { site: 1, level: 0, ..miss(0) }]);
    assert_eq!(cycles, (L + 4) as f64);
}

#[test]
fn an_atomic_update_waits_for_what_stands_before_it_and_holds_up_what_stands_behind() {
    let store = Step { site: 1, act: Act::Store, ..miss(1) };
    let update = Step { site: 2, act: Act::Atomic, level: 0, ..miss(2) };
    let behind = Step { site: 3, level: 0, ..miss(3) };
    let (cycles, of) = run(&[store.clone(), update, behind.clone()]);
    assert_eq!(cycles, (L + 4 + 18 + 4) as f64);
    assert!(of(Stall::Order) >= (L + 18 - 4) as f64);
    let fenced = Step { is_fenced: true, ..store };
    assert_eq!(run(&[fenced, behind]).0, (L + 25 + 4) as f64);
}

/// A site's access to a line that is near, or far.
fn near(site: u32) -> Step {
    Step { site, level: 0, ..miss(0) }
}

fn far(site: u32, number: u64) -> Step {
    Step { site, ..miss(number) }
}

#[test]
fn what_lies_behind_a_surprise_begins_when_it_is_known_where_the_branch_leads() {
    // Site 0 has been followed by site 1; now by site 2.
    let learnt = [3, 0, 1, 3, 0, 1].map(near);
    let (before, _) = run(&learnt);
    let surprise = |deciding: Step| {
        let (cycles, of) = run(&[&learnt[..], &[far(3, 1), deciding, far(2, 3)]].concat());
        (cycles - before, of(Stall::Branch))
    };
    let last_load = far(0, 2);
    assert_eq!(surprise(last_load.clone()), ((12 + L + 20 + L - 4) as f64, (20 + L) as f64));
    // The load on which the branch depends is known: another load, or none.
    let decided =
        |branch_feeds: Feeds| surprise(Step { branch_feeds: Some(branch_feeds), ..last_load.clone() }).0;
    assert_eq!(decided(fed_by(0)), (12 + L + 20 + L - 4) as f64);
    assert_eq!(decided(fed_by(3)), (L + 20 + L - 4) as f64);
    assert_eq!(decided(Vec::new()), (24 + L - 4) as f64, "as if there had been no branch");
    // A pattern is learnt; chance is not.
    let branch = |bits: u64, iterations: u64| {
        let iteration = |i: u64| [near(0), near(if bits >> (i % 64) & 1 == 0 { 1 } else { 2 })];
        let steps: Vec<Step> = (0..iterations).flat_map(iteration).collect();
        charges(&spec(), &steps).0.iter().map(|charged| charged.of(Stall::Branch)).sum::<u64>()
    };
    let (alternating, chance) = (0xaaaa_aaaa_aaaa_aaaa, 0x9e37_79b9_7f4a_7c15);
    assert_eq!(branch(alternating, 2000), branch(alternating, 1000), "learnt after a while");
    assert!(branch(chance, 64) > 10 * 20 * TICKS);
}

#[test]
fn few_page_walks_go_on_at_the_same_time() {
    // Loads that the first level answers, of a page each that nobody has walked for.
    let walk = |number| Step {
        level: 0,
        translation: Translation::Walk,
        translation_ticks: 30 * TICKS,
        ..miss(number)
    };
    let walks = |count| (0..count).map(walk).collect::<Vec<Step>>();
    // Two at a time: each of nine begins half a walk behind the one before.
    let (cycles, of) = run(&walks(9));
    assert_eq!((cycles, of(Stall::Walk)), (8.0 * 15.0 + 34.0, 8.0 * 15.0 + 30.0));
    // What the line of the page tables takes beyond the second level overlaps as lines of data do, twenty at a time.
    let far: Vec<Step> =
        walks(9).into_iter().map(|walk| Step { translation_ticks: 430 * TICKS, ..walk }).collect();
    assert_eq!(run(&far).0, 8.0 * (15.0 + 20.0) + 434.0);
    // Another access of the page waits for the same walk, and no longer; one of another page for none.
    let known = |number| Step { level: 0, ..miss(number) };
    assert_eq!(run(&[walk(1), known(1)]).0, 34.0);
    let fed = |number, site| Step { address_feeds: fed_by(0), site, ..known(number) };
    assert_eq!(run(&[Step { site: 1, ..walk(1) }, Step { site: 0, ..known(1) }, fed(2, 2)]).0, 38.0);
    assert_eq!(run(&[Step { site: 1, ..walk(1) }, Step { site: 0, ..known(3) }, fed(2, 2)]).0, 34.0);
}

#[test]
fn what_the_wrong_path_has_asked_for_is_on_its_way() {
    // Site 0 is followed by site 1, and that by site 2; then by site 2 at once, or by site 3, which leads there as well.
    let learnt = [0, 1, 2, 0, 1, 2].map(near);
    let (before, _) = run(&learnt);
    let after = |steps: &[Step]| run(&[&learnt[..], steps].concat()).0 - before;
    let decides = Step { branch_feeds: Some(fed_by(0)), ..far(0, 1) };
    // Both ways lead to site 2: its line comes behind the other one, and is there when the access is made for good.
    assert_eq!(after(&[decides.clone(), far(2, 2)]), (L + 20) as f64);
    // Site 3 is on the right way alone.
    assert_eq!(after(&[decides.clone(), far(3, 2)]), (L + 20 + L - 4) as f64);
    // Behind it the ways meet. Accesses that do not depend on it were requested early; the others were not.
    let meets = |address_feeds| Step { address_feeds, ..far(2, 3) };
    assert_eq!(after(&[decides.clone(), near(3), meets(Vec::new())]), (L + 20) as f64);
    assert_eq!(
        after(&[decides.clone(), near(3), meets(fed_by(0))]),
        (L + 20 + L - 4) as f64,
        "known too late"
    );
    let either = vec![vec![(1, 0), (3, 0)]];
    assert_eq!(after(&[decides, near(3), meets(either)]), (L + 20 + 4 + L - 4) as f64);
}

/// Six sites of random kinds, each followed by the next one, so that there is no branch; what they
/// access is random.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let feed = || prop::option::of((0..6u32, prop_oneof![3 => Just(0u8), 1 => 1..4u8]));
    let site = (0..12u32, prop::bool::weighted(0.05), feed(), feed());
    let sites = prop::collection::vec((site, prop::sample::select(vec![1u32, 4, 8, 16])), 6);
    // Few lines, so that accesses meet; runs of lines, so that there are streams.
    let address = prop_oneof![
        (0..40u64, 0..64u64).prop_map(|(line, byte)| line * 64 + byte),
        (0..3000u64).prop_map(|line| (1 << 20) + line * 64),
    ];
    let first = (Translation::First, 0u64);
    let walks = [(Translation::Second, 7), (Translation::Walk, 40), (Translation::Walk, 130)];
    let translation = prop::sample::select([&[first; 4][..], &walks].concat());
    let one = (address, 0..4u8, 0..4u8, 0..40u64, translation);
    let stream =
        (prop::option::weighted(0.3, 0..6u64), prop::sample::select(vec![8i64, 64, -64, 192, -24, 2600]));
    (sites, prop::collection::vec(one, 1..300), stream).prop_map(|(sites, accesses, (stream, step))| {
        let access =
            |(number, (address, level, other_level, instructions, (translation, cycles))): (u64, _)| {
                let ((act, is_fenced, address_feed, data_feed), bytes) = sites[number as usize % 6];
                let address: u64 = address;
                let walks = Some(number % 6) == stream;
                Step {
                    site: (number % 6) as u32,
                    act: [Act::Load, Act::Store, Act::Store, Act::Atomic, Act::Prefetch, Act::StorePast]
                        [act.saturating_sub(6) as usize],
                    is_fenced,
                    address: if walks {
                        (1u64 << 21).wrapping_add((step * number as i64) as u64)
                    } else {
                        (1 << 22) + address
                    },
                    bytes,
                    level,
                    other_level,
                    instructions,
                    translation,
                    translation_ticks: cycles * TICKS,
                    address_feeds: address_feed.map_or(Vec::new(), |feed| vec![vec![feed]]),
                    data_feeds: data_feed.map_or(Vec::new(), |(site, back)| {
                        vec![vec![(site, back), ((site + 1) % 6, 0)], vec![(0, 0)]]
                    }),
                    branch_feeds: None,
                }
            };
        (0..).zip(accesses).map(access).collect()
    })
}

fn cases() -> u32 {
    static CASES: OnceLock<u32> = OnceLock::new();
    *CASES.get_or_init(|| std::env::var("MEMLODE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Every charge of every access, by a model that looks at all that came before each time.
    #[test]
    fn it_is_the_naive_model_to_the_digit(steps in steps()) {
        let spec = TimeSpec { window: 60.0, stores: 5, overlap_memory: 3.0, ..spec() };
        let mut naive = Naive::new(spec.clone());
        let (charged, committed) = charges(&spec, &steps);
        for (number, (step, charged)) in steps.iter().zip(charged).enumerate() {
            let translated = (step.translation, step.translation_ticks);
            let expected = naive.access(&step.site(), (step.address, step.bytes), &step.lines(), translated);
            prop_assert_eq!(charged, expected, "access {} of {:?}", number, steps);
        }
        prop_assert_eq!(naive.committed(), committed);
    }

    /// No sooner than its instructions, and no later than if nothing overlapped.
    #[test]
    fn time_is_within_bounds(steps in steps()) {
        let (_, committed) = charges(&spec(), &steps);
        let instructions: u64 = steps.iter().map(|step| step.instructions * TICKS / 4).sum();
        // Each may wait for its latencies, walk and fence, and for all lines that were fetched ahead before it.
        let one_by_one: u64 = steps.iter().map(|step| step.translation_ticks + (2 * L + 18 + 25 + 3000) * TICKS).sum();
        prop_assert!(committed >= instructions);
        prop_assert!(committed <= instructions + one_by_one);
    }

    /// Chaining accesses never makes them faster, and each is charged at most what a chain of all
    /// would be.
    #[test]
    fn a_chain_is_never_faster(numbers in prop::collection::vec(0..4000u64, 1..100)) {
        let free: Vec<Step> = numbers.iter().map(|&number| miss(number)).collect();
        let chained: Vec<Step> =
            free.iter().map(|step| Step { address_feeds: fed_by(0), ..step.clone() }).collect();
        let (free, chained) = (charges(&spec(), &free).1, charges(&spec(), &chained).1);
        prop_assert!(free <= chained);
        prop_assert!(chained <= numbers.len() as u64 * L * TICKS);
    }
}
