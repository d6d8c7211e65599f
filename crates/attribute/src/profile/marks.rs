//! Events between accesses: calls, and memory that is allocated and freed.

use memlode_trace::event::Mark;
use memlode_trace::sites::SiteId;

use super::Profiler;
use crate::engine::{Engine, NewBlock};
use crate::objects::Objects;
use crate::objects::classes::ClassId;
use crate::paths::PathId;
use crate::stacks::ThreadStack;

impl<E: Engine> Profiler<E> {
    /// Takes up an event of a thread.
    pub(crate) fn mark(&mut self, mark: &Mark, objects: &mut Objects, stack: &mut ThreadStack) {
        match *mark {
            Mark::Enter { function, frame, caller } => stack.enter(function, frame, caller),
            Mark::Exit { function } => stack.exit(function),
            Mark::Resume { function, frame } => stack.resume(function, frame),
            Mark::Alloc { site, base, count, element_bytes } => {
                let class = self.alloc(site, base, count.saturating_mul(element_bytes), objects, stack);
                self.begun(base, count.saturating_mul(element_bytes), class);
            }
            Mark::Realloc { site, base, bytes, old } => {
                let moves = old != base;
                if old != 0 && (base != 0 || bytes == 0) {
                    objects.free(old);
                    if moves {
                        self.caches.ended(old);
                    }
                }
                let class = self.alloc(site, base, bytes, objects, stack);
                self.begun(base, bytes, class.filter(|_| moves));
            }
            Mark::Free { base, .. } => {
                objects.free(base);
                self.caches.ended(base);
            }
            Mark::Unmap { base, bytes, .. } => {
                objects.unmap(base, bytes);
                self.caches.ended(base);
            }
            Mark::Stamp { stamp } | Mark::Sync { stamp, .. } => self.caches.stamp(stamp),
        }
    }

    /// Tells the caches of a block of a class.
    fn begun(&mut self, address: u64, bytes: u64, class: Option<ClassId>) {
        if let Some(class) = class {
            let (classes, paths) = (&self.classes, &self.paths);
            self.caches.begun(NewBlock { address, bytes, class, classes, paths });
        }
    }

    /// Makes a block known; none if the allocator had nothing to give.
    fn alloc(
        &mut self,
        site: SiteId,
        base: u64,
        bytes: u64,
        objects: &mut Objects,
        stack: &mut ThreadStack,
    ) -> Option<ClassId> {
        if base == 0 {
            return None;
        }
        let facts = &self.sites[site.0 as usize];
        let path = match stack.dormant {
            true => self.paths.enter(PathId::ROOT, facts.function, None),
            false => stack.path(&mut self.paths, self.names.as_deref()),
        };
        let class = self.classes.of_heap(site, path, stack.dormant, facts.ty);
        self.classes.count(class, bytes);
        objects.insert(base, bytes, class);
        Some(class)
    }
}
