//! Plain segments: accesses whose number and sizes are known before their words are, and marks
//! between them. Nearly all are plain, and most of these have one or two accesses, so the overhead
//! of an execution matters. They are executed from plans, in a loop that keeps all its state in
//! local variables.

use std::ops::Range;

use crate::bytes::{Malformed, Reader};
use crate::calls::Caller;
use crate::event::{Access, Batch, Mark};
use crate::format::limit;
use crate::sites::SiteId;

use super::dictionary::Local;
use super::marks::{mark, tell};
use super::{DecodeError, Fallible, Run};

/// The execution of a dictionary entry.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// First of its last words.
    base: u32,
    /// Its first access among the prepared ones.
    first: u32,
    words: u16,
    accesses: u16,
    /// The entry that followed it last.
    next: u32,
    then: Then,
}

/// The rest of an execution, besides the words and accesses of its plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    Marks,
    /// Everything: it is not plain, and its plan has no words nor accesses.
    Ops,
    /// The plan is not made yet, and has no words nor accesses.
    Fill,
    /// It stands behind the dictionary, for the follower of an entry that nothing has followed yet.
    Missing,
}

impl Plan {
    /// The plans of a dictionary, before anything is executed.
    pub fn all(locals: &[Local<'_>], plans: &mut Vec<Plan>) {
        let missing =
            Plan { base: 0, first: 0, words: 0, accesses: 0, next: locals.len() as u32, then: Then::Missing };
        plans.clear();
        plans.extend(locals.iter().map(|local| Plan {
            then: if local.ops.is_empty() { Then::Fill } else { Then::Ops },
            ..missing
        }));
        plans.push(missing);
    }
}

/// A [`Template`](crate::flatten::Template) that knows where its word is in this chunk.
#[derive(Clone, Copy)]
pub(super) struct Filled {
    word: u32,
    offset: i32,
    bytes: u32,
    site: SiteId,
}

impl Filled {
    /// The access, with the last words as they are.
    #[inline(always)]
    fn access(&self, last: &[u64]) -> Access {
        let address = last[self.word as usize].wrapping_add_signed(self.offset.into());
        Access { address, bytes: self.bytes, site: self.site }
    }
}

/// A position in the control stream.
struct Cursor<'a> {
    control: &'a [u8],
    /// The bytes of it that are read.
    at: usize,
    /// Remaining executions.
    left: u64,
    /// Remaining executions that follow each other as they did last time.
    run: u64,
    /// The current entry.
    current: u32,
    /// The one executed before it.
    previous: u32,
}

/// Why the loop was left.
enum Stop {
    /// Everything is executed.
    End,
    /// The current plan is incomplete, or not made yet. Nothing of it was executed.
    Look,
    /// There is no room for the accesses of the current plan. Everything else of it was executed.
    Room,
}

impl Run<'_> {
    /// Executes the control stream.
    pub fn control(&mut self, control: &[u8], segments: u32, plans: &mut [Plan]) -> Fallible {
        let (left, current) = (segments.into(), plans.len() as u32 - 1);
        let mut cursor = Cursor { control, at: 0, left, run: 0, current, previous: current };
        let mut more = cursor.advance(plans)?;
        while more {
            more = match self.plain(plans, &mut cursor)? {
                Stop::End => false,
                Stop::Room => {
                    self.accesses_of(&plans[cursor.current as usize])?;
                    cursor.advance(plans)?
                }
                Stop::Look => {
                    let plan = &mut plans[cursor.current as usize];
                    let local = self.locals.get(cursor.current as usize).ok_or(DecodeError::NoSuccessor)?;
                    if plan.then == Then::Fill {
                        self.fill(plan, local)?;
                        true
                    } else {
                        self.other(local, caller(self.locals, cursor.previous))?;
                        self.executed[cursor.current as usize] += 1;
                        cursor.advance(plans)?
                    }
                }
            }
        }
        self.batch.last = caller(self.locals, cursor.current);
        match (control.len() - cursor.at) as u64 {
            0 => Ok(()),
            found => {
                Err(DecodeError::Count { what: "left-over bytes of control", expected: 0, found }.into())
            }
        }
    }

    /// Executes plain segments, of which there is at least one more, up to the first one that is
    /// not plain.
    #[inline(never)]
    fn plain(&mut self, plans: &mut [Plan], cursor: &mut Cursor<'_>) -> Result<Stop, Box<DecodeError>> {
        let (last, filled, locals) = (&mut *self.last, self.filled.as_slice(), self.locals);
        let executed = &mut *self.executed;
        let mut words = self.words;
        let Batch { accesses, marks, .. } = &mut *self.batch;
        let before = accesses.len();
        let room = accesses.spare_capacity_mut();
        let most = room.len().min(limit::CHUNK_ACCESSES as usize - before);
        let mut room = &mut room[..most];
        let Cursor { mut current, mut previous, mut run, .. } = *cursor;
        let stop = loop {
            let plan = &plans[current as usize];
            // Loops cost more than their one iteration, which is what most would have.
            match plan.words {
                0 => {}
                1 => {
                    let Some(delta) = words.split_off_first() else { break Err(DecodeError::Words.into()) };
                    let word = &mut last[plan.base as usize];
                    *word = word.wrapping_add(*delta);
                }
                several => {
                    let deltas = words.split_off(..several.into());
                    let Some(deltas) = deltas else { break Err(DecodeError::Words.into()) };
                    add(&mut last[span(plan.base, several)], deltas);
                }
            }
            if plan.then != Then::Nothing {
                if plan.then != Then::Marks {
                    break Ok(Stop::Look);
                }
                let done = before + most - room.len();
                let caller = caller(locals, previous);
                if locals[current as usize].unrecorded.is_some() {
                    executed[current as usize] += 1;
                }
                if let Err(error) = leave(&locals[current as usize], last, caller, done, marks) {
                    break Err(error);
                }
            }
            if plan.accesses == 1 {
                let Some(place) = room.split_off_first_mut() else { break Ok(Stop::Room) };
                place.write(filled[plan.first as usize].access(last));
            } else {
                let filled = &filled[span(plan.first, plan.accesses)];
                let Some(places) = room.split_off_mut(..filled.len()) else { break Ok(Stop::Room) };
                for (place, filled) in places.iter_mut().zip(filled) {
                    place.write(filled.access(last));
                }
            }
            if run > 0 {
                run -= 1;
                previous = current;
                current = plan.next;
                continue;
            }
            cursor.current = current;
            if cursor.left == 0 {
                break Ok(Stop::End);
            }
            if let Err(error) = cursor.step(plans) {
                break Err(error);
            }
            (current, previous, run) = (cursor.current, cursor.previous, cursor.run);
        };
        (cursor.current, cursor.previous, cursor.run) = (current, previous, run);
        self.words = words;
        let written = most - room.len();
        // SAFETY: so many places were written, from the first one on, of those that there is capacity for.
        unsafe { accesses.set_len(before + written) };
        stop
    }

    /// Finds the words of a plain segment that is executed for the first time.
    fn fill(&mut self, plan: &mut Plan, local: &Local<'_>) -> Fallible {
        plan.base = local.base as u32;
        plan.words = local.words;
        plan.first = self.filled.len() as u32;
        plan.accesses = local.templates.len() as u16;
        plan.then = match local.marks.is_empty() && local.unrecorded.is_none() {
            true => Then::Nothing,
            false => Then::Marks,
        };
        for template in local.templates {
            let base = match template.source {
                0 => Some(local.base as u32),
                source => {
                    let bases = self.bases.get(local.first_base..).ok_or(DecodeError::Source)?;
                    bases.get(source as usize).copied()
                }
            };
            let word = base.ok_or(DecodeError::Source)? + u32::from(template.word);
            if word as usize >= self.last.len() {
                return Err(DecodeError::Source.into());
            }
            self.filled.push(Filled {
                word,
                offset: template.offset,
                bytes: template.bytes,
                site: template.site,
            });
        }
        Ok(())
    }

    /// The accesses of a plan, for which there was no room: more than the chunk's header promised.
    #[cold]
    fn accesses_of(&mut self, plan: &Plan) -> Fallible {
        self.room_for(plan.accesses.into())?;
        let filled = &self.filled[plan.first as usize..][..plan.accesses.into()];
        self.batch.accesses.extend(filled.iter().map(|filled| filled.access(self.last)));
        Ok(())
    }
}

