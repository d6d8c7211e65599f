//! What a line costs that two cores use in turn: transfer, arrival and use.
//!
//! * *Transfer*: a chase over lines that the other thread has just written.
//! * *Arrival*: one thread adds to a word atomically, the other reads it; half the time from one new value to the next,
//!   for in between the line went there and back.
//! * *Use*: how many additions lie between two values seen, times what one addition costs alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use crate::process::Pinned;
use crate::stats::quantile;

use super::kernels::Chase;
use super::memory::{Buffer, PageKind};

/// Nanoseconds of the three.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    pub transfer: f64,
    pub arrival: f64,
    pub usage: f64,
}

/// Lines of a chase. They lie more than a page apart, so that no prefetcher brings the next.
const LINES: usize = 64;
const LINE_STEP: usize = 4096 + 64;
/// Chases of one sample.
const CHASES: u64 = 100;
/// How long a word is watched at a time, and how often. A moment in which the other thread does not run has few
/// changes, and does not count.
const MOMENT: Duration = Duration::from_micros(200);
const MOMENTS: usize = 60;
const FEWEST_CHANGES: u64 = 100;
/// A thread that waits longer for the other has no processor to itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// On lines of their own.
#[repr(align(256))]
#[derive(Default)]
struct Apart<T>(T);

/// Measures between two processors; none if the threads do not run at the same time.
pub fn measure(one: usize, other: usize) -> Option<Sharing> {
    let transfer = transfer(one, other)?;
    let alone = alone(one);
    let (round, additions) = watch(one, other)?;
    Some(Sharing { transfer, arrival: round / 2.0, usage: additions * alone })
}

/// Waits until a condition holds; says whether it did in time.
fn wait(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    loop {
        for _ in 0..1000 {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if began.elapsed() > PATIENCE {
            return false;
        }
    }
}

/// Nanoseconds of a load of a line that the other processor has just written.
fn transfer(one: usize, other: usize) -> Option<f64> {
    let mut buffer = Buffer::new(LINES * LINE_STEP, PageKind::Small).ok()?;
    let first = buffer.chain(LINES, |at| at * LINE_STEP);
    let turn = Apart(AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = Pinned::to(other);
            for round in 0..CHASES {
                if !wait(|| turn.0.load(Ordering::Acquire) == 2 * round + 1) {
                    break;
                }
                for line in 0..LINES {
                    // SAFETY: the word beside the pointer of a line; only this thread uses it.
                    let word = unsafe { &*buffer.start().add(line * LINE_STEP + 8).cast::<AtomicU64>() };
                    word.store(round, Ordering::Relaxed);
                }
                fence(Ordering::SeqCst);
                turn.0.store(2 * round + 2, Ordering::Release);
            }
        });
        let _pinned = Pinned::to(one);
        let mut times = Vec::new();
        // SAFETY: the other thread writes beside the pointers, never to them.
        let mut chase = unsafe { Chase::new(&buffer, first) };
        for round in 0..CHASES {
            turn.0.store(2 * round + 1, Ordering::Release);
            if !wait(|| turn.0.load(Ordering::Acquire) == 2 * round + 2) {
                return None;
            }
            fence(Ordering::SeqCst);
            let began = Instant::now();
            chase.walk(LINES as u64);
            times.push(began.elapsed().as_nanos() as f64 / LINES as f64);
        }
        Some(quantile(&times, 0.2))
    })
}

/// Nanoseconds of an atomic addition to a word of one's own.
fn alone(cpu: usize) -> f64 {
    const ADDITIONS: u64 = 20_000;
    let _pinned = Pinned::to(cpu);
    let word = Apart(AtomicU64::new(0));
    let times = [(); 11].map(|()| {
        let began = Instant::now();
        for _ in 0..ADDITIONS {
            word.0.fetch_add(1, Ordering::Relaxed);
        }
        began.elapsed().as_nanos() as f64 / ADDITIONS as f64
    });
    quantile(&times, 0.2)
}

/// Nanoseconds between two values seen of a word that the other processor counts up, and additions between them.
fn watch(one: usize, other: usize) -> Option<(f64, f64)> {
    let word = Apart(AtomicU64::new(0));
    let stop = Apart(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = Pinned::to(other);
            let began = Instant::now();
            while !stop.0.load(Ordering::Relaxed) && began.elapsed() < 2 * PATIENCE {
                for _ in 0..100 {
                    word.0.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let _pinned = Pinned::to(one);
        let value = || word.0.load(Ordering::Relaxed);
        let mut rounds = Vec::new();
        let mut additions = Vec::new();
        if wait(|| value() > 1000) {
            for _ in 0..MOMENTS {
                let (began, first) = (Instant::now(), value());
                let (mut last, mut changes) = (first, 0_u64);
                while began.elapsed() < MOMENT {
                    for _ in 0..500 {
                        let now = value();
                        changes += u64::from(now != last);
                        last = now;
                    }
                }
                let time = began.elapsed().as_nanos() as f64;
                if changes >= FEWEST_CHANGES {
                    rounds.push(time / changes as f64);
                    additions.push((last - first) as f64 / changes as f64);
                }
            }
        }
        stop.0.store(true, Ordering::Relaxed);
        (rounds.len() >= MOMENTS / 4).then(|| (quantile(&rounds, 0.2), quantile(&additions, 0.5)))
    })
}
