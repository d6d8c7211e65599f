//! Sections of debug information, compressed (`-gz`) or not, perhaps in a separate file.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::RunTimeEndian;
use object::{CompressedFileRange, CompressionFormat, Object, ObjectSection};

use super::Slice;
use crate::program::MOST_BYTES;

/// Bytes that a section may have for each byte that is stored of it, and besides.
const MOST_TIMES: u64 = 200;
const MOST_BESIDES: u64 = 16 << 20;
/// The folder of files of debug information.
const FOLDER: &str = "/usr/lib/debug";

/// A section of a file, uncompressed; `None` if there is none, or it is damaged.
pub fn section(bytes: &Arc<[u8]>, image: &object::File<'_>, name: &str) -> Option<Slice> {
    let section = image.section_by_name(name)?;
    let stored = section.compressed_file_range().ok()?;
    let from = usize::try_from(stored.offset).ok()?;
    let range = from..from.checked_add(usize::try_from(stored.compressed_size).ok()?)?;
    let packed = bytes.get(range.clone())?;
    match stored.format {
        CompressionFormat::None => Some(Slice::new(bytes.clone(), RunTimeEndian::Little).range(range)),
        _ => Some(Slice::new(unpacked(packed, &stored)?.into(), RunTimeEndian::Little)),
    }
}

/// Unpacks a section whose header has its length. Memory grows with the data, not with that length.
fn unpacked(packed: &[u8], stored: &CompressedFileRange) -> Option<Vec<u8>> {
    let most = stored.compressed_size.checked_mul(MOST_TIMES)?.checked_add(MOST_BESIDES)?;
    if stored.uncompressed_size > most.min(MOST_BYTES) {
        return None;
    }
    let mut found = Vec::new();
    let wanted = stored.uncompressed_size + 1;
    match stored.format {
        CompressionFormat::Zlib => {
            flate2::read::ZlibDecoder::new(packed).take(wanted).read_to_end(&mut found).ok()?;
        }
        CompressionFormat::Zstandard => {
            let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
            decoder.take(wanted).read_to_end(&mut found).ok()?;
        }
        _ => return None,
    }
    (found.len() as u64 == stored.uncompressed_size).then_some(found)
}

/// The file that has the debug information of a program that has none itself, found by its build id
/// or by the name that the program has for it. `root` is the folder that the program is named
/// below, if it is another machine's.
pub fn separate(program: &Path, root: Option<&Path>, image: &object::File<'_>) -> Option<Arc<[u8]>> {
    let folder = root.map_or_else(|| PathBuf::from(FOLDER), |root| root.join(&FOLDER[1..]));
    let by_id = image.build_id().ok().flatten().and_then(|id| by_build_id(&folder, id));
    let by_id = by_id.and_then(|path| read(&path, image, None));
    by_id.or_else(|| {
        let (name, checksum) = image.gnu_debuglink().ok().flatten()?;
        // A name alone: no stranger's file leads anywhere else.
        let name = Some(name).filter(|name| !name.contains(&b'/') && !name.is_empty())?;
        let name = Path::new(OsStr::from_bytes(name));
        let own = program.parent()?;
        let inside = own.strip_prefix(root.unwrap_or(Path::new("/"))).unwrap_or(own);
        let places = [own.join(name), own.join(".debug").join(name), folder.join(inside).join(name)];
        places.iter().filter(|place| *place != program).find_map(|path| read(path, image, Some(checksum)))
    })
}

/// `/usr/lib/debug/.build-id/ab/cdef….debug`
fn by_build_id(folder: &Path, id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(folder.join(format!(".build-id/{first:02x}/{rest}.debug")))
}

/// Reads a file, if it belongs to the program: by its build id, or else by the checksum that the
/// program has for it.
fn read(path: &Path, program: &object::File<'_>, checksum: Option<u32>) -> Option<Arc<[u8]>> {
    let bytes = memlode_files::read_stored(path, MOST_BYTES).ok()?;
    let own = object::File::parse(&*bytes).ok()?;
    let id = |image: &object::File<'_>| image.build_id().ok().flatten().map(<[u8]>::to_vec);
    let is_it = match (id(program), id(&own)) {
        (Some(theirs), Some(own)) => theirs == own,
        _ => checksum == Some(crc32fast::hash(&bytes)),
    };
    let has_debug = own.section_by_name(gimli::SectionId::DebugInfo.name()).is_some();
    (is_it && has_debug).then(|| bytes.into())
}
