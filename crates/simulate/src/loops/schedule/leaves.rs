//! Lines that need not be shown when a bundle leaves them.
//!
//! Showing a line when a bundle leaves it decides how recent it is among the lines of its set that
//! were left before it is dropped. Where lines are left in the order in which they were entered,
//! that decides nothing:
//!
//! ```text
//!   iteration 0     1     2     3            a and b may stay as they were shown when they were entered: b after a.
//!   line a    E  ·  ·  ·  ·  L               c must be shown, or it would be as old as before a and b, which are left before it.
//!   line b       E  ·  ·  ·  ·  L
//!   line c  E ·  ·  ·  ·  ·  ·  ·  L
//! ```
//! Any two lines of a set must have been shown last in the order in which they were left. We begin
//! with no leaving shown, and then add each one without which the order would be wrong. A line that
//! several bundles leave is as recent as the last of them makes it, so it is enough to check each
//! pair of bundles. Bundles that go the same way keep their distance, so lines of theirs that are
//! never in one set are not compared; other lines may meet anywhere.
//!
//! Lines that a loop begins with were not entered when the period says, so they are shown again at
//! the end of the first iteration, in the order of the period. The last iteration shows everything.

use super::{Residency, Step, Walk};

/// Most lines that are entered in a period: each is compared with all others.
const MOST: usize = 24;
/// The most periods that a line may stay.
const LONGEST: i64 = 4;

/// When something is done: iteration, stride and, as an access touches its lines in ascending
/// order, line.
type Time = (i64, u16, i64);

/// A line, from when a bundle enters it until it leaves it.
#[derive(Clone, Copy)]
struct Visit {
    bundle: u8,
    line: i64,
    enters: Time,
    leaves: Time,
    /// When it is shown last before it is left.
    shown: Time,
    /// Number among the lines that are entered in the period.
    number: usize,
}

/// Which leavings are shown.
pub(super) struct Leaves {
    period: i64,
    /// Indexed by bundle: lines that it goes in a period.
    advances: Vec<i64>,
    visits: Vec<Visit>,
    is_shown: Vec<bool>,
    /// True if lines stay for more iterations than one showing covers.
    pub is_long: bool,
}

