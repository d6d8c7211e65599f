//! The member of an object that lies at an offset.

use std::collections::BTreeSet;

use super::Debug;
use super::index::EntryId;
use super::types::{Descriptor, Member, Shape, TypeFacts};

/// Records inside each other that are followed.
const DEEPEST: usize = 32;
/// Members that are looked at for one access: unions of unions have very many.
const MOST_VISITS: usize = 1000;
/// Members of one access that are named; more are named by what they are in.
const MOST_NAMES: usize = 8;

/// The end of the way from an object to the bytes of an access.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inside {
    /// The type that the member is of: the object's own, its elements', or a base class.
    pub owner: EntryId,
    /// "pos.x", "slots[].key"; "low|high" where it touches both or, in a union, may touch either; `None`
    /// of an object without members, or between these.
    pub member: Option<String>,
    /// The type of the innermost member: of several the first pointer.
    pub kind: EntryId,
    /// The offset in that.
    pub rest: u64,
    /// The type that a pointer there really points to, where its own says bytes.
    pub element: Option<EntryId>,
}

/// Pointers among a record's members.
pub(crate) struct Pointers {
    /// The type that all lead to.
    pub to: EntryId,
    /// "left|right"
    pub names: String,
}

/// The bytes of an access, in an object.
#[derive(Clone, Copy)]
struct Bytes {
    from: u64,
    count: u64,
}

/// A way to the bytes of an access.
#[derive(Clone)]
struct Hit {
    owner: EntryId,
    path: String,
    kind: EntryId,
    rest: u64,
    element: Option<EntryId>,
    /// An element of an array whose size divides the stride is on the way.
    is_known: bool,
    /// True if this is the innermost member, and as large as the access.
    fits: bool,
    /// True if the member holds all of the access.
    is_whole: bool,
    is_discriminant: bool,
    /// No member lies there.
    is_gap: bool,
}

struct Descent<'a> {
    debug: &'a Debug,
    stride: u64,
    visits: usize,
    hits: Vec<Hit>,
}

impl Debug {
    /// Follows members from the beginning of an object to the `bytes` at `offset`. Before
    /// it, and beyond its end where a multiple of its size may be added, lie more objects of its type. Where an unknown multiple of `stride` is
    /// added, there must be an array of parts whose size divides it, or the member is not known; 0
    /// adds nothing.
    pub(crate) fn inside(&self, kind: EntryId, offset: i64, stride: u64, bytes: u64) -> Option<Inside> {
        let facts = self.type_facts(kind)?;
        let is_outside = offset < 0 || offset >= i64::try_from(facts.bytes).ok()?;
        let in_tail = is_outside && self.in_tail(&facts, offset);
        let from = if in_tail { u64::try_from(offset).ok()? } else { self.within(&facts, offset)? };
        let mut descent = Descent { debug: self, stride, visits: 0, hits: Vec::new() };
        let start = Hit {
            owner: kind,
            path: String::new(),
            kind,
            rest: from,
            element: None,
            is_known: descent.explains(&facts),
            fits: false,
            is_whole: true,
            is_discriminant: false,
            is_gap: false,
        };
        descent.visit(start, Bytes { from, count: bytes.max(1) }, 0);
        let hits = descent.hits;
        // Behind a record that is in no array lies the rest of a larger one that begins alike.
        let is_record = matches!(facts.shape, Shape::Record(_)) && facts.bytes > 0;
        let is_beyond = is_record && is_outside && !in_tail;
        if is_beyond && offset > 0 && stride == 0 {
            return None;
        }
        let Some(first) = hits.iter().find(|hit| hit.is_known) else {
            // So it does where no array in the record explains the stride.
            return (!is_beyond || offset < 0).then_some(Inside {
                owner: kind,
                member: None,
                kind,
                rest: 1,
                element: None,
            });
        };
        if first.is_gap || (is_beyond && stride == 0 && !first.fits) {
            return None;
        }
        let mut paths: Vec<&str> = Vec::new();
        for hit in hits.iter().filter(|hit| hit.is_known && hit.owner == first.owner) {
            if !hit.path.is_empty() && !paths.contains(&hit.path.as_str()) {
                paths.push(&hit.path);
            }
        }
        let is_pointer = |hit: &&Hit| hit.is_known && hit.rest == 0 && self.is_typed_pointer(hit.kind);
        let end = hits.iter().find(is_pointer).unwrap_or(first);
        Some(Inside {
            owner: first.owner,
            member: Some(paths.join("|")).filter(|paths| !paths.is_empty()),
            kind: end.kind,
            rest: end.rest,
            element: end.element,
        })
    }

