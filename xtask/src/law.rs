//! `cargo xtask check`: the dependency law. Data flows one way, and a room knows only what its work needs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Which crates of ours each crate may use. Leaving a crate out is a problem, too: its place must be decided.
const MAY_USE: &[(&str, &[&str])] = &[
    ("files", &[]),
    ("trace", &["files"]),
    ("symbols", &["files", "trace"]),
    ("collect", &["trace", "symbols"]),
    ("wire", &["trace"]),
    ("layout", &[]),
    ("patch", &["layout"]),
    ("simulate", &[]),
    ("machine", &["files", "simulate"]),
    ("counters", &["machine"]),
    ("sample", &["files", "trace", "symbols", "counters"]),
    ("measure", &["files", "symbols", "sample", "machine", "counters", "simulate"]),
    ("replay", &["trace", "simulate"]),
    ("attribute", &["trace", "machine", "simulate", "replay"]),
    ("analyses", &["trace", "machine", "simulate", "attribute"]),
    ("whatif", &["files", "trace", "machine", "simulate", "replay", "attribute", "layout"]),
    ("results", &["files", "trace"]),
    (
        "report",
        &[
            "files",
            "trace",
            "symbols",
            "sample",
            "machine",
            "counters",
            "measure",
            "replay",
            "attribute",
            "analyses",
            "layout",
            "whatif",
        ],
    ),
    ("html", &["report"]),
    ("export", &["trace", "machine", "simulate", "attribute", "analyses", "report"]),
    (
        "cli",
        &[
            "files",
            "trace",
            "symbols",
            "sample",
            "collect",
            "wire",
            "machine",
            "counters",
            "simulate",
            "replay",
            "attribute",
            "analyses",
            "report",
            "results",
            "export",
            "html",
            "layout",
            "patch",
            "whatif",
            "measure",
        ],
    ),
];

