//! `cargo xtask gen`: the registry of remedies, and their page.
//!
//! Each file of `crates/whatif/src/remedies/` is a remedy. Its doc comment is a section of `docs/remedies.md`; the type that
//! implements `Remedy` goes into the registry, by rank.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::analyses::{between, comment, modules};
use crate::prose;

const SOURCES: &str = "crates/whatif/src/remedies";
const PAGE: &str = "docs/remedies.md";

/// One file.
struct Source {
    module: String,
    /// The type that implements `Remedy`.
    ty: String,
    id: String,
    rank: u16,
    /// The program that needs it: a file, or a folder with a story.
    program: String,
    /// Its doc comment.
    section: Vec<String>,
}

/// The generated files: path and text.
pub fn expand(root: &Path) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for (module, text) in modules(root, SOURCES)? {
        let source = parse(&module, &text).with_context(|| format!("{SOURCES}/{module}.rs"))?;
        let program = root.join(&source.program);
        ensure!(program.exists(), "{SOURCES}/{module}.rs: there is no program {}", source.program);
        sources.push(source);
    }
    sources.sort_by_key(|source| source.rank);
    let twice = sources.windows(2).find(|two| two[0].rank == two[1].rank);
    ensure!(twice.is_none(), "{SOURCES}: two remedies of one rank: {}", twice.map_or("", |two| &two[1].id));
    Ok(vec![(format!("{SOURCES}/mod.rs"), registry(&sources)), (PAGE.to_string(), page(&sources))])
}

fn parse(module: &str, text: &str) -> Result<Source> {
    let section = comment(text);
    ensure!(section.first().is_some_and(|line| line.starts_with("# ")), "expected a heading, `//! # …`");
    for part in ["What it proposes", "Why it gains", "When it is wrong"] {
        ensure!(
            section.iter().any(|line| line.starts_with(&format!("**{part}."))),
            "its doc comment lacks **{part}.**"
        );
    }
    let rank = between(text, "rank: ", ",").context("no rank in its Meta")?;
    Ok(Source {
        module: module.to_string(),
        ty: between(text, "\nimpl Remedy for ", " {").context("no `impl Remedy for …`")?,
        id: between(text, "id: \"", "\"").context("no id in its Meta")?,
        rank: rank.parse().context("its rank is no number")?,
        program: between(text, "program: \"", "\"").context("no program in its Meta")?,
        section: section.iter().map(ToString::to_string).collect(),
    })
}

fn registry(sources: &[Source]) -> String {
    let mut names: Vec<&str> = sources.iter().map(|source| source.module.as_str()).collect();
    names.sort_unstable();
    let modules: String = names.iter().map(|name| format!("pub(crate) mod {name};\n")).collect();
    let known =
        |source: &Source| format!("        RegisteredRemedy::of::<{}::{}>(),\n", source.module, source.ty);
    let known: String = sources.iter().map(known).collect();
    format!(
        "// Generated from the files beside it by `cargo xtask gen`. Do not edit.\n\n{modules}\nuse crate::remedy::RegisteredRemedy;\n\n\
         /// All remedies, in the order in which they propose.\npub fn all() -> [RegisteredRemedy; {}] {{\n    [\n{known}    ]\n}}\n",
        sources.len()
    )
}

fn page(sources: &[Source]) -> String {
    let mut out = format!(
        "<!-- Generated from {SOURCES} by `cargo xtask gen`. Do not edit. -->\n\n# Remedies\n\n\
         `memlode advise` tries edits that these remedies propose, and advises those that gain, as\n\
         [whatif.md](whatif.md#advice) says. Each has a program that needs it.\n"
    );
    for Source { id, program, section, .. } in sources {
        let title = section[0].trim_start_matches("# ");
        let _ = writeln!(out, "\n## {title}: {id}\n{}\n", section[1..].join("\n"));
        let _ = writeln!(out, "**Program.** [{program}](../{program})");
    }
    prose::wrapped(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "//! # Odd\n//!\n//! **What it proposes.** A\n//! **Why it gains.** B\n//! **When it is wrong.** C\n\n\
        use x;\nimpl Remedy for Odd {\n    const META: RemedyMeta =\n        RemedyMeta { id: \"odd-one\", rank: 7, program: \"gallery/odd\" };\n";

    #[test]
    fn a_file_tells_its_section_type_rank_and_program() {
        let source = parse("odd_one", FILE).expect("a remedy");
        assert_eq!((source.ty.as_str(), source.id.as_str(), source.rank), ("Odd", "odd-one", 7));
        assert!(
            page(std::slice::from_ref(&source)).contains("\n## Odd: odd-one\n\n**What it proposes.** A\n")
        );
        assert!(registry(&[source]).contains("[\n        RegisteredRemedy::of::<odd_one::Odd>(),\n    ]"));
    }

    #[test]
    fn a_section_has_all_its_parts() {
        let parts = [("# Odd", "heading"), ("**Why it gains.**", "Why it gains"), ("rank: 7,", "rank")];
        for (part, complaint) in parts.into_iter().chain([("program: ", "no program"), ("id:", "no id")]) {
            let error = parse("odd", &FILE.replace(part, "gone")).err().expect("refused");
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
}
