//! Calls that led to samples, from copies of their stacks.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use memlode_symbols::call_stack::{CallStack, FrameCaller, FrameRegisters, StackBytes};

use crate::kept::FilePlace;
use crate::records::StackCopy;
use crate::resolve::below;

/// Files of which the tables are kept, at most.
const MOST_FILES: usize = 1 << 12;

/// Follows calls through the files that processes have mapped, by the tables of these.
#[derive(Default)]
pub struct Unwinding {
    root: Option<PathBuf>,
    build_ids: HashMap<OsString, Vec<u8>>,
    files: HashMap<u32, Option<CallStack>>,
}

/// The calls that led to a sample.
#[derive(Debug, Default)]
pub(crate) struct FoundCallers {
    /// Places of the last bytes of calls, and of instructions that signals came in front of, the innermost first.
    pub places: Vec<FilePlace>,
    /// Further ones lie deeper than the stack was copied.
    pub is_cut: bool,
}

impl Unwinding {
    /// Files are read below `root`, if they are another machine's; those that have another build id than `build_ids` says
    /// are not used.
    pub fn new(root: Option<PathBuf>, build_ids: HashMap<OsString, Vec<u8>>) -> Unwinding {
        Unwinding { root, build_ids, files: HashMap::new() }
    }

    /// The callers of a sample, at most `most`. `place` says which file has an address, and `path` that file's name.
    pub(crate) fn callers<'a>(
        &mut self,
        stack: &StackCopy,
        most: usize,
        place: impl Fn(u64) -> Option<FilePlace>,
        path: impl Fn(u32) -> &'a OsStr,
    ) -> FoundCallers {
        let mut found = FoundCallers::default();
        let bytes = StackBytes { from: stack.registers.stack, bytes: &stack.bytes };
        let mut registers = stack.registers;
        let Some(mut at) = place(registers.place()) else { return found };
        while found.places.len() < most {
            let caller = self.caller(registers, at, bytes, path(at.file));
            found.is_cut = caller == FrameCaller::BelowCopy;
            let FrameCaller::At(next) = caller else { break };
            let Some(call) = place(next.place()) else { break };
            found.places.push(call);
            (registers, at) = (next, call);
        }
        found
    }

    fn caller(
        &mut self,
        registers: FrameRegisters,
        at: FilePlace,
        stack: StackBytes<'_>,
        path: &OsStr,
    ) -> FrameCaller {
        if self.files.len() >= MOST_FILES && !self.files.contains_key(&at.file) {
            return FrameCaller::Unknown;
        }
        let (root, build_ids) = (&self.root, &self.build_ids);
        let file = self.files.entry(at.file).or_insert_with(|| {
            let found = CallStack::read(&below(root.as_deref(), path)).ok().flatten()?;
            let is_other =
                |expected: &Vec<u8>| found.build_id().is_some_and(|own| own != expected.as_slice());
            (!build_ids.get(path).is_some_and(is_other)).then_some(found)
        });
        let Some(file) = file else { return FrameCaller::Unknown };
        file.caller(registers, at.offset, stack)
    }
}
