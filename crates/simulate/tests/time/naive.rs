//! The time model, one access at a time, from its description: everything that came before is kept
//! and looked through.

use std::collections::HashMap;

use memlode_simulate::{Act, Charged, Stall, TICKS, TimeSpec, TimedFeed, TimedLine, TimedSite, Translation};

struct Store {
    first: u64,
    last: u64,
    complete: u64,
    leaves: u64,
}

#[derive(Clone, Copy)]
struct Level {
    latency: u64,
    read: u64,
    write: u64,
    is_second: bool,
    ahead: u64,
}

/// A requested line: its number, when it is there, whether it was fetched ahead and not used.
type Asked = (u64, u64, bool);

/// State of a site, or of a walk through a page.
#[derive(Clone, Default)]
struct Going {
    at: i128,
    step: i128,
    same: u32,
    /// Up to where it was fetched ahead, from `at`.
    ahead: i128,
}

/// The model, and all that happened.
pub struct Naive {
    spec: TimeSpec,
    instructions: u64,
    behind: u64,
    front: u64,
    /// Instructions up to each access, and its commit.
    done: Vec<(u64, u64)>,
    /// Each load or update: site, and when it was done.
    loads: Vec<(u32, u64)>,
    stores: Vec<Store>,
    asked: HashMap<u64, Asked>,
    port: u64,
    /// When each line from behind the second level came, of those that accesses requested.
    fills: Vec<u64>,
    carried: [u64; 2],
    sites: HashMap<u32, Going>,
    pages: HashMap<u64, (u64, Going)>,
    /// Beginnings of all page walks and their ticks, and for the low bits of a page's number the
    /// page that was walked for last, and the end.
    walks: Vec<(u64, u64)>,
    walked: HashMap<u64, (u64, u64)>,
}

fn ticks(cycles: f64) -> u64 {
    (cycles * TICKS as f64).round() as u64
}

impl Naive {
    pub fn new(spec: TimeSpec) -> Naive {
        Naive {
            spec,
            instructions: 0,
            behind: 0,
            front: 0,
            done: Vec::new(),
            loads: Vec::new(),
            stores: Vec::new(),
            asked: HashMap::new(),
            port: 0,
            fills: Vec::new(),
            carried: [0; 2],
            sites: HashMap::new(),
            pages: HashMap::new(),
            walks: Vec::new(),
            walked: HashMap::new(),
        }
    }

    pub fn committed(&self) -> u64 {
        self.done.last().map_or(0, |done| done.1)
    }

    fn level(&self, number: u8) -> Level {
        let latencies = &self.spec.latencies;
        let number = usize::from(number).min(latencies.len() - 1);
        let latency = latencies[number];
        let is_second = number == 1 && latencies.len() > 2;
        let at_once = if is_second { self.spec.overlap_l2 } else { self.spec.overlap_memory };
        let mut read = self.spec.read_line.min(latency / at_once);
        if is_second {
            read = read.min(2.0);
        }
        let write = read * self.spec.write_line / self.spec.read_line;
        let ahead = ((latency / read).ceil() as u64).clamp(1, 96);
        Level { latency: ticks(latency), read: ticks(read), write: ticks(write), is_second, ahead }
    }

