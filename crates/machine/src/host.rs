//! The machine we run on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::cpuid::{self, CpuidCache};
use crate::machine::{Identity, Level, Machine};
use crate::rules::Rules;
use crate::sysfs::{self, CacheInfo};
use crate::{built_in, file};

/// Bytes of the largest file of the kernel that is read.
const KERNEL: u64 = 64 << 20;

/// Directories and instructions that describe the host. Tests put other directories here.
#[derive(Clone, Debug)]
pub struct HostSources {
    /// Root of sysfs.
    pub sys: PathBuf,
    /// Root of procfs.
    pub proc: PathBuf,
    /// Results of `cpuid`.
    pub cpuid: Vec<CpuidCache>,
    /// The file of [`measured_file`], whether there is one or not.
    pub measured: Option<PathBuf>,
    /// The folder of [`kept_folder`], whether there is one or not.
    pub kept: Option<PathBuf>,
}

/// Returns the file in which `memlode machine calibrate` keeps its results: `memlode/host.toml` in
/// `$XDG_CONFIG_HOME`, else in `$HOME/.config`. `None` if neither variable is set to an absolute
/// path.
pub fn measured_file() -> Option<PathBuf> {
    users_folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("memlode/host.toml"))
}

/// Returns the folder in which measurements that commands make by themselves are kept, a file for
/// each processor: `memlode` in `$XDG_CACHE_HOME`, else in `$HOME/.cache`. `None` if neither variable
/// is set to an absolute path.
pub fn kept_folder() -> Option<PathBuf> {
    users_folder("XDG_CACHE_HOME", ".cache").map(|cache| cache.join("memlode"))
}

fn users_folder(variable: &str, at_home: &str) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder(variable).or_else(|| Some(folder("HOME")?.join(at_home)))
}

impl Default for HostSources {
    fn default() -> HostSources {
        HostSources {
            sys: "/sys".into(),
            proc: "/proc".into(),
            cpuid: cpuid::read(),
            measured: measured_file(),
            kept: kept_folder(),
        }
    }
}

/// Caches found, before latencies are added.
struct Found {
    cores: u32,
    levels: Vec<Level>,
    notes: Vec<String>,
}

impl HostSources {
    /// The file of calibration, if it is of this processor; else what was measured and kept; else
    /// the description from the system.
    pub fn detect(&self) -> Machine {
        let mut notes = Vec::new();
        if let Some(machine) = self.measured(self.measured.as_ref(), &mut notes) {
            return machine;
        }
        let described = self.described(notes);
        self.measured(self.kept_file(&described).as_ref(), &mut Vec::new()).unwrap_or(described)
    }

    /// Returns the file in which measurements of a machine are kept: one for each processor, number
    /// of cores, and caches. `None` if the kernel does not name the processor, or there is no folder.
    pub fn kept_file(&self, described: &Machine) -> Option<PathBuf> {
        let identity = described.identities.first()?;
        let models =
            identity.models.iter().map(|range| range.start().to_string()).collect::<Vec<_>>().join("-");
        let family = identity.family.map_or(String::new(), |family| format!("-{family}"));
        let caches =
            described.levels.iter().map(|level| format!("-{}k{}", level.bytes >> 10, level.shared_by));
        let caches: String = caches.collect();
        let name = format!("host-{}{family}-{models}-{}{caches}.toml", identity.vendor, described.cores);
        let plain =
            |letter: char| if letter.is_ascii_alphanumeric() || "-.".contains(letter) { letter } else { '_' };
        self.kept.as_ref().map(|folder| folder.join(name.chars().map(plain).collect::<String>()))
    }