/// Subjects that one room, or a few, know about: the crate, and who may use it.
const ONLY: &[(&str, &[&str])] = &[
    ("object", &["symbols"]),
    ("rustix", &["files", "trace", "sample", "collect", "wire", "measure", "cli"]),
    ("libc", &["sample", "counters", "measure"]),
    ("clang-sys", &["patch"]),
    ("statrs", &["measure"]),
    ("rand", &["sample", "measure", "whatif"]),
    ("plotters", &["report"]),
    ("perf-event2", &["sample", "counters"]),
    ("iced-x86", &["symbols"]),
    ("gimli", &["symbols"]),
    ("framehop", &["symbols"]),
    ("addr2line", &["symbols"]),
    ("hmac", &["wire"]),
    ("md-5", &["report"]),
    ("postcard", &["analyses", "attribute"]),
    ("sha2", &["wire", "machine", "results", "report", "html"]),
    ("syntect", &["html"]),
    ("two-face", &["html"]),
    ("base64", &["html"]),
    ("flate2", &["symbols", "export", "html"]),
    ("zstd", &["trace", "symbols", "sample"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("anyhow", &["cli"]),
    ("indicatif", &["cli"]),
    ("signal-hook", &["cli"]),
    ("comfy-table", &["report"]),
    ("textwrap", &["report"]),
    ("unicode-width", &["report"]),
    ("anstyle", &["report", "cli"]),
    ("anstream", &["cli"]),
    ("polars-arrow-format", &["export"]),
    ("prost", &["export"]),
    ("fxprof-processed-profile", &["export"]),
];

/// Text that must not stand in the sources of a crate, and in which crates it may.
const WORDS: &[(&str, &[&str], &str)] = &[
    ("println!", &["cli"], "only cli prints"),
    ("print!", &["cli"], "only cli prints"),
    ("dbg!", &[], "left over from debugging"),
    ("process::exit", &["cli"], "only cli exits"),
    ("todo!", &[], "unfinished"),
    ("unimplemented!", &[], "unfinished"),
];

/// Calls that run a replay or an analysis. A report is made of what was found, and finds nothing.
const RUNS: &[&str] = &["Simulation::of(", "findings_of(", ".begin("];

/// Calls that open a file by its name. A stranger's name may lead to a FIFO, a device or through a link, so
/// `crates/files` alone makes them, but for the files of [`OPENS`].
const OPENING: &[&str] =
    &["File::open(", "File::options(", "OpenOptions::new(", "fs::read(", "fs::read_to_string("];

/// Calls that write a file by its name, through whatever link lies there. Crates that only write what their user
/// names may make them.
const WRITING: (&[&str], &[&str]) = (&["fs::write(", "File::create("], &["cli", "measure"]);

/// Sources that open files by themselves, and why they may.
const OPENS: &[(&str, &str)] = &[
    ("crates/analyses/src/parts/memory.rs", "the kernel's"),
    ("crates/cli/src/destination.rs", "a file to write, which may be a FIFO"),
    ("crates/cli/src/driver/toolchain.rs", "a cache of ours, to add a line"),
    ("crates/cli/src/interrupt.rs", "the kernel's"),
    ("crates/cli/src/itself.rs", "the input of a program, which may be a FIFO"),
    ("crates/collect/src/control.rs", "the kernel's"),
    ("crates/collect/src/images.rs", "the kernel's"),
    ("crates/collect/src/private.rs", "a folder that is ours, to lock it"),
    ("crates/collect/src/process/mod.rs", "the kernel's"),
    ("crates/counters/src/kernel.rs", "the kernel's"),
    ("crates/measure/src/bias/blocks.rs", "a file that a child of ours wrote"),
    ("crates/measure/src/bias/pages.rs", "the kernel's"),
    ("crates/measure/src/folder_check.rs", "a copy of ours, to change its date"),
    ("crates/measure/src/inside/tracee.rs", "the kernel's"),
    ("crates/measure/src/link/confined.rs", "a folder, to confine the linker to it"),
    ("crates/measure/src/link/kept.rs", "a program that the linker has just written, to add a line"),
    ("crates/measure/src/machine/mod.rs", "the kernel's"),
    ("crates/measure/src/process/run.rs", "the input of a program, which may be a FIFO; the kernel's"),
];

/// Modules that a simulator which depends on addresses and time only has no use for.
const SIMULATE_WITHOUT: &[&str] =
    &["std::fs", "std::io", "std::net", "std::env", "std::process", "std::time"];

/// A longer file has more than one subject.
const MOST_LINES: usize = 600;

/// The page that has the law as a table, and the marks that it stands between.
const PAGE: &str = "ARCHITECTURE.md";
const MARKS: (&str, &str) = ("<!-- law -->\n", "<!-- /law -->");

/// Returns the page with the table of the law in its place.
pub fn expand(root: &Path) -> Result<(String, String)> {
    let text = read(&root.join(PAGE))?;
    let (before, rest) =
        text.split_once(MARKS.0).with_context(|| format!("{PAGE}: no `{}`", MARKS.0.trim()))?;
    let (_, after) = rest.split_once(MARKS.1).with_context(|| format!("{PAGE}: no `{}`", MARKS.1))?;
    Ok((PAGE.to_string(), format!("{before}{}{}{}{after}", MARKS.0, table(), MARKS.1)))
}

/// Returns the law as a table of Markdown: each crate, and those of ours that it may use.
fn table() -> String {
    let row = |(name, uses): &(&str, &[&str])| {
        let uses = if uses.is_empty() { "none".to_string() } else { uses.join(", ") };
        format!("| `{name}` | {uses} |\n")
    };
    let rows: String = MAY_USE.iter().map(row).collect();
    format!("\n| crate | may use |\n|---|---|\n{rows}\n")
}

/// Returns one sentence for each breach.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    crates(root, &mut problems)?;
    record(root, &mut problems)?;
    instrument(root, &mut problems)?;
    for room in ["crates", "instrument", "record", "stagger", "blocks", "xtask"] {
        for path in sources(&root.join(room), &["rs", "c", "cpp", "h", "S"])? {
            let lines = read(&path)?.lines().count();
            if lines > MOST_LINES {
                problems
                    .push(format!("{}: {lines} lines; a file has at most {MOST_LINES}", shown(root, &path)));
            }
        }
    }
    Ok(problems)
}

fn crates(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let may_use: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut names: Vec<_> = fs::read_dir(root.join("crates"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    for name in names {
        let folder = root.join("crates").join(&name);
        let Some(allowed) = may_use.get(name.as_str()) else {
            problems.push(format!("crates/{name}: has no place in the dependency law (xtask/src/law.rs)"));
            continue;
        };
        let manifest: toml::Table = toml::from_str(&read(&folder.join("Cargo.toml"))?)
            .with_context(|| format!("crates/{name}/Cargo.toml"))?;
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in dependencies.into_iter().flat_map(|table| table.keys()) {
            problems.extend(
                breach(&name, dependency, allowed).map(|why| format!("crates/{name}/Cargo.toml: {why}")),
            );
        }
        for path in sources(&folder.join("src"), &["rs"])? {
            let text = read(&path)?;
            let found = words(&name, &text)
                .into_iter()
                .chain(opened(&name, &shown(root, &path), &text))
                .map(|(line, why)| format!("{}:{line}: {why}", shown(root, &path)));
            problems.extend(found);
        }
    }
    Ok(())
}

/// Why a crate may not have a dependency.
fn breach(name: &str, dependency: &str, allowed: &[&str]) -> Option<String> {
    if let Some(ours) = dependency.strip_prefix("memlode-") {
        return (!allowed.contains(&ours))
            .then(|| format!("{name} must not know {ours}; it may use {allowed:?}"));
    }
    let (_, rooms) = ONLY.iter().find(|(only, _)| *only == dependency)?;
    (!rooms.contains(&name)).then(|| format!("{name} must not use {dependency}; that is for {rooms:?}"))
}

/// Finds lines of a crate's source with words that have no place there.
fn words(name: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, code) in code_lines(text) {
        for (word, rooms, why) in WORDS {
            if !rooms.contains(&name) && contains_word(code, word) {
                found.push((number, format!("{word} in {name}: {why}")));
            }
        }
        for word in RUNS {
            if name == "report" && code.contains(word) {
                found.push((
                    number,
                    format!("{word}…): a report is made of what was found, and runs nothing"),
                ));
            }
        }
        for word in SIMULATE_WITHOUT {
            if name == "simulate" && code.contains(word) {
                found.push((number, format!("{word}: simulate depends on addresses and time only")));
            }
        }
    }
    found
}

/// Finds lines that open a file without its door.
fn opened(name: &str, file: &str, text: &str) -> Vec<(usize, String)> {
    if name == "files" || file.ends_with("/tests.rs") || OPENS.iter().any(|(allowed, _)| *allowed == file) {
        return Vec::new();
    }
    let (writing, writers) = WRITING;
    let writing = if writers.contains(&name) { &[] } else { writing };
    let lines = code_lines(text);
    let found = lines.filter_map(|(number, code)| {
        let call = OPENING.iter().chain(writing).find(|call| contains_word(code, call))?;
        Some((number, format!("{call}…) in {name}: files are opened by crates/files")))
    });
    found.collect()
}

/// Returns the numbered lines of a file in front of its tests, without their comments.
pub fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_item = |number: usize| lines.get(number + 1).is_some_and(|next| next.ends_with(';'));
    let tests = (0..lines.len()).find(|&at| lines[at].trim() == "#[cfg(test)]" && !is_item(at));
    let code = tests.unwrap_or(lines.len());
    (1..).zip(lines).take(code).map(|(number, line)| (number, line.split("//").next().unwrap_or(line)))
}

/// Returns whether the word begins where no other word goes on, so that `println!` is not found in `eprintln!`… but that one
/// prints, too, so a leading `e` is part of the word.
fn contains_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].strip_suffix('e').unwrap_or(&code[..at]);
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    })
}

