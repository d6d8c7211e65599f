//! `cargo xtask gen`: `format/trace.toml` to `format/generated/`, analyses and remedies to their registries and pages, and the results
//! of benchmarks into the pages that quote them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::schema::Schema;
use crate::{analyses, emit_c, emit_python, emit_rust, figures, json, law, remedies};

/// The head of every generated file.
pub const NOTICE: &str = "Generated from format/trace.toml by `cargo xtask gen`. Do not edit.";

/// Writes the generated files that are missing or stale.
pub fn write(root: &Path) -> Result<()> {
    for (path, text) in expand(root)? {
        let path = root.join(path);
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// One sentence for each generated file that does not agree with its source.
pub fn stale(root: &Path) -> Result<Vec<String>> {
    Ok(expand(root)?
        .into_iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_deref() != Some(text))
        .map(|(path, _)| format!("{path}: stale; run `cargo xtask gen`"))
        .collect())
}

fn expand(root: &Path) -> Result<Vec<(String, String)>> {
    let path = root.join("format/trace.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let schema = Schema::parse(&text).context("format/trace.toml")?;
    let mut files = vec![
        ("format/generated/memlode_format.h".to_string(), emit_c::emit(&schema)),
        ("format/generated/format.rs".to_string(), emit_rust::emit(&schema)),
        ("format/generated/memlode_format.py".to_string(), emit_python::emit(&schema)),
    ];
    files.extend(analyses::expand(root)?);
    files.extend(remedies::expand(root)?);
    files.extend(figures::expand(root)?);
    files.push(law::expand(root)?);
    files.extend(json::expand(root)?);
    Ok(files)
}
