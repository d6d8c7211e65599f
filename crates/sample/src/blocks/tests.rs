use std::collections::HashMap;
use std::os::unix::fs::FileExt;

use memlode_trace::format::{BlockNotesHeader, block_notes};

use super::*;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Memory of a process in which each byte knows when its block was taken: of the heap, and of what was mapped.
type Bytes = [[Option<u64>; 64]; 2];

fn model(processes: &mut HashMap<u32, Bytes>, change: &BlockChange) {
    let fresh: Bytes = [[None; 64]; 2];
    let part = |address: u64, bytes: u64| address as usize..(address + bytes).min(64) as usize;
    let of = *processes.get(&change.pid).unwrap_or(&fresh);
    let of = match change.event {
        BlockEvent::Taken { address, bytes, is_mapped, .. } => {
            let mut of = of;
            let own = &mut of[usize::from(is_mapped)];
            // Two blocks of a heap cannot overlap: the other one's end was not noted.
            let gone: Vec<_> = own[part(address, bytes)].to_vec();
            own.iter_mut().filter(|byte| !is_mapped && gone.contains(byte)).for_each(|byte| *byte = None);
            own[part(address, bytes)].fill(Some(change.time));
            of
        }
        BlockEvent::Freed { address } => {
            let mut of = of;
            let gone = of[0][address as usize];
            let begins = gone.is_some() && (address == 0 || of[0][address as usize - 1] != gone);
            of[0].iter_mut().filter(|byte| begins && **byte == gone).for_each(|byte| *byte = None);
            of
        }
        BlockEvent::Unmapped { address, bytes } => {
            let mut of = of;
            of[1][part(address, bytes)].fill(None);
            of
        }
        BlockEvent::Forked { parent } if parent != change.pid => *processes.get(&parent).unwrap_or(&fresh),
        BlockEvent::Forked { .. } | BlockEvent::Replaced => fresh,
    };
    processes.insert(change.pid, of);
}

#[test]
fn an_address_is_in_the_block_that_lay_there_at_its_time() {
    let mut numbers = Numbers(1);
    for _ in 0..200 {
        let (mut changes, mut accesses, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        let mut processes = HashMap::new();
        for time in 0..200 {
            let (address, bytes) = (numbers.below(56), 1 + numbers.below(8));
            let pid = numbers.below(3) as u32;
            let event = match numbers.below(10) {
                0..4 => BlockEvent::Taken { address, bytes, call: None, is_mapped: numbers.below(3) == 0 },
                4..7 => BlockEvent::Freed { address },
                7 => BlockEvent::Unmapped { address, bytes },
                8 => BlockEvent::Forked { parent: (pid + 1) % 3 },
                _ => BlockEvent::Replaced,
            };
            let change = BlockChange { time, pid, event };
            model(&mut processes, &change);
            changes.push(change);
            for _ in 0..4 {
                let (pid, address) = (numbers.below(3) as u32, numbers.below(64));
                let of = processes.get(&pid);
                let at = |of: usize| processes.get(&pid).and_then(|bytes| bytes[of][address as usize]);
                expected.push(of.and(at(0).map(|begun| (begun, false)).or(at(1).map(|begun| (begun, true)))));
                accesses.push(Some((time, pid, address)));
            }
        }
        let found = sweep(&changes, &accesses);
        let found: Vec<_> =
            found.into_iter().map(|block| block.map(|block| (block.begun, block.is_mapped))).collect();
        assert_eq!(found, expected);
    }
}

/// A block that comes and goes at one place is one block; one that is given back for longer is two.
#[test]
fn blocks_that_come_and_go_are_few_changes() {
    let note = |time, kind, bytes| BlockNote { time, pid: 1, kind, address: 0x1000, bytes, path: Some(7) };
    let mut book = BlockBook::default();
    for round in 0..1000 {
        book.add(&note(1000 * round, NoteKind::Taken, 8192), None);
        book.add(&note(1000 * round + 500, NoteKind::Freed, 0), None);
    }
    book.add(&note(9_000_000, NoteKind::Taken, 8192), None);
    book.add(&note(9_000_100, NoteKind::Freed, 0), None);
    book.add(&note(9_000_200, NoteKind::Taken, 4096), None);
    let kept = book.finish(3);
    let times: Vec<u64> = kept.changes.iter().map(|change| change.time).collect();
    assert_eq!((times, kept.lost), (vec![0, 999_500, 9_000_000, 9_000_100, 9_000_200], 3));
}

/// A program may write there what it likes.
#[test]
fn whatever_a_program_writes_is_no_note_unless_it_is_sealed() {
    let mut notes = BlockNotes::create(4096).expect("memory");
    let memory = notes.memory.try_clone().expect("memory of ours");
    assert!(memory.set_len(0).is_err(), "its length is sealed");
    let mut numbers = Numbers(5);
    let mut bytes = vec![0; 1 << 20];
    for offset in (0..u64::from(block_notes::BYTES)).step_by(1 << 20) {
        bytes.fill_with(|| numbers.below(256) as u8);
        let room = (u64::from(block_notes::BYTES) - offset).min(1 << 20) as usize;
        memory.write_all_at(&bytes[..room], offset).expect("memory");
    }
    let mut found = Vec::new();
    notes.take(true, &mut found);
    let head = std::mem::offset_of!(BlockNotesHeader, head) as u64;
    memory.write_all_at(&u64::from(block_notes::NOTES).to_le_bytes(), head).expect("memory");
    notes.take(false, &mut found);
    notes.take(true, &mut found);
    assert_eq!(found, []);
    assert!((0..=u16::MAX).all(|path| notes.calls(path).len() <= block_notes::PATH_CALLS as usize));
}
