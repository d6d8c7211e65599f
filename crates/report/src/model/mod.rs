//! Reports as data: numbers, ids, and names as the program has them. Words are chosen in [`crate::render`].
//!
//! Serialised by [`crate::render::json`], the fields of these types are the schema of `--json`: fields are added, never renamed or
//! removed, within one version.

mod advice;
mod answer;
mod cells;
mod comparison;
mod finding;
mod listing;
mod miss_causes;
mod note;
mod page_rows;
mod record;
mod report;
mod rules;
mod sample;
mod sampled_listing;
mod simulation;
mod source;
mod subject;
mod table;
mod timing;
mod transfers;

use std::borrow::Cow;

pub use advice::{Advice, MarkedMember, RejectedEdits, StructureChart};
pub use answer::{CommandAnswer, CommandFindings};
pub use cells::{CellColumns, CellGroup, Cells, OtherCells};
pub use comparison::{
    Change, Compared, Comparison, Confidence, ConstantMember, EditedLayout, EditedMember, EditedPart,
    HandEdit, Located, MemoryUse, Narrowed, Status, Tried, WhatIf,
};
pub use finding::{Caller, Cost, Density, Doubt, Edit, Evidence, Finding};
pub use listing::{ListedCode, ListedInstruction, ListedLine, ListedPart, Listing, Precision};
pub use miss_causes::{ByCause, CauseGroup, MissCauses};
pub use note::{NotRecorded, Note};
pub use page_rows::{LeftOutRows, PageRows};
pub use record::{RecordLayout, RecordPart};
pub use report::{
    AdvisedEdit, ByLevel, Level, Numbers, Recording, Report, Row, Shares, Simulated, StandardErrors, Wait,
};
pub use rules::{Assumption, LevelRules, Pages, RulesUsed};
pub use sample::{Burst, Estimated, Sample, SampledLevel};
pub use sampled_listing::{SampledListedInstruction, SampledListedLine, SampledListing, SampledPart};
pub use simulation::{
    Alias, CoherenceNumbers, Detail, Evictor, LevelBesides, LevelCauses, Memory, PrefetchNumbers, Sharing,
    Side, Simulation, Translation,
};
pub use source::{SourceLine, SourceText};
pub use subject::{Access, Data, Everything, Function, Home, Object, Position, Thread, Type};
pub use table::{Analysis, Column, StackLine, Table, Value};
pub use timing::{StallCycles, TimeReport, TimedCore, TimedNumbers, TimedRow};
pub use transfers::{SharedData, SharedLine, SharedLock, SharedObject, Transfers};

/// One of a few words, which outputs know: a constant of ours, or the same word read from a file.
pub type Word = Cow<'static, str>;
