//! Machine files: what is read, and the errors of files that make no sense.

use memlode_machine::{Allocate, Coherence, Inclusion, Machine, Prefetch, Replacement, Rules, Write};
use proptest::prelude::*;

const GOOD: &str = r#"name = "test"
description = "A machine for tests"
sources = ["made up"]
cores = 8
line_bytes = 64
memory_latency_cycles = 200

[[level]]
name = "L1d"
size = "48 KiB"
ways = 12
latency_cycles = 5

[[level]]
name = "L2"
size = 1310720
ways = 20
shared_by = 2
latency_cycles = 14

[[level]]
name = "L3"
size = "1.375 MiB" # smaller than twice the L2: allowed
ways = 11
line_bytes = 128
shared_by = 8
latency_cycles = 60
"#;

#[test]
fn a_file_is_read() {
    let machine = Machine::from_toml(GOOD, "test.toml").unwrap();
    assert_eq!((machine.name.as_str(), machine.cores, machine.page_bytes), ("test", 8, 4096));
    let shapes: Vec<_> = machine
        .levels
        .iter()
        .map(|level| (level.bytes, level.ways, level.line_bytes, level.shared_by, level.sets()))
        .collect();
    assert_eq!(shapes, [(49152, 12, 64, 1, 64), (1310720, 20, 64, 2, 1024), (1441792, 11, 128, 8, 1024)]);
    assert!(machine.levels.iter().all(|level| level.provenance == "test.toml"));
}

/// Parts of a core besides caches, behind [`GOOD`]'s keys.
const CORE: &str = r#"memory_latency_cycles = 200
page_walk_cycles = 30
store_buffer_entries = 56
reorder_buffer_entries = 224
nodes = 2
remote_memory_latency_cycles = 340
tlb = [
  { name = "DTLB", level = 1, pages = ["4 KiB", "2 MiB"], entries = 64, ways = 4 },
  { name = "STLB", level = 2, pages = ["4 KiB"], entries = 1536, ways = 12, latency_cycles = 7 },
]"#;

#[test]
fn what_a_core_has_besides_caches_is_read() {
    let text = GOOD.replacen("memory_latency_cycles = 200", CORE, 1);
    let machine = Machine::from_toml(&text, "test.toml").unwrap();
    let found: Vec<_> = machine.tlbs.iter().map(|t| (t.level, t.entries, t.ways, t.latency_cycles)).collect();
    assert_eq!(found, [(1, 64, 4, 0), (2, 1536, 12, 7)]);
    assert_eq!(machine.tlbs[0].page_bytes, [4096, 2 << 20]);
    let flight = machine.in_flight.unwrap();
    assert_eq!(
        (machine.page_walk_cycles, flight.stores, flight.instructions, machine.remote_latency_cycles),
        (30, 56, 224, 340)
    );
    let without = Machine::from_toml(GOOD, "test.toml").unwrap();
    assert_eq!(
        (without.tlbs, without.in_flight, without.nodes, without.remote_latency_cycles),
        (vec![], None, 1, 200)
    );
}

/// The rules of the second level of [`GOOD`].
const RULES: &str = r#"shared_by = 2
replacement = "srrip"
inclusion = "inclusive"
write = "through"
allocate = "reads"
prefetch = ["adjacent-line", "stream"]
sector = "32 B"
"#;

#[test]
fn rules_are_read_and_absent_ones_are_the_simplest() {
    let text = GOOD.replacen("shared_by = 2\n", RULES, 1).replacen(
        "cores = 8",
        "cores = 8\ncoherence = \"mesi\"",
        1,
    );
    let machine = Machine::from_toml(&text, "test.toml").unwrap();
    let expected = Rules {
        replacement: Replacement::Srrip,
        inclusion: Inclusion::Inclusive,
        write: Write::Through,
        allocate: Allocate::Reads,
        prefetch: vec![Prefetch::AdjacentLine, Prefetch::Stream],
        sector_bytes: Some(32),
    };
    assert_eq!(machine.levels[1].rules, expected);
    assert_eq!((&machine.levels[0].rules, machine.coherence), (&Rules::default(), Coherence::Mesi));
    let plain = Machine::from_toml(GOOD, "test.toml").unwrap();
    assert_eq!((&plain.levels[1].rules, plain.coherence), (&Rules::default(), Coherence::None));
    assert_eq!(
        (plain.levels[1].rules.replacement, plain.levels[1].rules.allocate),
        (Replacement::Lru, Allocate::ReadsAndWrites)
    );
}

