//! Finds the real compiler and learns which LLVM it is built on.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::install::{Install, LLVM_VERSIONS};

/// The language a driver is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `memlode cc`.
    C,
    /// `memlode c++`.
    Cxx,
    /// `memlode fc`.
    Fortran,
}

impl Language {
    /// The subcommand's name.
    pub fn command(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
            Language::Fortran => "fc",
        }
    }

    /// The variable that names another compiler.
    pub fn variable(self) -> &'static str {
        match self {
            Language::C => "MEMLODE_CC",
            Language::Cxx => "MEMLODE_CXX",
            Language::Fortran => "MEMLODE_FC",
        }
    }

    /// The compiler of an LLVM version, as Debian calls it.
    fn compiler(self, version: u32) -> String {
        match self {
            Language::C => format!("clang-{version}"),
            Language::Cxx => format!("clang++-{version}"),
            Language::Fortran => format!("flang-{version}"),
        }
    }

    /// The LLVM versions whose compiler of this language describes variables, best first.
    fn versions(self) -> &'static [u32] {
        match self {
            Language::C | Language::Cxx => &LLVM_VERSIONS,
            Language::Fortran => &[22],
        }
    }

    /// Which version that is, and how to get it, for messages.
    fn wanted(self) -> (&'static str, &'static str) {
        match self {
            Language::C | Language::Cxx => ("clang 22 and 19", "clang-22 lld-22"),
            Language::Fortran => ("flang 22", "flang-22 lld-22"),
        }
    }

    /// Returns the options that make the compiler print its major version.
    fn probe(self) -> (&'static [&'static str], &'static str) {
        match self {
            Language::C | Language::Cxx => (&["-x", "c", "-E", "-P", "-"], "__clang_major__"),
            Language::Fortran => (&["-x", "f95-cpp-input", "-E", "-P", "-"], "__flang_major__"),
        }
    }
}

/// A compiler that memlode has a plug-in for.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The executable.
    pub path: PathBuf,
    /// Its LLVM version.
    pub version: u32,
}

/// The compiler named by the environment, or the best clang on the path whose plug-in is installed.
pub fn find(language: Language, install: &Install) -> Result<Compiler> {
    let variable = language.variable();
    if let Some(name) = std::env::var_os(variable).filter(|name| !name.is_empty()) {
        let path = search_path(&name).with_context(|| {
            format!("{variable} names {}, which is not an executable file", name.display())
        })?;
        let version =
            version_of(language, &path).with_context(|| format!("{variable} names {}", path.display()))?;
        if !language.versions().contains(&version) {
            bail!(
                "{variable} names {}, version {version}; memlode has plug-ins for {} only: name one of those",
                path.display(),
                language.wanted().0
            );
        }
        return Ok(Compiler { path, version });
    }
    let names: Vec<String> = language.versions().iter().map(|&version| language.compiler(version)).collect();
    let found: Vec<Compiler> = names
        .iter()
        .zip(language.versions())
        .filter_map(|(name, &version)| Some(Compiler { path: search_path(OsStr::new(name))?, version }))
        .collect();
    let best = found.iter().find(|compiler| install.plugin(compiler.version).exists()).or(found.first());
    best.cloned().with_context(|| {
        let (wanted, packages) = language.wanted();
        let missing = match names.as_slice() {
            [one] => format!("{one} is not"),
            several => format!("neither {} is", several.join(" nor ")),
        };
        format!("{missing} on the path: `apt-get install {packages}` (or set {variable} to a compiler of {wanted})")
    })
}

/// Finds an executable as a shell would.
pub fn search_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return is_executable(Path::new(name)).then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The major LLVM version of a clang: from its name, from the target of its symbolic link, or,
/// failing both, by running it once and remembering the result.
pub fn version_of(language: Language, compiler: &Path) -> Result<u32> {
    let resolved = compiler.canonicalize().unwrap_or_else(|_| compiler.to_path_buf());
    match version_in_name(compiler).or_else(|| version_in_name(&resolved)) {
        Some(version) => Ok(version),
        None => ask(language, &resolved),
    }
}

