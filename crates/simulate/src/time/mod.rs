//! Commit times of accesses: one core that executes out of order and commits in order, beside exact
//! caches.
//!
//! ```text
//!   dispatch   in program order, once the window has room: the instruction W before has committed
//!   ready      when the loads that feed its address are done
//!   issue      when it is ready and its page is translated
//!   done       when its lines are there, or a store in flight has given it its value
//!   commit     in program order: when it is done, and not before what stands before it, eight instructions a cycle
//! ```
//!
//! An access is charged the commit time that it adds, which is what a timer sees. The charge is
//! split by its causes ([`Stall`]): a wait on the way to its line takes its part of the charge
//! first, and the latency of the line keeps what is left.
//!
//! - **Lines** that the first level lacks come from the cache that has them. The second level
//!   serves a fixed number of them at the same time; lines from behind it need a fill buffer for as
//!   long as they are on their way. Each line also takes its share of the bandwidth, which
//!   [`TimeSpec`] has as cycles a line.
//! - **Prefetching.** Lines along the step of a site, and lines in front of accesses that go up or
//!   down in a page, are fetched ahead, as many as the measured bandwidth needs to be on their way
//!   (latency over cycles a line, which is Little's law). A line that was fetched ahead costs
//!   bandwidth and takes time: an access that needs it earlier waits for the rest.
//! - **Stores** commit when their data are there and the store buffer has room. They leave it in
//!   order, when their lines are there. A load takes the value of the youngest store in flight that
//!   overlaps it; if that store does not hold all of the load's bytes, the load waits until the
//!   store has left.
//! - **Stores past the caches** leave the buffer when memory takes their lines, for which nothing
//!   is read.
//! - **Translations** come from the TLBs; a walk reads a line of the page tables, which lives in
//!   the caches as data do. Few walks go on at the same time; where the line comes from far, it
//!   overlaps with others as lines of data do. Others that need the page wait for the same walk.
//! - **Atomic updates and fences** wait for everything before them, and everything behind waits for
//!   them.
//!
//! - **Branches** are seen where a site is followed by different ones. Code behind one that a
//!   predictor like those of processors would mispredict begins when the loads that decide it are
//!   done; where these are not known, when the last load before it is done. Until then the core
//!   works on the wrong path, and requests lines for code that follows both ways.
//!
//! The model does not know branches that choose between no accesses. It knows no other threads: a
//! line that another core has taken is charged by the level where the caches find it.
//!
//! Time is whole ticks, so that sums do not depend on their order. The model comes from a study, in
//! which its predecessor predicted user time within a factor of 1.5 (geometric mean over 39
//! programs); `make bench-truth` prints the figures of today. Karkhanis and Smith, "A first-order
//! superscalar processor model", ISCA 2004, is the analysis that such a model follows.

mod branches;
mod core;
mod lines;
mod machine;
mod prefetch;
mod stores;
mod translations;
mod wrong_path;

pub use self::core::{Act, CoreTime, FeedGroups, KEPT_LOADS, TimedAccess, TimedFeed, TimedLine, TimedSite};
pub use machine::Timed;

use std::ops::AddAssign;

/// Ticks of a cycle, and parts of an instruction.
pub const TICKS: u64 = 256;

/// The constants of a machine. Times are in cycles of the core.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSpec {
    /// Cycles until each level serves a load, innermost first, memory last; at least two.
    pub latencies: Vec<f64>,
    /// An instruction that waits for nothing.
    pub instruction: f64,
    /// Lines that the second level serves at the same time, at least 1.
    pub overlap_l2: f64,
    /// Lines that the levels behind it serve at the same time, at least 1.
    pub overlap_memory: f64,
    /// Cycles from one line to the next while memory is read from front to back.
    pub read_line: f64,
    /// Cycles from one line to the next while memory is written from front to back.
    pub write_line: f64,
    /// Instructions that the core begins behind one that waits.
    pub window: f64,
    /// Entries of the store buffer.
    pub stores: usize,
    /// A page walk whose line of the page tables is in the second level.
    pub walk: f64,
    /// Page walks that go on at the same time, at least 1.
    pub overlap_walk: f64,
    /// A translation from the second level of the TLB.
    pub second_tlb: f64,
    /// An atomic update of a line that is there.
    pub atomic: f64,
    /// A full fence behind a store, the store included.
    pub fence: f64,
    /// Cycles from the outcome of a mispredicted branch to the next instruction.
    pub mispredict: f64,
    /// Bytes of a line of the first level.
    pub line_bytes: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
}

