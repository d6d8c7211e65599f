//! Samples of a process that runs already, with all its threads and all that it starts.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::Error;
use crate::blocks::BlockNotes;
use crate::live::{Noted, Opened, Rings, is_sampled, keeping};
use crate::records::{Record, RecordEvent};
use crate::tally::Sampled;
use crate::tiers::{SampledEvent, ranges};
use crate::unwinding::Unwinding;

/// Bytes of the longest list of maps that is read.
const MOST_MAPS: u64 = 64 << 20;

/// Samples a process by events in groups ([`crate::tiers::events`]) until it ends, `stop` is set or the time is over.
/// Blocks are those that it notes from now on, if it does; all memory that it has by now is older.
///
/// # Errors
/// If there is no such process, it is somebody else's, or the kernel refuses.
pub fn attach(
    pid: u32,
    events: &[Vec<SampledEvent>],
    blocks: Option<&mut BlockNotes>,
    longest: Option<Duration>,
    stop: &AtomicBool,
) -> Result<Sampled, Error> {
    let process = find(pid)?;
    // The counters are open as long as these live.
    let Opened { others: _others, samplers } = open(pid, events)?;
    let mut rings = Rings::of(events, samplers);
    let mut tally = keeping(events).with_unwinding(Unwinding::new(root_of(pid), HashMap::new()));
    let mapped = maps(pid)?;
    if blocks.is_some() {
        heaps(&mapped).into_iter().for_each(|(address, bytes)| tally.older(pid, address, bytes));
    }
    mapped.into_iter().for_each(|record| tally.take(record));
    let mut noted = Noted::new(blocks);
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) && longest.is_none_or(|longest| begun.elapsed() < longest) {
        let has_ended = has_ended(&process, rings.pause);
        rings.look(&mut |record| tally.take(record));
        noted.look(&mut tally, false);
        if has_ended {
            break;
        }
    }
    rings.finish(&mut |record| tally.take(record));
    noted.look(&mut tally, true);
    Ok(Sampled { seconds: begun.elapsed().as_secs_f64(), ..tally.finish_with(noted.lost()) })
}

fn find(pid: u32) -> Result<OwnedFd, Error> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = number.ok_or(Error::NoProcess { pid })?;
    pidfd_open(process, PidfdFlags::empty()).map_err(|why| match why {
        // A thread's number is no process's.
        rustix::io::Errno::SRCH | rustix::io::Errno::INVAL | rustix::io::Errno::NOENT => {
            Error::NoProcess { pid }
        }
        why => Error::System { doing: "cannot watch the process", source: why.into() },
    })
}

/// Waits a moment, and returns whether the process has ended.
fn has_ended(process: &OwnedFd, pause: Duration) -> bool {
    let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&pause)).is_ok_and(|ended| ended > 0)
}

/// Opens events for each thread on each processor. Those of a processor share a ring.
fn open(pid: u32, events: &[Vec<SampledEvent>]) -> Result<Opened, Error> {
    let refused = |source: io::Error| match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => not_ours(pid).unwrap_or_else(|| Error::refused(source)),
        Some(libc::EMFILE | libc::ENFILE) => Error::System {
            doing: "the process has more threads than this user may open files for, one for each processor; \
                    raise the limit with `ulimit -n`",
            source,
        },
        _ => Error::refused(source),
    };
    let mut processors = online();
    processors.retain(|cpu| is_sampled(events, *cpu));
    let mut opened = Opened::default();
    let mut known = BTreeSet::new();
    // A thread that is started meanwhile by one that is not followed yet is seen by the next look.
    loop {
        let threads: Vec<i32> = threads(pid)?.into_iter().filter(|thread| known.insert(*thread)).collect();
        if threads.is_empty() {
            break;
        }
        for thread in threads {
            match follow(events, thread, &processors, &mut opened) {
                Ok(()) => {}
                // It has ended.
                Err(why) if why.raw_os_error() == Some(libc::ESRCH) => {}
                Err(why) => return Err(refused(why)),
            }
        }
    }
    match opened.samplers.is_empty() {
        true => Err(Error::NoProcess { pid }),
        false => Ok(opened),
    }
}

fn follow(
    events: &[Vec<SampledEvent>],
    thread: i32,
    processors: &[usize],
    opened: &mut Opened,
) -> io::Result<()> {
    let is_first = opened.samplers.len() < processors.len();
    if is_first {
        *opened = Opened::default();
    }
    for (at, cpu) in processors.iter().enumerate() {
        match is_first {
            true => opened.add(events, Some(thread), *cpu)?,
            false => {
                let ring = opened.samplers[at].as_counter().as_raw_fd();
                opened.add_to(events, Some(thread), *cpu, Some(ring))?;
            }
        }
    }
    Ok(())
}

