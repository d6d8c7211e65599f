//! Why something was not counted.

use std::io;

use serde::{Deserialize, Serialize};

/// The reason for which a count is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum CountRefusal {
    /// The machine has no performance-monitoring unit that the kernel knows: many guests do not.
    NoUnit,
    /// The unit is there, but not this event.
    NoEvent,
    /// There is no table of events of this processor.
    NoTable,
    /// The processor cannot count it.
    NotCounted {
        /// The reason.
        reason: String,
    },
    /// `/proc/sys/kernel/perf_event_paranoid` forbids it.
    Paranoid {
        /// The setting.
        level: i32,
        /// The highest setting that would allow it.
        needed: i32,
    },
    /// The call itself is forbidden, as a container's filter does.
    Forbidden,
    /// The process belongs to another user.
    NotYours {
        /// The process.
        pid: u32,
    },
    /// There is no such process, or none any more.
    NoProcess {
        /// The process.
        pid: u32,
    },
    /// The process may open no more files.
    TooManyFiles,
    /// The events do not fit the counters that are free.
    DoNotFit,
    /// Another program uses the counters.
    Busy,
    /// The kernel was built without performance events.
    NoPerf,
    /// The counters had to be shared with another program, and did not run all the time.
    Shared {
        /// The part of the time that they ran, in per cent.
        percent: u8,
    },
    /// The divisor was zero.
    NothingToDivideBy,
    /// No program was given: only a trace.
    NotRun,
    /// Another error of the kernel.
    Other {
        /// Its words.
        said: String,
    },
}

/// Facts of the machine and of the program at the time when the kernel refuses.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// `/proc/sys/kernel/perf_event_paranoid`, if it can be read.
    pub paranoid: Option<i32>,
    /// The kernel has a unit of this processor.
    pub has_unit: bool,
    /// The event is one of the kernel's own.
    pub is_software: bool,
    /// Events in the kernel are to be counted, too.
    pub with_kernel: bool,
    /// The process that runs already and is to be observed.
    pub pid: Option<u32>,
}

impl CountRefusal {
    /// Returns the meaning of an error of `perf_event_open`.
    pub fn of(error: &io::Error, known: Circumstances) -> CountRefusal {
        let needed = if known.with_kernel { 1 } else { 2 };
        let paranoid = known.paranoid.filter(|level| *level > needed);
        match (error.raw_os_error(), known.pid) {
            (Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP), _) if known.is_software => {
                CountRefusal::Other { said: error.to_string() }
            }
            (Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP), _) if !known.has_unit => {
                CountRefusal::NoUnit
            }
            (Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP), _) => CountRefusal::NoEvent,
            (Some(libc::EACCES | libc::EPERM), _) if paranoid.is_some() => {
                CountRefusal::Paranoid { level: paranoid.unwrap_or_default(), needed }
            }
            (Some(libc::EACCES | libc::EPERM), Some(pid)) => CountRefusal::NotYours { pid },
            (Some(libc::EACCES | libc::EPERM), None) => CountRefusal::Forbidden,
            (Some(libc::ESRCH), Some(pid)) => CountRefusal::NoProcess { pid },
            (Some(libc::EMFILE | libc::ENFILE), _) => CountRefusal::TooManyFiles,
            (Some(libc::EINVAL | libc::ENOSPC), _) => CountRefusal::DoNotFit,
            (Some(libc::EBUSY), _) => CountRefusal::Busy,
            (Some(libc::ENOSYS), _) => CountRefusal::NoPerf,
            _ => CountRefusal::Other { said: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_kernel_has_its_reason() {
        let plain = Circumstances {
            paranoid: Some(2),
            has_unit: true,
            is_software: false,
            with_kernel: false,
            pid: None,
        };
        let guest = Circumstances { has_unit: false, ..plain };
        let strict = Circumstances { paranoid: Some(4), ..plain };
        let kernel = Circumstances { with_kernel: true, ..plain };
        let attached = Circumstances { pid: Some(7), ..plain };
        for (errno, known, expected) in [
            (libc::ENOENT, guest, CountRefusal::NoUnit),
            (libc::ENOENT, plain, CountRefusal::NoEvent),
            (libc::EACCES, strict, CountRefusal::Paranoid { level: 4, needed: 2 }),
            (libc::EPERM, strict, CountRefusal::Paranoid { level: 4, needed: 2 }),
            (libc::EACCES, kernel, CountRefusal::Paranoid { level: 2, needed: 1 }),
            (libc::EPERM, plain, CountRefusal::Forbidden),
            (libc::EACCES, attached, CountRefusal::NotYours { pid: 7 }),
            (libc::ESRCH, attached, CountRefusal::NoProcess { pid: 7 }),
            (libc::EMFILE, plain, CountRefusal::TooManyFiles),
            (libc::EINVAL, plain, CountRefusal::DoNotFit),
            (libc::EBUSY, plain, CountRefusal::Busy),
            (libc::ENOSYS, plain, CountRefusal::NoPerf),
        ] {
            assert_eq!(
                CountRefusal::of(&io::Error::from_raw_os_error(errno), known),
                expected,
                "{errno} {known:?}"
            );
        }
        let odd = CountRefusal::of(&io::Error::from_raw_os_error(libc::EIO), plain);
        assert!(matches!(odd, CountRefusal::Other { said } if said.contains("error")));
    }
}
