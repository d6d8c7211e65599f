//! The contents of a decoded chunk: plain columns, no references into the trace.

use std::ops::Range;

use crate::UnrecordedId;
use crate::calls::Caller;
use crate::sites::{FunctionId, SiteId};

/// Index of a traced process in its trace, in the order in which the processes registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// Index of a thread over the whole trace (not the kernel's id), dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// One access. Its site says whether it reads or writes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Run-time virtual address of the first byte.
    pub address: u64,
    /// Bytes touched, 1 to `u32::MAX`; a longer range is several accesses. Zero-length ranges yield
    /// none.
    pub bytes: u32,
    /// The access in the source program.
    pub site: SiteId,
}

/// Something that happened between two accesses of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A function was entered.
    Enter {
        /// The function.
        function: FunctionId,
        /// Address of its return-address slot.
        frame: u64,
        /// The segment executed last before it.
        caller: Caller,
    },
    /// The function on top of the shadow stack returned.
    Exit {
        /// The function.
        function: FunctionId,
    },
    /// Control came back to a frame by unwinding or `longjmp`.
    Resume {
        /// The function.
        function: FunctionId,
        /// Address of its return-address slot.
        frame: u64,
    },
    /// A block came to life; if `base` is 0, the allocation failed.
    Alloc {
        /// The call.
        site: SiteId,
        /// First byte.
        base: u64,
        /// Elements, 1 if the allocator took a size only.
        count: u64,
        /// Bytes of one element.
        element_bytes: u64,
    },
    /// A block was resized: `old` ended (unless 0), `base` came to life. If `base` is 0 and `bytes`
    /// is not, it failed and `old` lives on.
    Realloc {
        /// The call.
        site: SiteId,
        /// First byte now.
        base: u64,
        /// Bytes now.
        bytes: u64,
        /// First byte before.
        old: u64,
    },
    /// A block ended (nothing if `base` is 0).
    Free {
        /// The call.
        site: SiteId,
        /// First byte.
        base: u64,
    },
    /// Pages were unmapped.
    Unmap {
        /// The call.
        site: SiteId,
        /// First byte.
        base: u64,
        /// Length.
        bytes: u64,
    },
    /// The thread has just acquired what others did before: it took a lock, saw a flag, got memory.
    /// Everything that they had done by then, they did at smaller stamps.
    Stamp {
        /// Time stamp counter.
        stamp: u64,
    },
    /// The thread acquired, through an object, what other threads had released (as behind
    /// [`Mark::Stamp`]); or it releases its own earlier accesses.
    Sync {
        /// How.
        kind: SyncKind,
        /// Address of the object; for a thread, its `pthread_t`.
        object: u64,
        /// Time stamp counter: behind an acquisition, in front of a release.
        stamp: u64,
    },
}

impl Mark {
    /// Its time, if it has one.
    pub fn stamp(&self) -> Option<u64> {
        match *self {
            Mark::Stamp { stamp } | Mark::Sync { stamp, .. } => Some(stamp),
            _ => None,
        }
    }
}

/// Operations that order threads (SPEC.md §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// An atomic operation that acquires.
    Acquire,
    /// An atomic operation that releases.
    Release,
    /// A mutex or another lock was taken.
    Lock,
    /// A lock is given back.
    Unlock,
    /// A condition variable or a semaphore was waited for.
    Wait,
    /// A thread that waits for the object may go on.
    Signal,
    /// A barrier was left.
    Leave,
    /// A barrier was reached.
    Arrive,
    /// A thread has ended.
    Join,
    /// A thread was created.
    Create,
}

impl SyncKind {
    /// All, in the order of their numbers in the format.
    const ALL: [SyncKind; 10] = [
        SyncKind::Acquire,
        SyncKind::Release,
        SyncKind::Lock,
        SyncKind::Unlock,
        SyncKind::Wait,
        SyncKind::Signal,
        SyncKind::Leave,
        SyncKind::Arrive,
        SyncKind::Join,
        SyncKind::Create,
    ];

    /// The kind that a number of the format stands for.
    pub(crate) fn from_format(number: u8) -> Option<SyncKind> {
        SyncKind::ALL.get(usize::from(number)).copied()
    }

    /// Its name, as in the format.
    pub fn name(self) -> &'static str {
        match self {
            SyncKind::Acquire => "acquire",
            SyncKind::Release => "release",
            SyncKind::Lock => "lock",
            SyncKind::Unlock => "unlock",
            SyncKind::Wait => "wait",
            SyncKind::Signal => "signal",
            SyncKind::Leave => "leave",
            SyncKind::Arrive => "arrive",
            SyncKind::Join => "join",
            SyncKind::Create => "create",
        }
    }

    /// Returns whether it releases the thread's earlier accesses; otherwise it acquires.
    pub fn releases(self) -> bool {
        self as u8 % 2 == 1
    }
}

/// A loop of accesses that each go a constant step: in each iteration its strides come one after
/// the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The access of the batch that it stands before.
    pub access: u32,
    /// The mark of the batch that it stands before.
    pub mark: u32,
    /// Number of times that each stride is made.
    pub iterations: u64,
    /// Which strides of the batch.
    pub strides: Range<u32>,
    /// Facts of its strides together.
    pub course: Course,
}

