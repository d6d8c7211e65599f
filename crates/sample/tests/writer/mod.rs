//! A writer of recordings: files that `perf` reads, of machines that nobody has to own.
//!
//! ```text
//!   head ── where things are    attributes ── of each event, and where its number is    numbers
//!   records    places of features    features ── processors, names of events, nodes
//! ```

use std::path::Path;

use memlode_sample::attributes::EventAttributes;
use memlode_sample::records::{SampleRecord, SampleWeight, field};

/// Bytes of the head, and of the attributes of an event as Linux 5.14 has them.
const HEAD_BYTES: usize = 104;
const ATTRIBUTE_BYTES: usize = 128;

/// A recording in the making.
pub struct Writer {
    events: Vec<(&'static str, EventAttributes)>,
    records: Vec<u8>,
}

/// A sample's process, thread and time.
#[derive(Clone, Copy)]
pub struct Moment {
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
}

impl Writer {
    /// A recording of these events, each with a name. Event `n` has the number `n + 1`.
    pub fn new(events: Vec<(&'static str, EventAttributes)>) -> Writer {
        Writer { events, records: Vec::new() }
    }

    /// A process starts.
    pub fn starts(&mut self, pid: u32, name: &[u8; 8]) {
        let body = [&pid.to_le_bytes()[..], &pid.to_le_bytes(), name].concat();
        self.record(3, 0, &[body, self.trailer(pid)].concat());
    }

    /// A process maps a file, or memory of its own, whose name is in brackets.
    pub fn maps(&mut self, pid: u32, from: u64, bytes: u64, path: &str) {
        // Memory that holds no instructions is mapped for data.
        let (protection, misc) = if path.starts_with('/') { (5, 2) } else { (3, 2 | 1 << 13) };
        let ids = u64::from(pid) << 32 | u64::from(pid);
        let mut body = words(&[ids, from, bytes, 0, 0, 0, 0, protection | 2 << 32]);
        body.extend(path.as_bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        self.record(10, misc, &[body, self.trailer(pid)].concat());
    }

    /// An event was sampled.
    pub fn sample(&mut self, event: usize, at: Moment, sample: &SampleRecord) {
        let layout = self.events[event].1.layout;
        let id = event as u64 + 1;
        let mut body = Vec::new();
        let mut put = |bit: u64, values: &[u64]| {
            if layout.sample_type & bit != 0 {
                body.extend(words(values));
            }
        };
        put(field::IDENTIFIER, &[id]);
        put(field::IP, &[sample.ip]);
        put(field::TID, &[u64::from(at.pid) | u64::from(at.tid) << 32]);
        put(field::TIME, &[at.time]);
        put(field::ADDR, &[sample.address.unwrap_or(0)]);
        put(field::ID, &[id]);
        put(field::STREAM_ID, &[77]);
        put(field::CPU, &[u64::from(sample.cpu.unwrap_or(0))]);
        put(field::PERIOD, &[sample.period.unwrap_or(0)]);
        put(field::CALLCHAIN, &[&[sample.call_chain.len() as u64], &sample.call_chain[..]].concat());
        // Registers that nobody saved, and no stack.
        put(field::REGS_USER, &[0]);
        put(field::STACK_USER, &[0]);
        let weight = match sample.weight {
            Some(SampleWeight::Whole(weight)) => weight,
            Some(SampleWeight::Parts(a, b, c)) => u64::from(a) | u64::from(b) << 32 | u64::from(c) << 48,
            None => 0,
        };
        put(field::WEIGHT | field::WEIGHT_STRUCT, &[weight]);
        put(field::DATA_SRC, &[sample.data_source.unwrap_or(0)]);
        put(field::TRANSACTION, &[0]);
        put(field::REGS_INTR, &[0]);
        put(field::PHYS_ADDR, &[sample.physical.unwrap_or(0)]);
        put(field::CGROUP, &[sample.cgroup.unwrap_or(0)]);
        put(field::DATA_PAGE_SIZE, &[sample.page_bytes.unwrap_or(0)]);
        put(field::CODE_PAGE_SIZE, &[sample.code_page_bytes.unwrap_or(0)]);
        self.record(9, if sample.is_kernel { 1 } else { 2 }, &body);
    }

    /// The end of a record that is no sample, by the fields of samples: all of the time 0.
    fn trailer(&self, pid: u32) -> Vec<u8> {
        let sample_type = self.events[0].1.layout.sample_type;
        let fields = [
            (field::TID, u64::from(pid) << 32 | u64::from(pid)),
            (field::TIME, 0),
            (field::ID, 1),
            (field::STREAM_ID, 77),
            (field::CPU, 0),
            (field::IDENTIFIER, 1),
        ];
        let found: Vec<u64> =
            fields.iter().filter(|(bit, _)| sample_type & bit != 0).map(|(_, word)| *word).collect();
        words(&found)
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = u16::try_from(8 + body.len()).expect("a short record");
        self.records
            .extend([&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat());
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        let count = self.events.len();
        let numbers = HEAD_BYTES + count * (ATTRIBUTE_BYTES + 16);
        let records = numbers + 8 * count;
        let mut attributes = Vec::new();
        for (number, (_, event)) in self.events.iter().enumerate() {
            attributes.extend(attribute(event));
            attributes.extend(words(&[(numbers + 8 * number) as u64, 8]));
        }
        attributes.extend(words(&(1..=count as u64).collect::<Vec<u64>>()));
        let features = [(6, text("x86_64")), (7, halves(&[4, 4])), (12, self.names()), (14, nodes())];
        let mut places = Vec::new();
        let mut at = records + self.records.len() + 16 * features.len();
        for (_, bytes) in &features {
            places.extend([at as u64, bytes.len() as u64]);
            at += bytes.len();
        }
        let bits = features.iter().map(|(bit, _)| 1 << bit).sum();
        let head = [
            u64::from_le_bytes(*b"PERFILE2"),
            HEAD_BYTES as u64,
            ATTRIBUTE_BYTES as u64 + 16,
            HEAD_BYTES as u64,
            (numbers - HEAD_BYTES) as u64,
            records as u64,
            self.records.len() as u64,
            0,
            0,
            bits,
            0,
            0,
            0,
        ];
        let features = features.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let all = [words(&head), attributes, self.records.clone(), words(&places), features].concat();
        std::fs::write(path, all).expect("room");
    }

    /// Events by name.
    fn names(&self) -> Vec<u8> {
        let mut found = halves(&[self.events.len() as u32, ATTRIBUTE_BYTES as u32]);
        for (number, (name, event)) in self.events.iter().enumerate() {
            found.extend([attribute(event), halves(&[1]), text(name), words(&[number as u64 + 1])].concat());
        }
        found
    }
}

/// Two nodes of two processors each.
fn nodes() -> Vec<u8> {
    let node = |number: u32, processors: &str| {
        [halves(&[number]), words(&[1 << 20, 1 << 19]), text(processors)].concat()
    };
    [halves(&[2]), node(0, "0-1"), node(1, "2-3")].concat()
}

/// The kernel's structure.
fn attribute(event: &EventAttributes) -> Vec<u8> {
    let layout = &event.layout;
    let all = [
        u64::from(event.kind) | (ATTRIBUTE_BYTES as u64) << 32,
        event.config,
        event.period,
        layout.sample_type,
        layout.read_format,
        event.flags,
        0,
        event.config1,
        event.config2,
        layout.branch_type,
        layout.regs_user,
        0,
        layout.regs_intr,
        0,
        0,
        0,
    ];
    words(&all)
}

/// A text with its length, padded as `perf` does.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(64), 0);
    [halves(&[bytes.len() as u32]), bytes].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn halves(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
