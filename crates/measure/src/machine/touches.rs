//! The kernel's work for a page that is touched first: it finds one, zeroes it and maps it.

use memlode_machine::Machine;

use super::Calibration;
use super::memory::{PageKind, first_touch};
use crate::stats::median;

/// Cycles that a page fault takes at least: an exception and the way back.
const LEAST_FAULT: f64 = 100.0;

/// Bytes whose first touches are timed, in small pages and in huge ones.
const TOUCHED: [usize; 2] = [16 << 20, 64 << 20];

/// Nanoseconds of a first touch of a page.
#[derive(Clone, Copy)]
pub(super) struct Touches {
    pub small: f64,
    pub huge: f64,
}

impl Touches {
    /// Times them; none if there is no memory for it.
    pub fn measure() -> Option<Touches> {
        let [small, huge] = TOUCHED;
        let small = first_touch(small, PageKind::Small).ok()?;
        Some(Touches { small, huge: first_touch(huge, PageKind::Huge).ok()? })
    }

    /// Nanoseconds of a fault, and of zeroing a line. A small page has one fault and few lines, a
    /// huge page one fault and many. Without huge pages, all of the time would count as zeroing,
    /// and none as a fault.
    fn parts(self) -> [f64; 2] {
        let lines = [4096.0 / 64.0, HUGE_PAGE / 64.0];
        let line = (self.huge - self.small) / (lines[1] - lines[0]);
        [self.small - lines[0] * line, line]
    }
}

/// Bytes of a huge page.
const HUGE_PAGE: f64 = 2097152.0;

/// Times of a fault and of zeroing a line, in rounds on a machine with this many nanoseconds a
/// cycle.
pub(super) fn conclude(rounds: &[Touches], cycle: f64, machine: &Machine, out: &mut Calibration) {
    if rounds.is_empty() {
        return;
    }
    let part = |at: usize| -> Vec<f64> { rounds.iter().map(|touches| touches.parts()[at] / cycle).collect() };
    let (fault, line) = (part(0), part(1));
    // A fault takes some time, or there were no huge pages to tell it by.
    let sensible = median(&fault) > LEAST_FAULT;
    let assumed = machine.costs;
    out.machine.costs.fault_cycles =
        out.note_if(sensible, "fault_cycles", &fault, assumed.fault_cycles.value);
    out.machine.costs.zeroed_line_cycles =
        out.note_if(sensible, "zeroed_line_cycles", &line, assumed.zeroed_line_cycles.value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_huge_pages_a_fault_cannot_be_told() {
        let machine = Machine::named("sapphire-rapids").unwrap();
        let conclude = |huge: f64| {
            let mut out = Calibration { machine: machine.clone(), constants: Vec::new(), notes: Vec::new() };
            super::conclude(&[Touches { small: 600.0, huge }; 9], 0.5, &machine, &mut out);
            out.machine.costs
        };
        let costs = conclude(512.0 * 600.0);
        assert_eq!(costs.fault_cycles, machine.costs.fault_cycles);
        assert_eq!(costs.zeroed_line_cycles, machine.costs.zeroed_line_cycles);
        assert!(conclude(100.0 * 600.0).fault_cycles.is_measured());
    }
}
