//! `events.ndjson`: events of processes, threads and modules, one JSON object a line, each with its
//! checksum.

use serde::{Deserialize, Serialize};

/// One line of `events.ndjson`, in the order in which the collector saw it. Stamps are time stamp
/// counter values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process registered: the first one, a forked child, or a program after exec.
    ProcessStart {
        /// Index in the trace, dense from 0.
        process: u32,
        /// The kernel's id.
        pid: u32,
        /// Index of the traced process that forked it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<u32>,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        command: Vec<String>,
        /// When.
        stamp: u64,
    },
    /// A process ended, or became another by exec.
    ProcessEnd {
        /// Index in the trace.
        process: u32,
        /// True if it ran its exit handlers; if not, it was killed, or called `_exit`.
        clean: bool,
        /// When.
        stamp: u64,
    },
    /// A thread began to record.
    ThreadStart {
        /// Index of its process.
        process: u32,
        /// Index in its process, dense from 0: `threads/pPPPP-tTTTT.mlt`.
        thread: u32,
        /// The kernel's id.
        tid: u32,
        /// When.
        stamp: u64,
    },
    /// A thread ended.
    ThreadEnd {
        /// Index of its process.
        process: u32,
        /// Index in its process.
        thread: u32,
        /// When.
        stamp: u64,
    },
    /// An instrumented image was loaded.
    ModuleLoad {
        /// Index of the process.
        process: u32,
        /// `modules/NNNN.mlm`
        module: u32,
        /// Run-time minus link-time address, modulo 2^64.
        load_bias: u64,
        /// When.
        stamp: u64,
    },
    /// An instrumented image was unloaded.
    ModuleUnload {
        /// Index of the process.
        process: u32,
        /// `modules/NNNN.mlm`
        module: u32,
        /// The same as when it was loaded.
        load_bias: u64,
        /// When.
        stamp: u64,
    },
}

const KEY: &str = "\"crc32\":";

/// Adds the last member, `crc32`: the checksum of all bytes before the comma that precedes it.
pub fn seal(json: &str) -> String {
    let body = json.strip_suffix('}').unwrap_or(json).trim_end();
    format!("{body},{KEY}\"{:08x}\"}}", crc32fast::hash(body.as_bytes()))
}

/// Returns whether the object carries its right checksum.
pub fn is_sealed(json: &str) -> bool {
    let Some((body, value)) = json.rfind(KEY).map(|at| (&json[..at], &json[at + KEY.len()..])) else {
        return false;
    };
    let digits = value.trim_end().strip_suffix('}').map(|value| value.trim().trim_matches('"'));
    let Some(crc) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else { return false };
    let body = body.trim_end();
    body.strip_suffix(',').is_some_and(|body| crc32fast::hash(body.as_bytes()) == crc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_line_is_noticed_or_harmless() {
        let event = Event::ModuleLoad { process: 1, module: 2, load_bias: 0xffff_ffff_ffff_f000, stamp: 77 };
        let line = seal(&serde_json::to_string(&event).unwrap());
        assert!(is_sealed(&line), "{line}");
        for bit in 0..line.len() * 8 {
            let mut bytes = line.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = String::from_utf8(bytes).ok().filter(|line| is_sealed(line));
            let read = read.and_then(|line| serde_json::from_str::<Event>(&line).ok());
            assert!(read.is_none_or(|read| read == event), "bit {bit}");
        }
    }
}
