//! `cargo xtask gen`: the registry of analyses, and their pages.
//!
//! Each file of `crates/analyses/src/analyses/` is an analysis. Its doc comment is the user's page, so it is
//! copied to `docs/analyses/`; the type that implements `Analysis` goes into the registry.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::prose;

const SOURCES: &str = "crates/analyses/src/analyses";
const PAGES: &str = "docs/analyses";

/// One file.
struct Source {
    /// Its name without the extension: that of the module.
    module: String,
    /// The type that implements `Analysis`.
    ty: String,
    /// Its id on the command line.
    id: String,
    /// Its doc comment.
    page: String,
}

/// The generated files: path and text.
pub fn expand(root: &Path) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for (module, text) in modules(root, SOURCES)? {
        sources.push(parse(&module, &text).with_context(|| format!("{SOURCES}/{module}.rs"))?);
    }
    let pages = sources.iter().map(|source| (format!("{PAGES}/{}.md", source.id), page(source)));
    Ok(pages
        .chain([
            (format!("{SOURCES}/mod.rs"), registry(&sources)),
            (format!("{PAGES}/README.md"), index(&sources)),
        ])
        .collect())
}

/// The files of a folder that are modules beside the registry: name and text, by name.
pub fn modules(root: &Path, folder: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let folder = root.join(folder);
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let module = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".rs"));
        if let Some(module) = module.filter(|module| *module != "mod") {
            found.push((module.to_string(), fs::read_to_string(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

/// The lines of a file's own doc comment.
pub fn comment(text: &str) -> Vec<&str> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect()
}

/// The text between two others, the first time that they come.
pub fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let rest = text.split_once(before)?.1;
    Some(rest.split_once(after)?.0.to_string())
}

fn parse(module: &str, text: &str) -> Result<Source> {
    let page = comment(text);
    ensure!(
        page.first().is_some_and(|line| line.starts_with("# ")),
        "the doc comment is the user's page: expected it to begin with a heading, `//! # …`"
    );
    for part in ["What it finds", "Why it costs", "What to do", "When it is wrong"] {
        ensure!(
            page.iter().any(|line| line.starts_with(&format!("**{part}."))),
            "the page lacks **{part}.**"
        );
    }
    Ok(Source {
        module: module.to_string(),
        ty: between(text, "\nimpl Analysis for ", " {").context("no `impl Analysis for …`")?,
        id: between(text, "        id: \"", "\"").context("no id in its Meta")?,
        page: page.join("\n"),
    })
}

fn registry(sources: &[Source]) -> String {
    let modules: String =
        sources.iter().map(|source| format!("pub(crate) mod {};\n", source.module)).collect();
    let known: String = sources
        .iter()
        .map(|source| format!("        Registered::of::<{}::{}>(),\n", source.module, source.ty))
        .collect();
    format!(
        "// Generated from the files beside it by `cargo xtask gen`. Do not edit.\n\n{modules}\nuse crate::Registered;\n\n\
         /// All analyses.\npub fn all() -> [Registered; {}] {{\n    [\n{known}    ]\n}}\n",
        sources.len()
    )
}

fn page(source: &Source) -> String {
    prose::wrapped(&format!(
        "<!-- Generated from {SOURCES}/{}.rs by `cargo xtask gen`. Do not edit. -->\n\n{}\n",
        source.module, source.page
    ))
}

fn index(sources: &[Source]) -> String {
    let mut out = format!(
        "<!-- Generated from {SOURCES} by `cargo xtask gen`. Do not edit. -->\n\n# Analyses\n\n\
         Those of every access run with `memlode replay DIR --analyse NAME` or `memlode run --analyse NAME`; `offenders`\n\
         is in every report.\n\n"
    );
    for source in sources {
        let title = source.page.lines().next().unwrap_or_default().trim_start_matches("# ");
        out += &format!("- [{title}]({id}.md): `{id}`\n", id = source.id);
    }
    prose::wrapped(&(out + "\nTheir tables in JSON have a schema: [schema.json](schema.json).\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "//! # Odd\n//!\n//! **What it finds.** A\n//! **Why it costs.** B\n//! **What to do.** C\n\
        //! **When it is wrong.** D\n\nuse x;\nimpl Analysis for Odd {\n    const META: Meta = Meta {\n        id: \"odd-one\",\n";

    #[test]
    fn a_file_tells_its_page_type_and_name() {
        let source = parse("odd_one", FILE).expect("an analysis");
        assert_eq!((source.ty.as_str(), source.id.as_str()), ("Odd", "odd-one"));
        assert!(page(&source).contains("\n# Odd\n\n**What it finds.** A\n"));
        assert!(registry(&[source]).contains("[\n        Registered::of::<odd_one::Odd>(),\n    ]"));
    }

    #[test]
    fn a_page_has_all_its_parts() {
        for (part, complaint) in [("# Odd", "heading"), ("**What to do.**", "What to do"), ("id:", "no id")] {
            let error = parse("odd", &FILE.replace(part, "gone")).err().expect("refused");
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
}
