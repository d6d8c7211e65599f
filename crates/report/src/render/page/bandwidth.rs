//! The traffic between the last level of cache and memory that a machine carries.

use memlode_machine::Machine;
use serde::Serialize;

use crate::render::text::bytes;

/// Bytes that one core moves in a second where it walks through memory from front to back.
#[derive(Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Bytes a second that it reads.
    pub reads: f64,
    /// Bytes a second that it writes.
    pub writes: f64,
    /// These numbers in words, and whether they were measured.
    pub sentence: String,
}

impl Bandwidth {
    /// Rates by a machine's cycles from one line to the next, and by its clock.
    pub fn of(machine: &Machine) -> Bandwidth {
        let costs = &machine.costs;
        let line = machine.levels.last().map_or(64, |level| level.line_bytes);
        let a_second = |cycles: f64| f64::from(line) * costs.clock_ghz.value * 1e9 / cycles;
        let [reads, writes] = [costs.read_line_cycles, costs.write_line_cycles];
        let are_measured = reads.is_measured() && writes.is_measured() && costs.clock_ghz.is_measured();
        let (reads, writes) = (a_second(reads.value), a_second(writes.value));
        let known = match are_measured {
            true => "as memlode machine calibrate measured on it",
            false => "which is assumed: memlode machine calibrate measures it",
        };
        let sentence = format!(
            "A core of this machine reads {} of memory a second from front to back, and writes {}, {known}.",
            bytes(reads as u64),
            bytes(writes as u64),
        );
        Bandwidth { reads, writes, sentence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_every_so_many_cycles_is_so_much_a_second() {
        let mut machine = Machine::find("generic").expect("a built-in machine");
        (machine.costs.clock_ghz.value, machine.costs.read_line_cycles.value) = (2.0, 16.0);
        machine.costs.write_line_cycles.value = 32.0;
        let found = Bandwidth::of(&machine);
        assert_eq!((found.reads, found.writes), (8e9, 4e9));
        assert!(found.sentence.contains("which is assumed"), "{}", found.sentence);
    }
}
