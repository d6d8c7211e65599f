//! Results of counts and refusals that are known.

use memlode_counters::stat::{Change, Interval};

use super::fake::FakeKernel;
use super::*;
use crate::process::{AddressLayout, Launch, RunLimits, StopFlag};

/// The true counts of each code of Skylake's, in the run of this number.
fn truth(event: CounterEvent, run: usize) -> u64 {
    let cycles = 1_000_000 + 1000 * (run as u64 % 7);
    match event {
        CounterEvent::Software(Software::TaskClock) => 250_000_000,
        CounterEvent::Software(Software::MinorFaults) => 120,
        CounterEvent::Software(_) => 3,
        CounterEvent::Raw(0x3c) => cycles,
        CounterEvent::Raw(0xc0) => 500_000,
        CounterEvent::Raw(0x151) => 50_000,
        CounterEvent::Raw(_) => 10_000,
    }
}

fn willing() -> FakeKernel {
    FakeKernel::counting(truth)
}

fn plan(table: Option<&str>, pid: Option<u32>) -> StatPlan {
    StatPlan {
        command: vec!["prog".into()],
        pid,
        table: table.map(|name| EventTable::named(name).unwrap()),
        rounds: 8,
        time: Duration::from_secs(3600),
        seed: 1,
    }
}

fn counted_by(fake: &FakeKernel, table: Option<&str>) -> Stat {
    stat(&plan(table, None), fake, &mut |_| Ok(0.25)).expect("counts")
}

fn of(found: &Stat, ratio: Ratio) -> &ValueSource {
    &found.ratios.iter().find(|known| known.ratio == ratio).expect("all are there").found
}

fn refusal(found: &ValueSource) -> &CountRefusal {
    match found {
        ValueSource::Missing { refusal } => refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn ratios_are_those_of_the_truth_and_intervals_hold_it() {
    let found = counted_by(&willing(), Some("skylake-sp"));
    let clocks = of(&found, Ratio::ClocksPerInstruction).interval().unwrap();
    let (low, high) = clocks.ends.unwrap();
    assert!(2.0 <= low && low < clocks.middle && clocks.middle < high && high <= 2.012, "{clocks:?}");
    assert_eq!(
        of(&found, Ratio::L1dMissRate).interval(),
        Some(Interval { middle: 0.1, ends: Some((0.1, 0.1)) })
    );
    assert!(matches!(refusal(of(&found, Ratio::VirtualCalls)), CountRefusal::NotCounted { .. }));
    let groups = groups(&EventTable::named("skylake-sp").unwrap()).len();
    assert_eq!(found.seconds.len(), 8 * groups);
    let faults = found.software.iter().find(|count| count.event == Software::MinorFaults).unwrap();
    assert_eq!(faults.found.interval().unwrap().middle, 120.0);
}

#[test]
fn without_a_unit_the_kernels_events_remain_and_each_ratio_says_why() {
    let fake = willing().refusing(|event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::ENOENT));
    let fake = FakeKernel { has_unit: false, ..fake };
    for table in [None, Some("zen4")] {
        let found = counted_by(&fake, table);
        assert_eq!(found.seconds.len(), 8, "no run is made for groups that cannot be counted");
        assert!(found.ratios.iter().all(|ratio| *refusal(&ratio.found) == CountRefusal::NoUnit));
        assert!(found.software.iter().all(|count| count.found.interval().is_some()));
    }
    let unknown = counted_by(&willing(), None);
    assert!(unknown.ratios.iter().all(|ratio| *refusal(&ratio.found) == CountRefusal::NoTable));
}

/// The kernel's part is forbidden: events that make sense without it are counted without it; the
/// others have no value, not zero.
#[test]
fn what_happens_in_the_kernel_is_never_a_silent_zero() {
    let fake = willing().refusing(|_, with_kernel| with_kernel.then_some(libc::EACCES));
    let found = counted_by(&fake, Some("skylake-sp"));
    for count in &found.software {
        match &count.found {
            ValueSource::Missing { refusal } => {
                assert!(count.event.is_of_kernel());
                assert_eq!(*refusal, CountRefusal::Paranoid { level: 2, needed: 1 });
            }
            ValueSource::Measured { user_only, .. } => assert!(user_only & !count.event.is_of_kernel()),
            ValueSource::Simulated { .. } => panic!("nothing is simulated"),
        }
    }
    let ValueSource::Measured { user_only: true, .. } = of(&found, Ratio::L2MissRate) else {
        panic!("{found:?}")
    };
}

#[test]
fn each_way_of_refusing_reaches_the_result() {
    type Refuses = fn(CounterEvent, bool) -> Option<i32>;
    let raw: [(Refuses, i32, CountRefusal); 11] = [
        (|event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::ENOENT), 2, CountRefusal::NoEvent),
        (|_, _| Some(libc::EACCES), 4, CountRefusal::Paranoid { level: 4, needed: 2 }),
        (|_, _| Some(libc::EPERM), 2, CountRefusal::Forbidden),
        (|_, _| Some(libc::EMFILE), 2, CountRefusal::TooManyFiles),
        (|event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::EINVAL), 2, CountRefusal::DoNotFit),
        (|_, _| Some(libc::ENOSYS), 2, CountRefusal::NoPerf),
        (|event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::ENODEV), 2, CountRefusal::NoEvent),
        (
            |event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::EOPNOTSUPP),
            2,
            CountRefusal::NoEvent,
        ),
        (|_, _| Some(libc::ENFILE), 2, CountRefusal::TooManyFiles),
        (|event, _| matches!(event, CounterEvent::Raw(_)).then_some(libc::ENOSPC), 2, CountRefusal::DoNotFit),
        (|_, _| Some(libc::EBUSY), 2, CountRefusal::Busy),
    ];
    for (refuses, paranoid, expected) in raw {
        let found = counted_by(&FakeKernel { paranoid, ..willing().refusing(refuses) }, Some("icelake-sp"));
        assert!(found.ratios.iter().all(|ratio| *refusal(&ratio.found) == expected), "{expected:?}");
        let software = found.software.iter().filter(|count| count.found.interval().is_none()).count();
        assert_eq!(
            software,
            if matches!(expected, CountRefusal::NoEvent | CountRefusal::DoNotFit) { 0 } else { 5 }
        );
    }
    for (refuses, expected) in [
        ((|_, _| Some(libc::ESRCH)) as Refuses, CountRefusal::NoProcess { pid: 99 }),
        (|_, _| Some(libc::EPERM), CountRefusal::NotYours { pid: 99 }),
    ] {
        let refused = stat(&plan(None, Some(99)), &willing().refusing(refuses), &mut |_| Ok(1.0));
        let Err(StatError::Refused(refusal)) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal, expected);
    }
}