    pub fn access(
        &mut self,
        site: &TimedSite,
        (address, bytes): (u64, u32),
        lines: &[TimedLine],
        (translation, translation_ticks): (Translation, u64),
    ) -> Charged {
        let mut charged = Charged::default();
        let mut waits: HashMap<Stall, u64> = HashMap::new();
        let own = self.behind + site.before;
        self.behind = site.after;
        self.instructions += own;
        let committed = self.committed();
        let executed = self.front + own * ticks(self.spec.instruction) / TICKS;
        // The window ends behind the last access that has so many instructions behind it.
        let window = ticks(self.spec.window);
        let left = self.done.iter().filter(|(at, _)| at + window <= self.instructions);
        let room = left.map(|(_, commit)| *commit).max().unwrap_or(0);
        let dispatched = executed.max(room);
        waits.insert(Stall::Window, dispatched - executed);
        self.front = dispatched;
        let ready = dispatched.max(self.fed(&site.address));
        waits.insert(Stall::Chain, ready - dispatched);
        let issued = match self.walked.get(&(address / 4096 % 64)) {
            Some(&(page, end)) if page == address / 4096 && end > ready => end,
            _ if translation == Translation::Walk => {
                // As far behind each walk as that asks for.
                let near = ticks(self.spec.walk);
                let apart = |walk: u64| {
                    let far = walk.max(near) - near;
                    ticks(self.spec.walk / self.spec.overlap_walk) + far / self.spec.overlap_memory as u64
                };
                let free = self.walks.iter().map(|(begins, walk)| begins + apart(*walk)).max();
                let begins = ready.max(free.unwrap_or(0));
                let end = begins + translation_ticks;
                self.walks.push((begins, translation_ticks));
                self.walked.insert(address / 4096 % 64, (address / 4096, end));
                end
            }
            _ => ready + translation_ticks,
        };
        waits.insert(Stall::Walk, issued - ready);
        let first = self.level(0).latency;
        if matches!(site.act, Act::Load | Act::Store | Act::StorePast) {
            self.goes(site.number, address);
        }
        let mut done = match site.act {
            Act::Load => {
                let in_flight = |store: &&Store| {
                    store.leaves > issued && store.first < address + u64::from(bytes) && store.last >= address
                };
                let newest = self.stores.len().saturating_sub(self.spec.stores);
                let found = self.stores[newest..].iter().rev().find(in_flight);
                let found = found.map(|store| {
                    let has_all = store.first <= address && store.last >= address + u64::from(bytes) - 1;
                    (has_all, if has_all { store.complete } else { store.leaves })
                });
                match found {
                    Some((has_all, time)) => {
                        (charged.forwarded, charged.blocked) = (has_all.into(), (!has_all).into());
                        waits.insert(Stall::Forwarding, time.saturating_sub(issued));
                        issued.max(time) + first
                    }
                    None => self.fetched(site.number, lines, issued, false, &mut waits),
                }
            }
            Act::Store | Act::StorePast => {
                let complete = issued.max(self.fed(&site.data));
                *waits.entry(Stall::Chain).or_default() += complete - issued;
                let full = self.stores.len() >= self.spec.stores;
                let room = if full { self.stores[self.stores.len() - self.spec.stores].leaves } else { 0 };
                let done = complete.max(room);
                waits.insert(Stall::Stores, done - complete);
                let there = if site.act == Act::Store {
                    self.fetched(site.number, lines, issued, true, &mut HashMap::new())
                } else {
                    self.written(lines, issued)
                };
                let leaves = self.drained() + TICKS;
                let leaves = leaves.max(done).max(committed).max(there);
                let last = address + u64::from(bytes) - 1;
                self.stores.push(Store { first: address, last, complete, leaves });
                done
            }
            Act::Atomic => {
                let complete = issued.max(self.fed(&site.data));
                *waits.entry(Stall::Chain).or_default() += complete - issued;
                let begins = complete.max(committed).max(self.drained());
                let atomic = ticks(self.spec.atomic);
                waits.insert(Stall::Order, begins - complete + atomic);
                let done = self.fetched(site.number, lines, begins, false, &mut waits) + atomic;
                self.front = self.front.max(done);
                done
            }
            // Nobody waits for the line; only for something to ask with.
            Act::Prefetch => {
                let mut asked = issued;
                for line in lines.iter().filter(|line| line.level > 0) {
                    if self.is_used_first(line.address / 64).is_none() {
                        asked = asked.max(self.ask(line, issued, false)[0]);
                    }
                }
                waits.insert(Stall::Buffers, asked - issued);
                asked + first
            }
        };
        if matches!(site.act, Act::Load | Act::Atomic) {
            self.loads.push((site.number, done));
        }
        if site.is_fenced {
            let fence = done.max(committed).max(self.drained()) + ticks(self.spec.fence);
            *waits.entry(Stall::Order).or_default() += fence - done;
            self.front = self.front.max(fence);
            done = fence;
        }
        // Eight instructions commit in a cycle.
        let nothing = (committed + own / 8).max(executed + first);
        charged.instructions = nothing - committed;
        self.done.push((self.instructions, nothing.max(done)));
        let mut stall = nothing.max(done) - nothing;
        // The last wait on the way first.
        for kind in [
            Stall::Order,
            Stall::Stores,
            Stall::Forwarding,
            Stall::Bandwidth,
            Stall::Buffers,
            Stall::Walk,
            Stall::Chain,
            Stall::Window,
        ] {
            let part = stall.min(waits.get(&kind).copied().unwrap_or(0));
            charged.stalls[kind as usize] = part;
            stall -= part;
        }
        charged.stalls[Stall::Latency as usize] = stall;
        charged
    }

    fn drained(&self) -> u64 {
        self.stores.last().map_or(0, |store| store.leaves)
    }

    /// When the last load of each group is done; the last of these.
    fn fed(&self, groups: &[Box<[TimedFeed]>]) -> u64 {
        let meant = |feed: &TimedFeed| {
            let of_site = self.loads.iter().enumerate().rev().filter(|(_, load)| load.0 == feed.site);
            of_site.map(|(number, load)| (number, load.1)).nth(feed.back.into())
        };
        let last = |group: &[TimedFeed]| group.iter().filter_map(meant).max();
        groups.iter().filter_map(|group| last(group)).map(|load| load.1).max().unwrap_or(0)
    }

    fn goes(&mut self, site: u32, address: u64) {
        let going = self.sites.entry(site).or_default();
        let step = i128::from(address) - going.at;
        going.at = address.into();
        if step != 0 && step == going.step {
            going.same = (going.same + 1).min(2);
            going.ahead = (going.ahead - step.abs()).max(0);
        } else if step != 0 {
            (going.step, going.same, going.ahead) = (step, 0, 0);
        }
    }

