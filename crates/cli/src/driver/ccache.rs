//! ccache between us and the compiler, if that is wanted.
//!
//! ```text
//! make ──► memlode-cc ARGS…  ──► ccache clang-22 -fpass-plugin=… ARGS…    MEMLODE_CCACHE=1, or the path of a ccache
//! ```
//! In front of us, ccache would not know our additions, and might use an object that was compiled
//! with another filter. Behind us it hashes the plug-in and the files that it reads, and a file
//! with its variables.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::depinfo::VARIABLES;
use super::toolchain::{cache_directory, search_path};

/// The variable that asks for ccache.
pub const CCACHE: &str = "MEMLODE_CCACHE";

/// Files whose content ccache hashes, divided by colons.
const EXTRA_FILES: &str = "CCACHE_EXTRAFILES";

/// Caches that would stand in front of us.
const CACHES: [&str; 2] = ["ccache", "sccache"];

/// Returns the command to run in front of the compiler, and a variable for it; `None` if not
/// requested. `variables` are those that the plug-in gets besides our own environment.
pub fn wanted(
    plugin: &Path,
    variables: &[(&'static str, OsString)],
) -> Result<Option<(PathBuf, (&'static str, OsString))>> {
    let asked = std::env::var_os(CCACHE).filter(|how| !how.is_empty() && how != "0");
    let Some(how) = asked else {
        refuse_in_front()?;
        return Ok(None);
    };
    let name = if how == "1" { OsStr::new("ccache") } else { &how };
    let ccache = search_path(name)
        .with_context(|| format!("{CCACHE} asks for {}, which is not on the path", name.display()))?;
    if !ccache.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ccache")) {
        bail!(
            "{CCACHE} asks for {}, which is not called ccache: other caches, sccache too, would take an object of another \
             filter for this one; set {CCACHE}=1 for ccache, or leave it out",
            ccache.display()
        );
    }
    let value = |name: &str| {
        let given = variables.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
        given.or_else(|| std::env::var_os(name))
    };
    let mut files = vec![plugin.to_path_buf()];
    let mut options = Vec::new();
    for (name, is_file) in VARIABLES {
        let Some(value) = value(name).filter(|value| !value.is_empty()) else { continue };
        if is_file {
            files.push(std::path::absolute(&value)?);
        }
        options.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    files.push(written(&options)?);
    let before = std::env::var_os(EXTRA_FILES).filter(|files| !files.is_empty());
    let all: Vec<OsString> = before.into_iter().chain(files.into_iter().map(OsString::from)).collect();
    Ok(Some((ccache, (EXTRA_FILES, all.join(OsStr::new(":"))))))
}

/// A file of this content.
fn written(content: &[u8]) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let directory = cache_directory().context("a place for ccache's files is needed: set HOME")?;
    let file = directory.join(format!("options-{:016x}", hasher.finish()));
    if memlode_files::read(&file, memlode_files::SMALL).is_ok_and(|found| found == content) {
        return Ok(file);
    }
    // Compilers that run beside us find all of it or nothing.
    let fresh = directory.join(format!("options-{}", std::process::id()));
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&fresh, content))
        .and_then(|()| fs::rename(&fresh, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// Fails if a cache runs us.
fn refuse_in_front() -> Result<()> {
    let parent = rustix::process::getppid().map(|parent| format!("/proc/{}/exe", parent.as_raw_pid()));
    let program = parent.and_then(|link| fs::read_link(link).ok());
    let name = program.as_ref().and_then(|program| program.file_name()?.to_str());
    if let Some(cache) = name.filter(|name| CACHES.contains(name)) {
        bail!(
            "{cache} in front of memlode cc would not notice another filter or another memlode: leave it out and set \
             {CCACHE}=1, and memlode cc calls ccache itself"
        );
    }
    Ok(())
}