    /// The machine of a file of calibration, unless there is none or it is of another processor.
    fn measured(&self, path: Option<&PathBuf>, notes: &mut Vec<String>) -> Option<Machine> {
        let path = path?;
        let file = path.display().to_string();
        let text = match memlode_files::read_text(path, memlode_files::SMALL) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                notes.push(format!("{file} cannot be read: {error}"));
                return None;
            }
        };
        let machine = match file::read(&text, &file) {
            Ok(machine) => machine,
            Err(error) => {
                notes.push(format!("{error}; measure again with `memlode machine calibrate`"));
                return None;
            }
        };
        if machine.identities != [self.processor().identity()?] {
            notes.push(format!(
                "{file} was measured on another processor; measure again with `memlode machine calibrate`"
            ));
            return None;
        }
        Some(Machine { name: "host".to_string(), ..machine })
    }

    /// Sysfs if it shows caches, else `cpuid`, else the built-in machine of the same processor,
    /// else `generic`. The system does not give latencies and rules: they are those of the built-in
    /// machine.
    pub fn described(&self, mut notes: Vec<String>) -> Machine {
        let processor = self.processor();
        let (kin, kinship) = processor.kin();
        notes.push(processor.note(&kin, &kinship));
        let found = self.sysfs_caches(&mut notes).or_else(|| self.cpuid_caches(&processor, &mut notes));
        let mut host = kin.clone();
        host.name = "host".to_string();
        host.description = processor.name.clone().unwrap_or_else(|| "this machine".to_string());
        host.identities = processor.identity().into_iter().collect();
        host.file_hash = None;
        if let Some(page_bytes) = self.page_bytes() {
            host.page_bytes = page_bytes;
            if !host.tlbs.iter().any(|tlb| tlb.level == 1 && tlb.page_bytes.contains(&page_bytes)) {
                host.tlbs.clear(); // not known for such pages
            }
        }
        match found {
            Some(found) => {
                notes.extend(found.notes);
                host.cores = found.cores;
                host.nodes = 1;
                host.remote_latency_cycles = host.memory_latency_cycles;
                host.levels = found.levels;
                host.line_bytes = host.levels.last().map_or(kin.line_bytes, |level| level.line_bytes);
                add_the_untold(&mut host, &kin);
            }
            None => notes.push(format!("caches and sharing as in machines/{}.toml", kin.name)),
        }
        host.sources = notes;
        host
    }

    /// Caches from sysfs, if it shows a usable set.
    fn sysfs_caches(&self, notes: &mut Vec<String>) -> Option<Found> {
        let processors = match sysfs::read(&self.sys) {
            Ok(processors) if processors.is_empty() => {
                let place = self.sys.join("devices/system/cpu");
                notes.push(format!("{} shows no caches", place.display()));
                return None;
            }
            Ok(processors) => processors,
            Err(problem) => {
                notes.push(format!("sysfs is incomplete: {problem}"));
                return None;
            }
        };
        let found = from_processors(&processors);
        usable(found, "sysfs", notes)
    }

    fn cpuid_caches(&self, processor: &Processor, notes: &mut Vec<String>) -> Option<Found> {
        let first = self.cpuid.first()?;
        // cpuid counts ids that may exist, rounded up to a power of two; no more can share than there are.
        let core_threads = first.threads.clamp(1, processor.threads);
        let cores = processor.threads.div_ceil(core_threads);
        let level = |cache: &CpuidCache| Level {
            name: name(cache.level),
            bytes: cache.bytes,
            ways: cache.ways,
            line_bytes: cache.line_bytes,
            shared_by: (cache.threads / core_threads).clamp(1, cores),
            latency_cycles: 0,
            latency_spread: None,
            rules: Rules::default(),
            provenance: "cpuid".to_string(),
        };
        let found = Found {
            cores,
            levels: self.cpuid.iter().map(level).collect(),
            notes: vec!["caches: cpuid".into()],
        };
        usable(found, "cpuid", notes)
    }

    fn processor(&self) -> Processor {
        let text = memlode_files::read_text(&self.proc.join("cpuinfo"), KERNEL).unwrap_or_default();
        Processor::parse(&text)
    }

    fn page_bytes(&self) -> Option<u64> {
        let maps = memlode_files::read_text(&self.proc.join("self/smaps"), KERNEL).ok()?;
        let kib = maps.lines().find_map(|line| line.strip_prefix("KernelPageSize:"))?;
        Some(kib.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }
}