#[test]
fn impossible_rules_are_refused_with_their_key() {
    for (line, by, expected) in [
        (
            "ways = 12",
            "ways = 12\nreplacement = \"tree-plru\"",
            "test.toml:12: level 1: `replacement`: expected a power of two of ways for \"tree-plru\", found 12",
        ),
        (
            "ways = 12",
            "ways = 12\nreplacement = \"plru\"",
            "test.toml:12: level 1: `replacement`: expected one of \"lru\", \"tree-plru\", \"srrip\", \"brrip\", \
             \"fifo\", \"random\", found \"plru\"",
        ),
        (
            "ways = 12",
            "ways = 12\ninclusion = \"exclusive\"",
            "test.toml:12: level 1: `inclusion`: expected \"non-inclusive\": no level is inside this one",
        ),
        (
            "ways = 11",
            "ways = 11\ninclusion = \"exclusive\"",
            "test.toml:25: level 3: `inclusion`: expected the lines and sectors of L2 for \"exclusive\"",
        ),
        (
            "ways = 20",
            "ways = 20\ninclusion = \"exclusive\"\nprefetch = [\"stream\"]",
            "test.toml:19: level 2: `prefetch`: expected no prefetchers in an \"exclusive\" level",
        ),
        (
            "ways = 12",
            "ways = 12\nprefetch = \"stream\"",
            "test.toml:12: level 1: `prefetch`: expected a list of strings, found \"stream\"",
        ),
        (
            "ways = 12",
            "ways = 12\nprefetch = [3]",
            "test.toml:12: level 1: `prefetch`: expected one of \"next-line\", \"adjacent-line\", \"stride\", \
             \"stream\", found 3",
        ),
        (
            "ways = 12",
            "ways = 12\nsector = \"24 B\"",
            "test.toml:12: level 1: `sector`: expected a power of two that divides the line of 64 bytes by at most \
             64, found 24",
        ),
        (
            "ways = 12",
            "ways = 12\nwrite = true",
            "test.toml:12: level 1: `write`: expected one of \"back\", \"through\", found true",
        ),
        (
            "cores = 8",
            "cores = 8\ncoherence = \"moesi\"",
            "test.toml:5: `coherence`: expected one of \"none\", \"mesi\", found \"moesi\"",
        ),
    ] {
        assert_eq!(message(line, by), expected);
    }
}

