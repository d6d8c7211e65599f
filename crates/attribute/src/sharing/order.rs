//! The order of threads: who waits for which release of whom.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use memlode_trace::event::{ProcessId, SyncKind};
use memlode_trace::format::stream;
use rustc_hash::{FxHashMap, FxHashSet};

use super::survey::{SyncEvent, ThreadFacts};

/// Threads, by their place in the survey, and how often each must have released.
pub(super) type Waits = Vec<(u32, u64)>;

/// The releases that each thread waits for.
#[derive(Default)]
pub(super) struct Orders {
    /// Indexed by thread: its acquisitions that wait, counted from 0, and the releases that they
    /// wait for.
    pub waits: Vec<Vec<(u64, Waits)>>,
    /// Indexed by thread: the creation, or the call for work, that it begins with, if it was seen.
    pub starts: Vec<Option<(u32, u64)>>,
    /// Threads of which it was not.
    pub unknown: usize,
}

/// Bytes that a thread's frames may lie below its handle at most: a stack's size.
const MOST_STACK: u64 = 1 << 32;

/// Bytes of a stack at least (`PTHREAD_STACK_MIN`).
const LEAST_STACK: u64 = 1 << 14;

/// A release of an object.
#[derive(Clone, Copy)]
struct Latest {
    thread: u32,
    releases: u64,
    is_update: bool,
}

/// A release of an object by a thread, among all of its.
#[derive(Clone, Copy)]
struct Given {
    stamp: u64,
    releases: u64,
    is_update: bool,
}

/// Computes which thread waits for which.
///
/// An acquisition comes after the latest releases of its object by other threads whose stamps are
/// smaller. A barrier is left for the *n*th time by a thread when the others have arrived for the
/// *n*th time. An atomic read-modify-write does not wait for another: the schedule decided which of
/// them came first. On one of `locks` it does: a thread gets a lock when another one has given it
/// back.
///
/// A waiting loop whose thread comes back late sees more releases than it waited for; the schedule
/// decided how many. If only one other thread releases, the loop waits for the first release after
/// its last look in vain. If its first look saw enough, it waits for one release more than the time
/// before, if there was one more.
pub(super) fn orders(threads: &[ThreadFacts], locks: &FxHashSet<Object>) -> Orders {
    let (mut starts, ends) = lives(threads);
    let mut orders = Orders { waits: vec![Vec::new(); threads.len()], ..Orders::default() };
    let mut releasers: FxHashMap<Object, Vec<u32>> = FxHashMap::default();
    for (thread, facts) in (0u32..).zip(threads) {
        for event in facts.events.iter().filter(|event| event.kind.releases()) {
            let of_object = releasers.entry((facts.process, event.object)).or_default();
            if of_object.last() != Some(&thread) {
                of_object.push(thread);
            }
        }
    }
    let looks = (threads.iter())
        .flat_map(|facts| facts.events.iter().map(|event| (facts.process, event)))
        .filter(|(_, event)| event.look().is_some());
    let mut state = State {
        threads,
        locks,
        looked_at: looks.map(|(process, event)| (process, event.object)).collect(),
        releasers,
        given: FxHashMap::default(),
        seen: FxHashMap::default(),
        released: vec![0; threads.len()],
        acquired: vec![0; threads.len()],
        known: vec![FxHashMap::default(); threads.len()],
        latest: FxHashMap::default(),
        arrived: FxHashMap::default(),
        left: FxHashMap::default(),
        ends,
    };
    for (stamp, thread, number) in InOrder::of(threads) {
        if let Some((ordinal, waits)) = state.event(stamp, thread, number) {
            // A library made it, and it begins by waiting for work.
            let start = &mut starts[thread as usize];
            if number == 0 && start.is_none() && !threads[thread as usize].acts_first {
                *start = waits.iter().copied().min();
            }
            orders.waits[thread as usize].push((ordinal, waits));
        }
    }
    orders.unknown =
        threads.iter().zip(&starts).filter(|(facts, start)| !facts.is_first && start.is_none()).count();
    orders.starts = starts;
    orders
}