#[test]
fn a_counter_that_did_not_run_all_the_time_has_no_value() {
    let found = counted_by(&FakeKernel { runs: 0.5, ..willing() }, Some("skylake-sp"));
    assert_eq!(*refusal(of(&found, Ratio::LoadRate)), CountRefusal::Shared { percent: 50 });
    assert_eq!(*refusal(&found.software[0].found), CountRefusal::Shared { percent: 50 });
}

#[test]
fn no_round_begins_after_the_time_is_over_and_what_was_counted_counts() {
    let short = StatPlan { time: Duration::ZERO, ..plan(None, None) };
    assert_eq!(stat(&short, &willing(), &mut |_| Ok(1.0)).unwrap().seconds.len(), 1);
    let mut runs = 0;
    let mut interrupted = |_| {
        runs += 1;
        if runs < 4 { Ok(1.0) } else { Err(Error::Interrupted) }
    };
    assert_eq!(stat(&plan(None, None), &willing(), &mut interrupted).unwrap().seconds.len(), 3);
    let failed = stat(&plan(None, None), &willing(), &mut |_| Err(Error::Interrupted));
    assert!(matches!(failed, Err(StatError::Run(Error::Interrupted))));
}

#[test]
fn a_file_is_read_back_and_changes_are_those_of_the_truth() {
    let before = counted_by(&willing(), Some("skylake-sp"));
    let text = serde_json::to_string(&before).unwrap();
    let read: Stat = serde_json::from_str(&text).unwrap();
    assert_eq!((&read.software, read.seconds.len()), (&before.software, before.seconds.len()));
    for (read, written) in read.ratios.iter().zip(&before.ratios) {
        // Numbers are read to the last digit but one.
        let middle = |found: &ValueSource| found.interval().map_or(0.0, |found| found.middle);
        assert!((middle(&read.found) - middle(&written.found)).abs() < 1e-12, "{read:?}");
        assert_eq!((read.ratio, &read.formula), (written.ratio, &written.formula));
    }
    let mut after = before.clone();
    for ratio in &mut after.ratios {
        match (&mut ratio.found, ratio.ratio) {
            (found, Ratio::L2MissRate) => *found = ValueSource::Simulated { value: 0.5 },
            (ValueSource::Measured { values, .. }, _) => values.iter_mut().for_each(|value| *value /= 4.0),
            _ => {}
        }
    }
    let found = compare(&before, &after, 3);
    let of = |ratio: Ratio| &found.ratios.iter().find(|(known, _)| *known == ratio).unwrap().1;
    let Change::Compared { improvement, simulated: false } = of(Ratio::L1dMissRate) else {
        panic!("{found:?}")
    };
    assert_eq!(improvement.percent, Some(Interval { middle: 75.0, ends: Some((75.0, 75.0)) }));
    assert_eq!(*of(Ratio::L2MissRate), Change::Unlike);
    assert!(matches!(of(Ratio::VirtualCalls), Change::Missing { refusal: CountRefusal::NotCounted { .. } }));
}

/// The counts of a region are those of its counters; if none of them was ever on, the program was not in it.
#[test]
fn a_region_that_the_program_never_enters_is_an_error() {
    let run = |fake: &FakeKernel| {
        let words = vec!["true".into()];
        let launch = Launch { words, ..Launch::default() };
        let limits = RunLimits { stop: &StopFlag::new(false), longest: Duration::MAX };
        let start = |_: &[RawFd]| launch.start(AddressLayout::GIVEN, None);
        let mut finish = |started| launch.finish(started, limits).map(|sample| sample.wall);
        stat_of_region(&StatPlan { rounds: 1, ..plan(None, None) }, "solve", fake, &start, &mut finish)
    };
    let found = run(&willing()).expect("counts");
    assert_eq!(found.region.as_deref(), Some("solve"));
    assert_eq!(found.software[0].found.interval().map(|found| found.middle), Some(250_000_000.0));
    let never = run(&FakeKernel { wanted: 0, ..willing() });
    assert!(matches!(&never, Err(StatError::NoRegion(name)) if name == "solve"), "{never:?}");
}