#[test]
fn nonsense_about_a_core_is_refused() {
    for (part, by, expected) in [
        (
            "page_walk_cycles = 30\n",
            "",
            "`page_walk_cycles`: missing; expected a whole number from 1 to 100000",
        ),
        ("level = 2", "level = 3", "tlb 2: `level`: expected a whole number from 1 to 2, found 3"),
        (
            "level = 2",
            "level = 1",
            "tlb 2: `pages`: expected sizes that DTLB of the same level does not hold",
        ),
        (
            "[\"4 KiB\", \"2 MiB\"]",
            "[\"2 MiB\"]",
            "`tlb`: expected one of level 1 that holds pages of 4096 bytes, found none",
        ),
        (
            "[\"4 KiB\", \"2 MiB\"]",
            "[4096]",
            "tlb 1: `pages`: expected a list of sizes such as [\"4 KiB\", \"2 MiB\"], found an array",
        ),
        ("\"2 MiB\"", "\"3 MiB\"", "tlb 1: `pages`: expected powers of two, found 3145728"),
        ("\"2 MiB\"", "\"1 KiB\"", "tlb 1: `pages`: expected sizes of 4096 to 1073741824 bytes, found 1024"),
        ("entries = 64", "entries = 60", "tlb 1: `entries`: expected 4 ways times a power of two, found 60"),
        (
            ", latency_cycles = 7",
            "",
            "tlb 2: `latency_cycles`: missing; expected a whole number from 0 to 100000",
        ),
        (
            "store_buffer_entries = 56\n",
            "",
            "`store_buffer_entries`: missing; expected a whole number from 1 to 1048576",
        ),
        ("nodes = 2", "nodes = 3", "`nodes`: expected a number that divides the 8 cores, found 3"),
        (
            "remote_memory_latency_cycles = 340",
            "remote_memory_latency_cycles = 199",
            "`remote_memory_latency_cycles`: expected a whole number from 200 to 100000, found 199",
        ),
        (
            "remote_memory_latency_cycles = 340\n",
            "",
            "`remote_memory_latency_cycles`: missing; expected a whole number from 200 to 100000",
        ),
        ("nodes = 2", "nodes = 1", "`remote_memory_latency_cycles`: expected `nodes` of more than 1 with it"),
    ] {
        assert!(CORE.contains(part), "{part}");
        let text = GOOD.replacen("memory_latency_cycles = 200", &CORE.replacen(part, by, 1), 1);
        let error = Machine::from_toml(&text, "test.toml").expect_err(by).to_string();
        let (place, message) = error.split_once(": ").unwrap();
        assert!(place.starts_with("test.toml:"), "{error}");
        assert_eq!(message, expected);
    }
}

/// Replaces a line of [`GOOD`] and gives the message.
fn message(line: &str, by: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    let error = Machine::from_toml(&GOOD.replacen(line, by, 1), "test.toml").expect_err(by);
    error.to_string()
}

#[test]
fn nonsense_is_refused_with_file_line_key_expectation_and_finding() {
    for (line, by, expected) in [
        (
            "ways = 12",
            "ways = 0",
            "test.toml:11: level 1: `ways`: expected a whole number from 1 to 65536, found 0",
        ),
        (
            "ways = 12",
            "ways = -3",
            "test.toml:11: level 1: `ways`: expected a whole number from 1 to 65536, found -3",
        ),
        (
            "ways = 12",
            "ways = 7.5",
            "test.toml:11: level 1: `ways`: expected a whole number from 1 to 65536, found 7.5",
        ),
        (
            "ways = 12",
            "ways = \"many\"",
            "test.toml:11: level 1: `ways`: expected a whole number from 1 to 65536, found \"many\"",
        ),
        (
            "ways = 12",
            "ways = 99999999999999999999999999",
            "test.toml:11: level 1: `ways`: expected a whole number from 1 to 65536, \
             found 99999999999999999999999999",
        ),
        ("ways = 12\n", "", "test.toml:8: level 1: `ways`: missing; expected a whole number from 1 to 65536"),
        (
            "size = \"48 KiB\"",
            "size = \"50 KiB\"",
            "test.toml:10: level 1: `size`: expected a multiple of 12 ways × 64 bytes = 768, found 51200",
        ),
        (
            "size = \"48 KiB\"",
            "size = \"48 KB\"",
            "test.toml:10: level 1: `size`: expected a size such as \"32 KiB\", \"1.25 MiB\" or a number of bytes, \
             found \"48 KB\"",
        ),
        (
            "size = \"48 KiB\"",
            "size = \"96000 GiB\"",
            "test.toml:10: level 1: `size`: expected 1 to 17179869184 bytes, found \"96000 GiB\"",
        ),
        (
            "size = \"48 KiB\"",
            "size = true",
            "test.toml:10: level 1: `size`: expected a whole number from 1 to 17179869184, found true",
        ),
        (
            "line_bytes = 64",
            "line_bytes = 48",
            "test.toml:5: `line_bytes`: expected a power of two, found 48",
        ),
        (
            "line_bytes = 128",
            "line_bytes = 32",
            "test.toml:25: level 3: `line_bytes`: expected at least the 64 bytes of L2, found 32",
        ),
        (
            "shared_by = 8",
            "shared_by = 9",
            "test.toml:26: level 3: `shared_by`: expected at most the 8 cores, found 9",
        ),
        (
            "shared_by = 8",
            "shared_by = 7",
            "test.toml:26: level 3: `shared_by`: expected a multiple of the 2 cores that share L2, found 7",
        ),
        (
            "shared_by = 8\n",
            "",
            "test.toml:21: level 3: `shared_by`: expected a multiple of the 2 cores that share L2, found 1",
        ),
        (
            "latency_cycles = 14",
            "latency_cycles = 4",
            "test.toml:19: level 2: `latency_cycles`: expected at least the 5 cycles of L1d, found 4",
        ),
        ("cores = 8", "cores = 0", "test.toml:4: `cores`: expected a whole number from 1 to 4096, found 0"),
        (
            "cores = 8",
            "cores = [8]",
            "test.toml:4: `cores`: expected a whole number from 1 to 4096, found an array",
        ),
        ("name = \"test\"", "name = \"  \"", "test.toml:1: `name`: expected a string, found an empty one"),
        (
            "sources = [\"made up\"]",
            "sources = \"made up\"",
            "test.toml:3: `sources`: expected a list of strings, found \"made up\"",
        ),
        (
            "cores = 8",
            "cores = 8\ncolour = \"red\"",
            "test.toml:5: unknown key `colour`; known keys: name, description, sources, cores, line_bytes, \
             page_bytes, memory_latency_cycles, level, identified_by, tlb, store_buffer_entries, \
             reorder_buffer_entries, nodes, remote_memory_latency_cycles, coherence, cost, memory_latency_spread, page_walk_spread",
        ),
        (
            "ways = 12",
            "way = 12\nways = 12",
            "test.toml:11: level 1: unknown key `way`; known keys: name, size, ways, line_bytes, shared_by, \
             latency_cycles, latency_spread, replacement, inclusion, write, allocate, prefetch, sector",
        ),
    ] {
        assert_eq!(message(line, by), expected);
    }
}

