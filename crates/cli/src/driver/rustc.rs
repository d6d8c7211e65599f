//! The wrapper between cargo and rustc: the compiler's command line, and what memlode adds to it.
//!
//! ```text
//! cargo ── RUSTC_WRAPPER ──► memlode-rustc rustc ARGS…          a link to memlode
//!                                └──► rustc ARGS… + additions   if ARGS have --target
//! ```
//! `memlode cargo` names a target even though it is this machine: cargo then builds code that runs
//! during the build (build scripts, procedural macros) without `--target`, by which it is
//! recognised and left alone.
//!
//! rustc loads no plug-ins, so the pass runs where LLVM takes over from it: `-C linker-plugin-lto`
//! makes bitcode of all crates, and lld compiles it (ThinLTO: module by module, the pass last in
//! each). At opt-level 0 LLVM's ThinLTO has no place for plug-ins, and the few passes that it would
//! run are given by name, with ours.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::toolchain::search_path;
use super::{depinfo, joined, require};
use crate::install::Install;

/// The name under which memlode is a wrapper of rustc.
pub const NAME: &str = "memlode-rustc";

/// The variable that passes on a wrapper of the user's own, such as sccache.
pub const INNER_WRAPPER: &str = "MEMLODE_RUSTC_WRAPPER";

/// The variable that passes on [`allocator_crate`] from `memlode cargo`.
pub const ALLOCATOR_CRATE: &str = "MEMLODE_RUST_ALLOCATOR_CRATE";

/// The functions by which Rust code gets and returns memory.
const ALLOCATOR: [&str; 4] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc"];

/// The LLVM that links: its bitcode reader has to be as new as rustc's LLVM, and the plug-in is of one version.
pub const LLVM: u32 = 22;

/// The passes of a ThinLTO link at opt-level 0, and our two. Recording needs no optimisation, but
/// only the inlining that the sources demand brings an allocation to its line in the source.
const UNOPTIMISED: &str = "memlode-names,always-inline,elim-avail-extern,globaldce,memlode";

