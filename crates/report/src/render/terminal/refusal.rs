//! The reason why something was not counted, as a sentence with the remedy.

use memlode_counters::refusal::CountRefusal;
use memlode_sample::tiers::{TierKind, TierRefusal};

use crate::render::text::printable;

/// Returns the reason, and the remedy.
pub fn refusal(why: &CountRefusal) -> String {
    match why {
        CountRefusal::NoUnit => "this machine has no performance-monitoring unit (PMU), as most guests have none: run on bare metal, \
                            or have the host give the guest its unit"
            .into(),
        CountRefusal::NoEvent => {
            "the PMU does not have this event, though its table says so: a hypervisor may hide it".into()
        }
        CountRefusal::NoTable => "no table of events fits this processor: choose one by --events, if its codes are the same".into(),
        CountRefusal::NotCounted { reason } => printable(reason).into_owned(),
        CountRefusal::Paranoid { level, needed } => format!(
            "kernel.perf_event_paranoid is {level}, and this needs {needed} or less: run `sysctl \
             kernel.perf_event_paranoid={needed}` as root, or give memlode CAP_PERFMON"
        ),
        CountRefusal::Forbidden => "the call perf_event_open is forbidden here, as the seccomp filter of a container does: start the \
                               container with --cap-add PERFMON, or with a filter that allows the call"
            .into(),
        CountRefusal::NotYours { pid } => {
            format!("process {pid} is another user's, or cannot be traced: run as that user, or with CAP_PERFMON")
        }
        CountRefusal::NoProcess { pid } => format!("there is no process {pid}, or it ended"),
        CountRefusal::TooManyFiles => {
            "memlode may not open that many files, and each event of each thread is one: raise `ulimit -n`".into()
        }
        CountRefusal::DoNotFit => "the events of this ratio do not fit the counters that are free at the same time: stop what else \
                              counts, such as the NMI watchdog (`sysctl kernel.nmi_watchdog=0`)"
            .into(),
        CountRefusal::Busy => "another program has the counters: stop it, and count again".into(),
        CountRefusal::NoPerf => "this kernel was built without performance events (CONFIG_PERF_EVENTS)".into(),
        CountRefusal::Shared { percent } => format!(
            "the counters ran only {percent}% of the time, as somebody else took them for the rest: stop what else counts, \
             such as the NMI watchdog (`sysctl kernel.nmi_watchdog=0`)"
        ),
        CountRefusal::NothingToDivideBy => "what it is divided by was never counted: the program was too short".into(),
        CountRefusal::NotRun => {
            "no program was run, so nothing was counted: give the program, `memlode stat --trace DIR -- PROGRAM`".into()
        }
        CountRefusal::Other { said } => format!("the kernel said: {}", printable(said)),
    }
}

/// Returns why a way to sample is missing.
pub fn tier_refusal(why: &TierRefusal) -> String {
    match why {
        TierRefusal::NoMemoryEvents => {
            "the kernel has no events of this processor that name data: neither mem-loads (PEBS) nor \
                                        ibs_op (IBS) is in /sys/bus/event_source/devices"
                .into()
        }
        TierRefusal::Refused(CountRefusal::DoNotFit) => {
            "the kernel does not take the event: another one of its kind is open, or the counters are taken"
                .into()
        }
        TierRefusal::Refused(why) => refusal(why),
    }
}

/// Returns how an available way to sample is used, or which alternative there is for a missing one.
pub fn tier_use(kind: TierKind, is_there: bool) -> &'static str {
    match (kind, is_there) {
        (TierKind::Clock, true) => "memlode sample",
        (TierKind::Clock, false) => {
            "build with memlode, and record: `memlode run`; or `memlode import` a recording of another machine"
        }
        (TierKind::Counters, true) => "memlode sample --by cycles, memlode stat",
        (TierKind::Counters, false) => {
            "`memlode sample` takes samples of time instead; `memlode stat` simulates what it cannot count"
        }
        (TierKind::Precise, true) => "memlode sample --by memory",
        (TierKind::Precise, false) => {
            "`memlode sample` names members by samples of time, and `memlode sim` which caches they miss; or record with \
             `perf mem record` on another machine, and `memlode import`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_comes_next() {
        assert!(tier_refusal(&TierRefusal::NoMemoryEvents).contains("mem-loads"));
        assert!(tier_refusal(&TierRefusal::Refused(CountRefusal::NoUnit)).contains("bare metal"));
        for kind in [TierKind::Clock, TierKind::Counters, TierKind::Precise] {
            assert_ne!(tier_use(kind, true), tier_use(kind, false));
            assert!(tier_use(kind, false).contains("memlode"));
        }
    }

    #[test]
    fn each_reason_says_what_to_do() {
        for (why, advice) in [
            (CountRefusal::NoUnit, "bare metal"),
            (CountRefusal::NoTable, "--events"),
            (CountRefusal::Paranoid { level: 4, needed: 2 }, "kernel.perf_event_paranoid=2"),
            (CountRefusal::Forbidden, "--cap-add PERFMON"),
            (CountRefusal::NotYours { pid: 7 }, "process 7"),
            (CountRefusal::NoProcess { pid: 7 }, "no process 7"),
            (CountRefusal::TooManyFiles, "ulimit -n"),
            (CountRefusal::DoNotFit, "nmi_watchdog=0"),
            (CountRefusal::Shared { percent: 50 }, "50%"),
            (CountRefusal::NotRun, "-- PROGRAM"),
            (CountRefusal::Other { said: "odd \u{1b}[1m".into() }, "odd \\u{1b}"),
        ] {
            let said = refusal(&why);
            assert!(said.contains(advice) && !said.contains("  "), "{said}");
        }
    }
}
