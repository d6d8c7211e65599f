//! Kernels whose units and refusals are known.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::*;
use crate::perf_data::PerfData;

/// A fake kernel with these units, which refuses events.
#[derive(Default)]
struct Fake {
    files: HashMap<String, &'static str>,
    /// The error of events of the processor, and of the kernel's own.
    refusal: Option<(i32, i32)>,
    paranoid: i32,
}

impl SamplingKernel for Fake {
    fn unit_file(&self, path: &str) -> Option<String> {
        self.files.get(path).map(|text| format!("{text}\n"))
    }

    fn open(&self, events: &[EventAttributes]) -> io::Result<()> {
        let (hardware, software) = self.refusal.unwrap_or((0, 0));
        let errno = if events[0].kind == kind::SOFTWARE { software } else { hardware };
        // Sapphire Rapids samples loads beside their auxiliary event alone.
        let is_loads = |event: &EventAttributes| event.config == 0x1cd;
        let alone = self.files.contains_key("cpu/events/mem-loads-aux") && is_loads(&events[0]);
        match if alone { libc::ENODATA } else { errno } {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn paranoid(&self) -> Option<i32> {
        Some(self.paranoid)
    }
}

/// A processor of Intel's, as the kernel's own tables of the family describe it.
fn intel(loads: &'static str, stores: &'static str, most_precise: &'static str) -> Fake {
    let files = [
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/ldlat", "config1:0-15"),
        ("cpu/events/mem-loads", loads),
        ("cpu/events/mem-stores", stores),
        ("cpu/caps/max_precise", most_precise),
    ];
    Fake { files: of(&files), paranoid: 2, ..Fake::default() }
}

fn of(files: &[(&str, &'static str)]) -> HashMap<String, &'static str> {
    files.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect()
}

const LOADS: &str = "event=0xcd,umask=0x1,ldlat=3";

/// The events are those that `perf` opened on such machines, compared with the headers of its
/// recordings.
#[test]
fn attributes_are_those_in_the_headers_of_recordings() {
    let coffee_lake = intel(LOADS, "event=0xd0,umask=0x82", "3");
    let ivy_town = intel(LOADS, "event=0xcd,umask=0x2", "2");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf_data");
    for (kernel, recording, latency, recorded) in [
        // perf joins the bits of 30 with those of the 3 that the kernel's text has.
        (&coffee_lake, "loads-stores.data", 30, 30 | 3),
        (&ivy_town, "old-kernel.data", 3, 3),
    ] {
        let data = PerfData::open(&folder.join(recording)).expect("a recording");
        let ours: Vec<SampledEvent> = memory_events(kernel, latency).into_iter().flatten().collect();
        for (event, ours) in data.events().iter().zip(&ours) {
            let (theirs, ours) = (&event.attributes, &ours.attributes);
            assert_eq!((theirs.kind, theirs.config), (ours.kind, ours.config), "{}", event.name);
            assert_eq!(theirs.precision(), ours.precision(), "{}", event.name);
            assert_eq!((theirs.period, theirs.flags & flag::RATE), (ours.period, ours.flags & flag::RATE));
            // Older kernels, and one event alone, need no number.
            let fields = ours.layout.sample_type & !field::ID;
            assert_eq!(theirs.layout.sample_type & !field::ID, fields, "{}", event.name);
        }
        assert_eq!(data.events()[0].attributes.config1, recorded);
        assert_eq!(ours[0].attributes.config1, latency);
        assert_eq!(ours.len(), 2);
    }
    assert_eq!(memory_events(&coffee_lake, 64)[0][0].name, "cpu/mem-loads,ldlat=64/P");
}

/// Codes from what the kernel says of each family (`arch/x86/events/intel/core.c`) are those of libpfm4.
#[test]
fn codes_are_those_of_libpfm4() {
    const OLD: &str = "event=0x0b,umask=0x10,ldlat=3";
    const PRECISE_STORE: &str = "event=0xcd,umask=0x2";
    const ALL_STORES: &str = "event=0xd0,umask=0x82";
    let families = [
        ("nhm", OLD, "MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD", None),
        ("wsm", OLD, "MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD", None),
        (
            "snb",
            LOADS,
            "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD",
            Some((PRECISE_STORE, "MEM_TRANS_RETIRED:PRECISE_STORE")),
        ),
        (
            "ivb",
            LOADS,
            "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD",
            Some((PRECISE_STORE, "MEM_TRANS_RETIRED:PRECISE_STORE")),
        ),
        (
            "hsw",
            LOADS,
            "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD",
            Some((ALL_STORES, "MEM_UOPS_RETIRED:ALL_STORES")),
        ),
        (
            "bdw",
            LOADS,
            "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD",
            Some((ALL_STORES, "MEM_UOPS_RETIRED:ALL_STORES")),
        ),
        (
            "skx",
            LOADS,
            "MEM_TRANS_RETIRED:LATENCY_ABOVE_THRESHOLD",
            Some((ALL_STORES, "MEM_INST_RETIRED:ALL_STORES")),
        ),
        ("icl", LOADS, "MEM_TRANS_RETIRED:LOAD_LATENCY", Some((ALL_STORES, "MEM_INST_RETIRED:ALL_STORES"))),
        // Its stores libpfm4 4.13 encodes with the bit of its loads besides.
        ("spr", LOADS, "MEM_TRANS_RETIRED:LOAD_LATENCY", None),
    ];
    let mut names = Vec::new();
    let mut ours = String::new();
    for (table, loads, load, stores) in families {
        let mut kernel = intel(loads, stores.map_or("", |(text, _)| text), "2");
        kernel.files.retain(|path, text| !path.ends_with("mem-stores") || !text.is_empty());
        let events: Vec<SampledEvent> = memory_events(&kernel, 30).into_iter().flatten().collect();
        assert_eq!(events.len(), 1 + usize::from(stores.is_some()), "{table}");
        names.push(format!("{table}::{load}:ldlat=30"));
        names.extend(stores.map(|(_, store)| format!("{table}::{store}")));
        let numbers = |event: &SampledEvent| {
            let EventAttributes { config, config1, .. } = event.attributes;
            if config1 == 0 { format!("{config}\n") } else { format!("{config} {config1}\n") }
        };
        ours.extend(events.iter().map(numbers));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/events.py");
    let output = Command::new("python3").arg("-B").arg(script).args(&names).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), ours, "{names:?}");
}

/// The kernel gets the attributes of an event, and nothing is lost on the way.
#[test]
fn what_is_opened_is_what_was_encoded() {
    let kernel = intel(LOADS, "event=0xd0,umask=0x82", "3");
    for way in [TierKind::Clock, TierKind::Counters, TierKind::Precise] {
        for event in events(&kernel, way, 1000).expect("all ways").into_iter().flatten() {
            let mut builder = event_builder(&event.attributes);
            let attributes = builder.attrs_mut();
            // SAFETY: the kernel's structure is plain numbers, and lives until the end of the block.
            let bytes = unsafe {
                std::slice::from_raw_parts(
                    std::ptr::from_mut(attributes).cast::<u8>(),
                    size_of_val(attributes),
                )
            };
            let opened = EventAttributes::parse(bytes).expect("whole");
            let ours = flag::EXCLUDE_KERNEL | flag::RATE | 3 << flag::PRECISE_SHIFT | flag::SAMPLE_ID_ALL;
            assert_eq!(opened.flags & ours, event.attributes.flags, "{}", event.name);
            assert_eq!(EventAttributes { flags: event.attributes.flags, ..opened }, event.attributes);
        }
    }
}

/// Cores of two kinds have a unit each, and the kernel opens an event only where its unit is.
#[test]
fn cores_of_two_kinds_are_sampled_by_a_unit_each() {
    let core = intel("event=0xcd,umask=0x1,ldlat=3", "event=0xcd,umask=0x2", "3");
    let mut kernel = Fake { paranoid: 2, ..Fake::default() };
    for (unit, kind, cpus, loads, stores) in [
        ("cpu_core", "4", "0-3", LOADS, "event=0xcd,umask=0x2"),
        ("cpu_atom", "10", "4-7,9", "event=0xd0,umask=0x5,ldlat=3", "event=0xd0,umask=0x6"),
    ] {
        let own = |path: &String| path.replace("cpu/", &format!("{unit}/"));
        kernel.files.extend(core.files.iter().map(|(path, text)| (own(path), *text)));
        let changed =
            [("type", kind), ("cpus", cpus), ("events/mem-loads", loads), ("events/mem-stores", stores)];
        kernel.files.extend(changed.map(|(file, text)| (format!("{unit}/{file}"), text)));
    }
    kernel.files.insert("cpu_core/events/mem-loads-aux".into(), "event=0x03,umask=0x82");
    let of = |way| -> Vec<(u32, u64, bool, bool)> {
        let events = events(&kernel, way, 1000).expect("both").into_iter().flatten();
        events
            .map(|event| (event.attributes.kind, event.attributes.config, event.is_on(3), event.is_on(9)))
            .collect()
    };
    let fast = |config| (4, config, true, false);
    let small = |config| (10, config, false, true);
    assert_eq!(of(TierKind::Precise), [fast(0x8203), fast(0x1cd), fast(0x2cd), small(0x5d0), small(0x6d0)]);
    let cycles =
        |unit: u64, (_, _, fast, small): (u32, u64, bool, bool)| (kind::HARDWARE, unit << 32, fast, small);
    assert_eq!(of(TierKind::Counters), [cycles(4, fast(0)), cycles(10, small(0))]);
    assert_eq!(of(TierKind::Clock), [(kind::SOFTWARE, 0, true, true)]);
}

#[test]
fn loads_of_sapphire_rapids_have_an_auxiliary_event() {
    let mut kernel = intel("event=0xcd,umask=0x1,ldlat=3", "event=0xcd,umask=0x2", "3");
    kernel.files.insert("cpu/events/mem-loads-aux".into(), "event=0x03,umask=0x82");
    let events = memory_events(&kernel, 30);
    let configs: Vec<Vec<u64>> =
        events.iter().map(|group| group.iter().map(|event| event.attributes.config).collect()).collect();
    assert_eq!(configs, [vec![0x8203, 0x1cd], vec![0x2cd]]);
    assert!(tiers(&kernel)[2].found.is_ok());
}

#[test]
fn amds_unit_is_opened_with_its_kernel_unless_that_can_be_left_out() {
    let files = [("ibs_op/type", "11"), ("ibs_op/format/cnt_ctl", "config:19"), ("cpu/type", "4")];
    let mut kernel = Fake { files: of(&files), paranoid: 2, ..Fake::default() };
    let one = |kernel: &Fake| memory_events(kernel, 30)[0][0].attributes.clone();
    let event = one(&kernel);
    assert_eq!((event.kind, event.config, event.flags & flag::EXCLUDE_KERNEL), (11, 1 << 19, 0));
    assert!(event.period % 16 == 0 && event.precision() == 0);
    kernel.refusal = Some((libc::EACCES, 0));
    let why = TierRefusal::Refused(CountRefusal::Paranoid { level: 2, needed: 1 });
    assert_eq!(tiers(&kernel)[2].found, Err(why));
    kernel.files.insert("ibs_op/format/swfilt".into(), "config2:0");
    let event = one(&kernel);
    assert_eq!((event.config2, event.flags & flag::EXCLUDE_KERNEL), (1, flag::EXCLUDE_KERNEL));
}

/// Each way in which a kernel refuses has its reason.
#[test]
fn each_refusal_has_its_reason() {
    let whole = || intel(LOADS, "event=0xd0,umask=0x82", "3");
    let refused = |kernel: &Fake| tiers(kernel).map(|tier| tier.found.err());
    let reason = |why| Some(TierRefusal::Refused(why));
    assert_eq!(refused(&whole()), [None, None, None]);
    let guest = Fake { refusal: Some((libc::ENOENT, 0)), paranoid: 2, ..Fake::default() };
    let none = reason(CountRefusal::NoUnit);
    assert_eq!(refused(&guest), [None, none.clone(), none]);
    let mut plain = whole();
    plain.files.retain(|path, _| !path.contains("/events/"));
    assert_eq!(refused(&plain), [None, None, Some(TierRefusal::NoMemoryEvents)]);
    for (errno, expected) in [
        (libc::EOPNOTSUPP, CountRefusal::NoEvent),
        (libc::ENOENT, CountRefusal::NoEvent),
        (libc::EINVAL, CountRefusal::DoNotFit),
        (libc::EBUSY, CountRefusal::Busy),
        (libc::EMFILE, CountRefusal::TooManyFiles),
        (libc::EPERM, CountRefusal::Forbidden),
        (libc::ENOSYS, CountRefusal::NoPerf),
    ] {
        let kernel = Fake { refusal: Some((errno, 0)), ..whole() };
        let [clock, counters, precise] = refused(&kernel);
        assert_eq!((clock, counters, precise), (None, reason(expected.clone()), reason(expected)), "{errno}");
        // What `memlode doctor` says is what `memlode sample` says.
        for tier in tiers(&kernel) {
            assert_eq!(events(&kernel, tier.kind, 1000).err(), tier.found.err(), "{errno}");
        }
    }
    let strict = Fake { refusal: Some((libc::EACCES, libc::EACCES)), paranoid: 4, ..whole() };
    let why = reason(CountRefusal::Paranoid { level: 4, needed: 2 });
    assert_eq!(refused(&strict), [why.clone(), why.clone(), why]);
}

#[test]
fn bits_go_where_the_format_says_or_nowhere() {
    let put = |ranges: &str, value| {
        let mut word = 0;
        super::put(&mut word, ranges, value).map(|()| word)
    };
    assert_eq!(put("0-7,32-35", 0x3cd), Some(0x3_0000_00cd));
    assert_eq!((put("0-63", u64::MAX), put("19", 1)), (Some(u64::MAX), Some(1 << 19)));
    for ranges in ["0-7", "8-1", "0-64", "64", "x", ""] {
        assert_eq!(put(ranges, 0x100), None, "{ranges}");
    }
}

#[test]
fn processors_are_ranges() {
    assert_eq!(ranges("0-2,8"), [0, 1, 2, 8]);
    assert_eq!(ranges("5"), [5]);
    assert!(ranges("").is_empty() && ranges("0-99999999").is_empty());
}

/// This machine's kernel lets programs be sampled by its clock, as other tests need, too.
#[test]
fn the_clock_opens_here() {
    assert!(tiers(&LinuxSampling)[0].found.is_ok());
}

/// The events that `memlode sample` opens, and why it does not.
#[test]
fn sampling_opens_what_the_machine_has_and_says_why_not() {
    let mut kernel = intel(LOADS, "event=0xd0,umask=0x82", "3");
    let clock = &events(&kernel, TierKind::Clock, 1000).expect("a clock")[0][0].attributes;
    assert_eq!(
        (clock.kind, clock.config, clock.period, clock.flags & flag::RATE),
        (kind::SOFTWARE, 0, 1_000_001, 0)
    );
    let cycles = &events(&kernel, TierKind::Counters, 1000).expect("a counter")[0][0].attributes;
    assert_eq!((cycles.kind, cycles.config, cycles.period), (kind::HARDWARE, 0, 1000));
    assert!(cycles.flags & flag::RATE != 0 && cycles.layout.sample_type & field::PERIOD != 0);
    for event in [clock, cycles] {
        let wanted = field::REGS_USER | field::CALLCHAIN;
        assert_eq!((event.layout.sample_type & wanted, event.layout.regs_user), (wanted, GENERAL_REGISTERS));
        assert!(event.flags & flag::EXCLUDE_KERNEL != 0);
    }
    // All that are written have the same fields: they share a ring.
    let memory = events(&kernel, TierKind::Precise, 1000).expect("loads and stores");
    let layouts: Vec<RecordLayout> =
        memory.iter().map(|group| group.last().expect("one").attributes.layout).collect();
    assert!(layouts.len() == 2 && layouts[0] == layouts[1] && layouts[0].sample_type & field::DATA_SRC != 0);
    kernel.files.retain(|path, _| !path.contains("/events/"));
    assert_eq!(events(&kernel, TierKind::Precise, 1000), Err(TierRefusal::NoMemoryEvents));
    kernel.refusal = Some((libc::ENOENT, 0));
    let why = TierRefusal::Refused(CountRefusal::NoEvent);
    assert_eq!(events(&kernel, TierKind::Counters, 1000), Err(why));
    assert!(events(&kernel, TierKind::Clock, 1000).is_ok());
}
