//! Recordings of `perf`: what is read of one is bounded by its bytes.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use memlode_sample::perf_data::import;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    parent.join(format!("memlode-fuzz-perf-{}", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    fs::write(FILE.as_path(), bytes).expect("room");
    let found = import(&FILE, None, None);
    let _ = fs::remove_file(FILE.as_path());
    if let Ok(found) = found {
        // A sample has eight bytes at least, unless it was compressed.
        let samples = found.sampled.samples() + found.sampled.kernel;
        assert!(samples <= 1000 * bytes.len() as u64 + (64 << 20));
    }
});
