//! Work on the wrong path, from a mispredicted branch until its outcome is known.
//!
//! ```text
//!   branch          known
//!   │ wrong path    │
//!   ├───P───X───Y───┤       X and Y are asked for although they do not count
//!                   ├───B───X───Y───     and their lines are there, or on their way, when they do
//! ```
//! Code that follows both ways of a branch is executed on the wrong path as well, so its lines are
//! fetched early: Mutlu, Kim, Armstrong and Patt, "Understanding the effects of wrong-path memory
//! references on processor performance", WMPI 2004. The same predictor gives the sites on the wrong
//! path. The line of an access has been requested there if its site is behind the point where the
//! paths meet, and no load that its address depends on was on the right path alone.

use std::collections::VecDeque;

use super::TICKS;

/// Sites that a wrong path is followed for.
const SITES: usize = 16;
/// Wrong paths that are remembered.
const MOST: usize = 8;

/// A wrong path.
struct Wrong {
    /// Parts of instructions and accesses up to the branch.
    parts: u64,
    number: u64,
    /// Times of its dispatch, and when it is known.
    begins: u64,
    known: u64,
}

/// A core's wrong paths whose accesses have not come on the right path yet.
pub(super) struct WrongPaths {
    paths: VecDeque<Wrong>,
    instruction: u64,
    window_parts: u64,
    /// Sites of the last one, and whether the right one has come to one of them.
    sites: [u32; SITES],
    has_met: bool,
}

impl WrongPaths {
    /// Without wrong paths. An instruction takes `ticks`, and `most` parts of instructions are
    /// begun behind one that waits.
    pub fn new(instruction: u64, window_parts: u64) -> WrongPaths {
        WrongPaths {
            paths: VecDeque::new(),
            instruction,
            window_parts,
            sites: [u32::MAX; SITES],
            has_met: false,
        }
    }

    /// A branch of this place in the program was mispredicted to lead to these sites.
    pub fn begin(
        &mut self,
        (parts, number): (u64, u64),
        begins: u64,
        known: u64,
        sites: impl Iterator<Item = u32>,
    ) {
        self.sites = [u32::MAX; SITES];
        self.sites.iter_mut().zip(sites).for_each(|(place, site)| *place = site);
        self.has_met = false;
        if self.paths.len() < MOST && begins < known {
            self.paths.push_back(Wrong { parts, number, begins, known });
        }
    }

    /// The time at which an access was dispatched on a wrong path, given the parts of instructions
    /// up to it, and the number of accesses up to the branch.
    #[inline]
    pub fn dispatched(&mut self, parts: u64, site: u32) -> Option<EarlyDispatch> {
        loop {
            let wrong = self.paths.front()?;
            let ahead = parts - wrong.parts;
            let time = wrong.begins + ahead * self.instruction / TICKS;
            if time < wrong.known && ahead < self.window_parts {
                self.has_met |= self.sites.contains(&site);
                let early = EarlyDispatch { time, number: wrong.number, known: wrong.known };
                return self.has_met.then_some(early);
            }
            self.paths.pop_front();
        }
    }
}

/// A dispatch on a wrong path.
#[derive(Clone, Copy)]
pub(super) struct EarlyDispatch {
    /// Its time.
    pub time: u64,
    /// Accesses up to the branch.
    pub number: u64,
    /// Time at which the path ends.
    pub known: u64,
}
