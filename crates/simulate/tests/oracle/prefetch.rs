//! The simplest form of prefetchers: computed from the list of all requests that a cache has seen.

use memlode_simulate::Prefetch;

/// A request: core, tag, address, line, and whether it missed or used a prefetched line first.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub core: usize,
    pub tag: u32,
    pub address: u64,
    pub line: u64,
    /// Not the first line of its access.
    pub goes_on: bool,
    pub miss: bool,
    pub first_use: bool,
}

/// Lines that one prefetcher wants after the last of `seen`.
pub fn wanted(kind: Prefetch, seen: &[Seen], line_bytes: u64, page_bytes: u64) -> Vec<u64> {
    let last = seen[seen.len() - 1];
    match kind {
        Prefetch::NextLine => (last.miss || last.first_use).then_some(last.line + 1).into_iter().collect(),
        Prefetch::AdjacentLine => {
            let other = if last.line.is_multiple_of(2) { last.line + 1 } else { last.line - 1 };
            last.miss.then_some(other).into_iter().collect()
        }
        Prefetch::Stride => stride(seen, line_bytes).into_iter().collect(),
        Prefetch::Stream => stream(seen, page_bytes / line_bytes),
    }
}

/// Replays the site's addresses from the beginning (the table has room for all sites of the tests).
fn stride(seen: &[Seen], line_bytes: u64) -> Option<u64> {
    let last = seen[seen.len() - 1];
    if last.goes_on {
        return None;
    }
    let same = |seen: &&Seen| (seen.core, seen.tag) == (last.core, last.tag) && !seen.goes_on;
    let site = seen.iter().filter(same);
    let addresses: Vec<u64> = site.map(|seen| seen.address).collect();
    let (mut stride, mut state) = (0i64, "initial");
    for pair in addresses.windows(2) {
        let step = pair[1].wrapping_sub(pair[0]) as i64;
        let right = step == stride;
        let before = state;
        state = match (state, right) {
            ("none", true) => "transient",
            (_, true) => "steady",
            ("initial", false) => "transient",
            ("steady", false) => "initial",
            (_, false) => "none",
        };
        if before != "steady" {
            stride = step;
        }
    }
    if addresses.len() < 2 || state != "steady" || stride == 0 {
        return None;
    }
    let size = i128::from(stride).abs().max(line_bytes.into());
    let ahead = i128::from(last.address) + i128::from(stride.signum()) * size * 2;
    Some((ahead as u64) / line_bytes)
}

/// Replays the page's lines since it was last among the 32 most recent pages.
fn stream(seen: &[Seen], lines_a_page: u64) -> Vec<u64> {
    let mut pages: Vec<(u64, Vec<u64>)> = Vec::new();
    for seen in seen {
        let page = seen.line / lines_a_page;
        let mut run = match pages.iter().position(|(other, _)| *other == page) {
            Some(place) => pages.remove(place),
            None => (page, Vec::new()),
        };
        run.1.push(seen.line);
        pages.push(run);
        if pages.len() > 32 {
            pages.remove(0);
        }
    }
    let lines = pages.pop().unwrap().1;
    let (mut direction, mut steps, mut farthest, mut wanted) = (0, 0, 0, Vec::new());
    for pair in lines.windows(2) {
        wanted.clear();
        let (line, step) = (pair[1] as i64, pair[1] as i64 - pair[0] as i64);
        if step == 0 {
            continue;
        }
        let near = step == step.signum() || step == 2 * step.signum();
        if step.signum() != direction || !near {
            (direction, steps, farthest) = (step.signum(), 0, line);
        }
        steps += i64::from(near);
        if steps >= 2 {
            farthest = if direction > 0 { farthest.max(line) } else { farthest.min(line) };
            for _ in 0..2 {
                let next = farthest + direction;
                if next >= 0 && (next - line).abs() <= 20 {
                    farthest = next;
                    wanted.push(next as u64);
                }
            }
        }
    }
    wanted
}
