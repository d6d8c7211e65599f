//! Counters of processors and of the kernel, and the ratios that are made of them.
//!
//! ```
//! use memlode_counters::table::EventTable;
//!
//! let name = EventTable::names().next().ok_or("no table")?;
//! let table = EventTable::named(name)?;
//! assert!(EventTable::named("a processor of tomorrow").is_err());
//! # let _ = table;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//!   machines/events/*.toml ──► table    events of a processor by name, with their codes
//!                                │
//!                               plan    groups of ratios whose events can be counted at the same time
//!                                │
//!   perf_event_open ◄────────── kernel  opens a group for a program that is yet to start, or for one that runs
//!        │
//!        └─► refusal                    why the kernel said no
//! ```
//! The result is data, in [`stat`]; its words are chosen elsewhere. A counter that was refused, or
//! did not run all the time, has no value: it is never zero.

pub mod kernel;
pub mod plan;
pub mod ratio;
pub mod refusal;
pub mod software;
pub mod stat;
pub mod table;
