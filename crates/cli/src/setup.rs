//! How a machine is simulated, as it is typed: pages, placement, and which cores threads run on.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use memlode_attribute::simulator::{Homes, Pages, Placement};
use memlode_machine::Machine;

/// Addresses of user space are below this on every processor that is simulated.
const END: u64 = 1 << 47;

/// `4KiB`, or `2MiB@7f0000000000-7f0040000000`.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    bytes: u64,
    range: Option<(u64, u64)>,
}

impl FromStr for PageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<PageSize, String> {
        let (size, range) = match text.split_once('@') {
            None => (text, None),
            Some((size, range)) => (size, Some(self::range(range)?)),
        };
        Ok(PageSize { bytes: bytes(size)?, range })
    }
}

/// The sizes of pages: at most one for all that lies in no range, else the machine's.
pub fn pages(sizes: &[PageSize], machine: &Machine) -> Result<Pages> {
    let mut whole = sizes.iter().filter(|size| size.range.is_none());
    let page_bytes = whole.next().map_or(machine.page_bytes, |size| size.bytes);
    ensure!(
        whole.next().is_none(),
        "--pages: expected one size for all, and ranges for others, such as 4KiB,2MiB@START-END"
    );
    let ranges = sizes.iter().filter_map(|size| size.range.map(|(first, end)| (first, end, size.bytes)));
    Ok(Pages { page_bytes, ranges: ranges.collect() })
}

/// Checks the cores that threads run on.
pub fn cores(cores: &[u32], machine: &Machine) -> Result<Vec<u32>> {
    if let Some(core) = cores.iter().find(|core| **core >= machine.cores) {
        bail!("--cores: {} has cores 0 to {}, not {core}", machine.name, machine.cores - 1);
    }
    Ok(cores.to_vec())
}

/// `first-touch`, `interleave`, `node:N`, or a file that says where addresses are.
pub fn homes(wanted: Option<&str>, machine: &Machine) -> Result<Homes> {
    let Some(wanted) = wanted else { return Ok(Homes::default()) };
    ensure!(
        machine.nodes > 1,
        "--placement: {} has one memory node; give a machine file with `nodes` and `remote_memory_latency_cycles`",
        machine.name
    );
    let checked = |node: &str| match node.parse::<u32>() {
        Ok(node) if node < machine.nodes => Ok(node),
        _ => bail!("expected a node from 0 to {}, found `{node}`", machine.nodes - 1),
    };
    let placement = match wanted.strip_prefix("node:") {
        Some(node) => Placement::Node(checked(node).context("--placement")?),
        None if wanted == "interleave" => Placement::Interleave,
        None if wanted == "first-touch" => Placement::FirstTouch,
        None => {
            let ranges = read(Path::new(wanted), checked)?;
            return Ok(Homes { placement: Placement::FirstTouch, ranges });
        }
    };
    Ok(Homes { placement, ranges: Vec::new() })
}

/// A file of lines `START-END NODE`, addresses in hexadecimal digits as in /proc/PID/maps; `#` begins a comment.
fn read(file: &Path, node: impl Fn(&str) -> Result<u32>) -> Result<Vec<(u64, u64, u32)>> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("--placement {}: expected first-touch, interleave, node:N or a file", file.display())
    })?;
    let mut ranges = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let at = || format!("{}:{number}", file.display());
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            [] => {}
            [addresses, home] => {
                let (first, end) = range(addresses).map_err(anyhow::Error::msg).with_context(at)?;
                ranges.push((first, end, node(home).with_context(at)?));
            }
            _ => bail!("{}: expected `START-END NODE`, found `{}`", at(), line.trim()),
        }
    }
    Ok(ranges)
}

/// `7f0000000000-7f0040000000`: the first address, and the one behind the last.
fn range(text: &str) -> Result<(u64, u64), String> {
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let ends = text.split_once('-').and_then(|(first, end)| Some((address(first)?, address(end)?)));
    match ends {
        Some((first, end)) if first < end && end <= END => Ok((first, end)),
        _ => Err(format!("expected START-END in hexadecimal digits, with START below END, found `{text}`")),
    }
}

/// `4096`, `4KiB`, `4K`, `2 MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim() {
        "" | "B" => Some(0),
        "K" | "KiB" => Some(10),
        "M" | "MiB" => Some(20),
        "G" | "GiB" => Some(30),
        _ => None,
    };
    let bytes = unit.and_then(|shift| text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a size such as 4KiB, 2MiB or 1GiB".to_string())
}