#[test]
fn the_number_of_levels_is_bounded() {
    let (head, _) = GOOD.split_once("[[level]]").unwrap();
    let level = "[[level]]\nname = \"L\"\nsize = 4096\nways = 4\nlatency_cycles = 1\n";
    let with = |n| Machine::from_toml(&format!("{head}{}", level.repeat(n)), "test.toml");
    assert_eq!(with(8).unwrap().levels.len(), 8);
    for n in [0, 9] {
        let error = with(n).unwrap_err().to_string();
        assert!(error.contains("`level`: expected 1 to 8 tables headed [[level]]"), "{error}");
    }
    let error = Machine::from_toml(&format!("{head}level = 3"), "test.toml").unwrap_err().to_string();
    assert_eq!(error, "test.toml:8: `level`: expected tables headed [[level]], found 3");
}

#[test]
fn processors_are_told_by_models_and_ranges_of_models() {
    let with = |models: &str| {
        let text = format!("{GOOD}\n[[identified_by]]\nvendor = \"X\"\nmodels = {models}\n");
        Machine::from_toml(&text, "test.toml").map(|machine| machine.identities[0].models.clone())
    };
    assert_eq!(with("[1, [0x10, 0x1f]]").unwrap(), [1..=1, 16..=31]);
    let expected = "test.toml:31: identified_by 1: `models`: expected a list of whole numbers and of pairs \
                    [first, last], found an array";
    assert_eq!(with("[[1, 2, 3]]").unwrap_err().to_string(), expected);
    let expected =
        "test.toml:31: identified_by 1: `models`: expected a whole number from 5 to 65535, found 2";
    assert_eq!(with("[[5, 2]]").unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    let error = message("ways = 12", "ways = = 12");
    assert!(error.starts_with("test.toml:11: "), "{error}");
    let error = message("ways = 12", "ways = 12\nways = 13");
    assert!(error.starts_with("test.toml:12: "), "{error}");
    assert!(
        Machine::from_toml("", "empty.toml").unwrap_err().to_string().starts_with("empty.toml:1: `name`")
    );
}

#[test]
fn names_and_paths() {
    assert_eq!(Machine::find("generic").unwrap().name, "generic");
    let error = Machine::find("zen33").unwrap_err().to_string();
    assert!(error.starts_with("there is no machine named `zen33`; give `host`, a path"), "{error}");
    assert!(error.contains("zen3, zen4"), "{error}");
    let error = Machine::find("/nowhere/at/all.toml").unwrap_err().to_string();
    assert!(error.starts_with("cannot read the machine file /nowhere/at/all.toml: "), "{error}");
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), GOOD).unwrap();
    assert_eq!(Machine::find(file.path().to_str().unwrap()).unwrap().levels.len(), 3);
}

