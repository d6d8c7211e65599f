//! Debug information in separate files, one for each unit (`-gsplit-dwarf`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use gimli::{Reader, RunTimeEndian};

use super::sections::section;
use super::{Dwarf, Slice, is_too_deep};
use crate::program::MOST_BYTES;

/// The information of a unit, from the file that the program names. `None` if the file is gone, or
/// of another build.
pub fn load(wanted: &SplitDwarfLoad<Slice>) -> Option<Arc<Dwarf>> {
    let mut path = PathBuf::new();
    for part in [wanted.comp_dir.as_ref(), Some(wanted.path.as_ref()?)].into_iter().flatten() {
        path.push(OsStr::from_bytes(&part.to_slice().ok()?));
    }
    let bytes: Arc<[u8]> = memlode_files::read_stored(&path, MOST_BYTES).ok()?.into();
    let image = object::File::parse(&*bytes).ok()?;
    let none = Slice::new(Arc::default(), RunTimeEndian::Little);
    let section = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
        let found = id.dwo_name().and_then(|name| section(&bytes, &image, name));
        Ok(found.unwrap_or_else(|| none.clone()))
    };
    let mut dwarf = Dwarf::load(section).ok()?;
    let header = dwarf.units().next().ok()??;
    if dwarf.unit(header).ok()?.dwo_id != Some(wanted.dwo_id) || is_too_deep(&dwarf) {
        return None;
    }
    dwarf.make_dwo(&wanted.parent);
    Some(Arc::new(dwarf))
}
