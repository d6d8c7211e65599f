//! The rows of a report's tables that a finding is about.

use crate::model::{
    Access, Data, Evidence, Finding, Function, Object, Position, Report, SharedData, SharedLock,
    SharedObject, Transfers, Type,
};

/// The subjects of a finding, of whichever kind.
pub(crate) struct About<'r> {
    /// Its handle.
    pub handle: &'r str,
    accesses: Vec<&'r Access>,
    objects: Vec<&'r Object>,
}

/// A row's subject, which a finding may be about.
pub(crate) trait Subject {
    /// Returns whether a finding is about it.
    fn is_of(&self, finding: &About<'_>) -> bool;
}

/// Everything in a report that has a handle.
pub(crate) fn all(report: &Report) -> Vec<About<'_>> {
    let mut all: Vec<About<'_>> = report.findings.iter().map(waits).collect();
    let Some(found) = &report.sharing else { return all };
    all.extend(found.objects.iter().map(|object| shared(found, object)));
    for pairs in [&found.false_sharing, &found.true_sharing, &found.handed_over] {
        all.extend(pairs.iter().map(|row| About {
            handle: &row.handle,
            accesses: accesses(row).collect(),
            objects: vec![&row.object],
        }));
    }
    all.extend(found.locks.iter().map(|SharedLock { handle, object, access, .. }| About {
        handle,
        accesses: access.iter().collect(),
        objects: vec![object],
    }));
    all
}

/// Returns whether a report has a row for data at a line, through whichever variable it is reached.
pub fn has_line(report: &Report, access: &Access) -> bool {
    report.lines.iter().any(|row| is_same_access(&row.subject, access))
}

fn waits(finding: &Finding) -> About<'_> {
    let objects = finding.evidence.iter().flat_map(|evidence| match evidence {
        Evidence::Objects { objects } => &objects[..],
        _ => &[],
    });
    About {
        handle: &finding.handle,
        accesses: vec![&finding.subject],
        objects: objects.map(|row| &row.subject).collect(),
    }
}

fn shared<'r>(found: &'r Transfers, object: &'r SharedObject) -> About<'r> {
    let rows = |all: &'r [SharedData], rows: &'r [usize]| rows.iter().filter_map(|&row| all.get(row));
    let falsely = rows(&found.false_sharing, &object.false_rows);
    let pairs = falsely.chain(rows(&found.true_sharing, &object.true_rows));
    About {
        handle: &object.handle,
        accesses: pairs.flat_map(accesses).collect(),
        objects: vec![&object.object],
    }
}

fn accesses(pair: &SharedData) -> impl Iterator<Item = &Access> {
    [Some(&pair.missed), pair.written.as_ref()].into_iter().flatten().map(|side| &side.access)
}

impl Subject for Access {
    fn is_of(&self, finding: &About<'_>) -> bool {
        finding.accesses.iter().any(|access| is_same_access(access, self))
    }
}

impl Subject for Data {
    fn is_of(&self, finding: &About<'_>) -> bool {
        finding.accesses.iter().any(|access| is_same(&access.data, self))
    }
}

impl Subject for Type {
    fn is_of(&self, finding: &About<'_>) -> bool {
        finding.accesses.iter().any(|access| access.data.ty.as_deref() == Some(&self.name))
    }
}

impl Subject for Object {
    fn is_of(&self, finding: &About<'_>) -> bool {
        finding.objects.iter().any(|object| object.home == self.home)
    }
}

impl Subject for Function {
    fn is_of(&self, finding: &About<'_>) -> bool {
        finding.accesses.iter().any(|access| access.position.linkage_name == self.linkage_name)
    }
}

fn is_same_access(one: &Access, other: &Access) -> bool {
    is_same(&one.data, &other.data) && is_same_line(&one.position, &other.position)
}

/// A member says enough: the variable through which it is reached makes no other data.
fn is_same(one: &Data, other: &Data) -> bool {
    (&one.ty, &one.member) == (&other.ty, &other.member)
        && (one.member.is_some() || one.variable == other.variable)
}

fn is_same_line(one: &Position, other: &Position) -> bool {
    let is_same = (one.line, &one.linkage_name, &one.file) == (other.line, &other.linkage_name, &other.file);
    is_same
        && match (&one.inlined_into, &other.inlined_into) {
            (Some(one), Some(other)) => is_same_line(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
}
