//! Locks that several threads take: who got one when is the schedule's doing, so their cost has a
//! range.

use memlode_machine::SharingCosts;
use memlode_simulate::Space;
use memlode_trace::event::{ProcessId, SyncKind, ThreadId};
use memlode_trace::sites::SiteId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::order::Object;
use super::survey::{SyncEvent, ThreadFacts};
use super::{Names, SharedPair};
use crate::objects::classes::ClassId;

/// If all threads but one together take a lock less often than this, it costs little in any order.
const LEAST_TAKES: u64 = 1000;

/// The most single locks that are examined, those that are taken most.
const MOST: usize = 1 << 12;

/// Locks of one class that several threads take in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct ContendedLock {
    /// The class of the object that they lie in.
    pub class: ClassId,
    /// A site that takes one; none if a library does.
    pub site: Option<SiteId>,
    /// Number of locks.
    pub locks: u64,
    /// The threads that take one, in their order.
    pub threads: Vec<ThreadId>,
    /// Number of times that one was taken.
    pub takes: u64,
    /// Number of these where another thread had it before, as recorded.
    pub changes: u64,
    /// Number of changes if threads took turns.
    pub most_changes: u64,
    /// Cycles lost to the lines of the locks, as recorded.
    pub cycles: f64,
    /// Cycles lost if threads took turns. Each time, the line comes to the thread that takes the
    /// lock. It comes again when the thread releases the lock, as others have looked at it.
    pub most_cycles: f64,
}

/// The locks of a program.
#[derive(Default)]
pub(super) struct Locks {
    /// Locks that a thread gives back before another one takes them: also where both are atomic
    /// updates, the one waits for the other.
    pub exclusive: FxHashSet<Object>,
    /// Locks that more than one thread takes often, the most taken.
    often: Vec<((ProcessId, u64), Taken)>,
}

/// One lock.
#[derive(Default)]
struct Taken {
    /// Stamp and thread of each time.
    times: Vec<(u64, u32)>,
    site: Option<SiteId>,
    /// Number of times that who had taken it gave it back.
    given_back: u64,
}

/// Finds the locks that several threads take often, the costliest first.
pub(super) fn contended(
    names: &Names<'_>,
    pairs: &[SharedPair],
    costs: &SharingCosts,
    locks: Locks,
) -> Vec<ContendedLock> {
    let threads = &names.survey.threads;
    let mut found: FxHashMap<(ClassId, Option<SiteId>), ContendedLock> = FxHashMap::default();
    let mut lines: FxHashMap<(ClassId, Option<SiteId>), Vec<u64>> = FxHashMap::default();
    for ((process, object), mut taken) in locks.often {
        taken.times.sort_unstable();
        let key = (names.class_at(process, object), taken.site);
        let lock = found.entry(key).or_insert_with(|| ContendedLock {
            class: key.0,
            site: key.1,
            locks: 0,
            threads: Vec::new(),
            takes: 0,
            changes: 0,
            most_changes: 0,
            cycles: 0.0,
            most_cycles: 0.0,
        });
        let takes = taken.times.len() as u64;
        let by_others = takes - most_by_one(&taken.times);
        lock.locks += 1;
        lock.takes += takes;
        lock.changes += taken.times.windows(2).filter(|two| two[0].1 != two[1].1).count() as u64;
        lock.most_changes += (2 * by_others).min(takes - 1);
        lock.threads.extend(taken.times.iter().filter_map(|&(_, thread)| threads[thread as usize].thread));
        lock.threads.sort_unstable();
        lock.threads.dedup();
        let line = Space::of(process.0).place(object) / names.survey.size.bytes * names.survey.size.bytes;
        lines.entry(key).or_default().push(line);
    }
    for (key, lock) in &mut found {
        let lines = &mut lines.entry(*key).or_default();
        lines.sort_unstable();
        let of_lock = pairs.iter().filter(|pair| lines.binary_search(&pair.line).is_ok());
        lock.cycles = of_lock.map(|pair| pair.cycles).sum();
        let turns = lock.most_changes as f64 * 2.0 * costs.transfer_cycles.value;
        lock.most_cycles = turns.max(lock.cycles);
    }
    let mut found: Vec<ContendedLock> = found.into_values().collect();
    found.sort_by(|a, b| {
        b.most_cycles.total_cmp(&a.most_cycles).then(a.class.cmp(&b.class)).then(a.site.cmp(&b.site))
    });
    found
}

