//! From what a program says about an image to the ELF file behind it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memlode_symbols::Image;
use rustix::process::Pid;

/// Why an image's site tables are not at hand.
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

/// Reads the image a process has loaded from `path`; the empty path is the main program.
///
/// A file with another build id than the one in memory is refused. Where one of them has none, the path must do.
pub fn find(pid: Pid, path: &Path, build_id: &[u8]) -> Result<Image, Error> {
    let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_pid()));
    let (name, candidates) = if path.as_os_str().is_empty() {
        let exe = proc.join("exe");
        (std::fs::read_link(&exe).unwrap_or_else(|_| exe.clone()), vec![exe])
    } else {
        // Through the process's own root first: it may live in a container.
        let inside = proc.join("root").join(path.strip_prefix("/").unwrap_or(path));
        (path.to_owned(), vec![inside, path.to_owned()])
    };
    let mut refused = None;
    for candidate in candidates {
        match Image::read(&candidate) {
            Ok(mut image) => {
                let found = &image.module.build_id;
                if found.is_empty() || build_id.is_empty() || found == build_id {
                    image.module.path = name.to_string_lossy().into_owned();
                    return Ok(image);
                }
                refused.get_or_insert(Error::Replaced { path: name.clone() });
            }
            Err(error) => _ = refused.get_or_insert(error.into()),
        }
    }
    Err(refused.unwrap_or(Error::Replaced { path: name }))
}

/// What a process has mapped: `/proc/PID/maps`.
pub fn maps(pid: Pid) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{}/maps", pid.as_raw_pid())).ok()
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

/// A line of `/proc/PID/maps`.
struct Mapping<'a> {
    start: u64,
    end: u64,
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
        let (range, _access, offset, _device, _inode) = (field()?, field()?, field()?, field()?, field()?);
        let (start, end) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
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
    fn finds_the_test_itself() {
        let here = finds_the_test_itself as fn() as usize as u64;
        let (path, _) = mapped_at(&maps(rustix::process::getpid()).unwrap(), here).unwrap();
        assert_eq!(path, std::env::current_exe().unwrap());
    }
}
