//! Values of members, where a program was built to record them: whether fewer bytes would do.
//!
//! The types say how many bytes a member has and not of which sort it is. So numbers fit if all of them do as unsigned ones, or all as
//! signed ones in two's complement. The values are those of one run.

use std::ops::ControlFlow;

use memlode_layout::{Edit, Role, StructureMember};
use memlode_replay::Replay;
use memlode_trace::Trace;
use memlode_trace::event::Batch;
use memlode_trace::format::flag;
use memlode_trace::sites::{Site, SiteTable, StringId};
use rustc_hash::FxHashMap;

use crate::named::records_named;
use crate::structures::structure;

/// Chunks with accesses and without values, after which nobody looks for any.
const LOOKED_AT: usize = 4;

/// Sizes that a member can have, the least first.
const SIZES: [u64; 3] = [1, 2, 4];

/// The values of the members of a trace's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedValues(FxHashMap<(StringId, String), Seen>);

/// The values of a member that were loaded or stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Number of values.
    pub count: u64,
    /// Bytes of the widest.
    pub bytes: u64,
    /// Bits that all of them fit as unsigned numbers, and as signed ones.
    unsigned_bits: u32,
    signed_bits: u32,
    is_float: bool,
    /// All are floating-point numbers that half as many bytes hold exactly.
    is_exact: bool,
    /// The one that needs most bits, or the first one that is not exact, as it lay in memory.
    widest: u64,
}

impl Seen {
    fn add(&mut self, value: &[u8], is_float: bool) {
        let mut word = [0; 8];
        word[..value.len()].copy_from_slice(value);
        let word = u64::from_le_bytes(word);
        let unused = 64 - 8 * value.len() as u32;
        let signed = ((word << unused) as i64) >> unused;
        let signed_bits = 65 - (signed ^ (signed >> 63)).leading_zeros();
        let unsigned_bits = 64 - word.leading_zeros();
        let is_exact = is_float && value.len() == 8 && {
            let value = f64::from_bits(word);
            value.is_nan() || f64::from(value as f32) == value
        };
        let needs_more = match is_float {
            true => self.is_exact && !is_exact,
            false => unsigned_bits.min(signed_bits) > self.unsigned_bits.min(self.signed_bits),
        };
        if self.count == 0 || needs_more {
            self.widest = if is_float || unsigned_bits <= signed_bits { word } else { signed as u64 };
        }
        self.is_exact = is_exact && (self.count == 0 || self.is_exact);
        self.count += 1;
        self.bytes = self.bytes.max(value.len() as u64);
        self.unsigned_bits = self.unsigned_bits.max(unsigned_bits);
        self.signed_bits = self.signed_bits.max(signed_bits);
        self.is_float |= is_float;
    }

    /// Returns whether so many bytes would do for all of them.
    pub fn fits(&self, bytes: u64) -> bool {
        let bits = 8 * bytes as u32;
        match self.is_float {
            true => self.is_exact && bytes == 4,
            false => self.unsigned_bits <= bits || self.signed_bits <= bits,
        }
    }
}

impl RecordedValues {
    /// Looks at all values of a trace.
    pub fn of(trace: &Trace, workers: usize) -> RecordedValues {
        let names = trace.sites();
        let mut found: FxHashMap<u32, Seen> = FxHashMap::default();
        let (mut without, mut has_some) = (0, false);
        trace.replay(workers, |batch| {
            has_some |= !batch.values.is_empty();
            without += usize::from(!batch.accesses.is_empty());
            if !has_some && without >= LOOKED_AT {
                return ControlFlow::Break(());
            }
            look(batch, names, &mut found);
            ControlFlow::Continue(())
        });
        let mut members = RecordedValues::default();
        for (site, seen) in found {
            if let Some(member) = member_of(names, &names.sites()[site as usize]) {
                members.0.entry(member).or_default().join(&seen);
            }
        }
        members
    }

    /// Returns what was seen of a member of a type.
    pub fn of_member(&self, names: &SiteTable, ty: &str, member: &str) -> Option<Seen> {
        let of_it = |(other, name): &(StringId, String)| names.string(*other) == ty && name == member;
        let mut all = self.0.iter().filter(|(key, _)| of_it(key)).map(|(_, seen)| *seen);
        let mut sum = all.next()?;
        all.for_each(|other| sum.join(&other));
        Some(sum)
    }

