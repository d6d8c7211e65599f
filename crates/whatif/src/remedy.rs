//! The interface of every remedy.

use memlode_attribute::sharing::SharingProfile;
use memlode_attribute::{AliasRow, ClassId, Home};
use memlode_layout::Edit;
use memlode_machine::Machine;

use crate::heat::Heat;
use crate::hot_cold::Chart;
use crate::plan::PlanInputs;
use crate::remedies;
use crate::uses::ObjectUses;
use crate::values::RecordedValues;

/// A remedy: one file in `remedies/`, whose doc comment is a section of the user's page.
///
/// A remedy is shown cases, one after the other, and proposes edits of those that it is for. A
/// proposal is no promise: it is replayed by the one who asked, and most are turned down. So a remedy
/// gives whatever the counts have a reason for, and measures nothing.
pub trait Remedy {
    /// Its own description.
    const META: RemedyMeta;

    /// Proposes edits, those that are simplest to make first; none for cases that it is not for.
    fn propose(case: &Case<'_>) -> Vec<Proposal>;
}

/// A remedy's own description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemedyMeta {
    /// Short name, stable, as its section is called.
    pub id: &'static str,
    /// Place in the order in which remedies propose; each has its own.
    pub rank: u16,
    /// The program of this tree that needs it.
    pub program: &'static str,
}

/// A place where a program loses time, and the facts about it.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// Names and counts of the trace.
    pub inputs: &'a PlanInputs<'a>,
    /// The subject.
    pub subject: CaseSubject<'a>,
}

/// The subject of a case.
#[derive(Clone, Copy)]
pub enum CaseSubject<'a> {
    /// A record that the program waits for.
    Record {
        /// The use of its members.
        heat: &'a Heat,
        /// Its members marked hot and cold, if it is live.
        chart: Option<&'a Chart>,
        /// Bytes of a line.
        line_bytes: u64,
    },
    /// All objects that the program waits for.
    Objects {
        /// Their uses; those with the longest waits come first.
        uses: &'a [ObjectUses],
        /// Values that members had.
        values: &'a RecordedValues,
        /// The machine.
        machine: &'a Machine,
    },
    /// Objects that threads take from each other.
    Contended {
        /// Their class.
        class: ClassId,
        /// Losses of all threads to each other.
        sharing: &'a SharingProfile,
        /// True if enough is lost to lines that are shared falsely.
        is_falsely: bool,
    },
    /// Loads of one buffer that agree with stores to another one in the low 12 bits.
    Aliased(&'a AliasRow<Home>),
}

/// Edits that are made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The type or the objects for which proposals compete.
    pub subject: String,
    /// The edits.
    pub edits: Vec<Edit>,
}

impl Proposal {
    /// One edit, for the subject that it names itself.
    pub fn one(edit: Edit) -> Proposal {
        Proposal { subject: edit.subject().to_string(), edits: vec![edit] }
    }
}

/// Collects the proposals of all remedies for a case.
pub fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    remedies::all().iter().flat_map(|remedy| (remedy.propose)(case)).collect()
}

/// A remedy as the registry has it.
pub struct RegisteredRemedy {
    /// Its description.
    pub meta: RemedyMeta,
    propose: fn(&Case<'_>) -> Vec<Proposal>,
}

impl RegisteredRemedy {
    pub(crate) fn of<R: Remedy>() -> RegisteredRemedy {
        RegisteredRemedy { meta: R::META, propose: R::propose }
    }
}