    /// Returns whether a type is a number or pointer that is larger than `bytes`.
    pub(crate) fn is_larger_number(&self, kind: EntryId, bytes: u64) -> bool {
        let is_number = |shape: &Shape| matches!(shape, Shape::Plain | Shape::Pointer(_));
        self.type_facts(kind).is_some_and(|facts| is_number(&facts.shape) && facts.bytes > bytes)
    }

    fn is_typed_pointer(&self, kind: EntryId) -> bool {
        let facts = self.type_facts(kind);
        facts.is_some_and(
            |facts| matches!(facts.shape, Shape::Pointer(Some(to)) if self.type_facts(to).is_some()),
        )
    }

    /// Returns whether two entries describe the same type: each unit has its own, and names of a type
    /// are entries, too.
    pub(crate) fn is_same(&self, one: EntryId, other: EntryId) -> bool {
        one == other
            || matches!((self.type_facts(one), self.type_facts(other)), (Some(one), Some(other))
                if one.id == other.id || (one.name.is_some() && one.is_like(&other)))
    }

    /// Returns whether an object of one type has one of another type at an offset, or is one.
    pub(crate) fn holds(&self, kind: EntryId, offset: i64, other: EntryId) -> bool {
        let (Some(facts), Some(wanted)) = (self.type_facts(kind), self.type_facts(other)) else {
            return false;
        };
        self.within(&facts, offset).is_some_and(|from| self.has_at(&facts, from, &wanted, 0))
    }

    fn has_at(&self, facts: &TypeFacts, from: u64, wanted: &TypeFacts, depth: usize) -> bool {
        if from == 0 && facts.is_like(wanted) {
            return true;
        }
        if depth > DEEPEST || facts.bytes < wanted.bytes {
            return false;
        }
        let inner = |kind: EntryId, from: u64| {
            self.type_facts(kind).is_some_and(|inner| self.has_at(&inner, from, wanted, depth + 1))
        };
        match &facts.shape {
            Shape::Array(element) => {
                let bytes = self.type_facts(*element).map_or(0, |element| element.bytes);
                from.checked_rem(bytes).is_some_and(|from| inner(*element, from))
            }
            Shape::Record(members) => {
                let mut there =
                    members.iter().filter(|member| self.size(member) > from.wrapping_sub(member.offset));
                there.any(|member| inner(member.kind, from - member.offset))
            }
            Shape::Pointer(_) | Shape::Descriptor(_) | Shape::Plain => false,
        }
    }

    /// Returns whether a record begins with all that another one has: as C's programs derive types.
    pub(crate) fn begins_like(&self, outer: EntryId, inner: EntryId) -> bool {
        let (Some(outer), Some(inner)) = (self.type_facts(outer), self.type_facts(inner)) else {
            return false;
        };
        let (Shape::Record(all), Shape::Record(first)) = (&outer.shape, &inner.shape) else { return false };
        let is_there = |wanted: &Member| {
            all.iter().any(|member| {
                member.name == wanted.name
                    && member.offset == wanted.offset
                    && self.size(member) == self.size(wanted)
            })
        };
        outer.bytes > inner.bytes && !first.is_empty() && first.iter().all(is_there)
    }

