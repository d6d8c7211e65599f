//! A ledger of transfers: their kinds, the accesses that needed or caused them, and the time lost
//! to them.

use rustc_hash::FxHashMap;

use super::Ticks;

/// The purpose of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// No byte was touched that another thread had written.
    False,
    /// The line comes once, because one use follows another: the thread that had the line has
    /// ended, or made this one afterwards, or the variable that it wrote has ended.
    HandedOver,
    /// Bytes were touched that another thread had written.
    True,
}

/// Transfers that have all of this in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The line.
    pub line: u32,
    /// Their purpose.
    pub kind: Kind,
    /// The access that missed, or of a true one that needed the bytes.
    pub place: u32,
    /// The access that took the line away, or of a true one wrote the bytes.
    pub other: u32,
}

/// The losses of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Transfers.
    pub transfers: u64,
    /// Time that retirement waited for them.
    pub stalled: Ticks,
}

/// The life of a line in one cache.
#[derive(Clone, Copy, Debug)]
struct Life {
    pair: Pair,
    taken: Taken,
    /// Accesses in flight that may wait for it yet.
    refs: u32,
    is_over: bool,
    /// The access that missed touches bytes for which the line had been taken away.
    is_contended: bool,
}

/// All lives of lines, and their transfers.
#[derive(Default)]
pub(crate) struct Ledger {
    lives: Vec<Life>,
    free: Vec<u32>,
    pub pairs: FxHashMap<Pair, Taken>,
    /// Number of times that each counts.
    pub weight: u64,
}

impl Ledger {
    /// An empty ledger; transfers count `weight` times.
    pub fn new(weight: u64) -> Ledger {
        Ledger { weight, ..Ledger::default() }
    }

    /// Adds a transfer. `is_contended` says whether the missing access touches bytes for which the
    /// line had been taken away.
    pub fn begin(&mut self, pair: Pair, is_contended: bool) -> u32 {
        let taken = Taken { transfers: 1, stalled: 0 };
        let life = Life { pair, taken, refs: 0, is_over: false, is_contended };
        if let Some(id) = self.free.pop() {
            self.lives[id as usize] = life;
            return id;
        }
        self.lives.push(life);
        self.lives.len() as u32 - 1
    }

    /// The life was needed for bytes that `place` touched and `other` had written. The first time
    /// counts.
    pub fn needed(&mut self, id: u32, kind: Kind, place: u32, other: u32) {
        let pair = &mut self.lives[id as usize].pair;
        if pair.kind == Kind::False {
            *pair = Pair { kind, place, other, ..*pair };
        }
    }

    pub fn kind(&self, id: u32) -> Kind {
        self.lives[id as usize].pair.kind
    }

    pub fn hold(&mut self, id: u32) {
        self.lives[id as usize].refs += 1;
    }

    /// An access that held the life retired so much later for it.
    pub fn let_go(&mut self, id: u32, stalled: Ticks) {
        let life = &mut self.lives[id as usize];
        life.refs -= 1;
        life.taken.stalled += stalled;
        if life.is_over && life.refs == 0 {
            self.close(id);
        }
    }

    pub fn end(&mut self, id: u32) {
        let life = &mut self.lives[id as usize];
        life.is_over = true;
        // It came back before the other had used it, for the same bytes: that is no other bytes' fault.
        if life.is_contended && life.pair.kind == Kind::False {
            life.pair.kind = Kind::True;
        }
        if life.refs == 0 {
            self.close(id);
        }
    }

    fn close(&mut self, id: u32) {
        let life = self.lives[id as usize];
        let sum = self.pairs.entry(life.pair).or_default();
        sum.transfers += life.taken.transfers * self.weight;
        sum.stalled += life.taken.stalled * self.weight as Ticks;
        self.free.push(id);
    }
}
