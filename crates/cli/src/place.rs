//! The allocators that place the blocks of a trace by repeating its allocation calls: `malloc`
//! itself, in a separate process.

use std::io::{BufWriter, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use memlode_trace::event::{ProcessId, ThreadId};
use memlode_whatif::allocator::{Allocator, Call};

use crate::commands::place_blocks::{END, MAKE, RESIZE};

/// Its name.
pub const NAME: &str = "the C library's malloc";

/// Blocks are moved to addresses that no unmoved object of a program has: unmoved user addresses
/// have this bit clear.
const ELSEWHERE: u64 = 1 << 46;

/// An allocator for each process.
pub fn allocators() -> impl FnMut(ProcessId) -> Result<Box<dyn Allocator>, String> + Send {
    |_| Ok(Box::new(Malloc::start()?) as Box<dyn Allocator>)
}

/// A process that makes calls.
struct Malloc {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    /// Indexed by block: the number added to its address to align it.
    aligned: Vec<(u64, u64)>,
    failed: Option<String>,
}

impl Malloc {
    fn start() -> Result<Malloc, String> {
        let memlode = std::env::current_exe().map_err(|error| format!("memlode is not found: {error}"))?;
        let mut command = Command::new(memlode);
        command.arg("place-blocks").stdin(Stdio::piped()).stdout(Stdio::piped());
        // Else the blocks lie elsewhere each time, and some of the misses of an edit differ.
        #[cfg(feature = "measure")]
        memlode_measure::process::fix_addresses(&mut command);
        let mut child = command.spawn().map_err(|error| format!("memlode cannot be started: {error}"))?;
        let input = child.stdin.take().map(|input| BufWriter::with_capacity(1 << 16, input));
        Ok(Malloc { child, input, aligned: Vec::new(), failed: None })
    }

    fn write(&mut self, thread: ThreadId, what: u64, block: u64, other: u64, bytes: u64) {
        let Some(input) = &mut self.input else { return };
        let words = [what | u64::from(thread.0) << 8, block, other, bytes];
        let written = words.iter().try_for_each(|word| input.write_all(&word.to_le_bytes()));
        if let Err(error) = written {
            self.failed = Some(format!("the process that places blocks has ended: {error}"));
            self.input = None;
        }
    }
}

impl Allocator for Malloc {
    fn call(&mut self, thread: ThreadId, call: Call) {
        match call {
            Call::Make { block, bytes, align } if align > 16 => {
                self.aligned.push((block, align));
                self.write(thread, MAKE, block, 0, bytes.saturating_add(align));
            }
            Call::Make { block, bytes, .. } => self.write(thread, MAKE, block, 0, bytes),
            Call::Resize { old, block, bytes } => self.write(thread, RESIZE, block, old, bytes),
            Call::End { block } => self.write(thread, END, 0, block, 0),
        }
    }

    fn places(mut self: Box<Self>) -> Result<Vec<u64>, String> {
        if let Some(mut input) = self.input.take() {
            input.flush().map_err(|error| error.to_string())?;
        }
        let mut bytes = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        }
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        if let Some(why) = self.failed.take() {
            return Err(why);
        }
        if !ended.success() {
            return Err(format!("the process that places blocks ended with {ended}"));
        }
        let place = |bytes: &[u8; 8]| match u64::from_le_bytes(*bytes) {
            0 => 0,
            address => address ^ ELSEWHERE,
        };
        let mut places: Vec<u64> = bytes.as_chunks().0.iter().map(place).collect();
        for &(block, align) in &self.aligned {
            if let Some(place) = places.get_mut(block as usize).filter(|place| **place != 0) {
                *place = place.next_multiple_of(align);
            }
        }
        Ok(places)
    }
}

impl Drop for Malloc {
    fn drop(&mut self) {
        // Nobody waits for it if the calls were given up: its input ends, and so does it.
        self.input = None;
        let _ = self.child.wait();
    }
}
