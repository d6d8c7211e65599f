//! MESI: how an access takes lines from the caches that its core does not use.

use std::ops::RangeInclusive;

use super::Model;
use super::array::{CONTESTED, DIRTY, Left, OWNED, PREFETCHED};
use super::directory::Directory;
use super::walk::Request;
use crate::lru::hierarchy::Observer;

/// The copies that caches of other cores had.
#[derive(Clone, Copy, Default)]
pub(super) struct Claimed {
    /// Another cache has the line, or had it until this write.
    pub shared: bool,
    /// Another cache had newer bytes than the outer levels.
    pub dirty: bool,
}

impl Model {
    /// A second core begins to run: until now the first one owned everything in the caches.
    pub(super) fn meet(&mut self) {
        let Some(mut directory) = Directory::of(&self.spec, &self.paths) else { return };
        for (cache, array) in self.arrays.iter_mut().enumerate().take(directory.tracked()) {
            let level = usize::from(self.level_of[cache]);
            for (line, flags) in array.lines_mut() {
                *flags |= if level == 0 { OWNED } else { 0 };
                directory.enters(cache, line << self.line_shifts[level]);
            }
        }
        self.directory = Some(directory);
    }

    /// Prepares the other caches for a request: for a write, no cache off the core's way keeps the
    /// line; for a read, none keeps it exclusively.
    pub(super) fn claim(&mut self, request: &Request, observer: &mut impl Observer) -> Claimed {
        let mut claimed = Claimed::default();
        let Some(directory) = &mut self.directory else { return claimed };
        let array = &mut self.arrays[self.paths[request.core][0] as usize];
        let slot = array.find(request.first >> self.line_shifts[0]);
        let flags = slot.map_or(0, |slot| *array.flags(slot));
        if request.is_write && flags & (OWNED | CONTESTED) != OWNED {
            directory.written(request.core, request.first, request.last);
        }
        if flags & OWNED != 0 {
            return claimed;
        }
        if request.is_write && slot.is_some() {
            self.coherence.upgrades += 1;
        }
        let mut off_way = std::mem::take(&mut self.off_way);
        directory.off_way(request.core, request.first, &mut off_way);
        for &cache in &off_way {
            claimed.shared = true;
            claimed.dirty |= if request.is_write {
                self.invalidate(cache, request, observer)
            } else {
                self.share(cache, request)
            };
        }
        self.off_way = off_way;
        claimed
    }

    /// After the walk: the state of the line in the first level, if it is there.
    pub(super) fn own(&mut self, request: &Request, claimed: Claimed) {
        let Some(directory) = &mut self.directory else { return };
        let array = &mut self.arrays[self.paths[request.core][0] as usize];
        let Some(slot) = array.find(request.first >> self.line_shifts[0]) else { return };
        let flags = array.flags(slot);
        if request.is_write || !claimed.shared {
            *flags |= OWNED;
        }
        let contested = if directory.is_contested(request.first) { CONTESTED } else { 0 };
        *flags = *flags & !CONTESTED | contested;
    }

    /// A cache got a line that lies at this address.
    pub(super) fn enters(&mut self, cache: usize, address: u64) {
        if let Some(directory) = self.directory.as_mut().filter(|directory| directory.tracks(cache)) {
            directory.enters(cache, address);
        }
    }

    /// A cache no longer has a line; it may have other lines of the granule.
    pub(super) fn leaves(&mut self, level: usize, cache: usize, left: Left) {
        self.prefetch[level].useless += u64::from(left.flags & PREFETCHED != 0);
        let shift = self.line_shifts[level];
        let Some(directory) = self.directory.as_mut().filter(|directory| directory.tracks(cache)) else {
            return;
        };
        let (first, last) = directory.granule(left.line << shift);
        let array = &self.arrays[cache];
        let mut others = (first >> shift..=last >> shift).filter(|line| *line != left.line);
        if others.all(|line| array.find(line).is_none()) {
            directory.leaves(cache, first);
        }
    }

    /// A cache loses the granule of a request to it; true if it was dirty there.
    fn invalidate(&mut self, cache: usize, request: &Request, observer: &mut impl Observer) -> bool {
        let level = self.level_of[cache] as usize;
        let mut dirty = false;
        for line in self.granule_lines(level, request.first) {
            let Some(slot) = self.arrays[cache].find(line) else { continue };
            let Some(left) = self.arrays[cache].take(slot) else { continue };
            self.leaves(level, cache, left);
            self.traffic[level].invalidations += 1;
            dirty |= left.flags & DIRTY != 0;
            observer.invalidated(level, cache, line, left.note, request.core as u32, request.tag);
        }
        if let Some(directory) = &mut self.directory {
            directory.lost(cache, request.core, request.tag, request.first, request.last);
        }
        dirty
    }

    /// A cache keeps the granule of a request, but not for itself; true if it was dirty there.
    fn share(&mut self, cache: usize, request: &Request) -> bool {
        let level = self.level_of[cache] as usize;
        let mut dirty = false;
        for line in self.granule_lines(level, request.first) {
            let array = &mut self.arrays[cache];
            let Some(slot) = array.find(line) else { continue };
            let Some(left) = array.peek(slot) else { continue };
            *array.flags(slot) &= !(DIRTY | OWNED | CONTESTED);
            if left.flags & DIRTY != 0 {
                dirty = true;
                self.write_back(level, cache, left);
            }
        }
        dirty
    }

    /// The lines of a level that lie in the granule at an address.
    fn granule_lines(&self, level: usize, address: u64) -> RangeInclusive<u64> {
        let shift = self.line_shifts[level];
        let (first, last) = match &self.directory {
            Some(directory) => directory.granule(address),
            None => (address, address),
        };
        first >> shift..=last >> shift
    }
}
