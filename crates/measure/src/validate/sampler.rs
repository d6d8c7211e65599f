//! Samples of where a program is, taken by the kernel's CPU clock. No performance counter is used.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::Error;
use crate::process::processors;

/// Bytes of each processor's ring: what an ordinary user may lock, and more than a second of samples.
const RING_BYTES: usize = 256 << 10;
/// Between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(20);

/// The places of samples.
#[derive(Debug, Default, PartialEq)]
pub struct Sampled {
    /// Image, offset in its file, and how many.
    pub at: Vec<(OsString, u64, u64)>,
    /// Samples in memory that no file is mapped to: compiled at run time, or the kernel's own page.
    pub unmapped: u64,
    /// Samples that the kernel could not hand over.
    pub lost: u64,
}

impl Sampled {
    /// Returns how many there are.
    pub fn samples(&self) -> u64 {
        self.at.iter().map(|(_, _, count)| count).sum::<u64>() + self.unmapped
    }
}

/// Samples the program that `run` starts and waits for, with all that it starts itself, from its `exec` on.
///
/// # Errors
/// Those of `run`, and if the kernel refuses.
pub fn sample<T>(period_ns: u64, run: impl FnOnce() -> Result<T, Error>) -> Result<(T, Sampled), Error> {
    let mut builder = clock(period_ns);
    builder
        .enable_on_exec(true)
        .mmap(true)
        .mmap2(true)
        .comm(true)
        .comm_exec(true)
        .task(true)
        .sample_id_all(true);
    let samplers = open(&mut builder)?;
    let (result, records) = drained(samplers, run);
    Ok((result?, resolve(records)))
}

/// Samples this thread while it runs `work`: addresses, and how many.
///
/// # Errors
/// If the kernel refuses.
pub fn sample_self(period_ns: u64, work: impl FnOnce()) -> Result<BTreeMap<u64, u64>, Error> {
    let mut builder = clock(period_ns);
    builder.enabled(true);
    let samplers = open(&mut builder)?;
    let ((), records) = drained(samplers, work);
    let mut found = BTreeMap::new();
    for record in records {
        if let Event::Sample { address } = record.event {
            *found.entry(address).or_default() += 1;
        }
    }
    Ok(found)
}

fn clock<'a>(period_ns: u64) -> Builder<'a> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .sample_period(period_ns)
        .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME)
        .exclude_kernel(true)
        .exclude_hv(true)
        .inherit(true);
    builder
}

/// One for each processor: children are followed only so.
fn open(builder: &mut Builder<'_>) -> Result<Vec<Sampler>, Error> {
    let refused = |source| Error::System {
        doing: "the kernel does not let this user sample programs (perf_event_open, cpu-clock): \
                /proc/sys/kernel/perf_event_paranoid must be 2 or less, and a container must allow the call",
        source,
    };
    let one = |cpu| builder.observe_self().one_cpu(cpu).build()?.sampled(RING_BYTES);
    processors().into_iter().map(one).collect::<Result<_, _>>().map_err(refused)
}

/// Runs `work` while another thread empties the rings.
fn drained<T>(mut samplers: Vec<Sampler>, work: impl FnOnce() -> T) -> (T, Vec<Record>) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drain = scope.spawn(|| {
            let mut records = Vec::new();
            loop {
                // What came before the end is in the rings when the end is seen.
                let is_last = done.load(Ordering::Acquire);
                for sampler in &mut samplers {
                    while let Some(record) = sampler.next_record() {
                        records.extend(Record::parse(record.ty(), record.misc(), &record.to_contiguous()));
                    }
                }
                if is_last {
                    return records;
                }
                std::thread::sleep(PAUSE);
            }
        });
        let result = work();
        done.store(true, Ordering::Release);
        (result, drain.join().expect("the thread only parses"))
    })
}

/// A record of the kernel, as far as it matters.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    /// Nanoseconds of the kernel's clock.
    time: u64,
    pid: u32,
    event: Event,
}

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Sample {
        address: u64,
    },
    /// A file was mapped.
    Map {
        address: u64,
        length: u64,
        offset: u64,
        path: OsString,
    },
    /// The process began as a copy of `parent`.
    Fork {
        parent: u32,
    },
    /// Another program took its place.
    Exec,
    Lost {
        samples: u64,
    },
}

impl Record {
    /// Reads a record's body. Nothing if it is of another kind, or too short for its kind.
    fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<Record> {
        // From linux/perf_event.h.
        const MMAP: u32 = 1;
        const LOST: u32 = 2;
        const COMM: u32 = 3;
        const FORK: u32 = 7;
        const SAMPLE: u32 = 9;
        const MMAP2: u32 = 10;
        const COMM_EXEC: u16 = 1 << 13;
        let u32_at = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?));
        // Every record but a sample ends with process, thread and time.
        let trailer = body.len().checked_sub(16)?;
        let map = |path: usize| {
            let text = body.get(path..trailer)?;
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            let path = OsString::from_vec(text[..end].to_vec());
            Some(Event::Map { address: u64_at(8)?, length: u64_at(16)?, offset: u64_at(24)?, path })
        };
        let (pid, time) = match kind {
            SAMPLE => (u32_at(8)?, u64_at(16)?),
            _ => (u32_at(0)?, u64_at(trailer + 8)?),
        };
        let event = match kind {
            SAMPLE => Event::Sample { address: u64_at(0)? },
            MMAP => map(32)?,
            MMAP2 => map(64)?,
            FORK if u32_at(0) != u32_at(4) => Event::Fork { parent: u32_at(4)? },
            COMM if misc & COMM_EXEC != 0 => Event::Exec,
            LOST => Event::Lost { samples: u64_at(8)? },
            _ => return None,
        };
        Some(Record { time, pid, event })
    }
}

