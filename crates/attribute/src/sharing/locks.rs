//! Locks that several threads take: who got one when is the schedule's doing, so their cost has a
//! range.

use memlode_machine::SharingCosts;
use memlode_simulate::Space;
use memlode_trace::event::{ProcessId, SyncKind, ThreadId};
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

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

/// One lock.
#[derive(Default)]
struct Taken {
    /// Stamp and thread of each time.
    times: Vec<(u64, u32)>,
    site: Option<SiteId>,
}

/// Returns whether an event shows that its thread got a lock: it did, in a loop that waits, what
/// only one thread at a time can do.
fn takes(event: &SyncEvent) -> bool {
    match event.kind {
        SyncKind::Lock => true,
        SyncKind::Acquire => event.is_update && event.look().is_some(),
        _ => false,
    }
}

/// Finds the locks that several threads take often, the costliest first.
pub(super) fn contended(names: &Names<'_>, pairs: &[SharedPair], costs: &SharingCosts) -> Vec<ContendedLock> {
    let threads = &names.survey.threads;
    let mut found: FxHashMap<(ClassId, Option<SiteId>), ContendedLock> = FxHashMap::default();
    let mut lines: FxHashMap<(ClassId, Option<SiteId>), Vec<u64>> = FxHashMap::default();
    for ((process, object), mut taken) in often_taken(threads) {
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

/// The locks that more than one thread takes often, the most taken.
fn often_taken(threads: &[ThreadFacts]) -> Vec<((ProcessId, u64), Taken)> {
    // Most locks of a program with many are one thread's.
    let mut takers: FxHashMap<(ProcessId, u64), Option<u32>> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let Some(process) = facts.process else { continue };
        for event in facts.events.iter().filter(|event| takes(event)) {
            let taker = takers.entry((process, event.object)).or_insert(Some(number));
            *taker = taker.filter(|&taker| taker == number);
        }
    }
    let mut all: FxHashMap<(ProcessId, u64), Taken> = FxHashMap::default();
    for (number, facts) in (0u32..).zip(threads) {
        let Some(process) = facts.process else { continue };
        for event in facts.events.iter().filter(|event| takes(event)) {
            if takers[&(process, event.object)].is_some() {
                continue;
            }
            let taken = all.entry((process, event.object)).or_default();
            taken.times.push((event.stamp, number));
            taken.site = taken.site.or(event.site());
        }
    }
    let by_others = |taken: &Taken| taken.times.len() as u64 - most_by_one(&taken.times);
    let mut found: Vec<_> = all.into_iter().filter(|(_, taken)| by_others(taken) >= LEAST_TAKES).collect();
    found.sort_by_key(|(object, taken)| (std::cmp::Reverse(taken.times.len()), *object));
    found.truncate(MOST);
    found
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
        let two = |mine, others| often_taken(&[thread(&takes(0, mine)), thread(&takes(mine, others))]);
        assert!(two(5000, LEAST_TAKES - 1).is_empty());
        let [(object, taken)] = &two(5000, LEAST_TAKES)[..] else { panic!("one lock") };
        assert_eq!((*object, taken.times.len(), taken.site), ((ProcessId(0), 8), 6000, Some(SiteId(3))));
        assert_eq!(most_by_one(&taken.times), 5000);
        // A counter is no lock: nobody waits for it.
        let counts =
            |from: u64| (from..from + 2000).map(|at| (at, SyncKind::Acquire, false)).collect::<Vec<_>>();
        assert!(often_taken(&[thread(&counts(0)), thread(&counts(9000))]).is_empty());
    }
}
