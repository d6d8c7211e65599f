//! Accesses under another layout: each is resolved to its object, and goes to where an
//! [`AddressMap`] has put its bytes.
//!
//! ```text
//!   access ─► object at its address ─► offset ─► map ─► one place      ─► as any access
//!      │                                         │      several pieces ─► an access for each line that one begins in
//!      └─► thread, site, class: as it was        └────  none            ─► no access
//! ```
//! An access is charged by its original address: an edit changes where things lie, not what they
//! are. Loops stay one record where the distances between their accesses stay constant.

mod loops;
mod places;
mod rest;

use memlode_replay::{Events, LoopPart, Piece as ChunkPiece, Walk, Walks};
use memlode_simulate::{Fragment, MOST_STRIDES, MemRef, Tag, touch_lines};
use memlode_trace::event::{Access, Mark, ProcessId, Stride, ThreadId};
use memlode_trace::format::flag;
use memlode_trace::sites::SiteId;
use rustc_hash::FxHashMap;

use crate::count::engine::TakesFragments;
use crate::count::gaps::GapWatch;
use crate::count::map::{AddressMap, ElementTable, MappedPiece, ObjectRef};
use crate::count::profiler::{Origin, Profiler, Stream};
use crate::count::route::Route;
use crate::count::single_line::SiteFacts;
use crate::objects::BlockSlot;
use crate::objects::classes::ClassId;
use places::{BlockPlaces, UnderMap};
use rest::Rest;

/// The route of an edit.
pub(crate) struct Mapped<'m> {
    map: &'m dyn AddressMap,
    /// The map's tables.
    tables: &'m [ElementTable],
    /// Sizes of types.
    type_bytes: Vec<u64>,
    /// Indexed by process.
    processes: Vec<Blocks>,
    /// The places of stacks and of memory that no object has, if these are moved as well.
    rest: Option<Rest>,
    /// Pieces of the current access.
    pieces: Vec<Piece>,
    answered: Vec<MappedPiece>,
    fragments: Vec<Fragment>,
    /// Strides of the current loop.
    strides: Vec<Stride>,
    cells: Vec<u32>,
    /// Accesses of the current loop.
    unrolled: Vec<Access>,
    /// Walks of each stream: how sites walk where their data lie now.
    walks: FxHashMap<(ThreadId, u8), Walks>,
    /// The walks of the current stream, in chunks that are examined.
    looked_at: Option<Walks>,
    /// All chunks are examined.
    examines_all: bool,
}

/// The blocks of a process.
#[derive(Default)]
struct Blocks {
    /// The number of allocations so far.
    allocated: u64,
    /// Indexed by slot.
    known: Vec<Option<Block>>,
    places: BlockPlaces,
}

/// Facts about a block.
#[derive(Clone, Copy)]
struct Block {
    base: u64,
    bytes: u64,
    class: ClassId,
    /// Its number among those allocated; the last number of all if it was not allocated.
    allocation: u64,
    /// 0 if they are not known.
    element_bytes: u64,
    moves: bool,
}

/// The number of a block that was not allocated.
const NOT_ALLOCATED: u64 = u64::MAX;

/// A piece of an access, and the original address of its first byte.
#[derive(Clone, Copy)]
struct Piece {
    was: u64,
    address: u64,
    bytes: u32,
    is_link: bool,
}

impl<'m> Mapped<'m> {
    /// The route through a map, for a trace whose types have these sizes.
    pub fn new(map: &'m dyn AddressMap, type_bytes: Vec<u64>) -> Mapped<'m> {
        Mapped {
            map,
            tables: map.tables(),
            type_bytes,
            processes: Vec::new(),
            rest: map.places_the_rest().then(Rest::default),
            pieces: Vec::new(),
            answered: Vec::new(),
            fragments: Vec::new(),
            strides: Vec::new(),
            cells: Vec::new(),
            unrolled: Vec::new(),
            walks: FxHashMap::default(),
            looked_at: None,
            examines_all: false,
        }
    }

    /// Examines the walks of all chunks, since few are replayed.
    pub fn examining_all(self) -> Mapped<'m> {
        Mapped { examines_all: true, ..self }
    }

