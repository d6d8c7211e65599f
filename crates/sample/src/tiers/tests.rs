//! Kernels whose units and refusals are known.

use std::collections::HashMap;
use std::path::Path;

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

/// This machine's kernel lets programs be sampled by its clock, as other tests need, too.
#[test]
fn the_clock_opens_here() {
    assert!(tiers(&LinuxSampling)[0].found.is_ok());
}