/// `…/clang++-22` or `…/llvm-22/bin/clang`.
fn version_in_name(compiler: &Path) -> Option<u32> {
    let name = compiler.file_name()?.to_str()?;
    if let Some(version) =
        ["clang++-", "clang-", "flang-"].iter().find_map(|prefix| name.strip_prefix(prefix))
    {
        return version.parse().ok();
    }
    let is_ours = ["clang", "clang++", "flang"].contains(&name);
    let folder = compiler.parent()?.parent()?.file_name()?.to_str()?;
    folder.strip_prefix("llvm-").filter(|_| is_ours)?.parse().ok()
}

fn ask(language: Language, compiler: &Path) -> Result<u32> {
    let stamp = stamp(compiler);
    if let Some(version) = stamp.as_deref().and_then(remembered) {
        return Ok(version);
    }
    let (options, macro_name) = language.probe();
    let output = Command::new(compiler)
        .args(options)
        .stdin(text_as_input(macro_name)?)
        .stderr(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().parse().ok().with_context(|| {
        let wanted = language.wanted().0;
        let compiler_name = wanted.split(' ').next().unwrap_or_default();
        format!("{} is not {compiler_name}: memlode's plug-ins need {wanted}", compiler.display())
    })?;
    if let Some(stamp) = stamp {
        remember(&stamp, version);
    }
    Ok(version)
}

/// Any compiler has a `-dumpversion`; only the one that is meant expands its own macro.
fn text_as_input(macro_name: &str) -> Result<std::process::Stdio> {
    let (reader, mut writer) = std::io::pipe().context("cannot make a pipe to the compiler")?;
    std::io::Write::write_all(&mut writer, format!("{macro_name}\n").as_bytes())
        .context("cannot write to the compiler")?;
    Ok(reader.into())
}

/// Changes when the compiler's file does.
fn stamp(compiler: &Path) -> Option<String> {
    let meta = fs::metadata(compiler).ok()?;
    Some(format!("{} {} {} {}", meta.mtime(), meta.size(), meta.ino(), compiler.to_str()?))
}

fn cache_file() -> Option<PathBuf> {
    Some(cache_directory()?.join("compilers"))
}

/// Returns where we remember things.
pub fn cache_directory() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|path| Path::new(path).is_absolute())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("memlode"))
}

fn remembered(stamp: &str) -> Option<u32> {
    memlode_files::read_text(&cache_file()?, memlode_files::SMALL).ok()?.lines().find_map(|line| {
        let (version, of) = line.split_once(' ')?;
        (of == stamp).then(|| version.parse().ok())?
    })
}

/// A cache that cannot be written costs time and nothing else.
fn remember(stamp: &str, version: u32) {
    use std::io::Write;
    let Some(file) = cache_file() else { return };
    let _ = file.parent().map(fs::create_dir_all);
    // One write of one line in append mode: parallel compiles do not tear each other's lines.
    if let Ok(mut file) = fs::OpenOptions::new().create(true).append(true).open(file) {
        let _ = file.write_all(format!("{version} {stamp}\n").as_bytes());
    }
}

/// For the `--print` line: quotes a word so that a shell reads it back.
pub fn shell_quote(word: &OsString) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_names() {
        for (path, version) in [
            ("/usr/bin/clang-22", Some(22)),
            ("/usr/bin/clang++-19", Some(19)),
            ("/usr/lib/llvm-22/bin/clang", Some(22)),
            ("/usr/lib/llvm-19/bin/clang++", Some(19)),
            ("/usr/bin/flang-22", Some(22)),
            ("/usr/lib/llvm-22/bin/flang", Some(22)),
            ("/usr/bin/flang-new-22", None),
            ("/usr/bin/clang", None),
            ("/usr/bin/clang-cl-22", None),
            ("/usr/bin/gcc-12", None),
        ] {
            assert_eq!(version_in_name(Path::new(path)), version, "{path}");
        }
    }

    #[test]
    fn quoting_survives_a_shell() {
        for word in ["plain", "", "two words", "it's", "$HOME", "a\"b", "x;y", "-DV=\"1\""] {
            let script = format!("printf %s {}", shell_quote(&OsString::from(word)));
            let out = Command::new("sh").arg("-c").arg(script).output().expect("sh runs");
            assert_eq!(String::from_utf8_lossy(&out.stdout), word);
        }
    }
}