/// The facts of a loop's strides that are known even where the loop was unrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Iterations after which the lowest eight bits of every address repeat: a power of two, at
    /// most 256.
    pub period: u16,
    /// True if each address is always a multiple of the access's bytes, a power of two.
    pub is_aligned: bool,
    /// True if one of the accesses does not move.
    pub stays: bool,
}

impl Course {
    /// The course of these strides.
    pub fn of(strides: &[Stride]) -> Course {
        let steps = strides.iter().fold(0, |steps, stride| steps | stride.step);
        let is_aligned = |&Stride { access: Access { address, bytes, .. }, step, .. }: &Stride| {
            bytes.is_power_of_two() && (address | step).is_multiple_of(bytes.into())
        };
        Course {
            period: 256 >> steps.trailing_zeros().min(8),
            is_aligned: strides.iter().all(is_aligned),
            stays: strides.iter().any(|stride| stride.step == 0),
        }
    }
}

/// One of a loop's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The first.
    pub access: Access,
    /// From one address to the next, modulo 2^64.
    pub step: u64,
    /// True if the site writes.
    pub is_write: bool,
}

impl Stride {
    /// Its access in an iteration, counted from 0.
    #[inline(always)]
    pub fn access_in(&self, iteration: u64) -> Access {
        let address = self.access.address.wrapping_add(self.step.wrapping_mul(iteration));
        Access { address, ..self.access }
    }
}

/// The values of some accesses, in their order. Accesses are known by their place in a batch or a
/// list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Index of the access, and where its bytes end.
    ends: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

impl Values {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Index of the access, and the bytes it moved, in memory order. An update has twice as many
    /// bytes as its access: the old ones, and the new ones.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.between(0, usize::MAX)
    }

    /// Values of the accesses in a range.
    pub fn between(&self, first: usize, end: usize) -> impl Iterator<Item = (usize, &[u8])> {
        let first = self.ends.partition_point(|&(access, _)| (access as usize) < first);
        let start = first.checked_sub(1).map_or(0, |before| self.ends[before].1);
        let ends = self.ends[first..].iter().take_while(move |&&(access, _)| (access as usize) < end);
        ends.scan(start, |start, &(access, end)| {
            let bytes = &self.bytes[*start as usize..end as usize];
            *start = end;
            Some((access as usize, bytes))
        })
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }

    /// Adds the value of an access, which no earlier one follows.
    pub fn push(&mut self, access: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        fill(&mut self.bytes);
        self.ends.push((access, self.bytes.len() as u32));
    }
}

/// One frame of the shadow stack at the start of a chunk, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// Address of its return-address slot.
    pub address: u64,
}

/// A decoded chunk.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The process, `None` only in a fresh value.
    pub process: Option<ProcessId>,
    /// The thread.
    pub thread: Option<ThreadId>,
    /// Position of the chunk in its thread's file.
    pub sequence: u32,
    /// The thread's stream that it belongs to: signal handlers have their own streams, so a chunk
    /// continues the one before it only if both are of the same stream.
    pub stream: u8,
    /// Recording had been off: accesses since the stream's chunk before are unknown, and so are the
    /// contents of caches.
    pub after_gap: bool,
    /// Recording was off: the chunk has allocations only, and their callers are unknown.
    pub dormant: bool,
    /// Time stamp counter when the chunk was taken and when it was handed over.
    pub stamps: (u64, u64),
    /// The accesses, in program order.
    pub accesses: Vec<Access>,
    /// The marks, in program order: `(i, m)` stands before `accesses[i]` (`i` may be
    /// `accesses.len()`).
    pub marks: Vec<(u32, Mark)>,
    /// Loops in program order, where they were not unrolled into `accesses`.
    pub loops: Vec<Loop>,
    /// The strides that the loops refer to.
    pub strides: Vec<Stride>,
    /// Loops that were unrolled: each stands where its first access does. Only the number of its
    /// strides is left.
    pub unrolled: Vec<Loop>,
    /// Values loaded and stored, if the program was built to record them.
    pub values: Values,
    /// The shadow stack before the first event.
    pub stack: Vec<Frame>,
    /// The segment executed last.
    pub last: Caller,
    /// Places that are not recorded, and how often they were executed. A number may stand here
    /// twice.
    pub unrecorded: Vec<(UnrecordedId, u64)>,
}

impl Batch {
    /// Forgets the events.
    pub fn clear(&mut self) {
        self.accesses.clear();
        self.unrecorded.clear();
        self.marks.clear();
        self.loops.clear();
        self.strides.clear();
        self.unrolled.clear();
        self.values.clear();
        self.stack.clear();
        self.last = Caller::BEFORE;
    }

    /// Takes over another batch's facts about its chunk as a whole: all but accesses, marks, places
    /// of loops, and values.
    pub fn clone_header(&mut self, other: &Batch) {
        self.process = other.process;
        self.thread = other.thread;
        self.sequence = other.sequence;
        self.stream = other.stream;
        self.after_gap = other.after_gap;
        self.dormant = other.dormant;
        self.stamps = other.stamps;
        self.stack.clone_from(&other.stack);
        self.strides.clone_from(&other.strides);
        self.last = other.last;
    }
}