    /// Takes note of a block that a mark has brought to life.
    fn note<E: TakesFragments>(&mut self, profiler: &Profiler<E>, stream: &Stream, mark: &Mark) {
        let (site, base, array) = match *mark {
            Mark::Alloc { site, base, count, element_bytes } => {
                (site, base, (count > 1).then_some(element_bytes))
            }
            Mark::Realloc { site, base, .. } => (site, base, None),
            _ => return,
        };
        if base == 0 {
            return;
        }
        let blocks = self.blocks_of(stream.origin.process);
        let allocation = Some(blocks.allocated);
        blocks.allocated += 1;
        // What was known of the slot may be that of the block before.
        let latest = stream.objects.latest();
        let known = blocks.known.get(latest.0 as usize).copied().flatten();
        if known.is_some_and(|known| !known.is_in(stream, latest)) {
            blocks.places.forget(latest);
        }
        if let Some(slot) = stream.objects.find(base).filter(|&slot| stream.objects.block(slot).0 == base) {
            self.know(profiler, stream, slot, (allocation, Some(site), array));
        }
    }

    /// Takes note of a block in a slot.
    fn know<E: TakesFragments>(
        &mut self,
        profiler: &Profiler<E>,
        stream: &Stream,
        slot: BlockSlot,
        (allocation, site, array): (Option<u64>, Option<SiteId>, Option<u64>),
    ) -> Block {
        let (base, bytes) = stream.objects.block(slot);
        let class = stream.objects.class(slot);
        let ty = site.and_then(|site| profiler.sites.all[site.0 as usize].ty);
        let of_type = ty.and_then(|ty| self.type_bytes.get(ty.0 as usize).copied());
        let element_bytes =
            [of_type, array].into_iter().flatten().find(|&size| size > 0 && bytes % size == 0);
        let mut block = Block {
            base,
            bytes,
            class,
            allocation: allocation.unwrap_or(NOT_ALLOCATED),
            element_bytes: element_bytes.unwrap_or(0),
            moves: false,
        };
        let map = self.map;
        block.moves = map.moves(&block.named(profiler, stream.origin));
        let hint = map.hint(&block.named(profiler, stream.origin));
        let Blocks { known, places, .. } = self.blocks_of(stream.origin.process);
        places.set(slot, &block, hint);
        known.resize(known.len().max(slot.0 as usize + 1), None);
        known[slot.0 as usize] = Some(block);
        block
    }

    fn blocks_of(&mut self, process: ProcessId) -> &mut Blocks {
        let number = process.0 as usize;
        if self.processes.len() <= number {
            self.processes.resize_with(number + 1, Blocks::default);
        }
        &mut self.processes[number]
    }

    /// The block at an address, including global variables that were not looked up before.
    fn block_at<E: TakesFragments>(
        &mut self,
        profiler: &Profiler<E>,
        stream: &mut Stream,
        address: u64,
    ) -> Option<Block> {
        let slot = stream.objects.slot_at(address)?;
        let blocks = self.processes.get(stream.origin.process.0 as usize);
        let known = blocks.and_then(|blocks| *blocks.known.get(slot.0 as usize)?);
        Some(match known.filter(|block| block.is_in(stream, slot)) {
            Some(block) => block,
            None => self.know(profiler, stream, slot, (None, None, None)),
        })
    }

