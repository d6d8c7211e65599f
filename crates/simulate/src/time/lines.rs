//! Lines on their way to the first level.

/// Lines whose arrival is remembered, by the low bits of their numbers.
const ARRIVALS: usize = 1 << 14;

/// A line that was requested.
#[derive(Clone, Copy)]
struct Arrival {
    line: u64,
    time: u64,
    /// It was prefetched, and has not been used.
    is_ahead: bool,
}

/// The times of one level's lines, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelTimes {
    /// Time from a request to the line.
    pub latency: u64,
    /// Time from one line to the next while lines are read, or written, from front to back.
    pub line: [u64; 2],
    /// Set for the second level, which has ports instead of fill buffers.
    pub is_near: bool,
    /// Number of prefetched lines to be on their way.
    pub ahead: u64,
}

/// Times at which a request got what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// A port or a fill buffer.
    pub start: u64,
    /// Its turn in the bandwidth.
    pub departs: u64,
    /// The line.
    pub arrives: u64,
}

/// The way of lines to one core.
pub(super) struct Lines {
    arrivals: Vec<Arrival>,
    /// Arrival of the last of them.
    latest: u64,
    /// Time at which the second level can begin another line, and ticks from one to the next.
    port: u64,
    port_apart: u64,
    /// Time at which each fill buffer is free.
    buffers: Vec<u64>,
    /// Time at which the next line can be carried: from the second level, and from behind it.
    free: [u64; 2],
}

impl Lines {
    /// Nothing on its way.
    pub fn new(buffers: usize, port_apart: u64) -> Lines {
        let nothing = Arrival { line: u64::MAX, time: 0, is_ahead: false };
        Lines {
            arrivals: vec![nothing; ARRIVALS],
            latest: 0,
            port: 0,
            port_apart,
            buffers: vec![0; buffers.max(1)],
            free: [0; 2],
        }
    }

    fn place(&mut self, line: u64) -> &mut Arrival {
        &mut self.arrivals[line as usize % ARRIVALS]
    }

    /// Returns when a line is there that the caches have or have requested; 0 if it is unknown.
    #[inline]
    pub fn arrival(&mut self, line: u64, time: u64) -> u64 {
        if self.latest <= time {
            return 0;
        }
        let arrival = self.place(line);
        if arrival.line == line { arrival.time } else { 0 }
    }

    /// Takes a line that was prefetched; returns when it is there. Once used, it is an ordinary
    /// line.
    #[inline]
    pub fn take(&mut self, line: u64) -> Option<u64> {
        let arrival = self.place(line);
        let is_it = arrival.line == line && std::mem::take(&mut arrival.is_ahead);
        is_it.then_some(arrival.time)
    }

    fn comes(&mut self, line: u64, time: u64, is_ahead: bool) {
        self.latest = self.latest.max(time);
        *self.place(line) = Arrival { line, time, is_ahead };
    }

    /// Requests a line that an access needs, at a time. If it `is_early`, earlier accesses may
    /// request lines later, and do not delay it.
    pub fn ask(
        &mut self,
        line: u64,
        time: u64,
        level: &LevelTimes,
        is_write: bool,
        is_early: bool,
    ) -> Request {
        let apart = level.line[usize::from(is_write)];
        let request = if level.is_near {
            let free = time.max(self.port);
            self.port = free + self.port_apart;
            let start = if is_early { time } else { free };
            Request { start, departs: start, arrives: start + level.latency }
        } else {
            let buffer = (0..self.buffers.len()).min_by_key(|&buffer| self.buffers[buffer]).unwrap_or(0);
            let start = time.max(self.buffers[buffer]);
            let free = start.max(self.free[1]);
            self.free[1] = free + apart;
            let departs = if is_early { start } else { free };
            self.buffers[buffer] = departs + level.latency;
            Request { start, departs, arrives: departs + level.latency }
        };
        self.comes(line, request.arrives, false);
        request
    }

    /// Sends a line to memory; returns when there is bandwidth for it.
    pub fn send(&mut self, time: u64, level: &LevelTimes) -> u64 {
        let departs = time.max(self.free[1]);
        self.free[1] = departs + level.line[0];
        departs
    }

    /// Prefetches a line, unless it is on its way or was prefetched and not used.
    pub fn fetch(&mut self, line: u64, time: u64, level: &LevelTimes, is_write: bool) {
        let known = self.place(line);
        if known.line == line && (known.is_ahead || known.time > time) {
            return;
        }
        let free = &mut self.free[usize::from(!level.is_near)];
        let departs = time.max(*free);
        *free = departs + level.line[usize::from(is_write)];
        self.comes(line, departs + level.latency, true);
    }
}
