//! Runs of lines, up or down, one per page.
//!
//! After two steps of a line or two in one direction, each further request fetches the next two
//! lines beyond those that were fetched, but no more than 20 lines from the request: the limits
//! that Intel's optimization manual gives for the streamer of its second-level caches (32 pages
//! followed, one run a page). When to trust a run is not public; two steps are the "training" of
//! Srinath et al., "Feedback Directed Prefetching", HPCA 2007.

use super::{Prefetcher, Seen};

const PAGES: usize = 32;
const STEPS: u32 = 2;
const LONGEST_STEP: i64 = 2;
const LINES_A_REQUEST: usize = 2;
const LINES_AHEAD: i64 = 20;

struct Run {
    page: u64,
    /// The last line requested.
    line: i64,
    /// 1 up, −1 down, 0 not known yet.
    direction: i64,
    steps: u32,
    /// The farthest line fetched.
    farthest: i64,
}

pub struct Stream {
    /// From line to page.
    page_shift: u32,
    /// The most recent first.
    runs: Vec<Run>,
}

impl Stream {
    pub fn new(page_shift: u32) -> Stream {
        Stream { page_shift, runs: Vec::with_capacity(PAGES) }
    }
}

impl Prefetcher for Stream {
    fn see(&mut self, seen: &Seen, wanted: &mut Vec<u64>) {
        // Lines have at least 4 bytes, so their numbers are no more than 62 bits.
        let (page, line) = (seen.line >> self.page_shift, seen.line as i64);
        let Some(place) = self.runs.iter().position(|run| run.page == page) else {
            self.runs.truncate(PAGES - 1);
            self.runs.insert(0, Run { page, line, direction: 0, steps: 0, farthest: line });
            return;
        };
        self.runs[..=place].rotate_right(1);
        let run = &mut self.runs[0];
        let step = line - run.line;
        if step == 0 {
            return;
        }
        run.line = line;
        if step.signum() != run.direction || step.abs() > LONGEST_STEP {
            *run = Run { page, line, direction: step.signum(), steps: 0, farthest: line };
        }
        run.steps += u32::from(step.abs() <= LONGEST_STEP);
        if run.steps < STEPS {
            return;
        }
        // Never behind the request.
        if (run.farthest - line) * run.direction < 0 {
            run.farthest = line;
        }
        for _ in 0..LINES_A_REQUEST {
            let next = run.farthest + run.direction;
            if (next - line).abs() > LINES_AHEAD || next < 0 {
                break;
            }
            run.farthest = next;
            wanted.push(next as u64);
        }
    }
}
