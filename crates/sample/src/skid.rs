//! The skid: the distance from the waiting instruction to the one in a sample of the timer.
//!
//! The processor takes an interrupt between two instructions. While one waits, the interrupt comes
//! after it, and the sample names the next one. A loop that does nothing but wait at one known load
//! shows whether that is so on this machine.

use serde::{Deserialize, Serialize};

use crate::Error;
#[cfg(target_arch = "x86_64")]
use crate::live;

/// The result of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skid {
    /// Instructions from the one that waits to the one that most samples name: 0 or 1.
    pub instructions: u8,
    /// The part of the loop's samples that lie exactly so. Virtual machines mix both: a host's interrupt may end a load that
    /// waits, which then begins again.
    pub share: f64,
}

/// Samples that lie neither at the load nor right behind it are useless. If fewer than this part
/// lie there, lines cannot be determined.
const LEAST_NEAR: f64 = 0.75;
/// Fewer samples are no evidence.
const LEAST_SAMPLES: u64 = 100;
/// One-byte instructions on each side of the load.
const AROUND: usize = 16;
/// CPU seconds in the loop.
const SECONDS: f64 = 0.2;

impl Skid {
    /// Concludes from how many samples named the load itself, and each of the instructions behind it; and how many anything
    /// else in the loop.
    fn conclude(behind: &[u64], others: u64) -> Result<Skid, Error> {
        let all = behind.iter().sum::<u64>() + others;
        if all < LEAST_SAMPLES {
            return Err(Error::Machine(format!(
                "the timer took {all} samples of a loop of {SECONDS} s, and {LEAST_SAMPLES} are needed: is the machine very \
                 busy?"
            )));
        }
        let most = (0..behind.len()).rev().max_by_key(|at| behind[*at]).unwrap_or(0);
        let part = |samples: u64| samples as f64 / all as f64;
        let near = part(behind.iter().take(2).sum());
        if most > 1 || near < LEAST_NEAR {
            return Err(Error::Machine(format!(
                "the timer's samples cannot be told to lines here: of a loop that waits at one load, {:.0}% name the load or \
                 the instruction behind it, and the rest others",
                100.0 * near
            )));
        }
        Ok(Skid { instructions: most as u8, share: part(behind[most]) })
    }

    /// Measures the skid, in a fraction of a second.
    ///
    /// # Errors
    /// If the kernel does not allow sampling, or too many samples lie anywhere.
    #[cfg(target_arch = "x86_64")]
    pub fn measure(period_ns: u64) -> Result<Skid, Error> {
        let chain = known::chain();
        let mut place = known::Place::default();
        let sampled = live::sample_self(period_ns, || {
            let (begun, mut at) = (known::cpu_seconds(), 0);
            while known::cpu_seconds() < begun + SECONDS {
                at = known::chase(&chain, at, &mut place);
            }
        })?;
        let mut behind = vec![0; AROUND];
        let mut others = 0;
        for (address, count) in sampled {
            if address == place.load {
                behind[0] += count;
            } else if (place.next..place.next + AROUND as u64 - 1).contains(&address) {
                behind[(address - place.next) as usize + 1] += count;
            } else if (place.load - AROUND as u64..place.end).contains(&address) {
                others += count;
            }
            // The rest is not the loop: its set-up, or the check of the time.
        }
        Skid::conclude(&behind, others)
    }

    /// Finds out where a loop is written for it.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn measure(_: u64) -> Result<Skid, Error> {
        Err(Error::Machine("the timer's skid can be measured on x86-64 only so far".into()))
    }

    /// The address of a byte of the instruction that waited, when a sample names the instruction at `address`. The byte in
    /// front of it belongs to the instruction before, whatever its length.
    pub fn correct(self, address: u64) -> u64 {
        address.saturating_sub(self.instructions.into())
    }
}

/// The loop that is known.
#[cfg(target_arch = "x86_64")]
mod known {
    use std::arch::asm;

    use rand::{RngExt, SeedableRng};

    use super::AROUND;