impl Leaves {
    /// Finds the lines to be shown for bundles in these walks; lines that stay longer are shown
    /// every `again` iterations. If `pinned`, bundles that go the same way keep their distances in
    /// sets. `None` if it is not worth while.
    pub fn new(walks: &[Walk<'_>], period: usize, again: usize, pinned: bool) -> Option<Leaves> {
        let (period, again) = (period as i64, again as i64);
        let mut visits: Vec<Visit> = Vec::new();
        for (bundle, walk) in (0u8..).zip(walks) {
            for iteration in 0..period {
                for residency in
                    walk.residencies(bundle, iteration).into_iter().filter(|residency| residency.enters)
                {
                    visits.push(visit(walk, &residency, iteration, LONGEST * period, visits.len())?);
                }
                if visits.len() > MOST {
                    return None;
                }
            }
        }
        let is_long = |visit: &Visit| visit.leaves.0 - visit.enters.0 > again;
        // A bundle that stands still enters nothing, and stays.
        let is_long = walks.iter().any(|walk| walk.step == 0) || visits.iter().any(is_long);
        for visit in visits.iter_mut().filter(|_| is_long) {
            let iteration = visit.leaves.0 / again * again;
            let walk = &walks[usize::from(visit.bundle)];
            let first = walk.touches(visit.line, iteration).min().filter(|_| iteration > visit.enters.0);
            visit.shown = first.map_or(visit.shown, |first| (iteration, first as u16, visit.line));
        }
        let advances = walks.iter().map(|walk| (period * walk.step) >> walk.shift).collect();
        let is_shown = vec![false; visits.len()];
        let mut leaves = Leaves { period, advances, visits, is_shown, is_long };
        let needed =
            |leaves: &Leaves| leaves.visits.iter().position(|one| leaves.is_needed(walks, one, pinned));
        while let Some(number) = needed(&leaves) {
            leaves.is_shown[number] = true;
        }
        Some(leaves)
    }

    /// Returns how many are not shown.
    pub fn hidden(&self) -> usize {
        self.is_shown.iter().filter(|is_shown| !**is_shown).count()
    }

    /// Returns whether it is shown that a line is left in an iteration of the period.
    pub fn shows(&self, residency: &Residency, iteration: usize) -> bool {
        let is_it = |visit: &Visit| visit.bundle == residency.bundle && visit.line == residency.line;
        self.in_iterations(iteration as i64, iteration as i64)
            .find(is_it)
            .is_none_or(|visit| self.is_shown[visit.number])
    }

    /// The lines that a loop begins and goes on with and does not show when they are left, in the
    /// order in which they would have been shown.
    pub fn of_beginning(&self, walks: &[Walk<'_>], line_bytes: i64) -> Vec<Step> {
        let is_hidden = |visit: &Visit| visit.leaves.0 > 0 && !self.is_shown[visit.number];
        let mut visits: Vec<Visit> = self.in_iterations(0, 0).filter(is_hidden).collect();
        visits.sort_by_key(|visit| visit.shown);
        let step = |visit: &Visit| {
            let stride = walks[usize::from(visit.bundle)].touches(visit.line, 0).next()? as u16;
            let &Visit { bundle, line, .. } = visit;
            Some(Step { bytes: line * line_bytes, stride, iteration: 0, bundle, asks: false, lines: 1 })
        };
        visits.iter().filter_map(step).collect()
    }

    /// Returns whether it must be shown that a line is left, as another one that is left before it
    /// may be shown after it.
    fn is_needed(&self, walks: &[Walk<'_>], one: &Visit, pinned: bool) -> bool {
        let comes_before = |other: &Visit| {
            other.leaves < one.leaves
                && self.last(other) > one.shown
                && may_meet(
                    (&walks[usize::from(one.bundle)], one),
                    (&walks[usize::from(other.bundle)], other),
                    pinned,
                )
        };
        !self.is_shown[one.number]
            && self.in_iterations(one.enters.0, one.leaves.0).any(|other| comes_before(&other))
    }

    fn last(&self, visit: &Visit) -> Time {
        if self.is_shown[visit.number] { visit.leaves } else { visit.shown }
    }

    /// Lines that a bundle is in during any of these iterations.
    fn in_iterations(&self, from: i64, to: i64) -> impl Iterator<Item = Visit> {
        let first = (from.div_euclid(self.period)) - LONGEST - 1;
        let periods = first..=to.div_euclid(self.period);
        let all =
            periods.flat_map(move |periods| self.visits.iter().map(move |visit| self.later(visit, periods)));
        all.filter(move |visit| visit.enters.0 <= to && from <= visit.leaves.0)
    }

    /// The same visit, a number of periods later.
    fn later(&self, visit: &Visit, periods: i64) -> Visit {
        let lines = periods * self.advances[usize::from(visit.bundle)];
        let later = |time: Time| (time.0 + periods * self.period, time.1, time.2 + lines);
        let Visit { enters, leaves, shown, line, .. } = *visit;
        let (enters, leaves, shown) = (later(enters), later(leaves), later(shown));
        Visit { line: line + lines, enters, leaves, shown, ..*visit }
    }
}

/// A line that is entered in this iteration. `None` if its residency is longer than `most`
/// iterations.
fn visit(walk: &Walk<'_>, residency: &Residency, iteration: i64, most: i64, number: usize) -> Option<Visit> {
    let line = residency.line;
    let last = |iteration: &i64| walk.touches(line, iteration + 1).next().is_none();
    let leaves = (iteration..=iteration + most).find(last)?;
    let enters = (iteration, residency.first, line);
    let leaves = (leaves, walk.touches(line, leaves).max()? as u16, line);
    Some(Visit { bundle: residency.bundle, line, enters, leaves, shown: enters, number })
}

/// Returns whether lines may be in one set.
fn may_meet(one: (&Walk<'_>, &Visit), other: (&Walk<'_>, &Visit), pinned: bool) -> bool {
    if one.1.bundle != other.1.bundle && (!pinned || one.0.step != other.0.step) {
        return true;
    }
    let line = |(walk, visit): (&Walk<'_>, &Visit)| (walk.origin >> walk.shift) + visit.line;
    let apart = line(one) - line(other);
    apart != 0 && apart % one.0.sets as i64 == 0
}
