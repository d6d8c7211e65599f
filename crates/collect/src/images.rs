//! From a program's description of an image to the ELF file behind it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use memlode_symbols::ElfImage;
use memlode_trace::module::{Module, ModuleId, ModuleImage};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::process::Pid;

use crate::output::{Output, lock};

/// The reason why an image's site tables are missing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file.
    #[error(transparent)]
    Symbols(#[from] memlode_symbols::Error),
    /// Another file has taken its place.
    #[error("{path} is no longer the file the program was started with: its build id differs", path = .path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
}

/// The images of a trace. A file that many processes load is read once.
#[derive(Default)]
pub struct Images {
    known: Mutex<FxHashMap<FileIdentity, Known>>,
}

/// An image in the trace.
#[derive(Clone)]
pub struct Known {
    /// Its number.
    pub id: ModuleId,
    /// Its contents.
    pub module: Arc<Module>,
    /// Loaded where the system chose.
    pub relocatable: bool,
}

/// Device, inode, size, time of the last change.
type FileIdentity = (u64, u64, u64, i64, i64);

fn identity(path: &Path) -> Option<FileIdentity> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec()))
}

impl Images {
    /// The image a process has loaded from `path`; the empty path is the main program. `None` if it
    /// cannot be written.
    ///
    /// A file with another build id than the one in memory is refused. Where one of them has none,
    /// the path must do.
    pub fn find(
        &self,
        pid: Pid,
        path: &Path,
        build_id: &[u8],
        output: &Output,
    ) -> Result<Option<Known>, Error> {
        let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_pid()));
        let (name, candidates) = if path.as_os_str().is_empty() {
            let exe = proc.join("exe");
            (std::fs::read_link(&exe).unwrap_or_else(|_| exe.clone()), vec![exe])
        } else {
            // Through the process's own root first: it may live in a container.
            let inside = proc.join("root").join(path.strip_prefix("/").unwrap_or(path));
            (path.to_owned(), vec![inside, path.to_owned()])
        };
        let matches = |found: &[u8]| found.is_empty() || build_id.is_empty() || found == build_id;
        let mut refused = None;
        for candidate in candidates {
            let identity = identity(&candidate);
            let known = identity.and_then(|identity| lock(&self.known).get(&identity).cloned());
            if let Some(known) = known.filter(|known| matches(&known.module.image().build_id)) {
                return Ok(Some(known));
            }
            match ElfImage::read(&candidate) {
                Ok(image) if matches(&image.module.build_id) => {
                    let image = ElfImage {
                        module: ModuleImage { path: name.to_string_lossy().into_owned(), ..image.module },
                        ..image
                    };
                    let Some((id, module)) = output.add_module(image.module) else { return Ok(None) };
                    let known = Known { id, module, relocatable: image.relocatable };
                    if let Some(identity) = identity {
                        lock(&self.known).insert(identity, known.clone());
                    }
                    return Ok(Some(known));
                }
                Ok(_) => _ = refused.get_or_insert(Error::Replaced { path: name.clone() }),
                Err(error) => _ = refused.get_or_insert(error.into()),
            }
        }
        Err(refused.unwrap_or(Error::Replaced { path: name }))
    }
}

/// Returns the mappings of a process: `/proc/PID/maps`.
pub fn maps(pid: Pid) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{}/maps", pid.as_raw_pid())).ok()
}

/// Returns whether shared memory of ours is among the mappings.
pub fn is_mapped(maps: &[u8], inode: u64) -> bool {
    let text = String::from_utf8_lossy(maps);
    let number = inode.to_string();
    text.lines().any(|line| {
        // Addresses, rights, offset, device, inode, name.
        let mut fields = line.split_ascii_whitespace().skip(4);
        fields.next() == Some(number.as_str()) && fields.next() == Some("/memfd:memlode")
    })
}

/// The file mapped at an address, and where its first page is.
pub fn mapped_at(maps: &[u8], address: u64) -> Option<(PathBuf, u64)> {
    let mappings: Vec<Mapping<'_>> = maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse).collect();
    let here = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    if here.path.first() != Some(&b'/') {
        return None;
    }
    // The image's first mapping below, of the same file, starts at its ELF header.
    let first = mappings
        .iter()
        .rev()
        .skip_while(|mapping| mapping.start > here.start)
        .find(|mapping| mapping.path == here.path && mapping.offset == 0)?;
    Some((PathBuf::from(OsStr::from_bytes(here.path)), first.start))
}

/// Returns the files whose code is mapped, except those that hold one of the addresses.
pub fn code_without(maps: &[u8], addresses: &[u64]) -> BTreeSet<PathBuf> {
    let mappings = || maps.split(|&byte| byte == b'\n').filter_map(Mapping::parse);
    let ours: FxHashSet<&[u8]> = mappings()
        .filter(|mapping| addresses.iter().any(|at| (mapping.start..mapping.end).contains(at)))
        .map(|mapping| mapping.path)
        .collect();
    let is_file =
        |path: &[u8]| path.starts_with(b"/") && !path.starts_with(b"/memfd:") && !path.starts_with(b"/dev/");
    mappings()
        .filter(|mapping| mapping.is_executable && is_file(mapping.path) && !ours.contains(mapping.path))
        .map(|mapping| PathBuf::from(OsStr::from_bytes(mapping.path)))
        .collect()
}

/// A line of `/proc/PID/maps`.
struct Mapping<'a> {
    start: u64,
    end: u64,
    is_executable: bool,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Mapping<'a>> {
        let mut rest = line;
        let mut field = || {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            rest = after;
            std::str::from_utf8(field).ok()
        };
        let (range, access, offset, _device, _inode) = (field()?, field()?, field()?, field()?, field()?);
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            is_executable: access.contains('x'),
            offset: number(offset)?,
            path: rest.trim_ascii_start(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line =
            b"7f12a000-7f12c000 r-xp 00001000 fd:00 1234                      /usr/lib/a b.so (deleted)";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f12_a000, 0x7f12_c000, 0x1000));
        assert_eq!(mapping.path, b"/usr/lib/a b.so (deleted)");
        assert_eq!(Mapping::parse(b"7f12a000-7f12c000 rw-p 00000000 00:00 0").unwrap().path, b"");
        for nonsense in [&b""[..], b"-", b"zz-1 r 0 0 0", b"1-2"] {
            assert!(Mapping::parse(nonsense).is_none());
        }
    }

    #[test]
    fn code_is_that_of_files_without_our_anchors() {
        let maps = b"1000-2000 r--p 0 fd:00 1 /bin/ours\n2000-3000 r-xp 1000 fd:00 1 /bin/ours\n\
            4000-5000 r--p 0 fd:00 2 /lib/libplain.so\n5000-6000 r-xp 1000 fd:00 2 /lib/libplain.so\n\
            6000-7000 r--p 0 fd:00 3 /share/data\n7000-8000 r-xp 0 00:01 4 /memfd:jit (deleted)\n\
            8000-9000 r-xp 0 00:00 0 [vdso]\n9000-a000 r-xp 0 00:00 0";
        assert_eq!(code_without(maps, &[0x1800]), [PathBuf::from("/lib/libplain.so")].into());
        assert_eq!(code_without(maps, &[0x1800, 0x4000]), BTreeSet::new());
        assert_eq!(code_without(maps, &[]).len(), 2);
    }

    #[test]
    fn finds_the_test_itself() {
        let here = finds_the_test_itself as fn() as usize as u64;
        let (path, _) = mapped_at(&maps(rustix::process::getpid()).unwrap(), here).unwrap();
        assert_eq!(path, std::env::current_exe().unwrap());
    }
}
