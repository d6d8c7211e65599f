//! The sources that a program was compiled from, and no other files.
//!
//! A trace may name any file of the reader's as a source: `#line 1 "/etc/shadow"` is enough. So
//! only files that were compiled are read, which the recording user has anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use md5::{Digest, Md5};
use memlode_files::{Folder, SOURCE, Stored};
use memlode_trace::Trace;
use memlode_trace::sites::SiteTable;

use crate::text::printable;

/// Endings of sources without a checksum: compilers that write none are those of Fortran, and of C and C++ for DWARF 4.
const ENDINGS: &[&str] = &[
    "c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc", "def", "f",
    "F", "for", "f90", "F90", "f95", "F95", "f03", "F03", "f08", "F08", "rs",
];

/// Facts by which a file is known to be one that a program was compiled from.
pub struct Compiled {
    /// The MD5 of each text that was compiled, by path.
    checksums: BTreeMap<PathBuf, BTreeSet<[u8; 16]>>,
    /// Directories that the compiler worked in.
    directories: Vec<PathBuf>,
    /// When the recorded program was started.
    started: SystemTime,
    /// Files and folders whose text is never read.
    confidential: Vec<PathBuf>,
}

/// A name that no source of a program goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchSource(PathBuf);

impl fmt::Display for NoSuchSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.display().to_string();
        write!(f, "no source of the program is called {}, or lies in a folder of that name", printable(&name))
    }
}

impl std::error::Error for NoSuchSource {}

/// Returns whether a file goes by a name, or lies in a folder that does: by the last parts of the path, as compilers
/// wrote it or without its `..`, or where both lead.
fn is_in(file: &Path, name: &Path) -> bool {
    let tail = without_detours(name);
    let goes_by =
        |file: &Path| tail.file_name().is_some() && file.ancestors().any(|part| part.ends_with(&tail));
    let real = |path: &Path| path.canonicalize().ok();
    let is_there = || real(file).zip(real(name)).is_some_and(|(file, name)| file.starts_with(name));
    goes_by(file) || goes_by(&without_detours(file)) || is_there()
}

/// A path without `.` and `..`, as far as its own parts tell.
fn without_detours(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

impl Compiled {
    /// Takes the facts from a trace.
    pub fn of(trace: &Trace) -> Compiled {
        let names = trace.sites();
        let mut checksums: BTreeMap<PathBuf, BTreeSet<[u8; 16]>> = BTreeMap::new();
        for (&file, sums) in &names.sources().checksums {
            checksums.entry(names.path(file).into()).or_default().extend(sums);
        }
        let directories = names.sources().directories.iter().map(|&name| names.string(name).into()).collect();
        let started = Duration::from_millis(trace.manifest().info.started_unix_ms);
        let started = SystemTime::UNIX_EPOCH.checked_add(started).unwrap_or(SystemTime::UNIX_EPOCH);
        Compiled { checksums, directories, started, confidential: Vec::new() }
    }

    /// Never reads the text of these files, or of files in these folders. Each is named by the last parts of its
    /// path, as many as tell it from others, or as it is found from here.
    ///
    /// # Errors
    /// The first name that no source of the program goes by: its text would be shown.
    pub fn hiding(mut self, names: &SiteTable, confidential: &[PathBuf]) -> Result<Compiled, NoSuchSource> {
        let files = names.functions().iter().filter_map(|function| function.file);
        let files: BTreeSet<PathBuf> = files.map(|file| names.path(file).into()).collect();
        for name in confidential {
            let is_known = files.iter().chain(self.checksums.keys()).any(|file| is_in(file, name));
            if !is_known {
                return Err(NoSuchSource(name.clone()));
            }
        }
        self.confidential = confidential.to_vec();
        Ok(self)
    }

    /// Adds directories that the compiler of a program worked in, which is known to be the one of the trace.
    pub fn within(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Compiled {
        self.directories.extend(directories);
        self
    }

    /// Reads a source of at most [`SOURCE`] bytes if it is the text that was compiled.
    ///
    /// # Errors
    /// The end of a sentence with the reason why it is not, or cannot be read: *it is not there*.
    pub fn read(&self, file: &Path) -> Result<Vec<u8>, String> {
        if self.confidential.iter().any(|name| is_in(file, name)) {
            return Err("it is confidential".to_string());
        }
        let Some(checksums) = self.checksums.get(file) else { return self.unchecked(file) };
        let bytes = memlode_files::read_stored(file, SOURCE).map_err(cannot)?;
        match checksums.contains(&<[u8; 16]>::from(Md5::digest(&bytes))) {
            true => Ok(bytes),
            false => Err("it is not the text that was compiled".to_string()),
        }
    }

    /// Reads a source by its real path, which the compiler may have reached through links.
    ///
    /// # Errors
    /// Those of [`Compiled::read`].
    pub fn read_real(&self, file: &Path) -> Result<Vec<u8>, String> {
        let is_it = |name: &&PathBuf| name.canonicalize().is_ok_and(|name| name == file);
        match self.checksums.contains_key(file) {
            true => self.read(file),
            false => self.read(self.checksums.keys().find(is_it).map_or(file, PathBuf::as_path)),
        }
    }

    /// Reads a source that the compiler left no checksum of, from below the directory where it worked.
    fn unchecked(&self, name: &Path) -> Result<Vec<u8>, String> {
        let unknown = "nothing says that it is the file that was compiled: the compiler left no checksum, and it is no \
                       source below the directory that was compiled in";
        let ending = name.extension().and_then(|ending| ending.to_str());
        let below = self.directories.iter().find_map(|directory| Some((directory, below(name, directory)?)));
        let (directory, inner) =
            below.filter(|_| ending.is_some_and(|ending| ENDINGS.contains(&ending))).ok_or(unknown)?;
        let folder = Folder::open(directory).map_err(cannot)?;
        let Stored { bytes, modified } = folder.read_stored(inner, SOURCE).map_err(cannot)?;
        match modified > self.started {
            true => Err("it was written after the program was started".to_string()),
            false => Ok(bytes),
        }
    }
}

/// Returns the path of a file below a directory of a user's work: the directory is not the root,
/// and no name leads out of it.
fn below<'a>(name: &'a Path, directory: &Path) -> Option<&'a Path> {
    let is_plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let is_root = directory.components().count() < 2;
    name.strip_prefix(directory).ok().filter(|_| directory.is_absolute() && !is_root && is_plain(name))
}

