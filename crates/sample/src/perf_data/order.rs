//! The order of time. Each processor's records are written separately; the ends of rounds bound the
//! times of later records.

use std::collections::BTreeMap;

use crate::records::Record;

/// Records that wait for the end of their round, at most: some gigabytes.
const MOST_WAITING: usize = 1 << 24;

/// Records of the last rounds.
#[derive(Default)]
pub struct Rounds {
    /// Keyed by time, and then by the order of the file.
    waiting: BTreeMap<(u64, u64), (usize, Record)>,
    count: u64,
    newest: u64,
    /// The newest time of the round before.
    before: u64,
}

impl Rounds {
    /// Takes a record of the file.
    ///
    /// # Errors
    /// If too many wait.
    pub fn insert(&mut self, event: usize, record: Record) -> Result<(), String> {
        if self.waiting.len() >= MOST_WAITING {
            return Err(format!("it has more than {MOST_WAITING} records that no round of `perf` ends"));
        }
        self.newest = self.newest.max(record.time);
        self.waiting.insert((record.time, self.count), (event, record));
        self.count += 1;
        Ok(())
    }

    /// Passes on the records that are not later than the newest one of the round before.
    pub fn finish_round(&mut self, take: &mut dyn FnMut(usize, Record)) {
        let until = std::mem::replace(&mut self.before, self.newest);
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= until) {
            let (event, record) = first.remove();
            take(event, record);
        }
    }

    /// Hands over the rest.
    pub fn finish(self, take: &mut dyn FnMut(usize, Record)) {
        self.waiting.into_values().for_each(|(event, record)| take(event, record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::RecordEvent;

    /// The example of perf's own description of rounds.
    #[test]
    fn two_rounds_are_enough() {
        let (mut rounds, mut found) = (Rounds::default(), Vec::new());
        for (round, seen) in
            [(&[1, 2, 2, 3, 4][..], 0), (&[3, 4, 5, 5, 6, 7], 7), (&[6, 7, 8, 9, 10], 13), (&[], 16)]
        {
            for time in round {
                let record = Record { time: *time, pid: 0, tid: 0, event: RecordEvent::Throttled };
                rounds.insert(0, record).expect("room");
            }
            rounds.finish_round(&mut |_, record| found.push(record.time));
            assert_eq!(found.len(), seen);
        }
        rounds.finish(&mut |_, record| found.push(record.time));
        assert_eq!(found, [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10]);
    }
}