/// A file in the memory of a process.
#[derive(Clone, Debug)]
struct Mapping {
    length: u64,
    offset: u64,
    path: OsString,
}

/// From addresses to files: records of all processors in the order of time.
fn resolve(mut records: Vec<Record>) -> Sampled {
    // Those of one time stay in the order of their ring.
    records.sort_by_key(|record| record.time);
    let mut processes: BTreeMap<u32, BTreeMap<u64, Mapping>> = BTreeMap::new();
    let mut found: BTreeMap<(OsString, u64), u64> = BTreeMap::new();
    let mut sampled = Sampled::default();
    for Record { pid, event, .. } in records {
        match event {
            Event::Fork { parent } => {
                let maps = processes.get(&parent).cloned().unwrap_or_default();
                processes.insert(pid, maps);
            }
            Event::Exec => drop(processes.remove(&pid)),
            Event::Map { address, length, offset, path } => {
                let maps = processes.entry(pid).or_default();
                maps.insert(address, Mapping { length, offset, path });
            }
            Event::Lost { samples } => sampled.lost += samples,
            Event::Sample { address } => {
                let maps = processes.get(&pid).map(|maps| maps.range(..=address));
                let mapping = maps.and_then(|mut maps| maps.next_back());
                match mapping {
                    Some((start, mapping))
                        if address - start < mapping.length
                            && mapping.path.as_encoded_bytes().first() == Some(&b'/') =>
                    {
                        let offset = address - start + mapping.offset;
                        *found.entry((mapping.path.clone(), offset)).or_default() += 1;
                    }
                    _ => sampled.unmapped += 1,
                }
            }
        }
    }
    sampled.at = found.into_iter().map(|((path, offset), count)| (path, offset, count)).collect();
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, pid: u32, event: Event) -> Record {
        Record { time, pid, event }
    }

    fn map(address: u64, path: &str) -> Event {
        Event::Map { address, length: 0x1000, offset: 0x2000, path: path.into() }
    }

    fn bytes(parts: &[u64], text: &[u8], trailer: &[u64]) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        [words(parts), text.to_vec(), words(trailer)].concat()
    }

    /// Laid out as the kernel's header says, for sample type IP, TID and TIME.
    #[test]
    fn records_of_the_kernel() {
        let ids = 7 | 8 << 32;
        let sample = bytes(&[0x40_1004, ids, 99], b"", &[]);
        assert_eq!(Record::parse(9, 2, &sample), Some(record(99, 7, Event::Sample { address: 0x40_1004 })));
        let mapped = bytes(&[ids, 0x40_0000, 0x1000, 0x2000, 0, 0, 0, 0], b"/bin/x\0\0", &[ids, 98]);
        assert_eq!(Record::parse(10, 2, &mapped), Some(record(98, 7, map(0x40_0000, "/bin/x"))));
        let fork = bytes(&[9 | 7 << 32, 9 | 7 << 32, 97], b"", &[ids, 97]);
        assert_eq!(Record::parse(7, 2, &fork), Some(record(97, 9, Event::Fork { parent: 7 })));
        let thread = bytes(&[7 | 7 << 32, 9 | 7 << 32, 97], b"", &[ids, 97]);
        assert_eq!(Record::parse(7, 2, &thread), None, "a thread has its process's maps");
        let comm = bytes(&[ids], b"prog\0\0\0\0", &[ids, 96]);
        assert_eq!(Record::parse(3, 1 << 13, &comm), Some(record(96, 7, Event::Exec)));
        assert_eq!(Record::parse(3, 0, &comm), None, "a thread that names itself");
        assert_eq!(
            Record::parse(2, 0, &bytes(&[1, 5], b"", &[ids, 95])).map(|record| record.event),
            Some(Event::Lost { samples: 5 })
        );
        for (kind, whole) in [(9, &sample), (10, &mapped), (7, &fork), (3, &comm)] {
            for length in 0..whole.len().min(16) {
                assert_eq!(Record::parse(kind, 1 << 13, &whole[..length]), None, "cut short");
            }
        }
    }

    #[test]
    fn processes_have_maps_of_their_own_in_the_order_of_time() {
        let sample = |address| Event::Sample { address };
        let found = resolve(vec![
            // Handed over by another processor, and later than what follows it here.
            record(6, 2, sample(0x40_0010)),
            record(9, 2, sample(0x40_0010)),
            record(1, 1, map(0x40_0000, "/bin/sh")),
            record(2, 1, sample(0x40_0fff)),
            record(3, 1, sample(0x40_1000)),
            record(4, 1, sample(0x3f_ffff)),
            record(5, 2, Event::Fork { parent: 1 }),
            record(7, 2, Event::Exec),
            record(8, 2, map(0x40_0000, "/bin/prog")),
            record(10, 1, sample(0x40_0fff)),
            record(11, 1, map(0x50_0000, "[vdso]")),
            record(12, 1, sample(0x50_0000)),
            record(13, 3, sample(0x40_0000)),
            record(14, 3, Event::Lost { samples: 4 }),
        ]);
        assert_eq!(
            found.at,
            [("/bin/prog".into(), 0x2010, 1), ("/bin/sh".into(), 0x2010, 1), ("/bin/sh".into(), 0x2fff, 2)]
        );
        assert_eq!((found.unmapped, found.lost, found.samples()), (4, 4, 8));
    }
}