/// The events of all threads in the order of their times: when, whose, and which of its events.
///
/// An event is not before the one in front of it of its thread. Of one time, what releases comes first.
struct InOrder<'t> {
    threads: Vec<Upcoming<'t>>,
    /// The next event of each thread that has one: time, whether it acquires, thread, number.
    next: BinaryHeap<Reverse<(u64, bool, u32, usize)>>,
}

/// The events of a thread that are still to come.
struct Upcoming<'t> {
    events: &'t [SyncEvent],
    /// The first that is not in `now`.
    at: usize,
    /// The time of those in `now`.
    time: u64,
    /// Numbers of events of one time, the last first.
    now: Vec<usize>,
}

impl<'t> InOrder<'t> {
    fn of(threads: &'t [ThreadFacts]) -> InOrder<'t> {
        let upcoming =
            |facts: &'t ThreadFacts| Upcoming { events: &facts.events, at: 0, time: 0, now: Vec::new() };
        let mut all = InOrder { threads: threads.iter().map(upcoming).collect(), next: BinaryHeap::new() };
        (0..threads.len() as u32).for_each(|thread| all.supply(thread));
        all
    }

    fn supply(&mut self, thread: u32) {
        let upcoming = &mut self.threads[thread as usize];
        if let Some((time, number)) = upcoming.next() {
            let acquires = !upcoming.events[number].kind.releases();
            self.next.push(Reverse((time, acquires, thread, number)));
        }
    }
}

impl Iterator for InOrder<'_> {
    type Item = (u64, u32, usize);

    fn next(&mut self) -> Option<(u64, u32, usize)> {
        let Reverse((time, _, thread, number)) = self.next.pop()?;
        self.supply(thread);
        Some((time, thread, number))
    }
}

impl Upcoming<'_> {
    fn next(&mut self) -> Option<(u64, usize)> {
        if self.now.is_empty() {
            self.time = self.events.get(self.at)?.stamp.max(self.time);
            let until = self.events[self.at..].iter().position(|event| event.stamp > self.time);
            let until = until.map_or(self.events.len(), |more| self.at + more);
            self.now.extend((self.at..until).rev());
            self.now.sort_by_key(|&number| self.events[number].kind.releases());
            self.at = until;
        }
        Some((self.time, self.now.pop()?))
    }
}

pub(super) type Object = (Option<ProcessId>, u64);

/// Creations of threads by handle: when, and which.
pub(super) type Handles = FxHashMap<Object, Vec<(u64, u32)>>;

struct State<'t> {
    threads: &'t [ThreadFacts],
    /// Objects where an update waits for an update. Who counts first elsewhere is the schedule's.
    locks: &'t FxHashSet<Object>,
    /// Indexed by thread: releases and acquisitions so far.
    released: Vec<u64>,
    acquired: Vec<u64>,
    /// Indexed by thread: the releases that it has waited for already.
    known: Vec<FxHashMap<u32, u64>>,
    latest: FxHashMap<Object, Vec<Latest>>,
    /// Threads that ever release an object.
    releasers: FxHashMap<Object, Vec<u32>>,
    /// Objects that a waiting loop looks at.
    looked_at: FxHashSet<Object>,
    /// Releases of these by object and thread.
    given: FxHashMap<(Object, u32), Vec<Given>>,
    /// Number of them that the looks of a thread saw, by object.
    seen: FxHashMap<(Object, u32), usize>,
    /// Releases of each arrival at a barrier, by thread.
    arrived: FxHashMap<Object, FxHashMap<u32, Vec<u64>>>,
    /// Number of times that a thread left a barrier.
    left: FxHashMap<(Object, u32), usize>,
    /// Stamp of the creation and the thread, by handle.
    ends: Handles,
}

