//! Functions of the system's static libraries: what every program that is linked statically has, and nobody chose.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol, SymbolKind};

/// Names of functions with the bytes of their code.
pub type Functions = BTreeSet<(String, u64)>;

/// Libraries that come with a compiler or with the C library.
const LIBRARIES: [&str; 22] = [
    "anl", "atomic", "c", "c++", "c++abi", "dl", "gcc", "gcc_eh", "gfortran", "gomp", "itm", "m", "mvec",
    "pthread", "quadmath", "resolv", "rt", "stdc++", "stdc++fs", "supc++", "unwind", "util",
];

/// The largest library that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Returns the functions of the libraries that this machine has; none if their files cannot be read.
pub fn functions() -> Functions {
    let mut functions = Functions::new();
    for library in folders().iter().flat_map(|folder| libraries(folder)) {
        if let Ok(bytes) = memlode_files::read(&library, MOST_BYTES) {
            add(&mut functions, &bytes);
        }
    }
    functions
}

/// Folders in which Debian and others keep them: the C library's, and those of each version of gcc.
fn folders() -> Vec<PathBuf> {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let mut folders: Vec<PathBuf> =
        [format!("/usr/lib/{machine}"), "/usr/lib64".into()].map(PathBuf::from).to_vec();
    let within = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    for parent in
        [format!("/usr/lib/gcc/{machine}"), format!("/usr/lib/gcc/{}-redhat-linux", std::env::consts::ARCH)]
    {
        folders.extend(within(Path::new(&parent)));
    }
    folders.sort();
    folders
}

/// The static libraries of a folder that belong to the system.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_systems);
    entries.map(|entry| entry.path()).filter(is_ours).collect()
}

/// Returns whether a file is one of these libraries: `libc.a`, or with a version, `libm-2.36.a`.
fn is_systems(file: &str) -> bool {
    let Some(name) = file.strip_prefix("lib").and_then(|name| name.strip_suffix(".a")) else { return false };
    let stem = match name.rsplit_once('-') {
        Some((stem, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => stem,
        _ => name,
    };
    LIBRARIES.contains(&stem)
}

/// Adds the functions of a library's members; what is no member of a known kind has none.
fn add(functions: &mut Functions, library: &[u8]) {
    let Ok(archive) = ArchiveFile::parse(library) else { return };
    for member in archive.members().map_while(Result::ok) {
        let Ok(object) = member.data(library).and_then(object::File::parse) else { continue };
        for symbol in object.symbols() {
            if symbol.kind() == SymbolKind::Text
                && symbol.is_definition()
                && symbol.size() > 0
                && let Ok(name) = symbol.name()
            {
                functions.insert((name.to_owned(), symbol.size()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        for file in ["libc.a", "libm-2.36.a", "libstdc++.a", "libgcc_eh.a"] {
            assert!(is_systems(file), "{file}");
        }
        for file in ["libz.a", "libc.so", "libcurses.a", "libmine-2.36.a", "c.a"] {
            assert!(!is_systems(file), "{file}");
        }
    }

    #[test]
    fn what_is_no_library_has_no_functions() {
        let mut functions = Functions::new();
        for bytes in [&b""[..], b"!<arch>\n", b"!<arch>\nrubbish", b"!<thin>\n", b"/* GNU ld script */"] {
            add(&mut functions, bytes);
        }
        assert!(functions.is_empty());
    }
}
