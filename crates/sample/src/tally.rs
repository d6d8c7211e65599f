//! From addresses to files: counts of the places that samples name.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use crate::blocks::{BlockBook, BlockEvent, BlockNote, BlockNotes};
use crate::kept::{FilePlace, KeptCall, KeptSamples};
use crate::records::{CHAIN_MARKERS, Record, RecordEvent, SampleRecord, StackCopy};
use crate::unwinding::Unwinding;

/// Stands before the addresses of the program in a call chain.
const USER_MARKER: u64 = 512_u64.wrapping_neg();
/// Callers that are followed of a sample.
const MOST_CALLERS: usize = 127;
/// Mappings of all processes that are followed, at most. A process begins with those of its parent.
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
    /// Samples whose callers were found by a copy of the stack.
    pub unwound: u64,
    /// Samples among them whose copy was too short to have all callers.
    pub cut: u64,
    /// Threads that were met.
    pub threads: usize,
    /// Seconds that were watched, by the clock on the wall; 0 if it is not known.
    pub seconds: f64,
    /// The samples themselves, where they are kept.
    pub kept: KeptSamples,
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
}

/// A file in the memory of a process.
#[derive(Clone, Debug)]
struct Mapping {
    length: u64,
    offset: u64,
    file: usize,
}

/// Counts records as they come, in the order of time.
#[derive(Default)]
pub struct Tally {
    files: Vec<OsString>,
    by_path: HashMap<OsString, usize>,
    processes: HashMap<u32, BTreeMap<u64, Mapping>>,
    places: BTreeMap<(usize, u64), u64>,
    threads: std::collections::HashSet<u32>,
    mappings: usize,
    found: Sampled,
    /// Weight of samples that have none of their own; `None` if samples are not kept.
    weight: Option<u64>,
    book: BlockBook,
    unwinding: Unwinding,
    /// The innermost calls of paths of blocks, by process and path.
    block_calls: HashMap<(u32, u16), Option<u32>>,
}

impl Tally {
    /// Counts, and keeps each sample. Those that do not say so stand for `weight` events.
    pub fn keeping(weight: u64) -> Tally {
        Tally { weight: Some(weight), ..Tally::default() }
    }

    /// Finds callers by copies of stacks, where samples have these.
    pub fn with_unwinding(self, unwinding: Unwinding) -> Tally {
        Tally { unwinding, ..self }
    }

    /// Takes the next record.
    pub fn take(&mut self, record: Record) {
        let Record { time, pid, tid, event } = record;
        match event {
            RecordEvent::Fork { parent } => {
                let inherited = self.processes.get(&parent).map_or(0, BTreeMap::len);
                self.forget(pid);
                self.book.change(time, pid, BlockEvent::Forked { parent });
                if self.has_room(inherited) {
                    let maps = self.processes.get(&parent).cloned().unwrap_or_default();
                    self.processes.insert(pid, maps);
                }
            }
            RecordEvent::Exec => {
                self.forget(pid);
                self.block_calls.retain(|(process, _), _| *process != pid);
                self.book.change(time, pid, BlockEvent::Replaced);
            }
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
                self.sample((time, pid, tid), sample);
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

    fn sample(&mut self, of: (u64, u32, u32), sample: SampleRecord) {
        let at = self.place(of.1, sample.ip);
        match at {
            Some(at) => *self.places.entry((at.file as usize, at.offset)).or_default() += 1,
            None => self.found.unmapped += 1,
        }
        let Some(weight) = self.weight else { return };
        let callers = match &sample.stack {
            Some(stack) => self.unwound(of.1, stack),
            None => self.callers(of.1, &sample),
        };
        let is_kept = self.found.kept.take(of, at, weight, sample, callers.into_iter());
        self.found.lost += u64::from(!is_kept);
    }

    /// The place in a file of an address of a process.
    fn place(&self, pid: u32, address: u64) -> Option<FilePlace> {
        let (start, map) = self.processes.get(&pid)?.range(..=address).next_back()?;
        let is_file = self.files[map.file].as_encoded_bytes().first() == Some(&b'/');
        (address - *start < map.length && is_file)
            .then(|| FilePlace { file: map.file as u32, offset: (address - start).wrapping_add(map.offset) })
    }

    /// Finds what [`Tally::callers`] finds by a copy of the stack.
    fn unwound(&mut self, pid: u32, stack: &StackCopy) -> Vec<FilePlace> {
        let mut unwinding = std::mem::take(&mut self.unwinding);
        let path = |file: u32| self.files[file as usize].as_os_str();
        let found = unwinding.callers(stack, MOST_CALLERS, |address| self.place(pid, address), path);
        self.unwinding = unwinding;
        self.found.unwound += 1;
        self.found.cut += u64::from(found.is_cut);
        found.places
    }

    /// Places behind the calls that led to a sample, the innermost first, as far as files have them.
    fn callers(&self, pid: u32, sample: &SampleRecord) -> Vec<FilePlace> {
        // The kernel's addresses, if there are any, stand before those of the program.
        let is_address = |address: &&u64| **address < CHAIN_MARKERS;
        let user = sample.call_chain.rsplit(|address| *address == USER_MARKER).next().unwrap_or_default();
        // The first is the sample itself.
        let behind = user.iter().filter(is_address).skip(1);
        behind.map_while(|address| self.place(pid, address.saturating_sub(1))).take(MOST_CALLERS).collect()
    }

    /// Takes what a program noted of its blocks. Its files have to be mapped by now.
    pub(crate) fn note(&mut self, note: &BlockNote, notes: &BlockNotes) {
        let call = note.path.and_then(|path| match self.block_calls.get(&(note.pid, path)) {
            Some(known) => *known,
            None => {
                let places: Vec<FilePlace> = notes
                    .calls(path)
                    .into_iter()
                    .map_while(|address| self.place(note.pid, address.saturating_sub(1)))
                    .collect();
                let kept = &mut self.found.kept;
                let call = places.into_iter().rev();
                let call = call.fold(None, |parent, at| Some(kept.call(KeptCall { parent, at })));
                self.block_calls.insert((note.pid, path), call);
                call
            }
        });
        self.book.add(note, call);
    }

    /// Takes memory that a process had before it noted its blocks.
    pub(crate) fn older(&mut self, pid: u32, address: u64, bytes: u64) {
        self.book.older(pid, address, bytes);
    }

    /// Nothing of what was noted before this time changes any more.
    pub(crate) fn settle(&mut self, until: u64) {
        self.book.settle(until);
    }

    /// All places.
    pub fn finish(self) -> Sampled {
        self.finish_with(0)
    }

    /// All places; `lost` changes of blocks could not be noted.
    pub(crate) fn finish_with(self, lost: u64) -> Sampled {
        let Tally { files, places, threads, mut found, book, .. } = self;
        let one = |((file, offset), count): ((usize, u64), u64)| SampledPlace {
            image: files[file].clone(),
            offset,
            count,
        };
        let mut at: Vec<SampledPlace> = places.into_iter().map(one).collect();
        at.sort_by(|a, b| (&a.image, a.offset).cmp(&(&b.image, b.offset)));
        found.kept.files = files;
        found.kept.blocks = book.finish(lost);
        Sampled { at, threads: threads.len(), ..found }
    }
}

/// Maps a file; what was mapped there before is there no more.
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
}
