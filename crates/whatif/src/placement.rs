//! A program's allocation calls, made again with edited sizes.

use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use memlode_attribute::{HeapCall, Home, MadeBlock, first_uses, heap_calls};
use memlode_layout::{Layout, Link};
use memlode_trace::Trace;
use memlode_trace::event::{ProcessId, ThreadId};
use memlode_trace::sites::SiteId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::allocator::{Allocator, BlockId, Call, MAPPED};
use crate::moved::{EDITED, Heap, Moved, MovedObject, OnNodes};
use crate::plan::{ElementPlaces, ObjectEdit, Plan, SpreadElements};
use crate::side_by_side::EditedRanges;
use crate::sizes::{alignment_of, behind, bytes_of, headed_bytes, is_header, part_bytes, whole_elements};

/// The addresses of records that a program would keep in a growing array of its own: no other object is there.
const POOLS: u64 = 0x2000_0000_0000;
/// The distance of pools, and of moved global variables.
const FAR: u64 = 1 << 36;
/// Images whose global variables get fixed places begin here, and are this far from each other.
const IMAGES: u64 = 0x4000_0000_0000;
const IMAGE_BYTES: u64 = 1 << 36;

/// The bytes of objects that an edit is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Objects.
    pub objects: u64,
    /// Their original bytes, all together.
    pub before: u64,
    /// Bytes that they have.
    pub after: u64,
    /// Objects of an edited type that do not change: their size is no whole number of elements, or
    /// each is alone where the edit needs an array.
    pub left: u64,
}

/// Makes an allocator for a process, or returns the reason why not.
pub type Allocators<'a> = &'a mut (dyn FnMut(ProcessId) -> Result<Box<dyn Allocator>, String> + Send);

/// Places all blocks of a trace under a plan. `allocators` gives each process its own.
///
/// # Errors
/// Why an allocator could not place them.
pub fn place(
    trace: &Trace,
    plan: &Plan,
    workers: usize,
    allocators: Allocators<'_>,
) -> Result<(Moved, Footprint), String> {
    let mut placing = Placing::new(trace, plan, allocators, first_used(trace, plan, usize::MAX, workers));
    let mut failed = None;
    heap_calls(trace, usize::MAX, workers, |call| match placing.call(&call) {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            failed = Some(why);
            ControlFlow::Break(())
        }
    });
    match failed {
        Some(why) => Err(why),
        None => placing.finish(),
    }
}

/// The same for calls that were collected, from a number of chunks.
///
/// # Errors
/// The reason why an allocator could not place them.
pub fn place_calls(
    trace: &Trace,
    plan: &Plan,
    (calls, chunks): (&[HeapCall], usize),
    workers: usize,
    allocators: Allocators<'_>,
) -> Result<(Moved, Footprint), String> {
    let mut placing = Placing::new(trace, plan, allocators, first_used(trace, plan, chunks, workers));
    calls.iter().try_for_each(|call| placing.call(call))?;
    placing.finish()
}

/// Blocks in the order in which packed objects are used first, by process.
type FirstUsed = FxHashMap<ProcessId, Vec<u64>>;

/// Finds the order of packed objects, if a plan has any.
fn first_used(trace: &Trace, plan: &Plan, chunks: usize, workers: usize) -> FirstUsed {
    let sites: FxHashSet<SiteId> = plan.packs().iter().flat_map(|pack| pack.sites.iter().copied()).collect();
    match sites.is_empty() {
        true => FirstUsed::default(),
        false => first_uses(trace, chunks, workers, |site| sites.contains(&site)),
    }
}

/// The heaps of all processes while calls are made.
struct Placing<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    allocators: Allocators<'a>,
    heaps: FxHashMap<ProcessId, PlacedHeap>,
    first_used: FirstUsed,
    edited: EditedRanges,
    footprint: Footprint,
}