/// Finds the locks of some threads.
pub(super) fn locks(threads: &[ThreadFacts]) -> Locks {
    let by_others = |taken: &Taken| taken.times.len() as u64 - most_by_one(&taken.times);
    let mut found = Locks::default();
    for ((process, object), taken) in taken(threads) {
        if taken.given_back * 10 >= taken.times.len() as u64 * 9 {
            found.exclusive.insert((Some(process), object));
        }
        if by_others(&taken) >= LEAST_TAKES {
            found.often.push(((process, object), taken));
        }
    }
    found.often.sort_by_key(|(object, taken)| (std::cmp::Reverse(taken.times.len()), *object));
    found.often.truncate(MOST);
    found
}

/// An access by a thread to an object that may be a lock, by its purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// An atomic update acquires, a load sees what it waits for, or a semaphore was waited for.
    Takes,
    /// A loop that waits has ended, by what only one thread at a time can do.
    Gets,
    /// A store or an update releases, or a semaphore is posted.
    Gives,
    /// One update acquires and releases. What came before shows which of the two is meant.
    Both,
}

/// A deed, when and by which thread.
#[derive(Clone, Copy)]
struct Step {
    stamp: u64,
    thread: u32,
    deed: Deed,
    site: Option<SiteId>,
}

/// The deeds of a thread, with their objects, stamps and sites.
fn deeds(events: &[SyncEvent]) -> impl Iterator<Item = (u64, Deed, &SyncEvent)> {
    let mut rest = events;
    let mut before: Option<&SyncEvent> = None;
    std::iter::from_fn(move || {
        loop {
            let (event, behind) = rest.split_first()?;
            rest = behind;
            // Who waits for a condition gives back its mutex in front, and takes it behind.
            let gave_back = before.replace(event).filter(|before| before.kind == SyncKind::Unlock);
            let takes = behind.first().filter(|next| next.kind == SyncKind::Lock);
            let is_condition = gave_back.zip(takes).is_some_and(|(one, other)| one.object == other.object);
            let is_of_next = |next: &&SyncEvent| {
                next.kind == SyncKind::Acquire && (next.object, next.site()) == (event.object, event.site())
            };
            let (deed, event) = match event.kind {
                SyncKind::Lock => (Deed::Gets, event),
                SyncKind::Wait if !is_condition => (Deed::Takes, event),
                SyncKind::Signal => (Deed::Gives, event),
                SyncKind::Acquire => match (event.is_update, event.look()) {
                    (true, Some(_)) => (Deed::Gets, event),
                    (false, None) => continue,
                    _ => (Deed::Takes, event),
                },
                SyncKind::Release => match behind.first().filter(is_of_next).filter(|_| event.is_update) {
                    Some(next) => {
                        rest = &behind[1..];
                        (if next.look().is_some() { Deed::Gets } else { Deed::Both }, next)
                    }
                    None => (Deed::Gives, event),
                },
                _ => continue,
            };
            return Some((event.object, deed, event));
        }
    })
}

/// Counts of the deeds of all threads with an object.
#[derive(Default)]
struct Uses {
    /// The thread that takes it; none if several do.
    by: Option<u32>,
    takes: u64,
    gets: u64,
    both: u64,
}

impl Uses {
    /// Returns whether it may be a lock of several threads: either a loop waits for it, or one access
    /// takes it and another one gives it back. A counter's accesses do both.
    fn may_be_lock(&self) -> bool {
        self.by.is_none() && (self.gets > 0 || self.takes > 0 && self.both <= self.takes / 10)
    }
}

