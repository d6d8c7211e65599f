//! Segments of which not all is known before their words are: ranges, lanes, values, loops.

use crate::calls::Caller;
use crate::event::{Access, Course, Loop, Stride};
use crate::format::limit;
use crate::sites::SiteId;
use crate::table::{Op, Place};

use super::dictionary::Local;
use super::marks::{mark, tell};
use super::plain::add;
use super::{DecodeError, Fallible, Loops, Run};

impl Run<'_> {
    /// Executes a segment that is not plain; `caller` is the segment executed before it.
    pub fn other(&mut self, local: &Local<'_>, caller: Caller) -> Fallible {
        let own = &mut self.last[local.base..local.base + local.words as usize];
        let (deltas, words) = self.words.split_at_checked(own.len()).ok_or(DecodeError::Words)?;
        self.words = words;
        add(own, deltas);
        self.accesses += u64::from(local.accesses);
        let before = self.batch.accesses.len();
        match *local.ops {
            [Op::Repeat { count }, ref body @ ..] => self.repeat(local.base, count, body)?,
            _ => self.ops(local, caller)?,
        }
        self.others += (self.batch.accesses.len() - before) as u64;
        Ok(())
    }

    /// Returns an error if this many accesses may not come.
    pub fn room_for(&self, accesses: u64) -> Fallible {
        match (self.batch.accesses.len() as u64).saturating_add(accesses) <= limit::CHUNK_ACCESSES {
            true => Ok(()),
            false => Err(DecodeError::TooMany(limit::CHUNK_ACCESSES).into()),
        }
    }

    /// Executes strides, one after the other in each iteration; a word of the segment has the
    /// number of iterations.
    fn repeat(&mut self, base: usize, count: u16, body: &[Op]) -> Fallible {
        let iterations = self.last[base + count as usize];
        let accesses = iterations.saturating_mul(body.len() as u64);
        self.room_for(accesses.saturating_add(self.kept))?;
        self.repeated += accesses;
        let first = self.batch.strides.len();
        for op in body {
            let Op::Stride { site, at, step } = *op else { unreachable!("the table's parser has looked") };
            let address = self.last[base + at.word as usize].wrapping_add(at.offset);
            let access = Access { address, bytes: self.bytes(site), site: SiteId(site) };
            self.batch.strides.push(Stride {
                access,
                step,
                is_write: self.sites.site(SiteId(site)).kind.is_write(),
            });
        }
        // What goes past the caches is no matter of lines that stay, which is what loops are kept for.
        let strides = &self.batch.strides[first..];
        if !strides.iter().any(|stride| self.sites.site(stride.access.site).is_past_caches()) {
            let course = Course::of(strides);
            let strides = first as u32..self.batch.strides.len() as u32;
            let (access, mark) = (self.batch.accesses.len() as u32, self.batch.marks.len() as u32);
            let repeated = Loop { access, mark, iterations, strides, course };
            if self.loops == Loops::Kept {
                self.kept += accesses;
                self.batch.loops.push(repeated);
                return Ok(());
            }
            self.batch.unrolled.push(repeated);
        }
        self.batch.accesses.reserve(accesses as usize);
        for _ in 0..iterations {
            for Stride { access, step, .. } in &mut self.batch.strides[first..] {
                self.batch.accesses.push(*access);
                access.address = access.address.wrapping_add(*step);
            }
        }
        self.batch.strides.truncate(first);
        Ok(())
    }

    fn ops(&mut self, local: &Local<'_>, caller: Caller) -> Fallible {
        let base = local.base;
        for &op in local.ops {
            let word = |run: &Self, word: u16| run.last[base + word as usize];
            let place = |run: &Self, at: Place| word(run, at.word).wrapping_add(at.offset);
            match op {
                Op::Repeat { .. } | Op::Stride { .. } => unreachable!("a segment with these has no others"),
                Op::Access { site, at } => {
                    let address = place(self, at);
                    self.access(SiteId(site), address, self.bytes(site))?;
                }
                Op::Derived { site, source, at } => {
                    let bases = self.bases.get(local.first_base..).ok_or(DecodeError::Source)?;
                    let base = bases[1 + source as usize] as usize;
                    let address = self.last[base + at.word as usize].wrapping_add(at.offset);
                    self.access(SiteId(site), address, self.bytes(site))?;
                }
                Op::Range { site, at, length } => {
                    self.range(SiteId(site), place(self, at), word(self, length))?;
                }
                Op::Masked { site, at, lanes, mask } => {
                    let (address, mask, bytes) = (place(self, at), word(self, mask), self.bytes(site));
                    for lane in (0..u64::from(lanes)).filter(|lane| mask >> lane & 1 == 1) {
                        self.access(SiteId(site), address.wrapping_add(lane * u64::from(bytes)), bytes)?;
                    }
                }
                Op::Gather { site, lanes, first, mask } => {
                    let (mask, bytes) = (word(self, mask), self.bytes(site));
                    for lane in (0..u16::from(lanes)).filter(|lane| mask >> lane & 1 == 1) {
                        self.access(SiteId(site), word(self, first + lane), bytes)?;
                    }
                }
                Op::Value { first, bytes, lanes, mask, both } => {
                    let mask = if lanes == 0 { 1 } else { word(self, mask) };
                    self.values(base + first as usize, bytes, lanes, mask, both);
                }
                op => {
                    let before = self.batch.accesses.len();
                    tell(&mut self.batch.marks, before, mark(op, local, self.last, caller))?;
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, site: u32) -> u32 {
        self.sites.site(SiteId(site)).bytes
    }

    fn access(&mut self, site: SiteId, address: u64, bytes: u32) -> Fallible {
        self.room_for(1)?;
        self.batch.accesses.push(Access { address, bytes, site });
        Ok(())
    }

    /// The values of the accesses that the op before made: as many as bits are set in the mask.
    fn values(&mut self, first: usize, bytes: u32, lanes: u8, mask: u64, both: bool) {
        let bytes = bytes as usize;
        let lanes = usize::from(lanes.max(1));
        let words = (bytes * lanes).div_ceil(8);
        let set = |lane: &usize| mask >> lane & 1 == 1;
        let accesses = self.batch.accesses.len() - (0..lanes).filter(set).count();
        for (lane, access) in (0..lanes).filter(set).zip(accesses..) {
            self.batch.values.push(access as u32, |out| {
                for copy in 0..1 + usize::from(both) {
                    let from = 8 * (first + copy * words) + lane * bytes;
                    out.extend((from..from + bytes).map(|at| self.last[at / 8].to_le_bytes()[at % 8]));
                }
            });
        }
    }

    /// A range longer than an access can hold becomes several. A range that exceeds every address
    /// space was not carried out: its thread met a fault, and went on.
    fn range(&mut self, site: SiteId, mut address: u64, length: u64) -> Fallible {
        let mut left = if length > limit::RANGE_BYTES { 1 } else { length };
        while left > 0 {
            let bytes = left.min(u32::MAX.into()) as u32;
            self.access(site, address, bytes)?;
            address = address.wrapping_add(bytes.into());
            left -= u64::from(bytes);
        }
        Ok(())
    }
}
