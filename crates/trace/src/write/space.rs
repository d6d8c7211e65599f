//! Which modules a process has loaded, and where.

use std::sync::Arc;

use crate::format::stream;
use crate::module::{Module, ModuleId};
use crate::table::Op;

/// The instrumented images of one process at one time. A forked child starts with a clone of its
/// parent's.
#[derive(Clone, Default)]
pub struct AddressSpace {
    images: Vec<Mapped>,
    generation: u64,
}

#[derive(Clone)]
struct Mapped {
    /// Run-time address of the first anchor.
    start: u64,
    load_bias: u64,
    id: ModuleId,
    module: Arc<Module>,
}

impl AddressSpace {
    /// A module was loaded; the load bias is run-time minus link-time address. Modules that it
    /// overlaps are gone.
    pub fn load(&mut self, id: ModuleId, module: Arc<Module>, load_bias: u64) {
        let mapped =
            Mapped { start: module.image().anchors.address.wrapping_add(load_bias), load_bias, id, module };
        self.images.retain(|old| !old.contains(mapped.start) && !mapped.contains(old.start));
        self.images.push(mapped);
        self.generation += 1;
    }

    /// A module was unloaded.
    pub fn unload(&mut self, id: ModuleId, load_bias: u64) {
        self.images.retain(|image| (image.id, image.load_bias) != (id, load_bias));
        self.generation += 1;
    }

    /// Changes whenever a header word may have got another meaning.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the segment of a header word.
    pub(crate) fn resolve(&self, header: u64) -> Option<Resolved<'_>> {
        let image = self.images.iter().find(|image| image.contains(header))?;
        let offset = header - image.start;
        let anchor = (offset / u64::from(stream::ANCHOR_BYTES)) as u32;
        let whole = offset.is_multiple_of(u64::from(stream::ANCHOR_BYTES));
        whole.then_some(Resolved { id: image.id, module: &image.module, start: image.start, anchor })
    }
}

/// An anchor of a loaded image.
pub(crate) struct Resolved<'a> {
    pub id: ModuleId,
    pub module: &'a Module,
    /// Address of the image's first anchor.
    pub start: u64,
    /// Which of them it is.
    pub anchor: u32,
}

/// A segment's promise, which is carried out after its words are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Accesses of a loop.
    pub accesses: u64,
    /// Bytes that are copied or filled.
    pub bytes: u64,
}

impl Promise {
    /// Returns whether it is no more than another one.
    pub fn is_within(self, other: Promise) -> bool {
        self.accesses <= other.accesses && self.bytes <= other.bytes
    }
}

impl AddressSpace {
    /// Returns the promise of the segment at the beginning of `words`, if it makes one and none of
    /// its words is zero.
    pub fn promise(&self, words: &[u64]) -> Option<Promise> {
        let mut promise = Promise::default();
        let (ops, operands) = self.ops(words);
        if operands.contains(&0) || !ops.iter().any(|op| counted_by(op).is_some()) {
            return None;
        }
        let mut iterations = 0;
        for op in ops {
            match *op {
                Op::Repeat { count } => iterations = operands[count as usize],
                Op::Stride { .. } => promise.accesses = promise.accesses.saturating_add(iterations),
                Op::Range { length, .. } => {
                    promise.bytes = promise.bytes.saturating_add(operands[length as usize]);
                }
                _ => {}
            }
        }
        Some(promise)
    }

    /// Reduces the promise of the segment at the beginning of `words` to its first access: one
    /// iteration, one byte.
    pub fn shorten(&self, words: &mut [u64]) {
        let counts: Vec<usize> = self.ops(words).0.iter().filter_map(counted_by).collect();
        for word in counts {
            words[1 + word] = words[1 + word].min(1);
        }
    }

    /// The ops of the segment at the beginning of words, and its words.
    fn ops<'a>(&'a self, words: &'a [u64]) -> (&'a [Op], &'a [u64]) {
        let header = words.first().copied().unwrap_or(0);
        let segment =
            self.resolve(header).and_then(|found| Some((found.module, found.module.segment(found.anchor)?)));
        let Some((module, at)) = segment else { return (&[], &[]) };
        let segment = module.segment_of(at);
        match words.get(1..1 + usize::from(segment.words)) {
            Some(operands) => {
                (&module.tables[at.0].ops[segment.ops.start as usize..segment.ops.end as usize], operands)
            }
            None => (&[], &[]),
        }
    }
}

/// The word with the amount of an op.
fn counted_by(op: &Op) -> Option<usize> {
    match *op {
        Op::Repeat { count } => Some(count.into()),
        Op::Range { length, .. } => Some(length.into()),
        _ => None,
    }
}

impl Mapped {
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.module.image().anchors.bytes.len() as u64
    }
}