    fn fetched(
        &mut self,
        site: u32,
        lines: &[TimedLine],
        time: u64,
        is_write: bool,
        waits: &mut HashMap<Stall, u64>,
    ) -> u64 {
        let first = self.level(0).latency;
        let mut done = time;
        for line in lines {
            let number = line.address / 64;
            let known = self.asked.get(&(number % (1 << 14))).copied().filter(|asked| asked.0 == number);
            if line.level == 0 {
                done = done.max(time.max(known.map_or(0, |asked| asked.1)) + first);
                continue;
            }
            let level = self.level(line.level);
            let mut wait = |stall: Stall, ticks: u64| {
                let known = waits.entry(stall).or_default();
                *known = (*known).max(ticks);
            };
            if let Some(there) = self.is_used_first(number) {
                wait(Stall::Bandwidth, there.saturating_sub(time));
                done = done.max(there.max(time) + first);
            } else {
                let [start, departs, there] = self.ask(line, time, is_write);
                wait(Stall::Buffers, start - time);
                wait(Stall::Bandwidth, departs - start);
                done = done.max(there);
            }
            for next in self.ahead(site, line.address, level.ahead) {
                let asked = self.asked.get(&(next % (1 << 14))).filter(|asked| asked.0 == next);
                if asked.is_some_and(|asked| asked.2 || asked.1 > time) {
                    continue;
                }
                let carried = &mut self.carried[usize::from(!level.is_second)];
                let departs = time.max(*carried);
                *carried = departs + if is_write { level.write } else { level.read };
                self.asked.insert(next % (1 << 14), (next, departs + level.latency, true));
            }
        }
        done
    }

    /// When memory has begun to take the lines that a store past the caches begins.
    fn written(&mut self, lines: &[TimedLine], time: u64) -> u64 {
        let memory = self.level(u8::MAX);
        let mut taken = time;
        for _ in lines.iter().filter(|line| line.level != 0) {
            taken = time.max(self.carried[1]);
            self.carried[1] = taken + memory.read;
        }
        taken
    }

    /// When a line is there that was fetched ahead and is used now.
    fn is_used_first(&mut self, number: u64) -> Option<u64> {
        let known = self.asked.get_mut(&(number % (1 << 14))).filter(|asked| asked.0 == number && asked.2)?;
        known.2 = false;
        Some(known.1)
    }

    /// Requests a line: returns when it has a port or a buffer, when it departs, and when it is
    /// there.
    fn ask(&mut self, line: &TimedLine, time: u64, is_write: bool) -> [u64; 3] {
        let (number, level) = (line.address / 64, self.level(line.level));
        let [start, departs] = if level.is_second {
            let start = time.max(self.port);
            self.port = start + ticks(self.spec.latencies[1] / self.spec.overlap_l2);
            [start; 2]
        } else {
            // The buffer that is free first: all but the others' lines have come.
            let mut busy = self.fills.clone();
            busy.sort_unstable();
            let buffers = self.spec.overlap_memory.round() as usize;
            let start = time.max(if busy.len() < buffers { 0 } else { busy[busy.len() - buffers] });
            let departs = start.max(self.carried[1]);
            self.carried[1] = departs + if is_write { level.write } else { level.read };
            self.fills.push(departs + level.latency);
            [start, departs]
        };
        let there = departs + level.latency;
        self.asked.insert(number % (1 << 14), (number, there, false));
        [start, departs, there]
    }

    /// Lines to be fetched ahead.
    fn ahead(&mut self, site: u32, address: u64, lines: u64) -> Vec<u64> {
        let lines = i128::from(lines);
        let going = self.sites.entry(site).or_default();
        if going.same >= 2 && going.step.abs() <= 2048 {
            let stride = going.step.abs().max(64) * going.step.signum();
            let done = ((going.ahead + stride.abs() - 1) / stride.abs()).min(lines);
            let is_in_page = |at: &i128| stride.abs() == 64 || at / 4096 == going.at / 4096;
            let next: Vec<i128> =
                (done + 1..=lines).map(|step| going.at + step * stride).take_while(is_in_page).collect();
            going.ahead = (done + next.len() as i128) * stride.abs();
            return next.into_iter().map(|at| (at / 64) as u64).collect();
        }
        let (page, line) = (address / 4096, i128::from(address / 64));
        let walk = self.pages.entry(page % 64).or_insert((u64::MAX, Going::default()));
        if walk.0 != page {
            *walk = (page, Going { at: line, step: 1, ..Going::default() });
            return Vec::new();
        }
        let walk = &mut walk.1;
        let (step, distance) = ((line - walk.at).signum(), (line - walk.at).abs());
        if distance == 0 {
            return Vec::new();
        }
        walk.at = line;
        if step != walk.step || distance > 4 {
            (walk.step, walk.same, walk.ahead) = (step, 1, 0);
            return Vec::new();
        }
        walk.same = (walk.same + 1).min(255);
        walk.ahead = (walk.ahead - distance).max(0);
        if walk.same < 2 {
            return Vec::new();
        }
        let last = if step < 0 { i128::from(page) * 64 } else { i128::from(page) * 64 + 63 };
        let wanted = lines.min(walk.same.into()).min((last - line).abs());
        let next = (walk.ahead + 1..=wanted).map(|ahead| (line + step * ahead) as u64).collect();
        walk.ahead = walk.ahead.max(wanted);
        next
    }
}
