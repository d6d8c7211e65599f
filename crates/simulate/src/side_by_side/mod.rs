//! Threads side by side, each on a core of its own, and the lines that they take from each other.
//!
//! The model knows three times of a line that moves between cores: how long a request takes
//! (*transfer*), the least time between two arrivals (*arrival*), and how long the core that has
//! the line can use it while another waits (*use*). Each thread has a clock and three stages, and
//! all steps of all threads and stages are taken in one order of time:
//!
//! ```text
//! issue    at most a window of instructions ahead of retirement; loads ask for their line here, atomics, too
//! retire   in program order, when what was asked for is there
//! store    retired stores wait for their line in a buffer; nobody waits for them unless it is full
//! ```
//!
//! A requested line arrives after a transfer time, and not sooner than an arrival time after its
//! last arrival. The number of lines on their way is limited. The owner keeps the line for at least
//! the time of its use. Instructions between accesses take time; accesses to other lines are taken
//! for such instructions.
//!
//! Cores are of two kinds ([`Pace::forwards`]). On a Zen 3 an increment of a word whose line was
//! taken away waits for the line. On a Sapphire Rapids it goes on with the value that the last
//! increment left in the store buffer, so two threads that do little else lose almost nothing. The
//! buffer requests several lines at a time.
//!
//! The loss of a thread is the time that it takes, less the time that it would take if no line ever
//! moved, which is simulated beside it. Waiting for locks, barriers and other threads is not
//! counted as lost.
//!
//! The need for a transfer is decided over the whole life of the line in a cache (Dubois,
//! Skeppstedt, Ricciulli, Ramamurthy and Stenström, "The detection and elimination of useless
//! misses in multiprocessors", ISCA 1993): it was, if any access during that life touched a byte
//! that another thread wrote since the thread's last needed transfer.
//!
//! A line is *handed over* if the thread that had it has ended, or created the thread that needs it
//! now and wrote it before. That happens once, and no other layout of the data would avoid it.
//! Memory that is used for another object now is handed over, too: the values of a block or a stack
//! frame that has ended are not needed any more.

mod alone;
mod engine;
mod ledger;
mod line;
mod past;
mod thread;

pub use engine::{Outcome, Sampling, ThreadOutcome, simulate};
pub use ledger::{Kind, Pair, Taken};

/// Time in thousandths of a cycle.
pub type Ticks = i64;

/// A cycle.
pub const CYCLE: Ticks = 1000;

/// Later than everything.
pub(crate) const NEVER: Ticks = Ticks::MAX;

/// The cost of lines and instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time from a request to the line's arrival.
    pub transfer: Ticks,
    /// The least time between two arrivals of a line.
    pub arrival: Ticks,
    /// Time for which the owner can use a line that others wait for.
    pub usable: Ticks,
    /// An instruction.
    pub instruction: Ticks,
    /// Load, add and store of a word that is there, from one to the next: less than a cycle or two on
    /// a core that renames memory, else the way through the store buffer.
    pub increment: Ticks,
    /// An atomic operation on a line that is there.
    pub atomic: Ticks,
    /// A fence.
    pub fence: Ticks,
    /// Instructions that issue may be ahead of retirement.
    pub window: u64,
    /// Lines that may be on their way to a core.
    pub on_their_way: usize,
    /// True if loads take the value of an own store to the same bytes that still waits for its
    /// line. Then atomic operations wait until the buffer is empty, and when the oldest store of
    /// the buffer requests its line, the stores behind it do, too.
    pub forwards: bool,
}

/// Constants that the study behind the model took as given, for any processor.
pub(crate) mod fixed {
    use super::{CYCLE, Ticks};

    /// Stores that may wait for their lines, or behind such.
    pub const BUFFER: u64 = 64;
    /// Time from a store that leaves the buffer to the next one to another line, on a core that
    /// forwards.
    pub const COMMIT: Ticks = CYCLE / 2;
    /// Time from one retired instruction to the next.
    pub const RETIRE: Ticks = 120;
    /// Load, add and store of a word where the line is away, and the store buffer has the word: 5
    /// cycles to forward it and one to add. A core that renames memory is faster while the line is
    /// there ([`super::Pace::increment`]), but was not when it was fought for. None is faster.
    pub const INCREMENT_OF_FORWARDED: Ticks = 6 * CYCLE;
    /// Time after a store has reached its line during which loads of the same bytes were begun
    /// earlier, on a core that forwards: issue runs ahead of commitment by a pipeline's length,
    /// which the model does not have.
    pub const AT_HAND: Ticks = 40 * CYCLE;
    /// Load, add and store where the line has just come, at least.
    pub const INCREMENT_OF_ARRIVED: Ticks = 8 * CYCLE;
}

/// An instruction's act on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Loads from it.
    Load,
    /// Stores to it.
    Store,
    /// Loads bytes, and stores a value computed from them.
    Increment,
    /// Does so atomically.
    Atomic,
    /// Touches no line: everything before it is done first.
    Fence,
}

impl Act {
    /// Returns whether it needs the line for itself.
    pub fn writes(self) -> bool {
        matches!(self, Act::Store | Act::Increment | Act::Atomic)
    }

    /// Instructions of its own.
    pub fn instructions(self) -> u32 {
        match self {
            Act::Increment | Act::Atomic => 3,
            Act::Load | Act::Store | Act::Fence => 1,
        }
    }
}

/// An access to a line that several threads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its act.
    pub act: Act,
    /// Which line, counted from 0.
    pub line: u32,
    /// Bytes of the line, a bit each.
    pub bytes: u64,
    /// Instructions since the step before, its own included.
    pub instructions: u32,
    /// The stores among these to lines that no other thread uses: they wait behind stores to shared
    /// lines.
    pub stores: u32,
    /// Its place, for the caller.
    pub place: u32,
}

/// The next item of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// It accesses a line.
    Step(Step),
    /// It executes instructions that touch no line of several threads.
    Work(u32),
    /// A block or a stack frame that had these bytes of a line has ended, or another begins there.
    Ended {
        /// Which line.
        line: u32,
        /// Bytes of the line, a bit each.
        bytes: u64,
    },
    /// It releases its writes. Releases of a thread are counted from 1.
    Release,
    /// It goes on when each of these threads has made this number of releases.
    Acquire(Vec<(u32, u64)>),
    /// It goes on at this time, or at once if that is over.
    NotBefore(Ticks),
}

/// The threads and their steps.
pub trait Program {
    /// Returns how many threads there are.
    fn threads(&self) -> usize;

    /// Returns the thread that created a thread, and the number of its release then, if they are
    /// known.
    fn maker(&self, thread: usize) -> Option<(u32, u64)> {
        let _ = thread;
        None
    }

    /// Returns the next item of a thread, `None` at its end.
    fn next(&mut self, thread: usize) -> Option<Item>;

    /// Skips steps of a thread, at most `most` and the work between them, up to the next item that
    /// is neither a step nor work. Returns the number of skipped steps.
    fn skip(&mut self, thread: usize, most: u64) -> u64 {
        let _ = (thread, most);
        0
    }
}
