//! `--memory`: a command tells its peak memory at its end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use memlode_analyses::parts::peak_memory;
use memlode_report::render;

use crate::term;

static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Bytes of the largest process that looked at a part.
static LARGEST_PART: AtomicU64 = AtomicU64::new(0);

/// Makes the command tell its peak memory.
pub fn want() {
    IS_WANTED.store(true, Ordering::Relaxed);
}

/// Returns whether the command is to tell its peak memory.
pub fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Relaxed)
}

/// Notes the peak memory of a process that looked at a part, in bytes.
pub fn note_part(bytes: u64) {
    LARGEST_PART.fetch_max(bytes, Ordering::Relaxed);
}

/// Prints the peak memory, if that is wanted. The command has ended.
pub fn tell() {
    if !is_wanted() {
        return;
    }
    let part = Some(LARGEST_PART.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0);
    term::line(&render::peak_memory(peak_memory(), part));
}
