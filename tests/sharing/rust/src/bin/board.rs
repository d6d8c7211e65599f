//! Counters of two threads, members of one record behind an `Arc`.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[repr(C, align(256))]
#[derive(Default)]
struct Board {
    home: AtomicUsize,
    #[cfg(feature = "padded")]
    pad: [usize; 31],
    guest: AtomicUsize,
}

fn main() {
    let turns: usize = std::env::args().nth(1).map_or(1000, |turns| turns.parse().expect("a number"));
    let board = Arc::new(Board::default());
    let other = Arc::clone(&board);
    let home = thread::spawn(move || {
        for _ in 0..turns {
            other.home.fetch_add(1, Ordering::Relaxed); // <-- home
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..turns {
                board.guest.fetch_add(1, Ordering::Relaxed); // <-- guest
            }
        });
    });
    home.join().expect("it ended");
    println!("{}", board.home.load(Ordering::Relaxed) + board.guest.load(Ordering::Relaxed));
}
