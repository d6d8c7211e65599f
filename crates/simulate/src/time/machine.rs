//! Cores with their caches and translations.

use super::core::{CoreTime, TimedAccess, TimedLine, TimedSite};
use super::{Charged, TimeSpec, ticks};
use crate::core_parts::tlb::{Tlb, Translation};
use crate::lru::hierarchy::{Hierarchy, LevelCounters};
use crate::mem_ref::MemRef;
use crate::spec::LevelSpec;
use crate::tag::Tag;
use crate::watch::touched::Touched;

/// Place of the page tables: translations of 8 bytes, one page after the other, at addresses that
/// programs do not use.
const PAGE_TABLES: u64 = 0x2000_0000_0000;
const TRANSLATION_BYTES: u64 = 8;

/// Caches, translations, and a [`CoreTime`] for each thread.
pub struct Timed {
    spec: TimeSpec,
    caches: Hierarchy,
    tlb: Option<Tlb>,
    touched: Touched,
    threads: Vec<CoreTime>,
    /// Indexed by level: ticks until the lines of page tables come from there, beyond those of the
    /// second level.
    walks: Vec<u64>,
}

impl Timed {
    /// Empty caches of a machine with these times.
    pub fn new(spec: TimeSpec, caches: Hierarchy, tlb: Option<Tlb>) -> Timed {
        let second = spec.latencies.get(1).copied().unwrap_or(0.0);
        let walks = spec.latencies.iter().map(|&latency| ticks(spec.walk + (latency - second).max(0.0)));
        Timed {
            touched: Touched::new(spec.line_bytes),
            walks: walks.collect(),
            threads: Vec::new(),
            spec,
            caches,
            tlb,
        }
    }

    /// Executes an access of a thread. Returns the deepest level that was looked up, and the
    /// access's charge. The level is one more than memory if memory served it and nothing had
    /// touched the line before. `is_fresh` says that such a line was zeroed just before it was
    /// touched first.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    #[inline]
    pub fn access(
        &mut self,
        thread: usize,
        access: MemRef,
        site: &TimedSite,
        is_fresh: bool,
    ) -> (u8, Charged) {
        if access.bytes == 0 {
            return (0, Charged::default());
        }
        let (mut lines, count) = self.lines_of(access);
        let mut depth = 0;
        for line in &mut lines[..count] {
            let served = self.look_up(MemRef { address: line.address, bytes: 1, ..access });
            depth = depth.max(served);
            let is_first = usize::from(served) > self.caches.levels().len();
            line.level = if is_first && is_fresh { 1 } else { served };
        }
        (depth, self.execute(thread, access, site, &lines[..count]))
    }

    /// Executes a store past the caches, which begins to write a number of its lines.
    ///
    /// # Panics
    /// If its core is not below the number of cores.
    pub fn store_past(&mut self, thread: usize, access: MemRef, site: &TimedSite, begun: u32) -> Charged {
        if access.bytes == 0 {
            return Charged::default();
        }
        let (mut lines, count) = self.lines_of(access);
        let memory = self.caches.levels().len() as u8;
        lines[..count].iter_mut().take(begun as usize).for_each(|line| line.level = memory);
        self.execute(thread, access, site, &lines[..count])
    }

    /// The lines of an access, and their number, which is two at most; a longer access uses its
    /// first and last line.
    fn lines_of(&self, access: MemRef) -> ([TimedLine; 2], usize) {
        let shift = self.spec.line_bytes.trailing_zeros();
        let (first, last) = (access.address >> shift, access.last() >> shift);
        let line = |address| TimedLine { address, level: 0 };
        ([line(access.address), line(last << shift)], if first == last { 1 } else { 2 })
    }

    /// Translates the pages of an access, and executes it in its thread.
    #[inline]
    fn execute(&mut self, thread: usize, access: MemRef, site: &TimedSite, lines: &[TimedLine]) -> Charged {
        if self.threads.len() <= thread {
            let spec = &self.spec;
            self.threads.resize_with(thread + 1, || CoreTime::new(spec));
        }
        let (translation, translation_ticks) = self.translate(access);
        let page = self.spec.page_bytes.trailing_zeros();
        let timed = TimedAccess {
            site,
            address: access.address,
            bytes: access.bytes,
            lines,
            translation,
            translation_ticks,
        };
        let mut charged = self.threads[thread].access(&timed);
        charged.line_crossings = lines.len() as u64 - 1;
        charged.page_crossings = u64::from(access.address >> page != access.last() >> page);
        charged
    }

    /// Returns the level that has a line; one more than memory for the first touch.
    #[inline]
    fn look_up(&mut self, line: MemRef) -> u8 {
        let depth = self.caches.access(line);
        let is_first =
            usize::from(depth) == self.caches.levels().len() && self.touched.is_first(line.address);
        depth + u8::from(is_first)
    }

    /// Returns the level that translates the pages of an access, and the ticks of the translation
    /// alone.
    #[inline]
    fn translate(&mut self, access: MemRef) -> (Translation, u64) {
        let Some(tlb) = &mut self.tlb else { return (Translation::First, 0) };
        let translation = tlb.access(access);
        let ticks = match translation {
            Translation::First => 0,
            Translation::Second => ticks(self.spec.second_tlb),
            Translation::Walk => self.walk(access),
        };
        (translation, ticks)
    }

    /// A walk reads a line of the page tables through the caches.
    #[cold]
    fn walk(&mut self, access: MemRef) -> u64 {
        let page = access.address >> self.spec.page_bytes.trailing_zeros();
        let address = PAGE_TABLES.wrapping_add(page.wrapping_mul(TRANSLATION_BYTES));
        let core = access.core as usize;
        let depth = self.caches.access_uncounted(MemRef::read(core, address, TRANSLATION_BYTES as u32));
        self.walks[usize::from(depth).min(self.walks.len() - 1)]
    }

    /// Sets the size of the pages that accesses with a tag touch, as [`Tlb::set_pages_of`] does.
    pub fn set_pages_of(&mut self, tag: Tag, page_bytes: u64) {
        if let Some(tlb) = &mut self.tlb {
            tlb.set_pages_of(tag, page_bytes);
        }
    }

    /// Counters of the caches, innermost first. An access over two lines counts as two.
    pub fn counters(&self) -> Vec<LevelCounters> {
        self.caches.counters()
    }

    /// The shape of the first level.
    pub fn first_level(&self) -> &LevelSpec {
        &self.caches.levels()[0]
    }

    /// The number of cores.
    pub fn cores(&self) -> u32 {
        self.caches.cores()
    }

    /// Returns the ticks of each thread until its last access committed.
    pub fn committed(&self) -> Vec<u64> {
        self.threads.iter().map(CoreTime::committed).collect()
    }
}
