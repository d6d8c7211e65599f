//! Results of a model of the core: which accesses take the time, and the causes of their waits.

use serde::{Deserialize, Serialize};

use super::{Access, ByLevel, Data, Everything, Function, Object, Recording, Simulated, Thread, Type};

/// A run in modelled time. Tables have the costliest row first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimeReport {
    /// The recording.
    pub trace: Recording,
    /// The simulated machine.
    pub machine: Simulated,
    /// The core.
    pub core: TimedCore,
    /// Cycles of the run by the model of `report`, `whatif` and `diff`, without what threads lose to
    /// each other.
    pub run_cycles: f64,
    /// All accesses of all threads.
    pub total: TimedRow<Everything>,
    /// Data and the line that touches it.
    pub lines: Vec<TimedRow<Access>>,
    /// Members of types, and variables and arrays that have none.
    pub data: Vec<TimedRow<Data>>,
    /// Members of types.
    pub fields: Vec<TimedRow<Data>>,
    /// Types.
    pub types: Vec<TimedRow<Type>>,
    /// Objects.
    pub objects: Vec<TimedRow<Object>>,
    /// Functions whose text holds the accesses.
    pub functions: Vec<TimedRow<Function>>,
    /// Threads.
    pub threads: Vec<TimedRow<Thread>>,
}

/// The modelled core.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TimedCore {
    /// Its clock.
    pub clock_ghz: f64,
    /// Instructions that it begins behind one that waits.
    pub window_instructions: f64,
    /// Lines that it waits for at the same time.
    pub fill_buffers: u64,
    /// Stores that wait for their lines at the same time.
    pub store_buffer_entries: u64,
    /// Set if all of its times were measured on the machine itself.
    pub measured: bool,
}

/// A row of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimedRow<S> {
    /// Subject of its numbers.
    #[serde(flatten)]
    pub subject: S,
    /// The numbers.
    #[serde(flatten)]
    pub numbers: TimedNumbers,
}

/// Time of some accesses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimedNumbers {
    /// All of them; a range counts once for each line that it touches.
    pub accesses: u64,
    /// Accesses that missed a level.
    pub misses: ByLevel<u64>,
    /// Modelled cycles of the core: instructions and stalls.
    pub cycles: f64,
    /// The same in milliseconds.
    pub ms: f64,
    /// Their part of the whole program's, 0 to 1.
    pub share: f64,
    /// Cycles among these of instructions up to the accesses while nothing else was waited for.
    pub instruction_cycles: f64,
    /// Cycles among these that the accesses waited.
    pub stall_cycles: f64,
    /// Parts of these.
    pub stalls: StallCycles,
    /// Accesses whose bytes lie in two lines.
    pub line_crossings: u64,
    /// Accesses whose bytes lie in two pages.
    pub page_crossings: u64,
    /// Loads that a store in flight gave their value.
    pub forwarded_loads: u64,
    /// Loads that waited until a store with some of their bytes had left the store buffer.
    pub blocked_loads: u64,
}

/// Cycles of waiting, by cause.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct StallCycles {
    /// The line was far, and nothing before the access let it begin earlier.
    pub latency: f64,
    /// The loads on which the address or the stored value depends were not done.
    pub chain: f64,
    /// The window was full of instructions that waited.
    pub window: f64,
    /// All fill buffers, or ports of the second level, were taken.
    pub buffers: f64,
    /// The line was on its way, was fetched ahead, or waited for earlier lines.
    pub bandwidth: f64,
    /// The page was not translated.
    pub walk: f64,
    /// A store in flight had some or all of the bytes.
    pub forwarding: f64,
    /// The store buffer was full.
    pub stores: f64,
    /// An atomic update or a fence.
    pub order: f64,
    /// A branch was mispredicted, and waited for a load.
    pub branch: f64,
}

impl StallCycles {
    /// Each with its name in JSON.
    pub fn named(&self) -> [(&'static str, f64); 10] {
        [
            ("latency", self.latency),
            ("chain", self.chain),
            ("window", self.window),
            ("buffers", self.buffers),
            ("bandwidth", self.bandwidth),
            ("walk", self.walk),
            ("forwarding", self.forwarding),
            ("stores", self.stores),
            ("order", self.order),
            ("branch", self.branch),
        ]
    }
}