impl State<'_> {
    /// Processes an event; if it waits for other threads, returns its number among the acquisitions
    /// of its thread, and those threads.
    fn event(&mut self, stamp: u64, thread: u32, number: usize) -> Option<(u64, Waits)> {
        let facts = &self.threads[thread as usize];
        let event = facts.events[number];
        let object = (facts.process, event.object);
        if event.kind.releases() {
            self.released[thread as usize] += 1;
            self.release(object, event.kind, thread, stamp, event.is_update);
            return None;
        }
        let ordinal = self.acquired[thread as usize];
        self.acquired[thread as usize] += 1;
        let mut waits = match event.kind {
            SyncKind::Join => {
                let made = self.ends.get(&object).map_or(&[][..], |made| made);
                let joined = made.iter().rfind(|(created, _)| *created < stamp);
                // All of its releases, and its end, which is one more.
                joined
                    .map(|&(_, other)| (other, releases_of(&self.threads[other as usize]) + 1))
                    .into_iter()
                    .collect()
            }
            SyncKind::Leave => self.leave(object, thread),
            _ => match event.look().and_then(|in_vain| self.look(object, thread, event.is_update, in_vain)) {
                Some(seen) => seen,
                None => self.acquire(object, thread, event.is_update),
            },
        };
        let known = &mut self.known[thread as usize];
        waits.retain(|&(other, releases)| {
            let known = known.entry(other).or_default();
            let is_new = releases > *known;
            *known = releases.max(*known);
            is_new
        });
        (!waits.is_empty()).then_some((ordinal, waits))
    }

    fn release(&mut self, object: Object, kind: SyncKind, thread: u32, stamp: u64, is_update: bool) {
        let releases = self.released[thread as usize];
        match kind {
            SyncKind::Create => {}
            SyncKind::Arrive => {
                self.arrived.entry(object).or_default().entry(thread).or_default().push(releases);
            }
            _ => {
                let latest = self.latest.entry(object).or_default();
                latest.retain(|other| other.thread != thread || other.is_update != is_update);
                latest.push(Latest { thread, releases, is_update });
                if self.looked_at.contains(&object) {
                    let given = self.given.entry((object, thread)).or_default();
                    given.push(Given { stamp, releases, is_update });
                }
            }
        }
    }

    fn acquire(&self, object: Object, thread: u32, is_update: bool) -> Waits {
        let latest = self.latest.get(&object).map_or(&[][..], |latest| latest);
        let is_counted = is_update && !self.locks.contains(&object);
        let others = latest.iter().filter(|other| other.thread != thread && !(is_counted && other.is_update));
        others.map(|other| (other.thread, other.releases)).collect()
    }

    /// The release that a look waited for; none if several threads release, or if both are updates.
    fn look(&mut self, object: Object, thread: u32, is_update: bool, in_vain: u64) -> Option<Waits> {
        let mut others = self.releasers.get(&object)?.iter().filter(|&&other| other != thread);
        let (Some(&other), None) = (others.next(), others.next()) else { return None };
        let given = self.given.get(&(object, other)).map_or(&[][..], |given| given);
        let seen = self.seen.entry((object, thread)).or_default();
        let next = if in_vain > 0 { given.partition_point(|other| other.stamp <= in_vain) } else { *seen };
        *seen = given.len().min(next.max(*seen) + 1);
        let Some(release) = seen.checked_sub(1).and_then(|at| given.get(at)) else {
            return Some(Waits::new());
        };
        (!(is_update && release.is_update)).then(|| vec![(other, release.releases)])
    }

    fn leave(&mut self, object: Object, thread: u32) -> Waits {
        let round = self.left.entry((object, thread)).or_default();
        let arrived = self.arrived.get(&object);
        let others = arrived.into_iter().flatten().filter(|(other, _)| **other != thread);
        let waits = others.filter_map(|(&other, arrivals)| Some((other, *arrivals.get(*round)?))).collect();
        *round += 1;
        waits
    }
}

fn releases_of(facts: &ThreadFacts) -> u64 {
    facts.events.iter().filter(|event| event.kind.releases()).count() as u64
}

