//! The setup of a simulated machine, as arguments: pages, placement, and the cores of threads.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum, ValueHint};
use memlode_attribute::setup::{Homes, NamedMemory, NamedPages, Pages, Placement, RuleChoice, Setup};

use memlode_machine::Machine;

use crate::args::numbers;

/// Addresses of user space are below this on every processor that is simulated.
const END: u64 = 1 << 47;

/// Bytes of the largest file of addresses.
const LISTS: u64 = 64 << 20;

/// Options that set a machine up.
#[derive(Debug, Parser)]
pub struct SetupArgs {
    /// Size of all pages, such as 4KiB, 2MiB or 1GiB, and of some: 4KiB,2MiB@heap, or @stack, @ the name of a global variable, or
    /// @START-END in hexadecimal digits [default: the machine's ordinary pages]
    #[arg(long, value_name = "SIZE[@WHERE]", value_delimiter = ',')]
    pages: Vec<PageSize>,
    /// Cores that threads run on: the first thread on the first one, and so on [default: thread t on core t]
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Which node's memory pages lie in, on a machine with `nodes`: first-touch, interleave, node:N, or a file of lines
    /// START-END NODE [default: first-touch]
    #[arg(long, value_name = "HOW", value_hint = ValueHint::Other)]
    placement: Option<String>,
    /// Which rules the caches have
    #[arg(long, value_enum, value_name = "RULES", default_value_t)]
    rules: Rules,
}

/// Options that simulate a machine's rules; without them, the model is that of `report`.
#[derive(Debug, Parser)]
pub struct SimArgs {
    /// Simulate the machine's rules, as `memlode sim` does, in the place of `report`'s model
    #[arg(long, conflicts_with = "threads")]
    sim: bool,
    /// With --sim: cores that threads run on, the first thread on the first one, and so on [default: thread t on core t]
    #[arg(long, value_name = "CORE", value_delimiter = ',', requires = "sim")]
    cores: Vec<u32>,
}

impl SimArgs {
    /// Returns the setup of this machine, if its rules are simulated.
    pub fn of(&self, machine: &Machine) -> Result<Option<Setup>> {
        let setup = || Ok(Setup { cores: cores(&self.cores, machine)?, ..Setup::of(machine) });
        self.sim.then(setup).transpose()
    }
}

/// The rules of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Rules {
    /// The machine's: replacement, inclusion, writes, sectors, prefetchers, coherence
    #[default]
    Machine,
    /// Exact LRU, non-inclusive, no prefetchers, no coherence: several times as fast, and what `report` simulates
    Lru,
}

impl SetupArgs {
    /// Returns the setup on this machine.
    pub fn of(&self, machine: &Machine) -> Result<Setup> {
        Ok(Setup {
            rules: match self.rules {
                Rules::Machine => RuleChoice::Machine,
                Rules::Lru => RuleChoice::Lru,
            },
            pages: pages(&self.pages, machine)?,
            named: self.pages.iter().filter_map(PageSize::named).collect(),
            cores: cores(&self.cores, machine)?,
            homes: homes(self.placement.as_deref(), machine)?,
        })
    }

    /// Returns the first of these options that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--pages", !self.pages.is_empty()),
            ("--cores", !self.cores.is_empty()),
            ("--placement", self.placement.is_some()),
            ("--rules", self.rules != Rules::default()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

/// `4KiB`, `2MiB@heap`, or `2MiB@7f0000000000-7f0040000000`.
#[derive(Clone, Debug)]
struct PageSize {
    bytes: u64,
    place: Where,
}

/// Which pages are of a size.
#[derive(Clone, Debug)]
enum Where {
    /// All memory that has no setting of its own.
    Everywhere,
    /// The pages of some memory.
    Memory(NamedMemory),
    /// From the first address up to, not including, the second.
    Range(u64, u64),
}

impl PageSize {
    fn named(&self) -> Option<NamedPages> {
        match &self.place {
            Where::Memory(memory) => Some(NamedPages { memory: memory.clone(), page_bytes: self.bytes }),
            Where::Everywhere | Where::Range(..) => None,
        }
    }
}

impl FromStr for PageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<PageSize, String> {
        let (size, place) = match text.split_once('@') {
            None => (text, Where::Everywhere),
            Some((size, place)) => (size, self::place(place)?),
        };
        Ok(PageSize { bytes: numbers::bytes(size)?, place })
    }
}

/// The sizes of pages: at most one for all that lies in no range, else the machine's.
fn pages(sizes: &[PageSize], machine: &Machine) -> Result<Pages> {
    let mut whole = sizes.iter().filter(|size| matches!(size.place, Where::Everywhere));
    let page_bytes = whole.next().map_or(machine.page_bytes, |size| size.bytes);
    ensure!(
        whole.next().is_none(),
        "--pages: expected one size for all, and others for some, such as 4KiB,2MiB@heap or 4KiB,2MiB@START-END"
    );
    let range = |size: &PageSize| match size.place {
        Where::Range(first, end) => Some((first, end, size.bytes)),
        Where::Everywhere | Where::Memory(_) => None,
    };
    Ok(Pages { ranges: sizes.iter().filter_map(range).collect(), ..Pages::of(page_bytes) })
}

/// Checks the cores that threads run on.
fn cores(cores: &[u32], machine: &Machine) -> Result<Vec<u32>> {
    if let Some(core) = cores.iter().find(|core| **core >= machine.cores) {
        bail!("--cores: {} has cores 0 to {}, not {core}", machine.name, machine.cores - 1);
    }
    Ok(cores.to_vec())
}

/// `first-touch`, `interleave`, `node:N`, or a file with the nodes of addresses.
fn homes(wanted: Option<&str>, machine: &Machine) -> Result<Homes> {
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
    let text = memlode_files::read_text(file, LISTS).with_context(|| {
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

/// `heap`, `stack`, the name of a global variable, or a range.
fn place(text: &str) -> Result<Where, String> {
    let global = |name: &str| {
        let written = memlode_report::names::demangle;
        Where::Memory(NamedMemory::Global { name: name.to_string(), written })
    };
    match text {
        "heap" => Ok(Where::Memory(NamedMemory::Heap)),
        "stack" => Ok(Where::Memory(NamedMemory::Stack)),
        // No name begins with a digit, and only ranges have a dash.
        _ if text.starts_with(|c: char| !c.is_ascii_digit()) && !text.contains('-') => Ok(global(text)),
        _ => match range(text) {
            Ok((first, end)) => Ok(Where::Range(first, end)),
            Err(why) => Err(format!(
                "expected heap, stack, the name of a global variable, or a range; for a range: {why}"
            )),
        },
    }
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
