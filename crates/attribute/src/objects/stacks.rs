//! A thread's shadow stack, with the call path of each frame.

use memlode_trace::calls::Caller;
use memlode_trace::event::{Batch, Frame};
use memlode_trace::sites::{FunctionId, SiteId, SiteTable};
use memlode_trace::stack::ShadowStack;
use serde::{Deserialize, Serialize};

use crate::objects::paths::{PathId, Paths};

/// Number of functions that called each other last that are known: the first one, and the latest.
const BEFORE: usize = 8;

type Before = [FunctionId; BEFORE];

/// A call in progress. Two are equal when their functions are, since an exit is matched by its
/// function.
#[derive(Clone, Copy)]
struct Call {
    function: FunctionId,
    /// Functions that were entered in its place since its caller went on, the latest first: each may
    /// have called the next one last. The last one, which came first, is repeated.
    before: Before,
    /// Its path, if it was looked up: few calls allocate.
    path: Option<PathId>,
    /// The segment that it executed last before it called the next one.
    last: Caller,
}

impl Call {
    fn new(function: FunctionId) -> Call {
        Call { function, before: [function; BEFORE], path: None, last: Caller::UNKNOWN }
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
    /// The function left last and those before it, as in [`Call::before`], and the address of its
    /// frame.
    left: Option<(Before, u64)>,
    /// The chunk that continues the stack without a gap: its stream and sequence.
    next: Option<(u8, u32)>,
    /// The segment executed last before the current chunk.
    before: Caller,
    /// The segment executed last in it.
    at_end: Caller,
    /// Recording is off: the calls in progress are not known.
    pub dormant: bool,
    /// The thread's last block, unless a block ended behind it.
    made: Option<Made>,
}

/// A block as it was made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Made {
    site: u32,
    base: u64,
    bytes: u64,
    /// The number of calls that were in progress.
    depth: usize,
}

/// A thread's stack, to be written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedStack {
    /// The function of each frame, those before it in its place, the segment executed last before it
    /// called the next one, and its address.
    frames: Vec<(u32, [u32; BEFORE], Caller, u64)>,
    left: Option<([u32; BEFORE], u64)>,
    next: Option<(u8, u32)>,
    before: Caller,
    at_end: Caller,
    dormant: bool,
    made: Option<Made>,
}

impl SavedStack {
    /// Returns whether it has functions of a trace with this number of them.
    pub fn fits(&self, functions: usize) -> bool {
        let left = self.left.iter().flat_map(|(left, _)| left);
        let named = self.frames.iter().flat_map(|(function, before, ..)| before.iter().chain([function]));
        let named = named.chain(left);
        named.into_iter().all(|function| (*function as usize) < functions)
    }
}

impl ThreadStack {
    /// Writes the stack down.
    pub fn saved(&self) -> SavedStack {
        let frame = |&(call, address): &(Call, u64)| {
            (call.function.0, call.before.map(|function| function.0), call.last, address)
        };
        let frames = self.calls.frames().iter().map(frame).collect();
        let &ThreadStack { left, next, before, at_end, dormant, made, .. } = self;
        let left = left.map(|(left, address)| (left.map(|function| function.0), address));
        SavedStack { frames, left, next, before, at_end, dormant, made }
    }

    /// The stack that was written down.
    pub fn of(saved: &SavedStack) -> ThreadStack {
        let call = |&(function, before, last, address): &(u32, [u32; BEFORE], Caller, u64)| {
            (Call { before: before.map(FunctionId), last, ..Call::new(FunctionId(function)) }, address)
        };
        let mut calls = ShadowStack::default();
        calls.reset(saved.frames.iter().map(call));
        let &SavedStack { left, next, before, at_end, dormant, made, .. } = saved;
        let left = left.map(|(left, address)| (left.map(FunctionId), address));
        ThreadStack { calls, left, next, before, at_end, dormant, made }
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
            self.made = None;
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
            let Call { function, before, .. } = frames[at].0;
            let last = at.checked_sub(1).map_or(Caller::UNKNOWN, |outer| frames[outer].0.last);
            let call = |names: &SiteTable| {
                let mut called = [function].into_iter().chain(before);
                let called = called.find(|&called| names.calls_by_name(last, called));
                names.call_of(last, called.unwrap_or(before[BEFORE - 1]))
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
        let before = left.map_or([function; BEFORE], |(before, _)| before);
        self.calls.push([(Call { before, ..Call::new(function) }, address)]);
    }

    /// A function is left.
    #[inline]
    pub fn exit(&mut self, function: FunctionId) {
        let top = self.calls.frames().last().filter(|(call, _)| call.function == function);
        self.left = top.map(|(call, address)| {
            let mut before = call.before;
            if before != [function; BEFORE] {
                before.copy_within(..BEFORE - 2, 1);
                before[0] = function;
            }
            (before, *address)
        });
        self.calls.exit(Call::new(function));
    }

    /// A block is made. Returns whether it is the one that the site made last, from a call that has
    /// returned meanwhile: a memory resource that passes a request on to another one answers it by
    /// the same call, once for each.
    pub fn make(&mut self, site: SiteId, base: u64, bytes: u64) -> bool {
        let made = Made { site: site.0, base, bytes, depth: self.calls.frames().len() };
        self.made.replace(made).is_some_and(|last| {
            (last.site, last.base, last.bytes) == (site.0, base, bytes) && made.depth < last.depth
        })
    }

    /// A block has ended, so that the next one may lie where the last one lay.
    pub fn end_block(&mut self) {
        self.made = None;
    }

    /// Control came back to a frame.
    pub fn resume(&mut self, function: FunctionId, address: u64) {
        self.calls.resume(Call::new(function), address);
    }
}
