//! One cache: sets are vectors of ways, and each policy keeps its state as textbooks describe it.
#![allow(dead_code)] // each test program uses its part

use std::collections::{BTreeSet, HashMap, VecDeque};

use memlode_simulate::{Held, ModelLevel, Replacement};

use super::prefetch::Seen;

#[derive(Clone, Debug)]
pub struct Line {
    pub line: u64,
    pub dirty: bool,
    pub owned: bool,
    /// Prefetched and not used yet: the last access that finds it on its way.
    pub ahead: Option<u64>,
    pub sectors: BTreeSet<u64>,
}

/// State of each policy, by way.
enum Order {
    /// Next to leave in front.
    List(VecDeque<usize>, Replacement),
    /// The half to leave next, by range of ways: true is the upper one.
    Tree(HashMap<(usize, usize), bool>),
    Predicted(Vec<u8>, Option<u32>),
    Lot(u64),
}

impl Order {
    fn new(replacement: Replacement, set: u64, ways: usize) -> Order {
        match replacement {
            Replacement::Lru | Replacement::Fifo => Order::List(VecDeque::new(), replacement),
            Replacement::TreePlru => Order::Tree(HashMap::new()),
            Replacement::Srrip => Order::Predicted(vec![0; ways], None),
            Replacement::Brrip => Order::Predicted(vec![0; ways], Some(0)),
            Replacement::Random => {
                let mut z = (set + 1).wrapping_mul(0x9e3779b97f4a7c15);
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
                Order::Lot(z ^ (z >> 31))
            }
        }
    }

    fn use_of(&mut self, way: usize, ways: usize, fill: bool) {
        match self {
            Order::List(list, kind) => {
                if fill || *kind == Replacement::Lru {
                    list.retain(|other| *other != way);
                    list.push_back(way);
                }
            }
            Order::Tree(halves) => {
                let (mut low, mut high) = (0, ways);
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    halves.insert((low, high), way < middle);
                    if way < middle { high = middle } else { low = middle }
                }
            }
            Order::Predicted(lines, fills) => {
                lines[way] = if fill { 2 } else { 0 };
                if let (true, Some(fills)) = (fill, fills) {
                    *fills += 1;
                    lines[way] = if fills.is_multiple_of(32) { 2 } else { 3 };
                }
            }
            Order::Lot(_) => {}
        }
    }

    fn victim(&mut self, ways: usize) -> usize {
        match self {
            Order::List(list, _) => list[0],
            Order::Tree(halves) => {
                let (mut low, mut high) = (0, ways);
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    if halves.get(&(low, high)) == Some(&true) { low = middle } else { high = middle }
                }
                low
            }
            Order::Predicted(lines, _) => loop {
                if let Some(way) = lines.iter().position(|line| *line == 3) {
                    return way;
                }
                lines.iter_mut().for_each(|line| *line += 1);
            },
            Order::Lot(state) => {
                *state ^= *state >> 12;
                *state ^= *state << 25;
                *state ^= *state >> 27;
                let high = state.wrapping_mul(0x2545f4914f6cdd1d) >> 32;
                (high as u128 * ways as u128 / (1 << 32)) as usize
            }
        }
    }
}

pub struct Cache {
    sets: u64,
    ways: usize,
    replacement: Replacement,
    content: HashMap<u64, (Vec<Option<Line>>, Order)>,
    pub seen: Vec<Seen>,
    /// Lines that made room for a prefetch, by their last 12 bits.
    pub dropped: HashMap<u64, u64>,
}

impl Cache {
    pub fn new(level: &ModelLevel) -> Cache {
        Cache {
            sets: level.shape.sets(),
            ways: level.shape.ways as usize,
            replacement: level.replacement,
            content: HashMap::new(),
            seen: Vec::new(),
            dropped: HashMap::new(),
        }
    }

    fn set(&mut self, line: u64) -> &mut (Vec<Option<Line>>, Order) {
        let (set, ways, replacement) = (line % self.sets, self.ways, self.replacement);
        self.content.entry(set).or_insert_with(|| (vec![None; ways], Order::new(replacement, set, ways)))
    }

    pub fn get(&mut self, line: u64) -> Option<&mut Line> {
        self.set(line).0.iter_mut().flatten().find(|held| held.line == line)
    }

    pub fn touch(&mut self, line: u64) {
        let ways = self.ways;
        let (set, order) = self.set(line);
        let way = set.iter().position(|held| held.as_ref().is_some_and(|held| held.line == line));
        order.use_of(way.unwrap(), ways, false);
    }

    pub fn take(&mut self, line: u64) -> Option<Line> {
        let way =
            self.set(line).0.iter_mut().find(|held| held.as_ref().is_some_and(|held| held.line == line));
        way.and_then(Option::take)
    }

    pub fn put(&mut self, new: Line) -> Option<Line> {
        let ways = self.ways;
        let (set, order) = self.set(new.line);
        let way = set.iter().position(Option::is_none).unwrap_or_else(|| order.victim(ways));
        order.use_of(way, ways, true);
        set[way].replace(new)
    }

    pub fn held(&self) -> Vec<Held> {
        let lines = self.content.values().flat_map(|(set, _)| set.iter().flatten());
        let mut held: Vec<Held> =
            lines.map(|line| Held { line: line.line, dirty: line.dirty, owned: line.owned }).collect();
        held.sort_by_key(|held| held.line);
        held
    }
}
