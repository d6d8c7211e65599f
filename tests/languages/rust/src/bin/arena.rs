//! A global allocator that hands out pieces of a block of its own, all of it inlined.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const BYTES: usize = 1 << 20;

struct Arena {
    block: UnsafeCell<[u8; BYTES]>,
    next: AtomicUsize,
}

unsafe impl Sync for Arena {}

unsafe impl GlobalAlloc for Arena {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let begin = self.next.load(Relaxed).next_multiple_of(layout.align().max(16));
        if begin + layout.size() > BYTES {
            return std::ptr::null_mut();
        }
        self.next.store(begin + layout.size(), Relaxed);
        unsafe { self.block.get().cast::<u8>().add(begin) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

const EMPTY: Arena = Arena { block: UnsafeCell::new([0; BYTES]), next: AtomicUsize::new(0) };

#[global_allocator]
static ARENA: Arena = EMPTY; //= load self : arena::Arena.next; store self : arena::Arena.next

struct Hit {
    name: [u64; 3],
    score: u64,
}

fn main() {
    let mut hits: Vec<Hit> = Vec::with_capacity(20); //= alloc hits : arena::Hit
    hits.extend((0..black_box(20)).map(|at| Hit { name: [at; 3], score: at }));
    let first = Box::new(Hit { name: [1; 3], score: black_box(7) }); //= alloc first : arena::Hit
    let sum: u64 = hits.iter().map(|hit| hit.score).sum(); //= load self.ptr.pointer : arena::Hit.score
    println!("{}", sum + black_box(first).name[1]);
}
