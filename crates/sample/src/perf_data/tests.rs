//! Strangers' files: cut off, changed, and made to hurt.

use std::path::Path;

use super::*;
use crate::records::RecordEvent;

/// A minimal recording: one event, whose samples are an instruction and a time.
fn recording(data: &[u8]) -> Vec<u8> {
    let attributes = attributes(field::IP | field::TIME);
    let entry = [attributes, words(&[0, 0])].concat();
    let at = 104 + entry.len() as u64;
    let head =
        [u64::from_le_bytes(*b"PERFILE2"), 104, 144, 104, 144, at, data.len() as u64, 0, 0, 0, 0, 0, 0];
    [words(&head), entry, data.to_vec()].concat()
}

/// The same through a pipe.
fn piped(data: &[u8]) -> Vec<u8> {
    let head = words(&[u64::from_le_bytes(*b"PERFILE2"), 16]);
    [head, record(64, &attributes(field::IP | field::TIME)), data.to_vec()].concat()
}

fn attributes(sample_type: u64) -> Vec<u8> {
    let mut all = vec![0; 16];
    all[0] = 1 | 128 << 32;
    all[3] = sample_type;
    words(&all)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("small");
    [&kind.to_le_bytes()[..], &[2, 0], &size.to_le_bytes(), body].concat()
}

fn sample(ip: u64, time: u64) -> Vec<u8> {
    record(9, &words(&[ip, time]))
}

/// Reads bytes as a file: instructions of samples, or the error.
fn read(bytes: &[u8]) -> Result<Vec<u64>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    std::fs::write(&path, bytes).expect("room");
    let mut found = Vec::new();
    let data = PerfData::open(&path).map_err(|why| why.what)?;
    data.replay(&mut |_, record| {
        if let RecordEvent::Sample(sample) = record.event {
            found.push(sample.ip);
        }
    })
    .map_err(|why| why.what)?;
    Ok(found)
}

#[test]
fn samples_come_in_the_order_of_time_whatever_their_container() {
    let late = [sample(2, 20), sample(1, 10)].concat();
    assert_eq!(read(&recording(&late)), Ok(vec![1, 2]));
    assert_eq!(read(&piped(&late)), Ok(vec![1, 2]));
    let packed = zstd::encode_all(&late[..], 1).expect("zstd");
    let (front, back) = packed.split_at(packed.len() / 2);
    let halves = [record(81, front), record(81, back)].concat();
    assert_eq!(read(&recording(&halves)), Ok(vec![1, 2]), "records are cut anywhere");
    let with_length = [words(&[packed.len() as u64]), packed, vec![0; 5]].concat();
    assert_eq!(read(&piped(&record(83, &with_length))), Ok(vec![1, 2]));
    // The processor's own trace lies behind its record.
    let trace = [record(71, &words(&[16, 0, 0])), vec![9; 16], late].concat();
    assert_eq!(read(&recording(&trace)), Ok(vec![1, 2]));
}

#[test]
fn what_is_damaged_is_said() {
    let one = sample(1, 10);
    let whole = recording(&one);
    let changed = |at: usize, value: u64| {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        read(&bytes).expect_err("damaged")
    };
    let bomb = zstd::encode_all(&vec![0; 70 << 20][..], 1).expect("zstd");
    for (error, expected) in [
        (read(b"").expect_err("nothing"), "does not begin with PERFILE2"),
        (read(&whole[..30]).expect_err("short"), "ends in its header"),
        (changed(0, u64::from_le_bytes(*b"2ELIFREP")), "big-endian"),
        (changed(16, 0), "attributes of events are damaged"),
        (changed(24, u64::MAX), "attributes lie beyond its end"),
        (changed(32, 0), "no events"),
        (changed(40, u64::MAX - 1), "records lie beyond its end"),
        (changed(48, 0), "did not come to its end"),
        (changed(72, 1 << 12), "features lie beyond its end"),
        (changed(104 + 24, 1 << 40 | 1), "fields that memlode does not know"),
        (changed(104 + 24, 4), "do not say at which instruction"),
        (changed(104 + 128, u64::MAX), "attributes of events are damaged"),
        (changed(104 + 136, 1 << 40), "attributes of events are damaged"),
        (changed(248, 9 | 4 << 48), "shorter than its head"),
        (changed(248, 9 | 0x8000 << 48), "ends in the record at byte 248"),
        (changed(248, 71 | 24 << 48), "ends in the record at byte 248"),
        (read(&recording(&record(9, &[0; 8]))).expect_err("short"), "byte 248 is too short for its kind"),
        (read(&recording(&record(81, &[7; 40]))).expect_err("no zstd"), "compressed records are damaged"),
        (read(&recording(&record(81, &bomb))).expect_err("a bomb"), "unpack to more than a recording has"),
        (read(&piped(&[0; 3])).expect_err("cut"), "ends in the record at byte 152"),
    ] {
        assert!(error.contains(expected), "{error} / {expected}");
    }
    let nested = record(81, &zstd::encode_all(&record(81, &[0; 8])[..], 1).expect("zstd"));
    assert!(read(&recording(&nested)).expect_err("nested").contains("unpacks to none"));
}

/// A real recording that was cut anywhere is refused, and one with any byte changed is read or refused.
#[test]
fn cut_and_changed_recordings_never_hurt() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data");
    let whole = std::fs::read(folder.join("old-kernel.data")).expect("a fixture");
    assert_eq!(read(&whole).map(|found| found.len()), Ok(16));
    for length in (0..whole.len()).step_by(101) {
        read(&whole[..length]).expect_err("cut off");
    }
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..1_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            // Small numbers and large ones, at places that are words or not.
            bytes[at] = [0, 1, 0x7f, 0xff, next(256) as u8][next(5)];
        }
        let _ = read(&bytes);
    }
}

#[test]
fn lists_are_read_as_far_as_they_reach() {
    let named = |bytes: &[u64]| header::named_events(&words(bytes));
    assert!(named(&[1 | 128 << 32]).is_none() && named(&[u64::MAX]).is_none() && named(&[]).is_none());
    assert_eq!(named(&[128 << 32]).map(|events| events.len()), Some(0));
    let mut one = vec![1 | 128 << 32];
    one.extend([0; 16]);
    // Numbers, and bytes of the name: more than there are.
    one.push(u64::from(u32::MAX));
    assert!(named(&one).is_none());
    assert!(header::command(&[255; 4]).is_none() && header::command(&[1, 0, 0, 0, 9, 0, 0, 0]).is_none());
    let mut found = HashMap::new();
    header::build_ids(&record(67, &[0; 3]), &mut found);
    header::build_ids(&[0; 8], &mut found);
    assert!(found.is_empty());
    let id = [&[0; 4][..], &[7; 20], &[20, 0, 0, 0], b"/bin/x\0\0"].concat();
    let mut entry = record(67, &id);
    entry[5] = 0x80;
    header::build_ids(&entry, &mut found);
    assert_eq!(found.get(std::ffi::OsStr::new("/bin/x")), Some(&vec![7; 20]));
}
