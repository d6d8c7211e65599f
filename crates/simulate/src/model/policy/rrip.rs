//! Re-reference interval prediction with two bits a line, "hit priority" (Jaleel, Theobald, Steely,
//! Emer: "High Performance Cache Replacement Using Re-Reference Interval Prediction", ISCA 2010).
//!
//! A line carries a prediction from 0 (used again soon) to 3 (in the distant future). A hit
//! predicts 0. The victim is the first line predicted 3; while there is none, all of the set age by
//! one. A new line enters with 2 (static RRIP: scans leave before lines that were used again), or
//! with 3 except for every 32nd of the set, which enters with 2 (bimodal RRIP: most of a working
//! set that is too large leaves at once, so that the rest can stay). The paper draws lots for the
//! 32nd; a count per set keeps runs repeatable.

use super::Policy;

const DISTANT: u8 = 3;
const LONG: u8 = 2;
const BIMODAL: u8 = 32;

pub struct Rrip {
    ways: usize,
    predicted: Vec<u8>,
    /// Bimodal: fills of each set, modulo [`BIMODAL`]. Static: empty.
    fills: Vec<u8>,
}

impl Rrip {
    pub fn srrip(sets: usize, ways: usize) -> Rrip {
        Rrip { ways, predicted: vec![0; sets * ways], fills: Vec::new() }
    }

    pub fn brrip(sets: usize, ways: usize) -> Rrip {
        Rrip { fills: vec![0; sets], ..Rrip::srrip(sets, ways) }
    }
}

impl Policy for Rrip {
    #[inline]
    fn hit(&mut self, set: usize, way: usize) {
        self.predicted[set * self.ways + way] = 0;
    }

    fn filled(&mut self, set: usize, way: usize) {
        let long = self.fills.get_mut(set).is_none_or(|fills| {
            *fills = (*fills + 1) % BIMODAL;
            *fills == 0
        });
        self.predicted[set * self.ways + way] = if long { LONG } else { DISTANT };
    }

    fn victim(&mut self, set: usize) -> usize {
        let predicted = &mut self.predicted[set * self.ways..][..self.ways];
        // The first of those predicted farthest is the one that reaches 3 first.
        let farthest = predicted.iter().copied().max().unwrap_or(DISTANT);
        for line in predicted.iter_mut() {
            *line += DISTANT - farthest;
        }
        predicted.iter().position(|line| *line == DISTANT).unwrap_or(0)
    }
}
