//! Peak memory of the process that looks at a part.

use std::fs;

/// Returns the most memory that was resident in this process, in bytes; `None` if the system does
/// not say.
///
/// `getrusage` would not do: it starts with the figure of the process that started this one.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
