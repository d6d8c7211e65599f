//! Lines that go from a thread to one that it creates, and back when that one is joined: no thread
//! takes them from another.
//!
//! A thread's life is cut into eras by the threads that it creates and joins. If one thread created
//! the other, a line that both use is not shared as long as the creator uses it only in eras before
//! the other begins or after it ends. Most data that a program passes to its threads, or takes from
//! them in the end, are of this kind. Following each access to them would take most of a report's
//! time.

use memlode_trace::event::{ProcessId, SyncKind};
use rustc_hash::FxHashMap;

use super::order::lives;
use super::survey::ThreadFacts;

/// Number of the last era that is distinguished; it includes all later ones.
const LAST: u32 = u32::BITS - 1;

/// Eras of a thread, a bit each.
pub(super) type Eras = u32;

/// Returns the bit of an era, counted from 0.
pub(super) fn era(number: u32) -> Eras {
    1 << number.min(LAST)
}

/// Returns whether an event begins an era.
pub(super) fn begins_era(kind: SyncKind) -> bool {
    matches!(kind, SyncKind::Create | SyncKind::Join)
}

/// The thread that made another one, and its eras in which that one does not live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    by: u32,
    without: Eras,
}

/// The threads that were made.
pub(super) struct Families(Vec<Option<Made>>);

impl Families {
    /// Finds out which thread made which.
    pub fn of(threads: &[ThreadFacts]) -> Families {
        let (starts, handles) = lives(threads);
        let mut born: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let mut joined: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for (maker, facts) in (0u32..).zip(threads) {
            let (mut number, mut releases) = (0, 0);
            for event in &facts.events {
                releases += u64::from(event.kind.releases());
                if !begins_era(event.kind) {
                    continue;
                }
                if event.kind == SyncKind::Create {
                    born.insert((maker, releases), number);
                }
                number += 1;
                if event.kind == SyncKind::Join {
                    let object: (Option<ProcessId>, u64) = (facts.process, event.object);
                    let of_handle = handles.get(&object).map_or(&[][..], |made| made);
                    if let Some(&(_, thread)) = of_handle.iter().rfind(|(created, _)| *created < event.stamp)
                    {
                        joined.insert((maker, thread), number);
                    }
                }
            }
        }
        let made = (0u32..).zip(starts).map(|(thread, start)| {
            let (by, release) = start?;
            let before = *born.get(&(by, release))?;
            // The last era may have later ones, too.
            let before = if before < LAST { (2 << before) - 1 } else { 0 };
            let after = joined.get(&(by, thread)).filter(|&&first| first <= LAST);
            Some(Made { by, without: before | after.map_or(0, |&first| Eras::MAX << first) })
        });
        Families(made.collect())
    }

    /// Returns whether two threads that use a line in these eras only hand it over.
    pub fn hand_over(&self, (one, eras): (u32, Eras), (other, of_other): (u32, Eras)) -> bool {
        let is_outside = |made: u32, maker: u32, eras: Eras| {
            self.0[made as usize].is_some_and(|made| made.by == maker && eras & !made.without == 0)
        };
        is_outside(other, one, eras) || is_outside(one, other, of_other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::survey::SyncEvent;

    fn thread(is_first: bool, frame: u64, events: &[(u64, SyncKind, u64)]) -> ThreadFacts {
        let event = |&(stamp, kind, object): &(u64, SyncKind, u64)| SyncEvent::new(stamp, kind, object);
        ThreadFacts {
            process: Some(ProcessId(0)),
            is_first,
            frame: Some(frame),
            began: frame,
            events: events.iter().map(event).collect(),
            ..ThreadFacts::default()
        }
    }

    #[test]
    fn a_maker_shares_only_while_the_other_lives() {
        use SyncKind::{Create, Join};
        let maker =
            thread(true, 9000, &[(10, Create, 100), (20, Create, 300), (30, Join, 100), (40, Join, 300)]);
        let families = Families::of(&[maker, thread(false, 50, &[]), thread(false, 250, &[])]);
        let hands = |eras: &[u32], other: u32| {
            let eras = eras.iter().map(|&number| era(number)).fold(0, |all, one| all | one);
            let both = [families.hand_over((0, eras), (other, 1)), families.hand_over((other, 1), (0, eras))];
            assert_eq!(both[0], both[1]);
            both[0]
        };
        // Era 0 is before both, 1 behind the first creation, 3 behind the first join, 4 and later behind the other one.
        assert!(hands(&[0, 3, 4], 1) && hands(&[0, 1, 4, 77], 2));
        assert!(!hands(&[1], 1) && !hands(&[0, 2, 4], 1) && !hands(&[3], 2) && !hands(&[2], 2));
        assert!(!families.hand_over((1, 1), (2, 1)), "neither made the other");
    }
}
