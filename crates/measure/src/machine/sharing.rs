//! The cost of a line that two cores use alternately: transfer, arrival and use.
//!
//! * *Transfer*: a chase over lines that the other thread has just written.
//! * *Arrival*: one thread adds to a word atomically, the other reads it; half the time from one
//!   new value to the next, for in between the line went there and back.
//! * *Use*: the number of additions between two observed values, times the cost of one addition
//!   alone.
//! * *Counting*: the time of a plain count and a little work while the other thread counts in the
//!   same line, relative to the time in an unshared line.

use std::arch::asm;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use crate::process::Pinned;
use crate::stats::quantile;

use super::kernels::Chase;
use super::memory::{Buffer, PageKind};

/// Nanoseconds of the three, and how many times longer counting takes.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    pub transfer: f64,
    pub arrival: f64,
    pub usage: f64,
    pub counting: f64,
}

/// Lines of a chase. They lie more than a page apart, so that no prefetcher brings the next.
const LINES: usize = 64;
const LINE_STEP: usize = 4096 + 64;
/// Chases of one sample.
const CHASES: u64 = 100;
/// Time for which a word is watched, and how often. A moment in which the other thread does not run has few
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
    let counting = counting(one, other, Word::SameLine)? / counting(one, other, Word::OwnLine)?;
    Some(Sharing { transfer, arrival: round / 2.0, usage: additions * alone, counting })
}

/// Waits until a condition holds; returns whether it did in time.
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
    let _pinned = Pinned::to(cpu);
    addition()
}

/// Nanoseconds of an atomic addition to a word of this thread's own.
pub fn addition() -> f64 {
    repeated(|word, _| {
        word.fetch_add(1, Ordering::Relaxed);
    })
}

/// Nanoseconds of a store to a word of this thread's own and a full fence.
pub fn fenced_store() -> f64 {
    repeated(|word, turn| {
        word.store(turn, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    })
}

/// Nanoseconds of a step that is repeated on a word of this thread alone.
fn repeated(step: impl Fn(&AtomicU64, u64)) -> f64 {
    const TURNS: u64 = 20_000;
    let word = Apart(AtomicU64::new(0));
    let times = [(); 11].map(|()| {
        let began = Instant::now();
        for turn in 0..TURNS {
            step(&word.0, turn);
        }
        began.elapsed().as_nanos() as f64 / TURNS as f64
    });
    quantile(&times, 0.2)
}

/// The word where the other thread counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    SameLine,
    OwnLine,
}

/// Two words of one line, and one of another.
#[repr(C, align(256))]
#[derive(Default)]
struct Words {
    first: AtomicU64,
    beside: AtomicU64,
    _apart: [AtomicU64; 30],
    elsewhere: AtomicU64,
}

/// Counts a number of times, plainly, with some ten cycles of other work between: three dependent
/// multiplications.
fn count(word: &AtomicU64, times: u64) {
    let mut product = 3_u64;
    for _ in 0..times {
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // SAFETY: arithmetic on one register.
        unsafe {
            asm!(".rept 3", "imul {p}, {p}", ".endr", p = inout(reg) product, options(nomem, nostack));
        }
    }
}

/// Nanoseconds of a count while the other processor counts, too.
fn counting(one: usize, other: usize, place: Word) -> Option<f64> {
    const TURNS: u64 = 5_000;
    let words = Words::default();
    let (is_there, stop) = (Apart(AtomicBool::new(false)), Apart(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = Pinned::to(other);
            let began = Instant::now();
            while !stop.0.load(Ordering::Relaxed) && began.elapsed() < 2 * PATIENCE {
                count(if place == Word::SameLine { &words.beside } else { &words.elsewhere }, 100);
                is_there.0.store(true, Ordering::Relaxed);
            }
        });
        let _pinned = Pinned::to(one);
        let meets = wait(|| is_there.0.load(Ordering::Relaxed));
        let times = [(); 21].map(|()| {
            let began = Instant::now();
            count(&words.first, TURNS);
            began.elapsed().as_nanos() as f64 / TURNS as f64
        });
        stop.0.store(true, Ordering::Relaxed);
        meets.then(|| quantile(&times, 0.5))
    })
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
