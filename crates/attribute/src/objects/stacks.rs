//! A thread's shadow stack, with the call path of each frame.

use memlode_trace::calls::Caller;
use memlode_trace::event::{Batch, Frame};
use memlode_trace::sites::{FunctionId, SiteTable};
use memlode_trace::stack::ShadowStack;
use serde::{Deserialize, Serialize};

use crate::objects::paths::{PathId, Paths};

/// A call in progress. Two are equal when their functions are, since an exit is matched by its
/// function.
#[derive(Clone, Copy)]
struct Call {
    function: FunctionId,
    /// The function that was called: it may have called this one last, in its own place.
    by: FunctionId,
    /// Its path, if it was looked up: few calls allocate.
    path: Option<PathId>,
    /// The segment that it executed last before it called the next one.
    last: Caller,
}

impl Call {
    fn new(function: FunctionId) -> Call {
        Call { function, by: function, path: None, last: Caller::UNKNOWN }
    }
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        self.function == other.function
    }
}

/// The functions that a thread is in.
#[derive(Default)]
pub(crate) struct ThreadStack {
    calls: ShadowStack<Call>,
    /// The function left last, as it was called, and the address of its frame.
    left: Option<(FunctionId, u64)>,
    /// The chunk that continues the stack without a gap: its stream and sequence.
    next: Option<(u8, u32)>,
    /// The segment executed last before the current chunk.
    before: Caller,
    /// The segment executed last in it.
    at_end: Caller,
    /// Recording is off: the calls in progress are not known.
    pub dormant: bool,
}

/// A thread's stack, to be written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedStack {
    /// The function of each frame, that which was called, the segment executed last before it called
    /// the next one, and its address.
    frames: Vec<(u32, u32, Caller, u64)>,
    left: Option<(u32, u64)>,
    next: Option<(u8, u32)>,
    before: Caller,
    at_end: Caller,
    dormant: bool,
}

impl SavedStack {
    /// Returns whether it has functions of a trace with this number of them.
    pub fn fits(&self, functions: usize) -> bool {
        let left = self.left.iter().map(|(function, _)| function);
        let named = self.frames.iter().flat_map(|(function, by, ..)| [function, by]).chain(left);
        named.into_iter().all(|function| (*function as usize) < functions)
    }
}

impl ThreadStack {
    /// Writes the stack down.
    pub fn saved(&self) -> SavedStack {
        let frame = |&(call, address): &(Call, u64)| (call.function.0, call.by.0, call.last, address);
        let frames = self.calls.frames().iter().map(frame).collect();
        let &ThreadStack { left, next, before, at_end, dormant, .. } = self;
        let left = left.map(|(function, address)| (function.0, address));
        SavedStack { frames, left, next, before, at_end, dormant }
    }

    /// The stack that was written down.
    pub fn of(saved: &SavedStack) -> ThreadStack {
        let call = |&(function, by, last, address): &(u32, u32, Caller, u64)| {
            (Call { by: FunctionId(by), last, ..Call::new(FunctionId(function)) }, address)
        };
        let mut calls = ShadowStack::default();
        calls.reset(saved.frames.iter().map(call));
        let &SavedStack { left, next, before, at_end, dormant, .. } = saved;
        let left = left.map(|(function, address)| (FunctionId(function), address));
        ThreadStack { calls, left, next, before, at_end, dormant }
    }

    /// Takes up the thread at a chunk: goes on where the chunk before it ended, or starts from the
    /// chunk's snapshot.
    pub fn begin(&mut self, batch: &Batch) {
        self.before = self.at_end;
        if batch.after_gap || batch.dormant || self.next != Some((batch.stream, batch.sequence)) {
            self.calls
                .reset(batch.stack.iter().map(|frame: &Frame| (Call::new(frame.function), frame.address)));
            self.before = Caller::UNKNOWN;
            self.left = None;
        }
        self.at_end = if batch.last == Caller::BEFORE { self.before } else { batch.last };
        self.dormant = batch.dormant;
        self.next = batch.sequence.checked_add(1).map(|next| (batch.stream, next));
    }

    /// Call path of the innermost frame. With `names`, calling lines are included.
    pub fn path(&mut self, paths: &mut Paths, names: Option<&SiteTable>) -> PathId {
        let frames = self.calls.frames_mut();
        let known = frames.iter().rposition(|(call, _)| call.path.is_some());
        let mut path = known.and_then(|at| frames[at].0.path).unwrap_or(PathId::ROOT);
        for at in known.map_or(0, |at| at + 1)..frames.len() {
            let Call { function, by, .. } = frames[at].0;
            let last = at.checked_sub(1).map_or(Caller::UNKNOWN, |outer| frames[outer].0.last);
            let call = |names: &SiteTable| {
                names.call_of(last, if names.calls_by_name(last, function) { function } else { by })
            };
            path = paths.enter(path, function, names.and_then(call));
            frames[at].0.path = Some(path);
        }
        path
    }

    /// The function whose frame holds a stack address: the innermost one whose return-address slot
    /// lies above it.
    ///
    /// An address more than 4 KiB below the innermost frame is not taken for stack. A leaf's red
    /// zone, or a function without instrumentation, stays within that.
    pub fn frame_of(&self, address: u64) -> Option<FunctionId> {
        let frames = self.calls.frames();
        let (_, innermost) = frames.last()?;
        if address < innermost.saturating_sub(4096) {
            return None;
        }
        frames.iter().rev().find(|(_, frame)| *frame > address).map(|(call, _)| call.function)
    }

    /// A function is entered.
    #[inline]
    pub fn enter(&mut self, function: FunctionId, address: u64, caller: Caller) {
        self.calls.drop_to(address);
        let caller = if caller == Caller::BEFORE { self.before } else { caller };
        if let Some((outer, _)) = self.calls.frames_mut().last_mut()
            && caller != Caller::RETURNED
        {
            outer.last = caller;
        }
        // Between the two the caller executed nothing: one function called the other last.
        let left = self.left.take().filter(|&(_, frame)| caller == Caller::RETURNED && frame == address);
        let by = left.map_or(function, |(by, _)| by);
        self.calls.push([(Call { by, ..Call::new(function) }, address)]);
    }

    /// A function is left.
    #[inline]
    pub fn exit(&mut self, function: FunctionId) {
        let top = self.calls.frames().last().filter(|(call, _)| call.function == function);
        self.left = top.map(|(call, address)| (call.by, *address));
        self.calls.exit(Call::new(function));
    }

    /// Control came back to a frame.
    pub fn resume(&mut self, function: FunctionId, address: u64) {
        self.calls.resume(Call::new(function), address);
    }
}
