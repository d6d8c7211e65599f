//! The effect of a part of a stream on its thread's shadow stack, for any earlier stack.

use crate::stack::ShadowStack;

/// A shadow stack of which only the frames are known that were entered since it was made. `F` names
/// a function.
#[derive(Clone, Debug)]
pub(super) struct RelativeStack<F> {
    below: Vec<Below<F>>,
    frames: ShadowStack<F>,
}

/// Something that happens to the frames that are not known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Below<F> {
    /// The frames at an address or below it have ended.
    Drop(u64),
    /// See [`ShadowStack::exit`].
    Exit(F),
    /// See [`ShadowStack::resume`].
    Resume(F, u64),
}

/// All changes of a shadow stack: first to the frames that it had, then frames on top of the
/// remaining ones.
#[derive(Clone, Debug)]
pub(super) struct StackChange<F> {
    below: Vec<Below<F>>,
    frames: Vec<(F, u64)>,
}

impl<F> Default for RelativeStack<F> {
    fn default() -> Self {
        RelativeStack { below: Vec::new(), frames: ShadowStack::default() }
    }
}

impl<F: Copy + PartialEq> RelativeStack<F> {
    /// Like [`ShadowStack::enter`].
    #[inline]
    pub fn enter(&mut self, function: F, address: u64) {
        self.frames.drop_to(address);
        if self.frames.is_empty() {
            self.drop_below(address);
        }
        self.frames.push([(function, address)]);
    }

    /// Like [`ShadowStack::exit`].
    #[inline]
    pub fn exit(&mut self, function: F) {
        match self.frames.is_empty() {
            true => self.below.push(Below::Exit(function)),
            false => self.frames.exit(function),
        }
    }

    /// Like [`ShadowStack::resume`].
    #[inline]
    pub fn resume(&mut self, function: F, address: u64) {
        self.frames.unwind(address);
        match self.frames.is_empty() {
            true => self.below.push(Below::Resume(function, address)),
            false => self.frames.resume(function, address),
        }
    }

    /// A loop that calls functions drops the same missing frames each time: once is enough.
    fn drop_below(&mut self, address: u64) {
        match self.below.last_mut() {
            Some(Below::Drop(last)) => *last = address.max(*last),
            _ => self.below.push(Below::Drop(address)),
        }
    }

    /// Takes the changes so far, and starts anew.
    pub fn take(&mut self) -> StackChange<F> {
        let frames = self.frames.frames().to_vec();
        self.frames.reset([]);
        StackChange { below: std::mem::take(&mut self.below), frames }
    }
}

impl<F: Copy + PartialEq> StackChange<F> {
    /// Does it to a stack.
    pub fn apply(self, stack: &mut ShadowStack<F>) {
        for below in self.below {
            match below {
                Below::Drop(address) => stack.drop_to(address),
                Below::Exit(function) => stack.exit(function),
                Below::Resume(function, address) => stack.resume(function, address),
            }
        }
        stack.push(self.frames);
    }
}

impl<F> StackChange<F> {
    /// The same with other names of functions.
    pub fn map<G>(self, name: impl Fn(F) -> G) -> StackChange<G> {
        let below = self.below.into_iter().map(|below| match below {
            Below::Drop(address) => Below::Drop(address),
            Below::Exit(function) => Below::Exit(name(function)),
            Below::Resume(function, address) => Below::Resume(name(function), address),
        });
        let frames = self.frames.into_iter().map(|(function, address)| (name(function), address));
        StackChange { below: below.collect(), frames: frames.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Enter(u8, u64),
        Exit(u8),
        Resume(u8, u64),
        /// A part ends.
        Cut,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..3u8, 0..12u64).prop_map(|(function, address)| Step::Enter(function, address)),
            4 => (0..3u8).prop_map(Step::Exit),
            1 => (0..3u8, 0..12u64).prop_map(|(function, address)| Step::Resume(function, address)),
            1 => Just(Step::Cut),
        ]
    }

    proptest! {
        #[test]
        fn parts_one_after_the_other_are_the_whole(steps in proptest::collection::vec(step(), 0..200)) {
            let (mut whole, mut joined) = (ShadowStack::default(), ShadowStack::default());
            let mut part = RelativeStack::default();
            for step in steps.into_iter().chain([Step::Cut]) {
                match step {
                    Step::Enter(function, address) => {
                        whole.enter(function, address);
                        part.enter(function, address);
                    }
                    Step::Exit(function) => {
                        whole.exit(function);
                        part.exit(function);
                    }
                    Step::Resume(function, address) => {
                        whole.resume(function, address);
                        part.resume(function, address);
                    }
                    Step::Cut => {
                        part.take().apply(&mut joined);
                        prop_assert_eq!(whole.frames(), joined.frames());
                    }
                }
            }
        }
    }
}