proptest! {
    /// Any change of the text gives a result, and if that is a machine, a possible one.
    #[test]
    fn damaged_files_never_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, "[ -~\n]{0,6}"), 1..6),
    ) {
        let mut text = GOOD.to_string();
        for (at, length, by) in cuts {
            let at = at.index(text.len());
            let (from, to) = (text.floor_char_boundary(at), text.ceil_char_boundary((at + length).min(text.len())));
            text.replace_range(from..to, &by);
        }
        if let Ok(machine) = Machine::from_toml(&text, "test.toml") {
            for level in &machine.levels {
                prop_assert!(level.sets() > 0 && level.line_bytes.is_power_of_two());
                prop_assert!((1..=machine.cores).contains(&level.shared_by));
            }
        }
    }
}

#[test]
fn a_machine_that_is_written_is_read_again() {
    for name in memlode_machine::names() {
        let mut machine = Machine::named(name).unwrap();
        machine.costs.overlap_l2.spread = Some(0.125);
        machine.costs.far = Some(machine.costs.near);
        machine.spreads.memory = Some(0.05);
        machine.levels[0].latency_spread = Some(0.0);
        for level in &mut machine.levels {
            level.provenance = "again.toml".to_string();
        }
        let text = machine.to_toml();
        let again = Machine::from_toml(&text, "again.toml").unwrap();
        assert_ne!(again.file_hash, machine.file_hash);
        assert_eq!(Machine { file_hash: machine.file_hash.clone(), ..again }, machine, "{text}");
    }
}

#[test]
fn costs_are_measured_or_assumed() {
    let machine = Machine::from_toml(GOOD, "test.toml").unwrap();
    assert_eq!(machine.costs, memlode_machine::Costs::ASSUMED);
    let cost = "\n[cost]\noverlap_memory = 10\nread_line_cycles = 7.5\nread_line_cycles_spread = 0.04\n[cost.far]\nuse_cycles = 30\n";
    let machine = Machine::from_toml(&format!("{GOOD}{cost}"), "test.toml").unwrap();
    assert_eq!(
        (machine.costs.overlap_memory.value, machine.costs.overlap_memory.is_measured()),
        (10.0, false)
    );
    assert_eq!(
        (machine.costs.read_line_cycles.value, machine.costs.read_line_cycles.spread),
        (7.5, Some(0.04))
    );
    // What is not said of far lines is as for near ones.
    let far = machine.costs.far.unwrap();
    assert_eq!((far.use_cycles.value, far.transfer_cycles), (30.0, machine.costs.near.transfer_cycles));
    for (cost, line, message) in [
        (
            "overlap_memory_spread = 0.1",
            30,
            "cost: `overlap_memory_spread`: expected `overlap_memory` with it",
        ),
        ("clock_ghz = 3\nclock_ghz_spread = 0.5", 31, "expected a number from 0 to 0.25, found 0.5"),
        ("clock_ghz = nan", 30, "expected a number from 0.01 to 100, found nan"),
        ("clock = 3", 30, "unknown key `clock`"),
        ("near = 3", 30, "expected a table headed [near], found 3"),
    ] {
        let error =
            Machine::from_toml(&format!("{GOOD}\n[cost]\n{cost}\n"), "test.toml").unwrap_err().to_string();
        assert!(error.contains(message) && error.starts_with(&format!("test.toml:{line}:")), "{error}");
    }
}