/// Runs rustc; replaces this process unless there is work to do afterwards. `args` are those of
/// cargo, the compiler first.
pub fn run(args: Vec<OsString>) -> Result<ExitCode> {
    let mut words = args;
    if words.is_empty() {
        bail!("{NAME} is run by cargo, in place of rustc: use `memlode cargo build`");
    }
    let all = expanded(&words);
    let mut linked = None;
    if is_for_target(&all) {
        let install = Install::find()?;
        let symbols = std::env::var(ALLOCATOR_CRATE).unwrap_or_default();
        words.extend(additions(&install, is_optimised(&all), &symbols)?);
        linked = depinfo::of_linked(&all).map(|file| (file, install.plugin(LLVM)));
    }
    if let Some(inner) = std::env::var_os(INNER_WRAPPER).filter(|inner| !inner.is_empty()) {
        words.insert(0, inner);
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let cannot = || format!("cannot run {}", words[0].display());
    let Some((file, plugin)) = linked else { return Err(command.exec()).with_context(cannot) };
    let status = command.status().with_context(cannot)?;
    if status.success() {
        depinfo::amend(&file, &plugin)?;
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// rustc's options that make a crate part of a recorded program. `allocator_crate` is the result of
/// [`allocator_crate`].
pub fn additions(install: &Install, optimised: bool, allocator_crate: &str) -> Result<Vec<OsString>> {
    let plugin = install.plugin(LLVM);
    require(&plugin)?;
    require(&install.runtime())?;
    let mut linker: Vec<OsString> = vec![format!("-fuse-ld=lld-{LLVM}").into()];
    // -Xlinker and not -Wl: a comma in the path divides nothing.
    let mut pass_on = |word: OsString| linker.extend(["-Xlinker".into(), word]);
    pass_on(joined("--load-pass-plugin=", &plugin));
    if !optimised {
        pass_on(joined("--lto-newpm-passes=", UNOPTIMISED));
    }
    pass_on("-rpath".into());
    pass_on(install.lib().into());
    pass_on("--build-id".into());
    linker.extend([joined("-L", install.lib()), "-lmemlode_record".into()]);

    // An allocator of the program's own stands in one crate with calls of it: inlined by rustc, they could not be seen.
    let not_inlined = ALLOCATOR.map(|name| {
        let symbol = match allocator_crate {
            "" => name.to_owned(),
            path => format!("{path}{}_{name}", name.len()),
        };
        format!("-force-attribute={symbol}:noinline")
    });
    let options = [
        "linker-plugin-lto".into(),
        format!("linker=clang-{LLVM}").into(),
        "debuginfo=2".into(),
        format!("llvm-args={}", not_inlined.join(" ")).into(),
    ];
    let linker = linker.into_iter().map(|word| joined("link-arg=", word));
    Ok(options.into_iter().chain(linker).map(|option| joined("-C", option)).collect())
}

/// Returns the beginning of the symbols of a toolchain's allocator, up to the length of the name:
/// `_RNvCsbM2nZ_7___rustc`, the mangled path of a crate whose number differs between releases;
/// `None` before Rust 1.87. `sysroot` is rustc's.
///
/// # Errors
/// If the toolchain has no standard library for `host`, or it cannot be read.
pub fn allocator_crate(sysroot: &Path, host: &str) -> Result<String> {
    let libraries = sysroot.join("lib/rustlib").join(host).join("lib");
    let cannot = || format!("cannot read Rust's standard library in {}", libraries.display());
    let names = fs::read_dir(&libraries).with_context(cannot)?;
    let is_alloc = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("liballoc-") && name.ends_with(".rlib")
    };
    let library = names.filter_map(|entry| Some(entry.ok()?.path())).find(is_alloc);
    let library = library.with_context(|| format!("{} has no liballoc-*.rlib", libraries.display()))?;
    let bytes = memlode_files::read(&library, 1 << 30).with_context(cannot)?;
    let (begin, end) = (b"_RNvCs", format!("_7___rustc{}_{}", ALLOCATOR[0].len(), ALLOCATOR[0]));
    let found = bytes.windows(end.len()).position(|window| window == end.as_bytes());
    let Some(at) = found else { return Ok(String::new()) };
    let begins = bytes[..at].windows(begin.len()).rposition(|window| window == begin);
    let path = begins.and_then(|begins| std::str::from_utf8(&bytes[begins..at]).ok());
    let path = path.filter(|path| path.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()));
    Ok(path.map(|path| format!("{path}_7___rustc")).unwrap_or_default())
}

/// Fails, with the remedy, if the linker is not installed.
pub fn require_linker() -> Result<()> {
    for (program, package) in [(format!("clang-{LLVM}"), "clang"), (format!("ld.lld-{LLVM}"), "lld")] {
        if search_path(OsStr::new(&program)).is_none() {
            bail!(
                "{program} is not on the path, and Rust is linked with it: `apt-get install {package}-{LLVM}`"
            );
        }
    }
    Ok(())
}

/// The line with the contents of its argument files (one argument a line), which cargo makes when a
/// line gets too long.
fn expanded(words: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::new();
    for word in words {
        match word
            .to_str()
            .and_then(|word| memlode_files::read_text(word.strip_prefix('@')?.as_ref(), super::RESPONSE).ok())
        {
            Some(lines) => all.extend(lines.lines().map(OsString::from)),
            None => all.push(word.clone()),
        }
    }
    all
}

fn is_for_target(words: &[OsString]) -> bool {
    words
        .iter()
        .filter_map(|word| word.to_str())
        .any(|word| word == "--target" || word.starts_with("--target="))
}

/// Returns whether the last opt-level on the line is above 0.
fn is_optimised(words: &[OsString]) -> bool {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let level = |(at, word): (usize, &&str)| match *word {
        "-O" => Some(true),
        "-C" | "--codegen" => words.get(at + 1)?.strip_prefix("opt-level=").map(|level| level != "0"),
        word => word
            .strip_prefix("-Copt-level=")
            .or(word.strip_prefix("--codegen=opt-level="))
            .map(|level| level != "0"),
    };
    words.iter().enumerate().filter_map(level).next_back().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn only_what_is_built_for_a_target_is_recorded() {
        assert!(is_for_target(&words("rustc --crate-name a --target x86_64-unknown-linux-gnu")));
        assert!(is_for_target(&words("rustc --target=x86_64-unknown-linux-gnu -")));
        assert!(!is_for_target(&words("rustc --crate-name build_script_build --crate-type bin")));
        assert!(!is_for_target(&words("rustc -vV")));
    }

    #[test]
    fn the_last_level_counts() {
        for (line, optimised) in [
            ("rustc a.rs", false),
            ("rustc -C opt-level=3 a.rs", true),
            ("rustc -Copt-level=s a.rs", true),
            ("rustc -O a.rs", true),
            ("rustc -C opt-level=3 a.rs -C opt-level=0", false),
            ("rustc -C debuginfo=2 --codegen opt-level=1", true),
            ("rustc -C", false),
        ] {
            assert_eq!(is_optimised(&words(line)), optimised, "{line}");
        }
    }
}
