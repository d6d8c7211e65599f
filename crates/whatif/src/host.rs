//! The program that replays and asks for advice.

use memlode_layout::Edit;
use memlode_trace::event::ProcessId;

use crate::allocator::{Allocator, AllocatorModel};

/// The progress of one replay: called with the number of chunks that are done, dropped at the end.
pub type ReplayProgress = Box<dyn Fn(usize) + Sync>;

/// Makes the allocator of a process, or says why it cannot.
pub type AllocatorFactory = Box<dyn FnMut(ProcessId) -> Result<Box<dyn Allocator>, String> + Send>;

/// Services of the program that asks for advice.
pub trait Host: Send + Sync {
    /// Begins to show the progress of a replay of the whole trace; `doing` is what it does, such as
    /// "replaying".
    fn progress(&self, doing: &'static str) -> ReplayProgress {
        let _ = doing;
        Box::new(|_| {})
    }

    /// Receives the number of the type or group whose edits are tried now, and the number of all.
    fn tries(&self, number: usize, of: usize) {
        let _ = (number, of);
    }

    /// Takes notice of edits that are worth it, as soon as they are found; `gain` is the part of
    /// the run's cycles that they gain.
    fn found(&self, edits: &[Edit], gain: f64) {
        let _ = (edits, gain);
    }

    /// Returns true once the work is to be given up. Several threads call it often.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Returns what places the blocks of a trace: a model of glibc's `malloc`, if this is not
    /// defined.
    fn allocators(&self) -> AllocatorFactory {
        Box::new(|_| Ok(Box::new(AllocatorModel::new(None)) as Box<dyn Allocator>))
    }

    /// Returns the name of the allocator.
    fn allocator_name(&self) -> &str {
        "a model of glibc's malloc"
    }

    /// Returns a linkage name as people write it, and as edits name types.
    fn written(&self, linkage: &str) -> String {
        linkage.to_string()
    }
}

/// A host that shows nothing and stops nothing.
pub struct Quiet;

impl Host for Quiet {}