    /// Finds the pieces of an access.
    fn resolve<E: TakesFragments>(&mut self, profiler: &Profiler<E>, stream: &mut Stream, access: &Access) {
        self.pieces.clear();
        // Behind the last address there is nothing.
        let last = access.address.saturating_add(u64::from(access.bytes.max(1)) - 1);
        let mut at = access.address;
        loop {
            let block = self.block_at(profiler, stream, at);
            let end = match block {
                Some(block) => block.base + (block.bytes - 1),
                None => stream.objects.next_block(at, last).map_or(last, |next| next - 1),
            };
            let end = end.min(last);
            let bytes = (end - at + 1) as u32;
            match block.filter(|block| block.moves) {
                None if block.is_none() && self.rest.is_some() => self.push_rest(stream.origin, at, bytes),
                None => self.push(Piece { was: at, address: at, bytes, is_link: false }),
                Some(block) => {
                    let mut answered = std::mem::take(&mut self.answered);
                    self.map.map(
                        &block.named(profiler, stream.origin),
                        at - block.base,
                        bytes,
                        &mut answered,
                    );
                    for MappedPiece { offset, address, bytes, is_link } in answered.drain(..) {
                        self.push(Piece { was: block.base + offset, address, bytes, is_link });
                    }
                    self.answered = answered;
                }
            }
            if end == last {
                return;
            }
            at = end + 1;
        }
    }

    /// Adds pieces of bytes that no object has: each page has its own place.
    fn push_rest(&mut self, origin: Origin, from: u64, bytes: u32) {
        let mut at = from;
        let mut left = u64::from(bytes);
        while left > 0 {
            let some = left.min(4096 - at % 4096);
            let address = self.rest.as_mut().map_or(at, |rest| rest.unowned(origin.process, at));
            self.push(Piece { was: at, address, bytes: some as u32, is_link: false });
            (at, left) = (at.wrapping_add(some), left - some);
        }
    }

    /// One more piece, which may go on where the one before ends.
    fn push(&mut self, piece: Piece) {
        match self.pieces.last_mut() {
            Some(before)
                if !before.is_link
                    && !piece.is_link
                    && before.address.checked_add(before.bytes.into()) == Some(piece.address)
                    && before.was.checked_add(before.bytes.into()) == Some(piece.was) =>
            {
                before.bytes += piece.bytes;
            }
            _ => self.pieces.push(piece),
        }
    }

    fn access<E: TakesFragments>(
        &mut self,
        profiler: &mut Profiler<E>,
        stream: &mut Stream,
        access: &Access,
    ) {
        if is_on_stack(profiler, access.site) || access.bytes == 0 {
            let Some(rest) = &mut self.rest else {
                if let Some(walks) = &mut self.looked_at {
                    walks.access(access);
                }
                profiler.access(stream, access);
                return;
            };
            let address = rest.stack(stream.origin.process, stream.origin.thread, access.address);
            self.pieces.clear();
            self.pieces.push(Piece { was: access.address, address, bytes: access.bytes, is_link: false });
            self.touch(profiler, stream, access);
            return;
        }
        if let Some((class, address)) = self.one_place(profiler, stream, access) {
            let there = Access { address, ..*access };
            if let Some(walks) = &mut self.looked_at {
                walks.access(&there);
            }
            let cell = profiler.cell_of(stream, class, access);
            profiler.touch(stream.origin, cell, &there);
            return;
        }
        self.resolve(profiler, stream, access);
        self.touch(profiler, stream, access);
    }

    /// Returns the object's class and the new address of an access to one piece of one object, as
    /// almost all are.
    fn one_place<E: TakesFragments>(
        &mut self,
        profiler: &Profiler<E>,
        stream: &mut Stream,
        access: &Access,
    ) -> Option<(ClassId, u64)> {
        if access.bytes > profiler.line_bytes {
            return None;
        }
        self.block_at(profiler, stream, access.address)?;
        let slot = stream.objects.slot_at(access.address)?;
        let blocks = self.processes.get(stream.origin.process.0 as usize)?;
        blocks.places.find(self.tables, slot.0, access)
    }

