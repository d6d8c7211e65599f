//! The report of `memlode sim --time`.

use memlode_attribute::place::{Place, What, place};
use memlode_attribute::tables::Tables;
use memlode_attribute::timed::{Charged, Stall, TICKS, TimedRow};
use memlode_attribute::{Cell, CostModel, TimedProfile};
use memlode_machine::Machine;
use memlode_replay::Replayed;
use memlode_trace::Trace;
use memlode_whatif::cost::Cycles;

use crate::build::{Builder, borrowed, rounded, simulated};
use crate::model::{self, Everything, StallCycles, TimeReport, TimedCore, TimedNumbers};

/// Builds the answer of `memlode sim --time` from a timed profile of `trace` on `machine`.
pub fn timing(trace: &Trace, machine: &Machine, timed: &TimedProfile, replayed: &Replayed) -> TimeReport {
    let latencies = machine.latencies();
    let names = trace.sites();
    let levels = machine.level_names();
    let tables = Tables::new(&timed.profile, names, &latencies);
    let builder = Builder {
        names,
        profile: &timed.profile,
        latencies: &latencies,
        levels: &levels,
        total_stall: 0,
        total_wait: 0.0,
        borrowed: &borrowed(&tables, names),
    };
    let all = timed.roll(|_| Some(())).pop();
    let total_ticks = all.as_ref().map_or(0, |row| row.charged.ticks());
    let maker = Maker { builder: &builder, timed, machine, total_ticks };
    let empty = TimedRow { key: (), counts: Default::default(), charged: Charged::default() };
    let access = |(what, place): &(What, Place)| builder.access(what, place);
    let mut threads = maker.rows(|cell| Some(cell.thread), |id| builder.thread(trace, machine, *id));
    for thread in &mut threads {
        let cores = &timed.setup.cores;
        thread.subject.core = cores[thread.subject.thread as usize % cores.len()];
    }
    let costs = CostModel::new(&timed.profile, names, machine);
    TimeReport {
        run_cycles: rounded(Cycles::of_run(&timed.profile, &costs, machine).run),
        trace: builder.recording(trace, replayed, None),
        machine: simulated(machine, &levels, &timed.profile),
        core: core(machine),
        total: maker.row(Everything {}, &all.unwrap_or(empty)),
        lines: maker.rows(|cell| Some(tables.key_of(cell)), access),
        data: maker.rows(|cell| Some(tables.data_of(cell)), |what| builder.data(what)),
        fields: maker.rows(|cell| tables.field_of(cell), |what| builder.data(what)),
        types: maker.rows(|cell| tables.type_of(cell), |ty| model::Type { name: builder.string(*ty) }),
        objects: maker.rows(|cell| Some(cell.class), |class| builder.object(*class)),
        functions: maker.rows(
            |cell| Some(place(names, names.site(cell.site)).line.function),
            |name| model::Function { function: builder.written(*name), linkage_name: builder.string(*name) },
        ),
        threads,
    }
}

fn core(machine: &Machine) -> TimedCore {
    let costs = &machine.costs;
    let times = [
        costs.clock_ghz,
        costs.overlap_l2,
        costs.overlap_memory,
        costs.read_line_cycles,
        costs.write_line_cycles,
        costs.window_instructions,
    ];
    TimedCore {
        clock_ghz: costs.clock_ghz.value,
        window_instructions: costs.window_instructions.value,
        fill_buffers: costs.overlap_memory.value.round() as u64,
        store_buffer_entries: machine.in_flight.map_or(0, |flight| flight.stores.into()),
        measured: times.iter().all(|time| time.is_measured()),
    }
}

struct Maker<'a> {
    builder: &'a Builder<'a>,
    timed: &'a TimedProfile,
    machine: &'a Machine,
    total_ticks: u64,
}

impl Maker<'_> {
    fn rows<K: std::hash::Hash + Eq + Ord + Clone, S>(
        &self,
        key: impl Fn(&Cell) -> Option<K>,
        subject: impl Fn(&K) -> S,
    ) -> Vec<model::TimedRow<S>> {
        self.timed.roll(key).iter().map(|row| self.row(subject(&row.key), row)).collect()
    }

    fn row<K, S>(&self, subject: S, row: &TimedRow<K>) -> model::TimedRow<S> {
        let charged = &row.charged;
        let cycles = |ticks: u64| rounded(ticks as f64 / TICKS as f64);
        let of = |stall: Stall| cycles(charged.of(stall));
        let ms = charged.ticks() as f64 / TICKS as f64 / (self.machine.costs.clock_ghz.value * 1e6);
        let numbers = TimedNumbers {
            accesses: row.counts.accesses(),
            misses: self.builder.by_level(|level| row.counts.misses(level)),
            cycles: cycles(charged.ticks()),
            ms,
            share: charged.ticks() as f64 / self.total_ticks.max(1) as f64,
            instruction_cycles: cycles(charged.instructions),
            stall_cycles: cycles(charged.stalled()),
            stalls: StallCycles {
                latency: of(Stall::Latency),
                chain: of(Stall::Chain),
                window: of(Stall::Window),
                buffers: of(Stall::Buffers),
                bandwidth: of(Stall::Bandwidth),
                walk: of(Stall::Walk),
                forwarding: of(Stall::Forwarding),
                stores: of(Stall::Stores),
                order: of(Stall::Order),
                branch: of(Stall::Branch),
            },
            line_crossings: charged.line_crossings,
            page_crossings: charged.page_crossings,
            forwarded_loads: charged.forwarded,
            blocked_loads: charged.blocked,
        };
        model::TimedRow { subject, numbers }
    }
}
