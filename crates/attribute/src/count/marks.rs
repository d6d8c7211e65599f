//! Events between accesses: calls, and memory that is allocated and freed.

use memlode_trace::event::{Mark, SyncKind};
use memlode_trace::sites::SiteId;

use crate::count::engine::{Engine, NewBlock, NewSync};
use crate::count::profiler::{Profiler, Stream};
use crate::objects::classes::ClassId;
use crate::objects::paths::PathId;

impl<E: Engine> Profiler<E> {
    /// Takes up an event of a thread.
    pub(crate) fn mark(&mut self, mark: &Mark, stream: &mut Stream) {
        match *mark {
            Mark::Enter { function, frame, caller } => {
                stream.stack.enter(function, frame, caller);
                self.follow_path(stream);
            }
            Mark::Exit { function } => {
                stream.stack.exit(function);
                self.follow_path(stream);
            }
            Mark::Resume { function, frame } => {
                stream.stack.resume(function, frame);
                self.follow_path(stream);
            }
            Mark::Alloc { site, base, count, element_bytes } => {
                let class = self.alloc(site, base, count.saturating_mul(element_bytes), stream);
                self.begun(base, count.saturating_mul(element_bytes), class);
            }
            Mark::Realloc { site, base, bytes, old } => {
                let moves = old != base;
                if old != 0 && (base != 0 || bytes == 0) {
                    self.free(old, stream);
                    if moves {
                        self.caches.ended(old);
                    }
                }
                let class = self.alloc(site, base, bytes, stream);
                self.begun(base, bytes, class.filter(|_| moves));
            }
            Mark::Free { base, .. } => {
                self.free(base, stream);
                self.caches.ended(base);
            }
            Mark::Unmap { base, bytes, .. } => {
                stream.objects.unmap(base, bytes);
                if let Some(log) = &mut self.log {
                    log.unmapped(stream.origin.process, base, bytes);
                }
                self.caches.ended(base);
            }
            Mark::Stamp { stamp } => self.caches.stamp(stamp),
            Mark::Sync { kind, object, stamp } => {
                self.caches.stamp(stamp);
                // Of an attempt that failed, and of what orders nothing, there is no object.
                if object != 0 && self.caches.takes_syncs() {
                    self.synced(kind, object, stream);
                }
            }
        }
    }

    /// Updates the path that the stream's stack is on, where paths are distinguished.
    #[inline]
    pub(crate) fn follow_path(&mut self, stream: &mut Stream) {
        if self.contexts.has_paths {
            let path = stream.stack.path(&mut self.memory.paths, self.sites.names.as_deref());
            stream.origin.context = self.contexts.number(stream.origin.thread, path);
        }
    }

    /// Passes an operation that orders threads to the caches, with the class of its object.
    fn synced(&mut self, kind: SyncKind, address: u64, stream: &mut Stream) {
        let of_frame =
            || stream.stack.frame_of(address).map(|function| self.memory.class_of_frames(function));
        let class = stream.objects.class_at(address).or_else(of_frame).unwrap_or(ClassId::UNKNOWN);
        let (classes, paths) = (&self.memory.classes, &self.memory.paths);
        self.caches.synced(NewSync { kind, address, class, classes, paths });
    }

    /// Passes the beginning of a block of a class to the caches.
    fn begun(&mut self, address: u64, bytes: u64, class: Option<ClassId>) {
        if let Some(class) = class {
            let (classes, paths) = (&self.memory.classes, &self.memory.paths);
            self.caches.begun(NewBlock { address, bytes, class, classes, paths });
        }
    }

    /// Ends a block.
    fn free(&mut self, base: u64, stream: &mut Stream) {
        stream.stack.end_block();
        stream.objects.free(base);
        if let Some(log) = &mut self.log {
            log.ends(stream.origin.process, base);
        }
    }

    /// Adds a block; nothing if the allocator failed, or if it is known already.
    fn alloc(&mut self, site: SiteId, base: u64, bytes: u64, stream: &mut Stream) -> Option<ClassId> {
        if base == 0 {
            return None;
        }
        let facts = &self.sites.all[site.0 as usize];
        let path = match stream.stack.dormant {
            true => self.memory.paths.enter(PathId::ROOT, facts.function, None),
            false => stream.stack.path(&mut self.memory.paths, self.sites.names.as_deref()),
        };
        let class = self.memory.classes.of_heap(site, path, stream.stack.dormant, facts.ty);
        if stream.stack.make(site, base, bytes) && stream.objects.is_live(base, bytes, class) {
            return None;
        }
        if let Some(log) = &mut self.log {
            log.begins(stream.origin.process, base, bytes, class);
        }
        let before = self.memory.classes.count(class, bytes);
        let slot = stream.objects.insert(base, bytes, class);
        if let Some(slot) = slot.filter(|_| self.caches.takes_places()) {
            stream.objects.set_order(slot, before);
        }
        Some(class)
    }
}