fn cannot(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it is not there".to_string(),
        ErrorKind::InvalidInput | ErrorKind::FileTooLarge => format!("it {error}"),
        _ => format!("it cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sources_below_the_directory_need_no_checksum() {
        let place = tempfile::tempdir().unwrap();
        let (work, other) = (place.path().join("work"), place.path().join("other"));
        std::fs::create_dir_all(work.join("sub")).unwrap();
        std::fs::create_dir(&other).unwrap();
        for file in ["work/a.f90", "work/sub/b.c", "work/shadow", "other/c.c"] {
            std::fs::write(place.path().join(file), "text").unwrap();
        }
        std::os::unix::fs::symlink(&other, work.join("link")).unwrap();
        std::os::unix::fs::symlink(other.join("c.c"), work.join("d.c")).unwrap();
        let written = std::fs::metadata(other.join("c.c")).unwrap().modified().unwrap();
        let started = written + Duration::from_secs(9);
        let compiled = |directory: &Path, started| Compiled {
            checksums: BTreeMap::new(),
            directories: vec![directory.to_owned()],
            started,
            confidential: Vec::new(),
        };
        let shown = |directory: &Path, name: &str| {
            compiled(directory, started).read(name.as_ref()).map(|text| String::from_utf8(text).unwrap())
        };
        let at = |name: &str| work.join(name).display().to_string();
        assert_eq!(shown(&work, &at("a.f90")).unwrap(), "text");
        assert_eq!(shown(&work, &at("sub/b.c")).unwrap(), "text");
        for name in ["shadow", "../other/c.c", "sub/../a.f90", "link/c.c", "d.c", "sub", "none.c"] {
            assert!(shown(&work, &at(name)).is_err(), "{name}");
        }
        assert!(shown(&work, &other.join("c.c").display().to_string()).is_err());
        for directory in ["/", "", ".", "/.."] {
            assert!(shown(Path::new(directory), &at("a.f90")).is_err(), "{directory}");
        }
        let early = compiled(&work, written - Duration::from_secs(1)).read(at("a.f90").as_ref());
        assert_eq!(early.err().unwrap(), "it was written after the program was started");
    }

    #[test]
    fn a_checksum_is_that_of_the_whole_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "The quick brown fox jumps over the lazy dog").unwrap();
        let name = file.path().to_owned();
        // RFC 1321's algorithm; the sum is the well-known one of this sentence.
        let sum = 0x9e10_7d9d_372b_b682_6bd8_1d35_42a4_19d6_u128.to_be_bytes();
        let read = |sum| {
            let checksums = BTreeMap::from([(name.clone(), BTreeSet::from([sum]))]);
            let (directories, started) = (Vec::new(), SystemTime::now());
            let compiled = Compiled { checksums, directories, started, confidential: Vec::new() };
            compiled.read(&name).map(|text| text.len())
        };
        assert_eq!(read(sum), Ok(43));
        assert_eq!(read([0; 16]), Err("it is not the text that was compiled".to_string()));
    }

    #[test]
    fn a_confidential_file_goes_by_the_end_of_its_path() {
        let is_in = |file: &str, name: &str| super::is_in(Path::new(file), Path::new(name));
        let file = "/proj/build/../src/crypto/keys.c";
        for name in [
            "keys.c",
            "crypto/keys.c",
            "./keys.c",
            "src/crypto",
            "crypto/",
            "/proj/src/crypto/keys.c",
            "/proj",
        ] {
            assert!(is_in(file, name), "{name}");
        }
        for name in ["eys.c", "key", "src/keys.c", "/src/crypto", "/crypto/keys.c", "", "."] {
            assert!(!is_in(file, name), "{name}");
        }
    }
}
