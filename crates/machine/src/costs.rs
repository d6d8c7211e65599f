//! Costs of waiting beyond latencies: overlap, the arrival of a line, sharing.
//!
//! Each constant is *measured*, by `memlode machine calibrate`, and then has a spread, or
//! *assumed*.

use crate::document::Table;
use crate::machine::MachineError;

/// A number of a machine, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// The number, in the unit of its name.
    pub value: f64,
    /// Interquartile range over median of repeated measurements; none if the number is assumed.
    pub spread: Option<f64>,
}

impl Constant {
    /// A number that was not measured on this machine.
    pub const fn assumed(value: f64) -> Constant {
        Constant { value, spread: None }
    }

    /// Returns whether it was measured on the machine that it describes.
    pub fn is_measured(self) -> bool {
        self.spread.is_some()
    }
}

/// Costs of waiting beyond latencies. Cycles are those of the core's clock.
///
/// The defaults were measured on one guest of a Sapphire Rapids server; those of atomic operations,
/// fences and sharing on one of a Zen 3; the number of simultaneous page walks is Skylake's. If a
/// machine file lacks a constant, the default is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// The core's clock in GHz, under load.
    pub clock_ghz: Constant,
    /// Cycles of an instruction that waits for nothing.
    pub instruction_cycles: Constant,
    /// Independent accesses that the second level serves at the same time.
    pub overlap_l2: Constant,
    /// Independent accesses that the levels behind it and memory serve at the same time.
    pub overlap_memory: Constant,
    /// Page walks that go on at the same time.
    pub overlap_walk: Constant,
    /// Cycles from one line to the next where memory is read from front to back.
    pub read_line_cycles: Constant,
    /// Cycles from one line to the next where memory is written from front to back.
    pub write_line_cycles: Constant,
    /// Instructions behind a load that waits, which the core begins meanwhile.
    pub window_instructions: Constant,
    /// Cycles from one increment of a word in memory to the next, where its line is there.
    pub increment_cycles: Constant,
    /// Cycles of an atomic addition to a line that is there.
    pub atomic_cycles: Constant,
    /// Cycles of a store and a full fence behind it, to a line that is there.
    pub fence_cycles: Constant,
    /// Cycles from the outcome of a mispredicted branch to the next instruction.
    pub mispredict_cycles: Constant,
    /// Factor by which a thread counts more slowly, with ten cycles of work between, where another
    /// does in the same line.
    pub counting_slowdown: Constant,
    /// Cycles of a first touch of a page, in which the kernel finds a free one and maps it, without
    /// those of zeroing it.
    pub fault_cycles: Constant,
    /// Cycles for which the kernel zeroes a line of such a page.
    pub zeroed_line_cycles: Constant,
    /// Lines that two cores share which are near each other.
    pub near: SharingCosts,
    /// Lines that two cores share which are far from each other; none where all are as near.
    pub far: Option<SharingCosts>,
}

/// Costs of a line that two cores use alternately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingCosts {
    /// From a request to the line's arrival from the core that wrote it, in cycles.
    pub transfer_cycles: Constant,
    /// The least time between two arrivals of a line, in cycles.
    pub arrival_cycles: Constant,
    /// Cycles for which a core can use a line before another takes it away.
    pub use_cycles: Constant,
}

impl Costs {
    /// A thread that counts in a contended line loses little below this
    /// [`Costs::counting_slowdown`]: its loads take the values of its own stores that still wait
    /// for the line. 1.1 was measured where they do, 3 to 12 where they do not.
    const FORWARDS: f64 = 1.7;

    /// Returns whether a core goes on with the value of an own store that waits for its line.
    pub fn forwards_waiting_stores(&self) -> bool {
        self.counting_slowdown.value < Self::FORWARDS
    }

    /// Costs of a machine whose file gives none.
    pub const ASSUMED: Costs = Costs {
        clock_ghz: Constant::assumed(3.0),
        instruction_cycles: Constant::assumed(0.3),
        overlap_l2: Constant::assumed(4.5),
        overlap_memory: Constant::assumed(16.0),
        overlap_walk: Constant::assumed(2.0),
        read_line_cycles: Constant::assumed(13.0),
        write_line_cycles: Constant::assumed(22.0),
        window_instructions: Constant::assumed(224.0),
        // A core that renames memory, such as a Zen 3; others take 5 to 8.
        increment_cycles: Constant::assumed(1.5),
        atomic_cycles: Constant::assumed(7.0),
        fence_cycles: Constant::assumed(61.0),
        mispredict_cycles: Constant::assumed(20.0),
        counting_slowdown: Constant::assumed(10.0),
        // Together about half a microsecond for a page of 4096 bytes.
        fault_cycles: Constant::assumed(1000.0),
        zeroed_line_cycles: Constant::assumed(8.0),
        near: SharingCosts {
            transfer_cycles: Constant::assumed(118.0),
            arrival_cycles: Constant::assumed(80.0),
            use_cycles: Constant::assumed(11.0),
        },
        far: None,
    };

