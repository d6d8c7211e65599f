//! Schedules and buffers that are reused from one loop that is one record to the next.

use memlode_simulate::{Request, Schedules, Shape, Strided, Tag};
use memlode_trace::event::Access;

/// Lines that are shown together.
pub(crate) const SHOWN: usize = 256;

/// Schedules, and buffers that are empty between loops.
pub(crate) struct LoopScratch {
    /// Schedules of loops that came before.
    pub schedules: Schedules,
    /// The cell of each stride of the current loop.
    pub cells: Vec<u32>,
    /// The request of each stride for a line.
    pub requests: Vec<Request>,
    pub advancing: Vec<Advancing>,
    /// Room for [`SHOWN`] lines.
    pub room_to_show: Vec<Request>,
    /// Some of the loop's accesses.
    pub unrolled: Vec<Access>,
    /// All of its strides as the simulator takes them.
    pub strided: Vec<Strided>,
}

impl LoopScratch {
    /// Scratch for a first level of this shape.
    pub fn new(first_level: Shape) -> LoopScratch {
        LoopScratch {
            schedules: Schedules::new(first_level),
            cells: Vec::new(),
            requests: Vec::new(),
            advancing: Vec::new(),
            room_to_show: vec![Request::new(0, 0, false, Tag::default()); SHOWN],
            unrolled: Vec::new(),
            strided: Vec::new(),
        }
    }
}

/// A line that a loop looks up in each of some periods. The changing address is separate from the
/// request, which is copied whole.
#[derive(Clone, Copy)]
pub(crate) struct Advancing {
    pub address: u64,
    pub advance: i64,
    /// For address 0.
    pub request: Request,
}
