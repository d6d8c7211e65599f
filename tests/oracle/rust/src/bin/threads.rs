//! Threads: scoped, detached and ended by a panic; locks, channels, atomics, and values of a thread that are destroyed
//! with it.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, OnceLock, RwLock, mpsc};
use std::thread;

static TOTAL: AtomicU64 = AtomicU64::new(0);
static NAMES: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);
static FIRST: OnceLock<u64> = OnceLock::new();

struct Tally(Vec<u64>);

impl Drop for Tally {
    fn drop(&mut self) {
        TOTAL.fetch_add(self.0.iter().sum(), Ordering::Relaxed);
    }
}

thread_local! {
    static TALLY: RefCell<Tally> = const { RefCell::new(Tally(Vec::new())) };
}

#[inline(never)]
fn work(id: u64, rounds: u64) {
    for round in 0..rounds {
        TALLY.with_borrow_mut(|tally| tally.0.push(id * round));
        if round % 50 == 0 {
            NAMES.lock().unwrap().push(format!("{id}/{round}"));
        }
    }
}

#[inline(never)]
fn scoped(values: &mut [u64]) -> u64 {
    let next = AtomicUsize::new(0);
    let largest = RwLock::new(0);
    thread::scope(|scope| {
        for chunk in values.chunks_mut(100) {
            scope.spawn(|| {
                let mine = next.fetch_add(1, Ordering::SeqCst) as u64;
                chunk.iter_mut().for_each(|value| *value = value.pow(2) % 1013 + u64::from(mine > 1000));
                let top = *chunk.iter().max().unwrap();
                if *largest.read().unwrap() < top {
                    let mut largest = largest.write().unwrap();
                    *largest = top.max(*largest);
                }
            });
        }
    });
    largest.into_inner().unwrap()
}

#[inline(never)]
fn pipeline(count: u32) -> Vec<[u32; 4]> {
    let (to_middle, from_start) = mpsc::sync_channel::<[u32; 4]>(4);
    let (to_end, from_middle) = mpsc::channel();
    let middle = thread::spawn(move || {
        for mut item in from_start {
            item.reverse();
            item[1] += 1;
            to_end.send(item).unwrap();
        }
    });
    for i in 0..count {
        to_middle.send([i, i + 1, i * i, !i]).unwrap();
    }
    drop(to_middle);
    middle.join().unwrap();
    from_middle.into_iter().collect()
}

#[inline(never)]
fn turns(count: u32) -> Vec<u32> {
    let state = Arc::new((Mutex::new((0, Vec::new())), Condvar::new()));
    let barrier = Arc::new(Barrier::new(3));
    let threads: Vec<_> = (0..3)
        .map(|id| {
            let (state, barrier) = (state.clone(), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                for _ in 0..count {
                    let mut guard =
                        state.1.wait_while(state.0.lock().unwrap(), |turn| turn.0 % 3 != id).unwrap();
                    guard.0 += 1;
                    let turn = guard.0;
                    guard.1.push(turn * 3 + id);
                    state.1.notify_all();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let guard = state.0.lock().unwrap();
    guard.1.clone()
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (1..=4).map(|id| thread::spawn(move || work(id, 400))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{} {}", TOTAL.load(Ordering::Acquire), NAMES.lock().unwrap().len());

    let mut values: Vec<u64> = (0..1000).collect();
    println!("{}", scoped(black_box(&mut values)));
    println!(
        "{:?}",
        pipeline(200).iter().fold([0u32; 4], |sum, item| std::array::from_fn(|i| sum[i] ^ item[i]))
    );
    println!("{:?}", turns(30).iter().sum::<u32>());

    let shared = Arc::new(Mutex::new(vec![1, 2, 3]));
    let poisoned = shared.clone();
    let died = thread::Builder::new().name("dies".into()).spawn(move || {
        let guard = poisoned.lock().unwrap();
        assert!(guard.len() > 3, "too few: {}", guard[0]);
    });
    println!("{} {}", died.unwrap().join().is_err(), shared.is_poisoned());
    println!("{}", FIRST.get_or_init(|| values[17]));
}
