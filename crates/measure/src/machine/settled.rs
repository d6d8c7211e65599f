//! A calibration that is believed without anybody looking at it.
//!
//! Beside other work a third level was seen to answer after 173 cycles instead of 43, with a spread
//! of 8%: what one calibration says of itself is not enough. So it is believed only if another one
//! agrees, and nothing else ran meanwhile.

use std::time::{Duration, Instant};

use memlode_machine::Machine;

use super::{Calibration, calibrate};
use crate::Error;

/// Calibrations, at most.
const MOST: usize = 4;

/// The largest difference of a latency between two calibrations that agree.
const AGREE: f64 = 0.15;

/// Others may use this part of a processor, at most.
const OTHERS: f64 = 0.15;

/// Time for which others are watched before anything is measured. The kernel counts in steps of ten
/// milliseconds.
const WATCHED: Duration = Duration::from_millis(150);

/// Calibrates until two calibrations agree, in some four seconds. `None` if others use the
/// processors, at once if they do already.
///
/// # Errors
/// Fails as [`calibrate`] does.
pub fn settled(machine: &Machine) -> Result<Option<Calibration>, Error> {
    let before = Usage::now();
    std::thread::sleep(WATCHED);
    if !is_alone(before, Usage::now()) {
        return Ok(None);
    }
    agreed(|| {
        let before = Usage::now();
        let found = calibrate(machine)?;
        Ok(is_alone(before, Usage::now()).then_some(found))
    })
}

/// The first calibration that agrees with the one before it, each `None` if others ran beside it.
fn agreed(
    mut calibrate: impl FnMut() -> Result<Option<Calibration>, Error>,
) -> Result<Option<Calibration>, Error> {
    let mut before: Option<Calibration> = None;
    for _ in 0..MOST {
        let found = calibrate()?;
        if let (Some(before), Some(found)) = (&before, &found)
            && agree(before, found)
        {
            return Ok(Some(found.clone()));
        }
        before = found;
    }
    Ok(None)
}

/// Returns whether two calibrations found about the same latencies, and trust them.
fn agree(a: &Calibration, b: &Calibration) -> bool {
    let names = a.machine.levels.iter().map(|level| level.name.as_str()).chain(["memory"]);
    let trusted = |of: &Calibration, name: &str| {
        let found = of.constants.iter().find(|constant| constant.name == name);
        found.filter(|constant| constant.kept.is_none()).map(|constant| constant.value)
    };
    names.into_iter().all(|name| match (trusted(a, name), trusted(b, name)) {
        (Some(a), Some(b)) => (a - b).abs() <= AGREE * a.min(b),
        _ => false,
    })
}

/// Processor time that was used, in seconds.
#[derive(Clone, Copy)]
struct Usage {
    at: Instant,
    /// Seconds of everybody, on all processors; `None` if the kernel does not say.
    all: Option<f64>,
    /// Seconds of this process.
    own: f64,
}

impl Usage {
    fn now() -> Usage {
        let text = memlode_files::read_text("/proc/stat".as_ref(), 16 << 20).unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let own = own.tv_sec as f64 + own.tv_nsec as f64 / 1e9;
        Usage { at: Instant::now(), all: busy(&text).map(|busy| busy as f64 / ticks), own }
    }
}

/// Returns whether nobody else used the processors meanwhile; true if that is not known.
fn is_alone(before: Usage, after: Usage) -> bool {
    let (Some(first), Some(last)) = (before.all, after.all) else { return true };
    let others = (last - first) - (after.own - before.own);
    others <= OTHERS * (after.at - before.at).as_secs_f64()
}

/// Ticks for which all processors were busy, also for another guest, from `/proc/stat`.
fn busy(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
    // User, nice, system, idle, waiting for disks, interrupts, soft interrupts, stolen.
    let of = |places: &[usize]| places.iter().filter_map(|&place| ticks.get(place)).sum::<u64>();
    (ticks.len() > 3).then(|| of(&[0, 1, 2, 5, 6, 7]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Measured;

    /// A calibration that found these latencies, the last one of memory.
    fn found(latencies: [f64; 4]) -> Calibration {
        let machine = Machine::named("generic").expect("a machine");
        let names = machine.levels.iter().map(|level| level.name.clone()).chain(["memory".to_string()]);
        let one = |(name, value)| Measured { name, value, spread: 0.08, kept: None };
        let constants = names.zip(latencies).map(one).collect();
        Calibration { machine, constants, notes: Vec::new() }
    }

    #[test]
    fn what_two_agree_in_is_believed() {
        let mut found_in_turn = [
            Some(found([5.0, 14.0, 173.0, 300.0])),
            Some(found([5.0, 14.0, 43.0, 250.0])),
            None,
            Some(found([5.0, 14.0, 45.0, 260.0])),
        ]
        .into_iter();
        assert!(agreed(|| Ok(found_in_turn.next().flatten())).expect("no error").is_none());
        let mut found_in_turn =
            [173.0, 43.0, 45.0].map(|third| Some(found([5.0, 14.0, third, 250.0]))).into_iter();
        let believed = agreed(|| Ok(found_in_turn.next().flatten())).expect("no error").expect("one");
        assert_eq!(believed.constants[2].value, 45.0);
    }

    #[test]
    fn what_spreads_too_much_is_agreed_in_by_nobody() {
        let mut spread = found([5.0, 14.0, 43.0, 250.0]);
        assert!(agree(&spread, &spread));
        spread.constants[3].kept = Some(200.0);
        assert!(!agree(&spread, &spread));
        spread.constants.pop();
        assert!(!agree(&spread, &spread));
    }

    #[test]
    fn others_are_whoever_is_not_this_process() {
        let text = "cpu  10 20 30 4000 500 6 7 8 90 0\ncpu0 5 10 15 2000 250 3 3 4 45 0\n";
        assert_eq!(busy(text), Some(10 + 20 + 30 + 6 + 7 + 8));
        assert_eq!((busy(""), busy("cpu  1 2")), (None, None));
        let at = Instant::now();
        let before = Usage { at, all: Some(100.0), own: 1.0 };
        let after = |all, own| Usage { at: at + Duration::from_secs(10), all, own };
        assert!(is_alone(before, after(Some(111.0), 11.0)));
        assert!(!is_alone(before, after(Some(115.0), 11.0)));
        assert!(is_alone(before, after(None, 11.0)));
    }
}