    /// Simulates the pieces of an access.
    fn touch<E: TakesFragments>(&mut self, profiler: &mut Profiler<E>, stream: &mut Stream, access: &Access) {
        let is_write = profiler.sites.facts[access.site.0 as usize].is_write;
        if let Some(walks) = &mut self.looked_at {
            for piece in self.pieces.iter().filter(|piece| !piece.is_link) {
                walks.access(&Access { address: piece.address, bytes: piece.bytes, ..*access });
            }
        }
        if access.bytes > profiler.line_bytes {
            for number in 0..self.pieces.len() {
                let piece = self.pieces[number];
                for (address, bytes) in touch_lines(piece.address, piece.bytes.into(), profiler.line_bytes) {
                    let was = piece.was.wrapping_add(address - piece.address);
                    let cell = profiler.cell(stream, &Access { address: was, bytes, ..*access });
                    if piece.is_link {
                        let link =
                            Fragment { address: stream.origin.space.place(address), bytes, is_write: false };
                        profiler.touch_fragments(stream.origin, cell, &[link]);
                    } else {
                        profiler.touch(stream.origin, cell, &Access { address, bytes, ..*access });
                    }
                }
            }
            return;
        }
        match self.pieces[..] {
            [] => {}
            [Piece { address, bytes, is_link: false, .. }] => {
                let cell = profiler.cell(stream, access);
                profiler.touch(stream.origin, cell, &Access { address, bytes, ..*access });
            }
            _ => {
                let cell = profiler.cell(stream, access);
                let fragment = |piece: &Piece, is_write: bool| Fragment {
                    address: stream.origin.space.place(piece.address),
                    bytes: piece.bytes,
                    is_write,
                };
                // The program loads a link before it can go on.
                for link in self.pieces.iter().filter(|piece| piece.is_link) {
                    profiler.touch_fragments(stream.origin, cell, &[fragment(link, false)]);
                }
                // Whoever moves the data apart has an access for each line, and waits for each: what lay in turns lies together then.
                let line_bytes = u64::from(profiler.line_bytes);
                let line = |piece: &Piece| piece.address / line_bytes;
                let mut others: Vec<&Piece> = self.pieces.iter().filter(|piece| !piece.is_link).collect();
                let first = |piece: &Piece| others.iter().position(|other| line(other) == line(piece));
                let order: Vec<Option<usize>> = others.iter().map(|piece| first(piece)).collect();
                if !order.is_sorted() {
                    let mut numbered: Vec<_> = order.into_iter().zip(others).collect();
                    numbered.sort_by_key(|(number, _)| *number);
                    others = numbered.into_iter().map(|(_, piece)| piece).collect();
                }
                for together in others.chunk_by(|a, b| line(a) == line(b)) {
                    self.fragments.clear();
                    self.fragments.extend(together.iter().map(|piece| fragment(piece, is_write)));
                    profiler.touch_fragments(stream.origin, cell, &self.fragments);
                }
            }
        }
    }
}

impl Block {
    /// Returns whether it is the block that a slot has now.
    fn is_in(&self, stream: &Stream, slot: BlockSlot) -> bool {
        (self.base, self.bytes) == stream.objects.block(slot) && self.class == stream.objects.class(slot)
    }

    fn named<'p, E: TakesFragments>(&self, profiler: &'p Profiler<E>, origin: Origin) -> ObjectRef<'p> {
        let &Block { base, bytes, class, allocation, element_bytes, .. } = self;
        let (home, element) = profiler.memory.classes.home(class);
        ObjectRef {
            process: origin.process,
            thread: origin.thread,
            allocation: (allocation != NOT_ALLOCATED).then_some(allocation),
            home,
            element,
            base,
            bytes,
            element_bytes: (element_bytes > 0).then_some(element_bytes),
        }
    }
}

fn is_on_stack<E: TakesFragments>(profiler: &Profiler<E>, site: SiteId) -> bool {
    profiler.sites.all[site.0 as usize].flags & flag::STACK != 0
}

