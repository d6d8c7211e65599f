//! Changes of layout that are worth it, found by replaying them.
//!
//! ```text
//!   Baseline: the trace as it is
//!      │
//!      ├─► rivals: edits that compete for a type or an object ─► trial: on a part of the trace ─► outcome: on all of it
//!      ├─► threads: what threads take from each other, or would if their objects began elsewhere
//!      └─► aliases: loads that wait for stores to other buffers
//! ```
//!
//! `advise` looks at all of a program, and `search` at one type. They return data: ids, edits and counts. A [`Host`](crate::host::Host) shows how far they are, stops them, and knows the
//! allocator that places blocks.

mod aliases;
mod baseline;
mod effort;
mod outcome;
mod rivals;
mod search;
mod threads;
mod trial;

use memlode_layout::{Edit, Scope, edits_from_text};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hot_cold::{Chart, charts};
use crate::noise::Verdict;
use crate::plan::PlanError;
use crate::predict::Unpredictable;

pub use aliases::AliasedLoads;
pub use baseline::Baseline;
pub use effort::{Budget, Effort, LeftOff};
pub use outcome::EditOutcome;
pub use search::{Searched, search};
pub use threads::{CostliestAccess, LatentSharing, PairedLines};
pub use trial::Trial;

use trial::Part;

/// Edits whose gains differ by less of the run's cycles gain about the same.
const ABOUT: f64 = 0.02;

/// A reason why nothing is advised.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// An edit that cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A replay that failed or was stopped.
    #[error(transparent)]
    Predict(#[from] Unpredictable),
    /// A member that had a value which the edited one cannot hold.
    #[error("`{edit}`: it had the value {value}, which {to} bytes cannot hold")]
    Value {
        /// The edit.
        edit: String,
        /// The value.
        value: String,
        /// Bytes of the edited member.
        to: u64,
    },
    /// A type that the trace does not have.
    #[error("the trace has no type `{0}`")]
    NoType(String),
    /// A type without another layout.
    #[error("there is no other layout of `{0}` to try: its members cannot be moved, or it has one alone")]
    NoLayout(String),
}

/// Changes to make, with their outcomes, and changes not to bother with.
pub struct Advised {
    /// Edits that are worth it, the one that gains most first.
    pub worth_it: Vec<Winner>,
    /// Edits that were tried and are not, the best first.
    pub rejected: Vec<Rejected>,
    /// Objects that threads would take from each other if they began elsewhere.
    pub latent: Vec<LatentSharing>,
    /// Objects of which threads write neighbouring lines.
    pub pairs: Vec<PairedLines>,
    /// Buffers whose loads agree with stores to another one in the low 12 bits.
    pub aliased: Vec<AliasedLoads>,
    /// Live structures, marked hot and cold.
    pub charts: Vec<Chart>,
    /// The reason why not everything was tried; none if it was.
    pub left_off: Option<LeftOff>,
}

/// Edits that are worth it.
pub struct Winner {
    /// The outcome.
    pub outcome: EditOutcome,
    /// The access that they are about, if it is not the one that they change most.
    pub about: Option<CostliestAccess>,
}

/// Edits that are not worth it, or less than others of the same type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The edits; text, in their short form, where they are written down.
    #[serde(rename = "edit", serialize_with = "as_text", deserialize_with = "from_text")]
    pub edits: Vec<Edit>,
    /// The part of the run's cycles that they gain; less than 0 if they lose.
    pub gain: f64,
    /// The verdict on them.
    pub verdict: Verdict,
    /// True if all of the trace was replayed, false if a part of it.
    pub is_whole: bool,
}

/// Tries layouts of types and of objects, and finds the worthwhile ones. If the host stops it once
/// placements are known, it returns the results so far.
///
/// # Errors
/// That the machine cannot be simulated, that the blocks cannot be placed, or that the host stops
/// it before anything was tried.
pub fn advise(baseline: &Baseline, effort: Effort) -> Result<Advised, AdviseError> {
    let charts = charts(baseline.trace.sites(), &baseline.profile);
    baseline.noise()?;
    let mut found = Advised {
        worth_it: Vec::new(),
        rejected: Vec::new(),
        latent: Vec::new(),
        pairs: Vec::new(),
        aliased: Vec::new(),
        charts,
        left_off: None,
    };
    match try_all(baseline, effort, &mut found) {
        Err(AdviseError::Predict(Unpredictable::Stopped)) => found.left_off = Some(LeftOff::Stopped),
        done => done?,
    }
    found.worth_it.sort_by(|a, b| b.outcome.gain().total_cmp(&a.outcome.gain()));
    found.rejected.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(found)
}

fn try_all(baseline: &Baseline, effort: Effort, found: &mut Advised) -> Result<(), AdviseError> {
    let parts = Part::two(baseline)?;
    let groups = rivals::rivals(baseline, effort.types, &found.charts);
    let all = groups.len();
    for (number, rivals) in (1..).zip(groups) {
        baseline.host_tries(number, all);
        if effort.is_spent(baseline) {
            found.left_off = Some(LeftOff::Spent);
            return Ok(());
        }
        let tried = parts.try_in_turn(baseline, rivals)?;
        let tried = trial::simplest_first(tried, baseline.noise()?.range());
        if let Some(outcome) = trial::confirm(baseline, tried, &mut found.rejected)? {
            baseline.tell(&outcome);
            found.worth_it.push(Winner { outcome, about: None });
        }
    }
    threads::try_edits(baseline, &mut found.worth_it, &mut found.rejected)?;
    if found.worth_it.is_empty()
        && let Some(outcome) = trial::confirm_best(baseline, &mut found.rejected)?
    {
        baseline.tell(&outcome);
        found.worth_it.push(Winner { outcome, about: None });
    }
    let apart = baseline.apart_now();
    found.latent = threads::latent(baseline, &apart)?;
    found.pairs = threads::in_pairs(baseline, &apart)?;
    found.aliased = aliases::aliased(baseline, parts.larger())?;
    Ok(())
}

/// Returns edits in their short form.
pub fn written(edits: &[Edit]) -> String {
    edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn one_as_text<S: Serializer>(edit: &Edit, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(edit)
}

fn one_from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Edit, D::Error> {
    match &from_text(from)?[..] {
        [edit] => Ok(edit.clone()),
        edits => Err(D::Error::custom(format!("expected one edit, found {}", edits.len()))),
    }
}

fn from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Edit>, D::Error> {
    edits_from_text(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn as_text<S: Serializer>(edits: &[Edit], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&written(edits))
}

/// Grades how much of a program edits change: declarations alone, what makes the objects, or each
/// use of them.
fn effort(edits: &[Edit]) -> u8 {
    let one = |edit: &Edit| match edit {
        // Elements of no record get one around them.
        Edit::Pad { of: Some(Scope::Element), .. } | Edit::Align { of: Some(Scope::Element), .. } => 1,
        Edit::Reorder { .. } | Edit::Pad { .. } | Edit::Align { .. } | Edit::AlignMembers { .. } => 0,
        Edit::Shift { .. } | Edit::Remove { .. } | Edit::Pages { .. } | Edit::Place { .. } => 1,
        Edit::Split { .. } | Edit::Soa { .. } | Edit::Group { .. } | Edit::PerThread { .. } => 2,
        Edit::Deal { .. }
        | Edit::Pack { .. }
        | Edit::Narrow { .. }
        | Edit::Index { .. }
        | Edit::Aosoa { .. } => 3,
    };
    edits.iter().map(one).max().unwrap_or(0)
}
