//! Findings and tables for people and for programs.
//!
//! ```text
//! Trace, Machine, Profile ──build──► model ──render──► terminal: text
//!                                                  └─► json
//! ```
//! `model` is plain data: numbers, names as the program has them, and ids, but no sentence. [`render`] chooses words,
//! columns and colours, one module for each output. Nothing here prints.

pub mod build;
mod model;
pub mod names;
pub mod render;

pub use build::compiled::Compiled;
pub use build::instructions::SiteCounts;
pub use build::listing::{WantedLines, listing};
pub use build::source::Sources;
pub use build::{notes, records, report, simulation, timing};
pub use model::{
    Access as NamedAccess, Advice, Analysis as NamedAnalysis, CommandAnswer, CommandFindings,
    Comparison as NamedComparison, Confidence, Data, Density as NamedDensity, Edit as NamedEdit,
    Evidence as NamedEvidence, Finding as NamedFinding, Function as NamedFunction, HandEdit,
    Home as NamedHome, ListedInstruction, ListedPart, Listing as NamedListing, Located, MarkedMember,
    MemoryUse, Narrowed, Note, Numbers, Object, Position, Precision, RecordLayout as NamedRecord, RecordPart,
    RecordPart as NamedRecordPart, Report, Row, Row as NamedRow, SharedData, SharedLine as NamedSharedLine,
    Side, Simulated, Simulation as NamedSimulation, SourceLine as ShownLine, SourceText,
    StackLine as NamedStackLine, StructureChart, Table as NamedTable, Table as AnalysisTable,
    Thread as NamedThread, TimeReport, TimedRow, Transfers, Tried, Type as NamedType, Value as NamedValue,
    WhatIf,
};
pub use render::text;