/// Objects that threads take as a lock, and when each took them.
///
/// A mutex is taken by an update, often without a loop, a ticket lock by a load that sees one's
/// turn, and a semaphore by a wait: the thread that has it gives it back before another one takes it.
/// Of a barrier or a flag, all that wait see it; of two threads that answer each other by a variable,
/// none has it twice in a row.
fn taken(threads: &[ThreadFacts]) -> impl Iterator<Item = ((ProcessId, u64), Taken)> {
    let mut uses: FxHashMap<(ProcessId, u64), Uses> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let Some(process) = facts.process else { continue };
        for (object, deed, _) in deeds(&facts.events) {
            if deed == Deed::Gives {
                continue;
            }
            let new = || Uses { by: Some(number), ..Uses::default() };
            let uses = uses.entry((process, object)).or_insert_with(new);
            uses.by = uses.by.filter(|&by| by == number);
            match deed {
                Deed::Takes => uses.takes += 1,
                Deed::Gets => uses.gets += 1,
                Deed::Both | Deed::Gives => uses.both += 1,
            }
        }
    }
    uses.retain(|_, uses| uses.may_be_lock());
    let mut steps: FxHashMap<(ProcessId, u64), Vec<Step>> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let Some(process) = facts.process else { continue };
        for (object, deed, event) in deeds(&facts.events) {
            if uses.contains_key(&(process, object)) {
                let step = Step { stamp: event.stamp, thread: number, deed, site: event.site() };
                steps.entry((process, object)).or_default().push(step);
            }
        }
    }
    steps.into_iter().filter_map(|(object, mut steps)| {
        steps.sort_unstable_by_key(|step| (step.stamp, step.thread));
        Some((object, as_lock(&steps)?))
    })
}

/// When each thread took an object, from what all do with it, in order; none if it is no lock.
fn as_lock(steps: &[Step]) -> Option<Taken> {
    let mut taken = Taken::default();
    // Who has it since when, and whether that is counted.
    let mut has: Option<(u64, u32, bool)> = None;
    let (mut seen, mut gets) = (0, 0);
    for &Step { stamp, thread, deed, site } in steps {
        let is_own = has.is_some_and(|(_, holder, _)| holder == thread);
        let gives = deed == Deed::Gives || deed == Deed::Both && is_own;
        match deed {
            _ if gives => {
                let own = has.take().filter(|_| is_own);
                taken.given_back += u64::from(own.is_some());
                let uncounted = own.filter(|&(.., is_counted)| !is_counted);
                taken.times.extend(uncounted.map(|(stamp, holder, _)| (stamp, holder)));
            }
            Deed::Gets => {
                gets += 1;
                taken.times.push((stamp, thread));
                has = Some((stamp, thread, true));
            }
            _ => {
                seen += 1;
                has = Some((stamp, thread, false));
            }
        }
        taken.site = taken.site.or(site.filter(|_| !gives));
    }
    let is_taken_again = taken.times.windows(2).any(|two| two[0].1 == two[1].1);
    (gets > 0 || is_taken_again && taken.times.len() * 10 >= seen * 9).then_some(taken)
}