    /// The pointers among a record's members which lie an unknown multiple of `stride` from an offset.
    /// `None` if they lead to different types, or there are none.
    pub(crate) fn only_pointers(&self, kind: EntryId, offset: i64, stride: u64) -> Option<Pointers> {
        let facts = self.type_facts(kind)?;
        let Shape::Record(members) = &facts.shape else { return None };
        let stride = i64::try_from(stride).ok().filter(|stride| *stride > 0)?;
        // Behind it lies the rest of a larger one that begins alike.
        u64::try_from(offset).ok().filter(|offset| *offset < facts.bytes)?;
        let is_there = |member: &&Member| {
            i64::try_from(member.offset).is_ok_and(|at| at.wrapping_sub(offset).rem_euclid(stride) == 0)
        };
        let (mut found, mut names) = (None, Vec::new());
        for member in members.iter().filter(is_there) {
            let Some((to, 8)) = self.pointer_of(member.kind) else { continue };
            let to = to?;
            if found.is_some_and(|found| found != to) {
                return None;
            }
            found = Some(to);
            names.extend(self.inside(kind, member.offset as i64, 0, 8).and_then(|inside| inside.member));
        }
        Some(Pointers { to: found?, names: names.join("|") }).filter(|found| !found.names.is_empty())
    }

    /// The type that a pointer points to, or all that a record of one has, with the bytes of it; `None`
    /// inside of one to `void`.
    pub(crate) fn pointer_of(&self, kind: EntryId) -> Option<(Option<EntryId>, u64)> {
        let whole = self.type_facts(kind)?;
        let (inner, element) = match whole.shape {
            Shape::Record(_) if whole.bytes == 8 => {
                let inside = self.inside(kind, 0, 0, 8).filter(|inside| inside.rest == 0)?;
                (inside.kind, inside.element)
            }
            _ => (kind, None),
        };
        match self.type_facts(inner)?.shape {
            Shape::Pointer(to) => {
                let to = element.or(to).filter(|to| self.type_facts(*to).is_some());
                Some((to, whole.bytes))
            }
            _ => None,
        }
    }

    /// Returns whether an offset is in the array at the end of a record, which goes on for as long as the
    /// object does.
    fn in_tail(&self, facts: &TypeFacts, offset: i64) -> bool {
        let Shape::Record(members) = &facts.shape else { return false };
        let Some(last) =
            members.last().filter(|last| u64::try_from(offset).is_ok_and(|at| at >= last.offset))
        else {
            return false;
        };
        let is_union = members.len() > 1 && members.iter().all(|member| member.offset == 0);
        let array = self.type_facts(last.kind);
        !is_union
            && array.is_some_and(|array| match array.shape {
                Shape::Array(element) => {
                    self.type_facts(element).is_some_and(|element| array.bytes <= element.bytes)
                }
                _ => false,
            })
    }

    /// The offset in the object of an array that a byte is in; in an element where nobody says how many
    /// there are.
    fn within(&self, facts: &TypeFacts, offset: i64) -> Option<u64> {
        let whole = match facts.shape {
            Shape::Array(element) if facts.bytes == 0 => self.type_facts(element)?.bytes,
            _ => facts.bytes,
        };
        match whole {
            0 => u64::try_from(offset).ok(),
            whole => Some(offset.rem_euclid(i64::try_from(whole).ok()?) as u64),
        }
    }

    fn size(&self, member: &Member) -> u64 {
        self.type_facts(member.kind).map_or(0, |facts| facts.bytes.max(1))
    }
}