/// The first processor in `/proc/cpuinfo`.
#[derive(Default)]
struct Processor {
    name: Option<String>,
    vendor: Option<String>,
    family: Option<u32>,
    model: Option<u32>,
    features: BTreeSet<String>,
    /// Hardware threads online; at least 1.
    threads: u32,
}

impl Processor {
    fn parse(text: &str) -> Processor {
        let number = |value: &str| match value.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        let mut processor = Processor::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let (key, value) = (key.trim(), value.trim());
            match key {
                "processor" => processor.threads += 1,
                "model name" => _ = processor.name.get_or_insert_with(|| value.to_string()),
                "vendor_id" | "CPU implementer" => {
                    _ = processor.vendor.get_or_insert_with(|| value.to_string());
                }
                "cpu family" => processor.family = processor.family.or(number(value)),
                "flags" | "Features" if processor.features.is_empty() => {
                    processor.features = value.split_whitespace().map(str::to_string).collect();
                }
                "model" | "CPU part" => processor.model = processor.model.or(number(value)),
                _ => {}
            }
        }
        processor.threads = processor.threads.max(1);
        processor
    }

    /// Returns the name of this processor; `None` if the kernel does not give it.
    fn identity(&self) -> Option<Identity> {
        let (vendor, model) = (self.vendor.clone()?, self.model?);
        Some(Identity { vendor, family: self.family, models: vec![model..=model], features: Vec::new() })
    }

    /// The built-in machine of the same processor, else the one that has most features in common
    /// with it, else `generic`.
    fn kin(&self) -> (Machine, Kinship) {
        let is_model = |identity: &Identity| {
            Some(&identity.vendor) == self.vendor.as_ref()
                && (identity.family.is_none() || identity.family == self.family)
                && self.model.is_some_and(|model| identity.models.iter().any(|range| range.contains(&model)))
        };
        // Families are no bar: a later core has more than an earlier one.
        let has_features = |identity: &Identity| {
            Some(&identity.vendor) == self.vendor.as_ref()
                && !identity.features.is_empty()
                && identity.features.iter().all(|feature| self.features.contains(feature))
        };
        let (mut nearest, mut shared): (Option<Machine>, Vec<String>) = (None, Vec::new());
        for name in built_in::names() {
            let text = built_in::text(name).expect("named by itself");
            let machine =
                file::read(text, &format!("machines/{name}.toml")).expect("built-in files are tested");
            if machine.identities.iter().any(is_model) {
                return (machine, Kinship::Same);
            }
            let features = machine.identities.iter().find(|identity| has_features(identity));
            let features = features.map(|identity| identity.features.clone()).unwrap_or_default();
            if features.len() > shared.len() || nearest.is_none() && machine.name == "generic" {
                (nearest, shared) = (Some(machine), features);
            }
        }
        let kinship = if shared.is_empty() { Kinship::Unknown } else { Kinship::Near(shared) };
        (nearest.expect("generic is built in"), kinship)
    }

    fn note(&self, kin: &Machine, kinship: &Kinship) -> String {
        let unknown = || "unknown".to_string();
        let show = |number: Option<u32>| number.map_or_else(unknown, |number| format!("{number:#x}"));
        let vendor = self.vendor.clone().unwrap_or_else(unknown);
        let (family, model) = (show(self.family), show(self.model));
        let which = match kinship {
            Kinship::Same => "is that of".to_string(),
            Kinship::Near(features) => {
                format!("is in no machine file; nearest, by {}", features.join(", "))
            }
            Kinship::Unknown => "is in no machine file; nearest".to_string(),
        };
        format!(
            "/proc/cpuinfo: vendor {vendor}, family {family}, model {model} {which}: machines/{}.toml",
            kin.name
        )
    }
}

/// The way in which a built-in machine was found for a processor.
enum Kinship {
    /// It is the same.
    Same,
    /// It has these features in common.
    Near(Vec<String>),
    /// It is `generic`.
    Unknown,
}

