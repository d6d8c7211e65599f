//! Memory that a program touched, from the lines that it touched first.

use std::ops::AddAssign;

use crate::counts::Counts;
use crate::profile::{Cell, Profile};

/// Lines touched for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FirstTouches {
    /// All of them.
    pub lines: f64,
    /// First touches by sites that came from lines further away: each may be the only one of its
    /// page.
    pub scattered: f64,
}

impl AddAssign for FirstTouches {
    fn add_assign(&mut self, other: FirstTouches) {
        self.lines += other.lines;
        self.scattered += other.scattered;
    }
}

impl FirstTouches {
    /// First touches of a cell. A site is assumed to walk through fresh memory as through any
    /// other.
    pub fn of(profile: &Profile, cell: &Cell) -> FirstTouches {
        let walk = profile.walks.get(cell.site.0 as usize);
        let near = walk.and_then(|walk| walk.near_share()).unwrap_or(1.0);
        let Counts { first_touches, .. } = cell.counts;
        FirstTouches { lines: first_touches as f64, scattered: first_touches as f64 * (1.0 - near) }
    }

    /// First touches of a whole program. `None` if they are not known: for a sample, or if they
    /// were not counted separately.
    pub fn of_all(profile: &Profile) -> Option<FirstTouches> {
        if profile.gaps.is_some() {
            return None;
        }
        let mut all = FirstTouches::default();
        profile.cells.iter().for_each(|cell| all += FirstTouches::of(profile, cell));
        (all.lines > 0.0).then_some(all)
    }

    /// The most bytes that their pages have.
    pub fn most_bytes(&self, line_bytes: u64, page_bytes: u64) -> u64 {
        let near = (self.lines - self.scattered) * line_bytes as f64;
        (near + self.scattered * page_bytes as f64) as u64
    }
}
