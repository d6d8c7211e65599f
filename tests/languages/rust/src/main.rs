//! Layouts of Rust data; see ../../shapes.c for what the comments say. Lines of the library that are inlined into a
//! line of ours count as that line's.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hint::black_box;
use std::rc::Rc;

struct Point {
    x: f32,
    y: f32,
    id: u32,
}

enum State {
    Waiting { since: u32 },
    Routed(Box<Route>),
    Done(u64, u8),
}

struct Route {
    hops: [u16; 4],
    cost: u32,
}

struct Node {
    key: u64,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

struct Pair<T> {
    first: T,
    second: T,
}

struct Text {
    name: String,
    tags: Vec<u64>,
}

#[inline(never)]
fn field(point: &Point) -> f32 {
    point.y //= load point : shapes::Point.y
}

#[inline(never)]
fn element(points: &[Point], at: usize) -> u32 {
    points[at].id //= load points.data_ptr : shapes::Point.id
}

#[inline(never)]
fn vector(points: &Vec<Point>, at: usize) -> f32 {
    points[at].x //= load self : alloc::vec::Vec<shapes::Point, alloc::alloc::Global>.len; load self.data_ptr : shapes::Point.x
}

#[inline(never)]
fn each(points: &[Point]) -> u32 {
    let mut sum = 0;
    for point in points {
        sum += point.id; //= load iter.ptr.pointer : shapes::Point.id
    }
    sum
}

#[inline(never)]
#[rustfmt::skip]
fn since(state: &State) -> u32 {
    match state { //= load state : shapes::State.{discriminant}
        State::Waiting { since } => *since,     //= load state : shapes::State.Waiting.since
        State::Routed(route) => route.cost,     //= load state->Routed.__0 : shapes::Route.cost
        State::Done(_, day) => u32::from(*day), //= load state : shapes::State.Done.__1
    }
}

#[inline(never)]
fn hop(route: &Route, at: usize) -> u16 {
    route.hops[at & 3] //= load route : shapes::Route.hops[]
}

#[inline(never)]
#[rustfmt::skip]
fn find(mut node: &Option<Box<Node>>, key: u64) -> bool {
    while let Some(here) = node {
        if here.key == key { //= load node->Some.__0 : shapes::Node.key, chased
            return true;
        }
        node = if key < here.key { &here.left } else { &here.right };
    }
    false
}

#[inline(never)]
fn generic(pair: &Pair<u64>) -> u64 {
    pair.first + pair.second //= load pair : shapes::Pair<u64>.first; load pair : shapes::Pair<u64>.second
}

#[inline(never)]
fn boxed(point: &Box<Point>) -> u32 {
    point.id //= load *point : shapes::Point.id, loaded
}

#[inline(never)]
fn counted(point: &Rc<Point>) -> u32 {
    point.id //= load self->ptr.pointer : alloc::rc::RcInner<shapes::Point>.value.id
}

#[inline(never)]
fn length(text: &Text) -> usize {
    text.name.len() + text.tags.len() //= load self : alloc::string::String.vec.len; load self : alloc::vec::Vec<u64, alloc::alloc::Global>.len
}

#[inline(never)]
fn tags(text: &Text) -> u64 {
    let mut sum = 0;
    for tag in &text.tags {
        sum += *tag; //= load iter.ptr.pointer : u64
    }
    sum
}

#[inline(never)]
fn write(point: &mut Point, id: u32) {
    point.id = id; //= store point : shapes::Point.id
}

#[inline(never)]
fn tuple(pair: &(u8, u64)) -> u64 {
    pair.1 //= load pair : (u8, u64).__1
}

#[inline(never)]
fn optional(value: &Option<u32>) -> u32 {
    value.unwrap_or(7) //= load value : core::option::Option<u32>.{discriminant}; load value : core::option::Option<u32>.Some.__0
}

#[inline(never)]
fn captured(add: &dyn Fn(u32) -> u32) -> u32 {
    add(3)
}

#[inline(never)]
fn hashed(map: &HashMap<u64, Point>) -> u32 {
    map.get(&5).map_or(0, |point| point.id) //= load self : shapes::Point.id
}

#[inline(never)]
fn sorted(map: &BTreeMap<u64, Point>) -> u32 {
    map.get(&5).map_or(0, |point| point.id) //= load self : shapes::Point.id, chased
}

#[inline(never)]
fn queued(queue: &VecDeque<u64>, at: usize) -> u64 {
    queue[at]
}

#[inline(never)]
fn result(value: u64) -> Result<Point, String> {
    if value > 3 {
        return Err(String::from("too large"));
    }
    Ok(Point { x: 1.0, y: 2.0, id: value as u32 }) //= store - : core::result::Result<shapes::Point, alloc::string::String>.Ok.__0.id
}

fn main() {
    // Whatever may be called from elsewhere takes its arguments as it is written.
    black_box([
        field as *const (),
        element as *const (),
        vector as *const (),
        each as *const (),
        hop as *const (),
        boxed as *const (),
        since as *const (),
        find as *const (),
        generic as *const (),
        counted as *const (),
        length as *const (),
        tags as *const (),
        tuple as *const (),
        optional as *const (),
        hashed as *const (),
        sorted as *const (),
        queued as *const (),
    ]);
    let mut points: Vec<Point> = Vec::with_capacity(20); //= alloc points : shapes::Point
    for id in 0..20 {
        points.push(Point { x: 1.0, y: id as f32, id });
    }
    write(&mut points[3], 33);
    let one = Box::new(Point { x: 3.0, y: 4.0, id: black_box(5) }); //= alloc one : shapes::Point
    let route = Route { hops: [1, 2, 3, 4], cost: black_box(9) };
    println!("{} {} {}", field(&one), element(&points, black_box(4)), vector(&points, black_box(2)));
    println!("{} {} {}", each(&points), hop(&route, black_box(1)), boxed(&one));
    let states = [
        State::Waiting { since: black_box(4) },
        State::Routed(Box::new(route)), //= alloc states : shapes::Route.Routed.__0
        State::Done(1, black_box(2)),
    ];
    println!("{}", states.iter().map(since).sum::<u32>());
    if let State::Done(late, _) = &states[2] {
        println!("{}", black_box(late));
    }
    let leaf = |key| Some(Box::new(Node { key, left: None, right: None }));
    let tree = Some(Box::new(Node { key: black_box(5), left: leaf(2), right: leaf(9) }));
    println!("{} {}", find(&tree, 9), find(&tree, 3));
    println!("{}", generic(black_box(&Pair { first: 1, second: 2 })));
    println!("{}", counted(black_box(&Rc::new(Point { x: 0.0, y: 0.0, id: 8 }))));
    let text = Text { name: String::from("name"), tags: vec![1, 2, black_box(3)] };
    println!("{} {}", length(&text), tags(&text));
    println!("{} {}", tuple(black_box(&(1, 2))), optional(black_box(&Some(3))));
    let (base, extra) = (black_box(4u32), black_box(vec![7u32; 9]));
    println!("{}", captured(&|n| base + n + extra[n as usize]));
    println!("{}", hashed(&(0..9).map(|id| (id, Point { x: 0.0, y: 0.0, id: id as u32 })).collect()));
    println!("{}", sorted(&(0..9).map(|id| (id, Point { x: 0.0, y: 0.0, id: id as u32 })).collect()));
    println!("{}", queued(&(0..9).collect(), black_box(3)));
    println!("{} {}", result(black_box(2)).is_ok(), result(black_box(5)).is_err());
}