impl<'a> Placing<'a> {
    fn new(
        trace: &'a Trace,
        plan: &'a Plan,
        allocators: Allocators<'a>,
        first_used: FirstUsed,
    ) -> Placing<'a> {
        let (heaps, edited) = (FxHashMap::default(), EditedRanges::default());
        Placing { trace, plan, allocators, heaps, first_used, edited, footprint: Footprint::default() }
    }

    fn call(&mut self, call: &HeapCall) -> Result<(), String> {
        let threads = self.trace.threads().len().max(1) as u64;
        let heap = match self.heaps.entry(call.process) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(PlacedHeap::new((self.allocators)(call.process)?, threads)),
        };
        heap.call(self.plan, call, &mut self.footprint);
        if let (Some(made), true) = (&call.made, heap.has_edited_last()) {
            self.edited.note(call.process, made.base, made.bytes, Some(made.number));
        }
        Ok(())
    }

    fn finish(self) -> Result<(Moved, Footprint), String> {
        let Placing { trace, plan, heaps, first_used, edited, mut footprint, .. } = self;
        let layouts = plan.all_layouts().to_vec();
        let mut moved = Moved { edited, is_fixed: plan.fixed_lines().is_some(), ..Moved::under(layouts) };
        for (process, heap) in heaps {
            let first_used = first_used.get(&process).map_or(&[][..], |order| order);
            moved.heaps.insert(process, heap.finish(plan, first_used, &mut moved.on_nodes)?);
        }
        globals(trace, plan, &mut moved, &mut footprint);
        Ok((moved, footprint))
    }
}

/// The heap of a process while its calls are made.
struct PlacedHeap {
    allocator: Box<dyn Allocator>,
    /// The program's threads.
    threads: u64,
    blocks: Vec<Block>,
    next: BlockId,
    /// Elements of each layout that have a place in the pool, and places that are free.
    pools: FxHashMap<usize, Pool>,
    /// Elements of grouped arrays, by group and array.
    grouped: FxHashMap<usize, u64>,
    /// The nodes of each pack.
    packed: FxHashMap<usize, Packed>,
    /// Blocks of objects whose pages are on given memory nodes; the base is missing.
    on_nodes: Vec<(BlockId, OnNodes)>,
}

/// Packed objects: those made so far, those alive, and the most alive at one time.
#[derive(Clone, Copy, Default)]
struct Packed {
    made: u64,
    live: u64,
    peak: u64,
}

#[derive(Default)]
struct Pool {
    next: u64,
    free: Vec<u64>,
}

/// A block of the trace.
#[derive(Clone, Copy)]
struct Block {
    /// Its first block of ours, and how many it has.
    first: BlockId,
    count: u32,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// Unchanged, but moved.
    Plain,
    /// A part of another one.
    Inside { outer: u64, offset: u64 },
    /// Another layout; if elements of its cold part lie in the pool, the number of those before its
    /// own.
    Layout { layout: usize, pooled: Option<u64> },
    /// One element of another layout, with other data behind it.
    Headed { layout: usize },
    /// Among others of its type: which pack.
    Packed(usize),
    /// Changed as a whole: the number of arrays of its group before it, or the distance of its
    /// copies or parts.
    Whole(ObjectEdit, u64),
}

impl PlacedHeap {
    fn new(allocator: Box<dyn Allocator>, threads: u64) -> PlacedHeap {
        PlacedHeap {
            allocator,
            threads,
            blocks: Vec::new(),
            next: 0,
            pools: FxHashMap::default(),
            grouped: FxHashMap::default(),
            packed: FxHashMap::default(),
            on_nodes: Vec::new(),
        }
    }

    fn call(&mut self, plan: &Plan, call: &HeapCall, footprint: &mut Footprint) {
        let &HeapCall { thread, ref made, ended, .. } = call;
        let ended = ended.and_then(|number| self.blocks.get(number as usize).copied());
        if let Some(Block { how: How::Layout { layout, pooled: Some(element) }, .. }) = ended {
            self.pools.entry(layout).or_default().free.push(element);
        }
        if let Some(Block { how: How::Packed(pack), .. }) = ended {
            self.packed.entry(pack).or_default().live -= 1;
        }
        let Some(made) = made else {
            if let Some(block) = ended {
                self.end(thread, block);
            }
            return;
        };
        let (how, sizes) = self.changed(plan, made, footprint);
        let block = Block { first: self.next, count: sizes.len() as u32, how };
        self.next += sizes.len() as u64;
        debug_assert_eq!(made.number as usize, self.blocks.len());
        self.blocks.push(block);
        let resized = ended.filter(|old| old.count == block.count && old.count > 0);
        for (at, (bytes, align)) in (0..).zip(sizes) {
            let number = block.first + at;
            self.allocator.call(
                thread,
                match resized {
                    Some(old) if align <= 16 => Call::Resize { old: old.first + at, block: number, bytes },
                    _ => Call::Make { block: number, bytes, align },
                },
            );
            if let Some(old) = resized.filter(|_| align > 16) {
                self.allocator.call(thread, Call::End { block: old.first + at });
            }
        }
        if let (Some(old), None) = (ended, resized) {
            self.end(thread, old);
        }
    }

