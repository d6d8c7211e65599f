//! The shadow stack of a thread.

use crate::event::Mark;
use crate::format::limit;

/// Function calls in progress, outermost first, rebuilt from enter, exit and resume (SPEC §2.2).
///
/// `F` names a function: [`crate::sites::FunctionId`] for readers, the encoder has its own.
#[derive(Clone, Debug)]
pub struct ShadowStack<F> {
    frames: Vec<(F, u64)>,
}

impl<F> Default for ShadowStack<F> {
    fn default() -> Self {
        ShadowStack { frames: Vec::new() }
    }
}

impl<F: Copy + PartialEq> ShadowStack<F> {
    /// The frames: function and address of its return-address slot, outermost first.
    pub fn frames(&self) -> &[(F, u64)] {
        &self.frames
    }

    /// The same, for data that a caller keeps with the functions.
    pub fn frames_mut(&mut self) -> &mut [(F, u64)] {
        &mut self.frames
    }

    /// Starts over with a snapshot.
    pub fn reset(&mut self, frames: impl IntoIterator<Item = (F, u64)>) {
        self.frames.clear();
        self.frames.extend(frames);
    }

    /// A function is entered. Frames at or below its address belong to calls that are over.
    #[inline]
    pub fn enter(&mut self, function: F, address: u64) {
        self.drop_to(address);
        self.frames.push((function, address));
    }

    /// The frames at an address and below it are over.
    #[inline]
    pub fn drop_to(&mut self, address: u64) {
        while self.frames.last().is_some_and(|&(_, top)| top <= address) {
            self.frames.pop();
        }
    }

    /// A function is left: its frame goes if it is the top.
    #[inline]
    pub fn exit(&mut self, function: F) {
        if self.frames.last().is_some_and(|&(top, _)| top == function) {
            self.frames.pop();
        }
    }

    /// Control is back in the frame at an address: everything below it is gone.
    #[inline]
    pub fn unwind(&mut self, address: u64) {
        while self.frames.last().is_some_and(|&(_, top)| top < address) {
            self.frames.pop();
        }
    }

    /// Control is back in a function. The frame may be new, if the function was entered while
    /// recording was off.
    #[inline]
    pub fn resume(&mut self, function: F, address: u64) {
        self.unwind(address);
        if self.frames.last().is_none_or(|&(_, top)| top != address) {
            self.frames.push((function, address));
        }
    }

    /// Adds frames, outermost first.
    pub fn push(&mut self, frames: impl IntoIterator<Item = (F, u64)>) {
        self.frames.extend(frames);
    }

    /// Returns whether no call is in progress.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the content of a snapshot: the innermost frames, up to the format's limit.
    pub fn snapshot(&self) -> &[(F, u64)] {
        &self.frames[self.frames.len().saturating_sub(limit::FRAMES as usize)..]
    }
}

impl ShadowStack<crate::sites::FunctionId> {
    /// Follows a mark; allocations change nothing.
    pub fn apply(&mut self, mark: &Mark) {
        match *mark {
            Mark::Enter { function, frame, .. } => self.enter(function, frame),
            Mark::Exit { function } => self.exit(function),
            Mark::Resume { function, frame } => self.resume(function, frame),
            _ => {}
        }
    }

    /// The innermost function.
    pub fn top(&self) -> Option<crate::sites::FunctionId> {
        self.frames.last().map(|&(function, _)| function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_tail_calls_and_unwinding() {
        let mut stack = ShadowStack::default();
        stack.enter("main", 1000);
        stack.enter("f", 900);
        stack.enter("g", 800);
        stack.exit("g");
        assert_eq!(stack.frames(), [("main", 1000), ("f", 900)]);
        stack.exit("main");
        assert_eq!(stack.frames().len(), 2, "only the top leaves");
        // f ends in a tail call: the callee has f's slot.
        stack.exit("f");
        stack.enter("tail", 900);
        stack.enter("h", 700);
        stack.resume("tail", 900);
        assert_eq!(stack.frames(), [("main", 1000), ("tail", 900)]);
        // A frame that was entered while recording was off.
        stack.resume("late", 800);
        assert_eq!(stack.frames(), [("main", 1000), ("tail", 900), ("late", 800)]);
        // A frame without an exit (longjmp past it) goes when its place is used again.
        stack.enter("i", 900);
        assert_eq!(stack.frames(), [("main", 1000), ("i", 900)]);
    }
}