/// The number of times that the thread took a lock that did so most often.
fn most_by_one(times: &[(u64, u32)]) -> u64 {
    let mut by_thread: FxHashMap<u32, u64> = FxHashMap::default();
    times.iter().for_each(|&(_, thread)| *by_thread.entry(thread).or_default() += 1);
    by_thread.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(events: &[(u64, SyncKind, bool)]) -> ThreadFacts {
        let event = |&(stamp, kind, looks): &(u64, SyncKind, bool)| {
            let event = SyncEvent::new(stamp, kind, 8).updating(true);
            event.with_look(looks.then_some(0)).with_site(Some(SiteId(3)))
        };
        ThreadFacts {
            process: Some(ProcessId(0)),
            events: events.iter().map(event).collect(),
            ..ThreadFacts::default()
        }
    }

    #[test]
    fn what_one_thread_takes_is_no_lock_of_several() {
        let takes = |from: u64, count: u64| {
            (from..from + count).map(|at| (at, SyncKind::Acquire, true)).collect::<Vec<_>>()
        };
        let two = |mine, others| locks(&[thread(&takes(0, mine)), thread(&takes(mine, others))]).often;
        assert!(two(5000, LEAST_TAKES - 1).is_empty());
        let [(object, taken)] = &two(5000, LEAST_TAKES)[..] else { panic!("one lock") };
        assert_eq!((*object, taken.times.len(), taken.site), ((ProcessId(0), 8), 6000, Some(SiteId(3))));
        assert_eq!(most_by_one(&taken.times), 5000);
        // A counter is no lock: nobody waits for it.
        let counts =
            |from: u64| (from..from + 2000).map(|at| (at, SyncKind::Acquire, false)).collect::<Vec<_>>();
        assert!(locks(&[thread(&counts(0)), thread(&counts(9000))]).often.is_empty());
    }

    /// Two threads that make a step in turn, each a number of times in a row.
    fn in_turn(in_a_row: u64, step: impl Fn(u64) -> Vec<SyncEvent>) -> [ThreadFacts; 2] {
        [0, 1].map(|turn| ThreadFacts {
            process: Some(ProcessId(0)),
            events: (0..4 * LEAST_TAKES)
                .filter(|at| at / in_a_row % 2 == turn)
                .flat_map(|at| step(10 * at))
                .collect(),
            ..ThreadFacts::default()
        })
    }

    #[test]
    fn a_lock_is_given_on_by_the_one_that_has_it() {
        let by = |stamp, kind, site| SyncEvent::new(stamp, kind, 8).with_site(Some(SiteId(site)));
        let sees = |at| by(at, SyncKind::Acquire, 1).with_look(Some(0));
        let gives = |at| by(at, SyncKind::Release, 2);
        let updates =
            |at, site| [SyncKind::Release, SyncKind::Acquire].map(|kind| by(at, kind, site).updating(true));
        let taken = |threads: &[ThreadFacts]| {
            locks(threads).often.iter().map(|(_, taken)| taken.times.len() as u64).collect::<Vec<_>>()
        };
        // A ticket lock, and a mutex that nobody has to wait for.
        assert_eq!(taken(&in_turn(5, |at| vec![sees(at), gives(at + 2)])), [4 * LEAST_TAKES]);
        let takes = |at| by(at, SyncKind::Acquire, 1).updating(true);
        assert_eq!(taken(&in_turn(5, |at| vec![takes(at), gives(at + 2)])), [4 * LEAST_TAKES]);
        // One whose operations order everything, and for which somebody waited once.
        let both = |at| [updates(at, 1), updates(at + 2, 2)].concat();
        let mut mutex = in_turn(5, both);
        assert!(taken(&mutex).is_empty(), "it could be a counter");
        mutex[0].events[1] = mutex[0].events[1].with_look(Some(0));
        assert_eq!(taken(&mutex), [4 * LEAST_TAKES]);
        // A semaphore; not one of many items, nor a condition, whose mutex is the lock.
        let event = |stamp, kind, object| SyncEvent::new(stamp, kind, object);
        let semaphore = |at| vec![event(at, SyncKind::Wait, 8), event(at + 2, SyncKind::Signal, 8)];
        assert_eq!(taken(&in_turn(5, semaphore)), [4 * LEAST_TAKES]);
        let [items, mut more] = in_turn(5, |at| vec![event(at, SyncKind::Wait, 8)]);
        more.events.iter_mut().for_each(|event| event.kind = SyncKind::Signal);
        assert!(taken(&[items, more]).is_empty());
        let waits =
            [(SyncKind::Unlock, 16), (SyncKind::Wait, 8), (SyncKind::Lock, 16), (SyncKind::Signal, 8)];
        let condition = |at| waits.iter().zip(at..).map(|(&(kind, of), at)| event(at, kind, of)).collect();
        assert_eq!(locks(&in_turn(5, condition)).often.iter().map(|(of, _)| of.1).collect::<Vec<_>>(), [16]);
        // Two that answer each other, a flag that one sets and both see, a counter.
        assert!(taken(&in_turn(1, |at| vec![sees(at), gives(at + 2)])).is_empty());
        let [mut first, second] = in_turn(1, |at| vec![sees(at + 2)]);
        first.events = (0..4 * LEAST_TAKES).flat_map(|at| [gives(10 * at), sees(10 * at + 1)]).collect();
        assert!(taken(&[first, second]).is_empty());
        assert!(taken(&in_turn(5, |at| updates(at, 1).to_vec())).is_empty());
    }
}
