//! Loops over slices, and what the standard library keeps data in: accesses that are derived from others, repeated in
//! loops of known length, and made by code that is inlined from another crate.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use std::rc::{Rc, Weak};

#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
struct Particle {
    position: [f64; 3],
    velocity: [f64; 3],
    kind: u8,
    name: Option<Box<str>>,
}

/// No random keys: a run is like any other.
type Hasher = BuildHasherDefault<DefaultHasher>;

#[inline(never)]
fn step(particles: &mut [Particle], by: f64) -> f64 {
    let mut energy = 0.0;
    for particle in particles.iter_mut().filter(|particle| particle.kind != 3) {
        for axis in 0..3 {
            particle.position[axis] += by * particle.velocity[axis];
            energy += particle.velocity[axis] * particle.velocity[axis];
        }
    }
    energy
}

#[inline(never)]
fn transpose(from: &[u32], to: &mut [u32], width: usize) {
    let height = from.len() / width;
    for row in 0..height {
        for column in 0..width {
            to[column * height + row] = from[row * width + column];
        }
    }
}

/// One record an execution: a loop in one block whose turns are known before it.
#[inline(never)]
fn every_fourth(values: &mut [u64], turns: usize) {
    for turn in 0..turns {
        values[4 * turn] = values[4 * turn].rotate_left(7) ^ turn as u64;
    }
}

#[inline(never)]
fn sorted(count: u32) -> Vec<(u32, String)> {
    let mut pairs: Vec<_> =
        (0..count).map(|i| (i.wrapping_mul(2_654_435_761) % 1009, format!("{i:04x}"))).collect();
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    pairs.dedup_by_key(|pair| pair.0);
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.1.clone()));
    pairs.rotate_left(3);
    pairs
}

#[inline(never)]
fn maps(count: u64) -> u64 {
    let mut hashed: HashMap<u64, Vec<u64>, Hasher> = HashMap::default();
    let mut ordered = BTreeMap::new();
    for i in 0..count {
        hashed.entry(i * i % 97).or_default().push(i);
        *ordered.entry(i * 31 % 89).or_insert(0u64) += i;
    }
    hashed.retain(|key, _| key % 3 != 0);
    let tail: u64 = ordered.range(40..).map(|(_, sum)| sum).sum();
    let names: HashSet<String, Hasher> = hashed.keys().map(u64::to_string).collect();
    tail + hashed.values().flatten().sum::<u64>() + names.len() as u64
}

#[inline(never)]
fn queues(count: u32) -> u32 {
    let mut heap = BinaryHeap::new();
    let mut ring = VecDeque::with_capacity(8);
    let mut list = LinkedList::new();
    for i in 0..count {
        heap.push(i ^ 0x55);
        ring.push_front(i);
        list.push_back(i);
        if ring.len() > 20 {
            ring.drain(5..9);
        }
    }
    let mut sum = 0;
    while let Some(top) = heap.pop() {
        sum ^= top.rotate_left(top & 7);
    }
    ring.make_contiguous().iter().chain(&list.split_off(7)).fold(sum, |all, one| all.wrapping_mul(31) + one)
}

struct Tree {
    value: Cell<u32>,
    parent: RefCell<Weak<Tree>>,
    children: RefCell<Vec<Rc<Tree>>>,
}

#[inline(never)]
fn tree(depth: u32) -> Rc<Tree> {
    let node =
        Rc::new(Tree { value: Cell::new(depth), parent: RefCell::default(), children: RefCell::default() });
    for _ in 0..depth {
        let child = tree(depth - 1);
        *child.parent.borrow_mut() = Rc::downgrade(&node);
        node.value.set(node.value.get() + child.value.get());
        node.children.borrow_mut().push(child);
    }
    node
}

fn main() {
    let mut particles: Vec<Particle> = (0..50)
        .map(|i| Particle {
            velocity: [f64::from(i), 1.5, -2.0],
            kind: i as u8 % 5,
            name: (i % 7 == 0).then(|| format!("particle {i}").into()),
            ..Particle::default()
        })
        .collect();
    let energy: f64 = (0..20).map(|_| step(black_box(&mut particles), 0.25)).sum();
    let fastest = particles.iter().max_by(|a, b| a.partial_cmp(b).unwrap()).unwrap();
    println!("{energy} {fastest:?}");

    let from: Vec<u32> = (0..37 * 53).collect();
    let mut to = vec![0; from.len()];
    transpose(black_box(&from), &mut to, 37);
    let mut values = vec![1u64; 400];
    every_fourth(black_box(&mut values), black_box(100));
    values.copy_within(3..90, 200);
    values[50..150].fill(7);
    let (left, right) = values.split_at_mut(200);
    left.swap_with_slice(right);
    println!("{} {}", to[1000], values.iter().fold(0u64, |all, one| all.wrapping_mul(3) ^ one));

    println!("{:?} {} {}", sorted(300)[17], maps(2000), queues(300));
    let root = tree(6);
    let child = root.children.borrow()[2].clone();
    println!(
        "{} {}",
        root.value.get(),
        child.parent.borrow().upgrade().is_some_and(|up| Rc::ptr_eq(&up, &root))
    );
}
