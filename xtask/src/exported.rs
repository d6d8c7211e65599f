//! One name for one thing: no two crates export a type of one name.
//!
//! A type is exported if it is public in a chain of public modules from the crate's root, or used publicly there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::{Item, UseTree, Visibility};

/// Names that every crate may have: its error, its options, its arguments.
const MAY_REPEAT: &[&str] = &["Error", "Options", "Args"];

/// One sentence for each name that two crates export.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut exporters: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lib = folder.join("src/lib.rs");
        // A program exports nothing.
        if lib.exists() {
            let mut types = BTreeSet::new();
            exported(&lib, &folder.join("src"), &mut types)?;
            for exported in types {
                exporters.entry(exported).or_default().insert(name.clone());
            }
        }
    }
    let repeated = exporters
        .into_iter()
        .filter(|(name, crates)| crates.len() > 1 && !MAY_REPEAT.contains(&name.as_str()));
    Ok(repeated
        .map(|(name, crates)| {
            let crates: Vec<String> = crates.into_iter().collect();
            format!("{name} is a type of several crates ({}): one name for one thing", crates.join(", "))
        })
        .collect())
}

/// Adds the types that a module exports; its own modules lie in `folder`.
fn exported(file: &Path, folder: &Path, types: &mut BTreeSet<String>) -> Result<()> {
    for item in parse(file)?.items {
        match item {
            Item::Struct(item) if is_public(&item.vis) => _ = types.insert(item.ident.to_string()),
            Item::Enum(item) if is_public(&item.vis) => _ = types.insert(item.ident.to_string()),
            Item::Union(item) if is_public(&item.vis) => _ = types.insert(item.ident.to_string()),
            Item::Trait(item) if is_public(&item.vis) => _ = types.insert(item.ident.to_string()),
            Item::Type(item) if is_public(&item.vis) => _ = types.insert(item.ident.to_string()),
            // What is included from elsewhere is generated.
            Item::Mod(item)
                if is_public(&item.vis)
                    && item.content.is_none()
                    && !item.attrs.iter().any(|attribute| attribute.path().is_ident("path")) =>
            {
                let (file, folder) = module(folder, &item.ident.to_string())?;
                exported(&file, &folder, types)?;
            }
            Item::Use(item) if is_public(&item.vis) => used(&item.tree, folder, types)?,
            _ => {}
        }
    }
    Ok(())
}

/// Adds the types that a `pub use` names. Those of other crates are no new types.
fn used(tree: &UseTree, folder: &Path, types: &mut BTreeSet<String>) -> Result<()> {
    match tree {
        UseTree::Path(path) => {
            let name = path.ident.to_string();
            if name.starts_with("memlode_") || matches!(name.as_str(), "std" | "core") {
                return Ok(());
            }
            if matches!(&*path.tree, UseTree::Glob(_)) {
                let (file, folder) = module(folder, &name)?;
                return exported(&file, &folder, types);
            }
            used(&path.tree, folder, types)
        }
        UseTree::Group(group) => group.items.iter().try_for_each(|tree| used(tree, folder, types)),
        UseTree::Name(name) => {
            add_if_type(&name.ident.to_string(), types);
            Ok(())
        }
        UseTree::Rename(rename) => {
            add_if_type(&rename.rename.to_string(), types);
            Ok(())
        }
        UseTree::Glob(_) => Ok(()),
    }
}

/// Types are written in camel case, functions and constants are not.
fn add_if_type(name: &str, types: &mut BTreeSet<String>) {
    if name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase) {
        types.insert(name.to_string());
    }
}

/// The file of a module, and the folder of its modules.
fn module(folder: &Path, name: &str) -> Result<(PathBuf, PathBuf)> {
    let inner = folder.join(name);
    let candidates = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
    let file = candidates.into_iter().find(|file| file.exists());
    Ok((file.with_context(|| format!("no file for module {name} in {}", folder.display()))?, inner))
}

fn parse(file: &Path) -> Result<syn::File> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes crates, each with these files, and returns the complaints.
    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let root =
            std::env::temp_dir().join(format!("memlode-exported-{}-{}", std::process::id(), files.len()));
        for (path, text) in files {
            let path = root.join("crates").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let found = check(&root);
        fs::remove_dir_all(&root).expect("it was there");
        found.expect("crates that can be read")
    }

    #[test]
    fn a_name_of_two_crates_is_refused() {
        let found = complaints(&[
            (
                "a/src/lib.rs",
                "pub mod inner; mod hidden; pub use hidden::{one::Shown, function}; pub enum Error {}",
            ),
            ("a/src/inner/mod.rs", "pub mod deep; pub struct Twice; struct Own;"),
            ("a/src/inner/deep.rs", "pub type Deep = u8;"),
            ("a/src/hidden.rs", "pub struct Hidden; pub mod one { pub struct Shown; }"),
            (
                "b/src/lib.rs",
                "mod all; pub use all::*; pub use memlode_a::inner::Twice as Thrice; pub enum Error {}",
            ),
            (
                "b/src/all.rs",
                "pub struct Twice; pub trait Deep {} pub struct Shown; pub struct Hidden; pub struct Own;",
            ),
        ]);
        let names: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(names, ["Deep", "Shown", "Twice"], "{found:?}");
        assert!(found[0].contains("(a, b)"), "{found:?}");
    }
}
