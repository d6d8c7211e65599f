//! Host detection on the trees that other machines' kernels show.

use std::fs;
use std::path::Path;

use memlode_machine::{CpuidCache, HostSources, Machine, Rules};
use tempfile::TempDir;

/// A tree under construction.
struct Tree(TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn take(&self, path: &str) {
        fs::remove_file(self.0.path().join(path)).unwrap();
    }

    /// Caches of one processor: (index, level, type, size, ways, line, shared).
    fn processor(&self, cpu: u32, caches: &[(u32, &str, &str, u32, u32, String)]) {
        for (index, (level, kind, size, ways, line, shared)) in caches.iter().enumerate() {
            let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            self.put(&format!("{directory}/level"), &level.to_string());
            self.put(&format!("{directory}/type"), kind);
            self.put(&format!("{directory}/size"), size);
            self.put(&format!("{directory}/ways_of_associativity"), &ways.to_string());
            self.put(&format!("{directory}/coherency_line_size"), &line.to_string());
            self.put(&format!("{directory}/shared_cpu_list"), shared);
        }
        // Entries beside the processors and indices that are none.
        self.put(&format!("sys/devices/system/cpu/cpu{cpu}/cache/uevent"), "");
        self.put("sys/devices/system/cpu/cpufreq/boost", "1");
    }

    fn x86(&self, vendor: &str, name: &str, family: u32, model: u32, threads: u32) {
        let one = |cpu| {
            format!(
                "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n\n"
            )
        };
        self.put("proc/cpuinfo", &(0..threads).map(one).collect::<String>());
    }

    fn detect_with(&self, cpuid: Vec<CpuidCache>) -> Machine {
        let root = |name: &str| self.0.path().join(name);
        let (measured, kept) = (Some(root("host.toml")), Some(root("cache")));
        HostSources { sys: root("sys"), proc: root("proc"), cpuid, measured, kept }.detect()
    }

    /// The file in which a measurement is kept, as a path in the tree.
    fn kept_file(&self, described: &Machine) -> String {
        let sources = HostSources { kept: Some("cache".into()), ..HostSources::default() };
        sources.kept_file(described).expect("a file").display().to_string()
    }

    fn detect(&self) -> Machine {
        self.detect_with(Vec::new())
    }
}

/// (bytes, ways, line, shared by) of each level.
fn shapes(machine: &Machine) -> Vec<(u64, u32, u32, u32)> {
    machine.levels.iter().map(|l| (l.bytes, l.ways, l.line_bytes, l.shared_by)).collect()
}

fn latencies(machine: &Machine) -> Vec<u32> {
    machine.levels.iter().map(|level| level.latency_cycles).collect()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A guest with two processors of an EPYC 7763.
#[test]
fn a_guest_on_milan() {
    let tree = Tree::new();
    tree.x86("AuthenticAMD", "AMD EPYC 7763 64-Core Processor", 25, 1, 2);
    for cpu in 0..2 {
        let own = cpu.to_string();
        tree.processor(
            cpu,
            &[
                (1, "Data", "32K", 8, 64, own.clone()),
                (1, "Instruction", "32K", 8, 64, own.clone()),
                (2, "Unified", "512K", 8, 64, own),
                (3, "Unified", "32768K", 16, 64, "0-1".into()),
            ],
        );
    }
    let machine = tree.detect();
    assert_eq!(machine.description, "AMD EPYC 7763 64-Core Processor");
    assert_eq!(machine.cores, 2);
    assert_eq!(shapes(&machine), [(32 * KIB, 8, 64, 1), (512 * KIB, 8, 64, 1), (32 * MIB, 16, 64, 2)]);
    assert_eq!(latencies(&machine), [4, 12, 46]);
    assert_eq!(machine.memory_latency_cycles, Machine::named("zen3").unwrap().memory_latency_cycles);
    assert!(machine.sources[0].ends_with("is that of: machines/zen3.toml"), "{:?}", machine.sources);
    assert!(machine.levels[0].provenance.ends_with("cpu0/cache/index0; latency: machines/zen3.toml"));
    let names: Vec<&str> = machine.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["L1d", "L2", "L3"]);
    // Rules are nowhere to be read, either.
    let zen3 = Machine::named("zen3").unwrap();
    assert_eq!((machine.coherence, &machine.levels[2].rules), (zen3.coherence, &zen3.levels[2].rules));
}

