//! The sections of a site table about the work between accesses and the loads that these wait for
//! (SPEC §2.4).

use rustc_hash::FxHashMap;

use crate::bytes::{Malformed, Reader};
use crate::format::table_section;
use crate::sections::Sections;

/// Facts of the ops of a table, which are numbered through all segments.
#[derive(Default)]
pub(crate) struct TableWork {
    /// For each op, instructions from the access before to this one. Empty if the table does not
    /// have them.
    pub before: Vec<u32>,
    /// For each segment, instructions behind its last access.
    pub rest: Vec<u32>,
    /// Feeders of the ops that wait for a load.
    pub feeds: Vec<OpFeeds>,
    /// Feeders of the branches behind ops, of those with a branch that waits for a load. Without
    /// groups, the loads are unknown. `None` if the table does not have them.
    pub branches: Option<Vec<(u32, Groups)>>,
}

/// A load that something waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpFeed {
    pub op: u32,
    /// The value is of an iteration of a loop before this one, and the load is executed again
    /// before the value is used.
    pub is_earlier: bool,
}

/// Groups of loads: all groups are waited for, and in each group the load that was executed last.
pub(crate) type Groups = Vec<Vec<OpFeed>>;

/// The loads that an op waits for.
pub(crate) struct OpFeeds {
    pub op: u32,
    pub address: Groups,
    pub data: Groups,
}

impl TableWork {
    /// Reads these sections of a table whose segments have these numbers of ops. An error names the
    /// section.
    pub fn read(sections: &Sections<'_>, ops: &[u32]) -> Result<TableWork, (&'static str, Malformed)> {
        let mut work = TableWork::default();
        if let Some(mut reader) = sections.get(table_section::INSTRUCTIONS) {
            work.read_instructions(&mut reader, ops).map_err(|why| ("section instructions", why))?;
        }
        if let Some(mut reader) = sections.get(table_section::FEEDS) {
            work.read_feeds(&mut reader, ops).map_err(|why| ("section feeds", why))?;
        }
        if let Some(mut reader) = sections.get(table_section::BRANCHES) {
            work.read_branches(&mut reader, ops).map_err(|why| ("section branches", why))?;
        }
        if let Some(mut reader) = sections.get(table_section::EARLIER) {
            work.read_earlier(&mut reader, ops).map_err(|why| ("section earlier", why))?;
        }
        Ok(work)
    }

    /// Reads the section of instructions of a table whose segments have these numbers of ops.
    fn read_instructions(&mut self, reader: &mut Reader<'_>, ops: &[u32]) -> Result<(), Malformed> {
        counted(reader, ops.len())?;
        for &count in ops {
            for _ in 0..count {
                self.before.push(reader.u32()?);
            }
            self.rest.push(reader.u32()?);
        }
        Ok(())
    }

    /// Reads the section of feeds of a table whose segments have these ops.
    fn read_feeds(&mut self, reader: &mut Reader<'_>, ops: &[u32]) -> Result<(), Malformed> {
        let firsts = firsts(ops);
        for _ in 0..reader.count()? {
            let (segment, op) = place(reader, ops, &firsts)?;
            let address = groups(reader, segment, ops, &firsts)?;
            let data = groups(reader, segment, ops, &firsts)?;
            self.feeds.push(OpFeeds { op, address, data });
        }
        Ok(())
    }

    /// Reads the section of branches of a table whose segments have these ops.
    fn read_branches(&mut self, reader: &mut Reader<'_>, ops: &[u32]) -> Result<(), Malformed> {
        let firsts = firsts(ops);
        let branches = self.branches.insert(Vec::new());
        for _ in 0..reader.count()? {
            let (segment, op) = place(reader, ops, &firsts)?;
            branches.push((op, groups(reader, segment, ops, &firsts)?));
        }
        Ok(())
    }

    /// Reads the section that marks loads of the sections before it, of a table whose segments have
    /// these ops.
    fn read_earlier(&mut self, reader: &mut Reader<'_>, ops: &[u32]) -> Result<(), Malformed> {
        let mut feeds: FxHashMap<u32, Vec<&mut OpFeed>> = FxHashMap::default();
        for OpFeeds { op, address, data } in &mut self.feeds {
            feeds.entry(*op).or_default().extend(address.iter_mut().chain(data).flatten());
        }
        for (op, groups) in self.branches.iter_mut().flatten() {
            feeds.entry(*op).or_default().extend(groups.iter_mut().flatten());
        }
        let firsts = firsts(ops);
        for _ in 0..reader.count()? {
            let (_, op) = place(reader, ops, &firsts)?;
            let of_op = feeds.get_mut(&op).map_or(&mut [][..], |feeds| &mut feeds[..]);
            for _ in 0..reader.count()? {
                of_op[reader.index(of_op.len())? as usize].is_earlier = true;
            }
        }
        Ok(())
    }
}

/// Returns the number of the first op of each segment.
fn firsts(ops: &[u32]) -> Vec<u32> {
    let first = |next: &mut u32, count: &u32| Some(std::mem::replace(next, *next + count));
    ops.iter().scan(0, first).collect()
}

/// Reads a segment and one of its ops; returns the segment and the op's number.
fn place(reader: &mut Reader<'_>, ops: &[u32], firsts: &[u32]) -> Result<(u32, u32), Malformed> {
    let segment = reader.index(ops.len())?;
    Ok((segment, firsts[segment as usize] + reader.index(ops[segment as usize] as usize)?))
}

/// Reads a list of groups of an op in `segment`.
fn groups(reader: &mut Reader<'_>, segment: u32, ops: &[u32], firsts: &[u32]) -> Result<Groups, Malformed> {
    (0..reader.count()?).map(|_| group(reader, segment, ops, firsts)).collect()
}

/// One group: each op by how many segments before this one its own is, and its index in that.
fn group(
    reader: &mut Reader<'_>,
    segment: u32,
    ops: &[u32],
    firsts: &[u32],
) -> Result<Vec<OpFeed>, Malformed> {
    let mut found = Vec::new();
    for _ in 0..reader.count()? {
        let at = reader.position();
        let back = reader.svarint()?;
        let there = i64::from(segment).checked_sub(back).and_then(|there| usize::try_from(there).ok());
        let Some(there) = there.filter(|&there| there < ops.len()) else {
            return Err(Malformed::Beyond { at, value: back as u64, limit: segment.into() });
        };
        let op = firsts[there] + reader.index(ops[there] as usize)?;
        found.push(OpFeed { op, is_earlier: false });
    }
    Ok(found)
}

/// Checks a list that must have `expected` entries.
fn counted(reader: &mut Reader<'_>, expected: usize) -> Result<(), Malformed> {
    let at = reader.position();
    match reader.varint()? {
        found if found == expected as u64 => Ok(()),
        value => Err(Malformed::Beyond { at, value, limit: expected as u64 }),
    }
}
