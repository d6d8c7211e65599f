//! `cargo xtask check`: crates are built once. The Python package is built by itself, so a crate
//! that has other features in it than in the whole workspace would be built again with all that
//! stands on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Crates that the Python package would build with other features than the workspace does.
pub fn built_twice(root: &Path) -> Result<Vec<String>> {
    let all = with_features(root, &["--workspace"])?;
    let package = with_features(root, &["--package", "memlode-python"])?;
    let twice = package.difference(&all);
    Ok(twice
        .map(|name| format!("python/Cargo.toml: builds {name}, which the workspace has with other features"))
        .collect())
}

/// Crates that `selected` packages stand on, each with its version and features, as `cargo tree`
/// prints them.
fn with_features(root: &Path, selected: &[&str]) -> Result<BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--prefix=none", "--format={p} {f}"])
        .args(["--edges=normal,build,no-proc-macro", "--no-dedupe"])
        .args(selected)
        .current_dir(root)
        .output()
        .context("cannot run cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}