/// A guest of a Skylake server that shows one level of six ways: it can neither be replaced by a
/// tree of bits nor, as the outermost level, be a victim cache.
#[test]
fn rules_that_do_not_fit_the_found_shape_are_left_out() {
    let tree = Tree::new();
    tree.x86("GenuineIntel", "Intel(R) Xeon(R) Platinum 8180", 6, 0x55, 1);
    tree.processor(0, &[(1, "Data", "24K", 6, 64, "0".into())]);
    let machine = tree.detect();
    assert_eq!(shapes(&machine), [(24 * KIB, 6, 64, 1)]);
    assert_eq!(machine.levels[0].rules, Rules::default());
}

/// Two sockets of 28 cores with two threads each, numbered as Linux does: siblings are 56 apart.
#[test]
fn two_sockets_with_two_threads_a_core() {
    let tree = Tree::new();
    tree.x86("GenuineIntel", "Intel(R) Xeon(R) Platinum 8180", 6, 0x55, 112);
    for cpu in 0..112 {
        let core = cpu % 56;
        let threads = format!("{core},{}", core + 56);
        let socket = if core < 28 { "0-27,56-83" } else { "28-55,84-111" };
        tree.processor(
            cpu,
            &[
                (1, "Data", "32K", 8, 64, threads.clone()),
                (1, "Instruction", "32K", 8, 64, threads.clone()),
                (2, "Unified", "1024K", 16, 64, threads),
                (3, "Unified", "39424K", 11, 64, socket.into()),
            ],
        );
    }
    let machine = tree.detect();
    assert_eq!(machine.cores, 56);
    assert_eq!(shapes(&machine), [(32 * KIB, 8, 64, 1), (MIB, 16, 64, 1), (77 * MIB / 2, 11, 64, 28)]);
    assert_eq!(machine.levels[2].sets(), 57344);
}

/// 8 performance cores with two threads, 8 efficiency cores in modules of four, one L3 for all.
#[test]
fn a_hybrid_takes_the_performance_cores_and_says_so() {
    let tree = Tree::new();
    tree.x86("GenuineIntel", "12th Gen Intel(R) Core(TM) i9-12900K", 6, 0x97, 24);
    for cpu in 0..24u32 {
        let (threads, module, l1, l2) = if cpu < 16 {
            let pair = format!("{}-{}", cpu & !1, cpu | 1);
            (pair.clone(), pair, ("48K", 12), ("1280K", 10))
        } else {
            (cpu.to_string(), format!("{}-{}", cpu & !3, cpu | 3), ("32K", 8), ("2048K", 16))
        };
        tree.processor(
            cpu,
            &[
                (1, "Data", l1.0, l1.1, 64, threads),
                (2, "Unified", l2.0, l2.1, 64, module),
                (3, "Unified", "30720K", 12, 64, "0-23".into()),
            ],
        );
    }
    let machine = tree.detect();
    assert_eq!(machine.cores, 8);
    assert_eq!(shapes(&machine), [(48 * KIB, 12, 64, 1), (1280 * KIB, 10, 64, 1), (30 * MIB, 12, 64, 8)]);
    let note = "cores differ: the caches of processors 0-15 are used, those of processors 16-23 are left out";
    assert!(machine.sources.iter().any(|source| source == note), "{:?}", machine.sources);
    assert!(machine.sources[0].ends_with("is in no machine file; nearest: machines/generic.toml"));
}

/// A hypervisor may hide the model, and newer ones are in no file: the machine with which the
/// processor has most features in common is nearest, of the same vendor.
#[test]
fn a_processor_of_unknown_model_is_known_by_its_features() {
    let kin = |vendor: &str, family: u32, model: u32, flags: &str| {
        let tree = Tree::new();
        let identity = format!("vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n");
        tree.put("proc/cpuinfo", &format!("processor\t: 0\n{identity}flags\t\t: {flags}\n"));
        tree.detect()
    };
    for (vendor, family, model, flags, nearest, by) in [
        (
            "GenuineIntel",
            6,
            0xa7,
            "fpu avx2 avx512f vaes avx512_vbmi2 amx_tile",
            "sapphire-rapids",
            "amx_tile",
        ),
        ("GenuineIntel", 6, 0xa7, "fpu avx2 avx512f avx512_vbmi2", "icelake-sp", "avx512f, avx512_vbmi2"),
        ("AuthenticAMD", 26, 2, "avx512f avx2 vaes", "zen4", "avx2, vaes, avx512f"),
        ("AuthenticAMD", 23, 1, "avx2", "generic", "nearest"),
        ("Other", 6, 0xa7, "avx512f avx512_vbmi2 amx_tile", "generic", "nearest"),
    ] {
        let host = kin(vendor, family, model, flags);
        let known = Machine::named(nearest).unwrap();
        assert_eq!((&host.tlbs, &host.in_flight), (&known.tlbs, &known.in_flight), "{nearest}");
        let note = &host.sources[0];
        assert!(note.contains("is in no machine file; nearest"), "{note}");
        assert!(note.ends_with(&format!("{by}: machines/{nearest}.toml")), "{note}");
    }
    let host = kin("GenuineIntel", 6, 0x55, "avx512f avx512_vbmi2 amx_tile");
    assert!(
        host.sources[0].ends_with("is that of: machines/skylake-sp.toml"),
        "a known model: {:?}",
        host.sources
    );
}