impl Cursor<'_> {
    /// Goes on to the next execution; returns whether there is one.
    #[inline(always)]
    fn advance(&mut self, plans: &mut [Plan]) -> Result<bool, Box<DecodeError>> {
        if self.run > 0 {
            self.run -= 1;
            self.previous = self.current;
            self.current = plans[self.current as usize].next;
        } else if self.left > 0 {
            self.step(plans)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The next run.
    #[inline(never)]
    fn step(&mut self, plans: &mut [Plan]) -> Fallible {
        // The last plan is of no entry.
        let entries = plans.len() as u64 - 1;
        let (next, run) = match self.short() {
            Some((next, run, bytes)) if next < entries && run < self.left => {
                self.at += bytes;
                (next as u32, run)
            }
            _ => self.long(entries as usize).map_err(DecodeError::from)?,
        };
        plans[self.current as usize].next = next;
        self.previous = self.current;
        (self.current, self.run) = (next, run);
        self.left -= 1 + run;
        Ok(())
    }

    /// An entry of one byte or two and a run of one, as almost all are; and how many bytes they
    /// have.
    #[inline(always)]
    fn short(&self) -> Option<(u64, u64, usize)> {
        match *self.control.get(self.at..)? {
            [next, run, ..] if (next | run) < 0x80 => Some((next.into(), run.into(), 2)),
            [low, high, run, ..] if low >= 0x80 && (high | run) < 0x80 => {
                Some((u64::from(low & 0x7f) | u64::from(high) << 7, run.into(), 3))
            }
            _ => None,
        }
    }

    /// Reads an entry and the length of a run, of any size.
    #[cold]
    fn long(&mut self, entries: usize) -> Result<(u32, u64), Malformed> {
        let mut reader = Reader::new(self.control);
        reader.take(self.at)?;
        let (next, run) = (reader.index(entries)?, reader.up_to(self.left - 1)?);
        self.at = reader.position();
        Ok((next, run))
    }
}

/// A few that follow each other.
#[inline(always)]
fn span(first: u32, count: u16) -> Range<usize> {
    first as usize..first as usize + count as usize
}

/// Adds differences to words.
#[inline(never)]
pub(super) fn add(words: &mut [u64], deltas: &[u64]) {
    for (word, delta) in words.iter_mut().zip(deltas) {
        *word = word.wrapping_add(*delta);
    }
}

/// Returns the caller of a function that is entered behind an entry. The entry after the last one
/// stands for the time before the chunk.
#[inline(always)]
fn caller(locals: &[Local<'_>], entry: u32) -> Caller {
    locals.get(entry as usize).map_or(Caller::BEFORE, |local| local.caller)
}

/// The marks of an execution: the number of accesses before it, and the segment executed before it.
#[inline(never)]
fn leave(
    local: &Local<'_>,
    last: &[u64],
    caller: Caller,
    done: usize,
    marks: &mut Vec<(u32, Mark)>,
) -> Fallible {
    for &(at, op) in local.marks {
        tell(marks, done + usize::from(at), mark(op, local, last, caller))?;
    }
    Ok(())
}