    /// Returns an edit for each number of a type of which fewer bytes would do.
    pub fn narrower(&self, names: &SiteTable, ty: &str) -> Vec<Edit> {
        let shape = records_named(names, ty).first().and_then(|&record| structure(names, record));
        let members = shape.map_or(Vec::new(), |shape| shape.members);
        let edit = |member: &StructureMember| {
            let seen = self.of_member(names, ty, &member.name)?;
            // What is accessed in parts, or together with others, is not known as a whole.
            let to = SIZES.into_iter().find(|&to| seen.fits(to)).filter(|&to| to < member.bytes)?;
            (member.role == Role::Value && seen.bytes == member.bytes).then(|| Edit::Narrow {
                structure: ty.to_string(),
                member: member.name.clone(),
                to,
            })
        };
        members.iter().filter_map(edit).collect()
    }
}

impl Seen {
    fn join(&mut self, other: &Seen) {
        let bits = |seen: &Seen| seen.unsigned_bits.min(seen.signed_bits);
        if self.count == 0 {
            *self = *other;
            return;
        }
        let needs_more = match self.is_float {
            true => self.is_exact && !other.is_exact,
            false => bits(other) > bits(self),
        };
        if needs_more {
            self.widest = other.widest;
        }
        self.count += other.count;
        self.bytes = self.bytes.max(other.bytes);
        self.unsigned_bits = self.unsigned_bits.max(other.unsigned_bits);
        self.signed_bits = self.signed_bits.max(other.signed_bits);
        self.is_exact &= other.is_exact;
        self.is_float |= other.is_float;
    }

    /// The value that needs most bits, or is not exact in fewer, as a reader wants it.
    pub fn widest(&self) -> String {
        match self.is_float {
            true => f64::from_bits(self.widest).to_string(),
            false if self.unsigned_bits <= self.signed_bits => self.widest.to_string(),
            false => (self.widest as i64).to_string(),
        }
    }
}

fn look(batch: &Batch, names: &SiteTable, found: &mut FxHashMap<u32, Seen>) {
    for (access, bytes) in batch.values.iter() {
        let access = &batch.accesses[access];
        let site = names.site(access.site);
        if site.member.is_none() || site.ty.is_none() || !matches!(access.bytes, 1 | 2 | 4 | 8) {
            continue;
        }
        let seen = found.entry(access.site.0).or_default();
        // Of an update, what was there before, and what is there after.
        for value in bytes.chunks_exact(access.bytes as usize) {
            seen.add(value, site.flags & flag::FLOAT != 0);
        }
    }
}

fn member_of(names: &SiteTable, site: &Site) -> Option<(StringId, String)> {
    let path = names.string(site.member?);
    // Members of members have types of their own.
    let is_whole = !path.contains(['.', '[', '|']);
    let ty = names.ty(site.ty?).name;
    is_whole.then(|| (ty, path.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[i64], bytes: usize) -> Seen {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.add(&value.to_le_bytes()[..bytes], false));
        seen
    }

    #[test]
    fn numbers_fit_if_all_do_in_one_way() {
        assert!(seen(&[0, 255], 8).fits(1) && !seen(&[0, 256], 8).fits(1));
        assert!(seen(&[-128, 127], 4).fits(1) && !seen(&[-129], 4).fits(1));
        assert!(!seen(&[-1, 255], 4).fits(1), "neither all as signed ones nor all as unsigned ones");
        assert!(seen(&[-1, 255], 4).fits(2));
        assert!(seen(&[i64::MAX], 8).fits(8) && !seen(&[i64::MAX], 8).fits(4));
        assert_eq!(seen(&[3, 70_000, 2], 8).widest(), "70000");
        assert_eq!(seen(&[-1, -70_000], 8).widest(), "-70000");
    }

    #[test]
    fn floating_point_numbers_fit_if_none_loses_a_digit() {
        let seen = |values: &[f64]| {
            let mut seen = Seen::default();
            values.iter().for_each(|value| seen.add(&value.to_le_bytes(), true));
            seen
        };
        assert!(seen(&[0.5, -3.0, 1e10]).fits(4) && !seen(&[0.5]).fits(2));
        assert!(!seen(&[0.5, 0.1]).fits(4) && !seen(&[1e300]).fits(4));
        assert_eq!(seen(&[706.5, 0.1, 0.2]).widest(), "0.1");
    }
}