/// The runtime lives inside a foreign program: its own headers, the format's, and the system's, none of which bring
/// buffers or a heap.
fn record(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    const FOREIGN: &[&str] = &["stdio.h", "stdlib.h", "malloc.h"];
    let folder = root.join("record");
    for path in sources(&folder, &["c", "h", "S"])? {
        let is_test = path.strip_prefix(&folder).is_ok_and(|path| path.starts_with("test"));
        if is_test {
            continue;
        }
        for (number, include, quoted) in includes(&read(&path)?) {
            let place = format!("{}:{number}", shown(root, &path));
            let beside = path.parent().is_some_and(|folder| folder.join(&include).exists());
            let own =
                beside || folder.join("include").join(&include).exists() || include == "memlode_format.h";
            if quoted && !own {
                problems.push(format!(
                    "{place}: record includes {include}, which is neither its own nor the format's"
                ));
            }
            if !quoted && (FOREIGN.contains(&include.as_str()) || include.starts_with("llvm")) {
                problems.push(format!("{place}: record must do without <{include}>"));
            }
        }
    }
    Ok(())
}

/// The pass knows IR and debug info, nothing of the runtime's insides; LLVM's versions differ in one header only.
fn instrument(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    for path in sources(&root.join("instrument"), &["cpp", "h"])? {
        let text = read(&path)?;
        let place = shown(root, &path);
        for (number, include, _) in includes(&text) {
            if include.contains("record/") {
                problems.push(format!("{place}:{number}: instrument must not include {include}"));
            }
        }
        if text.contains("LLVM_VERSION_MAJOR") && path.file_name().is_none_or(|name| name != "LlvmCompat.h") {
            problems.push(format!("{place}: tests LLVM's version; that belongs into LlvmCompat.h"));
        }
    }
    Ok(())
}

