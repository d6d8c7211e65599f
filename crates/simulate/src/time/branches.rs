//! Branches, as far as a trace shows them: the order of sites.
//!
//! A trace has no branches. But where one site is followed by different sites, there was a branch
//! between them. A small predictor like those of processors decides whether it could be predicted.
//! It has tables of the next site, by the site and by a short, a longer and a long history of
//! outcomes; the longest history that is known decides (Seznec and Michaud, "A case for (partially)
//! tagged geometric history length branch prediction", JILP 2006), and a predictor of loops that
//! always run for the same number of iterations.

/// Outcomes that the tables go by, the shortest first; places of each table.
const OUTCOMES: [u32; 3] = [2, 6, 16];
const PLACES: usize = 1 << 12;

/// Bits of an outcome in the history.
const BITS: u32 = 4;

/// The highest confidence, and the one from which a loop's iterations are believed.
const SURE: u8 = 3;

/// No site.
const NONE: u32 = u32::MAX;

/// The sites that have followed a site.
#[derive(Clone, Copy)]
struct Follower {
    next: u32,
    confidence: u8,
    /// The last other one.
    other: u32,
    /// It has been followed by more than one site.
    is_branch: bool,
    /// The number of times in a row that the follower was the same, that number when it last
    /// changed, and how often that prediction was right.
    run: u32,
    last_run: u32,
    same_runs: u8,
}

#[derive(Clone, Copy)]
struct Entry {
    tag: u32,
    next: u32,
    confidence: u8,
}

/// The predictor of a core.
pub(super) struct Branches {
    last: u32,
    followers: Vec<Follower>,
    history: u64,
    tables: [Vec<Entry>; 3],
}

impl Branches {
    /// Knows nothing.
    pub fn new() -> Branches {
        let entry = Entry { tag: NONE, next: NONE, confidence: 0 };
        Branches {
            last: NONE,
            followers: Vec::new(),
            history: 0,
            tables: std::array::from_fn(|_| vec![entry; PLACES]),
        }
    }

    /// A site is executed. If a branch before it was mispredicted, returns the predicted site.
    #[inline]
    pub fn goes_wrong(&mut self, site: u32) -> Option<u32> {
        let last = std::mem::replace(&mut self.last, site);
        if last == NONE {
            return None;
        }
        let known = last as usize;
        if self.followers.len() <= known {
            let follower = Follower {
                next: NONE,
                confidence: 0,
                other: NONE,
                is_branch: false,
                run: 0,
                last_run: 0,
                same_runs: 0,
            };
            self.followers.resize(known + 1, follower);
        }
        let follower = &mut self.followers[known];
        if !follower.is_branch {
            if follower.next == site {
                follower.confidence = (follower.confidence + 1).min(SURE);
                return None;
            }
            if follower.next == NONE {
                follower.next = site;
                return None;
            }
            follower.is_branch = true;
        }
        Some(self.foretell(last, site)).filter(|expected| *expected != site)
    }

    /// The sites that are expected to follow, `site` first: always the most frequent follower.
    pub fn path(&self, site: u32) -> impl Iterator<Item = u32> {
        let next = |site: &u32| self.followers.get(*site as usize).map(|follower| follower.next);
        std::iter::successors(Some(site), move |site| next(site).filter(|next| *next != NONE))
    }

    /// Returns the predicted follower of `last`, and learns that it was `site`.
    fn foretell(&mut self, last: u32, site: u32) -> u32 {
        let places: [(usize, u32); 3] = OUTCOMES.map(|outcomes| {
            let shift = 64 - (BITS * outcomes).min(64);
            let seen = if shift == 0 { self.history } else { self.history << shift };
            let mixed = (seen ^ u64::from(last).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .wrapping_mul(0xd6e8_feb8_6659_fd93)
                .wrapping_add(u64::from(outcomes));
            ((mixed >> 40) as usize % PLACES, (mixed >> 8) as u32)
        });
        let follower = &mut self.followers[last as usize];
        let mut provider = None;
        let mut expected = follower.next;
        for (number, &(place, tag)) in places.iter().enumerate() {
            let entry = &self.tables[number][place];
            if entry.tag == tag {
                provider = Some(number);
                expected = entry.next;
            }
        }
        // A loop that ended after so many iterations the last times does so again.
        let ends = follower.same_runs >= SURE && follower.run == follower.last_run;
        let by_loop = follower.same_runs >= SURE && expected == follower.next;
        let foretold = match by_loop {
            true if ends => follower.other,
            true => follower.next,
            false => expected,
        };
        let is_right = if by_loop { ends != (follower.next == site) } else { expected == site };
        if site != follower.next {
            follower.other = site;
        }
        learn(&mut follower.next, &mut follower.confidence, &mut follower.run, site, |run| {
            follower.same_runs =
                if run == follower.last_run { (follower.same_runs + 1).min(SURE) } else { 0 };
            follower.last_run = run;
        });
        if let Some(number) = provider {
            let entry = &mut self.tables[number][places[number].0];
            if entry.next == site {
                entry.confidence = (entry.confidence + 1).min(SURE);
            } else if entry.confidence > 0 {
                entry.confidence -= 1;
            } else {
                entry.next = site;
            }
        }
        if expected != site {
            let longer = provider.map_or(0, |number| number + 1);
            for (number, &(place, tag)) in places.iter().enumerate().skip(longer) {
                let entry = &mut self.tables[number][place];
                if entry.confidence == 0 {
                    *entry = Entry { tag, next: site, confidence: 1 };
                    break;
                }
                entry.confidence -= 1;
            }
        }
        let outcome = u64::from(site.wrapping_mul(0x9e37_79b1) >> (32 - BITS));
        self.history = self.history << BITS | outcome;
        match is_right {
            true => site,
            // The other site that it may be is not this one.
            false if foretold == site => NONE,
            false => foretold,
        }
    }
}

/// The usual follower of a site, updated when another one comes often. `ended` receives the number
/// of iterations of a run.
fn learn(next: &mut u32, confidence: &mut u8, run: &mut u32, site: u32, ended: impl FnOnce(u32)) {
    if *next == site {
        *confidence = (*confidence + 1).min(SURE);
        *run += 1;
        return;
    }
    ended(std::mem::take(run));
    if *confidence > 0 {
        *confidence -= 1;
    } else {
        *next = site;
    }
}
