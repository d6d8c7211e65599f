//! A function of a shared library that is called with buffers of our own, as a file describes it.
//!
//! ```toml
//! library = "libblas.so.3"
//! function = "cblas_dgemv"
//! move = "y"                      # the buffer that is moved by d
//! arguments = [{ int = 101 }, { int = 111 }, { int = 512 }, { int = 512 }, { f64 = 1.0 }, { buffer = "a" }, …]
//!
//! [[buffer]]
//! name = "a"
//! bytes = 2097152
//! fill = "f64"
//! ```
//!
//! This part runs in a separate process: a function may do anything with its arguments.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::io::{BufRead, Write};
use std::path::Path;
use std::ptr;

use rand::RngExt;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use serde::Deserialize;

use super::ticks::ticks;
use crate::Error;
use crate::stats::{quantile, random};

/// Arguments in general registers and on the stack, at most.
const INTEGERS: usize = 16;
/// Arguments in floating-point registers, at most.
const FLOATS: usize = 8;
const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// The most bytes by which a buffer can be moved.
pub const REACH: usize = 2 * PAGE;
/// The number k of calls: the cost of one call is (the time of k calls − that of one) / (k − 1).
const CALLS: usize = 11;
const MOST_CALLS: usize = 100_000;
/// Ticks of one sample of many calls, at least.
const TICKS: f64 = 50_000.0;
/// Samples of one timing.
const SAMPLES: usize = 5;
/// The quantile that is used: bursts of other programs only make times longer.
const QUANTILE: f64 = 0.25;
/// Steps of the chain of multiplications that is timed before and after each sample.
const CHAIN: u32 = 3000;

/// The function to call.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The library, as the dynamic loader finds it.
    pub library: String,
    /// The function in it.
    pub function: String,
    /// The buffer that is moved.
    #[serde(rename = "move")]
    pub moved: String,
    /// In their order.
    pub arguments: Vec<CallArgument>,
    /// Memory that arguments can point to.
    #[serde(rename = "buffer")]
    pub buffers: Vec<Buffer>,
}

/// An argument of the function.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum CallArgument {
    /// An integer of any size, or an enumerator.
    Int(i64),
    /// A `double`.
    F64(f64),
    /// A `float`.
    F32(f32),
    /// A pointer to a buffer.
    Buffer(String),
    /// A pointer to an array of pointers to all buffers of that name.
    Pointers(String),
}

/// Memory that is given to the function.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: usize,
    /// Its contents at the beginning.
    #[serde(default)]
    pub fill: Fill,
    /// The place where it lies.
    #[serde(default)]
    pub memory: CallMemory,
    /// Bytes from the beginning of a page to it.
    #[serde(default)]
    pub at: usize,
    /// The number of such buffers.
    #[serde(default = "one")]
    pub count: usize,
}

fn one() -> usize {
    1
}

/// The contents that a buffer begins with.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Zeros.
    #[default]
    Zero,
    /// Random bytes.
    U8,
    /// Random `float`s between 1 and 2.
    F32,
    /// Random `double`s between 1 and 2.
    F64,
}

/// The place where a buffer lies.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum CallMemory {
    /// Pages of 4 KiB of its own.
    #[default]
    Pages,
    /// The same, but with huge pages of 2 MiB from the kernel.
    Huge,
    /// The place that `malloc` gives.
    Malloc,
}

impl Spec {
    /// Reads a description.
    ///
    /// # Errors
    /// If it is no such description, or contradicts itself.
    pub fn read(file: &Path) -> Result<Spec, Error> {
        let text = memlode_files::read_text(file, memlode_files::SMALL)
            .map_err(|source| Error::File { path: file.to_owned(), source })?;
        let named = |why: String| Error::Usage(format!("{}: {why}", file.display()));
        let spec: Spec = toml::from_str(&text).map_err(|why| named(why.to_string()))?;
        spec.check().map_err(named)?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), String> {
        let known = |name: &String| self.buffers.iter().any(|buffer| buffer.name == *name);
        let floats =
            |argument: &&CallArgument| matches!(argument, CallArgument::F64(_) | CallArgument::F32(_));
        for argument in &self.arguments {
            if let CallArgument::Buffer(name) | CallArgument::Pointers(name) = argument
                && !known(name)
            {
                return Err(format!("there is no buffer `{name}`"));
            }
        }
        if !known(&self.moved) {
            return Err(format!("`move` is `{}`, and there is no such buffer", self.moved));
        }
        let of_floats = self.arguments.iter().filter(floats).count();
        if of_floats > FLOATS || self.arguments.len() - of_floats > INTEGERS {
            return Err(format!(
                "at most {INTEGERS} integers and pointers and {FLOATS} floating-point arguments"
            ));
        }
        let most = 1usize << 40;
        let bad = |buffer: &&Buffer| {
            buffer.bytes == 0
                || buffer.bytes > most
                || buffer.at >= PAGE
                || buffer.count > 4096
                || buffer.count == 0
        };
        match self.buffers.iter().find(bad) {
            Some(buffer) => Err(format!(
                "buffer `{}`: bytes and count are at least 1, count at most 4096, and `at` is below {PAGE}",
                buffer.name
            )),
            None => Ok(()),
        }
    }

