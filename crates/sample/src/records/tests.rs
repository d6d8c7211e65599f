//! Records that were laid out by hand, by the header of the kernel.

use super::*;

const PLAIN: RecordLayout = RecordLayout {
    sample_type: field::IP | field::TID | field::TIME,
    regs_user: 0,
    regs_intr: 0,
    read_format: 0,
    branch_type: 0,
    sample_id_all: true,
};

fn record(time: u64, pid: u32, tid: u32, event: RecordEvent) -> Record {
    Record { time, pid, tid, event }
}

fn bytes(parts: &[u64], text: &[u8], trailer: &[u64]) -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    [words(parts), text.to_vec(), words(trailer)].concat()
}

/// Laid out by the kernel's header, for sample type IP, TID and TIME.
#[test]
fn records_of_the_kernel() {
    let ids = 7 | 8 << 32;
    let sample = bytes(&[0x40_1004, ids, 99], b"", &[]);
    let at = SampleRecord { ip: 0x40_1004, ..SampleRecord::default() };
    assert_eq!(PLAIN.parse(9, 2, &sample), Some(record(99, 7, 8, RecordEvent::Sample(at))));
    let mapped = bytes(&[ids, 0x40_0000, 0x1000, 0x2000, 0, 0, 0, 0], b"/bin/x\0\0", &[ids, 98]);
    let map = RecordEvent::Map { address: 0x40_0000, length: 0x1000, offset: 0x2000, path: "/bin/x".into() };
    assert_eq!(PLAIN.parse(10, 2, &mapped), Some(record(98, 7, 8, map)));
    let fork = bytes(&[9 | 7 << 32, 9 | 7 << 32, 97], b"", &[ids, 97]);
    assert_eq!(PLAIN.parse(7, 2, &fork), Some(record(97, 9, 9, RecordEvent::Fork { parent: 7 })));
    let thread = bytes(&[7 | 7 << 32, 9 | 7 << 32, 97], b"", &[ids, 97]);
    assert_eq!(PLAIN.parse(7, 2, &thread), None, "a thread has its process's maps");
    let comm = bytes(&[ids], b"prog\0\0\0\0", &[ids, 96]);
    assert_eq!(PLAIN.parse(3, 1 << 13, &comm), Some(record(96, 7, 8, RecordEvent::Exec)));
    assert_eq!(PLAIN.parse(3, 0, &comm), None, "a thread that names itself");
    assert_eq!(
        PLAIN.parse(2, 0, &bytes(&[1, 5], b"", &[ids, 95])).map(|record| record.event),
        Some(RecordEvent::Lost { samples: 5 })
    );
    for (kind, whole) in [(9, &sample), (10, &mapped), (7, &fork), (3, &comm)] {
        for length in 0..whole.len().min(16) {
            assert_eq!(PLAIN.parse(kind, 1 << 13, &whole[..length]), None, "cut short");
        }
    }
}

/// All fields at once, each with a value of its own; a record that is cut anywhere is none.
#[test]
fn fields_lie_in_the_order_of_the_kernels_header() {
    let all = RecordLayout {
        sample_type: (1 << 25) - 1 - field::WEIGHT - field::AUX,
        regs_user: GENERAL_REGISTERS | 1 << 8,
        regs_intr: 1,
        read_format: 1 | 4 | 8,
        branch_type: 1 << 17,
        sample_id_all: true,
    };
    let head = [90, 0x1000, 7 | 8 << 32, 99, 0x2000, 91, 92, 3, 44];
    let read = [2, 80, 81, 82, 83, 84];
    let chain = [2, 70, 71];
    let raw = [4 | 60 << 32];
    let branches = [1, 61, 62, 63, 64];
    let regs: Vec<u64> = std::iter::once(2).chain(100..117).collect();
    let stack = [8, 65, 8];
    let rest = [5 | 6 << 32 | 7 << 48, 0x6810_0142, 66, 2, 200, 0x3000, 67, 4096, 68];
    let parts: [&[u64]; 8] = [&head, &read, &chain, &raw, &branches, &regs, &stack, &rest];
    let whole = bytes(&parts.concat(), b"", &[]);
    let Some(Record { time: 99, pid: 7, tid: 8, event: RecordEvent::Sample(found) }) =
        all.parse(9, 2, &whole)
    else {
        panic!("no sample")
    };
    // ax bx cx dx si di bp sp, the instruction, r8 to r15.
    let general = [100, 103, 102, 101, 104, 105, 106, 107, 109, 110, 111, 112, 113, 114, 115, 116];
    let registers = GeneralRegisters { general, ..GeneralRegisters::default() };
    let expected = SampleRecord {
        ip: 0x1000,
        is_kernel: false,
        address: Some(0x2000),
        id: Some(91),
        cpu: Some(3),
        period: Some(44),
        call_chain: vec![70, 71],
        weight: Some(SampleWeight::Parts(5, 6, 7)),
        data_source: Some(0x6810_0142),
        physical: Some(0x3000),
        cgroup: Some(67),
        page_bytes: Some(4096),
        code_page_bytes: Some(68),
        registers: Some(Box::new(registers)),
        stack: Some(Box::new(StackCopy {
            registers: FrameRegisters { instruction: 108, stack: 107, frame: 106, is_next: true },
            bytes: 65_u64.to_le_bytes().to_vec(),
        })),
    };
    assert_eq!(found, expected);
    for length in 0..whole.len() {
        assert_eq!(all.parse(9, 2, &whole[..length]), None, "{length}");
    }
}
