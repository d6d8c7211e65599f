//! The way in which calls that lead to samples are found: by frame pointers, or by copies of the stack.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use memlode_sample::root_of;
use memlode_sample::tiers::{SampledEvent, copy_stacks};
use memlode_symbols::call_stack::CallStack;

use crate::args::numbers;
use crate::driver::toolchain::search_path;
use crate::term;

/// Bytes of the stack that are copied, unless the user says how many.
const STACK_BYTES: u32 = 2 << 10;
/// The most that may be: a processor's ring has room for some of them.
const MOST_STACK_BYTES: u64 = 32 << 10;

/// Samples a second of CPU time above which stacks are copied only if the user says so: a processor's ring would be full
/// before it is looked at, where the machine is busy.
const MOST_COPIES: u64 = 2000;

/// The way in which calls are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// Frame pointers, unless the program keeps none.
    Auto,
    /// Frame pointers.
    FramePointers,
    /// Unwind tables, and a copy of the stack of this many bytes.
    Stacks(u32),
}

/// Reads `auto`, `fp`, `dwarf` or `dwarf,SIZE`.
pub fn parse(text: &str) -> Result<CallGraph, String> {
    match text.split_once(',') {
        None if text == "auto" => Ok(CallGraph::Auto),
        None if text == "fp" => Ok(CallGraph::FramePointers),
        None if text == "dwarf" => Ok(CallGraph::Stacks(STACK_BYTES)),
        Some(("dwarf", size)) => match numbers::bytes(size)? {
            bytes @ 64..=MOST_STACK_BYTES if bytes % 8 == 0 => Ok(CallGraph::Stacks(bytes as u32)),
            _ => Err("expected a stack of 64 bytes to 32K, and a multiple of 8".into()),
        },
        _ => Err("expected auto, fp, dwarf, or dwarf,SIZE".into()),
    }
}

impl CallGraph {
    /// Makes events copy stacks, if calls are to be found so. What was chosen for the user is said.
    pub fn apply(
        self,
        events: &mut [Vec<SampledEvent>],
        rate: u64,
        program: Option<&OsStr>,
        pid: Option<u32>,
    ) {
        let bytes = match self {
            CallGraph::FramePointers => return,
            CallGraph::Auto if rate > MOST_COPIES => return,
            CallGraph::Stacks(bytes) => bytes,
            CallGraph::Auto => {
                let path = program.map_or_else(|| pid.and_then(image), search_path);
                let Some(path) = path.filter(|path| keeps_none(path)) else { return };
                term::line(&format!(
                    "{} keeps no frame pointers: callers by unwind tables and {} KiB of the stack",
                    path.display(),
                    STACK_BYTES >> 10
                ));
                STACK_BYTES
            }
        };
        copy_stacks(events, bytes);
    }
}

/// The program of a process, as it can be read from here.
fn image(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    match root_of(pid) {
        Some(root) => Some(root.join(path.strip_prefix("/").ok()?)),
        None => Some(path),
    }
}

/// Returns whether a program has tables, by which most of its functions keep no frame pointer.
fn keeps_none(path: &Path) -> bool {
    let tables = CallStack::read(path).ok().flatten();
    tables.and_then(|tables| tables.keeps_frame_pointers()) == Some(false)
}
