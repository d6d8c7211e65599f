//! Losses of threads to lines that they take from each other.

use serde::{Deserialize, Serialize};

use super::{Access, Object, Side, Word};

/// Transfers of lines between the cores of a program's threads, and the time lost to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfers {
    /// The order of the replay: `parallel`, each thread on a core of its own, or `recorded`, none earlier than it ran.
    pub order: Word,
    /// For a recorded order: the longest time, in nanoseconds, during which a thread's progress is
    /// unknown.
    pub fineness_ns: Option<u64>,
    /// Threads whose creation was not recorded.
    pub unknown_starts: usize,
    /// One in this many accesses to lines of several threads was simulated.
    pub one_in: u64,
    /// Acquisitions whose release could not come before them.
    pub unmet: u64,
    /// True if the times of the machine were measured on it.
    pub measured: bool,
    /// Lines that several threads use, one of them writing.
    pub lines: usize,
    /// Number of times that one came to another core.
    pub transfers: u64,
    /// Cycles that all threads together lost to that.
    pub cycles: u64,
    /// The same in milliseconds.
    pub ms: f64,
    /// The same where cores are far from each other; none if the machine has no such cores.
    pub far_ms: Option<f64>,
    /// Milliseconds that all threads together would take without it, and without a miss of any cache.
    pub rest_ms: f64,
    /// The objects that it was lost for, the costliest first.
    pub objects: Vec<SharedObject>,
    /// Locks that several threads take often, the costliest first if threads took turns.
    pub locks: Vec<SharedLock>,
    /// Other bytes of the line were written: the costliest first.
    pub false_sharing: Vec<SharedData>,
    /// Bytes that another thread had written were needed.
    pub true_sharing: Vec<SharedData>,
    /// Lines that came once: from a thread that has ended, or that made the one that uses them, or
    /// because the object that they held has ended.
    pub handed_over: Vec<SharedData>,
    /// All of it by cache line, the costliest first.
    pub cache_lines: Vec<SharedLine>,
}

/// Two accesses that take lines from each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedData {
    /// A short name of the kind, the object and both accesses, which other recordings of the program give it, too.
    pub handle: String,
    /// The object that the lines are of.
    pub object: Object,
    /// The thread on whose stack the costliest line is, if no object is known.
    pub stack_of: Option<u32>,
    /// Address of the costliest line, in hexadecimal.
    pub line: String,
    /// Number of lines that came in the simulation.
    pub lines: usize,
    /// Number of times that one came.
    pub transfers: u64,
    /// Cycles lost to that.
    pub cycles: u64,
    /// The same in milliseconds.
    pub ms: f64,
    /// The access that waited.
    pub missed: Side,
    /// The access that had taken the line, or for true sharing wrote the bytes.
    pub written: Option<Side>,
}

/// An object that threads take lines of from each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedObject {
    /// A short name of the object, which other recordings of the program give it, too.
    pub handle: String,
    /// The object.
    pub object: Object,
    /// The thread on whose stack the costliest line is, if no object is known.
    pub stack_of: Option<u32>,
    /// Number of times that one of its lines came, other than once.
    pub transfers: u64,
    /// Cycles lost to that.
    pub cycles: u64,
    /// The same in milliseconds.
    pub ms: f64,
    /// Milliseconds of these where other bytes of the line were written.
    pub false_ms: f64,
    /// Rows of `false_sharing` that are about it, counted from 0.
    pub false_rows: Vec<usize>,
    /// Rows of `true_sharing` that are about it, counted from 0.
    pub true_rows: Vec<usize>,
    /// Edits to try, as `memlode whatif` takes them; none where no layout helps.
    pub edits: Vec<String>,
}

/// Locks of one kind of object that several threads take in one place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedLock {
    /// A short name of the object and its lock, which other recordings of the program give it, too.
    pub handle: String,
    /// The object that they lie in.
    pub object: Object,
    /// An access that takes one; none if a library does.
    pub access: Option<Access>,
    /// Number of locks.
    pub locks: u64,
    /// The threads that take one.
    pub threads: Vec<u32>,
    /// Number of times that one was taken.
    pub takes: u64,
    /// Number of these where another thread had it before, in the recorded order.
    pub changes: u64,
    /// Number of these if threads took turns.
    pub most_changes: u64,
    /// Milliseconds that all threads together lose to its lines, in the order that was recorded.
    pub ms: f64,
    /// About the same if threads took turns.
    pub most_ms: f64,
}

/// A cache line of several threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharedLine {
    /// Its address, in hexadecimal.
    pub line: String,
    /// The object that it is of.
    pub object: Object,
    /// The thread on whose stack it is, if no object is known.
    pub stack_of: Option<u32>,
    /// Number of times that it came.
    pub transfers: u64,
    /// Number of these that no access needed.
    pub false_transfers: u64,
    /// Cycles lost.
    pub cycles: u64,
}