    /// Words of a line of the cache.
    const STRIDE: usize = 8;
    /// Lines in the chain: more than caches hold, so that each load waits for long.
    const LINES: usize = 1 << 20;
    /// Loads between two looks at the time.
    const STEPS: u64 = 10_000;

    /// Addresses in the loop.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Place {
        /// Samples of the load.
        pub load: u64,
        /// Samples of the instruction behind it.
        pub next: u64,
        /// Behind the loop.
        pub end: u64,
    }

    /// One cycle through all lines in random order: the word at each is the index of the next (Sattolo's algorithm).
    pub fn chain() -> Vec<usize> {
        let mut chain = vec![0; LINES * STRIDE];
        (0..LINES).for_each(|line| chain[line * STRIDE] = line * STRIDE);
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for line in (1..LINES).rev() {
            chain.swap(line * STRIDE, random.random_range(0..line) * STRIDE);
        }
        chain
    }

    /// Follows the chain from a line on, and reports the place of the code.
    pub fn chase(chain: &[usize], from: usize, place: &mut Place) -> usize {
        let mut at = from;
        // SAFETY: every word that is loaded is the index of a word of the chain; nothing is written.
        unsafe {
            asm!(
                "lea {load}, [rip + 3f]",
                "lea {next}, [rip + 4f]",
                "lea {end}, [rip + 5f]",
                "2:",
                ".rept {around}", "nop", ".endr",
                "3:",
                "mov {at}, [{chain} + {at} * 8]",
                "4:",
                ".rept {around}", "nop", ".endr",
                "dec {steps}",
                "jnz 2b",
                "5:",
                load = out(reg) place.load,
                next = out(reg) place.next,
                end = out(reg) place.end,
                at = inout(reg) at,
                chain = in(reg) chain.as_ptr(),
                steps = inout(reg) STEPS => _,
                around = const AROUND,
                options(nostack, readonly),
            );
        }
        at
    }

    /// CPU time of this thread.
    pub fn cpu_seconds() -> f64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instruction_behind_none_or_nowhere() {
        let behind = |samples: &[u64], others| Skid::conclude(samples, others);
        let one = behind(&[3, 180, 2, 0], 15).expect("a rule");
        assert_eq!((one.instructions, one.share), (1, 0.9));
        assert_eq!(one.correct(0x1004), 0x1003);
        let none = behind(&[200, 10, 0, 0], 0).expect("a rule");
        assert_eq!((none.instructions, none.correct(0x1004)), (0, 0x1004));
        let mixed = behind(&[78, 222, 0, 0], 0).expect("a rule that does not always hold");
        assert_eq!((mixed.instructions, mixed.share), (1, 0.74));
        for (samples, others, why) in [
            (&[0, 90, 0, 0][..], 5, "took 95 samples"),
            (&[0, 100, 100, 0], 0, "50% name the load or the instruction behind it"),
            (&[0, 0, 0, 300], 0, "cannot be told to lines"),
            (&[0, 200, 0, 0], 200, "cannot be told to lines"),
            (&[], 0, "took 0 samples"),
        ] {
            let error = behind(samples, others).expect_err("no rule").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_chain_is_one_cycle_and_the_load_is_where_it_is_said_to_be() {
        let chain = known::chain();
        let (mut at, mut steps) = (0, 0);
        loop {
            (at, steps) = (chain[at], steps + 1);
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps * 8, chain.len());
        let mut place = known::Place::default();
        let reached = known::chase(&chain, 0, &mut place);
        assert_eq!(reached, (0..10_000).fold(0, |at, _| chain[at]));
        // A load with base and scaled index is four or five bytes long, and there are as many bytes before as behind it.
        assert!((4..=5).contains(&(place.next - place.load)), "{place:?}");
        assert!(place.end > place.next + AROUND as u64);
        // SAFETY: code of this program can be read.
        let byte = |address: u64| unsafe { *(address as *const u8) };
        assert_eq!((byte(place.load - 1), byte(place.next)), (0x90, 0x90), "one-byte instructions around it");
    }
}