/// Pairs threads with their creations, and handles with threads.
///
/// A thread's handle lies above its stack, and is known from its creation or from the thread that
/// joined it. Where a handle is used again, threads and creations are paired in their order, and so
/// are those whose creator did not know the handle.
pub(super) fn lives(threads: &[ThreadFacts]) -> (Vec<Option<(u32, u64)>>, Handles) {
    let mut made: FxHashMap<Object, Vec<Creation>> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let releases = facts.events.iter().filter(|event| event.kind.releases());
        for (ordinal, event) in (1..).zip(releases).filter(|(_, event)| event.kind == SyncKind::Create) {
            made.entry((facts.process, event.object)).or_default().push((event.stamp, number, ordinal));
        }
        for event in facts.events.iter().filter(|event| event.kind == SyncKind::Join) {
            made.entry((facts.process, event.object)).or_default();
        }
    }
    made.values_mut().for_each(|made| made.sort_unstable());
    let mut users: FxHashMap<Object, Vec<u32>> = FxHashMap::default();
    let mut handles: FxHashMap<u32, Object> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads).filter(|(_, facts)| !facts.is_first) {
        let Some(frame) = facts.frame else { continue };
        let above = made.keys().filter(|(process, handle)| {
            *process == facts.process && *handle > frame && handle - frame < MOST_STACK
        });
        if let Some(&handle) = above.min_by_key(|(_, handle)| *handle) {
            handles.insert(number, handle);
            users.entry(handle).or_default().push(number);
        }
    }
    let mut starts = vec![None; threads.len()];
    for (handle, mut users) in users {
        // A thread whose handle is not known lies below another's: that one's first frame is nearer to it.
        if made.contains_key(&(handle.0, u64::from(stream::UNKNOWN_HANDLE))) {
            let below = |user: u32| threads[user as usize].frame.map_or(u64::MAX, |frame| handle.1 - frame);
            let nearest = users.iter().map(|&user| below(user)).min().unwrap_or(0);
            users.retain(|&user| below(user) - nearest < LEAST_STACK || handles.remove(&user).is_none());
        }
        users.sort_by_key(|&user| threads[user as usize].began);
        pair(threads, &made[&handle], &users, &mut starts);
    }
    for (&(process, object), made) in &made {
        if object == u64::from(stream::UNKNOWN_HANDLE) {
            let is_left = |&user: &u32| {
                let facts = &threads[user as usize];
                facts.process == process && !facts.is_first && starts[user as usize].is_none()
            };
            let mut users: Vec<u32> = (0..threads.len() as u32).filter(is_left).collect();
            users.sort_by_key(|&user| threads[user as usize].began);
            pair(threads, made, &users, &mut starts);
        }
    }
    let mut ends = Handles::default();
    for (&user, &handle) in &handles {
        if let Some((stamp, _)) = starts[user as usize] {
            ends.entry(handle).or_default().push((stamp, user));
        }
    }
    ends.values_mut().for_each(|ends| ends.sort_unstable());
    let starts = starts.into_iter().map(|start| start.map(|(_, creation)| creation)).collect();
    (starts, ends)
}

/// When a thread was created, by which, and that one's releases by then.
type Creation = (u64, u32, u64);

/// When a thread was created, by which, and at which of its releases, if that is known.
type Start = Option<(u64, (u32, u64))>;

