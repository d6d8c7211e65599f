//! Two reports side by side.

use memlode_whatif::advise::LeftOff;
use serde::{Deserialize, Serialize};

use super::{Access, Data, Level, Numbers, Object, SourceText, Type};

/// Changes from one report to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The first one.
    pub before: Compared,
    /// The other one.
    pub after: Compared,
    /// The part of a run's cycles that the placement of objects alone changes, if it is known.
    pub noise: Option<f64>,
    /// Members of types, and variables and arrays that have none; like the other tables, the
    /// largest change comes first.
    pub data: Vec<Change<Data>>,
    /// Data and the line that touches it.
    pub lines: Vec<Change<Access>>,
    /// Objects.
    pub objects: Vec<Change<Object>>,
    /// Types.
    pub types: Vec<Change<Type>>,
}

/// One of the two.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// The trace directory.
    pub trace: String,
    /// The simulated machine, by its short name.
    pub machine: String,
    /// All accesses.
    pub total: Numbers,
    /// Modelled cycles of the run.
    pub run_cycles: f64,
    /// Instructions between its accesses; `None` where they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Cycles that threads lose to lines that they take from each other; `None` if they were not
    /// computed.
    pub lost_cycles: Option<u64>,
    /// Accesses that the memory of another node served; `None` where memory has no nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_accesses: Option<u64>,
    /// Counts of the caches.
    pub levels: Vec<Level>,
}

/// A row of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change<S> {
    /// Its subject, from the last report that has it.
    #[serde(flatten)]
    pub subject: S,
    /// The handles of the findings of either report that are about it.
    pub findings: Vec<String>,
    /// Its status.
    pub status: Status,
    /// Cycles that it waits more, or less, by the cost model: rows are ranked by this.
    pub wait_cycles_change: f64,
    /// The same as the sum of all latencies, as if no misses overlapped.
    pub stall_cycles_change: i64,
    /// Its numbers in the first report.
    pub before: Option<Numbers>,
    /// Its numbers in the other.
    pub after: Option<Numbers>,
}

/// The status of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is only in the second report.
    New,
    /// It is only in the first one.
    Gone,
    /// It waits less.
    Better,
    /// It waits more.
    Worse,
    /// It waits about as long.
    WithinNoise,
}

/// The effect of an edit on a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WhatIf {
    /// A short name of the edits, which other recordings of the program give them, too.
    pub handle: String,
    /// The edits in their short form.
    pub edits: Vec<String>,
    /// The verdict: `worth_it`, `neutral` or `worse`.
    pub verdict: memlode_whatif::noise::Verdict,
    /// The part of the run's cycles that is gained; less than 0 if it is lost.
    pub gain: f64,
    /// The objects that the edits are about.
    pub footprint: MemoryUse,
    /// Limits of the confidence.
    pub confidence: Confidence,
    /// The unedited trace, and the edited one.
    pub comparison: Comparison,
    /// The line that the edits change most, if it was determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Located>,
    /// Other edits that were tried, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The reason why fewer of them were replayed on the whole trace; none if all were that should
    /// be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_off: Option<LeftOff>,
    /// Places of the sources that have to be edited by hand, where a patch was wanted and is not possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_hand: Vec<HandEdit>,
    /// The edited structures: where their members lie then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<EditedLayout>,
}

/// A structure after edits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedLayout {
    /// The structure.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its size as compiled.
    pub bytes: u64,
    /// The arrays that hold its members, the first in the place of the old object.
    pub parts: Vec<EditedPart>,
}

/// An array of some members of a structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedPart {
    /// Elements in a block: in one of several, each member is an array.
    pub elements: u32,
    /// Bytes of a block.
    pub bytes: u64,
    /// The members, by offset.
    pub members: Vec<EditedMember>,
}

/// A member, or several that share bytes, after an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedMember {
    /// Its name.
    pub member: String,
    /// Offset in the block.
    pub offset: u64,
    /// Bytes of one element's value.
    pub bytes: u64,
    /// Offset as compiled; null for a link that the edit adds.
    pub was: Option<u64>,
}

impl WhatIf {
    /// Returns the place among the changed lines of one that touches this data in a function, by its linkage name.
    pub fn line_of(
        &self,
        (function, line): (&str, u32),
        member: Option<&str>,
        variable: Option<&str>,
    ) -> Option<usize> {
        let is_it = |Access { data, position }: &Access| {
            position.line == Some(line)
                && position.linkage_name == function
                && data.member.as_deref() == member
                && data.variable.as_deref() == variable
        };
        self.comparison.lines.iter().position(|change| is_it(&change.subject))
    }
}

/// A place of a source that has to be edited by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandEdit {
    /// File and line, as `arc.c:18`.
    pub place: String,
    /// Why the layout decides what stands there.
    pub why: String,
    /// The work that is to be done there.
    pub task: String,
}

/// A line with its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Located {
    /// The data and the line.
    #[serde(flatten)]
    pub access: Access,
    /// The text.
    pub source: Option<SourceText>,
}

/// An edit that was tried on a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// In its short form.
    pub edit: String,
    /// The part of the cycles that it gained there.
    pub gain: f64,
}

/// The bytes of edited objects.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MemoryUse {
    /// Objects that are moved.
    pub objects: u64,
    /// Their bytes as they are.
    pub bytes_before: u64,
    /// Their bytes under the edits.
    pub bytes_after: u64,
    /// Objects of an edited type that do not change.
    pub objects_left: u64,
}

/// Limits of the confidence in a prediction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Confidence {
    /// The part of the accesses whose data are known from the source or from debug information.
    pub named: f64,
    /// The part of the accesses that are to objects of unknown content: these cannot have been
    /// edited.
    pub unknown_objects: f64,
    /// Types that hold an edited one by value, and were left as they are.
    pub held_by: Vec<String>,
    /// Members that become smaller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<Narrowed>,
    /// Members that are taken away although code reads them, since they had one value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<ConstantMember>,
    /// The allocator that placed the blocks of the heap, if there are any.
    pub placed_by: Option<String>,
}

/// A member that had one value in the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstantMember {
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its name.
    pub member: String,
    /// The value.
    pub value: String,
    /// Number of its recorded values.
    pub values: u64,
}

/// A member that becomes smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowed {
    /// Its type and its name.
    pub member: String,
    /// Bytes that it has then.
    pub to: u64,
    /// Values of it that were recorded, all of which fit; 0 if none was.
    pub values: u64,
}