    /// Returns whether more changed of the block that was made last than where it begins.
    fn has_edited_last(&self) -> bool {
        self.blocks.last().is_some_and(|block| !matches!(block.how, How::Plain | How::Inside { .. }))
    }

    fn end(&mut self, thread: ThreadId, block: Block) {
        for at in 0..u64::from(block.count) {
            self.allocator.call(thread, Call::End { block: block.first + at });
        }
    }

    /// Returns how a block changes, and the size that it requests from the allocator.
    fn changed(
        &mut self,
        plan: &Plan,
        made: &MadeBlock,
        footprint: &mut Footprint,
    ) -> (How, Vec<(u64, u64)>) {
        let subject = plan.subject(&made.home);
        let plain = match made.inside {
            Some((outer, offset)) => (How::Inside { outer, offset }, Vec::new()),
            None => (How::Plain, vec![(made.bytes, asked_for(plan, made))]),
        };
        let Some(subject) = subject else { return plain };
        if let (Some(layout), Some((_, element))) = (subject.layout, subject.record) {
            let changed = self.laid_out(plan, layout, made, element);
            return match changed {
                Some(changed) => {
                    footprint.objects += 1;
                    footprint.before += made.bytes;
                    let pooled = match changed.0 {
                        How::Layout { layout, pooled: Some(_) } => {
                            plan.all_layouts()[layout].parts()[1].stride
                        }
                        _ => 0,
                    };
                    footprint.after += changed.1.iter().map(|(bytes, _)| bytes).sum::<u64>() + pooled;
                    changed
                }
                None => {
                    footprint.left += 1;
                    plain
                }
            };
        }
        if let Some(at) = subject.pack {
            if made.bytes != plan.packs()[at].bytes {
                footprint.left += 1;
                return plain;
            }
            let packed = self.packed.entry(at).or_default();
            (packed.made, packed.live) = (packed.made + 1, packed.live + 1);
            packed.peak = packed.peak.max(packed.live);
            footprint.objects += 1;
            footprint.before += made.bytes;
            footprint.after += made.bytes;
            return (How::Packed(at), Vec::new());
        }
        let Some(whole) = subject.whole else { return plain };
        let bytes = bytes_of(&whole, made.bytes);
        footprint.objects += 1;
        footprint.before += made.bytes;
        if whole.per_thread {
            let stride = bytes.next_multiple_of(whole.apart);
            let all = stride.saturating_mul(self.threads);
            footprint.after += all;
            return (How::Whole(whole, stride), vec![(all, whole.apart)]);
        }
        footprint.after += bytes;
        self.on_nodes.extend(whole.on.map(|on| (self.next, OnNodes { base: 0, bytes, on })));
        if let Some((group, _)) = whole.group {
            let grouped = self.grouped.entry(group).or_default();
            *grouped += 1;
            return (How::Whole(whole, *grouped - 1), Vec::new());
        }
        let align = alignment_of(&whole).max(asked_for(plan, made));
        (How::Whole(whole, part_bytes(&whole, made.bytes)), vec![(bytes, align)])
    }

    /// The parts of a block of an edited type, if it can have them.
    fn laid_out(
        &mut self,
        plan: &Plan,
        at: usize,
        made: &MadeBlock,
        element: u64,
    ) -> Option<(How, Vec<(u64, u64)>)> {
        let layout = &plan.all_layouts()[at];
        if is_header(layout, made.bytes, element) {
            let (bytes, align) = (headed_bytes(layout, made.bytes), layout.parts()[0].align);
            return Some((How::Headed { layout: at }, vec![(bytes, align.max(asked_for(plan, made)))]));
        }
        let elements = whole_elements(made.bytes, element)?;
        let is_alone = elements == 1 && layout.parts().len() > 1;
        if !is_alone {
            let sizes = layout
                .parts()
                .iter()
                .map(|part| (part.bytes(elements), part.align.max(asked_for(plan, made))));
            return Some((How::Layout { layout: at, pooled: None }, sizes.collect()));
        }
        // Objects that are allocated one by one are no arrays, but their cold parts can be records of one.
        match link(layout)? {
            Link::Index => {
                let pool = self.pools.entry(at).or_default();
                let element = pool.free.pop().unwrap_or_else(|| {
                    pool.next += 1;
                    pool.next - 1
                });
                let part = &layout.parts()[0];
                let sizes = vec![(part.bytes(1), part.align.max(16))];
                Some((How::Layout { layout: at, pooled: Some(element) }, sizes))
            }
            _ => {
                let sizes = layout.parts().iter().map(|part| (part.bytes(1), part.align.max(16)));
                Some((How::Layout { layout: at, pooled: None }, sizes.collect()))
            }
        }
    }