    /// Checks that the moved buffer can be moved.
    ///
    /// # Errors
    /// If `malloc` decides where it lies.
    pub fn check_moves(&self) -> Result<(), Error> {
        let fixed = self
            .buffers
            .iter()
            .any(|buffer| buffer.name == self.moved && buffer.memory == CallMemory::Malloc);
        match fixed {
            true => Err(Error::Usage(format!(
                "buffer `{}` lies where malloc puts it, and is not moved: give it another `memory`",
                self.moved
            ))),
            false => Ok(()),
        }
    }
}

/// The place of a buffer in the calling process, for a tracer that reads its memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The first byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Its number in the description.
    pub buffer: u64,
}

/// A function with its arguments, ready to be called.
pub struct Ready<'a> {
    spec: &'a Spec,
    function: *mut c_void,
    /// Places of its buffers, by number in the description, when it is not moved.
    places: Vec<Vec<*mut u8>>,
    arrays: BTreeMap<String, Vec<*mut u8>>,
    calls: usize,
}

impl<'a> Ready<'a> {
    /// Loads the library and makes the buffers.
    ///
    /// # Errors
    /// If there is no such library or function, or no memory.
    pub fn new(spec: &'a Spec) -> Result<Ready<'a>, Error> {
        let function = find(&spec.library, &spec.function)?;
        let mut random = random(1);
        let mut places = Vec::new();
        for buffer in &spec.buffers {
            let place = |_| allocate(buffer, &mut random);
            places.push((0..buffer.count).map(place).collect::<Result<Vec<_>, Error>>()?);
        }
        Ok(Ready { spec, function, places, arrays: BTreeMap::new(), calls: 0 })
    }

    /// The cost of one call with the buffer moved, in steps of a chain of multiplications.
    ///
    /// # Safety
    /// The description is true: the function takes such arguments.
    pub unsafe fn cost(&mut self, moved: usize) -> f64 {
        let (integers, floats) = self.arguments(moved);
        // SAFETY: as promised.
        let once = || unsafe { call(self.function, &integers, &floats) };
        let sample = |calls: usize| {
            let (before, start) = (chain(), ticks());
            (0..calls).for_each(|_| once());
            let took = ticks() - start;
            (f64::from(2 * CHAIN) * took as f64 / (before + chain()).max(1) as f64, took as f64)
        };
        let mut calls = self.calls;
        if calls == 0 {
            sample(1);
            let one = sample(1).1.max(1.0);
            calls = (TICKS / one).ceil().clamp(CALLS as f64, MOST_CALLS as f64) as usize;
        }
        let low = |calls: usize| {
            let all: Vec<f64> = (0..SAMPLES).map(|_| sample(calls).0).collect();
            quantile(&all, QUANTILE)
        };
        let (one, many) = (low(1), low(calls));
        self.calls = calls;
        // A burst in each sample of one call would leave less than nothing.
        ((many - one) / (calls - 1) as f64).max(many / calls as f64 / 2.0)
    }

    /// Stops for the tracer, reports the function and its arguments, and calls it once.
    ///
    /// # Safety
    /// As of [`Ready::cost`].
    #[cfg(target_arch = "x86_64")]
    pub unsafe fn show(&mut self, moved: usize) {
        let (integers, floats) = self.arguments(moved);
        let mut placed = Vec::new();
        for (number, places) in self.places.iter().enumerate() {
            let buffer = &self.spec.buffers[number];
            let by = if buffer.name == self.spec.moved { moved } else { 0 };
            let one = |place: &*mut u8| Placed {
                start: *place as u64 + by as u64,
                bytes: buffer.bytes as u64,
                buffer: number as u64,
            };
            placed.extend(places.iter().map(one));
        }
        // SAFETY: a breakpoint, which whoever started this process waits for.
        unsafe {
            std::arch::asm!("int3", in("rax") self.function, in("rdi") placed.as_ptr(), in("rsi") placed.len());
            call(self.function, &integers, &floats);
        }
    }

    fn arguments(&mut self, moved: usize) -> ([i64; INTEGERS], [f64; FLOATS]) {
        let (mut integers, mut floats) = ([0; INTEGERS], [0.0; FLOATS]);
        let (mut next, mut next_float) = (0, 0);
        for number in 0..self.spec.buffers.len() {
            let name = &self.spec.buffers[number].name;
            let by = if *name == self.spec.moved { moved } else { 0 };
            let pointers = self.places[number].iter().map(|place| place.wrapping_add(by)).collect();
            self.arrays.insert(name.clone(), pointers);
        }
        for argument in &self.spec.arguments {
            let (integer, float) = match argument {
                CallArgument::Int(value) => (Some(*value), None),
                CallArgument::F64(value) => (None, Some(*value)),
                // A float is the lower half of its register.
                CallArgument::F32(value) => (None, Some(f64::from_bits(value.to_bits().into()))),
                CallArgument::Buffer(name) => (Some(self.arrays[name][0] as i64), None),
                CallArgument::Pointers(name) => (Some(self.arrays[name].as_ptr() as i64), None),
            };
            if let Some(integer) = integer {
                integers[next] = integer;
                next += 1;
            }
            if let Some(float) = float {
                floats[next_float] = float;
                next_float += 1;
            }
        }
        (integers, floats)
    }
}

/// Reads lines with the distance by which the buffer is moved, and writes the cost of one call for
/// each.
///
/// # Errors
/// If a line is no such number, or the reader is gone.
///
/// # Safety
/// As of [`Ready::cost`].
pub unsafe fn serve(spec: &Spec) -> Result<(), Error> {
    let mut ready = Ready::new(spec)?;
    let io = |source| Error::System { doing: "cannot answer", source };
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(io)?;
        let moved = line.parse().ok().filter(|moved| *moved <= REACH);
        let moved = moved.ok_or_else(|| Error::Usage(format!("`{line}` is no distance")))?;
        // SAFETY: as promised.
        let cost = unsafe { ready.cost(moved) };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{cost}").and_then(|()| out.flush()).map_err(io)?;
    }
    Ok(())
}

