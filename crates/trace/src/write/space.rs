//! Which modules a process has loaded, and where.

use std::sync::Arc;

use crate::format::stream;
use crate::module::{Module, ModuleId};

/// The instrumented images of one process at one time. A forked child starts with a clone of its parent's.
#[derive(Clone, Default)]
pub struct AddressSpace {
    images: Vec<Mapped>,
    generation: u64,
}

#[derive(Clone)]
struct Mapped {
    /// Run-time address of the first anchor.
    start: u64,
    load_bias: u64,
    id: ModuleId,
    module: Arc<Module>,
}

impl AddressSpace {
    /// A module was loaded; the load bias is run-time minus link-time address. What it overlaps is gone.
    pub fn load(&mut self, id: ModuleId, module: Arc<Module>, load_bias: u64) {
        let mapped =
            Mapped { start: module.image().anchors.address.wrapping_add(load_bias), load_bias, id, module };
        self.images.retain(|old| !old.contains(mapped.start) && !mapped.contains(old.start));
        self.images.push(mapped);
        self.generation += 1;
    }

    /// A module was unloaded.
    pub fn unload(&mut self, id: ModuleId, load_bias: u64) {
        self.images.retain(|image| (image.id, image.load_bias) != (id, load_bias));
        self.generation += 1;
    }

    /// Changes whenever a header word may have got another meaning.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What a header word stands for.
    pub(crate) fn resolve(&self, header: u64) -> Option<Resolved<'_>> {
        let image = self.images.iter().find(|image| image.contains(header))?;
        let offset = header - image.start;
        let anchor = (offset / u64::from(stream::ANCHOR_BYTES)) as u32;
        let whole = offset.is_multiple_of(u64::from(stream::ANCHOR_BYTES));
        whole.then_some(Resolved { id: image.id, module: &image.module, start: image.start, anchor })
    }
}

/// An anchor of a loaded image.
pub(crate) struct Resolved<'a> {
    pub id: ModuleId,
    pub module: &'a Module,
    /// Address of the image's first anchor.
    pub start: u64,
    /// Which of them it is.
    pub anchor: u32,
}

impl Mapped {
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.module.image().anchors.bytes.len() as u64
    }
}