impl<E: TakesFragments> Route<E> for Mapped<'_> {
    fn events(&mut self, profiler: &mut Profiler<E>, stream: &mut Stream, mut events: Events<'_>) {
        let is_quick = self.rest.is_none() && profiler.gaps.is_none();
        loop {
            if is_quick {
                let (process, tables) = (stream.origin.process, self.tables);
                self.blocks_of(process);
                let blocks = &self.processes[process.0 as usize].places;
                let walks = self.looked_at.as_mut();
                profiler.most_events(stream, &mut events, &mut UnderMap { blocks, tables, walks });
                if profiler.caches.is_full() {
                    profiler.settle();
                    continue;
                }
            }
            let access = events.accesses.split_first();
            match events.marks.split_first() {
                Some(((at, mark), rest)) if *at as usize <= events.before || access.is_none() => {
                    profiler.mark(mark, stream);
                    self.note(profiler, stream, mark);
                    events.marks = rest;
                }
                _ => {
                    let Some((access, rest)) = access else { return };
                    self.access(profiler, stream, access);
                    events.accesses = rest;
                    events.before += 1;
                }
            }
        }
    }

    fn repeat(
        &mut self,
        profiler: &mut Profiler<E>,
        stream: &mut Stream,
        LoopPart { iterations, .. }: LoopPart<'_>,
        strides: &[Stride],
    ) {
        // Of others it is not certain that they stay in the address space.
        let may_stay = strides.len() <= MOST_STRIDES && profiler.may_schedule(strides, iterations);
        self.look_at_loop(profiler, stream, (iterations, may_stay), strides);
        // The loop was looked at as a whole.
        let looked_at = self.looked_at.take();
        let mut mapped = std::mem::take(&mut self.strides);
        let mut cells = std::mem::take(&mut self.cells);
        mapped.clear();
        cells.clear();
        for stride in strides.iter().filter(|_| may_stay) {
            let Some(there) = self.stride(profiler, stream, stride, iterations) else { break };
            cells.push(profiler.cell(stream, &stride.access));
            mapped.push(there);
        }
        let is_even = mapped.len() == strides.len();
        if !is_even || !profiler.repeat_as(stream, iterations, &mapped, &cells) {
            self.unroll(profiler, stream, iterations, strides);
        }
        (self.strides, self.cells) = (mapped, cells);
        self.looked_at = looked_at;
    }

    fn begins(&mut self, piece: &ChunkPiece<'_>) -> bool {
        let Some(thread) = piece.batch.thread else { return true };
        let mut walks = self.walks.remove(&(thread, piece.batch.stream)).unwrap_or_default();
        // The first ones are.
        let number = if self.examines_all { 0 } else { piece.batch.sequence };
        let is_looked_at = match piece.is_first() {
            true => walks.begin(number),
            false => Walks::looks_at(number),
        };
        match is_looked_at {
            true => self.looked_at = Some(walks),
            false => _ = self.walks.insert((thread, piece.batch.stream), walks),
        }
        true
    }

    fn ends(&mut self, piece: &ChunkPiece<'_>, seen: &mut Vec<(SiteId, Walk)>) {
        let (Some(mut walks), Some(thread)) = (self.looked_at.take(), piece.batch.thread) else { return };
        if piece.is_last() {
            seen.extend(walks.end());
        }
        self.walks.insert((thread, piece.batch.stream), walks);
    }
}

impl<E: TakesFragments> Profiler<E> {
    /// One access that lies in several places of the process.
    fn touch_fragments(&mut self, origin: Origin, cell: u32, fragments: &[Fragment]) {
        let SiteFacts { is_write, is_past_caches, .. } =
            self.sites.facts[self.cells.keys[cell as usize].1.0 as usize];
        let access = MemRef {
            address: fragments.first().map_or(0, |first| first.address),
            bytes: 0,
            core: origin.core as u32,
            tag: Tag::new(cell),
            is_write,
        };
        if is_past_caches && fragments.iter().all(|fragment| fragment.is_write) {
            self.store_past_caches(cell, access, fragments);
            return;
        }
        self.caches.access_fragments(access, fragments);
        self.cells.count(cell, 0);
        if self.caches.is_full() {
            self.settle();
        }
        if let Some(GapWatch { ledger, .. }) = &mut self.gaps {
            ledger.touch(cell);
        }
    }
}

#[cfg(test)]
mod tests;
