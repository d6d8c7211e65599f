//! Findings and tables for people and for programs.
//!
//! ```
//! use memlode_report::render::terminal::{self, By, Style};
//!
//! # use memlode_attribute::{CostModel, Simulation, Source};
//! # let trace = std::sync::Arc::new(memlode_trace::Trace::open("../analyses/fixtures/offenders/trace".as_ref())?);
//! # let (source, machine) = (Source::Stored(trace.clone()), memlode_machine::Machine::find("generic")?);
//! # let (profile, replayed) = Simulation::of(&source, &machine).count(|_| std::ops::ControlFlow::Continue(()))?;
//! # let costs = CostModel::new(&profile, trace.sites(), &machine);
//! # let findings = memlode_analyses::findings_of(&trace, &machine, &profile, &costs);
//! // A replayed trace, its costs and its findings become data with names, and these become text.
//! let report = memlode_report::build::report(memlode_report::build::Inputs {
//!     trace: &trace,
//!     machine: &machine,
//!     profile: &profile,
//!     costs: &costs,
//!     replayed: &replayed,
//!     sharing: None,
//!     findings,
//! });
//! let text = terminal::report(&report, &[By::Line], Style { colours: false, width: 100, top: 5 });
//! assert!(text.contains("program.c"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! Trace, Machine, Profile ──build──► model ──render──► terminal: text
//!                                                  └─► json
//! ```
//! `model` is plain data: numbers, names as the program has them, and ids, but no sentence. [`render`] chooses words,
//! columns and colours, one module for each output. Nothing here prints.

mod about;
pub mod build;
mod model;
pub mod names;
mod only;
mod ranked;
pub mod render;

pub use about::has_line;
pub use build::compiled::{Compiled, NoSuchSource};
pub use build::instructions::SiteCounts;
pub use build::listing::{WantedLines, listing};
pub use build::sampled_listing::{ModuleCode, SampledPlaces};
pub use build::source::Sources;
pub use build::{notes, records, report, simulation, timing};
pub use model::{
    Access as NamedAccess, Advice, Analysis as NamedAnalysis, ByCause, CauseGroup, CellColumns, CellGroup,
    Cells, Column as NamedColumn, CommandAnswer, CommandFindings, Comparison as NamedComparison, Confidence,
    Data, Density as NamedDensity, Edit as NamedEdit, Evidence as NamedEvidence, Finding as NamedFinding,
    Function as NamedFunction, HandEdit, Home as NamedHome, ListedInstruction, ListedPart,
    Listing as NamedListing, Located, MarkedMember, MemoryUse, MissCauses, Narrowed, Note, Numbers, Object,
    OtherCells, PageRows, Position, Precision, RecordLayout as NamedRecord, RecordPart,
    RecordPart as NamedRecordPart, Report, Row, Row as NamedRow, SharedData, SharedLine as NamedSharedLine,
    Side, Simulated, Simulation as NamedSimulation, SourceLine as ShownLine, SourceText,
    StackLine as NamedStackLine, StructureChart, Table as NamedTable, Table as AnalysisTable,
    Thread as NamedThread, TimeReport, TimedRow, Transfers, Tried, Type as NamedType, Value as NamedValue,
    WhatIf,
};
pub use only::{UnknownFinding, edits_called, only, only_changes};
pub use render::text;