/// A kernel without cache directories: `cpuid` is used. Leaf 4 counts identifiers, of which there
/// may be more than threads.
#[test]
fn without_cache_directories_cpuid_answers() {
    let tree = Tree::new();
    tree.x86("GenuineIntel", "Intel(R) Xeon(R) Platinum 8481C", 6, 0x8f, 4);
    tree.put("sys/devices/system/cpu/cpu0/online", "1");
    let cache = |level, bytes, ways, threads| CpuidCache { level, bytes, ways, line_bytes: 64, threads };
    let machine = tree.detect_with(vec![
        cache(1, 48 * KIB, 12, 2),
        cache(2, 2 * MIB, 16, 2),
        cache(3, 105 * MIB, 15, 128),
    ]);
    assert_eq!(machine.cores, 2);
    assert_eq!(shapes(&machine), [(48 * KIB, 12, 64, 1), (2 * MIB, 16, 64, 1), (105 * MIB, 15, 64, 2)]);
    assert_eq!(latencies(&machine), [5, 15, 125]);
    assert!(machine.levels[0].provenance.starts_with("cpuid; "));
    assert!(
        machine.sources.iter().any(|source| source.ends_with("shows no caches")),
        "{:?}",
        machine.sources
    );
}

/// An Arm guest whose firmware describes no caches: the description of the same processor serves.
#[test]
fn an_arm_guest_without_anything_takes_its_machine_file() {
    let tree = Tree::new();
    let one = "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n\n";
    tree.put("proc/cpuinfo", &(0..4).map(|cpu| format!("processor\t: {cpu}\n{one}")).collect::<String>());
    let machine = tree.detect();
    let n1 = Machine::named("neoverse-n1").unwrap();
    assert_eq!((machine.name.as_str(), &machine.levels, machine.cores), ("host", &n1.levels, n1.cores));
    assert!(machine.sources.iter().any(|s| s == "caches and sharing as in machines/neoverse-n1.toml"));
}

/// Device trees often give sizes for some levels only.
#[test]
fn incomplete_directories_are_named_and_not_used() {
    let tree = Tree::new();
    tree.x86("AuthenticAMD", "", 25, 0x11, 1);
    tree.processor(0, &[(1, "Data", "32K", 8, 64, "0".into()), (2, "Unified", "1024K", 8, 64, "0".into())]);
    tree.take("sys/devices/system/cpu/cpu0/cache/index1/size");
    let machine = tree.detect();
    assert_eq!(machine.levels, Machine::named("zen4").unwrap().levels);
    let said =
        machine.sources.iter().any(|s| s.starts_with("sysfs is incomplete: ") && s.contains("index1/size"));
    assert!(said, "{:?}", machine.sources);
}

/// A fully associative cache shows zero ways; the number of sets determines it.
#[test]
fn fully_associative_caches_are_understood() {
    let tree = Tree::new();
    tree.processor(0, &[(1, "Data", "4K", 0, 64, "0".into())]);
    tree.put("sys/devices/system/cpu/cpu0/cache/index0/number_of_sets", "1");
    assert_eq!(shapes(&tree.detect()), [(4 * KIB, 64, 64, 1)]);
}

/// Half of a pair offline, and a list that does not name the processor it belongs to.
#[test]
fn odd_sharing_is_survived() {
    let tree = Tree::new();
    for cpu in [0, 2, 3] {
        let pair = if cpu < 2 { "0" } else { "2-3" };
        let liar = if cpu == 3 { "7" } else { "0,2-3" };
        tree.processor(
            cpu,
            &[(1, "Data", "32K", 8, 64, pair.into()), (2, "Unified", "1M", 16, 64, liar.into())],
        );
    }
    let machine = tree.detect();
    assert_eq!((machine.cores, machine.levels[0].shared_by, machine.levels[1].shared_by), (2, 1, 2));
}

