//! From addresses to files: counts of the places that samples name.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use memlode_symbols::GeneralRegisters;

use crate::data_source::DataSource;
use crate::records::{Record, RecordEvent, SampleRecord, SampleWeight};

/// Register states that are kept for a place: the data of its accesses are estimated from them.
const MOST_STATES: usize = 64;
/// The most mappings that are followed, of all processes. A process begins with those of its
/// parent.
const MOST_MAPPINGS: usize = 1 << 24;

/// The places of samples.
#[derive(Debug, Default, PartialEq)]
pub struct Sampled {
    /// Places in files, in the order of these.
    pub at: Vec<SampledPlace>,
    /// Samples in memory that no file is mapped to: compiled at run time, or the kernel's own page.
    pub unmapped: u64,
    /// Samples of the kernel itself, which are not among these.
    pub kernel: u64,
    /// Samples that the kernel could not hand over.
    pub lost: u64,
    /// Times that the kernel took no samples for a while.
    pub throttled: u64,
    /// Threads that were met.
    pub threads: usize,
    /// Seconds that were watched, by the clock on the wall; 0 if it is not known.
    pub seconds: f64,
}

impl Sampled {
    /// Returns how many there are.
    pub fn samples(&self) -> u64 {
        self.at.iter().map(|place| place.count).sum::<u64>() + self.unmapped
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledPlace {
    /// The file.
    pub image: OsString,
    /// The instruction's place in it.
    pub offset: u64,
    /// Samples.
    pub count: u64,
    /// Registers of some of these.
    pub states: Vec<SampledState>,
    /// Sources of the data, of the samples that have them.
    pub sources: BTreeMap<DataSource, SourceCount>,
}

/// Samples of one source of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCount {
    /// Samples.
    pub samples: u64,
    /// Samples with the latency of the access: stores often have none.
    pub timed: u64,
    /// Cycles that these took together.
    pub cycles: u64,
}

impl SourceCount {
    /// Adds the samples of another count.
    pub fn add(&mut self, other: SourceCount) {
        self.samples += other.samples;
        self.timed += other.timed;
        self.cycles = self.cycles.saturating_add(other.cycles);
    }
}

/// The registers of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledState {
    /// Their values.
    pub registers: GeneralRegisters,
    /// The address of the instruction.
    pub ip: u64,
}

/// A file in the memory of a process.
#[derive(Clone, Debug)]
struct Mapping {
    length: u64,
    offset: u64,
    file: usize,
}

#[derive(Default)]
struct Place {
    count: u64,
    states: Vec<SampledState>,
    sources: BTreeMap<DataSource, SourceCount>,
}

/// Counts records as they come, in the order of time.
#[derive(Default)]
pub struct Tally {
    files: Vec<OsString>,
    by_path: HashMap<OsString, usize>,
    processes: HashMap<u32, BTreeMap<u64, Mapping>>,
    places: BTreeMap<(usize, u64), Place>,
    threads: std::collections::HashSet<u32>,
    mappings: usize,
    found: Sampled,
}

impl Tally {
    /// Takes the next record.
    pub fn take(&mut self, record: Record) {
        let Record { pid, tid, event, .. } = record;
        match event {
            RecordEvent::Fork { parent } => {
                let inherited = self.processes.get(&parent).map_or(0, BTreeMap::len);
                self.forget(pid);
                if self.has_room(inherited) {
                    let maps = self.processes.get(&parent).cloned().unwrap_or_default();
                    self.processes.insert(pid, maps);
                }
            }
            RecordEvent::Exec => self.forget(pid),
            RecordEvent::Map { address, length, offset, path } => {
                if self.has_room(2) {
                    let file = self.file(path);
                    let maps = self.processes.entry(pid).or_default();
                    let before = maps.len();
                    map(maps, address, Mapping { length, offset, file });
                    self.mappings = self.mappings - 2 + maps.len() - before;
                }
            }
            RecordEvent::Lost { samples } => self.found.lost += samples,
            RecordEvent::Throttled => self.found.throttled += 1,
            RecordEvent::Sample(sample) if sample.is_kernel => self.found.kernel += 1,
            RecordEvent::Sample(sample) => {
                self.threads.insert(tid);
                self.sample(pid, &sample);
            }
        }
    }