impl Descent<'_> {
    /// Parts of this size explain that a multiple of the stride is added.
    fn explains(&self, facts: &TypeFacts) -> bool {
        self.stride == 0 || (facts.bytes > 0 && self.stride.is_multiple_of(facts.bytes))
    }

    fn bytes(&self, kind: EntryId) -> u64 {
        self.debug.type_facts(kind).map_or(0, |facts| facts.bytes)
    }

    fn visit(&mut self, mut here: Hit, at: Bytes, depth: usize) {
        self.visits += 1;
        let Some(facts) = self.debug.type_facts(here.kind) else { return };
        here.rest = at.from;
        here.element = facts.element.or(here.element);
        here.is_whole = at.from.saturating_add(at.count) <= facts.bytes.max(1);
        if self.visits > MOST_VISITS || depth > DEEPEST {
            return self.hits.push(here);
        }
        match &facts.shape {
            Shape::Array(element) => self.element(here, *element, at, depth),
            Shape::Descriptor(descriptor) => self.part(here, descriptor, at),
            Shape::Record(members) => self.members(here, members, at, depth),
            Shape::Pointer(_) | Shape::Plain => {
                here.fits = at.from == 0 && at.count == facts.bytes;
                self.hits.push(here);
            }
        }
    }

    fn element(&mut self, here: Hit, element: EntryId, at: Bytes, depth: usize) {
        let Some(facts) = self.debug.type_facts(element) else { return };
        let Some(from) = at.from.checked_rem(facts.bytes) else { return };
        let mut inner = Hit { kind: element, is_known: here.is_known || self.explains(&facts), ..here };
        match inner.path.is_empty() {
            true => inner.owner = element,
            false => inner.path += "[]",
        }
        self.visit(inner, Bytes { from, count: at.count.min(facts.bytes - from) }, depth + 1);
    }

    fn part(&mut self, mut here: Hit, descriptor: &Descriptor, at: Bytes) {
        let holds = |(offset, _): &&(u64, &str)| at.from.checked_sub(*offset).is_some_and(|rest| rest < 8);
        match descriptor.parts.iter().find(holds) {
            Some((offset, name)) => {
                here.rest = at.from - offset;
                here.fits = here.rest == 0 && at.count == 8;
                here.element = (*name == Descriptor::DATA).then_some(descriptor.elements);
                here.path =
                    if here.path.is_empty() { (*name).into() } else { format!("{}.{name}", here.path) };
            }
            None => here.is_gap = true,
        }
        self.hits.push(here);
    }

    /// Goes on into all members that an access touches. Of those of a union, and of the variants of an
    /// enumeration, the ones that are as large as the access, or else all that hold it.
    fn members(&mut self, here: Hit, members: &[Member], at: Bytes, depth: usize) {
        let before = self.hits.len();
        let end = at.from.saturating_add(at.count);
        let mut covered = 0;
        let mut is_shared = false;
        for (number, member) in members.iter().enumerate() {
            // An array at the end, reached beyond it.
            let is_tail = depth == 0 && number + 1 == members.len() && at.from >= self.bytes(here.kind);
            let size = if is_tail { u64::MAX } else { self.debug.size(member) };
            let behind = member.offset.saturating_add(size);
            if behind <= at.from || end <= member.offset {
                continue;
            }
            is_shared |= member.offset < covered;
            covered = covered.max(behind);
            let from = at.from.saturating_sub(member.offset);
            let count = behind.min(end) - member.offset.max(at.from);
            let mut inner =
                Hit { kind: member.kind, is_discriminant: member.is_discriminant, ..here.clone() };
            match &member.name {
                Some(name) if inner.path.is_empty() => inner.path.clone_from(name),
                Some(name) => inner.path = format!("{}.{name}", inner.path),
                None if member.is_base && inner.path.is_empty() => inner.owner = member.kind,
                None => {}
            }
            // What is wider than the member is not only that.
            let is_wider = count < at.count;
            let first = self.hits.len();
            self.visit(inner, Bytes { from, count }, depth + 1);
            self.hits[first..].iter_mut().for_each(|hit| {
                hit.is_whole &= !is_wider;
                hit.fits &= !is_wider;
            });
        }
        if is_shared {
            self.prefer(before);
        }
        let distinct = self.hits.len() - before;
        if distinct == 0 || distinct > MOST_NAMES {
            self.hits.truncate(before);
            self.hits.push(Hit { is_gap: distinct == 0, ..here });
        }
    }

    /// Among alternatives that share a place keeps those that are as large as the access, or else hold it.
    /// One of each name is enough where they are too many.
    fn prefer(&mut self, before: usize) {
        let new = self.hits.split_off(before);
        let tests: [fn(&Hit) -> bool; 4] = [
            |hit| hit.fits && !hit.is_discriminant,
            |hit| hit.fits,
            |hit| hit.is_whole && !hit.is_discriminant && !hit.is_gap,
            |hit| hit.is_whole && !hit.is_gap,
        ];
        let test = tests.iter().find(|test| new.iter().any(test));
        match test {
            Some(test) => self.hits.extend(new.into_iter().filter(test)),
            None => self.hits.extend(new.into_iter().take(1)),
        }
        if self.hits.len() - before > MOST_NAMES {
            let last = |hit: &Hit| hit.path.rsplit('.').next().unwrap_or_default().to_owned();
            let mut named = BTreeSet::new();
            let new = self.hits.split_off(before);
            self.hits.extend(new.into_iter().filter(|hit| named.insert(last(hit))));
        }
    }
}
