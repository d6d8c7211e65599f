//! A thread's shadow stack, with the call path of each frame.

use memlode_trace::event::Batch;
use memlode_trace::sites::FunctionId;
use memlode_trace::stack::ShadowStack;

use crate::paths::{PathId, Paths};

/// A call in progress. Two are equal when their functions are: that is what an exit is matched by.
#[derive(Clone, Copy)]
struct Call {
    function: FunctionId,
    path: PathId,
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
    /// The chunk that continues the stack without a gap: its stream and sequence.
    next: Option<(u8, u32)>,
}

impl ThreadStack {
    /// Takes up the thread at a chunk: goes on where the chunk before it ended, or starts from the chunk's snapshot.
    pub fn begin(&mut self, batch: &Batch, paths: &mut Paths) {
        if batch.after_gap || self.next != Some((batch.stream, batch.sequence)) {
            let mut path = PathId::ROOT;
            self.calls.reset(batch.stack.iter().map(|frame| {
                path = paths.enter(path, frame.function);
                (Call { function: frame.function, path }, frame.address)
            }));
        }
        self.next = batch.sequence.checked_add(1).map(|next| (batch.stream, next));
    }

    /// Call path of the innermost frame.
    pub fn path(&self) -> PathId {
        self.calls.frames().last().map_or(PathId::ROOT, |(call, _)| call.path)
    }

    /// The function whose frame holds a stack address: the innermost one whose return-address slot lies above it.
    ///
    /// An address more than 4 KiB below the innermost frame is not taken for stack. What a leaf's red zone or a function
    /// without instrumentation puts there is within it.
    pub fn frame_of(&self, address: u64) -> Option<FunctionId> {
        let frames = self.calls.frames();
        let (_, innermost) = frames.last()?;
        if address < innermost.saturating_sub(4096) {
            return None;
        }
        frames.iter().rev().find(|(_, frame)| *frame > address).map(|(call, _)| call.function)
    }

    /// A function is entered.
    pub fn enter(&mut self, function: FunctionId, address: u64, paths: &mut Paths) {
        // Calls that ended without an exit must go before the path is read.
        self.calls.unwind(address.saturating_add(1));
        let path = paths.enter(self.path(), function);
        self.calls.enter(Call { function, path }, address);
    }

    /// A function is left.
    pub fn exit(&mut self, function: FunctionId) {
        self.calls.exit(Call { function, path: PathId::ROOT });
    }

    /// Control came back to a frame.
    pub fn resume(&mut self, function: FunctionId, address: u64, paths: &mut Paths) {
        self.calls.unwind(address);
        let path = paths.enter(self.path(), function);
        self.calls.resume(Call { function, path }, address);
    }
}
