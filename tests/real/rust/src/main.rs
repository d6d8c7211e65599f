//! A parcel depot: what Rust programs are made of (vectors of structures, enums, boxed trees, hash maps, closures,
//! trait objects, threads) with an output that depends on all of it and on nothing else.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

#[derive(Clone, Debug)]
enum State {
    Waiting { since: u32 },
    Routed(Route),
    Delivered(u32, u8),
    Lost,
}

#[derive(Clone, Debug)]
struct Route {
    hops: [u16; 4],
    cost: u32,
}

#[derive(Clone, Debug)]
struct Parcel {
    id: u64,
    weight: f64,
    zone: u32,
    state: State,
    label: String,
}

struct Node {
    key: u64,
    count: u32,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

trait Tariff {
    fn price(&self, parcel: &Parcel) -> f64;
}

struct ByWeight {
    per_kilo: f64,
}

struct ByZone {
    table: Vec<f64>,
}

impl Tariff for ByWeight {
    fn price(&self, parcel: &Parcel) -> f64 {
        self.per_kilo * parcel.weight
    }
}

impl Tariff for ByZone {
    fn price(&self, parcel: &Parcel) -> f64 {
        self.table[parcel.zone as usize]
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn arrivals(random: &mut Random, number: usize) -> Vec<Parcel> {
    let mut parcels = Vec::new();
    for id in 0..number as u64 {
        let zone = random.below(64) as u32;
        parcels.push(Parcel {
            id,
            weight: random.below(30_000) as f64 / 1000.0,
            zone,
            state: State::Waiting { since: random.below(1000) as u32 },
            label: format!("Z{zone:02}-{id:06}"),
        });
    }
    parcels
}

fn route(parcels: &mut [Parcel], distances: &[Vec<u32>]) {
    for parcel in parcels.iter_mut().filter(|parcel| parcel.weight < 29.0) {
        let start = parcel.zone as usize;
        let mut hops = [0u16; 4];
        let mut cost = 0;
        let mut here = start;
        for hop in &mut hops {
            let (next, step) = nearest(&distances[here], here);
            *hop = next as u16;
            cost += step;
            here = (next * 7 + 1) % distances.len();
        }
        if let State::Waiting { since } = parcel.state {
            parcel.state = State::Routed(Route { hops, cost: cost + since % 3 });
        }
    }
}

fn nearest(row: &[u32], but: usize) -> (usize, u32) {
    let candidates = row.iter().copied().enumerate().filter(|&(at, _)| at != but);
    candidates.min_by_key(|&(_, distance)| distance).unwrap_or((but, 0))
}

fn deliver(parcels: &mut [Parcel]) -> u64 {
    let mut hops = 0;
    for parcel in parcels {
        parcel.state = match &parcel.state {
            State::Routed(route) if route.cost % 11 == 3 => State::Lost,
            State::Routed(route) => {
                hops += route.hops.iter().map(|&hop| u64::from(hop)).sum::<u64>();
                State::Delivered(route.cost, (parcel.id % 7) as u8)
            }
            other => other.clone(),
        };
    }
    hops
}

fn insert(mut tree: &mut Option<Box<Node>>, key: u64) {
    while let Some(node) = tree {
        if node.key == key {
            node.count += 1;
            return;
        }
        tree = if key < node.key { &mut node.left } else { &mut node.right };
    }
    *tree = Some(Box::new(Node { key, count: 1, left: None, right: None }));
}

fn depth_and_count(tree: &Option<Box<Node>>) -> (u32, u32) {
    tree.as_ref().map_or((0, 0), |node| {
        let (left, right) = (depth_and_count(&node.left), depth_and_count(&node.right));
        (1 + left.0.max(right.0), node.count + left.1 + right.1)
    })
}

fn by_zone(parcels: &[Parcel]) -> HashMap<u32, Vec<u64>> {
    let mut zones: HashMap<u32, Vec<u64>> = HashMap::new();
    for parcel in parcels {
        zones.entry(parcel.zone).or_default().push(parcel.id);
    }
    zones
}

fn income(parcels: &Arc<Vec<Parcel>>, tariffs: Vec<Box<dyn Tariff + Send>>) -> Vec<f64> {
    let (sender, receiver) = mpsc::channel();
    for (number, tariff) in tariffs.into_iter().enumerate() {
        let (parcels, sender) = (Arc::clone(parcels), sender.clone());
        thread::spawn(move || {
            let sum: f64 = parcels.iter().map(|parcel| tariff.price(parcel)).sum();
            sender.send((number, sum)).expect("the receiver waits");
        });
    }
    drop(sender);
    let ordered: BTreeMap<usize, f64> = receiver.iter().collect();
    ordered.into_values().collect()
}

fn heaviest(parcels: &[Parcel], seen: &AtomicU64) -> Vec<(u64, u64)> {
    let best = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for part in parcels.chunks(parcels.len() / 3 + 1) {
            let best = &best;
            scope.spawn(move || {
                let grams = |parcel: &Parcel| (parcel.weight * 1000.0) as u64;
                let mut order: Vec<&Parcel> = part.iter().collect();
                order.sort_unstable_by_key(|parcel| (std::cmp::Reverse(grams(parcel)), parcel.id));
                seen.fetch_add(order.len() as u64, Ordering::Relaxed);
                best.lock().expect("no thread fails").extend(order[..5].iter().map(|p| (grams(p), p.id)));
            });
        }
    });
    let mut best = best.into_inner().expect("no thread fails");
    best.sort_unstable();
    best
}

fn main() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let distances: Vec<Vec<u32>> =
        (0..64).map(|_| (0..64).map(|_| 1 + random.below(500) as u32).collect()).collect();
    let mut parcels = arrivals(&mut random, 40_000);
    route(&mut parcels, &distances);
    println!("hops {}", deliver(&mut parcels));

    let mut tree = None;
    for _ in 0..30_000 {
        insert(&mut tree, random.below(20_000));
    }
    println!("tree {:?}", depth_and_count(&tree));

    let zones = by_zone(&parcels);
    let fullest = zones.iter().map(|(zone, ids)| (ids.len(), *zone)).max();
    println!(
        "zones {} fullest {fullest:?} {:?}",
        zones.len(),
        zones.get(&9).map(|ids| ids.iter().sum::<u64>())
    );

    let mut belt: VecDeque<usize> = (0..1000).collect();
    let mut checksum = 0u64;
    for step in 0..20_000 {
        let at = belt.pop_front().expect("the belt is never empty");
        let label = parcels[(at * 37 + step) % parcels.len()].label.as_bytes();
        checksum = label.iter().fold(checksum, |sum, &byte| sum.rotate_left(5) ^ u64::from(byte));
        belt.push_back(at);
    }
    println!("labels {checksum:x}");

    let seen = AtomicU64::new(0);
    println!("heaviest {:?} of {}", heaviest(&parcels, &seen), seen.into_inner());
    let state = |wanted: fn(&State) -> bool| parcels.iter().filter(|parcel| wanted(&parcel.state)).count();
    println!(
        "lost {} waiting {} late {}",
        state(|state| matches!(state, State::Lost)),
        state(|state| matches!(state, State::Waiting { since } if *since > 10)),
        state(|state| matches!(state, State::Delivered(cost, day) if *cost > 40 && *day < 3)),
    );
    let table = (0..64).map(|zone| 4.0 + f64::from(zone) / 8.0).collect();
    let tariffs: Vec<Box<dyn Tariff + Send>> =
        vec![Box::new(ByWeight { per_kilo: 1.25 }), Box::new(ByZone { table })];
    println!("income {:.2?}", income(&Arc::new(parcels), tariffs));
}