fn find(library: &str, function: &str) -> Result<*mut c_void, Error> {
    let text = |text: &str| CString::new(text).map_err(|_| Error::Usage(format!("`{text}` holds a zero")));
    let (name, symbol) = (text(library)?, text(function)?);
    // SAFETY: the library's own beginning runs; it is the user's choice.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() {
        // SAFETY: dlerror gives a text after a failure.
        let why = unsafe { std::ffi::CStr::from_ptr(libc::dlerror()) };
        return Err(Error::Usage(format!("the library cannot be loaded: {}", why.to_string_lossy())));
    }
    // SAFETY: the handle is one.
    let found = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    match found.is_null() {
        true => Err(Error::Usage(format!("{library} has no function `{function}`"))),
        false => Ok(found),
    }
}

/// One buffer, filled; never given back.
fn allocate(buffer: &Buffer, random: &mut crate::stats::Random) -> Result<*mut u8, Error> {
    let align = if buffer.memory == CallMemory::Huge { HUGE } else { PAGE };
    let start = if buffer.memory == CallMemory::Malloc {
        // SAFETY: a plain allocation.
        let start = unsafe { libc::malloc(buffer.bytes) }.cast::<u8>();
        if start.is_null() {
            return Err(Error::Usage(format!("there is no memory for buffer `{}`", buffer.name)));
        }
        start
    } else {
        let bytes = (buffer.bytes + REACH + PAGE).next_multiple_of(align);
        let system = |error: rustix::io::Errno| Error::System {
            doing: "cannot allocate a buffer",
            source: error.into(),
        };
        // SAFETY: a new mapping, at an address of the system's choice.
        let map = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes + align,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(system)?;
        let map = map.cast::<u8>();
        let start = map.wrapping_add(map.align_offset(align));
        let advice = if align == HUGE { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: within the mapping; kernels without huge pages refuse it, which is no harm.
        let _ = unsafe { madvise(start.cast(), bytes, advice) };
        // SAFETY: within the mapping. Every page is written, so each is a page of its own.
        unsafe { start.write_bytes(0, bytes) };
        start.wrapping_add(buffer.at)
    };
    let room = if buffer.memory == CallMemory::Malloc { 0 } else { REACH };
    // SAFETY: as long as was allocated.
    let bytes = unsafe { std::slice::from_raw_parts_mut(start, buffer.bytes + room) };
    match buffer.fill {
        Fill::Zero => bytes.fill(0),
        Fill::U8 => bytes.fill_with(|| random.random()),
        Fill::F32 => {
            let value = |random: &mut crate::stats::Random| (1.0 + random.random::<f32>()).to_ne_bytes();
            bytes.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&value(random)));
        }
        Fill::F64 => {
            let value = |random: &mut crate::stats::Random| (1.0 + random.random::<f64>()).to_ne_bytes();
            bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&value(random)));
        }
    }
    Ok(start)
}

