//! The parts of a Rust program besides its crates, as dependencies for cargo: the plug-in, and the
//! options that it reads.
//!
//! rustc lists a crate's sources in its `.d` file, and cargo rebuilds the crate when one of these
//! changes:
//!
//! ```text
//! target/…/deps/prog-0123.d: src/main.rs         files …
//! # env-dep:LANG=C                               … and variables
//! ```
//! The plug-in works where crates are linked, so linked crates get further entries; libraries do
//! not change.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{ALLOCATORS, FIDELITY, FILTER, VALUES};

/// The variables that the plug-in reads (`instrument/src/Options.cpp`), and whether each names a file.
pub const VARIABLES: [(&str, bool); 8] = [
    (ALLOCATORS, true),
    (FILTER, true),
    (FIDELITY, false),
    (VALUES, false),
    ("MEMLODE_DERIVE", false),
    ("MEMLODE_MODE", false),
    ("MEMLODE_STAMPS", false),
    ("MEMLODE_VERSIONS", false),
];

/// The `.d` file that rustc writes for this command line, if that links.
pub fn of_linked(words: &[OsString]) -> Option<PathBuf> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let links = |kind: &str| matches!(kind, "bin" | "dylib" | "cdylib");
    if !words.contains(&"--test") && !values(&words, "--crate-type").any(links) {
        return None;
    }
    let directory = values(&words, "--out-dir").last()?;
    let name = values(&words, "--crate-name").last()?;
    let options = values(&words, "-C").chain(values(&words, "--codegen"));
    let suffix = options.filter_map(|option| option.strip_prefix("extra-filename=")).last().unwrap_or("");
    Some(Path::new(directory).join(format!("{name}{suffix}.d")))
}

/// Adds to a `.d` file, if rustc wrote it, the plug-in, the variables that it reads and the files that these name.
pub fn amend(file: &Path, plugin: &Path) -> Result<()> {
    let Ok(text) = memlode_files::read_text(file, 64 << 20) else { return Ok(()) };
    let variables = VARIABLES.map(|(name, is_file)| (name, is_file, std::env::var_os(name)));
    let mut files = vec![plugin.to_path_buf()];
    for (_, is_file, value) in &variables {
        let named = value.as_ref().filter(|value| *is_file && !value.is_empty());
        files.extend(named.map(std::path::absolute).transpose()?);
    }
    let variables: Vec<(&str, Option<String>)> = variables
        .into_iter()
        .map(|(name, _, value)| (name, value.map(|value| value.to_string_lossy().into_owned())))
        .collect();
    fs::write(file, amended(&text, &files, &variables))
        .with_context(|| format!("cannot tell cargo in {} what the program depends on", file.display()))
}

/// Values of an option, behind it or joined to it.
fn values<'a>(words: &'a [&'a str], option: &'a str) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(at, word)| match word.strip_prefix(option)? {
        "" => words.get(at + 1).copied(),
        joined if option.starts_with("--") => joined.strip_prefix('='),
        joined => Some(joined),
    })
}

fn amended(text: &str, files: &[PathBuf], variables: &[(&str, Option<String>)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_done = false;
    for line in text.lines() {
        out.push_str(line);
        // Cargo reads the first rule; the others say the same of other outputs.
        if !is_done && !line.starts_with('#') && line.contains(':') {
            for file in files.iter().filter_map(|file| file.to_str()) {
                out.push(' ');
                out.push_str(&file.replace(' ', "\\ "));
            }
            is_done = true;
        }
        out.push('\n');
    }
    for (name, value) in variables {
        let escaped = |value: &String| {
            format!("={}", value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r"))
        };
        out.push_str(&format!("# env-dep:{name}{}\n", value.as_ref().map(escaped).unwrap_or_default()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_is_linked_is_told_from_libraries() {
        for (line, file) in [
            ("rustc --crate-name a --crate-type bin --out-dir /t -C extra-filename=-12", Some("/t/a-12.d")),
            ("rustc --crate-name=a --crate-type=cdylib --out-dir=/t -Cextra-filename=-12", Some("/t/a-12.d")),
            ("rustc --crate-name a --test --out-dir /t --codegen opt-level=3", Some("/t/a.d")),
            ("rustc --crate-name a --crate-type lib --out-dir /t", None),
            ("rustc --crate-name a --crate-type", None),
            ("rustc --crate-type bin a.rs", None),
        ] {
            assert_eq!(of_linked(&words(line)), file.map(PathBuf::from), "{line}");
        }
    }

    #[test]
    fn files_join_the_first_rule_and_variables_the_end() {
        let text = "# a comment: none\n/t/a.d: src/a.rs\n\n/t/a: src/a.rs\n\nsrc/a.rs:\n";
        let variables = [("SET", Some("x\\y\nz".to_string())), ("UNSET", None)];
        assert_eq!(
            amended(text, &["/p q/pass.so".into()], &variables),
            "# a comment: none\n/t/a.d: src/a.rs /p\\ q/pass.so\n\n/t/a: src/a.rs\n\nsrc/a.rs:\n\
             # env-dep:SET=x\\\\y\\nz\n# env-dep:UNSET\n"
        );
    }
}