/// Cycles in ticks.
fn ticks(cycles: f64) -> u64 {
    (cycles * TICKS as f64).round() as u64
}

/// A reason for which an access commits late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stall {
    /// Its line was far, and nothing before it let it begin earlier.
    Latency,
    /// The loads on which its address, or the stored value, depends were not done.
    Chain,
    /// The window was full of instructions that waited.
    Window,
    /// All fill buffers, or ports of the second level, were taken.
    Buffers,
    /// Its line was on its way, was fetched ahead, or waited for earlier lines.
    Bandwidth,
    /// Its page was not translated.
    Walk,
    /// A store in flight had some or all of its bytes.
    Forwarding,
    /// The store buffer was full.
    Stores,
    /// An atomic update or a fence waited for earlier instructions, or was executed.
    Order,
    /// A branch before it was mispredicted, and waited for a load.
    Branch,
}

impl Stall {
    /// All of them, by number.
    pub const ALL: [Stall; 10] = [
        Stall::Latency,
        Stall::Chain,
        Stall::Window,
        Stall::Buffers,
        Stall::Bandwidth,
        Stall::Walk,
        Stall::Forwarding,
        Stall::Stores,
        Stall::Order,
        Stall::Branch,
    ];

    /// The order in which stalls take their parts of a charge; waits on the way come first.
    const TAKEN: [Stall; 9] = [
        Stall::Order,
        Stall::Stores,
        Stall::Forwarding,
        Stall::Bandwidth,
        Stall::Buffers,
        Stall::Walk,
        Stall::Chain,
        Stall::Window,
        Stall::Branch,
    ];

    /// In a word, stable.
    pub fn word(self) -> &'static str {
        match self {
            Stall::Latency => "latency",
            Stall::Chain => "chain",
            Stall::Window => "window",
            Stall::Buffers => "buffers",
            Stall::Bandwidth => "bandwidth",
            Stall::Walk => "walk",
            Stall::Forwarding => "forwarding",
            Stall::Stores => "stores",
            Stall::Order => "order",
            Stall::Branch => "branch",
        }
    }
}

/// Charges of accesses, in ticks, and counts of their causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Commit time that they added beyond that of instructions, by [`Stall`].
    pub stalls: [u64; 10],
    /// Instructions up to them, as far as they did not overlap with other waits.
    pub instructions: u64,
    /// Accesses whose bytes lie in two lines.
    pub line_crossings: u64,
    /// Accesses whose bytes lie in two pages.
    pub page_crossings: u64,
    /// Loads that a store in flight gave their value.
    pub forwarded: u64,
    /// Loads that waited until a store with some of their bytes had left.
    pub blocked: u64,
}

impl Charged {
    /// All stalls, in ticks.
    pub fn stalled(&self) -> u64 {
        self.stalls.iter().sum()
    }

    /// Stalls and instructions, in ticks.
    pub fn ticks(&self) -> u64 {
        self.stalled() + self.instructions
    }

    /// Ticks of one kind of stall.
    pub fn of(&self, stall: Stall) -> u64 {
        self.stalls[stall as usize]
    }
}

impl AddAssign<&Charged> for Charged {
    fn add_assign(&mut self, other: &Charged) {
        self.stalls.iter_mut().zip(other.stalls).for_each(|(sum, more)| *sum += more);
        self.instructions += other.instructions;
        self.line_crossings += other.line_crossings;
        self.page_crossings += other.page_crossings;
        self.forwarded += other.forwarded;
        self.blocked += other.blocked;
    }
}