/// Calls a function whose arguments are integers and floating-point numbers. Either kind goes to
/// its own registers, in order, and the rest to the stack, so that more arguments than the function
/// has do no harm.
///
/// # Safety
/// The function takes such arguments.
unsafe fn call(function: *mut c_void, integers: &[i64; INTEGERS], floats: &[f64; FLOATS]) {
    #[rustfmt::skip]
    type Function = unsafe extern "C" fn(
        i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64,
        f64, f64, f64, f64, f64, f64, f64, f64,
    ) -> i64;
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *integers;
    let [q, r, s, t, u, v, w, x] = *floats;
    // SAFETY: as promised.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, Function>(function);
        function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
    }
}

/// Ticks of a chain of multiplications, each waiting for the one before.
fn chain() -> u64 {
    let before = ticks();
    let mut product = 3u64;
    for _ in 0..CHAIN {
        product = std::hint::black_box(product.wrapping_mul(product));
    }
    std::hint::black_box(product);
    ticks() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<Spec, String> {
        let spec: Spec = toml::from_str(text).map_err(|why| why.to_string())?;
        spec.check().map(|()| spec)
    }

    const MEMCPY: &str = r#"
library = "libc.so.6"
function = "memcpy"
move = "to"
arguments = [{ buffer = "to" }, { buffer = "from" }, { int = 4096 }]
[[buffer]]
name = "from"
bytes = 4096
fill = "u8"
[[buffer]]
name = "to"
bytes = 4096
"#;

    #[test]
    fn descriptions_are_checked() {
        assert!(spec(MEMCPY).is_ok());
        for (from, to, why) in [
            ("buffer = \"from\"", "buffer = \"fro\"", "no buffer `fro`"),
            ("move = \"to\"", "move = \"too\"", "no such buffer"),
            ("bytes = 4096\nfill", "bytes = 0\nfill", "at least 1"),
            ("int = 4096", "integer = 4096", "unknown variant"),
            ("function =", "functoin =", "unknown field"),
        ] {
            let error = spec(&MEMCPY.replace(from, to)).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }

    /// More arguments than there are registers, of both kinds, as a C compiler reads them.
    #[test]
    fn arguments_arrive() {
        static mut GOT: ([i64; 10], [f64; 3]) = ([0; 10], [0.0; 3]);
        #[allow(clippy::too_many_arguments)]
        extern "C" fn take(
            a: i32,
            b: i64,
            x: f64,
            c: i64,
            d: i32,
            e: i64,
            y: f32,
            f: i64,
            g: i32,
            h: i64,
            z: f64,
            i: i32,
            j: i64,
        ) {
            // SAFETY: one thread.
            unsafe {
                GOT = ([a.into(), b, c, d.into(), e, f, g.into(), h, i.into(), j], [x, y.into(), z]);
            }
        }
        let mut integers = [0; INTEGERS];
        (0..10).for_each(|at| integers[at] = at as i64 - 4);
        let mut floats = [0.0; FLOATS];
        (floats[0], floats[1], floats[2]) = (1.5, f64::from_bits(2.5f32.to_bits().into()), -3.5);
        // SAFETY: `take` takes such arguments.
        unsafe { call(take as *mut c_void, &integers, &floats) };
        // SAFETY: one thread.
        let got = unsafe { GOT };
        assert_eq!(got, ([-4, -3, -2, -1, 0, 1, 2, 3, 4, 5], [1.5, 2.5, -3.5]));
    }
}
