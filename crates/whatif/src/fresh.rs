//! The kernel's work for memory that a program gets: at the first touch of a page it finds, zeroes
//! and maps it.
//!
//! A trace has the touches, not the work. An edit that makes objects larger adds work; larger pages
//! need fewer faults.

use std::collections::BTreeMap;

use memlode_attribute::{Class, FirstTouches, Home, Profile};
use memlode_machine::Machine;
use rustc_hash::FxHashMap;

use crate::placement::Footprint;
use crate::plan::{EditedObjects, Plan};

/// Lines that a program touched first, by the home of their objects.
#[derive(Clone, Debug, Default)]
pub struct FreshMemory(BTreeMap<Home, FreshObjects>);

/// Lines of objects of one home that were touched first.
#[derive(Clone, Copy, Debug, Default)]
struct FreshObjects {
    touched: FirstTouches,
    objects: f64,
    /// Bytes of all objects, touched or not, including those in reused memory.
    bytes: f64,
}

impl FreshMemory {
    /// Finds the fresh memory of a profile. `None` for a sample, whose first touches are unknown.
    pub fn of(profile: &Profile) -> FreshMemory {
        let mut found = FreshMemory::default();
        if profile.gaps.is_some() {
            return found;
        }
        let of_class = |class: &Class| FreshObjects {
            touched: FirstTouches::default(),
            objects: class.objects as f64,
            bytes: class.bytes as f64,
        };
        for cell in &profile.cells {
            let class = &profile.classes[cell.class.0 as usize];
            // Memory of unknown origin was there before.
            if cell.counts.first_touches > 0 && class.home != Home::Unknown {
                let fresh = found.0.entry(class.home.clone()).or_insert_with(|| of_class(class));
                fresh.touched += FirstTouches::of(profile, cell);
            }
        }
        found
    }

    /// Finds the fresh memory of a profile under a plan, given that of the unedited trace.
    #[must_use]
    pub fn under(&self, profile: &Profile, plan: &Plan, footprint: Footprint) -> FreshMemory {
        let mut found = FreshMemory::of(profile);
        let growth = footprint.after as f64 / footprint.before.max(1) as f64;
        for (home, fresh) in &mut found.0 {
            let Some(subject) = plan.subject(home).filter(|subject| is_edited(subject)) else { continue };
            fresh.bytes *= growth;
            // What is between the members is not touched, but is part of their pages.
            if is_whole(plan, subject) {
                let before = self.0.get(home).copied().unwrap_or_default();
                let (touched, before) = (&mut fresh.touched, before.touched);
                touched.lines = touched.lines.max(before.lines * growth);
                touched.scattered = touched.scattered.max(before.scattered * growth).min(touched.lines);
            }
        }
        found
    }

    /// Estimates that of a whole trace under a plan, of which there is no profile.
    #[must_use]
    pub fn grown(&self, plan: &Plan, footprint: Footprint) -> FreshMemory {
        let growth = footprint.after as f64 / footprint.before.max(1) as f64;
        let mut found = self.clone();
        for (home, fresh) in &mut found.0 {
            if plan.subject(home).is_some_and(is_edited) {
                fresh.bytes *= growth;
                fresh.touched.lines *= growth;
                fresh.touched.scattered *= growth;
            }
        }
        found
    }

    /// Returns the cycles that it costs the kernel, if the objects of some homes lie in pages of other sizes.
    pub fn cycles(&self, machine: &Machine, pages: &FxHashMap<Home, u64>) -> f64 {
        let line = f64::from(machine.line_bytes);
        let (fault, zeroed) = (machine.costs.fault_cycles.value, machine.costs.zeroed_line_cycles.value);
        let of = |(home, fresh): (&Home, &FreshObjects)| {
            let page = pages.get(home).copied().unwrap_or(machine.page_bytes) as f64;
            fresh.pages(line, page) * (fault + zeroed * page / line)
        };
        self.0.iter().map(of).sum()
    }
}

impl FreshObjects {
    fn pages(&self, line: f64, page: f64) -> f64 {
        let FirstTouches { lines, scattered } = self.touched;
        let touched = lines * line;
        // Of an object that is touched in part, lines that are apart from each other have pages of their own.
        if self.objects == 0.0 || touched >= self.bytes / self.objects {
            return touched / page;
        }
        let near = (lines - scattered) * line;
        let rest = ((self.bytes - near) / page).ceil();
        // All of a page is zeroed.
        (near / page).ceil() + scattered.min(rest)
    }
}

fn is_edited(subject: &EditedObjects) -> bool {
    subject.layout.is_some() || subject.whole.is_some()
}

/// Returns whether each object still lies in one place.
fn is_whole(plan: &Plan, subject: &EditedObjects) -> bool {
    subject.layout.is_none_or(|layout| plan.all_layouts()[layout].parts().len() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: f64 = 2097152.0;

    /// Pages of objects whose lines are touched in no order.
    fn pages(lines: f64, objects: f64, bytes: f64, page: f64) -> f64 {
        let touched = FirstTouches { lines, scattered: lines };
        FreshObjects { touched, objects, bytes }.pages(64.0, page)
    }

    #[test]
    fn the_beginning_of_a_buffer_has_as_many_pages_as_it_is_long() {
        let fresh = |scattered: f64| {
            let touched = FirstTouches { lines: 640.0, scattered };
            FreshObjects { touched, objects: 1.0, bytes: 4_096_000.0 }
        };
        assert_eq!(fresh(0.0).pages(64.0, 4096.0), 10.0);
        assert_eq!(fresh(0.0).pages(64.0, LARGE), 1.0);
        assert_eq!(fresh(64.0).pages(64.0, 4096.0), 9.0 + 64.0);
    }

    #[test]
    fn memory_that_is_touched_has_pages() {
        assert_eq!(pages(640.0, 1.0, 40_960.0, 4096.0), 10.0, "an array that is used whole");
        assert_eq!(pages(640.0, 1.0, 4_096_000.0, 4096.0), 640.0, "lines that are a page and more apart");
        assert_eq!(pages(640.0, 1.0, 409_600.0, 4096.0), 100.0, "no more pages than the object has");
        assert_eq!(pages(640.0, 640.0, 640.0 * 32.0, 4096.0), 10.0, "small objects share pages");
        assert_eq!(
            pages(640.0, 100.0, 4_096_000.0, 4096.0),
            10.0,
            "objects that had the same memory in turn"
        );
        assert_eq!(pages(65_536.0, 1.0, 2.0 * LARGE, LARGE), 2.0);
        assert_eq!(pages(10.0, 1.0, 2.0 * LARGE, LARGE), 2.0, "all of a large page is zeroed");
        assert_eq!(pages(10.0, 0.0, 0.0, 4096.0), 10.0 / 64.0, "stacks are one object");
    }
}