    fn finish(self, plan: &Plan, first_used: &[u64], on_nodes: &mut Vec<OnNodes>) -> Result<Heap, String> {
        for (&at, packed) in &self.packed {
            if packed.made > 2 * packed.peak {
                let name = &plan.packs()[at].structure;
                return Err(format!(
                    "the objects of `{name}` come and go, {} in all and {} at a time: no order of them lasts",
                    packed.made, packed.peak
                ));
            }
        }
        let order = self.packed_places(plan, first_used);
        let places = self.allocator.places()?;
        let of = |block: BlockId| places.get(block as usize).copied().unwrap_or(0);
        let placed = self.on_nodes.iter().map(|&(block, object)| OnNodes { base: of(block), ..object });
        on_nodes.extend(placed.filter(|object| object.base != 0));
        let mut heap = Heap { bases: Vec::with_capacity(self.blocks.len()), ..Heap::default() };
        for (number, block) in (0..).zip(&self.blocks) {
            let base = match block.how {
                How::Plain => of(block.first),
                How::Inside { outer, offset } => match heap.bases.get(outer as usize).copied() {
                    None | Some(0) => 0,
                    Some(base) if base & EDITED != 0 => 0,
                    Some(base) => base.saturating_add(offset),
                },
                How::Layout { layout, pooled } => {
                    let mut bases: Vec<u64> =
                        (0..u64::from(block.count)).map(|at| of(block.first + at)).collect();
                    bases.extend(pooled.map(|_| POOLS + layout as u64 * FAR));
                    let is_placed = bases.iter().all(|&base| base != 0);
                    let elements_before = pooled.unwrap_or(0);
                    let bases = bases.into_boxed_slice();
                    if is_placed {
                        heap.edit(MovedObject::Parts { layout, bases, elements_before })
                    } else {
                        0
                    }
                }
                How::Headed { layout } => match of(block.first) {
                    0 => 0,
                    base => {
                        let behind = behind(&plan.all_layouts()[layout]);
                        heap.edit(MovedObject::Headed { layout, base, behind })
                    }
                },
                How::Packed(_) => match order.get(&number) {
                    Some(&base) => heap.edit(MovedObject::Whole { base }),
                    None => 0,
                },
                How::Whole(whole, more) => match moved_whole(plan, &whole, of(block.first), more) {
                    Some(object) => heap.edit(object),
                    None => 0,
                },
            };
            heap.bases.push(base);
        }
        Ok(heap)
    }
}

/// Returns the way from the hot part of a layout to the cold one.
fn link(layout: &Layout) -> Option<Link> {
    match layout.link_piece(0)?.bytes {
        8 => Some(Link::Pointer),
        _ => Some(Link::Index),
    }
}

/// The requested alignment of a block. The trace does not have it, but blocks that `malloc` maps
/// never begin at a multiple of 32. In fixed places, large blocks begin at a line, whatever the
/// program's allocator did.
fn asked_for(plan: &Plan, made: &MadeBlock) -> u64 {
    if let Some(line_bytes) = plan.fixed_lines() {
        return if made.bytes >= MAPPED { line_bytes } else { 16 };
    }
    let aligned = 1 << made.base.trailing_zeros().min(12);
    if made.bytes >= MAPPED && aligned >= 32 { aligned } else { 16 }
}

impl PlacedHeap {
    /// The places of packed blocks by number: in the order of first use, and then the others in the
    /// order of their making.
    fn packed_places(&self, plan: &Plan, first_used: &[u64]) -> FxHashMap<u64, u64> {
        let mut places: FxHashMap<u64, u64> = FxHashMap::default();
        if self.packed.is_empty() {
            return places;
        }
        let mut ends: Vec<u64> = (0..plan.packs().len() as u64).map(|at| POOLS + (128 + at) * FAR).collect();
        for number in first_used.iter().copied().chain(0..self.blocks.len() as u64) {
            let Some(Block { how: How::Packed(at), .. }) = self.blocks.get(number as usize) else { continue };
            let pack = &plan.packs()[*at];
            places.entry(number).or_insert_with(|| {
                let base = ends[*at];
                ends[*at] = (base + pack.bytes).next_multiple_of(pack.align);
                base
            });
        }
        places
    }
}