    /// Reads the table `[cost]`; `window` is the reorder buffer's size, where the file has it.
    pub(crate) fn read(root: &mut Table, window: Option<u32>) -> Result<Costs, MachineError> {
        let mut costs = Costs::ASSUMED;
        if let Some(window) = window {
            costs.window_instructions = Constant::assumed(window.into());
        }
        let Some(mut table) = root.table("cost")? else { return Ok(costs) };
        for (key, spread, range, field) in costs.fields() {
            constant(&mut table, key, spread, range, field)?;
        }
        if let Some(mut near) = table.table("near")? {
            sharing(&mut near, &mut costs.near)?;
            near.finish()?;
        }
        if let Some(mut far) = table.table("far")? {
            let mut found = costs.near;
            sharing(&mut far, &mut found)?;
            far.finish()?;
            costs.far = Some(found);
        }
        table.finish()?;
        Ok(costs)
    }

    /// The constants of one core: key, key of the spread, range, and where the number is kept.
    fn fields(&mut self) -> [Field<'_>; 15] {
        [
            ("clock_ghz", "clock_ghz_spread", (0.01, 100.0), &mut self.clock_ghz),
            ("instruction_cycles", "instruction_cycles_spread", (0.01, 100.0), &mut self.instruction_cycles),
            ("overlap_l2", "overlap_l2_spread", (1.0, 1e4), &mut self.overlap_l2),
            ("overlap_memory", "overlap_memory_spread", (1.0, 1e4), &mut self.overlap_memory),
            ("overlap_walk", "overlap_walk_spread", (1.0, 1e4), &mut self.overlap_walk),
            ("read_line_cycles", "read_line_cycles_spread", (0.01, 1e5), &mut self.read_line_cycles),
            ("write_line_cycles", "write_line_cycles_spread", (0.01, 1e5), &mut self.write_line_cycles),
            ("window_instructions", "window_instructions_spread", (1.0, 1e6), &mut self.window_instructions),
            ("increment_cycles", "increment_cycles_spread", (0.01, 1e3), &mut self.increment_cycles),
            ("atomic_cycles", "atomic_cycles_spread", (0.01, 1e5), &mut self.atomic_cycles),
            ("fence_cycles", "fence_cycles_spread", (0.01, 1e5), &mut self.fence_cycles),
            ("mispredict_cycles", "mispredict_cycles_spread", (0.01, 1e4), &mut self.mispredict_cycles),
            ("counting_slowdown", "counting_slowdown_spread", (0.01, 1e5), &mut self.counting_slowdown),
            ("fault_cycles", "fault_cycles_spread", (0.01, 1e7), &mut self.fault_cycles),
            ("zeroed_line_cycles", "zeroed_line_cycles_spread", (0.01, 1e5), &mut self.zeroed_line_cycles),
        ]
    }
}

type Field<'a> = (&'static str, &'static str, (f64, f64), &'a mut Constant);

fn sharing(table: &mut Table, costs: &mut SharingCosts) -> Result<(), MachineError> {
    const RANGE: (f64, f64) = (0.01, 1e6);
    constant(table, "transfer_cycles", "transfer_cycles_spread", RANGE, &mut costs.transfer_cycles)?;
    constant(table, "arrival_cycles", "arrival_cycles_spread", RANGE, &mut costs.arrival_cycles)?;
    constant(table, "use_cycles", "use_cycles_spread", RANGE, &mut costs.use_cycles)
}

/// The key of a number and that of its spread. A spread without a number, or one that is too large
/// to be called measured, is refused.
pub(crate) fn constant(
    table: &mut Table,
    key: &'static str,
    spread_key: &'static str,
    (least, most): (f64, f64),
    into: &mut Constant,
) -> Result<(), MachineError> {
    let value = table.number(key, least, most)?;
    let spread = spread(table, spread_key)?;
    match (value, spread) {
        (Some(value), spread) => *into = Constant { value, spread },
        (None, None) => {}
        (None, Some(_)) => return Err(table.error(spread_key, format!("expected `{key}` with it"))),
    }
    Ok(())
}

/// The key of a spread.
pub(crate) fn spread(table: &mut Table, key: &'static str) -> Result<Option<f64>, MachineError> {
    table.number(key, 0.0, MOST_SPREAD)
}

/// A number that repeated measurements spread more than this is not called measured.
pub const MOST_SPREAD: f64 = 0.25;
