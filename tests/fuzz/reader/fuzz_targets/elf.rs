//! ELF images, and the site tables in them.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use memlode_symbols::ElfImage;
use memlode_trace::module::Module;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(image) = ElfImage::parse(bytes, Path::new("fuzz")) {
        // Kept no more than the file has.
        assert!(image.module.anchors.bytes.len() <= bytes.len());
        assert!(image.module.tables.bytes.len() <= bytes.len());
        assert!(image.module.globals.is_sorted_by_key(|global| global.address));
        let _ = Module::parse(image.module);
    }
});