/// An object changed as a whole; `base` is its block's, and `more` the number of [`How::Whole`].
fn moved_whole(plan: &Plan, whole: &ObjectEdit, base: u64, more: u64) -> Option<MovedObject> {
    if let Some((group, array)) = whole.group {
        let sizes = &plan.groups()[group].element_bytes;
        let largest = sizes.iter().copied().max()?;
        let stride = sizes.iter().sum::<u64>().next_multiple_of(largest.min(8));
        let offset: u64 = sizes[..array].iter().sum();
        // Arrays of the same number, one of each name, are one array of records.
        let record = more / sizes.len() as u64;
        let base = POOLS + (64 + group as u64) * FAR + record * (1 << 32) + offset;
        return Some(MovedObject::Spread { base, element_bytes: sizes[array], stride });
    }
    if base == 0 {
        return None;
    }
    let base = base + whole.shift;
    if whole.per_thread {
        return Some(MovedObject::Copies { base, stride: more });
    }
    Some(match whole.elements {
        Some(SpreadElements { element_bytes, how: ElementPlaces::Padded(stride) }) => {
            MovedObject::Spread { base, element_bytes, stride }
        }
        Some(SpreadElements { element_bytes, how: ElementPlaces::Dealt(parts) }) => {
            MovedObject::Dealt { base, element_bytes, parts: parts.into(), part_bytes: more }
        }
        None => MovedObject::Whole { base },
    })
}

/// Moves the global variables that a plan is about.
fn globals(trace: &Trace, plan: &Plan, moved: &mut Moved, footprint: &mut Footprint) {
    let mut at = POOLS + 32 * FAR;
    let mut reserve = |bytes: u64, align: u64, near: u64| {
        // Where in its page an object lies decides with whom it shares sets.
        let align = align.max(16);
        at = (at.next_multiple_of(4096) + near % 4096).next_multiple_of(align);
        let base = at;
        at = at.saturating_add(bytes);
        base
    };
    for (number, image) in (0..).zip(trace.images()) {
        let Some(module) = trace.modules().get(image.module.0 as usize) else { continue };
        let file = std::path::Path::new(&module.path).file_name().unwrap_or_default().to_string_lossy();
        for global in &module.globals {
            let home = Home::Global { symbol: global.name.clone(), image: file.to_string() };
            let address = global.address.wrapping_add(image.load_bias);
            if plan.fixed_lines().is_some() {
                let base = IMAGES + number * IMAGE_BYTES + global.address % IMAGE_BYTES;
                moved.globals.insert((image.process, address), MovedObject::Whole { base });
            }
            let Some(subject) = plan.subject(&home) else { continue };
            let object = if let (Some(layout), Some((_, element))) = (subject.layout, subject.record) {
                let is_sized = plan.all_layouts()[layout].tail().is_none();
                let Some(elements) = whole_elements(global.bytes, element).filter(|_| is_sized) else {
                    footprint.left += 1;
                    continue;
                };
                let parts = plan.all_layouts()[layout].parts();
                let bases: Vec<u64> =
                    parts.iter().map(|part| reserve(part.bytes(elements), part.align, address)).collect();
                footprint.after += parts.iter().map(|part| part.bytes(elements)).sum::<u64>();
                MovedObject::Parts { layout, bases: bases.into_boxed_slice(), elements_before: 0 }
            } else if let Some(whole) = subject.whole {
                let padded = bytes_of(&whole, global.bytes);
                let copies = if whole.per_thread { trace.threads().len() as u64 } else { 1 };
                let stride = padded.next_multiple_of(whole.apart);
                footprint.after += if whole.per_thread { stride * copies } else { padded };
                let (bytes, align, more) = match whole.per_thread {
                    true => (stride * copies, whole.apart, stride),
                    false => (padded, alignment_of(&whole), part_bytes(&whole, global.bytes)),
                };
                let base = reserve(bytes, align, address);
                moved.on_nodes.extend(whole.on.map(|on| OnNodes { base, bytes, on }));
                match moved_whole(plan, &whole, base, more) {
                    Some(object) => object,
                    None => continue,
                }
            } else {
                continue;
            };
            footprint.objects += 1;
            footprint.before += global.bytes;
            moved.edited.note(image.process, address, global.bytes, None);
            moved.globals.insert((image.process, address), object);
        }
    }
}
