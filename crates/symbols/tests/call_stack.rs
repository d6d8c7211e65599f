//! Unwind tables of programs that somebody wrote to be trouble: there is always an answer, and no guess.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;
use std::process::Command;

use memlode_symbols::ProgramFile;
use memlode_symbols::call_stack::{CallStack, FrameCaller, FrameRegisters, StackBytes};
use proptest::prelude::*;

/// Functions whose frames are told by expressions: one jumps back for ever, one reads the frame's end from memory (as
/// handlers of signals do), one has a frame of no size.
const TROUBLE: &str = "
    .text
    .globl endless, stored, nothing, main
    .type endless, @function
    .type stored, @function
    .type nothing, @function
    .type main, @function
    endless: .cfi_startproc
        .cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff
        nop
        ret
        .cfi_endproc
        .size endless, .-endless
    stored: .cfi_startproc
        .cfi_escape 0x0f, 3, 0x77, 0x10, 0x06
        nop
        ret
        .cfi_endproc
        .size stored, .-stored
    nothing: .cfi_startproc
        .cfi_def_cfa_offset 0
        nop
        ret
        .cfi_endproc
        .size nothing, .-nothing
    main: .cfi_startproc
        xor %eax, %eax
        ret
        .cfi_endproc
    .section .note.GNU-stack,\"\",@progbits
";

fn built(folder: &Path) -> (Vec<u8>, ProgramFile) {
    let (source, program) = (folder.join("trouble.s"), folder.join("trouble"));
    std::fs::write(&source, TROUBLE).expect("room");
    let status = Command::new("gcc").arg(&source).arg("-o").arg(&program).status();
    assert!(status.expect("gcc").success());
    (std::fs::read(&program).expect("a program"), ProgramFile::read(&program).expect("a program"))
}

/// The offset of a function in the file. In this one addresses and offsets of code are the same.
fn place(program: &ProgramFile, name: &str) -> u64 {
    let address = program.functions().iter().find(|one| one.name == name).expect("a function").address;
    assert_eq!(program.address_of(address), Some(address));
    address
}

fn stack(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn expressions_end_and_read_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bytes, program) = built(folder.path());
    let mut calls = CallStack::parse(bytes, Path::new("trouble")).expect("a program").expect("tables");
    let from = 0x7f00_0000_1000;
    let registers = FrameRegisters { instruction: 0x5500_0000_1000, stack: from, frame: 7, is_next: true };
    // The frame of `stored` ends where the word at rsp + 16 says: behind the fifth word.
    let bytes = stack(&[1, 2, from + 40, 4, 0x5500_0000_2222, 6]);
    let bytes = StackBytes { from, bytes: &bytes };
    let mut caller = |name| calls.caller(registers, place(&program, name), bytes);
    let found = FrameRegisters { instruction: 0x5500_0000_2222, stack: from + 40, frame: 7, is_next: false };
    assert_eq!(caller("stored"), FrameCaller::At(found));
    assert_eq!(caller("endless"), FrameCaller::Unknown);
    assert_eq!(caller("nothing"), FrameCaller::Unknown, "a frame that takes no room would be its own caller");
    assert_eq!(
        caller("main"),
        FrameCaller::At(FrameRegisters { instruction: 1, stack: from + 8, frame: 7, is_next: false })
    );
    // Outside of all code, and with a stack that is not there.
    assert_eq!(calls.caller(registers, u64::MAX, bytes), FrameCaller::Unknown);
    let gone = StackBytes { from, bytes: &[] };
    assert_eq!(calls.caller(registers, place(&program, "main"), gone), FrameCaller::BelowCopy);
}

proptest! {
    /// Tables, registers and stacks of any contents: an answer in each case, and each caller is further up.
    #[test]
    fn damaged_tables_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..24),
        stack in prop::collection::vec(any::<u64>(), 0..32),
        from in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX - 15), Just(0x7f00_0000_1000)],
        frame in any::<u64>(),
        at in prop::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        thread_local! { static BUILT: std::cell::OnceCell<Vec<u8>> = const { std::cell::OnceCell::new() } }
        let mut bytes = BUILT.with(|built| built.get_or_init(|| self::built(folder.path()).0).clone());
        // The tables lie between the code and the data.
        let tables = 0x2000..0x2200;
        for (place, byte) in changes {
            let at = tables.start + place.index(tables.len());
            bytes[at] = byte;
        }
        let Ok(Some(mut calls)) = CallStack::parse(bytes, Path::new("damaged")) else { return Ok(()) };
        calls.keeps_frame_pointers();
        let words = self::stack(&stack);
        let stack = StackBytes { from, bytes: &words };
        let mut registers = FrameRegisters { instruction: 0, stack: from, frame, is_next: true };
        for at in at {
            let offset = 0x1000 + at.index(0x200) as u64;
            match calls.caller(registers, offset, stack) {
                FrameCaller::At(next) => {
                    prop_assert!(next.stack > registers.stack);
                    registers = next;
                }
                _ => break,
            }
        }
    }
}
