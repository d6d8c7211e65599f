//! A machine: its caches, latencies and rules.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use memlode_simulate::Coherence;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::core_parts::{InFlight, TlbArray};
use crate::costs::Costs;
use crate::host::HostSources;
use crate::rules::Rules;
use crate::{built_in, file};

/// A machine, as far as data accesses go. Levels hold data: instruction caches are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name, as in `--machine`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Sources of the numbers. For the host, the interface of the kernel or processor.
    pub sources: Vec<String>,
    /// Physical cores (not hardware threads).
    pub cores: u32,
    /// Bytes that memory is fetched in: the line of the outermost level.
    pub line_bytes: u32,
    /// Bytes of an ordinary page.
    pub page_bytes: u64,
    /// Cycles from a load to its value when memory serves it.
    pub memory_latency_cycles: u32,
    /// Caches, innermost first; at least one.
    pub levels: Vec<Level>,
    /// Translations of each core; none if they are not to be simulated.
    pub tlbs: Vec<TlbArray>,
    /// Cycles to find a translation in the page tables; 0 without `tlbs`.
    pub page_walk_cycles: u32,
    /// Stores and accesses that a core keeps in flight, if that is known.
    pub in_flight: Option<InFlight>,
    /// NUMA nodes, each with its part of the cores.
    pub nodes: u32,
    /// Cycles from a load to its value when another node's memory serves it.
    pub remote_latency_cycles: u32,
    /// Costs of waiting beyond latencies.
    pub costs: Costs,
    /// Spreads of the latencies that were measured on this machine.
    pub spreads: LatencySpreads,
    /// The protocol that keeps private caches the same, if any does.
    pub coherence: Coherence,
    /// Processors that this description fits.
    pub identities: Vec<Identity>,
    /// The first twelve hexadecimal digits of the SHA-256 of its file; `None` if the system
    /// described it.
    pub file_hash: Option<String>,
}

/// The confidence in the latencies of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// All were measured on the machine itself.
    Measured,
    /// Some were measured on the machine itself.
    PartlyMeasured,
    /// All come from documents, or from a similar machine.
    Assumed,
}

/// Interquartile range over median of measured latencies; none for assumed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySpreads {
    /// The spread of [`Machine::memory_latency_cycles`].
    pub memory: Option<f64>,
    /// The spread of [`Machine::page_walk_cycles`].
    pub page_walk: Option<f64>,
}

/// One level of cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// `L1d`, `L2`, …
    pub name: String,
    /// Bytes of one cache of this level. It may be smaller than an inner one: a system-level cache
    /// can be smaller than the caches it backs.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of a line, a power of two.
    pub line_bytes: u32,
    /// Number of cores that share one cache of this level; 1 is private.
    pub shared_by: u32,
    /// Cycles from a load to its value when this level serves it.
    pub latency_cycles: u32,
    /// Interquartile range over median of that, if it was measured on this machine.
    pub latency_spread: Option<f64>,
    /// Its rules beyond its shape.
    pub rules: Rules,
    /// Sources of size, ways and sharing, and of the latency if from elsewhere.
    pub provenance: String,
}

impl Level {
    /// Number of sets; not always a power of two (last-level caches made of one slice per core).
    pub fn sets(&self) -> u64 {
        self.bytes / (u64::from(self.ways) * u64::from(self.line_bytes))
    }
}

/// A processor's name for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// x86: the vendor string of `cpuid`, such as `AuthenticAMD`. Arm: the implementer, such as
    /// `0x41`.
    pub vendor: String,
    /// x86: the family; Arm: none.
    pub family: Option<u32>,
    /// x86: models; Arm: part numbers.
    pub models: Vec<RangeInclusive<u32>>,
    /// Features of `/proc/cpuinfo` that only this core and later ones have. Hypervisors hide
    /// models, and then these features find the nearest machine. Empty if there are none.
    pub features: Vec<String>,
}

impl Machine {
    /// Returns the cycles until each level has served an access, innermost first, memory last.
    pub fn latencies(&self) -> Vec<u32> {
        self.levels.iter().map(|level| level.latency_cycles).chain([self.memory_latency_cycles]).collect()
    }

    /// Returns the names of the levels, innermost first; a name that comes twice gets a number.
    pub fn level_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for level in &self.levels {
            let numbered = (2..).map(|n| format!("{}-{n}", level.name));
            let mut candidates = std::iter::once(level.name.clone()).chain(numbered);
            names.extend(candidates.find(|name| names.iter().all(|known| **known != **name)).map(Arc::from));
        }
        names
    }

    /// Returns the names of all that can serve an access: the levels, innermost first, and memory.
    pub fn served_by(&self) -> Vec<String> {
        self.level_names().iter().map(|name| name.to_string()).chain(["memory".to_string()]).collect()
    }

    /// Returns the limits of a core; where the description lacks them, those of `generic`, the
    /// smallest of all.
    pub fn flight(&self) -> InFlight {
        self.in_flight.unwrap_or(InFlight { stores: 56, instructions: 224 })
    }

    /// Returns how well the latencies of its levels and of memory are known.
    pub fn known(&self) -> Provenance {
        let spreads = self.levels.iter().map(|level| level.latency_spread).chain([self.spreads.memory]);
        let (measured, assumed): (Vec<_>, Vec<_>) = spreads.partition(Option::is_some);
        match (measured.is_empty(), assumed.is_empty()) {
            (false, true) => Provenance::Measured,
            (false, false) => Provenance::PartlyMeasured,
            _ => Provenance::Assumed,
        }
    }

    /// Returns the machine of a `--machine` argument: `host`, the name of a built-in machine, or
    /// the path of a file (anything with a `/` or ending in `.toml`).
    pub fn find(wanted: &str) -> Result<Machine, MachineError> {
        if wanted == "host" {
            Ok(Machine::host())
        } else if wanted.contains('/') || wanted.ends_with(".toml") {
            let unreadable = |error| MachineError::Unreadable { file: wanted.into(), error };
            let text = memlode_files::read_text(wanted.as_ref(), memlode_files::SMALL).map_err(unreadable)?;
            Machine::from_toml(&text, wanted)
        } else {
            Machine::named(wanted)
        }
    }

    /// A built-in machine ([`names`](crate::names) lists them).
    pub fn named(name: &str) -> Result<Machine, MachineError> {
        let text = built_in::text(name).ok_or_else(|| MachineError::Unknown(name.to_string()))?;
        Machine::from_toml(text, &format!("machines/{name}.toml"))
    }

    /// Reads a machine file. `file` is only used in messages and provenance.
    pub fn from_toml(text: &str, file: &str) -> Result<Machine, MachineError> {
        file::read(text, file)
    }

    /// The host machine: the file that `memlode machine calibrate` wrote for this processor, what a
    /// command measured and kept, or the system's description. Never fails: missing facts are taken from the built-in machine of the
    /// same processor, else from `generic`; `sources` and each level's `provenance` record that.
    pub fn host() -> Machine {
        HostSources::default().detect()
    }
}

/// Why there is no machine.
#[derive(Debug, Error)]
pub enum MachineError {
    /// No such built-in.
    #[error("there is no machine named `{0}`; give `host`, a path to a .toml file, or one of: {known}",
            known = built_in::names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// The file could not be read.
    #[error("cannot read the machine file {file}: {error}", file = file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file describes something impossible.
    #[error("{file}:{line}: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Key, what was expected and what was found.
        message: String,
    },
}