/// Line, file, and whether it stands in quotes.
fn includes(text: &str) -> Vec<(usize, String, bool)> {
    let one = |(number, line): (usize, &str)| {
        let what = line.trim().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim();
        let quoted = what.starts_with('"');
        let name = what.get(1..)?.split(['"', '>']).next()?;
        Some((number + 1, name.to_owned(), quoted))
    };
    text.lines().enumerate().filter_map(one).collect()
}

/// Returns the files below a folder with one of these extensions, sorted; empty if there is no such
/// folder. Built files, and hidden folders, are left out.
pub fn sources(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path, extensions)?);
        } else if path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|e| extensions.contains(&e))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns a path relative to the root.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_has_no_cycle() {
        for (at, (name, uses)) in MAY_USE.iter().enumerate() {
            for used in *uses {
                let place = MAY_USE.iter().position(|(other, _)| other == used);
                assert!(place.is_some_and(|place| place < at), "{name} uses {used}, which must come earlier");
            }
        }
    }

    #[test]
    fn breaches_are_found() {
        assert!(breach("simulate", "memlode-trace", &[]).is_some());
        assert!(breach("report", "object", &[]).is_some());
        assert!(breach("collect", "memlode-trace", &["trace"]).is_none());
        assert!(breach("collect", "thiserror", &[]).is_none());
        assert_eq!(words("trace", "fn f() {\n    eprintln!(\"x\");\n}").len(), 1);
        assert_eq!(words("trace", "// println!\n/// todo!()\nlet blueprint!").len(), 0);
        assert_eq!(words("cli", "println!()").len(), 0);
        assert_eq!(words("simulate", "use std::fs;").len(), 1);
        assert_eq!(words("report", "let found = findings_of(trace);").len(), 1);
        assert_eq!(words("trace", "#[cfg(test)]\nmod tests {\n println!();").len(), 0);
        assert_eq!(opened("trace", "a.rs", "let f = fs::read(p);").len(), 1);
        assert_eq!(opened("trace", "a.rs", "let f = sysfs::read(p); fs::read_dir(p);").len(), 0);
        assert_eq!(opened("files", "a.rs", "File::open(p)").len(), 0);
        assert_eq!(opened("trace", "a.rs", "fs::write(p, b)").len(), 1);
        assert_eq!(opened("cli", "a.rs", "fs::write(p, b)").len(), 0);
        assert_eq!(includes("#include <stdio.h>\n# include \"a/b.h\"\n").len(), 2);
    }
}
