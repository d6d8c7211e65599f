//! Ways that control takes: panics that unwind, values dropped on the way, dynamic calls, closures, recursion, futures,
//! and the end of the process from inside.

use std::any::Any;
use std::future::Future;
use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

trait Shape {
    fn area(&self) -> f64;
    fn grow(&mut self, by: f64);
    fn describe(&self) -> String {
        format!("{:.2}", self.area())
    }
}

struct Circle {
    radius: f64,
}

struct Polygon {
    corners: Vec<(f64, f64)>,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.radius * std::f64::consts::PI
    }
    fn grow(&mut self, by: f64) {
        self.radius *= by;
    }
}

impl Shape for Polygon {
    fn area(&self) -> f64 {
        let next = self.corners.iter().cycle().skip(1);
        self.corners.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum::<f64>() / 2.0
    }
    fn grow(&mut self, by: f64) {
        for (x, y) in &mut self.corners {
            *x *= by;
            *y *= by;
        }
    }
}

/// Records its drops, while a panic unwinds, in memory that others see.
struct Noted<'a> {
    log: &'a std::cell::RefCell<Vec<u32>>,
    number: u32,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.log.borrow_mut().push(self.number);
    }
}

#[inline(never)]
fn descend(log: &std::cell::RefCell<Vec<u32>>, depth: u32, values: &[u32]) -> u32 {
    let noted = Noted { log, number: depth };
    // Beyond the slice: the panic starts here.
    let value = values[depth as usize];
    let rest = if value == 0 { 0 } else { descend(log, depth + 1, values) };
    noted.number + rest + value
}

#[inline(never)]
fn caught(values: &[u32]) -> (Option<u32>, Vec<u32>) {
    let log = std::cell::RefCell::default();
    let result = panic::catch_unwind(AssertUnwindSafe(|| descend(&log, 0, values)));
    (result.ok(), log.into_inner())
}

#[inline(never)]
fn raised(number: u32) -> Box<dyn Any + Send> {
    panic::catch_unwind(|| {
        if number % 2 == 0 {
            panic::panic_any(number);
        }
        panic!("odd: {number}");
    })
    .unwrap_err()
}

#[inline(never)]
fn collatz(number: u64, seen: &mut dyn FnMut(u64) -> bool) -> u32 {
    if seen(number) || number == 1 {
        return 0;
    }
    1 + if number % 2 == 0 { collatz(number / 2, seen) } else { collatz(3 * number + 1, seen) }
}

#[inline(never)]
fn search(grid: &[[u8; 9]; 9], wanted: u8) -> Option<(usize, usize)> {
    'rows: for (y, row) in grid.iter().enumerate() {
        let mut x = 0;
        loop {
            match row.get(x) {
                None => continue 'rows,
                Some(0) => x += 2,
                Some(&found) if found == wanted => return Some((x, y)),
                Some(1..=4) => x += 1,
                Some(_) => x += 3,
            }
        }
    }
    None
}

/// Ready on the third look.
struct Later(u32);

impl Future for Later {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<u32> {
        self.0 += 1;
        context.waker().wake_by_ref();
        if self.0 < 3 { Poll::Pending } else { Poll::Ready(self.0) }
    }
}

async fn added(values: &[u32]) -> u32 {
    let mut sum = 0;
    for value in values {
        let held = [*value; 5];
        sum += Later(0).await * held[sum as usize % 5];
    }
    sum
}

#[inline(never)]
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

#[inline(never)]
fn composed(count: usize) -> Vec<Box<dyn Fn(i64) -> i64>> {
    (0..count as i64)
        .map(|i| match i % 3 {
            0 => Box::new(move |x| x + i) as Box<dyn Fn(i64) -> i64>,
            1 => Box::new(move |x| x * i - 1),
            _ => Box::new(|x: i64| !x),
        })
        .collect()
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let mut shapes: Vec<Box<dyn Shape>> = vec![
        Box::new(Circle { radius: 2.0 }),
        Box::new(Polygon { corners: vec![(0.0, 0.0), (3.0, 0.0), (3.0, 2.0), (0.0, 4.0)] }),
    ];
    for shape in black_box(&mut shapes) {
        shape.grow(1.5);
        println!("{}", shape.describe());
    }

    println!("{:?} {:?}", caught(black_box(&[5, 4, 3, 0])), caught(black_box(&[5, 4, 3])));
    for number in 0..4 {
        let payload = raised(black_box(number));
        println!("{:?} {:?}", payload.downcast_ref::<u32>(), payload.downcast_ref::<String>());
    }

    let mut longest = Vec::new();
    for start in 1..60 {
        let mut path = vec![];
        let steps = collatz(start, &mut |number| {
            path.push(number);
            path.len() > 100
        });
        if steps as usize > longest.len() {
            longest = path;
        }
    }
    println!("{longest:?}");

    let mut grid = [[0; 9]; 9];
    for i in 0..81 {
        grid[i / 9][i % 9] = (i * i % 11) as u8;
    }
    println!("{:?} {:?}", search(black_box(&grid), 9), search(&grid, 77));
    println!("{}", finish(added(black_box(&[1, 2, 3, 4, 5, 6]))));
    println!("{}", composed(12).iter().fold(1, |value, function| function(value)));
    // No destructor of main's is run.
    std::process::exit(i32::from(shapes.len() != 2));
}
