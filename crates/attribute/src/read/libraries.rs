//! Code and types of the compiler, the system or a package, which a user does not change for one
//! program.

use memlode_trace::sites::{FunctionId, SiteTable, StringId};
use rustc_hash::FxHashSet;

/// Folders in which Cargo keeps sources of packages: those of registries and those of repositories.
const PACKAGES: [&str; 2] = ["/registry/src/", "/git/checkouts/"];

/// Returns whether a function is text that came with the compiler or the system.
pub fn is_library_function(names: &SiteTable, function: FunctionId) -> bool {
    is_library_text(names, names.function(function).file, names.symbol(function))
}

/// Returns whether a type came with the compiler, judging by its name.
pub fn is_library_type(name: &str) -> bool {
    ["std::", "core::", "alloc::", "hashbrown::", "__gnu_cxx::"].iter().any(|start| name.starts_with(start))
}

/// Returns whether text is a library's: that of a file, directory and name, or of a function by its
/// name.
pub(crate) fn is_library_text(
    names: &SiteTable,
    file: Option<(StringId, StringId)>,
    function: StringId,
) -> bool {
    let Some((directory, file)) = file else {
        // Rust's compiler makes the functions that pass allocations on; they have no source.
        return names.string(function).contains("_7___rustc");
    };
    [names.string(directory), names.string(file)].iter().any(|path| is_library_path(path))
}

/// Returns whether a file came with the compiler or the system.
///
/// Only the path shows it: system directories, the folder in which Rust's standard library was
/// built, and the folder of its installed sources.
pub fn is_library_path(path: &str) -> bool {
    ["/usr/", "/rustc/", "/rust/deps/"].iter().any(|start| path.starts_with(start))
        || ["/include/c++/", "/lib/rustlib/src/rust/"].iter().any(|part| path.contains(part))
}

/// Returns whether a file belongs to a library, or to a package whose sources Cargo fetched.
pub fn is_foreign_path(path: &str) -> bool {
    is_library_path(path) || PACKAGES.iter().any(|part| path.contains(part))
}

/// The crates of a program whose sources Cargo fetched.
#[derive(Clone, Debug, Default)]
pub struct FetchedCrates(FxHashSet<String>);

impl FetchedCrates {
    /// The fetched crates of all functions of the trace.
    pub fn of(names: &SiteTable) -> FetchedCrates {
        let directories: FxHashSet<_> = names
            .functions()
            .iter()
            .filter_map(|function| function.file)
            .map(|(directory, _)| directory)
            .collect();
        FetchedCrates(directories.into_iter().filter_map(|id| fetched_crate(names.string(id))).collect())
    }

    /// Returns whether a type came with the compiler or is one of these crates', judging by its
    /// name.
    pub fn has_type(&self, name: &str) -> bool {
        let of_crate = || name.split_once("::").is_some_and(|(first, _)| self.0.contains(first));
        is_library_type(name) || of_crate()
    }
}

/// Returns the name of the crate that a directory belongs to, as its types have it, if Cargo
/// fetched it: the folder is called by the package and its version, or the repository and a hash.
fn fetched_crate(directory: &str) -> Option<String> {
    let (_, rest) = PACKAGES.iter().find_map(|part| directory.split_once(part))?;
    // Behind a registry's own folder comes the package.
    let is_registry = directory.contains(PACKAGES[0]);
    let package = rest.split('/').nth(usize::from(is_registry))?;
    let end = match is_registry {
        true => package.match_indices('-').map(|(at, _)| at).find(|at| is_version(&package[at + 1..]))?,
        false => package.rfind('-')?,
    };
    Some(package[..end].replace('-', "_"))
}

/// Returns whether a text begins with two numbers and points behind each.
fn is_version(text: &str) -> bool {
    let mut numbers = text.splitn(3, '.');
    let mut is_number =
        || numbers.next().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    is_number() && is_number() && numbers.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_their_place() {
        for path in [
            "/usr/include/c++/12",
            "/opt/gcc/include/c++/14/bits",
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/alloc/src/vec",
            "/rust/deps/hashbrown-0.16.1",
            "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src",
        ] {
            assert!(is_library_path(path), "{path}");
        }
        for path in
            ["src/main.rs", "/home/me/rustc/src", "/home/me/.cargo/registry/src/index-1/smallvec-1.16.5/src"]
        {
            assert!(!is_library_path(path), "{path}");
        }
    }

    #[test]
    fn crates_are_named_by_the_folder_of_their_package() {
        for (directory, name) in [
            ("/home/me/.cargo/registry/src/index.crates-1949cf8c6b5b557f/indexmap-2.2.6/src/map", "indexmap"),
            ("/home/me/.cargo/registry/src/index-1/crossbeam-epoch-0.9.18/src", "crossbeam_epoch"),
            ("/home/me/.cargo/registry/src/index-1/x-86-1.0.0-rc.1/src", "x_86"),
            ("/home/me/.cargo/git/checkouts/bumpalo-4fa1d8e3/0a1b2c3/src", "bumpalo"),
        ] {
            assert_eq!(fetched_crate(directory).as_deref(), Some(name), "{directory}");
        }
        for directory in ["src", "/home/me/vendor/indexmap/src", "/home/me/.cargo/registry/src/index-1"] {
            assert_eq!(fetched_crate(directory), None, "{directory}");
        }
    }
}
