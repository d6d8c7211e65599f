//! The images that a process has loaded.

use std::ops::Range;
use std::sync::PoisonError;

use memlode_trace::log::Event;
use memlode_trace::module::{Module, ModuleId};

use super::Process;
use crate::clock;
use crate::images::{self, Known};
use crate::output::{Output, lock};
use crate::reader::{Ending, Tools};
use crate::socket::Message;

const PAGE_BITS: u32 = 12;
/// Looking for an image takes a while; words that are no headers at all must not make us do it for
/// ever.
const MOST_STRANGERS: usize = 256;

/// An image, and where it is.
pub(super) struct LoadedImage {
    id: ModuleId,
    load_bias: u64,
    /// Run-time addresses of the anchors.
    anchors: Range<u64>,
    /// Not unloaded yet.
    loaded: bool,
}

impl Process {
    /// The program loaded an image.
    pub fn load_image(&self, message: &Message, output: &Output, tools: &mut Tools) {
        if output.discards() {
            return;
        }
        match self.library.find(self.pid, &message.path, &message.build_id, output) {
            Ok(Some(image)) => {
                // Words that are older than the image mean what was there before.
                let replaced = self.images_in(&anchors(&image.module, message.load_bias));
                self.read_everything(output, tools, &Ending::Replaced(replaced));
                self.add_image(image, message.load_bias, output);
            }
            Ok(None) => {}
            Err(error) => output.note(format!("{error}; what it does is not recorded")),
        }
    }

    /// The anchors of images, unloaded by now, where another one's anchors are to be.
    fn images_in(&self, anchors: &Range<u64>) -> Vec<Range<u64>> {
        let images = lock(&self.images);
        let old = images.iter().filter(|old| !old.loaded && overlap(&old.anchors, anchors));
        old.map(|old| old.anchors.clone()).collect()
    }

    fn add_image(&self, image: Known, load_bias: u64, output: &Output) {
        let Known { id, module, .. } = image;
        lock(&self.strangers).clear();
        let event = Event::ModuleLoad { process: self.index, module: id.0, load_bias, stamp: clock::stamp() };
        output.event(&event);
        let anchors = anchors(&module, load_bias);
        {
            let mut images = lock(&self.images);
            images.retain(|old| !overlap(&old.anchors, &anchors));
            images.push(LoadedImage { id, load_bias, anchors, loaded: true });
        }
        self.space.write().unwrap_or_else(PoisonError::into_inner).load(id, module, load_bias);
    }

    /// The program is about to unload an image, and waits for our reply.
    pub fn unload_image(&self, message: &Message, output: &Output, tools: &mut Tools) {
        let image = lock(&self.images)
            .iter()
            .find(|image| image.loaded && image.load_bias == message.load_bias)
            .map(|image| image.id);
        let Some(id) = image else { return };
        *lock(&self.last_maps) = images::maps(self.pid).unwrap_or_default();
        // Other threads may be inside its code: this may be the program's end.
        self.read_everything(output, tools, &Ending::Runs);
        // Its anchors keep their meaning until another image takes their place: at exit, destructors of
        // others may still call into it.
        let load_bias = message.load_bias;
        let gone = |image: &&mut LoadedImage| (image.id, image.load_bias) == (id, load_bias);
        lock(&self.images).iter_mut().filter(gone).for_each(|image| image.loaded = false);
        let event =
            Event::ModuleUnload { process: self.index, module: id.0, load_bias, stamp: clock::stamp() };
        output.event(&event);
    }

    /// Notes the code that it had mapped, and that has no site tables.
    pub(super) fn tell_plain(&self, output: &Output) {
        let anchors: Vec<u64> = lock(&self.images).iter().map(|image| image.anchors.start).collect();
        for maps in [&self.maps, &*lock(&self.last_maps)] {
            output.add_plain(images::code_without(maps, &anchors));
        }
    }

    /// The first word that is the address of an anchor.
    pub fn find_header(&self, words: &[u64]) -> Option<usize> {
        let images = lock(&self.images);
        words.iter().position(|word| images.iter().any(|image| image.anchors.contains(word)))
    }

    /// Looks for the image of a header word among all that is mapped: code may run before its
    /// image's constructor. True if the address space is not that of `generation` any more, so that
    /// the word may have a meaning now.
    pub fn find_image_of(&self, header: u64, generation: u64, output: &Output) -> bool {
        // Who reads another ring may be looking for the same image: what it finds is not to be dropped here.
        let _one_at_a_time = lock(&self.search);
        let has_changed = || self.space().generation() != generation;
        if has_changed() {
            return true;
        }
        let page = header >> PAGE_BITS;
        {
            let mut strangers = lock(&self.strangers);
            if strangers.len() >= MOST_STRANGERS || !strangers.insert(page) {
                return false;
            }
        }
        if self.find_unknown_image(header, output) {
            lock(&self.strangers).remove(&page);
        }
        has_changed()
    }

    fn find_unknown_image(&self, header: u64, output: &Output) -> bool {
        let now = images::maps(self.pid).unwrap_or_default();
        let mapped = [&now, &self.maps].into_iter().find_map(|maps| images::mapped_at(maps, header));
        let Some((path, start)) = mapped else { return false };
        let Ok(Some(image)) = self.library.find(self.pid, &path, &[], output) else { return false };
        let load_bias = if image.relocatable { start } else { 0 };
        let known = lock(&self.images).iter().any(|image| image.loaded && image.load_bias == load_bias);
        if known || !anchors(&image.module, load_bias).contains(&header) {
            return false;
        }
        self.add_image(image, load_bias, output);
        true
    }
}

/// Returns where an image's anchors are at run time.
fn anchors(module: &Module, load_bias: u64) -> Range<u64> {
    let section = &module.image().anchors;
    let start = section.address.wrapping_add(load_bias);
    start..start.saturating_add(section.bytes.len() as u64)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}