/// Pairs threads, in the order in which they began, with creations of threads, in theirs.
fn pair(threads: &[ThreadFacts], made: &[Creation], users: &[u32], starts: &mut [Start]) {
    let mut first = 0;
    for (place, &user) in users.iter().enumerate() {
        // Those behind it need one each.
        let last = made.len().saturating_sub(users.len() - place);
        let began = threads[user as usize].began;
        let nearest = (first..=last).min_by_key(|&at| made.get(at).map_or(u64::MAX, |m| m.0.abs_diff(began)));
        let Some(&(stamp, creator, ordinal)) = nearest.and_then(|at| made.get(at)) else { continue };
        first = nearest.map_or(first, |at| at + 1);
        starts[user as usize] = Some((stamp, (creator, ordinal)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of process 0 that does something to object 8 at each time.
    fn thread(events: &[(u64, SyncKind, Option<u64>)]) -> ThreadFacts {
        let event = |&(stamp, kind, look): &(u64, SyncKind, Option<u64>)| {
            SyncEvent::new(stamp, kind, 8).with_look(look)
        };
        ThreadFacts {
            process: Some(ProcessId(0)),
            is_first: true,
            events: events.iter().map(event).collect(),
            ..ThreadFacts::default()
        }
    }

    fn releases(stamps: &[u64]) -> ThreadFacts {
        thread(&stamps.iter().map(|&stamp| (stamp, SyncKind::Release, None)).collect::<Vec<_>>())
    }

    #[test]
    fn events_of_threads_are_in_the_order_of_their_times() {
        let kinds = [SyncKind::Acquire, SyncKind::Release, SyncKind::Lock];
        // Few times, and some of them backwards.
        let draw = |of: u64, at: u64| (of * 7919 + at * 104_729) % 31;
        let event = |of, at| ((draw(of, at) + at) / 3, kinds[draw(at, of) as usize % 3], None);
        let events = |of| (0..40).map(|at| event(of, at)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|of| thread(&events(of))).collect();
        let mut sorted = Vec::new();
        for (number, facts) in (0u32..).zip(&threads) {
            let mut latest = 0;
            for (at, event) in facts.events.iter().enumerate() {
                latest = event.stamp.max(latest);
                sorted.push((latest, !event.kind.releases(), number, at));
            }
        }
        sorted.sort_unstable();
        let sorted: Vec<_> = sorted.into_iter().map(|(time, _, thread, at)| (time, thread, at)).collect();
        assert_eq!(InOrder::of(&threads).collect::<Vec<_>>(), sorted);
    }

    #[test]
    fn a_look_waits_for_what_it_could_not_do_without() {
        let looks = [
            (15, SyncKind::Acquire, Some(0)),  // at once: one release
            (55, SyncKind::Acquire, Some(25)), // in vain at 25: the first behind it, of those at 30, 40 and 50
            (56, SyncKind::Acquire, Some(0)),  // at once: one more
            (57, SyncKind::Acquire, Some(0)),
            (58, SyncKind::Acquire, Some(0)), // there is none
        ];
        let writer = releases(&[10, 20, 30, 40, 50]);
        let orders = orders(&[writer, thread(&looks)], &FxHashSet::default());
        let expected = [(0, 1), (1, 3), (2, 4), (3, 5)].map(|(look, release)| (look, vec![(0, release)]));
        assert_eq!(orders.waits[1], expected);
    }

    #[test]
    fn an_update_waits_for_that_of_a_lock() {
        let update = |(stamp, kind)| SyncEvent::new(stamp, kind, 8).updating(true);
        let by = |event| ThreadFacts { events: vec![update(event)], ..releases(&[]) };
        let threads = [by((10, SyncKind::Release)), by((20, SyncKind::Acquire))];
        let lock = (Some(ProcessId(0)), 8);
        assert!(orders(&threads, &FxHashSet::default()).waits[1].is_empty(), "a counter");
        assert_eq!(orders(&threads, &FxHashSet::from_iter([lock])).waits[1], [(0, vec![(0, 1)])]);
    }

    #[test]
    fn an_acquisition_waits_for_what_it_saw() {
        let late = thread(&[(55, SyncKind::Acquire, None)]);
        let one = orders(&[releases(&[10, 20, 60]), late], &FxHashSet::default());
        assert_eq!(one.waits[1], [(0, vec![(0, 2)])]);
        // Where several release, a look does, too.
        let look = thread(&[(55, SyncKind::Acquire, Some(5))]);
        let several = orders(&[releases(&[10, 20]), look, releases(&[30, 40])], &FxHashSet::default());
        assert_eq!(several.waits[1], [(0, vec![(0, 2), (2, 2)])]);
    }
}