/// Numbers of all processors: the process may run on others than this one.
fn online() -> Vec<usize> {
    let text = memlode_files::read_text("/sys/devices/system/cpu/online".as_ref(), memlode_files::SMALL);
    let text = text.unwrap_or_default();
    let found = ranges(text.trim());
    if found.is_empty() { crate::live::processors() } else { found }
}

fn threads(pid: u32) -> Result<Vec<i32>, Error> {
    let folder = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| Error::NoProcess { pid })?;
    Ok(folder.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Another user's process, if it is that.
fn not_ours(pid: u32) -> Option<Error> {
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    (owner != own && own != 0).then_some(Error::OtherUser { pid, owner, own })
}

/// The files that the process has mapped, as records of the time before all others.
fn maps(pid: u32) -> Result<Vec<Record>, Error> {
    let text =
        memlode_files::read(format!("/proc/{pid}/maps").as_ref(), MOST_MAPS).map_err(
            |source| match source.kind() {
                io::ErrorKind::PermissionDenied => not_ours(pid)
                    .unwrap_or(Error::System { doing: "cannot read what the process has mapped", source }),
                _ => Error::NoProcess { pid },
            },
        )?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(map).map(|event| Record { time: 0, pid, tid: pid, event }).collect())
}

/// Memory of heaps, of maps in the order of addresses: no file lies there. Right behind a file's it is that of static
/// variables.
fn heaps(mapped: &[Record]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut behind_file = None;
    for record in mapped {
        let RecordEvent::Map { address, length, path, .. } = &record.event else { continue };
        let name = path.as_encoded_bytes();
        let is_heap = name.is_empty() || name == b"[heap]" || name.starts_with(b"[anon:");
        if is_heap && behind_file != Some(*address) {
            found.push((*address, *length));
        }
        behind_file = name.starts_with(b"/").then(|| address.saturating_add(*length));
    }
    found
}

/// `55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:00 1234    /usr/bin/program`
fn map(line: &[u8]) -> Option<RecordEvent> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (range, _, offset) = (text()?, text()?, text()?);
    let _ = (text()?, text()?);
    let path = fields.next()?.trim_ascii_start();
    let (from, to) = range.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (from, to) = (number(from)?, number(to)?);
    let path = OsString::from_vec(path.to_vec());
    Some(RecordEvent::Map { address: from, length: to.checked_sub(from)?, offset: number(offset)?, path })
}

/// The folder that the files of a process are named from: another one than ours if it runs in a container.
pub fn root_of(pid: u32) -> Option<PathBuf> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let is_other = namespace(&pid.to_string())? != namespace("self")?;
    is_other.then(|| PathBuf::from(format!("/proc/{pid}/root")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiers::{LinuxSampling, TierKind, events};

    #[test]
    fn lines_of_maps() {
        let line = b"55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:00 1234    /usr/bin/a program";
        let Some(RecordEvent::Map { address, length, offset, path }) = map(line) else { panic!("a map") };
        assert_eq!((address, length, offset), (0x55d0_c0a0_0000, 0x21000, 0x2000));
        assert_eq!(path, "/usr/bin/a program");
        assert!(
            map(b"7ffd0-7ffc0 r-xp 0 0:0 0 x").is_none()
                && map(b"").is_none()
                && map(b"- - - - - -").is_none()
        );
        let own = maps(std::process::id()).expect("own maps");
        assert!(own.iter().any(|record| matches!(&record.event, RecordEvent::Map { path, .. }
            if path.as_encoded_bytes().starts_with(b"/"))));
    }

    #[test]
    fn memory_of_heaps_is_that_of_no_file_and_not_behind_one() {
        let lines = [
            "1000-2000 rw-p 00000000 fe:00 1    /usr/bin/a",
            "2000-3000 rw-p 00000000 00:00 0 ",
            "5000-6000 rw-p 00000000 00:00 0    [heap]",
            "7000-8000 rw-p 00000000 00:00 0 ",
            "9000-a000 rw-p 00000000 00:00 0    [stack]",
        ];
        let lines = lines.iter().filter_map(|line| map(line.as_bytes()));
        let mapped: Vec<Record> = lines.map(|event| Record { time: 0, pid: 1, tid: 1, event }).collect();
        assert_eq!((mapped.len(), heaps(&mapped)), (5, vec![(0x5000, 0x1000), (0x7000, 0x1000)]));
    }

    #[test]
    fn a_process_that_is_not_there_is_said_to_be() {
        let stop = AtomicBool::new(false);
        let clock = events(&LinuxSampling, TierKind::Clock, 1000).expect("a clock");
        for pid in [0, u32::MAX, i32::MAX as u32] {
            let error = attach(pid, &clock, None, None, &stop).expect_err("no process");
            assert!(matches!(error, Error::NoProcess { .. }), "{error}");
            assert!(error.to_string().contains(&format!("no process {pid}")), "{error}");
        }
    }
}