#[test]
fn nonsense_in_the_tree_falls_back_on_what_is_known() {
    let whole = |path: &str, text: &str| {
        let tree = Tree::new();
        tree.processor(0, &[(1, "Data", "32K", 8, 64, "0".into()), (2, "Unified", "1M", 16, 64, "0".into())]);
        tree.put(&format!("sys/devices/system/cpu/cpu0/cache/{path}"), text);
        let machine = tree.detect();
        assert_eq!(machine.levels, Machine::named("generic").unwrap().levels, "{path} {text}");
        assert!(machine.sources.len() >= 3, "{:?}", machine.sources);
    };
    whole("index0/size", "huge");
    whole("index0/size", "99999999999999999G");
    whole("index0/coherency_line_size", "0");
    whole("index0/coherency_line_size", "48");
    whole("index0/ways_of_associativity", "7");
    whole("index0/ways_of_associativity", "99999999999");
    whole("index1/level", "outer");
    whole("index1/coherency_line_size", "32");
}

/// The host, whatever it is, has a first level, and each level has its source. An earlier
/// calibration is another test's subject.
#[test]
fn the_real_host() {
    let machine = HostSources { measured: None, kept: None, ..HostSources::default() }.detect();
    assert_eq!(machine.name, "host");
    assert!(machine.cores >= 1 && machine.page_bytes >= 4096);
    assert!(machine.levels[0].bytes >= 4 * KIB);
    assert!(machine.levels.iter().all(|level| !level.provenance.is_empty() && level.latency_cycles > 0));
    let kernel_shows = Path::new("/sys/devices/system/cpu/cpu0/cache/index0/size");
    if kernel_shows.exists() {
        assert!(machine.levels[0].provenance.starts_with("/sys/"), "{}", machine.levels[0].provenance);
    }
}

#[test]
fn what_was_measured_here_is_the_host_and_nothing_else_is() {
    let tree = Tree::new();
    tree.x86("AuthenticAMD", "AMD EPYC 7763 64-Core Processor", 25, 1, 2);
    let described = tree.detect();
    assert!(described.file_hash.is_none());
    let mut measured = described.clone();
    measured.levels[0].latency_cycles = 3;
    measured.levels[0].latency_spread = Some(0.02);
    tree.put("host.toml", &measured.to_toml());
    let host = tree.detect();
    assert_eq!((host.levels[0].latency_cycles, host.name.as_str()), (3, "host"));
    assert_eq!(host.known(), memlode_machine::Provenance::PartlyMeasured);
    assert_eq!(host.file_hash.as_ref().map(String::len), Some(12));

    // Files of another processor, damaged and unreadable ones are told and not used.
    let refused = |why: &str| {
        let host = tree.detect();
        assert_eq!(host.levels[0].latency_cycles, described.levels[0].latency_cycles);
        assert!(host.sources.iter().any(|note| note.contains(why)), "{:?}", host.sources);
    };
    measured.identities[0].models = vec![2..=2];
    tree.put("host.toml", &measured.to_toml());
    refused("was measured on another processor; measure again with `memlode machine calibrate`");
    tree.put("host.toml", "cores = ");
    refused("host.toml:1:");
    tree.take("host.toml");
    tree.put("host.toml/a", "");
    refused("host.toml cannot be read");
}

#[test]
fn what_was_kept_is_the_host_of_the_same_processor_unless_another_was_calibrated() {
    let tree = Tree::new();
    tree.x86("AuthenticAMD", "AMD EPYC 7763 64-Core Processor", 25, 1, 2);
    let described = tree.detect();
    let measured = |latency: u32| {
        let mut measured = described.clone();
        measured.levels[0].latency_cycles = latency;
        measured.levels[0].latency_spread = Some(0.02);
        measured.to_toml()
    };
    tree.put(&tree.kept_file(&described), &measured(3));
    assert_eq!(tree.detect().levels[0].latency_cycles, 3);
    tree.put("host.toml", &measured(5));
    assert_eq!(tree.detect().levels[0].latency_cycles, 5);
    tree.take("host.toml");
    // A damaged file is as none, and another processor has another one.
    tree.put(&tree.kept_file(&described), "cores = ");
    assert_eq!(tree.detect().levels[0].latency_cycles, described.levels[0].latency_cycles);
    tree.put(&tree.kept_file(&described), &measured(3));
    tree.x86("AuthenticAMD", "AMD EPYC 9654 96-Core Processor", 25, 17, 2);
    assert_ne!(tree.detect().levels[0].latency_spread, Some(0.02));
}
