//! Two threads count in members of one object, which a function that knows the members' type alone gets by reference.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg_attr(feature = "padded", repr(align(128)))]
#[derive(Default)]
struct Total(AtomicU64);

#[derive(Default)]
struct Totals {
    words: Total,
    lines: Total,
}

#[inline(never)]
fn add(total: &AtomicU64) {
    total.fetch_add(1, Relaxed); // <-- add
}

fn main() {
    let turns: u64 = std::env::args().nth(1).map_or(1000, |turns| turns.parse().unwrap());
    let totals = Arc::new(Totals::default());
    let threads = [true, false].map(|of_words| {
        let totals = totals.clone();
        std::thread::spawn(move || {
            for _ in 0..turns {
                add(if of_words { &totals.words.0 } else { &totals.lines.0 });
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{}", totals.words.0.load(Relaxed) + totals.lines.0.load(Relaxed));
}