/// Machine with the caches of the largest class of cores, for hosts that have several.
fn from_processors(processors: &BTreeMap<u32, Vec<CacheInfo>>) -> Found {
    let shape = |caches: &Vec<CacheInfo>| -> Vec<(u32, u64, u32, u32)> {
        caches.iter().map(|cache| (cache.level, cache.bytes, cache.ways, cache.line_bytes)).collect()
    };
    let mut classes: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (cpu, caches) in processors {
        classes.entry(shape(caches)).or_default().push(*cpu);
    }
    // The performance cores of a hybrid have the larger first level; among equals the more numerous win.
    let class = classes.iter().max_by_key(|(shape, cpus)| (shape[0].1, cpus.len()));
    let (_, cpus) = class.expect("there is a processor");
    let mut notes = Vec::new();
    if classes.len() > 1 {
        let others: Vec<u32> = processors.keys().filter(|cpu| !cpus.contains(cpu)).copied().collect();
        notes.push(format!(
            "cores differ: the caches of processors {} are used, those of processors {} are left out",
            ranges(cpus),
            ranges(&others)
        ));
    }
    // A core is what shares a first level.
    let core_of = |cpu: &u32| processors[cpu][0].shared[0];
    let cores: BTreeSet<u32> = cpus.iter().map(core_of).collect();
    let caches = &processors[&cpus[0]];
    let levels = caches.iter().map(|cache| {
        let sharers: BTreeSet<u32> =
            cache.shared.iter().filter(|cpu| cpus.contains(cpu)).map(core_of).collect();
        Level {
            name: name(cache.level),
            bytes: cache.bytes,
            ways: cache.ways,
            line_bytes: cache.line_bytes,
            shared_by: sharers.len().max(1) as u32,
            latency_cycles: 0,
            latency_spread: None,
            rules: Rules::default(),
            provenance: cache.place.clone(),
        }
    });
    Found { cores: cores.len() as u32, levels: levels.collect(), notes }
}

/// The found levels if they make a possible machine; otherwise a note says why not.
fn usable(mut found: Found, origin: &str, notes: &mut Vec<String>) -> Option<Found> {
    let mut inner: Option<&Level> = None;
    for level in &mut found.levels {
        let set_bytes = u64::from(level.ways) * u64::from(level.line_bytes);
        let line_fits = level.line_bytes.is_power_of_two()
            && level.line_bytes >= inner.map_or(8, |inner| inner.line_bytes)
            && level.line_bytes <= 4096;
        if !line_fits || set_bytes == 0 || level.bytes == 0 || !level.bytes.is_multiple_of(set_bytes) {
            notes.push(format!(
                "{origin} shows an impossible {}: {} bytes, {} ways, lines of {} bytes",
                level.name, level.bytes, level.ways, level.line_bytes
            ));
            return None;
        }
        // Groups of cores need not nest where some processors are offline.
        if let Some(inner) = inner {
            level.shared_by = level.shared_by.next_multiple_of(inner.shared_by);
        }
        inner = Some(level);
    }
    (1..=8).contains(&found.levels.len()).then_some(found)
}

/// Adds facts that no interface gives, from levels of the same rank of the most similar machine:
/// latencies, and the rules that a level of the found shape can have. The outermost corresponds to
/// the outermost.
fn add_the_untold(host: &mut Machine, kin: &Machine) {
    let outermost = host.levels.len() - 1;
    for i in 0..host.levels.len() {
        let (inner, rest) = host.levels.split_at_mut(i);
        let level = &mut rest[0];
        let same = if i == outermost && i > 0 { kin.levels.last() } else { kin.levels.get(i) };
        let same = same.or(kin.levels.last()).expect("a machine has a level");
        level.latency_cycles = same.latency_cycles;
        if same.rules.problem(level, inner.last()).is_none() {
            level.rules = same.rules.clone();
        }
        level.provenance = format!("{}; latency: machines/{}.toml", level.provenance, kin.name);
    }
}

fn name(level: u32) -> String {
    if level == 1 { "L1d".to_string() } else { format!("L{level}") }
}

/// `0-3,8`, of ascending numbers.
fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let show = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(show).collect::<Vec<_>>().join(",")
}