    /// Too many files were mapped: some samples have no place.
    pub fn is_overfull(&self) -> bool {
        self.mappings > MOST_MAPPINGS
    }

    /// Counts mappings that are about to be made. Once there is no room, there is none any more.
    fn has_room(&mut self, more: usize) -> bool {
        if !self.is_overfull() {
            self.mappings += more;
        }
        !self.is_overfull()
    }

    fn forget(&mut self, pid: u32) {
        let gone = self.processes.remove(&pid).map_or(0, |maps| maps.len());
        if !self.is_overfull() {
            self.mappings -= gone;
        }
    }

    fn file(&mut self, path: OsString) -> usize {
        *self.by_path.entry(path).or_insert_with_key(|path| {
            self.files.push(path.clone());
            self.files.len() - 1
        })
    }

    fn sample(&mut self, pid: u32, sample: &SampleRecord) {
        let ip = sample.ip;
        let mapping = self.processes.get(&pid).and_then(|maps| maps.range(..=ip).next_back());
        let is_file = |file: usize| self.files[file].as_encoded_bytes().first() == Some(&b'/');
        let inside = mapping.filter(|(start, map)| ip - *start < map.length && is_file(map.file));
        let Some((start, map)) = inside else {
            self.found.unmapped += 1;
            return;
        };
        let offset = (ip - start).wrapping_add(map.offset);
        let place = self.places.entry((map.file, offset)).or_default();
        place.count += 1;
        if let Some(source) = sample.data_source.and_then(DataSource::of) {
            place.sources.entry(source).or_default().add(timed(sample.weight));
        }
        let Some(registers) = sample.registers.as_deref() else { return };
        let state = SampledState { registers: *registers, ip };
        match place.states.len() {
            ..MOST_STATES => place.states.push(state),
            // One of all so far, each as likely: by a number that is as good as any, and always the same.
            _ => {
                let chosen = (place.count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % place.count;
                if let Some(kept) = place.states.get_mut(chosen as usize) {
                    *kept = state;
                }
            }
        }
    }

    /// All places.
    pub fn finish(self) -> Sampled {
        let Tally { files, places, threads, found, .. } = self;
        let one = |((file, offset), place): ((usize, u64), Place)| SampledPlace {
            image: files[file].clone(),
            offset,
            count: place.count,
            states: place.states,
            sources: place.sources,
        };
        let mut at: Vec<SampledPlace> = places.into_iter().map(one).collect();
        at.sort_by(|a, b| (&a.image, a.offset).cmp(&(&b.image, b.offset)));
        Sampled { at, threads: threads.len(), ..found }
    }
}

/// One sample. Processors that measure no latency of an access leave it 0.
fn timed(weight: Option<SampleWeight>) -> SourceCount {
    let cycles = match weight {
        Some(SampleWeight::Whole(cycles)) => cycles,
        Some(SampleWeight::Parts(cycles, _, _)) => cycles.into(),
        None => 0,
    };
    SourceCount { samples: 1, timed: u64::from(cycles > 0), cycles }
}

/// Maps a file, in the place of earlier mappings there.
fn map(maps: &mut BTreeMap<u64, Mapping>, address: u64, new: Mapping) {
    let end = address.saturating_add(new.length);
    if end == address {
        return;
    }
    if let Some((start, before)) = maps.range_mut(..address).next_back() {
        let old_end = start.saturating_add(before.length);
        before.length = before.length.min(address - *start);
        if old_end > end {
            let behind = Mapping {
                length: old_end - end,
                offset: before.offset.wrapping_add(end - *start),
                file: before.file,
            };
            maps.insert(end, behind);
        }
    }
    while let Some((start, old)) = maps.range(address..end).next().map(|(start, old)| (*start, old.clone())) {
        maps.remove(&start);
        let old_end = start.saturating_add(old.length);
        if old_end > end {
            let (length, offset) = (old_end - end, old.offset.wrapping_add(end - start));
            maps.insert(end, Mapping { length, offset, ..old });
        }
    }
    maps.insert(address, new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(address: u64, path: &str) -> RecordEvent {
        RecordEvent::Map { address, length: 0x1000, offset: 0x2000, path: path.into() }
    }

    #[test]
    fn processes_have_maps_of_their_own_in_the_order_of_time() {
        let sample = |ip| RecordEvent::Sample(SampleRecord { ip, ..SampleRecord::default() });
        let mut tally = Tally::default();
        for (pid, event) in [
            (1, map(0x40_0000, "/bin/sh")),
            (1, sample(0x40_0fff)),
            (1, sample(0x40_1000)),
            (1, sample(0x3f_ffff)),
            (2, RecordEvent::Fork { parent: 1 }),
            (2, sample(0x40_0010)),
            (2, RecordEvent::Exec),
            (2, map(0x40_0000, "/bin/prog")),
            (2, sample(0x40_0010)),
            (1, sample(0x40_0fff)),
            (1, map(0x50_0000, "[vdso]")),
            (1, sample(0x50_0000)),
            (3, sample(0x40_0000)),
            (3, RecordEvent::Lost { samples: 4 }),
        ] {
            tally.take(Record { time: 0, pid, tid: pid, event });
        }
        let found = tally.finish();
        let at: Vec<_> =
            found.at.iter().map(|at| (at.image.to_str().unwrap(), at.offset, at.count)).collect();
        assert_eq!(at, [("/bin/prog", 0x2010, 1), ("/bin/sh", 0x2010, 1), ("/bin/sh", 0x2fff, 2)]);
        assert_eq!((found.unmapped, found.lost, found.samples(), found.threads), (4, 4, 8, 3));
    }

    /// A byte belongs to its last mapping, as in a model that has one entry for each byte.
    #[test]
    fn what_is_mapped_over_is_gone() {
        let (mut maps, mut model) = (BTreeMap::new(), vec![None; 64]);
        let mut random = 1_u64;
        for file in 0..2_000_usize {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (address, length) = (random >> 33 & 31, 1 + (random >> 50 & 31));
            super::map(&mut maps, address, Mapping { length, offset: 1_000 * file as u64, file });
            (0..length).for_each(|at| model[(address + at) as usize] = Some(1_000 * file as u64 + at));
            for (at, expected) in (0..).zip(&model) {
                let found = maps.range(..=at).next_back().filter(|(start, map)| at - *start < map.length);
                assert_eq!(found.map(|(start, map)| at - start + map.offset), *expected, "{at} after {file}");
            }
        }
    }

    #[test]
    fn of_many_samples_of_a_place_some_states_are_kept() {
        let mut tally = Tally::default();
        tally.take(Record { time: 0, pid: 1, tid: 1, event: map(0x40_0000, "/bin/sh") });
        for number in 0..10_000 {
            let mut registers = GeneralRegisters::default();
            registers.general[0] = number;
            let registers = Some(Box::new(registers));
            let sample = SampleRecord { ip: 0x40_0010, registers, ..SampleRecord::default() };
            tally.take(Record { time: number, pid: 1, tid: 1, event: RecordEvent::Sample(sample) });
        }
        let found = tally.finish();
        let [place] = &found.at[..] else { panic!("{found:?}") };
        assert_eq!((place.count, place.states.len()), (10_000, MOST_STATES));
        let late = place.states.iter().filter(|state| state.registers.general[0] >= 5_000).count();
        assert!((16..=48).contains(&late), "{late} of 64 are from the second half");
    }
}
