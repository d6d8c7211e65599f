//! Data that Rust shares with C: unions, packed structures, raw and volatile accesses, vectors, functions that C calls back,
//! memory from an allocator of one's own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// Safety: all is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe extern "C" {
    fn qsort(
        base: *mut c_void,
        count: usize,
        size: usize,
        order: extern "C" fn(*const c_void, *const c_void) -> c_int,
    );
    fn strtol(text: *const c_char, end: *mut *mut c_char, base: c_int) -> i64;
}

#[repr(C)]
union Bits {
    number: f64,
    halves: [u32; 2],
    bytes: [u8; 8],
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Header {
    tag: u8,
    length: u32,
    sum: u64,
    rest: [u16; 3],
}

extern "C" fn by_sum(a: *const c_void, b: *const c_void) -> c_int {
    let (a, b) = unsafe { (*a.cast::<Header>(), *b.cast::<Header>()) };
    { a.sum }.cmp(&{ b.sum }) as c_int
}

#[inline(never)]
fn headers(count: u32) -> Vec<Header> {
    let mut all: Vec<Header> = (0..count)
        .map(|i| Header { tag: i as u8, length: i * 3, sum: u64::from(i) * 7919 % 541, rest: [i as u16; 3] })
        .collect();
    unsafe { qsort(all.as_mut_ptr().cast(), all.len(), size_of::<Header>(), by_sum) };
    all
}

#[inline(never)]
fn pun(bits: &mut Bits) -> u32 {
    unsafe {
        bits.number += 0.1;
        bits.bytes[3] ^= bits.bytes[5];
        bits.halves[0].wrapping_add(bits.halves[1])
    }
}

#[inline(never)]
fn pointers(memory: &mut [u32; 64]) -> u32 {
    let start = memory.as_mut_ptr();
    unsafe {
        for i in 0..32 {
            ptr::write_volatile(start.add(i), ptr::read_volatile(start.add(63 - i)) + i as u32);
        }
        ptr::copy(start.add(5), start.add(9), 40);
        ptr::copy_nonoverlapping(start, start.add(50), 14);
        ptr::write_bytes(start.add(3), 0x11, 2);
        let odd = start.cast::<u8>().add(7).cast::<u64>();
        odd.write_unaligned(odd.read_unaligned().rotate_right(9));
        mem::swap(&mut *start, &mut *start.add(33));
        start.cast::<[u32; 16]>().add(1).read().iter().fold(0, |sum, value| sum ^ value)
    }
}

#[inline(never)]
fn atomics(word: &AtomicU32, byte: &AtomicU8) -> u32 {
    let mut seen = 0;
    for i in 0..40 {
        seen ^= word.fetch_add(i, Ordering::AcqRel);
        seen ^= u32::from(byte.fetch_xor(i as u8, Ordering::SeqCst));
        if word.compare_exchange(seen, 3, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            seen = seen.wrapping_add(word.swap(seen | 1, Ordering::Relaxed));
        }
        word.fetch_max(i * 5, Ordering::Relaxed);
    }
    seen
}

#[inline(never)]
fn wide(values: &[u128], by: u128) -> u128 {
    values.iter().map(|value| value / by ^ value.leading_zeros() as u128).sum()
}

#[inline(never)]
fn large(seed: u8) -> [u8; 3000] {
    let mut block = MaybeUninit::<[u8; 3000]>::uninit();
    for i in 0..3000 {
        unsafe { block.as_mut_ptr().cast::<u8>().add(i).write(seed.wrapping_mul(i as u8)) };
    }
    let whole = unsafe { block.assume_init() };
    let mut moved = Box::new(whole);
    moved[17] = 1;
    *moved
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn vectors(from: &[f32; 64], to: &mut [f32; 64], at: &[i32; 8]) -> f32 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    unsafe fn gathered(from: &[f32; 64], to: &mut [f32; 64], at: &[i32; 8]) {
        unsafe {
            let lanes = _mm256_loadu_si256(at.as_ptr().cast());
            let all = _mm256_i32gather_ps::<4>(from.as_ptr(), lanes);
            let mask = _mm256_cmpgt_epi32(lanes, _mm256_set1_epi32(20));
            let some =
                _mm256_mask_i32gather_ps::<4>(all, from.as_ptr().add(1), lanes, _mm256_castsi256_ps(mask));
            _mm256_maskstore_ps(to.as_mut_ptr().add(3), mask, some);
            let loaded = _mm256_maskload_ps(to.as_ptr(), mask);
            _mm256_storeu_ps(to.as_mut_ptr().add(20), loaded);
        }
    }

    if is_x86_feature_detected!("avx2") {
        unsafe { gathered(from, to, at) };
    }
    unsafe {
        for i in (0..64).step_by(4) {
            let sum = _mm_add_ps(_mm_loadu_ps(&from[i]), _mm_loadu_ps(&to[i]));
            _mm_storeu_ps(&mut to[i], sum);
        }
    }
    to.iter().sum()
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors(from: &[f32; 64], to: &mut [f32; 64], _: &[i32; 8]) -> f32 {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
    to.iter().sum()
}

fn main() {
    let sorted = headers(black_box(200));
    println!("{} {}", { sorted[20].length }, { sorted[150].rest }[1] + u16::from(sorted[7].tag));
    let mut bits = Bits { number: 1.5 };
    println!("{}", (0..50).fold(0u32, |sum, _| sum.rotate_left(3) ^ pun(black_box(&mut bits))));
    let mut memory = std::array::from_fn(|i| i as u32 * 77);
    println!("{}", (0..9).fold(0, |sum, _| sum ^ pointers(black_box(&mut memory))));
    println!("{}", atomics(&AtomicU32::new(9), &AtomicU8::new(200)));
    println!("{}", wide(black_box(&[u128::MAX, 3 << 90, 12345]), black_box(1 << 33 | 7)));
    println!("{}", large(black_box(3)).iter().map(|&byte| u32::from(byte)).sum::<u32>());

    let from = std::array::from_fn(|i| i as f32 / 2.0);
    let mut to = [1.0; 64];
    println!("{}", vectors(black_box(&from), &mut to, black_box(&[3, 40, 11, 25, 60, 0, 33, 21])));

    let text = CString::new("  4242 is a number").unwrap();
    let mut end = ptr::null_mut();
    let number = unsafe { strtol(text.as_ptr(), &mut end, 10) };
    println!("{number}{:?}", unsafe { CStr::from_ptr(end) });
    println!("{}", ALLOCATED.load(Ordering::Relaxed) > 200 * size_of::<Header>());
}
